//! One parsed document: its value, and the fields that its text has twice. Works for any serde format; knows no schema.

use std::cell::{Cell, RefCell};
use std::fmt;

use serde::de::{Deserialize, DeserializeSeed, Deserializer, Error, MapAccess, SeqAccess, Visitor};
use serde_json::{Map, Number, Value};

use super::MAX_DEPTH;

/// The most duplicate fields that are told; more are counted as read but not kept.
pub const MAX_DUPLICATES: usize = 100;

/// A parsed document. Where a field stands twice, the last one counts.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Document {
    /// What it says.
    pub value: Value,
    /// Paths of fields that stand twice in one struct, such as `data.a`, in the order found; at most
    /// [`MAX_DUPLICATES`].
    pub duplicates: Vec<String>,
}

impl<'de> Deserialize<'de> for Document {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let walk = Walk::default();
        let value = Node { walk: &walk }.deserialize(deserializer)?;
        Ok(Self { value, duplicates: walk.duplicates.into_inner() })
    }
}

/// Where the reading stands.
#[derive(Default)]
struct Walk {
    path: RefCell<String>,
    depth: Cell<usize>,
    duplicates: RefCell<Vec<String>>,
}

impl Walk {
    /// Reads something one step further down; `step` adds to the path.
    fn below<T, E: Error>(
        &self,
        step: impl FnOnce(&mut String),
        read: impl FnOnce() -> Result<T, E>,
    ) -> Result<T, E> {
        let length = self.path.borrow().len();
        step(&mut self.path.borrow_mut());
        let result = read();
        self.path.borrow_mut().truncate(length);
        result
    }

    /// Reads a list or struct, unless it is nested too deep.
    fn nested<T, E: Error>(&self, read: impl FnOnce() -> Result<T, E>) -> Result<T, E> {
        if self.depth.get() >= MAX_DEPTH {
            return Err(E::custom(format_args!("nested deeper than {MAX_DEPTH} levels")));
        }
        self.depth.set(self.depth.get() + 1);
        let result = read();
        self.depth.set(self.depth.get() - 1);
        result
    }

    fn duplicate(&self, name: &str) {
        let mut duplicates = self.duplicates.borrow_mut();
        if duplicates.len() < MAX_DUPLICATES {
            let mut path = self.path.borrow().clone();
            push_field(&mut path, name);
            if !duplicates.contains(&path) {
                duplicates.push(path);
            }
        }
    }
}

/// Adds a field's name to a path such as `spec.containers[0]`.
pub fn push_field(path: &mut String, name: &str) {
    if !path.is_empty() {
        path.push('.');
    }
    path.push_str(name);
}

/// Adds an element's place to a path.
pub fn push_index(path: &mut String, index: usize) {
    path.push_str(&format!("[{index}]"));
}

#[derive(Clone, Copy)]
struct Node<'a> {
    walk: &'a Walk,
}

impl<'de> DeserializeSeed<'de> for Node<'_> {
    type Value = Value;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Value, D::Error> {
        deserializer.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for Node<'_> {
    type Value = Value;

    fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("any value")
    }

    fn visit_bool<E: Error>(self, value: bool) -> Result<Value, E> {
        Ok(Value::Bool(value))
    }

    fn visit_i64<E: Error>(self, value: i64) -> Result<Value, E> {
        Ok(Value::from(value))
    }

    fn visit_u64<E: Error>(self, value: u64) -> Result<Value, E> {
        Ok(Value::from(value))
    }

    fn visit_f64<E: Error>(self, value: f64) -> Result<Value, E> {
        Number::from_f64(value).map(Value::Number).ok_or_else(|| E::custom("a number must be finite"))
    }

    fn visit_str<E: Error>(self, value: &str) -> Result<Value, E> {
        Ok(Value::String(value.to_owned()))
    }

    fn visit_string<E: Error>(self, value: String) -> Result<Value, E> {
        Ok(Value::String(value))
    }

    fn visit_unit<E: Error>(self) -> Result<Value, E> {
        Ok(Value::Null)
    }

    fn visit_none<E: Error>(self) -> Result<Value, E> {
        Ok(Value::Null)
    }

    fn visit_some<D: Deserializer<'de>>(self, deserializer: D) -> Result<Value, D::Error> {
        self.deserialize(deserializer)
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut access: A) -> Result<Value, A::Error> {
        self.walk.nested(|| {
            let mut items = Vec::new();
            loop {
                let index = items.len();
                let item =
                    self.walk.below(|path| push_index(path, index), || access.next_element_seed(self))?;
                match item {
                    Some(item) => items.push(item),
                    None => return Ok(Value::Array(items)),
                }
            }
        })
    }

    fn visit_map<A: MapAccess<'de>>(self, mut access: A) -> Result<Value, A::Error> {
        self.walk.nested(|| {
            let mut members = Map::new();
            while let Some(Key(name)) = access.next_key()? {
                let value =
                    self.walk.below(|path| push_field(path, &name), || access.next_value_seed(self))?;
                if members.contains_key(&name) {
                    self.walk.duplicate(&name);
                }
                members.insert(name, value);
            }
            Ok(Value::Object(members))
        })
    }
}

/// A field's name. YAML allows any scalar there; its text counts.
struct Key(String);

impl<'de> Deserialize<'de> for Key {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        String::deserialize(deserializer).map(Key)
    }
}
