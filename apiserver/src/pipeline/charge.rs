//! Quotas on the way of a write: what it takes is charged in its own transaction, so that no two writes ever take the same
//! rest.

use jiff::Timestamp;
use serde_json::Value;
use strata_model::amounts::Amounts;
use strata_model::quota::{Quota, counted};
use strata_model::resource::{GroupResource, builtin};
use strata_model::status::Status;
use strata_store::snapshot::Snapshot;
use strata_store::txn::Condition;
use tokio::sync::MutexGuard;

use super::api::Api;
use super::request::Target;
use super::riders::Riders;
use crate::admission::quota;
use crate::refusal::{Outcome, about};
use crate::storage;
use crate::strategy::{Part, spoken_name};

/// What rides with a write that is charged, and the turn that it has at the quotas of its namespace.
#[derive(Default)]
pub struct Charged<'a> {
    /// The quotas as they are after it.
    pub riders: Riders,
    /// Held until the write is decided.
    pub turn: Option<MutexGuard<'a, ()>>,
}

impl Api {
    /// Charges the quotas of a namespace for a write. Refused where one has not enough left.
    pub async fn charge(&self, target: &Target, new: &Value, old: Option<&Value>) -> Outcome<Charged<'_>> {
        let id = &target.served.resource.id;
        let concerned = self.admission.tables().has_quotas(&target.namespace);
        if !concerned || (old.is_some() && !quota::grows(id)) {
            return Ok(Charged::default());
        }
        let turn = self.turns.take(&target.namespace).await;
        let snapshot = self.latest().await?;
        let now = self.moment().now;
        let mut riders = Riders::none();
        for record in snapshot.range(&storage::range(&builtin::RESOURCE_QUOTA.id, &target.namespace), None) {
            let object = storage::parse(record)?;
            let quota = Quota::read(&object);
            let charged = one(&snapshot, target, &quota, (new, old), now).map_err(|why| {
                let name = old.map_or_else(|| spoken_name(new), |_| target.name.as_str());
                Box::new(Status::forbidden(about(&target.served.resource, name), &why))
            })?;
            if let Some(after) = charged.and_then(|used| quota::told(&object, &used)) {
                riders.put(record.key.clone(), Condition::At(record.modified), storage::stamped(&after)?);
            }
        }
        Ok(Charged { riders, turn: Some(turn) })
    }
}

impl Api {
    /// Says in a quota that is written what its namespace uses in the state that the write is decided on. All that adds
    /// to it changes the quota as well, so that the write fails where something came meanwhile. A status that is written
    /// by itself is believed where it says more: whoever counts takes back what went.
    pub fn recount(&self, snapshot: &Snapshot, target: &Target, object: &mut Value, part: Part) {
        if target.served.resource.id != builtin::RESOURCE_QUOTA.id {
            return;
        }
        let quota = Quota::read(object);
        let used = count(snapshot, &target.namespace, &quota, self.moment().now, None);
        if part == Part::Status {
            quota::raise(object, &used);
            return;
        }
        object["status"] = serde_json::json!({});
        if let Some(counted) = quota::told(object, &used) {
            *object = counted;
        }
    }
}

/// What is used of one quota after a write; `None` where the write does not concern it.
fn one(
    snapshot: &Snapshot,
    target: &Target,
    quota: &Quota,
    (new, old): (&Value, Option<&Value>),
    now: Timestamp,
) -> Result<Option<Amounts>, String> {
    let id = &target.served.resource.id;
    if quota.names_of(id).next().is_none() {
        return Ok(None);
    }
    if old.is_none()
        && *id == builtin::POD.id
        && quota.is_about(id, new)
        && let Some(why) = quota::unsaid(quota, new)
    {
        return Err(why);
    }
    let before = old.map(|old| quota.taken(id, old, now)).unwrap_or_default();
    let more = quota::difference(&quota.taken(id, new, now), &before);
    if more.is_empty() {
        return Ok(None);
    }
    let mut used = quota.used.clone();
    used.retain(|name, _| more.contains_key(name));
    if more.keys().any(|name| !used.contains_key(name)) {
        // Nobody counted this yet, as the quota is new or has a new bound.
        used = count(snapshot, &target.namespace, quota, now, Some(id));
        used.retain(|name, _| more.contains_key(name));
    }
    quota::charge(quota, &used, &more).map(Some)
}

/// What the objects of a namespace take of a quota: all of them, or those of one type.
pub fn count(
    snapshot: &Snapshot,
    namespace: &str,
    quota: &Quota,
    now: Timestamp,
    only: Option<&GroupResource>,
) -> Amounts {
    let mut used = quota::count(quota, now, |id| {
        if only.is_some_and(|only| only != id) {
            return Vec::new();
        }
        let records = snapshot.range(&storage::range(id, namespace), None);
        records.filter_map(|record| storage::parse(record).ok()).collect()
    });
    used.retain(|name, _| only.is_none() || counted(name).as_ref() == only);
    used
}
