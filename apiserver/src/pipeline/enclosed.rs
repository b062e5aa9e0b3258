//! What lies in a namespace, of every type that there is: also of custom types that nobody else knows yet. Once the
//! namespace is marked nothing is added to it, so what one state shows is the truth.

use std::collections::BTreeSet;

use strata_model::resource::{GroupResource, builtin};
use strata_model::status::Status;
use strata_store::snapshot::Snapshot;

use super::request::Target;
use crate::refusal::{Outcome, about};
use crate::storage;
use crate::types::catalogue::Catalogue;

/// Refuses to let a namespace go while something is in it.
///
/// # Errors
/// `Conflict`, which names the type.
pub fn check_empty(catalogue: &Catalogue, snapshot: &Snapshot, target: &Target) -> Outcome<()> {
    let served = catalogue.all().iter().filter(|served| served.resource.is_namespaced());
    let mut types: BTreeSet<GroupResource> = served.map(|served| served.resource.id.clone()).collect();
    types.extend(defined(snapshot));
    for id in types {
        let range = storage::range(&id, &target.name);
        if let Some(first) = snapshot.range(&range, None).next() {
            let why = format!(
                "it still holds {id}, such as {:?}: delete what is in it first",
                storage::name_of(first)
            );
            return Err(Box::new(Status::conflict(about(&target.served.resource, &target.name), &why)));
        }
    }
    Ok(())
}

/// The types that definitions define, by the names that those must have: `plural.group`.
fn defined(snapshot: &Snapshot) -> Vec<GroupResource> {
    let range = storage::range(&builtin::CUSTOM_RESOURCE_DEFINITION.id, "");
    let split = |name: &str| {
        let (resource, group) = name.split_once('.')?;
        Some(GroupResource { group: group.to_owned().into(), resource: resource.to_owned().into() })
    };
    snapshot.range(&range, None).filter_map(|record| split(storage::name_of(record))).collect()
}
