//! The difference between what a status says and what it is to say. Knows no kind.

use serde_json::{Map, Value, json};
use strata_model::object::Object;

/// The merge patch that brings these fields of an object's status to these values, null being absent. `None`: they are
/// so.
pub fn difference(object: &Object, fields: Value) -> Option<Value> {
    let value = object.to_value().unwrap_or_default();
    let old = &value["status"];
    let Value::Object(fields) = fields else { return None };
    let differs: Map<String, Value> =
        fields.into_iter().filter(|(name, new)| old.get(name).unwrap_or(&Value::Null) != new).collect();
    (!differs.is_empty()).then_some(Value::Object(differs))
}

/// A count as statuses have it: zero is absent.
pub fn count(n: i32) -> Value {
    if n == 0 { Value::Null } else { json!(n) }
}
