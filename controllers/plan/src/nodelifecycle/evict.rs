//! The pods of a node that is lost, tainted or gone: which are driven off, and which end is brought about by force.
//! Knows no other node.

use jiff::Timestamp;
use k8s_openapi::api::core::v1::Node;
use serde_json::{Value, json};
use strata_model::condition::rfc3339;
use strata_model::resource::builtin;

use super::taints::{self, OUT_OF_SERVICE, Stay};
use super::{BATCH, health};
use crate::controller::{Action, EventType, Plan, Propagation, Target};
use crate::pods::{self, PodRef};
use crate::typed::Typed;

/// A node's name, its object while there is one, and the pods bound to it.
#[derive(Debug)]
pub struct Bound {
    /// The name to which the pods are bound.
    pub name: String,
    /// `None`: the node is gone.
    pub node: Option<Typed<Node>>,
    /// In the order of their keys.
    pub pods: Vec<PodRef>,
}

/// The plan for the pods of a node.
pub fn plan(bound: &Bound, now: Timestamp) -> Plan {
    let mut plan = Plan::settled();
    let mut written = 0;
    for pod in &bound.pods {
        if written == BATCH {
            plan.next = plan.next.or_at(now);
            break;
        }
        let before = plan.actions.len();
        match &bound.node {
            None => of_nobody(pod, &bound.name, now, &mut plan),
            Some(node) => of_node(pod, node, now, &mut plan),
        }
        written += usize::from(plan.actions.len() > before);
    }
    plan
}

/// Nobody can end it but we. It has its own time for that first: an agent may still be there, and make its node anew.
fn of_nobody(pod: &PodRef, node: &str, now: Timestamp, plan: &mut Plan) {
    let deadline = pod.object().meta().deletion_timestamp;
    match deadline {
        None if pods::is_finished(pod) => remove(pod, plan),
        None => {
            delete(pod, None, plan);
            let message = format!("the node {node} is gone");
            plan.event(target(pod), EventType::Normal, "NodeGone", message);
        }
        Some(deadline) if deadline > now => plan.next = plan.next.or_at(deadline),
        Some(_) => finish(pod, plan, now, "DeletionByPodGC", &format!("the node {node} is gone")),
    }
}

fn of_node(pod: &PodRef, node: &Typed<Node>, now: Timestamp, plan: &mut Plan) {
    let lost = !health::is_ready(node);
    if pod.object().meta().is_deleting() {
        if lost && taints::drive_off(node).any(|t| t.key == OUT_OF_SERVICE) {
            finish(pod, plan, now, "DeletionByPodGC", "the node is out of service");
        } else if lost {
            let message = format!("pod {} ends when its node is back, or gone", pod.object().key());
            plan.note("NodeLost", message);
        }
        return;
    }
    if pods::is_finished(pod) {
        return;
    }
    match pod.spec.as_ref().map_or(Stay::Forever, |spec| taints::stay(spec, node)) {
        Stay::Until(end) if end <= now => return drive_off(pod, now, plan),
        Stay::Until(end) => plan.next = plan.next.or_at(end),
        Stay::Forever => {}
    }
    if lost && pods::ready_since(pod).is_some() {
        let ready = json!({"type": "Ready", "status": "False", "reason": "NodeNotReady",
            "message": "the node agent does not report", "lastTransitionTime": rfc3339(now)});
        plan.actions.push(Action::Status { target: target(pod), status: pods::with_condition(pod, ready) });
        plan.event(target(pod), EventType::Warning, "NodeNotReady", "Node is not ready");
    }
}

/// Says why, then deletes: so that who looks at how the pod ended knows that it was no fault of its own.
fn drive_off(pod: &PodRef, now: Timestamp, plan: &mut Plan) {
    if !pods::is_true(pod, pods::DISRUPTED) {
        let why = disruption("DeletionByTaintManager", "a taint of its node drives it off", now);
        plan.actions.push(Action::Status { target: target(pod), status: pods::with_condition(pod, why) });
        return;
    }
    delete(pod, None, plan);
    let message = format!("Marking for deletion Pod {}", pod.object().key());
    plan.event(target(pod), EventType::Normal, "TaintManagerEviction", message);
}

/// Brings about by force the end of a pod that is being deleted: it has failed, and then it is gone.
fn finish(pod: &PodRef, plan: &mut Plan, now: Timestamp, reason: &str, message: &str) {
    if pods::is_finished(pod) {
        return remove(pod, plan);
    }
    let mut status = pods::with_condition(pod, disruption(reason, message, now));
    status["phase"] = json!("Failed");
    plan.actions.push(Action::Status { target: target(pod), status });
}

fn remove(pod: &PodRef, plan: &mut Plan) {
    // Held by finalizers, and asked for already: nothing more to do.
    let meta = pod.object().meta();
    if !(meta.is_deleting() && meta.deletion_grace_period_seconds == Some(0)) {
        delete(pod, Some(0), plan);
    }
}

fn delete(pod: &PodRef, grace_seconds: Option<i64>, plan: &mut Plan) {
    plan.actions.push(Action::Delete {
        target: target(pod).at_any_revision(),
        propagation: Propagation::Background,
        grace_seconds,
    });
}

fn target(pod: &PodRef) -> Target {
    Target::of(&builtin::POD, pod.object())
}

fn disruption(reason: &str, message: &str, now: Timestamp) -> Value {
    json!({"type": pods::DISRUPTED, "status": "True", "reason": reason, "message": message,
        "lastTransitionTime": rfc3339(now)})
}
