//! Who owns whom, and how a controller takes dependents and lets them go. Identity is the uid; group and kind are
//! compared as well, names never alone. Knows no kind.

use serde_json::{Value, json};
use strata_model::meta::OwnerReference;
use strata_model::object::{Object, ObjectKey};
use strata_model::resource::ResourceType;

use crate::controller::{Action, Fact, Key, Plan, Target, View};

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

/// The keys of a dependent: the owner of a type that controls it, or, where nobody does, every one that would take it.
pub fn keys_of_dependent(
    view: &dyn View,
    owner_type: &ResourceType,
    dependent: &Object,
    would_take: impl Fn(&Object) -> bool,
) -> Vec<Key> {
    let namespace = &dependent.meta().namespace;
    if let Some(owner) = dependent.meta().controller() {
        let ours = owner.group() == owner_type.id.group && owner.kind == owner_type.kind;
        let key = ObjectKey::new(namespace.clone(), owner.name.clone());
        return if ours { vec![Key::new(owner_type, key)] } else { Vec::new() };
    }
    let owners = view.list(&owner_type.id, namespace);
    owners.iter().filter(|owner| would_take(owner)).map(|owner| Key::new(owner_type, owner.key())).collect()
}

/// An owner at work on its dependents of one type.
#[derive(Clone, Copy, Debug)]
pub struct Claim<'a> {
    /// Type of the owner.
    pub owner_type: &'a ResourceType,
    /// The owner.
    pub owner: &'a Object,
    /// Type of the dependents.
    pub dependents: &'a ResourceType,
}

impl Claim<'_> {
    /// Lets a dependent go.
    pub fn release(&self, dependent: &Object, plan: &mut Plan) {
        let patch = release_patch(&self.owner.meta().uid, dependent);
        plan.actions.push(Action::Patch { target: Target::of(self.dependents, dependent), patch });
    }

    /// Takes orphans, once the server says that the owner is alive: the dependents of a dead one are collected.
    pub fn adopt<'o>(&self, orphans: impl IntoIterator<Item = &'o Object>, plan: &mut Plan) {
        self.adopt_with(orphans, plan, |_, _| {});
    }

    /// The same, where the patch of an orphan is to say more than whose it is.
    pub fn adopt_with<'o>(
        &self,
        orphans: impl IntoIterator<Item = &'o Object>,
        plan: &mut Plan,
        more: impl Fn(&Object, &mut Value),
    ) {
        let mut orphans = orphans.into_iter().peekable();
        if orphans.peek().is_some() {
            let target = Target::of(self.owner_type, self.owner);
            plan.actions.push(Action::Confirm { target, fact: Fact::Alive });
        }
        for orphan in orphans {
            let mut patch = adopt_patch(self.owner_type, self.owner, orphan);
            more(orphan, &mut patch);
            plan.actions.push(Action::Patch { target: Target::of(self.dependents, orphan), patch });
        }
    }
}
