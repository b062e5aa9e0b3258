//! The DaemonSet controller: holds one pod on every node that suits its template.
//!
//! Owns the pods and revisions that a DaemonSet controls, and its status. What must always hold:
//! * a pod is for one node, said in its node affinity; the scheduler binds it there, or says why it cannot;
//! * a node that suits has one pod of the set, two at most while one takes the other's place;
//! * a node that drives pods off, or does not suit any more, has none; one that is closed for new pods keeps its own;
//! * an outdated pod that is not available is no reason to wait: it is replaced.

mod observed;
mod status;
#[cfg(test)]
mod tests;
mod update;

use jiff::{Timestamp, ToSpan};
use k8s_openapi::api::apps::v1::DaemonSet;
use serde_json::{Value, json};
use strata_model::object::Object;
use strata_model::resource::builtin;

use self::observed::{HASH, Observed, Spot, selector_of};
use crate::controller::{
    Action, CREATED_NAME, Controller, EventType, Key, MapTo, ObserveError, Plan, Propagation, Target, View,
    Watched,
};
use crate::ownership;
use crate::pods::{self, PodRef};
use crate::podtemplate;
use crate::revisions::{self, RevisionRef};

/// Label with the generation of the set that a pod was made in.
const GENERATION: &str = "pod-template-generation";
/// Most pods created or deleted in one turn.
const BURST: usize = 250;
/// How long a pod that failed at once stays, so that one which always fails is made anew at this pace only.
const FAILED_STAYS: i64 = 10;

/// The controller. Has no configuration.
#[derive(Clone, Copy, Debug, Default)]
pub struct DaemonSets;

impl Controller for DaemonSets {
    type Observed = Observed;

    fn name(&self) -> &'static str {
        "daemonset"
    }

    fn watches(&self) -> Vec<Watched> {
        vec![
            Watched::all(&builtin::DAEMON_SET, MapTo::Itself),
            Watched::all(&builtin::POD, MapTo::With(sets_of_pod)),
            Watched::all(&builtin::CONTROLLER_REVISION, MapTo::Controller(&builtin::DAEMON_SET)),
            Watched::all(&builtin::NODE, MapTo::With(all_sets)),
        ]
    }

    fn observe(&self, view: &dyn View, key: &Key) -> Result<Option<Observed>, ObserveError> {
        observed::observe(view, key)
    }

    fn plan(&self, observed: &Observed, now: Timestamp) -> Plan {
        let mut plan = Plan::settled();
        if observed.selector.is_none() {
            plan.note("BadSelector", "the selector is empty or malformed, so it selects no pods");
            return plan;
        }
        if observed.set.object().meta().is_deleting() {
            return plan;
        }
        release(observed, &mut plan);
        observed.claim().adopt(observed.orphans.iter().map(|pod| &**pod.object()), &mut plan);
        let Some(update) = observed.history.hold(&mut plan) else { return plan };
        let hash = observed.history.hash_of(update);
        Turn { observed, hash: &hash, now, plan: &mut plan, left: BURST }.run();
        status::write(observed, &hash, now, &mut plan);
        let limit = observed.spec().and_then(|s| s.revision_history_limit);
        let limit = limit.map_or(revisions::LIMIT, |n| usize::try_from(n).unwrap_or(0));
        let used = |revision: &RevisionRef| {
            let hash = observed.history.hash_of(revision);
            observed
                .owned
                .iter()
                .chain(&observed.orphans)
                .any(|p| p.object().meta().label(HASH) == Some(&hash))
        };
        observed.history.prune(used, limit, &mut plan);
        plan
    }
}

fn all_sets(view: &dyn View, _: &Object) -> Vec<Key> {
    let set = &builtin::DAEMON_SET;
    view.list(&set.id, "").iter().map(|one| Key::new(set, one.key())).collect()
}

/// The keys of a pod: the set that controls it, or those that would adopt it.
fn sets_of_pod(view: &dyn View, pod: &Object) -> Vec<Key> {
    ownership::keys_of_dependent(view, &builtin::DAEMON_SET, pod, |set| {
        let typed = set.typed::<DaemonSet>().ok();
        typed.and_then(selector_of).is_some_and(|s| s.matches(&pod.meta().labels))
    })
}

fn target(pod: &PodRef) -> Target {
    Target::of(&builtin::POD, pod.object())
}

/// Lets go of pods that are not selected any more.
fn release(observed: &Observed, plan: &mut Plan) {
    for pod in &observed.owned {
        if pods::is_active(pod.object(), pod) && !observed.selects(pod) {
            observed.claim().release(pod.object(), plan);
        }
    }
}

/// One turn over the nodes.
struct Turn<'a> {
    observed: &'a Observed,
    /// Hash of the present template.
    hash: &'a str,
    now: Timestamp,
    plan: &'a mut Plan,
    /// How many pods may still be created or deleted.
    left: usize,
}

impl Turn<'_> {
    fn run(&mut self) {
        for pod in self.observed.elsewhere() {
            self.delete(pod);
        }
        for spot in &self.observed.spots {
            self.hold(spot);
        }
        self.update();
        if self.left == 0 {
            self.plan.next = self.plan.next.or_at(self.now);
        }
    }

    /// One pod on a node that suits, none on one that does not. Which of two is the update's business.
    fn hold(&mut self, spot: &Spot) {
        let node = spot.node.object().meta().name.clone();
        let pods = self.observed.pods_on(&node);
        let (ended, live): (Vec<&PodRef>, Vec<&PodRef>) =
            pods.into_iter().partition(|p| pods::is_finished(p));
        let (leaving, live): (Vec<&PodRef>, Vec<&PodRef>) =
            live.into_iter().partition(|p| p.object().meta().is_deleting());
        let mut free = true;
        for pod in ended {
            if !spot.may_stay || self.has_stayed(pod) {
                self.replace_failed(pod, &node);
            } else {
                free = false;
            }
        }
        if !spot.may_stay {
            live.iter().for_each(|pod| self.delete(pod));
        } else if live.is_empty() {
            // The one that leaves still has what its successor needs.
            if spot.should_run && free && leaving.is_empty() {
                self.create(&node);
            }
        } else {
            self.drop_doubles(&live);
        }
    }

    /// Of pods of one template the oldest stays.
    fn drop_doubles(&mut self, live: &[&PodRef]) {
        let is_new = |pod: &PodRef| pod.object().meta().label(HASH) == Some(self.hash);
        let (new, old): (Vec<&PodRef>, Vec<&PodRef>) = live.iter().copied().partition(|p| is_new(p));
        for mut same in [new, old] {
            same.sort_by_cached_key(|p| {
                (pods::node_name(p).is_empty(), p.object().meta().creation_timestamp, p.object().key())
            });
            same.iter().skip(1).for_each(|pod| self.delete(pod));
        }
    }

    fn has_stayed(&mut self, pod: &PodRef) -> bool {
        let made = pod.object().meta().creation_timestamp.unwrap_or(Timestamp::MIN);
        let until = made.checked_add(FAILED_STAYS.seconds()).unwrap_or(Timestamp::MAX);
        if until > self.now {
            self.plan.next = self.plan.next.or_at(until);
        }
        until <= self.now
    }

    fn replace_failed(&mut self, pod: &PodRef, node: &str) {
        if pod.object().meta().is_deleting() {
            return;
        }
        let (reason, word) = match pods::phase(pod) {
            "Failed" => ("FailedDaemonPod", "failed"),
            _ => ("SucceededDaemonPod", "succeeded"),
        };
        let message =
            format!("Found {word} daemon pod {} on node {node}, will try to delete it", pod.object().key());
        let about = Target::of(&builtin::DAEMON_SET, self.observed.set.object());
        let type_ = if word == "failed" { EventType::Warning } else { EventType::Normal };
        self.plan.event(about, type_, reason, message);
        self.delete(pod);
    }

    fn create(&mut self, node: &str) {
        if self.left == 0 {
            return;
        }
        match pod_of(self.observed, self.hash, node) {
            Ok(pod) => {
                self.left -= 1;
                self.plan.actions.push(Action::Create { resource: builtin::POD.clone(), object: pod });
                let about = Target::of(&builtin::DAEMON_SET, self.observed.set.object());
                let message = format!("Created pod: {CREATED_NAME}");
                self.plan.event(about, EventType::Normal, "SuccessfulCreate", message);
            }
            Err(message) => self.plan.note("BadTemplate", message),
        }
    }

    fn delete(&mut self, pod: &PodRef) {
        if self.left == 0 || pod.object().meta().is_deleting() {
            return;
        }
        self.left -= 1;
        self.plan.actions.push(Action::Delete {
            target: target(pod).at_any_revision(),
            propagation: Propagation::Background,
            grace_seconds: None,
        });
        let about = Target::of(&builtin::DAEMON_SET, self.observed.set.object());
        let message = format!("Deleted pod: {}", pod.object().meta().name);
        self.plan.event(about, EventType::Normal, "SuccessfulDelete", message);
    }
}

/// The pod for a node, from the present template.
fn pod_of(observed: &Observed, hash: &str, node: &str) -> Result<Value, String> {
    let set = observed.set.object();
    let mut pod = podtemplate::pod(&observed.value["spec"]["template"], &builtin::DAEMON_SET, set)?;
    pod["metadata"]["generateName"] = json!(format!("{}-", set.meta().name));
    let labels = &mut pod["metadata"]["labels"];
    labels[HASH] = json!(hash);
    labels[GENERATION] = json!(set.meta().generation.to_string());
    pod["spec"] = observed::for_node(&pod["spec"], node);
    Ok(pod)
}
