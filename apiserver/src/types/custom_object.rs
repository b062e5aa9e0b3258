//! Objects of custom types: the rules that all of them share. What is particular to a type is in its definition.

use serde_json::Value;
use strata_model::field::{FieldError, FieldPath};

use super::rules::{Faults, PLAIN, Rules};
use crate::custom::definition::Custom;
use crate::value::at;

/// Rules of custom types whose status is a part like any other.
pub static PLAIN_CUSTOM: Rules = Rules { revision_required: true, ..PLAIN };

/// Rules of custom types with a status of their own.
pub static WITH_STATUS: Rules = Rules { status_alone: true, ..PLAIN_CUSTOM };

/// Checks the places of the scale, which must hold whole numbers that are not negative.
pub fn scale(custom: &Custom, object: &Value, faults: &mut Faults) {
    let Some(scale) = &custom.version().scale else { return };
    for parts in [&scale.wanted, &scale.actual] {
        let path: Vec<&str> = parts.iter().map(String::as_str).collect();
        let Some(found) = at(object, &path) else { continue };
        if found.as_i64().is_some_and(|replicas| replicas < 0) {
            let path = parts.iter().fold(FieldPath::new(""), |path, part| path.child(part));
            faults.push(FieldError::invalid(path, found, "should be a non-negative integer"));
        }
    }
}
