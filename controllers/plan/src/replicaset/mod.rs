//! The ReplicaSet controller: holds the number of pods of each ReplicaSet.
//!
//! Owns the pods that a ReplicaSet controls, and the ReplicaSet's status. What must always hold:
//! * a pod belongs to at most one ReplicaSet, the one whose uid its controller reference has; no reference but to
//!   orphans is ever added, and none but its own is ever taken away;
//! * pods that ended, or whose deletion was asked for, are no replicas: they are neither counted nor touched;
//! * a ReplicaSet that is being deleted creates, deletes, adopts nothing;
//! * creation follows a template, never a name: two turns over one state make the same number of pods.
//!
//! Creations run one after the other and end at the first refusal, so an API that refuses pods (a quota, a broken
//! webhook) costs one call per retry. A turn is bounded by [`BURST`]; the next follows as its pods are seen.

mod victims;
#[cfg(test)]
mod tests;

use std::sync::Arc;

use jiff::Timestamp;
use k8s_openapi::api::apps::v1::{ReplicaSet, ReplicaSetSpec};
use serde_json::{Value, json};
use strata_model::object::{Object, ObjectKey};
use strata_model::resource::builtin;
use strata_model::selector::Selector;

use crate::controller::{
    Action, CREATED_NAME, Controller, EventType, Fact, Key, MapTo, ObserveError, Plan, Propagation, Target,
    View, Watched,
};
use crate::ownership;
use crate::pods::{self, PodRef};
use crate::podtemplate;
use crate::typed::Typed;

/// Most pods created or deleted in one turn. Until a turn is over neither is the status told nor a deletion of the set
/// heard, so a turn is to be a fraction of a second, and there may be many.
pub const BURST: usize = 100;

/// The controller. Has no configuration.
#[derive(Clone, Copy, Debug, Default)]
pub struct ReplicaSets;

/// What matters for one ReplicaSet.
#[derive(Debug)]
pub struct Observed {
    set: Typed<ReplicaSet>,
    /// Of the body; `None` where it is malformed or empty, and so selects nothing.
    selector: Option<Selector>,
    /// Pods that the set controls, by name.
    owned: Vec<PodRef>,
    /// Active pods that match and that nobody controls, by name.
    orphans: Vec<PodRef>,
    /// Active pods of all ReplicaSets of the same controller: where siblings run matters for who goes first.
    related: Vec<PodRef>,
}

impl Controller for ReplicaSets {
    type Observed = Observed;

    fn name(&self) -> &'static str {
        "replicaset"
    }

    fn watches(&self) -> Vec<Watched> {
        vec![
            Watched::all(&builtin::REPLICA_SET, MapTo::Itself),
            Watched::all(&builtin::POD, MapTo::With(sets_of_pod)),
        ]
    }

    fn observe(&self, view: &dyn View, key: &Key) -> Result<Option<Observed>, ObserveError> {
        let Some(set) = view.get(&builtin::REPLICA_SET.id, &key.object) else { return Ok(None) };
        let owned = view.owned_by(&builtin::POD.id, &set.meta().uid);
        let owned = owned.into_iter().filter(|p| ownership::controls(&set, p)).collect();
        let owned = Typed::all(owned).map_err(ObserveError::at(key))?;
        let set = Typed::<ReplicaSet>::new(set).map_err(ObserveError::at(key))?;
        let selector = selector_of(&set);
        let orphans = match &selector {
            Some(selector) if !set.object().meta().is_deleting() => orphans(view, key, selector)?,
            _ => Vec::new(),
        };
        let mut observed = Observed { set, selector, owned, orphans, related: Vec::new() };
        if observed.active().count() > observed.desired() {
            observed.related = related(view, &observed.set, key)?;
        }
        Ok(Some(observed))
    }

    fn plan(&self, observed: &Observed, now: Timestamp) -> Plan {
        let mut plan = Plan::settled();
        if observed.selector.is_none() {
            plan.note("BadSelector", "the selector is empty or malformed, so it selects no pods");
            return plan;
        }
        if !observed.set.object().meta().is_deleting() {
            release(observed, &mut plan);
            adopt(observed, &mut plan);
            let replicas = observed.active().count();
            match observed.desired() {
                desired if replicas < desired => create(observed, desired - replicas, &mut plan),
                desired if replicas > desired => delete(observed, replicas - desired, now, &mut plan),
                _ => {}
            }
        }
        status(observed, now, &mut plan);
        plan
    }
}

impl Observed {
    fn spec(&self) -> Option<&ReplicaSetSpec> {
        self.set.spec.as_ref()
    }

    /// How many pods there should be.
    fn desired(&self) -> usize {
        let replicas = self.spec().and_then(|s| s.replicas).unwrap_or(1);
        usize::try_from(replicas).unwrap_or(0)
    }

    fn min_ready_seconds(&self) -> i64 {
        self.spec().and_then(|s| s.min_ready_seconds).unwrap_or(0).into()
    }

    /// Whether the selector still selects a pod.
    fn selects(&self, pod: &PodRef) -> bool {
        self.selector.as_ref().is_some_and(|s| s.matches(&pod.object().meta().labels))
    }

    /// The replicas: owned or about to be adopted, selected, active.
    fn active(&self) -> impl Iterator<Item = &PodRef> {
        let owned = self.owned.iter().filter(|p| pods::is_active(p.object(), p) && self.selects(p));
        owned.chain(&self.orphans)
    }

    fn target(&self) -> Target {
        Target::of(&builtin::REPLICA_SET, self.set.object())
    }
}

/// The keys of a pod: the set that controls it, or every set that would adopt it.
fn sets_of_pod(view: &dyn View, pod: &Object) -> Vec<Key> {
    if let Some(owner) = pod.meta().controller() {
        let set = &builtin::REPLICA_SET;
        let ours = owner.group() == set.id.group && owner.kind == set.kind;
        let key = ObjectKey::new(pod.meta().namespace.clone(), owner.name.clone());
        return if ours { vec![Key::new(set, key)] } else { Vec::new() };
    }
    let mut sets = view.list(&builtin::REPLICA_SET.id, &pod.meta().namespace);
    sets.retain(|set| {
        let typed = set.typed::<ReplicaSet>().ok();
        typed.and_then(selector_of).is_some_and(|s| s.matches(&pod.meta().labels))
    });
    sets.iter().map(|set| Key::new(&builtin::REPLICA_SET, set.key())).collect()
}

fn selector_of(set: &ReplicaSet) -> Option<Selector> {
    let selector = Selector::from_body(&set.spec.as_ref()?.selector).ok()?;
    (!selector.is_everything()).then_some(selector)
}

fn orphans(view: &dyn View, key: &Key, selector: &Selector) -> Result<Vec<PodRef>, ObserveError> {
    let mut orphans = view.orphans(&builtin::POD.id, &key.object.namespace);
    orphans.retain(|p| selector.matches(&p.meta().labels));
    let mut orphans = Typed::all(orphans).map_err(ObserveError::at(key))?;
    orphans.retain(|p: &PodRef| pods::is_active(p.object(), p));
    Ok(orphans)
}

fn related(view: &dyn View, set: &Typed<ReplicaSet>, key: &Key) -> Result<Vec<PodRef>, ObserveError> {
    let siblings: Vec<Arc<Object>> = match set.object().meta().controller() {
        Some(owner) => view.owned_by(&builtin::REPLICA_SET.id, &owner.uid),
        None => vec![Arc::clone(set.object())],
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
    let uid = &observed.set.object().meta().uid;
    for pod in &observed.owned {
        if pods::is_active(pod.object(), pod) && !observed.selects(pod) {
            let patch = ownership::release_patch(uid, pod.object());
            plan.actions.push(Action::Patch { target: Target::of(&builtin::POD, pod.object()), patch });
        }
    }
}

/// Takes the orphans, once the server says that the set is alive: the pods of a dead owner are collected.
fn adopt(observed: &Observed, plan: &mut Plan) {
    if !observed.orphans.is_empty() {
        plan.actions.push(Action::Confirm { target: observed.target(), fact: Fact::Alive });
    }
    for pod in &observed.orphans {
        let patch = ownership::adopt_patch(&builtin::REPLICA_SET, observed.set.object(), pod.object());
        plan.actions.push(Action::Patch { target: Target::of(&builtin::POD, pod.object()), patch });
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
    let set = observed.set.object();
    let value = set.to_value().map_err(|e| e.to_string())?;
    let mut pod = podtemplate::pod(&value["spec"]["template"], &builtin::REPLICA_SET, set)?;
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
fn status(observed: &Observed, now: Timestamp, plan: &mut Plan) {
    let labels = observed.spec().and_then(|s| s.template.as_ref()?.metadata.as_ref()?.labels.as_ref());
    let labelled = Selector::from_labels(labels.unwrap_or(&Default::default()));
    let (mut replicas, mut full, mut ready, mut available) = (0, 0, 0, 0);
    for pod in observed.active() {
        replicas += 1;
        full += i32::from(labelled.matches(&pod.object().meta().labels));
        let Some(at) = pods::available_at(pod, observed.min_ready_seconds()) else { continue };
        ready += 1;
        if at <= now {
            available += 1;
        } else {
            plan.next = plan.next.or_at(at);
        }
    }
    let generation = observed.set.object().meta().generation;
    let old = observed.set.status.as_ref();
    let written = |field: Option<i32>| field.unwrap_or(0);
    let same = old.is_some_and(|s| {
        s.replicas == replicas
            && written(s.fully_labeled_replicas) == full
            && written(s.ready_replicas) == ready
            && written(s.available_replicas) == available
            && s.observed_generation.unwrap_or(0) == generation
    });
    if same {
        return;
    }
    let shown = |n: i32| if n == 0 { Value::Null } else { json!(n) };
    let status = json!({
        "replicas": replicas, "fullyLabeledReplicas": shown(full), "readyReplicas": shown(ready),
        "availableReplicas": shown(available), "observedGeneration": generation,
    });
    // "At most one status, last but events": events of creations and deletions stand before it, which is as good.
    plan.actions.push(Action::Status { target: observed.target(), status });
}
