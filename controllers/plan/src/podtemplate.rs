//! From a pod template to a pod: what every controller of pods makes of it. Knows no controller.

use serde_json::{Map, Value, json};
use strata_model::object::Object;
use strata_model::resource::{ResourceType, builtin};

use crate::ownership;

/// The pod of a template, in the namespace of its owner, who controls it. Metadata and spec of the template go in
/// untouched, fields that we do not know included; the name is left to the caller.
///
/// # Errors
/// The template has no spec.
pub fn pod(template: &Value, resource: &ResourceType, owner: &Object) -> Result<Value, String> {
    let mut metadata = Map::new();
    for field in ["labels", "annotations", "finalizers"] {
        let taken = &template["metadata"][field];
        if !taken.is_null() {
            metadata.insert(field.to_owned(), taken.clone());
        }
    }
    metadata.insert("namespace".to_owned(), json!(owner.meta().namespace));
    let reference = ownership::controller_reference(resource, owner);
    metadata.insert("ownerReferences".to_owned(), json!([reference]));
    match &template["spec"] {
        Value::Null => Err("the template has no spec".to_owned()),
        spec => Ok(json!({
            "apiVersion": builtin::POD.api_version(), "kind": builtin::POD.kind,
            "metadata": metadata, "spec": spec,
        })),
    }
}
