//! The disruption controller: says in each PodDisruptionBudget's status how many of its pods may go now. Evictions count
//! that down by themselves, in the transaction that deletes the pod; here it is counted anew whenever pods come, go,
//! become ready or stop being so.
//!
//! Owns the status of budgets alone. What must always hold:
//! * a pod that an eviction told of (`disruptedPods`) counts as gone until it is, or until it has stayed for longer than
//!   [`TO_GO`];
//! * what cannot be judged (pods of an owner without a scale) allows nothing, and says why.

mod count;
#[cfg(test)]
mod tests;

use std::collections::BTreeMap;

use jiff::{SignedDuration, Timestamp};
use k8s_openapi::api::policy::v1::PodDisruptionBudget;
use serde_json::{Value, json};
use strata_model::condition::rfc3339;
use strata_model::object::{Object, ObjectKey};
use strata_model::resource::builtin;
use strata_model::selector::Selector;

use self::count::Expected;
use crate::controller::{Action, Controller, Key, MapTo, Next, ObserveError, Plan, Target, View, Watched};
use crate::pods::{self, PodRef};
use crate::status::difference;
use crate::typed::Typed;

/// How long a pod may take to be marked for deletion after its eviction was agreed to.
pub const TO_GO: SignedDuration = SignedDuration::from_mins(2);
/// The condition that tells whether any pod may go.
const ALLOWED: &str = "DisruptionAllowed";

/// Counts what disruption budgets allow.
pub struct Disruptions;

/// A budget with its pods, and how many of them there should be.
pub struct Observed {
    budget: Typed<PodDisruptionBudget>,
    pods: Vec<PodRef>,
    expected: Result<Expected, String>,
}

impl Controller for Disruptions {
    type Observed = Observed;

    fn name(&self) -> &'static str {
        "disruption"
    }

    fn watches(&self) -> Vec<Watched> {
        let mut watches = vec![
            Watched::all(&builtin::POD_DISRUPTION_BUDGET, MapTo::Itself),
            Watched::all(&builtin::POD, MapTo::With(budgets_of_pod)),
        ];
        watches.extend(count::OWNERS.iter().map(|owner| Watched::all(owner, MapTo::With(budgets_beside))));
        watches
    }

    fn observe(&self, view: &dyn View, key: &Key) -> Result<Option<Observed>, ObserveError> {
        let Some(budget) = view.get(&key.resource, &key.object) else { return Ok(None) };
        let budget = Typed::<PodDisruptionBudget>::new(budget).map_err(ObserveError::at(key))?;
        let mut pods = Vec::new();
        if let Some(selector) = selector(&budget) {
            let mut selected = view.list(&builtin::POD.id, &key.object.namespace);
            selected.retain(|pod| !pod.meta().labels.is_empty() && selector.matches(&pod.meta().labels));
            pods = Typed::all(selected).map_err(ObserveError::at(key))?;
        }
        let expected = count::expected(view, &budget, &pods);
        Ok(Some(Observed { budget, pods, expected }))
    }

    fn plan(&self, observed: &Observed, now: Timestamp) -> Plan {
        let mut plan = Plan::settled();
        let budget = observed.budget.object();
        let (disrupted, next) = observed.disrupted(now);
        plan.next = next;
        let healthy = observed.healthy(&disrupted);
        let fields = match &observed.expected {
            Ok(expected) => {
                let spare = if expected.pods > 0 { (healthy - expected.healthy).max(0) } else { 0 };
                let reason = if spare > 0 { "SufficientPods" } else { "InsufficientPods" };
                json!({
                    "currentHealthy": healthy, "desiredHealthy": expected.healthy,
                    "disruptionsAllowed": spare, "expectedPods": expected.pods,
                    "observedGeneration": budget.meta().generation,
                    "conditions": observed.conditions(spare > 0, reason, "", now),
                    "disruptedPods": null,
                })
            }
            Err(why) => {
                plan.note("SyncFailed", why.clone());
                json!({
                    "disruptionsAllowed": 0, "observedGeneration": budget.meta().generation,
                    "conditions": observed.conditions(false, "SyncFailed", why, now),
                    "disruptedPods": null,
                })
            }
        };
        let mut fields = fields;
        if !disrupted.is_empty() {
            let told: BTreeMap<&str, String> =
                disrupted.iter().map(|(name, at)| (*name, rfc3339(*at))).collect();
            fields["disruptedPods"] = json!(told);
        }
        if let Some(mut status) = difference(budget, fields) {
            forget(budget, &mut status);
            let target = Target::of(&builtin::POD_DISRUPTION_BUDGET, budget);
            plan.actions.push(Action::Status { target, status });
        }
        plan
    }
}

/// Makes a merge patch of `disruptedPods` take out the pods that are not told of any more.
fn forget(budget: &Object, status: &mut Value) {
    let old = budget.to_value().unwrap_or_default();
    let Some(new) = status.get_mut("disruptedPods").and_then(Value::as_object_mut) else { return };
    for name in old["status"]["disruptedPods"].as_object().into_iter().flat_map(|old| old.keys()) {
        new.entry(name.clone()).or_insert(Value::Null);
    }
}

impl Observed {
    /// The pods that an eviction agreed to and that are still there, unmarked and in time; and when the first of them
    /// is late.
    fn disrupted(&self, now: Timestamp) -> (BTreeMap<&str, Timestamp>, Next) {
        let told = self.budget.status.as_ref().and_then(|s| s.disrupted_pods.as_ref());
        let (mut kept, mut next) = (BTreeMap::new(), Next::OnChange);
        for (name, at) in told.into_iter().flatten() {
            let pod = self.pods.iter().find(|pod| pod.object().meta().name == *name);
            let late = at.0.saturating_add(TO_GO).unwrap_or(Timestamp::MAX);
            if pod.is_some_and(|pod| !pod.object().meta().is_deleting()) && late > now {
                kept.insert(name.as_str(), at.0);
                next = next.or_at(late);
            }
        }
        (kept, next)
    }

    /// How many pods are ready and stay.
    fn healthy(&self, disrupted: &BTreeMap<&str, Timestamp>) -> i32 {
        let counts = |pod: &&PodRef| {
            let meta = pod.object().meta();
            !meta.is_deleting()
                && !disrupted.contains_key(meta.name.as_str())
                && pods::ready_since(pod).is_some()
        };
        i32::try_from(self.pods.iter().filter(counts).count()).unwrap_or(i32::MAX)
    }

    /// The conditions with the one that is written here, whose time moves with its status alone.
    fn conditions(&self, allowed: bool, reason: &str, message: &str, now: Timestamp) -> Value {
        let status = if allowed { "True" } else { "False" };
        let value = self.budget.object().to_value().unwrap_or_default();
        let mut list = value["status"]["conditions"].as_array().cloned().unwrap_or_default();
        let old = list.iter().find(|c| c["type"] == ALLOWED && c["status"] == status);
        let since = old.map_or_else(|| json!(rfc3339(now)), |old| old["lastTransitionTime"].clone());
        let condition = json!({
            "type": ALLOWED, "status": status, "reason": reason, "message": message,
            "lastTransitionTime": since, "observedGeneration": self.budget.object().meta().generation,
        });
        match list.iter_mut().find(|c| c["type"] == ALLOWED) {
            Some(old) => *old = condition,
            None => list.push(condition),
        }
        Value::Array(list)
    }
}

/// What a budget selects; `None` where it has no selector, or one that cannot be read.
fn selector(budget: &PodDisruptionBudget) -> Option<Selector> {
    let body = budget.spec.as_ref()?.selector.as_ref()?;
    Selector::from_body(body).ok()
}

/// The budgets that select a pod.
fn budgets_of_pod(view: &dyn View, pod: &Object) -> Vec<Key> {
    let labels = &pod.meta().labels;
    if labels.is_empty() {
        return Vec::new();
    }
    let selects = |budget: &Object| {
        let read = budget.typed::<PodDisruptionBudget>().ok();
        read.and_then(selector).is_some_and(|s| s.matches(labels))
    };
    keys(view, &pod.meta().namespace, selects)
}

/// All budgets of a namespace: which of their pods an owner has is not looked up.
fn budgets_beside(view: &dyn View, owner: &Object) -> Vec<Key> {
    keys(view, &owner.meta().namespace, |_| true)
}

fn keys(view: &dyn View, namespace: &str, concerned: impl Fn(&Object) -> bool) -> Vec<Key> {
    let budgets = view.list(&builtin::POD_DISRUPTION_BUDGET.id, namespace);
    let key = |o: &Object| ObjectKey::new(namespace, o.meta().name.clone());
    budgets
        .iter()
        .filter(|o| concerned(o))
        .map(|o| Key::new(&builtin::POD_DISRUPTION_BUDGET, key(o)))
        .collect()
}
