//! Who owns whom. Identity is the uid; group and kind are compared as well, names never alone.

use serde_json::{Value, json};
use strata_model::meta::OwnerReference;
use strata_model::object::Object;
use strata_model::resource::ResourceType;

/// The reference that makes `owner` the managing controller of a dependent.
pub fn controller_reference(resource: &ResourceType, owner: &Object) -> OwnerReference {
    OwnerReference {
        api_version: resource.api_version(),
        kind: resource.kind.to_string(),
        name: owner.meta().name.clone(),
        uid: owner.meta().uid.clone(),
        controller: Some(true),
        block_owner_deletion: Some(true),
    }
}

/// Whether `owner` controls `dependent`.
pub fn controls(owner: &Object, dependent: &Object) -> bool {
    !owner.meta().uid.is_empty() && dependent.meta().controller().is_some_and(|o| o.uid == owner.meta().uid)
}

/// The merge patch that adds a controller reference to an orphan, beside the references it has.
pub fn adopt_patch(resource: &ResourceType, owner: &Object, orphan: &Object) -> Value {
    let mut references = orphan.meta().owner_references.clone();
    references.push(controller_reference(resource, owner));
    json!({"metadata": {"ownerReferences": references}})
}

/// The merge patch that takes the reference to `owner_uid` away; an empty list is sent as null, which removes it.
pub fn release_patch(owner_uid: &str, dependent: &Object) -> Value {
    let rest: Vec<&OwnerReference> =
        dependent.meta().owner_references.iter().filter(|o| o.uid != owner_uid).collect();
    match rest.is_empty() {
        true => json!({"metadata": {"ownerReferences": null}}),
        false => json!({"metadata": {"ownerReferences": rest}}),
    }
}
