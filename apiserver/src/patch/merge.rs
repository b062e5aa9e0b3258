//! JSON merge patches (RFC 7386): apply, and compute from two versions. Knows no schema.

use serde_json::{Map, Value};

/// The object after the patch: `null` deletes a member, objects merge, everything else replaces.
pub fn apply(object: Value, patch: &Value) -> Value {
    let Value::Object(changes) = patch else { return patch.clone() };
    let mut members = match object {
        Value::Object(members) => members,
        _ => Map::new(),
    };
    for (name, change) in changes {
        if change.is_null() {
            members.remove(name);
        } else {
            let old = members.remove(name).unwrap_or(Value::Null);
            members.insert(name.clone(), apply(old, change));
        }
    }
    Value::Object(members)
}

/// The merge patch that makes `old` into `new`; `{}` if they are the same. A merge patch cannot set a member to `null`:
/// a `null` in `new` counts as absent. Where one of the two is not an object, the patch is `new` itself.
pub fn diff(old: &Value, new: &Value) -> Value {
    let (Value::Object(old), Value::Object(new)) = (old, new) else { return new.clone() };
    let mut patch = Map::new();
    for name in old.keys() {
        if new.get(name).is_none_or(Value::is_null) {
            patch.insert(name.clone(), Value::Null);
        }
    }
    for (name, value) in new.iter().filter(|(_, value)| !value.is_null()) {
        match old.get(name) {
            Some(before) if before == value => {}
            Some(before @ Value::Object(_)) if value.is_object() => {
                let inner = diff(before, value);
                if inner.as_object().is_some_and(|members| !members.is_empty()) {
                    patch.insert(name.clone(), inner);
                }
            }
            // Absent or not an object before: the patch's own nulls would vanish, so they are left out here.
            Some(_) | None => {
                patch.insert(name.clone(), without_nulls(value));
            }
        }
    }
    Value::Object(patch)
}

/// The value without the members that are `null`, at any depth of objects. Lists keep theirs: in a list a `null` is a
/// value.
pub fn without_nulls(value: &Value) -> Value {
    match value {
        Value::Object(members) => {
            let kept = members.iter().filter(|(_, member)| !member.is_null());
            Value::Object(kept.map(|(name, member)| (name.clone(), without_nulls(member))).collect())
        }
        other => other.clone(),
    }
}
