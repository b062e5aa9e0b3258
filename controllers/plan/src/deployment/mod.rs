//! The Deployment controller: moves pods from one template to the next by sizing ReplicaSets.
//!
//! Owns the ReplicaSets that a Deployment controls, its revision annotation and its status. What must always hold:
//! * each template has one ReplicaSet, `<deployment>-<hash>`, found by comparing templates and never by name alone;
//! * during a rolling update all sets together never are asked for more than replicas + surge, and no step of ours
//!   makes fewer than replicas − unavailable available (the numbers are in `rollout`);
//! * under `Recreate` no pod of the new template is asked for while one of an old template is there;
//! * a Deployment that asks for it goes back to its last good template when a rollout misses its deadline;
//! * paused, nothing is rolled, but scaling works; and an old ReplicaSet is only ever deleted when it is empty.
//!
//! Every step is safe on its own, so a plan may be cut anywhere.

mod template;
mod observed;
mod sizes;
mod progress;
mod rollback;
#[cfg(test)]
mod tests;

use std::collections::BTreeMap;

use jiff::Timestamp;
use k8s_openapi::api::apps::v1::Deployment;
use serde_json::{Value, json};
use strata_model::object::{Object, ObjectKey};
use strata_model::resource::builtin;

use self::observed::{SetRef, actual, asked, is_current};
use self::sizes::Sizes;
use self::template::{DESIRED, MAX, REVISION, REVISION_HISTORY};
use crate::controller::{
    Action, Controller, EventType, Key, MapTo, ObserveError, Plan, Propagation, Target, View, Watched,
};
use crate::ownership::{self, Claim};

pub use self::observed::Observed;

/// The controller. Has no configuration.
#[derive(Clone, Copy, Debug, Default)]
pub struct Deployments;

impl Controller for Deployments {
    type Observed = Observed;

    fn name(&self) -> &'static str {
        "deployment"
    }

    fn watches(&self) -> Vec<Watched> {
        let mut pods = Watched::all(&builtin::POD, MapTo::With(deployment_of_gone_pod));
        // Only whether a pod is there and on its way out matters.
        pods.metadata_only = true;
        vec![
            Watched::all(&builtin::DEPLOYMENT, MapTo::Itself),
            Watched::all(&builtin::REPLICA_SET, MapTo::With(deployments_of_set)),
            pods,
        ]
    }

    fn observe(&self, view: &dyn View, key: &Key) -> Result<Option<Observed>, ObserveError> {
        observed::observe(view, key)
    }

    fn plan(&self, observed: &Observed, now: Timestamp) -> Plan {
        let mut plan = Plan::settled();
        if observed.selector.is_none() {
            plan.note("BadSelector", "the selector is empty or malformed, so it selects no replica sets");
            return plan;
        }
        if observed.deployment.object().meta().is_deleting() {
            let name = observed.new.as_ref().map(|s| s.object().meta().name.as_str());
            progress::report(observed, name, now, &mut plan);
            return plan;
        }
        claim(observed, &mut plan);
        if !plan.is_settled() {
            // Who belongs here is settled first; the sizes follow from it.
            return plan;
        }
        if rollback::plan(observed, &mut plan) {
            // The sizes follow from the template, which is another one now.
            return plan;
        }
        let sizes = sizes::of(observed);
        if sizes.new.is_some() && observed.candidate_taken {
            count_collision(observed, &mut plan);
            return plan;
        }
        let revision = observed.revision();
        let new = resize(observed, &sizes, revision, &mut plan);
        prune(observed, &mut plan);
        match new {
            // Two writes to one object in one turn would refuse each other, so the status follows in the next.
            Some(_) if template::revision(observed.deployment.object().meta()) != revision => {
                let patch = json!({"metadata": {"annotations": {REVISION: revision.to_string()}}});
                plan.actions.push(Action::Patch { target: observed.target(), patch });
            }
            new => progress::report(observed, new.as_deref(), now, &mut plan),
        }
        explain(observed, &sizes, &mut plan);
        plan
    }
}

/// The Deployment of a pod that is gone, where it may wait for that.
fn deployment_of_gone_pod(view: &dyn View, pod: &Object) -> Vec<Key> {
    let there = view.get(&builtin::POD.id, &pod.key()).is_some_and(|p| p.meta().uid == pod.meta().uid);
    let Some(owner) = pod.meta().controller().filter(|_| !there) else { return Vec::new() };
    let key = ObjectKey::new(pod.meta().namespace.clone(), owner.name.clone());
    let set = view.get(&builtin::REPLICA_SET.id, &key).filter(|set| set.meta().uid == owner.uid);
    set.map(|set| deployments_of_set(view, &set)).unwrap_or_default()
}

/// The keys of a ReplicaSet: the Deployment that controls it, or every one that would adopt it.
fn deployments_of_set(view: &dyn View, set: &Object) -> Vec<Key> {
    ownership::keys_of_dependent(view, &builtin::DEPLOYMENT, set, |deployment| {
        let spec = deployment.typed::<Deployment>().ok().and_then(|d| d.spec.as_ref());
        spec.and_then(observed::selector_of).is_some_and(|s| s.matches(&set.meta().labels))
    })
}

/// Lets go of sets that stopped matching; takes matching orphans, once the server says that the Deployment is alive.
fn claim(observed: &Observed, plan: &mut Plan) {
    let owner = observed.deployment.object();
    let claim = Claim { owner_type: &builtin::DEPLOYMENT, owner, dependents: &builtin::REPLICA_SET };
    observed.to_release.iter().for_each(|set| claim.release(set.object(), plan));
    claim.adopt(observed.to_adopt.iter().map(|set| &**set.object()), plan);
}

/// The name is taken by a set of another template: the next hash is another one.
fn count_collision(observed: &Observed, plan: &mut Plan) {
    let count = observed.deployment.status.as_ref().and_then(|s| s.collision_count).unwrap_or(0);
    let status = json!({"collisionCount": count.saturating_add(1)});
    plan.actions.push(Action::Status { target: observed.target(), status });
}

impl Observed {
    /// The revision of the present template's set: its own while it is above all others.
    fn revision(&self) -> i64 {
        let own = self.new.as_ref().map_or(0, |s| template::revision(s.object().meta()));
        own.max(template::next_revision(&self.old))
    }

    /// The annotations of the new set.
    fn annotations(&self, revision: i64) -> BTreeMap<String, String> {
        let mut annotations = template::handed_down(self.deployment.object().meta());
        annotations.insert(REVISION.to_owned(), revision.to_string());
        if rollback::is_asked(self) && progress::is_complete_as_written(self) {
            annotations.insert(rollback::GOOD.to_owned(), "true".to_owned());
        }
        if let Some(new) = self.new.as_ref().filter(|s| template::revision(s.object().meta()) != revision)
            && let Some(history) = template::history(new.object().meta())
        {
            annotations.insert(REVISION_HISTORY.to_owned(), history);
        }
        annotations
    }

    /// What a set is told when it is sized.
    fn sizing(&self) -> [(String, String); 2] {
        [
            (DESIRED.to_owned(), self.replicas().to_string()),
            (MAX.to_owned(), self.limits().max_total().to_string()),
        ]
    }
}

/// Brings every set to its size, the new one first, and creates it where it is missing. Answers the new set's name.
fn resize(observed: &Observed, sizes: &Sizes, revision: i64, plan: &mut Plan) -> Option<String> {
    let annotations = observed.annotations(revision);
    let name = match (&observed.new, sizes.new) {
        (Some(set), size) => {
            change(observed, set, size.unwrap_or(asked(set)), sizes.rescaled, annotations, true, plan);
            Some(set.object().meta().name.clone())
        }
        (None, Some(size)) => create(observed, size, annotations, plan),
        (None, None) => None,
    };
    for (set, size) in observed.old.iter().zip(&sizes.old) {
        change(observed, set, *size, sizes.rescaled, BTreeMap::new(), false, plan);
    }
    name
}

fn create(
    observed: &Observed,
    size: i32,
    mut annotations: BTreeMap<String, String>,
    plan: &mut Plan,
) -> Option<String> {
    let candidate = observed.candidate.as_ref()?;
    annotations.extend(observed.sizing());
    match template::replica_set(observed.deployment.object(), candidate, size, &annotations) {
        Ok(object) => plan.actions.push(Action::Create { resource: builtin::REPLICA_SET.clone(), object }),
        Err(error) => {
            plan.note("BadTemplate", error.to_string());
            return None;
        }
    }
    tell_scaled(observed, &candidate.name, 0, size, plan);
    Some(candidate.name.clone())
}

/// One patch for all that a set needs: size, annotations, and the new one's time to be available.
fn change(
    observed: &Observed,
    set: &SetRef,
    size: i32,
    rescaled: bool,
    mut annotations: BTreeMap<String, String>,
    is_new: bool,
    plan: &mut Plan,
) {
    let before = asked(set);
    if size != before || (rescaled && before > 0) {
        annotations.extend(observed.sizing());
    }
    let meta = set.object().meta();
    annotations.retain(|key, value| meta.annotation(key) != Some(value));
    let mut patch = json!({});
    if !annotations.is_empty() {
        patch["metadata"]["annotations"] = json!(annotations);
    }
    if size != before {
        patch["spec"]["replicas"] = json!(size);
    }
    let wanted = observed.spec().min_ready_seconds.unwrap_or(0);
    if is_new && set.spec.as_ref().and_then(|s| s.min_ready_seconds).unwrap_or(0) != wanted {
        patch["spec"]["minReadySeconds"] = if wanted == 0 { Value::Null } else { json!(wanted) };
    }
    if patch != json!({}) {
        plan.actions.push(Action::Patch { target: Target::of(&builtin::REPLICA_SET, set.object()), patch });
        tell_scaled(observed, &meta.name, before, size, plan);
    }
}

fn tell_scaled(observed: &Observed, name: &str, from: i32, to: i32, plan: &mut Plan) {
    let way = match from.cmp(&to) {
        std::cmp::Ordering::Less => "up",
        std::cmp::Ordering::Greater => "down",
        std::cmp::Ordering::Equal => return,
    };
    let message = format!("Scaled {way} replica set {name} from {from} to {to}");
    plan.event(observed.target(), EventType::Normal, "ScalingReplicaSet", message);
}

/// Deletes the oldest empty sets beyond the history limit, once the rollout is done, or while none may run.
fn prune(observed: &Observed, plan: &mut Plan) {
    let Some(limit) = observed.spec().revision_history_limit.filter(|l| *l < i32::MAX) else { return };
    if !observed.is_paused() && !progress::is_complete_as_written(observed) {
        return;
    }
    let mut sets: Vec<&SetRef> = observed.old.iter().filter(|s| !s.object().meta().is_deleting()).collect();
    let surplus = sets.len().saturating_sub(usize::try_from(limit).unwrap_or(0));
    sets.sort_by_key(|s| template::revision(s.object().meta()));
    for set in sets.into_iter().take(surplus) {
        if asked(set) == 0 && actual(set) == 0 && is_current(set) {
            plan.actions.push(Action::Delete {
                target: Target::of(&builtin::REPLICA_SET, set.object()),
                propagation: Propagation::Background,
                grace_seconds: None,
            });
        }
    }
}

/// Says what a rollout waits for.
fn explain(observed: &Observed, sizes: &Sizes, plan: &mut Plan) {
    let waiting: i32 = sizes.old.iter().sum();
    if observed.is_paused() && observed.new.is_none() {
        plan.note("DeploymentPaused", "the template changed, but the deployment is paused");
    } else if sizes.new.is_none() || (observed.is_recreate() && observed.old_pods_leaving) {
        plan.note("WaitingForOldPods", "pods of the old template must be gone first (strategy Recreate)");
    } else if waiting > 0 && !observed.is_paused() {
        plan.note(
            "WaitingForNewReplicas",
            format!("{waiting} replicas of old templates stay until new ones are available"),
        );
    }
}
