//! JSON merge patch (RFC 7386): applied, and made from two values. Knows nothing of objects.

use serde_json::{Map, Value};

/// Applies a merge patch in place: `null` removes a member, objects merge, all else replaces.
pub fn apply(target: &mut Value, patch: &Value) {
    let Value::Object(patch) = patch else {
        *target = patch.clone();
        return;
    };
    if !target.is_object() {
        *target = Value::Object(Map::new());
    }
    let Value::Object(target) = target else { return };
    for (key, value) in patch {
        match value {
            Value::Null => {
                target.remove(key);
            }
            _ => apply(target.entry(key.clone()).or_insert(Value::Null), value),
        }
    }
}

/// The merge patch that makes `new` of `old`; `None` where they are equal. A `null` inside `new` cannot be expressed
/// and counts as absent.
pub fn diff(old: &Value, new: &Value) -> Option<Value> {
    let (Value::Object(old), Value::Object(new)) = (old, new) else {
        return (old != new).then(|| new.clone());
    };
    let mut patch = Map::new();
    for key in old.keys().filter(|k| new.get(*k).is_none_or(Value::is_null)) {
        patch.insert(key.clone(), Value::Null);
    }
    for (key, value) in new.iter().filter(|(_, v)| !v.is_null()) {
        let change = match old.get(key) {
            Some(before) => diff(before, value),
            None => Some(value.clone()),
        };
        if let Some(change) = change {
            patch.insert(key.clone(), change);
        }
    }
    (!patch.is_empty()).then_some(Value::Object(patch))
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn the_examples_of_the_rfc_hold() {
        for (target, patch, result) in [
            (json!({"a": "b"}), json!({"a": "c"}), json!({"a": "c"})),
            (json!({"a": "b"}), json!({"b": "c"}), json!({"a": "b", "b": "c"})),
            (json!({"a": "b", "b": "c"}), json!({"a": null}), json!({"b": "c"})),
            (json!({"a": ["b"]}), json!({"a": "c"}), json!({"a": "c"})),
            (json!({"a": {"b": "c"}}), json!({"a": {"b": "d", "c": null}}), json!({"a": {"b": "d"}})),
            (json!(["a"]), json!({"a": {"bb": {"ccc": null}}}), json!({"a": {"bb": {}}})),
        ] {
            let mut value = target.clone();
            apply(&mut value, &patch);
            assert_eq!(value, result, "{target} + {patch}");
        }
    }

    #[test]
    fn a_diff_brings_one_to_the_other() {
        let old = json!({"a": 1, "b": {"c": 2, "d": [1]}, "e": "x"});
        let new = json!({"a": 1, "b": {"c": 3}, "f": {}});
        let patch = diff(&old, &new).unwrap();
        assert_eq!(patch, json!({"b": {"c": 3, "d": null}, "e": null, "f": {}}));
        let mut value = old;
        apply(&mut value, &patch);
        assert_eq!(diff(&value, &new), None);
    }
}
