//! What an object needs of others: looked up in the state that the write is decided on, and reserved with the write
//! itself, so that no two objects ever hold the same.

use std::collections::BTreeSet;

use rand::RngExt;
use serde_json::{Value, json};
use strata_model::resource::GroupResource;
use strata_model::status::Status;
use strata_store::key::Key;
use strata_store::snapshot::Snapshot;
use strata_store::txn::{Condition, Txn, Value as Bytes};

use super::request::{Caller, Target};
use crate::authn::User;
use crate::rbac::policy::Policy;
use crate::refusal::{Outcome, Refusal, about, invalid, not_found};
use crate::storage;
use crate::strategy::spoken_name;
use crate::types::rules::{Around, Unsettled};
use crate::value::text;

/// Under this come the keys of reservations; no type has such a group.
const PREFIX: &str = "!reserved/";

fn reservation(name: &str) -> Key {
    format!("{PREFIX}{name}").into()
}

/// The state that a write is decided on.
struct State<'a> {
    snapshot: &'a Snapshot,
    caller: &'a Caller,
}

impl Around for State<'_> {
    fn get(&self, id: &GroupResource, namespace: &str, name: &str) -> Option<Value> {
        let record = self.snapshot.get(&storage::key(id, namespace, name))?;
        storage::parse(&record).ok()
    }

    fn all(&self, id: &GroupResource) -> Vec<Value> {
        let range = storage::range(id, "");
        self.snapshot.range(&range, None).filter_map(|record| storage::parse(record).ok()).collect()
    }

    fn taken(&self, name: &str) -> bool {
        self.snapshot.get(&reservation(name)).is_some()
    }

    fn below(&self, limit: u32) -> u32 {
        rand::rng().random_range(0..limit)
    }

    fn user(&self) -> &User {
        &self.caller.user
    }

    fn policy(&self) -> &Policy {
        &self.caller.policy
    }
}

/// Gives a new or changed object what it needs of others, or says why it cannot have it.
pub fn settle(
    caller: &Caller,
    target: &Target,
    snapshot: &Snapshot,
    new: &mut Value,
    old: Option<&Value>,
) -> Outcome<()> {
    let Some(settle) = target.served.rules.settle else { return Ok(()) };
    let state = State { snapshot, caller };
    settle(new, old, &state).map_err(|why| {
        let name = if old.is_none() { spoken_name(new) } else { &target.name };
        refused(target, name, why)
    })
}

/// Checks that a change through a subresource is the writer's to make.
pub fn guard(caller: &Caller, target: &Target, snapshot: &Snapshot, new: &Value, old: &Value) -> Outcome<()> {
    let Some(guard) = target.served.rules.guard else { return Ok(()) };
    let state = State { snapshot, caller };
    guard(&target.subresource, new, old, &state).map_err(|why| refused(target, &target.name, why))
}

fn refused(target: &Target, name: &str, why: Unsettled) -> Refusal {
    let resource = &target.served.resource;
    match why {
        Unsettled::Faults(faults) => invalid(resource, name, &faults),
        Unsettled::Missing(resource, name) => not_found(resource, &name),
        Unsettled::Forbidden(why) => Box::new(Status::forbidden(about(resource, name), &why)),
    }
}

/// Adds to a transaction what the object holds from now on and what it lets go.
pub fn reserve(target: &Target, mut txn: Txn, old: Option<&Value>, new: Option<&Value>) -> Txn {
    let Some(reserves) = target.served.rules.reserves else { return txn };
    let held = |object: Option<&Value>| {
        object.map(reserves).unwrap_or_default().into_iter().collect::<BTreeSet<_>>()
    };
    let (had, has) = (held(old), held(new));
    let holder = json!({"holder": target.served.resource.id.to_string(), "namespace": target.namespace,
        "name": new.map_or("", |new| text(new, &["metadata", "name"]))});
    for name in has.difference(&had) {
        let key = reservation(name);
        txn = txn.when(key.clone(), Condition::Absent).put(key, Bytes::plain(holder.to_string()));
    }
    for name in had.difference(&has) {
        txn = txn.delete(reservation(name));
    }
    txn
}
