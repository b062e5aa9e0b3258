//! What is known of each node, and what its object is to say: conditions that nobody stands by any more, and taints.
//! Knows no pod.

use std::collections::BTreeMap;

use jiff::{SignedDuration, Timestamp};
use k8s_openapi::api::coordination::v1::Lease;
use k8s_openapi::api::core::v1::{Node, NodeCondition};
use serde_json::{Value, json};
use strata_model::condition::rfc3339;
use strata_model::resource::builtin;

use super::zones::{self, Count};
use super::{BATCH, NodeLifecycle, taints};
use crate::controller::{Action, EventType, Plan, Target};
use crate::typed::Typed;

/// Conditions that only an agent can speak for.
const SPOKEN_FOR: [&str; 4] = ["MemoryPressure", "DiskPressure", "PIDPressure", "Ready"];

/// A node and its lease.
#[derive(Debug)]
pub struct Seen {
    /// The node.
    pub node: Typed<Node>,
    /// The lease of its name, where there is one.
    pub lease: Option<Typed<Lease>>,
}

/// A condition of a node.
pub fn condition<'a>(node: &'a Node, type_: &str) -> Option<&'a NodeCondition> {
    node.status.as_ref()?.conditions.as_ref()?.iter().find(|c| c.type_ == type_)
}

/// What the condition `Ready` says; `False` where nobody said anything.
pub fn ready_status(node: &Node) -> &str {
    condition(node, "Ready").map_or("False", |c| c.status.as_str())
}

/// Whether a node says that it takes pods.
pub fn is_ready(node: &Node) -> bool {
    ready_status(node) == "True"
}

impl Seen {
    /// The last sign of life: the lease, what the agent said of itself, or that the node was made.
    fn heard_at(&self) -> Option<Timestamp> {
        let renewed = self.lease.as_ref().and_then(|l| l.spec.as_ref()?.renew_time.as_ref()).map(|t| t.0);
        let said = condition(&self.node, "Ready").filter(|c| c.status != "Unknown").and_then(|c| {
            let times = [c.last_heartbeat_time.as_ref(), c.last_transition_time.as_ref()];
            times.into_iter().flatten().map(|t| t.0).max()
        });
        [renewed, said, self.node.object().meta().creation_timestamp].into_iter().flatten().max()
    }

    /// Until when silence is no reason to worry.
    fn trusted_until(&self, settings: &NodeLifecycle) -> Timestamp {
        let heard = self.heard_at().unwrap_or(settings.since).max(settings.since);
        let grace = SignedDuration::try_from(settings.grace).unwrap_or(SignedDuration::MAX);
        let grace = grace.max(self.rhythm());
        heard.checked_add(grace).unwrap_or(Timestamp::MAX)
    }

    /// What a healthy agent's silence lasts at most: it renews its lease four times while that holds, and may be late by
    /// half of that. A grace below it would give up nodes between two of their signs of life.
    fn rhythm(&self) -> SignedDuration {
        let spec = self.lease.as_ref().and_then(|lease| lease.spec.as_ref());
        let seconds = spec.and_then(|spec| spec.lease_duration_seconds).unwrap_or(0).max(0);
        SignedDuration::from_millis(i64::from(seconds) * 1000 * 3 / 8)
    }

    fn is_known_lost(&self) -> bool {
        ready_status(&self.node) == "Unknown"
    }

    fn target(&self) -> Target {
        Target::of(&builtin::NODE, self.node.object())
    }
}

/// Whom to give up now: of each zone the node that is lost for the longest time, if the zone's pace allows another.
/// Nodes that are given up stay so until they are back, but where nobody is ready: then none is.
struct Verdicts {
    given_up: Vec<bool>,
    /// When another one may follow.
    next: Option<Timestamp>,
}

fn verdicts(nodes: &[Seen], now: Timestamp) -> Verdicts {
    let mut zones: BTreeMap<(String, String), Count> = BTreeMap::new();
    let mut last: BTreeMap<(String, String), Timestamp> = BTreeMap::new();
    let mut waiting: BTreeMap<(String, String), (Timestamp, usize)> = BTreeMap::new();
    for (at, seen) in nodes.iter().enumerate() {
        let zone = zones::of(&seen.node);
        let count = zones.entry(zone.clone()).or_default();
        if is_ready(&seen.node) {
            count.ready += 1;
            continue;
        }
        count.lost += 1;
        if let Some(since) = taints::given_up_since(&seen.node) {
            let last = last.entry(zone).or_insert(since);
            *last = since.max(*last);
        } else {
            let since = condition(&seen.node, "Ready").and_then(|c| c.last_transition_time.as_ref());
            let since = since.map_or(Timestamp::MIN, |t| t.0);
            let first = waiting.entry(zone).or_insert((since, at));
            *first = (since, at).min(*first);
        }
    }
    let paces = zones::paces(&zones);
    let any_ready = zones.values().any(|zone| zone.ready > 0);
    let mut verdicts = Verdicts { given_up: vec![false; nodes.len()], next: None };
    for (at, seen) in nodes.iter().enumerate() {
        verdicts.given_up[at] = any_ready && taints::given_up_since(&seen.node).is_some();
    }
    for (zone, (_, at)) in waiting {
        let Some(pace) = paces.get(&zone) else { continue };
        let pace = SignedDuration::try_from(*pace).unwrap_or(SignedDuration::MAX);
        let from =
            last.get(&zone).map_or(Timestamp::MIN, |last| last.checked_add(pace).unwrap_or(Timestamp::MAX));
        if from <= now {
            verdicts.given_up[at] = true;
        } else {
            verdicts.next = Some(verdicts.next.map_or(from, |next| next.min(from)));
        }
    }
    verdicts
}

/// The plan for all nodes.
pub fn plan(nodes: &[Seen], settings: &NodeLifecycle, now: Timestamp) -> Plan {
    let mut plan = Plan::settled();
    let verdicts = verdicts(nodes, now);
    if let Some(next) = verdicts.next {
        plan.note("Damped", "more nodes are lost; they are given up one after the other");
        plan.next = plan.next.or_at(next);
    }
    let mut written = 0;
    for (seen, given_up) in nodes.iter().zip(&verdicts.given_up) {
        if written == BATCH {
            plan.next = plan.next.or_at(now);
            break;
        }
        let until = seen.trusted_until(settings);
        if until > now {
            plan.next = plan.next.or_at(until);
        } else if !seen.is_known_lost() {
            written += 1;
            say_lost(seen, now, &mut plan);
            // The taints follow when that is seen: two writes to one state of an object would be one too many.
            continue;
        }
        written += usize::from(taint(seen, *given_up, now, &mut plan));
    }
    plan
}

/// Takes back, for an agent that is silent, what it said.
fn say_lost(seen: &Seen, now: Timestamp, plan: &mut Plan) {
    let value = seen.node.object().to_value().unwrap_or_default();
    let mut list = value["status"]["conditions"].as_array().cloned().unwrap_or_default();
    let never = condition(&seen.node, "Ready").is_none();
    let (reason, message) = match never {
        true => ("NodeStatusNeverUpdated", "the node agent never reported"),
        false => ("NodeStatusUnknown", "the node agent stopped reporting"),
    };
    for type_ in SPOKEN_FOR {
        let new = json!({"type": type_, "status": "Unknown", "reason": reason, "message": message,
            "lastTransitionTime": rfc3339(now)});
        match list.iter().position(|c| c["type"] == type_) {
            Some(at) if list[at]["status"] == "Unknown" => {}
            Some(at) => list[at] = keeping_heartbeat(&list[at], new),
            None => list.push(new),
        }
    }
    plan.actions.push(Action::Status { target: seen.target(), status: json!({"conditions": list}) });
    let message = format!("Node {} is lost: {message}", seen.node.object().meta().name);
    plan.event(seen.target(), EventType::Normal, "NodeNotReady", message);
}

fn keeping_heartbeat(old: &Value, mut new: Value) -> Value {
    if let Some(at) = old.get("lastHeartbeatTime") {
        new["lastHeartbeatTime"] = at.clone();
    }
    new
}

/// Brings the taints to what they should be. Answers whether that is a write.
fn taint(seen: &Seen, give_up: bool, now: Timestamp, plan: &mut Plan) -> bool {
    let have: Vec<_> = seen.node.spec.iter().flat_map(|s| s.taints.iter().flatten()).cloned().collect();
    let wanted = taints::wanted(&seen.node, give_up, now);
    if have == wanted || seen.node.object().meta().is_deleting() {
        return false;
    }
    let taints = if wanted.is_empty() { Value::Null } else { json!(wanted) };
    plan.actions.push(Action::Patch { target: seen.target(), patch: json!({"spec": {"taints": taints}}) });
    true
}
