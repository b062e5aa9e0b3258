//! The StatefulSet controller: holds numbered pods, each with a name, a template and claims of its own.
//!
//! Owns the pods and revisions that a StatefulSet controls, the claims that are made for its pods, and its status. What
//! must always hold:
//! * there is at most one pod of a number: the name is the number's, so a second one cannot be made;
//! * in order, a pod comes once all below it are available, and goes once all above it are gone; one at a time;
//! * a claim that exists is never changed but in who owns it, and goes only where the policy says so;
//! * a pod that is not ready and outdated is no reason to wait: it is replaced. So a rollout that a bad template broke
//!   goes on as soon as there is a good one.

mod claims;
mod observed;
mod status;
#[cfg(test)]
mod tests;
mod update;

use std::collections::BTreeMap;

use jiff::Timestamp;
use k8s_openapi::api::apps::v1::StatefulSet;
use serde_json::{Value, json};
use strata_model::object::Object;
use strata_model::resource::builtin;

use self::observed::{Observed, ordinal_of, selector_of};
use crate::controller::{
    Action, Controller, EventType, Key, MapTo, ObserveError, Plan, Propagation, Target, View, Watched,
};
use crate::ownership;
use crate::pods::{self, PodRef};
use crate::podtemplate;
use crate::revisions::{self, RevisionRef};

/// Label with the name of the revision that a pod was made from.
pub const REVISION: &str = "controller-revision-hash";
/// Label with the pod's name.
const POD_NAME: &str = "statefulset.kubernetes.io/pod-name";
/// Label with the pod's number.
const POD_INDEX: &str = "apps.kubernetes.io/pod-index";
/// Most pods created or deleted in one turn.
const BURST: usize = 100;

/// The controller. Has no configuration.
#[derive(Clone, Copy, Debug, Default)]
pub struct StatefulSets;

impl Controller for StatefulSets {
    type Observed = Observed;

    fn name(&self) -> &'static str {
        "statefulset"
    }

    fn watches(&self) -> Vec<Watched> {
        vec![
            Watched::all(&builtin::STATEFUL_SET, MapTo::Itself),
            Watched::all(&builtin::POD, MapTo::With(sets_of_pod)),
            Watched::all(&builtin::CONTROLLER_REVISION, MapTo::Controller(&builtin::STATEFUL_SET)),
            Watched::all(&builtin::PERSISTENT_VOLUME_CLAIM, MapTo::With(|_, _| Vec::new())),
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
        let current = status::current(observed, update);
        Turn { observed, update, current, slots: observed.slots(), now, plan: &mut plan, left: BURST }.run();
        status::write(observed, update, now, &mut plan);
        let limit = observed
            .spec()
            .and_then(|s| s.revision_history_limit)
            .map_or(revisions::LIMIT, |n| usize::try_from(n).unwrap_or(0));
        let used = |revision: &RevisionRef| {
            let name = &revision.object().meta().name;
            let pods = observed.owned.iter().chain(&observed.orphans);
            *name == status::current(observed, update).object().meta().name
                || pods.into_iter().any(|p| p.object().meta().label(REVISION) == Some(name))
        };
        observed.history.prune(used, limit, &mut plan);
        plan
    }
}

/// The keys of a pod: the set that controls it, or those that would adopt it.
fn sets_of_pod(view: &dyn View, pod: &Object) -> Vec<Key> {
    ownership::keys_of_dependent(view, &builtin::STATEFUL_SET, pod, |set| {
        let typed = set.typed::<StatefulSet>().ok();
        ordinal_of(&set.meta().name, &pod.meta().name).is_some()
            && typed.and_then(selector_of).is_some_and(|s| s.matches(&pod.meta().labels))
    })
}

fn target(pod: &PodRef) -> Target {
    Target::of(&builtin::POD, pod.object())
}

/// Lets go of pods that are not selected any more, or are not called as ours.
fn release(observed: &Observed, plan: &mut Plan) {
    let name = &observed.set.object().meta().name;
    for pod in &observed.owned {
        let ours = observed.selects(pod) && ordinal_of(name, &pod.object().meta().name).is_some();
        if pods::is_active(pod.object(), pod) && !ours {
            observed.claim().release(pod.object(), plan);
        }
    }
}

/// Why the pods above, or below, must wait.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Gate {
    /// Nothing is in the way.
    Open,
    /// A pod is there, but not available.
    Unhealthy,
    /// A pod is missing, being made or on its way out.
    Moving,
}

/// One turn over the pods.
struct Turn<'a> {
    observed: &'a Observed,
    /// The revision of the present template.
    update: &'a RevisionRef,
    /// The revision that all pods had last.
    current: &'a RevisionRef,
    slots: BTreeMap<i32, &'a PodRef>,
    now: Timestamp,
    plan: &'a mut Plan,
    /// How many pods may still be created or deleted.
    left: usize,
}

impl Turn<'_> {
    fn run(&mut self) {
        claims::hold(self.observed, &self.slots, self.plan);
        let gate = self.fill();
        let ordered = self.observed.is_ordered();
        if ordered && gate != Gate::Open {
            if gate == Gate::Unhealthy {
                self.update(true);
            }
            return;
        }
        if self.shrink() == Gate::Open || !ordered {
            self.update(false);
        }
    }

    /// Makes the pods that are missing, lowest first, and brings their labels to what they should be.
    fn fill(&mut self) -> Gate {
        let mut worst = Gate::Open;
        for ordinal in self.observed.range() {
            let gate = match self.slots.get(&ordinal).copied() {
                None => self.create(ordinal),
                Some(pod) => self.keep(ordinal, pod),
            };
            if gate != Gate::Open && self.observed.is_ordered() {
                return gate;
            }
            if gate != Gate::Open && worst != Gate::Moving {
                worst = gate;
            }
            if self.left == 0 {
                self.plan.next = self.plan.next.or_at(self.now);
                break;
            }
        }
        worst
    }

    fn keep(&mut self, ordinal: i32, pod: &PodRef) -> Gate {
        if pod.object().meta().is_deleting() {
            self.plan.note("Terminating", format!("pod {} is on its way out", pod.object().meta().name));
            return Gate::Moving;
        }
        if pods::is_finished(pod) {
            let message = format!(
                "StatefulSet {} is recreating failed Pod {}",
                self.observed.set.object().key(),
                pod.object().meta().name
            );
            self.plan.event(self.observed.target(), EventType::Warning, "RecreatingFailedPod", message);
            self.delete(pod);
            return Gate::Moving;
        }
        self.label(ordinal, pod);
        match self.observed.available_at(pod) {
            Some(at) if at <= self.now => Gate::Open,
            Some(at) => {
                self.plan.next = self.plan.next.or_at(at);
                Gate::Unhealthy
            }
            None => {
                self.plan.note("NotReady", format!("pod {} is not ready", pod.object().meta().name));
                Gate::Unhealthy
            }
        }
    }

    /// A pod that was adopted may lack what names it.
    fn label(&mut self, ordinal: i32, pod: &PodRef) {
        // One write to a state of an object: one that is about to be adopted is labelled after.
        if pod.object().meta().controller().is_none() {
            return;
        }
        let (name, number) = (pod.object().meta().name.clone(), ordinal.to_string());
        let wrong = [(POD_NAME, name), (POD_INDEX, number)]
            .into_iter()
            .filter(|(key, is)| pod.object().meta().label(key) != Some(is))
            .map(|(key, is)| (key.to_owned(), json!(is)));
        let wrong: serde_json::Map<String, Value> = wrong.collect();
        if !wrong.is_empty() {
            let patch = json!({"metadata": {"labels": wrong}});
            self.plan.actions.push(Action::Patch { target: target(pod), patch });
        }
    }

    fn create(&mut self, ordinal: i32) -> Gate {
        let name = self.observed.pod_name(ordinal);
        if self.observed.foreign.contains(&ordinal) {
            self.plan
                .note("NameTaken", format!("pod {name} is another's, so number {ordinal} cannot be made"));
            return Gate::Moving;
        }
        let old = self.observed.is_rolling() && ordinal < self.observed.partition();
        let revision = if old { self.current } else { self.update };
        let pod = match pod_of(self.observed, revision, ordinal) {
            Ok(pod) => pod,
            Err(message) => {
                self.plan.note("BadTemplate", message);
                return Gate::Moving;
            }
        };
        claims::create(self.observed, ordinal, self.plan);
        self.plan.actions.push(Action::Create { resource: builtin::POD.clone(), object: pod });
        let set = &self.observed.set.object().meta().name;
        let message = format!("create Pod {name} in StatefulSet {set} successful");
        self.plan.event(self.observed.target(), EventType::Normal, "SuccessfulCreate", message);
        self.left -= 1;
        Gate::Moving
    }

    /// Removes the pods that are too many, highest first.
    fn shrink(&mut self) -> Gate {
        let range = self.observed.range();
        let surplus: Vec<&PodRef> =
            self.slots.iter().rev().filter(|(n, _)| !range.contains(n)).map(|(_, pod)| *pod).collect();
        let mut gate = Gate::Open;
        for pod in surplus {
            if self.left == 0 {
                self.plan.next = self.plan.next.or_at(self.now);
                return Gate::Moving;
            }
            gate = Gate::Moving;
            if !pod.object().meta().is_deleting() && !claims::hand_over(self.observed, pod, self.plan) {
                self.delete(pod);
            }
            if self.observed.is_ordered() {
                break;
            }
        }
        gate
    }

    fn delete(&mut self, pod: &PodRef) {
        self.left = self.left.saturating_sub(1);
        self.plan.actions.push(Action::Delete {
            target: target(pod).at_any_revision(),
            propagation: Propagation::Background,
            grace_seconds: None,
        });
        let set = &self.observed.set.object().meta().name;
        let message = format!("delete Pod {} in StatefulSet {set} successful", pod.object().meta().name);
        self.plan.event(self.observed.target(), EventType::Normal, "SuccessfulDelete", message);
    }
}

/// The pod of a number, from the template that a revision keeps.
fn pod_of(observed: &Observed, revision: &RevisionRef, ordinal: i32) -> Result<Value, String> {
    let template = revisions::template_of(revision);
    let mut pod = podtemplate::pod(&template, &builtin::STATEFUL_SET, observed.set.object())?;
    let name = observed.pod_name(ordinal);
    let labels = &mut pod["metadata"]["labels"];
    labels[POD_NAME] = json!(name);
    labels[POD_INDEX] = json!(ordinal.to_string());
    labels[REVISION] = json!(revision.object().meta().name);
    let service = observed.spec().and_then(|s| s.service_name.clone()).unwrap_or_default();
    pod["spec"]["hostname"] = json!(name);
    if !service.is_empty() {
        pod["spec"]["subdomain"] = json!(service);
    }
    claims::mount(observed, ordinal, &mut pod["spec"]);
    pod["metadata"]["name"] = json!(name);
    Ok(pod)
}
