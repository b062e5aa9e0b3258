//! Steps of a path into an object as field sets write them, and their form for people. Knows no schema.
//!
//! | step | in a field set | for people |
//! |---|---|---|
//! | struct field or map key | `f:name` | `.name` |
//! | element of a list by key | `k:{"name":"c"}` | `[name="c"]` |
//! | element of a set | `v:"x"` | `[="x"]` |
//! | element by place (never made here) | `i:0` | `[0]` |

use serde_json::{Map, Value};

/// Parts of list keys that stand for themselves when an element leaves them out: their field and value.
const KEY_DEFAULTS: &[(&str, &str)] = &[("protocol", "TCP")];

/// The step to a field or a map's key.
pub fn field(name: &str) -> String {
    let mut step = String::with_capacity(name.len() + 2);
    step.push_str("f:");
    step.push_str(name);
    step
}

/// The step to an element of a set. `None` for lists and structs, which no set may hold.
pub fn element(value: &Value) -> Option<String> {
    let mut step = String::from("v:");
    scalar(&mut step, value)?;
    Some(step)
}

/// The step to an element that these fields tell apart; a field left out counts as its default. `None` where the
/// element is no struct, or lacks a field without default.
pub fn keyed(keys: &[Box<str>], item: &Value) -> Option<String> {
    let members = item.as_object()?;
    let mut step = String::with_capacity(32);
    step.push_str("k:{");
    let mut part = |key: &str, comma: bool| {
        if comma {
            step.push(',');
        }
        quoted(&mut step, key);
        step.push(':');
        match members.get(key) {
            Some(Value::Null) => None,
            Some(value) => scalar(&mut step, value),
            None => {
                quoted(&mut step, key_default(key)?);
                Some(())
            }
        }
    };
    if let [key] = keys {
        part(key, false)?;
    } else {
        let mut sorted: Vec<&str> = keys.iter().map(|key| &**key).collect();
        sorted.sort_unstable();
        for (index, key) in sorted.into_iter().enumerate() {
            part(key, index > 0)?;
        }
    }
    step.push('}');
    Some(step)
}

/// Adds a plain value as JSON. `None` for lists and structs.
fn scalar(out: &mut String, value: &Value) -> Option<()> {
    match value {
        Value::Array(_) | Value::Object(_) => return None,
        Value::String(text) => quoted(out, text),
        other => out.push_str(&other.to_string()),
    }
    Some(())
}

/// Adds text as JSON.
fn quoted(out: &mut String, text: &str) {
    if text.bytes().all(|byte| byte >= b' ' && byte != b'"' && byte != b'\\') {
        out.push('"');
        out.push_str(text);
        out.push('"');
    } else {
        out.push_str(&Value::from(text).to_string());
    }
}

fn key_default(key: &str) -> Option<&'static str> {
    KEY_DEFAULTS.iter().find(|(name, _)| *name == key).map(|(_, value)| *value)
}

/// A step that a client wrote, in the one form that is compared; `None` if it is none.
pub fn canonical(step: &str) -> Option<String> {
    let (kind, rest) = step.split_once(':')?;
    match kind {
        "f" => Some(step.to_owned()),
        "v" => {
            let value: Value = serde_json::from_str(rest).ok()?;
            Some(format!("v:{value}"))
        }
        "k" => {
            let members: Map<String, Value> = serde_json::from_str(rest).ok()?;
            (!members.is_empty()).then(|| format!("k:{}", Value::Object(members)))
        }
        "i" => rest.parse::<i64>().ok().map(|index| format!("i:{index}")),
        _ => None,
    }
}

/// Adds a step to a path for people.
pub fn push(path: &mut String, step: &str) {
    match step.split_once(':') {
        Some(("k", keys)) => {
            let members: Map<String, Value> = serde_json::from_str(keys).unwrap_or_default();
            let parts: Vec<String> = members.iter().map(|(name, value)| format!("{name}={value}")).collect();
            path.push_str(&format!("[{}]", parts.join(",")));
        }
        Some(("v", value)) => path.push_str(&format!("[={value}]")),
        Some(("i", index)) => path.push_str(&format!("[{index}]")),
        Some((_, name)) => {
            path.push('.');
            path.push_str(name);
        }
        None => path.push_str(step),
    }
}
