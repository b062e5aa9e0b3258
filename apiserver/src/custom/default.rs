//! Defaults of custom objects. Pure; a second time changes nothing.

use serde_json::Value;

use super::prune::drop_nulls;
use super::structural::{Additional, Structural};

/// Fills in the defaults of a schema. A null where none may be counts as no value.
pub fn fill(schema: &Structural, object: &mut Value) {
    drop_nulls(schema, object);
    defaults(schema, object);
}

fn defaults(schema: &Structural, value: &mut Value) {
    match value {
        Value::Object(members) => {
            for (name, property) in &schema.properties {
                let Some(default) = &property.default else { continue };
                let absent = members.get(&**name).is_none_or(|member| property.refuses_null(member));
                if absent {
                    members.insert(name.to_string(), default.clone());
                }
            }
            for (name, member) in members.iter_mut() {
                if let Some(property) = schema.properties.get(name.as_str()) {
                    defaults(property, member);
                } else if let Some(Additional::Schema(shape)) = &schema.additional {
                    element(shape, member);
                }
            }
        }
        Value::Array(items) => {
            if let Some(item) = &schema.items {
                items.iter_mut().for_each(|member| element(item, member));
            }
        }
        _ => {}
    }
}

fn element(schema: &Structural, value: &mut Value) {
    if schema.refuses_null(value)
        && let Some(default) = &schema.default
    {
        *value = default.clone();
    }
    defaults(schema, value);
}
