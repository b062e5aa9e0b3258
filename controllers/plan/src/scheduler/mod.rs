//! The scheduler: gives each pod a node.
//!
//! Owns `spec.nodeName` of pods that name `default-scheduler`, and their condition `PodScheduled` while they have
//! none. What must always hold:
//! * no node is given more than it has: all pending pods are planned in one turn over one picture, under one key, and
//!   the next turn waits until that picture holds what this turn did;
//! * a pod that is bound, ends, or is being deleted is not touched;
//! * equal pictures lead to equal choices;
//! * that a pod fits nowhere is written and told once, not once a turn.
//!
//! It wakes when a pod needs a node, when one that held a place is gone, and when a node changes.

#[cfg(test)]
mod tests;

use std::cmp::Reverse;
use std::collections::HashMap;

use jiff::Timestamp;
use k8s_openapi::api::core::v1::{Node, Pod, PodSpec};
use serde_json::{Value, json};
use strata_model::condition::rfc3339;
use strata_model::object::{Object, ObjectKey};
use strata_model::resource::builtin;

use crate::controller::{
    Action, Controller, EventType, Key, MapTo, ObserveError, Plan, Target, View, Watched,
};
use crate::placement::{self, Place};
use crate::pods::{self, PodRef};
use crate::typed::Typed;

/// The name by which pods ask for this scheduler; also where they name none.
pub const NAME: &str = "default-scheduler";
/// Most pods that one turn writes to.
pub const BATCH: usize = 500;

/// The controller. Has no configuration.
#[derive(Clone, Copy, Debug, Default)]
pub struct Scheduler;

/// All pods that need a node, and all nodes with what they hold.
#[derive(Debug)]
pub struct Observed {
    places: Vec<Place>,
    /// Important first, then oldest.
    pending: Vec<PodRef>,
}

impl Controller for Scheduler {
    type Observed = Observed;

    fn name(&self) -> &'static str {
        "scheduler"
    }

    fn watches(&self) -> Vec<Watched> {
        vec![
            Watched::all(&builtin::POD, MapTo::With(pod_matters)),
            Watched::all(&builtin::NODE, MapTo::With(|_, _| vec![queue()])),
        ]
    }

    fn observe(&self, view: &dyn View, key: &Key) -> Result<Option<Observed>, ObserveError> {
        let pods: Vec<PodRef> = Typed::all(view.list(&builtin::POD.id, "")).map_err(ObserveError::at(key))?;
        let (mut pending, others): (Vec<PodRef>, Vec<PodRef>) = pods.into_iter().partition(needs_node);
        if pending.is_empty() {
            return Ok(None);
        }
        pending.sort_by_cached_key(|p| {
            let priority = p.spec.as_ref().and_then(|s| s.priority).unwrap_or(0);
            (Reverse(priority), p.object().meta().creation_timestamp, p.object().key())
        });
        let nodes = Typed::<Node>::all(view.list(&builtin::NODE.id, "")).map_err(ObserveError::at(key))?;
        let mut places: Vec<Place> = nodes.into_iter().map(Place::new).collect();
        let at: HashMap<String, usize> =
            places.iter().enumerate().map(|(at, p)| (p.name().to_owned(), at)).collect();
        for pod in &others {
            if let (Some(at), Some(spec)) = (at.get(pods::node_name(pod)), &pod.spec)
                && !pods::is_finished(pod)
            {
                places[*at].take(spec, owner(pod));
            }
        }
        Ok(Some(Observed { places, pending }))
    }

    fn plan(&self, observed: &Observed, now: Timestamp) -> Plan {
        let mut plan = Plan::settled();
        let mut places = observed.places.clone();
        let mut failed: HashMap<&str, (&PodSpec, String)> = HashMap::new();
        let mut written = 0;
        for pod in &observed.pending {
            let Some(spec) = pod.spec.as_ref() else { continue };
            if written == BATCH {
                // A pod that got its node does not lead here any more, so the rest must be asked for.
                plan.next = plan.next.or_at(now);
                break;
            }
            let known = owner(pod).and_then(|o| failed.get(o)).filter(|(same, _)| *same == spec);
            let chosen = match known {
                Some((_, refusal)) => Err(refusal.clone()),
                None => placement::choose(&places, spec, owner(pod)),
            };
            match chosen {
                Ok(at) => {
                    places[at].take(spec, owner(pod));
                    bind(pod, places[at].name(), &mut plan);
                    written += 1;
                }
                Err(refusal) => {
                    written += usize::from(refuse(pod, &refusal, now, &mut plan));
                    if let Some(owner) = owner(pod) {
                        failed.insert(owner, (spec, refusal));
                    }
                }
            }
        }
        plan
    }
}

/// The one key: the queue of all pods that need a node. It names no object.
pub fn queue() -> Key {
    Key::new(&builtin::POD, ObjectKey::default())
}

/// A pod leads to the queue when it needs a node, or gave up its place on one.
fn pod_matters(view: &dyn View, object: &Object) -> Vec<Key> {
    let there = view.get(&builtin::POD.id, &object.key());
    let gone = there.is_none_or(|p| p.meta().uid != object.meta().uid);
    let Ok(pod) = object.typed::<Pod>() else { return Vec::new() };
    let holds = !pods::node_name(pod).is_empty() && !pods::is_finished(pod);
    if gone || !holds { vec![queue()] } else { Vec::new() }
}

fn needs_node(pod: &PodRef) -> bool {
    let Some(spec) = pod.spec.as_ref() else { return false };
    let ours = matches!(spec.scheduler_name.as_deref().unwrap_or_default(), "" | NAME);
    let gated = spec.scheduling_gates.as_ref().is_some_and(|g| !g.is_empty());
    ours && !gated && pods::node_name(pod).is_empty() && pods::is_active(pod.object(), pod)
}

fn owner(pod: &PodRef) -> Option<&str> {
    pod.object().meta().controller().map(|o| o.uid.as_str())
}

fn bind(pod: &PodRef, node: &str, plan: &mut Plan) {
    // The revision matters beyond the refusal: the next turn waits until the cache shows the pod past it, bound.
    let target = Target::of(&builtin::POD, pod.object());
    plan.actions.push(Action::Bind { target: target.clone(), node: node.to_owned() });
    let message = format!("Successfully assigned {} to {node}", pod.object().key());
    plan.event(target, EventType::Normal, "Scheduled", message);
}

/// Says that a pod fits nowhere, if that is not what is written. Answers whether it was news.
fn refuse(pod: &PodRef, refusal: &str, now: Timestamp, plan: &mut Plan) -> bool {
    plan.note("Unschedulable", format!("pod {}: {refusal}", pod.object().key()));
    let conditions = pod.status.as_ref().and_then(|s| s.conditions.as_ref());
    let written = conditions.into_iter().flatten().find(|c| c.type_ == "PodScheduled");
    let same = written.is_some_and(|c| {
        c.status == "False"
            && c.reason.as_deref() == Some("Unschedulable")
            && c.message.as_deref() == Some(refusal)
    });
    if same {
        return false;
    }
    let since = written.filter(|c| c.status == "False").and_then(|c| c.last_transition_time.as_ref());
    let since = rfc3339(since.map_or(now, |t| t.0));
    let condition = json!({"type": "PodScheduled", "status": "False", "reason": "Unschedulable",
        "message": refusal, "lastProbeTime": null, "lastTransitionTime": since});
    let target = Target::of(&builtin::POD, pod.object());
    plan.actions.push(Action::Status { target: target.clone(), status: with_condition(pod, condition) });
    plan.event(target, EventType::Warning, "FailedScheduling", refusal);
    true
}

/// The patch that sets one condition and keeps the others as they are.
fn with_condition(pod: &PodRef, condition: Value) -> Value {
    let mut value = pod.object().to_value().unwrap_or_default();
    let mut list = match value["status"]["conditions"].take() {
        Value::Array(list) => list,
        _ => Vec::new(),
    };
    list.retain(|c| c["type"] != condition["type"]);
    list.push(condition);
    json!({"conditions": list})
}
