//! The garbage collector: deletes what nobody owns any more, and answers the finalizers of deletions that wait for, or
//! let go of, dependents.
//!
//! Owns the finalizers `foregroundDeletion` and `orphan`, and references to owners that are gone. The root is any
//! object that names owners, or that waits for dependents. What must always hold:
//! * an object goes only if every owner it names is gone, or waits for it to go; and the server itself was asked about
//!   each of them, by uid, right before: a cache may be late, and a name may be another object's by now;
//! * an object whose owner's type is not known, or that is not in a namespace while its owner is, is left alone;
//! * references go only if another owner remains; the deletion carries the revision that was looked at, so a reference
//!   that was added meanwhile saves the object;
//! * nothing is remembered: after a restart the same objects lead to the same plans.

#[cfg(test)]
mod tests;

use std::collections::BTreeSet;
use std::sync::Arc;

use jiff::Timestamp;
use serde_json::{Value, json};
use strata_model::meta::OwnerReference;
use strata_model::object::{Object, ObjectKey};
use strata_model::resource::{ResourceType, Verb, builtin};

use crate::controller::{
    Action, Controller, FOREGROUND, Fact, Key, MapTo, Mapping, ORPHAN, ObserveError, Plan, Propagation,
    Target, View, Watched,
};

/// Most dependents let go in one turn.
pub const BATCH: usize = 500;

/// The controller.
#[derive(Clone, Debug)]
pub struct Garbage {
    types: Types,
}

/// The types that own and are owned.
#[derive(Clone, Debug)]
struct Types(Arc<Vec<Arc<ResourceType>>>);

impl Garbage {
    /// Collects among these types. Those that cannot be watched and deleted are left out, and so are events, which are
    /// owned by nobody and leave by age.
    pub fn new(types: impl IntoIterator<Item = Arc<ResourceType>>) -> Self {
        let can = |t: &ResourceType, verb| t.verbs.contains(&verb);
        let usable = |t: &Arc<ResourceType>| {
            can(t, Verb::Delete) && can(t, Verb::Patch) && can(t, Verb::Watch) && t.id != builtin::EVENT.id
        };
        Self { types: Types(Arc::new(types.into_iter().filter(usable).collect())) }
    }
}

/// How it is with an owner, as far as the cache knows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    /// It is there, and stays or goes without waiting.
    Solid,
    /// It is being deleted and waits for its dependents.
    Waits,
    /// There is no object of its type, name and uid.
    Absent,
    /// It cannot be said.
    Unknown,
}

/// One owner of an object.
#[derive(Debug)]
struct Owner {
    uid: String,
    /// Where it is looked for; `None` where it cannot be.
    target: Option<Target>,
    state: State,
}

/// One object with its owners, and with its dependents where they matter.
#[derive(Debug)]
pub struct Observed {
    resource: Arc<ResourceType>,
    object: Arc<Object>,
    owners: Vec<Owner>,
    dependents: Vec<(Arc<ResourceType>, Arc<Object>)>,
}

impl Controller for Garbage {
    type Observed = Observed;

    fn name(&self) -> &'static str {
        "garbage"
    }

    fn watches(&self) -> Vec<Watched> {
        let watched = |resource: &Arc<ResourceType>| Watched {
            resource: Arc::clone(resource),
            map: MapTo::By(self.types.mapping(resource)),
            metadata_only: true,
            field_selector: String::new(),
        };
        self.types.0.iter().map(watched).collect()
    }

    fn observe(&self, view: &dyn View, key: &Key) -> Result<Option<Observed>, ObserveError> {
        let resource = self.types.0.iter().find(|t| t.id == key.resource);
        let found = resource.and_then(|t| Some((t, view.get(&t.id, &key.object)?)));
        let Some((resource, object)) = found else { return Ok(None) };
        let reference = |r: &OwnerReference| self.types.owner(view, &object, r);
        let owners: Vec<Owner> = object.meta().owner_references.iter().map(reference).collect();
        let needed = waits_for_dependents(&object) || owners.iter().any(|o| o.state == State::Waits);
        let dependents = if needed { self.types.dependents(view, &object) } else { Vec::new() };
        Ok(Some(Observed { resource: Arc::clone(resource), object, owners, dependents }))
    }

    fn plan(&self, observed: &Observed, now: Timestamp) -> Plan {
        let mut plan = Plan::settled();
        let meta = observed.object.meta();
        if meta.is_deleting() {
            if holds(&observed.object, ORPHAN) {
                let_go(observed, now, &mut plan);
            } else if holds(&observed.object, FOREGROUND) {
                wait(observed, &mut plan);
            }
        } else if observed.owners.iter().any(|o| matches!(o.state, State::Solid | State::Unknown)) {
            tidy(observed, &mut plan);
        } else if !observed.owners.is_empty() {
            collect(observed, &mut plan);
        }
        plan
    }
}

impl Types {
    /// The type of an owner, in any version.
    fn of(&self, reference: &OwnerReference) -> Option<&Arc<ResourceType>> {
        self.0.iter().find(|t| t.id.group == reference.group() && t.kind == reference.kind)
    }

    /// Where an owner of an object would be: in the object's namespace, or in none. `None` where its type is not
    /// known, or where it would have to be in a namespace while the object is in none.
    fn place(&self, object: &Object, reference: &OwnerReference) -> Option<Target> {
        let resource = self.of(reference)?;
        let namespace = match (resource.is_namespaced(), object.meta().namespace.as_str()) {
            (true, "") => return None,
            (true, namespace) => namespace,
            (false, _) => "",
        };
        Some(Target {
            resource: ResourceType::clone(resource),
            key: ObjectKey::new(namespace, reference.name.clone()),
            uid: reference.uid.clone(),
            resource_version: None,
        })
    }

    fn owner(&self, view: &dyn View, object: &Object, reference: &OwnerReference) -> Owner {
        let target = self.place(object, reference);
        let state = match &target {
            None => State::Unknown,
            Some(target) => match there(view, target) {
                None => State::Absent,
                Some(owner) if owner.meta().is_deleting() && holds(&owner, FOREGROUND) => State::Waits,
                Some(_) => State::Solid,
            },
        };
        Owner { uid: reference.uid.clone(), target, state }
    }

    /// All objects that name an object as owner, itself not counted.
    fn dependents(&self, view: &dyn View, owner: &Object) -> Vec<(Arc<ResourceType>, Arc<Object>)> {
        let uid = &owner.meta().uid;
        let of_type = |t: &Arc<ResourceType>| {
            let owned = view.owned_by(&t.id, uid).into_iter();
            owned.map(|o| (Arc::clone(t), o)).collect::<Vec<_>>()
        };
        let all = self.0.iter().flat_map(of_type);
        all.filter(|(_, o)| o.meta().uid != *uid).collect()
    }

    /// A changed object leads to itself, where there is something to look at; to its dependents, where it is gone or
    /// waits for them; and to its owners that wait.
    fn mapping(&self, resource: &Arc<ResourceType>) -> Mapping {
        let (types, resource) = (self.clone(), Arc::clone(resource));
        Arc::new(move |view: &dyn View, object: &Object| {
            let meta = object.meta();
            let place = object.key();
            let present = view.get(&resource.id, &place).is_some_and(|o| o.meta().uid == meta.uid);
            let mut keys = Vec::new();
            if present && (!meta.owner_references.is_empty() || waits_for_dependents(object)) {
                keys.push(Key::new(&resource, place));
            }
            if !present || (meta.is_deleting() && holds(object, FOREGROUND)) {
                let dependents = types.dependents(view, object);
                keys.extend(dependents.iter().map(|(t, o)| Key::new(t, o.key())));
            }
            for target in meta.owner_references.iter().filter_map(|r| types.place(object, r)) {
                if there(view, &target).is_some_and(|o| waits_for_dependents(&o)) {
                    keys.push(Key::new(&target.resource, target.key));
                }
            }
            keys
        })
    }
}

/// The object that a target means, if it is in the view with that uid.
fn there(view: &dyn View, target: &Target) -> Option<Arc<Object>> {
    view.get(&target.resource.id, &target.key).filter(|o| o.meta().uid == target.uid)
}

fn holds(object: &Object, finalizer: &str) -> bool {
    object.meta().finalizers.iter().any(|f| f == finalizer)
}

fn waits_for_dependents(object: &Object) -> bool {
    object.meta().is_deleting() && (holds(object, FOREGROUND) || holds(object, ORPHAN))
}

impl Observed {
    fn target(&self) -> Target {
        Target::of(&self.resource, &self.object)
    }

    /// Takes a finalizer off.
    fn drop_finalizer(&self, finalizer: &str) -> Action {
        let rest: Vec<&String> = self.object.meta().finalizers.iter().filter(|f| *f != finalizer).collect();
        let rest = if rest.is_empty() { Value::Null } else { json!(rest) };
        Action::Patch { target: self.target(), patch: json!({"metadata": {"finalizers": rest}}) }
    }

    /// The owners of a state.
    fn owners_that(&self, state: State) -> impl Iterator<Item = &Owner> {
        self.owners.iter().filter(move |o| o.state == state)
    }

    /// Asks the server about the owners of a state.
    fn confirm(&self, state: State, fact: Fact, plan: &mut Plan) {
        for target in self.owners_that(state).filter_map(|o| o.target.clone()) {
            plan.actions.push(Action::Confirm { target, fact });
        }
    }
}

/// Deleted with `Orphan`: the dependents forget it, then it goes.
fn let_go(observed: &Observed, now: Timestamp, plan: &mut Plan) {
    let uid = &observed.object.meta().uid;
    for (resource, dependent) in observed.dependents.iter().take(BATCH) {
        let patch = without(dependent, &BTreeSet::from([uid.as_str()]));
        plan.actions.push(Action::Patch { target: Target::of(resource, dependent), patch });
    }
    if observed.dependents.len() > BATCH {
        // A dependent that forgot it does not lead here any more.
        plan.next = plan.next.or_at(now);
    } else {
        plan.actions.push(observed.drop_finalizer(ORPHAN));
    }
}

/// Deleted with `Foreground`: it goes when no dependent blocks it any more. The dependents delete themselves.
fn wait(observed: &Observed, plan: &mut Plan) {
    let uid = &observed.object.meta().uid;
    let blocks = |o: &Object| {
        o.meta().owner_references.iter().any(|r| r.uid == *uid && r.block_owner_deletion == Some(true))
    };
    match observed.dependents.iter().filter(|(_, o)| blocks(o)).count() {
        0 => plan.actions.push(observed.drop_finalizer(FOREGROUND)),
        n => plan.note("WaitingForDependents", format!("{n} dependents must be gone first")),
    }
}

/// Another owner remains: forgets those that are gone, and those that wait for it to go.
fn tidy(observed: &Observed, plan: &mut Plan) {
    let gone: BTreeSet<&str> = observed
        .owners_that(State::Absent)
        .chain(observed.owners_that(State::Waits))
        .map(|o| o.uid.as_str())
        .collect();
    if gone.is_empty() {
        return;
    }
    if observed.owners_that(State::Solid).next().is_none() {
        plan.note("UnknownOwner", "an owner is of a type that is not known, or cannot own it; left alone");
        return;
    }
    observed.confirm(State::Absent, Fact::Absent, plan);
    observed.confirm(State::Waits, Fact::Foreground, plan);
    plan.actions.push(Action::Patch { target: observed.target(), patch: without(&observed.object, &gone) });
}

/// No owner remains: deletes it. Where an owner waits for it and it has dependents of its own, they go first.
fn collect(observed: &Observed, plan: &mut Plan) {
    observed.confirm(State::Absent, Fact::Absent, plan);
    observed.confirm(State::Waits, Fact::Foreground, plan);
    let is_waited_for = observed.owners_that(State::Waits).next().is_some();
    let mut propagation = Propagation::Background;
    if is_waited_for && !observed.dependents.is_empty() {
        propagation = Propagation::Foreground;
        let references = &observed.object.meta().owner_references;
        let blocks = references.iter().any(|r| r.block_owner_deletion == Some(true));
        let in_circle =
            observed.dependents.iter().any(|(_, o)| o.meta().is_deleting() && holds(o, FOREGROUND));
        if blocks && in_circle {
            // Each would wait for the other. It stops being waited for, and is deleted in the next turn.
            plan.actions.push(Action::Patch { target: observed.target(), patch: unblocking(references) });
            return;
        }
    } else if holds(&observed.object, ORPHAN) {
        propagation = Propagation::Orphan;
    } else if holds(&observed.object, FOREGROUND) {
        propagation = Propagation::Foreground;
    }
    plan.actions.push(Action::Delete { target: observed.target(), propagation, grace_seconds: None });
}

/// The patch that takes references to these uids away.
fn without(object: &Object, uids: &BTreeSet<&str>) -> Value {
    let references = object.meta().owner_references.iter();
    let rest: Vec<&OwnerReference> = references.filter(|r| !uids.contains(r.uid.as_str())).collect();
    let rest = if rest.is_empty() { Value::Null } else { json!(rest) };
    json!({"metadata": {"ownerReferences": rest}})
}

/// The patch after which no owner waits for the object.
fn unblocking(references: &[OwnerReference]) -> Value {
    let mut references = references.to_vec();
    for reference in &mut references {
        reference.block_owner_deletion = Some(false);
    }
    json!({"metadata": {"ownerReferences": references}})
}
