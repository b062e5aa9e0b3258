//! A value against a schema: unknown fields, wrong JSON types, forms of scalars. Brings the value into the form that is
//! stored: unknown fields and nulls gone, times in UTC, quantities as canonical text. Knows no rules beyond types.

use std::fmt;

use serde_json::{Map, Value};

use super::document::{push_field, push_index};
use super::scalar;
use crate::schema::node::{Node, Object};

/// The most faults of one value that are told.
pub const MAX_FAULTS: usize = 100;

/// Something wrong at one place of a value.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Fault {
    /// Where, such as `spec.containers[0].image`; empty for the value itself.
    pub path: String,
    /// What.
    pub kind: FaultKind,
}

/// What is wrong.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum FaultKind {
    /// The schema has no such field; it was removed.
    UnknownField,
    /// The JSON type is not what the schema wants; the value was left as it was.
    WrongType {
        /// The wanted type, such as `int32`.
        wanted: &'static str,
        /// The type found, such as `string`.
        found: &'static str,
    },
    /// The type is right, but not what is in it; the value was left as it was.
    BadForm {
        /// The wanted form, such as `an RFC 3339 time`.
        wanted: &'static str,
        /// The text found.
        found: String,
    },
}

impl Fault {
    /// Whether this is an unknown field: a warning or an error, as the request asks; all else is always an error.
    pub fn is_unknown_field(&self) -> bool {
        self.kind == FaultKind::UnknownField
    }
}

impl fmt::Display for Fault {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let path = &self.path;
        match &self.kind {
            FaultKind::UnknownField => write!(formatter, "unknown field \"{path}\""),
            FaultKind::WrongType { wanted, found } if path.is_empty() => {
                write!(formatter, "json: cannot unmarshal {found} into a value of type {wanted}")
            }
            FaultKind::WrongType { wanted, found } => {
                write!(formatter, "json: cannot unmarshal {found} into field {path} of type {wanted}")
            }
            FaultKind::BadForm { wanted, found } => write!(formatter, "{path}: {found:?} is not {wanted}"),
        }
    }
}

/// Checks the value and brings it into its stored form. `null` counts as absent in structs, and as the empty value in
/// lists and maps of typed values. At most [`MAX_FAULTS`] faults are told, in the order of the value.
pub fn check(node: &Node, value: &mut Value) -> Vec<Fault> {
    let mut checker = Checker { path: String::new(), faults: Vec::new() };
    checker.value(node.resolve(), value);
    checker.faults
}

struct Checker {
    path: String,
    faults: Vec<Fault>,
}

impl Checker {
    fn fault(&mut self, kind: FaultKind) {
        if self.faults.len() < MAX_FAULTS {
            self.faults.push(Fault { path: self.path.clone(), kind });
        }
    }

    fn below(&mut self, step: impl FnOnce(&mut String), run: impl FnOnce(&mut Self)) {
        let length = self.path.len();
        step(&mut self.path);
        run(self);
        self.path.truncate(length);
    }

    fn value(&mut self, node: &Node, value: &mut Value) {
        match (node, &mut *value) {
            (Node::Object(object), Value::Object(members)) => self.fields(object, members),
            (Node::Map { value: shape, .. }, Value::Object(members)) => {
                for (name, member) in members.iter_mut() {
                    fill(shape.resolve(), member);
                    self.below(|path| push_field(path, name), |below| below.value(shape.resolve(), member));
                }
            }
            (Node::List { item, .. }, Value::Array(items)) => {
                for (index, element) in items.iter_mut().enumerate() {
                    fill(item.resolve(), element);
                    self.below(|path| push_index(path, index), |below| below.value(item.resolve(), element));
                }
            }
            (Node::Any, _) => {}
            (Node::Named(definition), _) => self.value(definition.node().resolve(), value),
            (node, _) => self.scalar(node, value),
        }
    }

    fn fields(&mut self, object: &Object, members: &mut Map<String, Value>) {
        members.retain(|name, member| {
            let Some(field) = object.field(name) else {
                self.below(|path| push_field(path, name), |below| below.fault(FaultKind::UnknownField));
                return false;
            };
            let node = field.node.resolve();
            if member.is_null() && !matches!(node, Node::Any) {
                return false;
            }
            self.below(|path| push_field(path, name), |below| below.value(node, member));
            true
        });
    }

    fn scalar(&mut self, node: &Node, value: &mut Value) {
        let wanted = name_of(node);
        match (node, &mut *value) {
            (Node::Boolean, Value::Bool(_)) | (Node::Text, Value::String(_)) => {}
            (Node::Number, Value::Number(_)) | (Node::IntOrString, Value::String(_)) => {}
            (Node::Integer32 | Node::Integer64 | Node::IntOrString, Value::Number(number)) => {
                let whole = number.as_i64().or_else(|| number.as_f64().and_then(whole));
                let fits = |whole: &i64| matches!(node, Node::Integer64) || i32::try_from(*whole).is_ok();
                match whole.filter(fits) {
                    Some(whole) => *value = Value::from(whole),
                    None => {
                        let found = number.to_string();
                        self.fault(FaultKind::BadForm { wanted, found });
                    }
                }
            }
            (Node::Bytes, Value::String(text)) => {
                if !scalar::is_base64(text) {
                    let found = shortened(text);
                    self.fault(FaultKind::BadForm { wanted: "base64", found });
                }
            }
            (Node::Time, Value::String(text)) => self.text(text, scalar::time, "an RFC 3339 time"),
            (Node::MicroTime, Value::String(text)) => {
                self.text(text, scalar::micro_time, "an RFC 3339 time with six digits of fraction");
            }
            (Node::Quantity, Value::String(text)) => {
                self.text(text, scalar::quantity, "a quantity such as 500m or 1Gi");
            }
            (Node::Quantity, Value::Number(number)) => *value = Value::from(number.to_string()),
            (_, found) => {
                let found = type_of(found);
                self.fault(FaultKind::WrongType { wanted, found });
            }
        }
    }

    fn text(&mut self, text: &mut String, parse: impl FnOnce(&str) -> Option<String>, wanted: &'static str) {
        match parse(text) {
            Some(parsed) => *text = parsed,
            None => {
                let found = shortened(text);
                self.fault(FaultKind::BadForm { wanted, found });
            }
        }
    }
}

/// Makes a `null` in a list or map of typed values the empty value of the type.
fn fill(node: &Node, value: &mut Value) {
    if value.is_null() {
        *value = match node {
            Node::Object(_) | Node::Map { .. } => Value::Object(Map::new()),
            Node::Text | Node::Bytes => Value::from(""),
            Node::Integer32 | Node::Integer64 | Node::Number | Node::IntOrString => Value::from(0),
            Node::Boolean => Value::from(false),
            Node::Quantity => Value::from("0"),
            Node::List { .. } => Value::Array(Vec::new()),
            Node::Time | Node::MicroTime | Node::Any | Node::Named(_) => return,
        };
    }
}

/// The whole number that a floating point number stands for.
fn whole(number: f64) -> Option<i64> {
    const EXACT: f64 = 9_007_199_254_740_992.0;
    #[expect(clippy::cast_possible_truncation, reason = "whole and within the exact range")]
    (number.fract() == 0.0 && number.abs() <= EXACT).then_some(number as i64)
}

fn shortened(text: &str) -> String {
    const LONGEST: usize = 64;
    match text.char_indices().nth(LONGEST) {
        Some((end, _)) => format!("{}…", &text[..end]),
        None => text.to_owned(),
    }
}

fn name_of(node: &Node) -> &'static str {
    match node {
        Node::Object(_) => "object",
        Node::Map { .. } => "map",
        Node::List { .. } => "list",
        Node::Boolean => "bool",
        Node::Integer32 => "int32",
        Node::Integer64 => "int64",
        Node::Number => "float64",
        Node::Text => "string",
        Node::Bytes => "bytes",
        Node::Time | Node::MicroTime => "time",
        Node::Quantity => "quantity",
        Node::IntOrString => "int32 or string",
        Node::Any | Node::Named(_) => "any",
    }
}

fn type_of(value: &Value) -> &'static str {
    match value {
        Value::Null => "null",
        Value::Bool(_) => "bool",
        Value::Number(_) => "number",
        Value::String(_) => "string",
        Value::Array(_) => "array",
        Value::Object(_) => "object",
    }
}
