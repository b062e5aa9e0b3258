//! The ReplicaSet controller: holds the number of pods of each ReplicaSet; and the same for their elders, the
//! ReplicationControllers, which differ in how they are written alone.
//!
//! Owns the pods that a set controls, and the set's status. What must always hold:
//! * a pod belongs to at most one set, the one whose uid its controller reference has; no reference but to
//!   orphans is ever added, and none but its own is ever taken away;
//! * pods that ended, or whose deletion was asked for, are no replicas: they are neither counted nor touched;
//! * a ReplicaSet that is being deleted creates, deletes, adopts nothing;
//! * creation follows a template, never a name: two turns over one state make the same number of pods.
//!
//! Creations run one after the other and end at the first refusal, so an API that refuses pods (a quota, a broken
//! webhook) costs one call per retry. A turn is bounded by [`BURST`]; the next follows as its pods are seen.

mod sort;
mod victims;
#[cfg(test)]
mod tests;

use std::sync::Arc;

use jiff::Timestamp;
use serde_json::{Value, json};
use strata_model::condition::{self, Condition};
use strata_model::object::Object;
use strata_model::resource::builtin;
use strata_model::selector::Selector;

use self::sort::{Asked, FAILURE, Sort, Written};
use crate::controller::{
    Action, Attempt, CREATED_NAME, Controller, EventType, Key, MapTo, ObserveError, Plan, Propagation,
    Refusal, Target, View, Watched,
};
use crate::ownership::{self, Claim};
use crate::pods::{self, PodRef};
use crate::podtemplate;
use crate::status::count;
use crate::typed::Typed;

/// Most pods created or deleted in one turn. Until a turn is over neither is the status told nor a deletion of the set
/// heard, so a turn is to be a fraction of a second, and there may be many.
pub const BURST: usize = 100;

/// The controller of ReplicaSets. Has no configuration.
#[derive(Clone, Copy, Debug, Default)]
pub struct ReplicaSets;

/// The controller of ReplicationControllers. Has no configuration.
#[derive(Clone, Copy, Debug, Default)]
pub struct ReplicationControllers;

/// What matters for one set.
#[derive(Debug)]
pub struct Observed {
    sort: &'static Sort,
    set: Arc<Object>,
    /// What its body asks for.
    asked: Asked,
    /// What its status says.
    written: Written,
    /// Pods that the set controls, by name.
    owned: Vec<PodRef>,
    /// Active pods that match and that nobody controls, by name.
    orphans: Vec<PodRef>,
    /// Active pods of all sets of the same controller: where siblings run matters for who goes first.
    related: Vec<PodRef>,
}

impl Controller for ReplicaSets {
    type Observed = Observed;

    fn name(&self) -> &'static str {
        "replicaset"
    }

    fn watches(&self) -> Vec<Watched> {
        let pods = MapTo::With(|view, pod| sets_of_pod(&sort::REPLICA_SET, view, pod));
        vec![Watched::all(&builtin::REPLICA_SET, MapTo::Itself), Watched::all(&builtin::POD, pods)]
    }

    fn observe(&self, view: &dyn View, key: &Key) -> Result<Option<Observed>, ObserveError> {
        observe(&sort::REPLICA_SET, view, key)
    }

    fn plan(&self, observed: &Observed, now: Timestamp) -> Plan {
        plan(observed, now)
    }

    fn refused(&self, observed: &Observed, refusal: &Refusal, now: Timestamp) -> Plan {
        refused(observed, refusal, now)
    }
}

impl Controller for ReplicationControllers {
    type Observed = Observed;

    fn name(&self) -> &'static str {
        "replicationcontroller"
    }

    fn watches(&self) -> Vec<Watched> {
        let pods = MapTo::With(|view, pod| sets_of_pod(&sort::REPLICATION_CONTROLLER, view, pod));
        vec![Watched::all(&builtin::REPLICATION_CONTROLLER, MapTo::Itself), Watched::all(&builtin::POD, pods)]
    }

    fn observe(&self, view: &dyn View, key: &Key) -> Result<Option<Observed>, ObserveError> {
        observe(&sort::REPLICATION_CONTROLLER, view, key)
    }

    fn plan(&self, observed: &Observed, now: Timestamp) -> Plan {
        plan(observed, now)
    }

    fn refused(&self, observed: &Observed, refusal: &Refusal, now: Timestamp) -> Plan {
        refused(observed, refusal, now)
    }
}

fn observe(sort: &'static Sort, view: &dyn View, key: &Key) -> Result<Option<Observed>, ObserveError> {
    let Some(set) = view.get(&sort.resource.id, &key.object) else { return Ok(None) };
    let owned = view.owned_by(&builtin::POD.id, &set.meta().uid);
    let owned = owned.into_iter().filter(|p| ownership::controls(&set, p)).collect();
    let owned = Typed::all(owned).map_err(ObserveError::at(key))?;
    let (asked, written) = (sort.read)(&set).map_err(ObserveError::at(key))?;
    let orphans = match &asked.selector {
        Some(selector) if !set.meta().is_deleting() => orphans(view, key, selector)?,
        _ => Vec::new(),
    };
    let mut observed = Observed { sort, set, asked, written, owned, orphans, related: Vec::new() };
    if observed.active().count() > observed.asked.replicas {
        observed.related = related(view, &observed, key)?;
    }
    Ok(Some(observed))
}

fn plan(observed: &Observed, now: Timestamp) -> Plan {
    let mut plan = Plan::settled();
    if observed.asked.selector.is_none() {
        plan.note("BadSelector", "the selector is empty or malformed, so it selects no pods");
        return plan;
    }
    let mut failure = observed.written.failure.clone();
    if !observed.set.meta().is_deleting() {
        release(observed, &mut plan);
        observed.claim().adopt(observed.orphans.iter().map(|pod| &**pod.object()), &mut plan);
        let replicas = observed.active().count();
        match observed.asked.replicas {
            desired if replicas < desired => create(observed, desired - replicas, &mut plan),
            desired if replicas > desired => delete(observed, replicas - desired, now, &mut plan),
            // As many as asked for: whatever failed before does not fail any more.
            _ => failure = None,
        }
    }
    status(observed, failure, now, &mut plan);
    plan
}

/// Tells that pods could not be made, in an event and in the status.
fn refused(observed: &Observed, refusal: &Refusal, now: Timestamp) -> Plan {
    let mut plan = Plan::settled();
    let (reason, message) = match refusal.attempt {
        Attempt::Create => ("FailedCreate", format!("Error creating: {}", refusal.message)),
        Attempt::Delete => ("FailedDelete", format!("Error deleting: {}", refusal.message)),
        Attempt::Other => return plan,
    };
    plan.event(observed.target(), EventType::Warning, reason, message);
    let failure = Condition {
        type_: FAILURE.to_owned(),
        status: "True".to_owned(),
        reason: reason.to_owned(),
        message: refusal.message.clone(),
        ..Condition::default()
    };
    let mut list: Vec<Condition> = observed.written.failure.clone().into_iter().collect();
    condition::set(&mut list, failure, now);
    status(observed, list.pop(), now, &mut plan);
    plan
}

impl Observed {
    /// Whether the selector still selects a pod.
    fn selects(&self, pod: &PodRef) -> bool {
        self.asked.selector.as_ref().is_some_and(|s| s.matches(&pod.object().meta().labels))
    }

    /// The replicas: owned or about to be adopted, selected, active.
    fn active(&self) -> impl Iterator<Item = &PodRef> {
        let owned = self.owned.iter().filter(|p| pods::is_active(p.object(), p) && self.selects(p));
        owned.chain(&self.orphans)
    }

    fn target(&self) -> Target {
        Target::of(self.sort.resource, &self.set)
    }

    fn claim(&self) -> Claim<'_> {
        Claim { owner_type: self.sort.resource, owner: &self.set, dependents: &builtin::POD }
    }
}

/// The keys of a pod: the set that controls it, or every set that would adopt it.
fn sets_of_pod(sort: &Sort, view: &dyn View, pod: &Object) -> Vec<Key> {
    ownership::keys_of_dependent(view, sort.resource, pod, |set| {
        let asked = (sort.read)(set).ok().and_then(|(asked, _)| asked.selector);
        asked.is_some_and(|s| s.matches(&pod.meta().labels))
    })
}

fn orphans(view: &dyn View, key: &Key, selector: &Selector) -> Result<Vec<PodRef>, ObserveError> {
    let mut orphans = view.orphans(&builtin::POD.id, &key.object.namespace);
    orphans.retain(|p| selector.matches(&p.meta().labels));
    let mut orphans = Typed::all(orphans).map_err(ObserveError::at(key))?;
    orphans.retain(|p: &PodRef| pods::is_active(p.object(), p));
    Ok(orphans)
}

fn related(view: &dyn View, observed: &Observed, key: &Key) -> Result<Vec<PodRef>, ObserveError> {
    let siblings: Vec<Arc<Object>> = match observed.set.meta().controller() {
        Some(owner) => view.owned_by(&observed.sort.resource.id, &owner.uid),
        None => vec![Arc::clone(&observed.set)],
    };
    let mut related = Vec::new();
    for sibling in siblings {
        let owned = view.owned_by(&builtin::POD.id, &sibling.meta().uid);
        related.extend(Typed::all(owned).map_err(ObserveError::at(key))?);
    }
    related.retain(|p: &PodRef| pods::is_active(p.object(), p));
    Ok(related)
}

/// Lets go of active pods that are not selected any more.
fn release(observed: &Observed, plan: &mut Plan) {
    for pod in &observed.owned {
        if pods::is_active(pod.object(), pod) && !observed.selects(pod) {
            observed.claim().release(pod.object(), plan);
        }
    }
}

/// Makes up what is missing.
fn create(observed: &Observed, missing: usize, plan: &mut Plan) {
    let pod = match pod_from_template(observed) {
        Ok(pod) => pod,
        Err(message) => return plan.note("BadTemplate", message),
    };
    for _ in 0..missing.min(BURST) {
        plan.actions.push(Action::Create { resource: builtin::POD.clone(), object: pod.clone() });
        let message = format!("Created pod: {CREATED_NAME}");
        plan.event(observed.target(), EventType::Normal, "SuccessfulCreate", message);
    }
}

/// The template's pod, with a name to be chosen.
fn pod_from_template(observed: &Observed) -> Result<Value, String> {
    let set = &observed.set;
    let value = set.to_value().map_err(|e| e.to_string())?;
    let mut pod = podtemplate::pod(&value["spec"]["template"], observed.sort.resource, set)?;
    pod["metadata"]["generateName"] = json!(format!("{}-", set.meta().name));
    Ok(pod)
}

/// Deletes what is too much, the least useful first.
fn delete(observed: &Observed, surplus: usize, now: Timestamp, plan: &mut Plan) {
    let mut candidates: Vec<&PodRef> = observed.active().collect();
    victims::rank(&mut candidates, &observed.related, now);
    for pod in candidates.into_iter().take(surplus.min(BURST)) {
        plan.actions.push(Action::Delete {
            target: Target::of(&builtin::POD, pod.object()).at_any_revision(),
            propagation: Propagation::Background,
            grace_seconds: None,
        });
        let message = format!("Deleted pod: {}", pod.object().meta().name);
        plan.event(observed.target(), EventType::Normal, "SuccessfulDelete", message);
    }
}

/// Writes what was observed, if it differs from what is written; and looks again when a pod becomes available by time.
fn status(observed: &Observed, failure: Option<Condition>, now: Timestamp, plan: &mut Plan) {
    let (mut replicas, mut full, mut ready, mut available) = (0, 0, 0, 0);
    for pod in observed.active() {
        replicas += 1;
        full += i32::from(observed.asked.labelled.matches(&pod.object().meta().labels));
        let Some(at) = pods::available_at(pod, observed.asked.min_ready_seconds) else { continue };
        ready += 1;
        if at <= now {
            available += 1;
        } else {
            plan.next = plan.next.or_at(at);
        }
    }
    let generation = observed.set.meta().generation;
    let told = failure != observed.written.failure;
    let seen = Written { replicas, full, ready, available, generation, failure, ..observed.written.clone() };
    if seen == observed.written {
        return;
    }
    let mut status = json!({
        "replicas": replicas, "fullyLabeledReplicas": count(full), "readyReplicas": count(ready),
        "availableReplicas": count(available), "observedGeneration": generation,
    });
    if told {
        let mut conditions = observed.written.others.clone();
        conditions.extend(seen.failure.iter().map(|c| json!(c)));
        status["conditions"] = if conditions.is_empty() { Value::Null } else { json!(conditions) };
    }
    // "At most one status, last but events": events of creations and deletions stand before it, which is as good.
    plan.actions.push(Action::Status { target: observed.target(), status });
}
