//! The resourcequota controller: says in each ResourceQuota's status what its namespace uses. Writes charge that by
//! themselves, in their own transaction; here it is counted anew when something goes, ends or gives back, and when a bound
//! comes or goes. The server counts once more when this is written, so that nothing that came meanwhile is forgotten.
//!
//! Owns the status of quotas alone. It knows the types that it was made with; what objects of others use stays as it is
//! written.

use std::sync::Arc;

use jiff::{SignedDuration, Timestamp};
use serde_json::{Value, json};
use strata_model::amounts::{Amounts, add, amounts};
use strata_model::object::{Object, ObjectKey};
use strata_model::quantity::Quantity;
use strata_model::quota::{Quota, counted};
use strata_model::resource::{GroupResource, ResourceType, Verb, builtin};

use crate::controller::{Action, Controller, Key, MapTo, ObserveError, Plan, Target, View, Watched};

/// Types that change all the time and that nobody bounds.
const LEFT_OUT: [&ResourceType; 2] = [&builtin::EVENT, &builtin::LEASE];
/// Types of which more counts than that they are there.
const WHOLE: [&ResourceType; 3] = [&builtin::POD, &builtin::SERVICE, &builtin::PERSISTENT_VOLUME_CLAIM];

/// Recounts quotas.
pub struct ResourceQuotas {
    types: Vec<Arc<ResourceType>>,
}

/// A quota, and what the objects of its namespace take of it.
pub struct Observed {
    object: Arc<Object>,
    value: Value,
    quota: Quota,
    /// Objects of the known types that it bounds.
    objects: Vec<(GroupResource, Vec<Value>)>,
}

impl ResourceQuotas {
    /// For these types, as they are served now.
    pub fn new(types: Vec<Arc<ResourceType>>) -> Self {
        let counts = |resource: &Arc<ResourceType>| {
            resource.is_namespaced()
                && resource.verbs.contains(&Verb::Watch)
                && !LEFT_OUT.iter().any(|out| out.id == resource.id)
        };
        Self { types: types.into_iter().filter(counts).collect() }
    }
}

impl Controller for ResourceQuotas {
    type Observed = Observed;

    fn name(&self) -> &'static str {
        "resourcequota"
    }

    fn watches(&self) -> Vec<Watched> {
        let watched = |resource: &Arc<ResourceType>| {
            let itself = resource.id == builtin::RESOURCE_QUOTA.id;
            Watched {
                resource: Arc::clone(resource),
                map: if itself { MapTo::Itself } else { MapTo::With(quotas_beside) },
                metadata_only: !itself && !WHOLE.iter().any(|whole| whole.id == resource.id),
                field_selector: String::new(),
            }
        };
        self.types.iter().map(watched).collect()
    }

    fn observe(&self, view: &dyn View, key: &Key) -> Result<Option<Observed>, ObserveError> {
        let Some(object) = view.get(&key.resource, &key.object) else { return Ok(None) };
        let value = object.to_value().map_err(ObserveError::at(key))?;
        let quota = Quota::read(&value);
        let mut ids: Vec<GroupResource> = quota.hard.keys().filter_map(|name| counted(name)).collect();
        ids.sort();
        ids.dedup();
        ids.retain(|id| self.types.iter().any(|resource| resource.id == *id));
        let mut objects = Vec::new();
        for id in ids {
            let all = view.list(&id, &key.object.namespace);
            let values: Result<Vec<Value>, _> = all.iter().map(|object| object.to_value()).collect();
            objects.push((id, values.map_err(ObserveError::at(key))?));
        }
        Ok(Some(Observed { object, value, quota, objects }))
    }

    fn plan(&self, observed: &Observed, now: Timestamp) -> Plan {
        let mut plan = Plan::settled();
        if observed.object.meta().is_deleting() {
            return plan;
        }
        for end in observed.ends().filter(|end| *end >= now) {
            plan.next =
                plan.next.or_at(end.saturating_add(SignedDuration::from_secs(1)).unwrap_or(Timestamp::MAX));
        }
        let used = observed.used(now);
        let hard = amounts(&observed.value["status"]["hard"]);
        if used == observed.quota.used && hard == observed.quota.hard {
            return plan;
        }
        let status = json!({
            "hard": patch(&observed.value["status"]["hard"], &observed.quota.hard),
            "used": patch(&observed.value["status"]["used"], &used),
        });
        plan.actions
            .push(Action::Status { target: Target::of(&builtin::RESOURCE_QUOTA, &observed.object), status });
        plan
    }
}

impl Observed {
    /// What is used of each bound.
    fn used(&self, now: Timestamp) -> Amounts {
        let known =
            |name: &str| counted(name).is_some_and(|id| self.objects.iter().any(|(known, _)| *known == id));
        let start = |name: &String| match self.quota.used.get(name) {
            Some(used) if !known(name) => *used,
            _ => Quantity::ZERO,
        };
        let mut used: Amounts = self.quota.hard.keys().map(|name| (name.clone(), start(name))).collect();
        for (id, objects) in &self.objects {
            for object in objects {
                add(&mut used, &self.quota.taken(id, object, now));
            }
        }
        used
    }

    /// When pods that are on their way out stop counting, whether or not they are gone then.
    fn ends(&self) -> impl Iterator<Item = Timestamp> {
        let pods = self.objects.iter().filter(|(id, _)| *id == builtin::POD.id).flat_map(|(_, pods)| pods);
        pods.filter_map(|pod| {
            let meta = &pod["metadata"];
            let at: Timestamp = meta["deletionTimestamp"].as_str()?.parse().ok()?;
            at.checked_add(SignedDuration::from_secs(meta["deletionGracePeriodSeconds"].as_i64()?)).ok()
        })
    }
}

/// The merge patch that makes these amounts of what is written.
fn patch(written: &Value, wanted: &Amounts) -> Value {
    let mut patch: serde_json::Map<String, Value> =
        wanted.iter().map(|(name, amount)| (name.clone(), json!(amount.to_string()))).collect();
    for name in written.as_object().into_iter().flat_map(|written| written.keys()) {
        patch.entry(name.clone()).or_insert(Value::Null);
    }
    Value::Object(patch)
}

/// All quotas of an object's namespace.
fn quotas_beside(view: &dyn View, object: &Object) -> Vec<Key> {
    let namespace = &object.meta().namespace;
    let quotas = view.list(&builtin::RESOURCE_QUOTA.id, namespace);
    let key = |quota: &Arc<Object>| ObjectKey::new(namespace.clone(), quota.meta().name.clone());
    quotas.iter().map(|quota| Key::new(&builtin::RESOURCE_QUOTA, key(quota))).collect()
}

#[cfg(test)]
mod tests;
