//! Checks of the metadata that all types share. Knows no types.

use serde_json::{Map, Value};
use strata_model::field::{FieldError, FieldPath};
use strata_model::names;

use super::rules::Faults;
use crate::value::{at, flag, list, members, text};

/// Finalizers without a domain that are known.
const PLAIN_FINALIZERS: &[&str] = &["kubernetes", "orphan", "foregroundDeletion"];

/// The path of the metadata.
pub fn path() -> FieldPath {
    FieldPath::new("metadata")
}

/// Checks labels, annotations, finalizers and owners of an object.
pub fn validate(object: &Value, faults: &mut Faults) {
    if let Some(labels) = members(object, &["metadata", "labels"]) {
        validate_labels(labels, &path().child("labels"), faults);
    }
    if let Some(annotations) = members(object, &["metadata", "annotations"]) {
        validate_annotations(annotations, faults);
    }
    for finalizer in list(object, &["metadata", "finalizers"]).iter().filter_map(Value::as_str) {
        validate_finalizer(finalizer, faults);
    }
    validate_owners(list(object, &["metadata", "ownerReferences"]), faults);
}

/// Checks a map of labels.
pub fn validate_labels(labels: &Map<String, Value>, path: &FieldPath, faults: &mut Faults) {
    for (key, value) in labels {
        if let Some(fault) = names::qualified_name(key) {
            faults.push(FieldError::invalid(path.clone(), key, fault));
        }
        let value = value.as_str().unwrap_or_default();
        if let Some(fault) = names::label_value(value) {
            faults.push(FieldError::invalid(path.clone(), value, fault));
        }
    }
}

fn validate_annotations(annotations: &Map<String, Value>, faults: &mut Faults) {
    let path = path().child("annotations");
    let mut size = 0;
    for (key, value) in annotations {
        size += key.len() + value.as_str().unwrap_or_default().len();
        if let Some(fault) = names::qualified_name(&key.to_lowercase()) {
            faults.push(FieldError::invalid(path.clone(), key, fault));
        }
    }
    if size > names::ANNOTATIONS_MAX_BYTES {
        faults.push(FieldError::too_long(path, names::ANNOTATIONS_MAX_BYTES));
    }
}

fn validate_finalizer(finalizer: &str, faults: &mut Faults) {
    let path = path().child("finalizers");
    if let Some(fault) = names::qualified_name(finalizer) {
        faults.push(FieldError::invalid(path, finalizer, fault));
    } else if !finalizer.contains(['/', '.']) && !PLAIN_FINALIZERS.contains(&finalizer) {
        faults.push(FieldError::invalid(
            path,
            finalizer,
            "name is neither a standard finalizer name nor is it fully qualified",
        ));
    }
}

fn validate_owners(owners: &[Value], faults: &mut Faults) {
    let path = path().child("ownerReferences");
    for (index, owner) in owners.iter().enumerate() {
        for part in ["apiVersion", "kind", "name", "uid"] {
            if text(owner, &[part]).is_empty() {
                let shown = at(owner, &[part]).cloned().unwrap_or_else(|| Value::from(""));
                let at = path.index(index).child(part);
                faults.push(FieldError::invalid(at, shown, "must not be empty"));
            }
        }
    }
    let controllers: Vec<&Value> = owners.iter().filter(|o| flag(o, &["controller"])).collect();
    if let [first, second, ..] = controllers.as_slice() {
        let detail = format!(
            "Only one reference can have Controller set to true. Found \"true\" in references for {} and {}",
            text(first, &["name"]),
            text(second, &["name"])
        );
        faults.push(FieldError::invalid(path, "", detail));
    }
}

/// Checks what may not change in metadata, and that no finalizer comes while the object is being deleted.
pub fn validate_update(new: &Value, old: &Value, faults: &mut Faults) {
    let immutable = "field is immutable";
    for part in
        ["name", "namespace", "uid", "creationTimestamp", "deletionTimestamp", "deletionGracePeriodSeconds"]
    {
        let (now, was) = (at(new, &["metadata", part]), at(old, &["metadata", part]));
        if now != was {
            faults.push(FieldError::invalid(path().child(part), now, immutable));
        }
    }
    if at(old, &["metadata", "deletionTimestamp"]).is_some() {
        let had = list(old, &["metadata", "finalizers"]);
        let added: Vec<&str> = list(new, &["metadata", "finalizers"])
            .iter()
            .filter(|f| !had.contains(f))
            .filter_map(Value::as_str)
            .collect();
        if !added.is_empty() {
            let detail = format!(
                "no new finalizers can be added if the object is being deleted, found new finalizers {added:?}"
            );
            faults.push(FieldError::forbidden(path().child("finalizers"), detail));
        }
    }
}

/// The fault of a value that may not change, if it did.
pub fn immutable(new: &Value, old: &Value, fields: &[&str], faults: &mut Faults) {
    if at(new, fields) != at(old, fields) {
        let path = fields.iter().fold(FieldPath::new(""), |path, part| path.child(part));
        let shown = at(new, fields).cloned().unwrap_or_default();
        faults.push(FieldError::invalid(path, shown, "field is immutable"));
    }
}

/// A warning where a name that becomes a host name has dots.
pub fn warn_of_dots(object: &Value) -> Vec<String> {
    let name = text(object, &["metadata", "name"]);
    if !name.contains('.') {
        return Vec::new();
    }
    vec![format!(
        "metadata.name: this is used in Pod names and hostnames, which can result in surprising behavior; \
         a DNS label is recommended: [must not contain dots]"
    )]
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn faults(object: Value) -> Vec<String> {
        let mut faults = Vec::new();
        validate(&object, &mut faults);
        faults.iter().map(ToString::to_string).collect()
    }

    #[test]
    fn metadata_rules_hold() {
        assert!(
            faults(json!({"metadata": {"labels": {"a/b": "c"}, "finalizers": ["kubernetes", "x.io/y"]}}))
                .is_empty()
        );
        let found = faults(json!({"metadata": {"labels": {"-a": "b c"}, "annotations": {"": "x"},
            "finalizers": ["odd"], "ownerReferences": [
                {"apiVersion": "v1", "kind": "A", "name": "a", "uid": "1", "controller": true},
                {"apiVersion": "v1", "kind": "A", "name": "b", "uid": "", "controller": true}]}}));
        for part in
            ["metadata.labels", "metadata.annotations", "standard finalizer", "[1].uid", "Only one reference"]
        {
            assert!(found.iter().any(|f| f.contains(part)), "{part} in {found:?}");
        }
    }

    #[test]
    fn no_finalizer_comes_while_deleting() {
        let old = json!({"metadata": {"deletionTimestamp": "2026-01-01T00:00:00Z", "finalizers": ["a/b"]}});
        let mut new = old.clone();
        new["metadata"]["finalizers"] = json!(["a/b", "c/d"]);
        let mut faults = Vec::new();
        validate_update(&new, &old, &mut faults);
        assert!(faults[0].to_string().contains("no new finalizers"), "{faults:?}");
    }
}
