//! Small readers and writers over JSON values, so that the rules of types read as sentences. Knows no types.

use serde_json::{Map, Value};

/// The value at a path of member names.
pub fn at<'a>(value: &'a Value, path: &[&str]) -> Option<&'a Value> {
    path.iter().try_fold(value, |value, name| value.get(name))
}

/// The text at a path; empty where there is none.
pub fn text<'a>(value: &'a Value, path: &[&str]) -> &'a str {
    at(value, path).and_then(Value::as_str).unwrap_or_default()
}

/// The whole number at a path.
pub fn int(value: &Value, path: &[&str]) -> Option<i64> {
    at(value, path).and_then(Value::as_i64)
}

/// Whether `true` is at a path.
pub fn flag(value: &Value, path: &[&str]) -> bool {
    at(value, path).and_then(Value::as_bool).unwrap_or(false)
}

/// The list at a path; empty where there is none.
pub fn list<'a>(value: &'a Value, path: &[&str]) -> &'a [Value] {
    at(value, path).and_then(Value::as_array).map_or(&[], Vec::as_slice)
}

/// The members at a path, where there is an object.
pub fn members<'a>(value: &'a Value, path: &[&str]) -> Option<&'a Map<String, Value>> {
    at(value, path).and_then(Value::as_object)
}

/// The members of a value, which becomes an object if it is none.
pub fn object(value: &mut Value) -> &mut Map<String, Value> {
    if !value.is_object() {
        *value = Value::Object(Map::new());
    }
    match value {
        Value::Object(map) => map,
        // The line above made it an object.
        _ => unreachable!("an object was just put here"),
    }
}

/// The members of the child `name`, which is made if it is missing.
pub fn child<'a>(value: &'a mut Value, name: &str) -> &'a mut Map<String, Value> {
    object(object(value).entry(name).or_insert(Value::Null))
}

/// The members at a path, if an object is there.
pub fn members_mut<'a>(value: &'a mut Value, path: &[&str]) -> Option<&'a mut Map<String, Value>> {
    path.iter().try_fold(value, |value, name| value.get_mut(name)).and_then(Value::as_object_mut)
}

/// The list at a path, if one is there.
pub fn list_mut<'a>(value: &'a mut Value, path: &[&str]) -> Option<&'a mut Vec<Value>> {
    path.iter().try_fold(value, |value, name| value.get_mut(name)).and_then(Value::as_array_mut)
}

/// Sets a member where it is missing or null.
pub fn default(map: &mut Map<String, Value>, name: &str, value: impl Into<Value>) {
    let slot = map.entry(name).or_insert(Value::Null);
    if slot.is_null() {
        *slot = value.into();
    }
}

/// Sets a member, or removes it where there is no value.
pub fn put(map: &mut Map<String, Value>, name: &str, value: Option<Value>) {
    match value {
        Some(value) => drop(map.insert(name.to_owned(), value)),
        None => drop(map.remove(name)),
    }
}

/// A scalar as the text that selectors compare.
pub fn scalar(value: Option<&Value>) -> String {
    match value {
        Some(Value::String(text)) => text.clone(),
        Some(Value::Bool(flag)) => flag.to_string(),
        Some(Value::Number(number)) => number.to_string(),
        _ => String::new(),
    }
}
