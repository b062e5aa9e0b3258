//! The scheduler: gives each pod a node.
//!
//! Owns `spec.nodeName` of pods that name `default-scheduler`, and their condition `PodScheduled` while they have
//! none. What must always hold:
//! * no node is given more than it has: all pending pods are planned in one turn over one picture, under one key, and
//!   the next turn waits until that picture holds what this turn did;
//! * a pod that is bound, ends, or is being deleted is not touched, but that it may have to make room for a more important
//!   one: then it is deleted, and its place is kept for that one until it is gone;
//! * equal pictures lead to equal choices;
//! * that a pod fits nowhere is written and told once, not once a turn.
//!
//! It wakes when a pod needs a node, when one that held a place is gone, and when a node changes.

#[cfg(test)]
mod tests;

use std::cmp::Reverse;
use std::collections::HashMap;

use jiff::Timestamp;
use k8s_openapi::api::core::v1::Node;
use k8s_openapi::api::policy::v1::PodDisruptionBudget;
use serde_json::json;
use strata_model::condition::rfc3339;
use strata_model::object::{Object, ObjectKey};
use strata_model::resource::{ResourceType, builtin};
use strata_model::selector::Selector;

use crate::controller::{
    Action, Controller, EventType, Key, MapTo, ObserveError, Plan, Propagation, Target, View, Watched,
};
use crate::placement::preempt::{self, Budget, Room};
use crate::placement::topology::{Namespaces, Topology};
use crate::placement::{self, Place, Request};
use crate::pods::body::{Pod, PodSpec};
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
    /// Labels of the namespaces.
    namespaces: Namespaces,
    budgets: Vec<Budget>,
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
            Watched { metadata_only: true, ..nowhere(&builtin::NAMESPACE) },
            nowhere(&builtin::POD_DISRUPTION_BUDGET),
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
            if let Some(at) = at.get(pods::node_name(pod)).filter(|_| !pods::is_finished(pod)) {
                places[*at].host(pod);
            }
        }
        let labels = |n: std::sync::Arc<Object>| (n.meta().name.clone(), n.meta().labels.clone());
        let namespaces = view.list(&builtin::NAMESPACE.id, "").into_iter().map(labels).collect();
        let budgets = view.list(&builtin::POD_DISRUPTION_BUDGET.id, "");
        let budgets = budgets.iter().filter_map(|b| budget(b)).collect();
        Ok(Some(Observed { places, pending, namespaces, budgets }))
    }

    fn plan(&self, observed: &Observed, now: Timestamp) -> Plan {
        let mut plan = Plan::settled();
        let places = observed.places.clone();
        let topology = Topology::new(&places, &observed.namespaces);
        let mut turn =
            Turn { observed, places, topology, failed: HashMap::new(), from: 0, now, plan: &mut plan };
        let (mut written, mut bound, mut lonely) = (0, false, false);
        for pod in &observed.pending {
            if written == BATCH {
                // A pod that got its node does not lead here any more, so the rest must be asked for.
                turn.plan.next = turn.plan.next.or_at(now);
                break;
            }
            match turn.place(pod) {
                Placed::Bound => (bound, written) = (true, written + 1),
                Placed::Told => written += 1,
                Placed::Known => {}
                Placed::Lonely(news) => (lonely, written) = (true, written + usize::from(news)),
            }
        }
        if bound && lonely {
            // One that looks for company may have got it.
            plan.next = plan.next.or_at(now);
        }
        plan
    }
}

/// What came of a pod in a turn.
enum Placed {
    /// It has a node.
    Bound,
    /// It has none, and that is news.
    Told,
    /// It has none, as is known.
    Known,
    /// The same, for want of company; whether it is news.
    Lonely(bool),
}

/// One turn over the pods that need a node.
struct Turn<'a> {
    observed: &'a Observed,
    places: Vec<Place>,
    topology: Topology<'a>,
    /// Why a pod of a controller fits nowhere: the next one of the same spec does not either.
    failed: HashMap<&'a str, (&'a PodSpec, String)>,
    from: usize,
    now: Timestamp,
    plan: &'a mut Plan,
}

impl<'a> Turn<'a> {
    fn place(&mut self, pod: &'a PodRef) -> Placed {
        let Some(spec) = pod.spec.as_deref() else { return Placed::Known };
        if let Some(at) = self.kept_for(pod) {
            let name = self.places[at].name().to_owned();
            self.plan.note("Preempting", format!("pod {} waits until {name} is free", pod.object().key()));
        }
        let known = owner(pod).and_then(|o| self.failed.get(o)).filter(|(same, _)| *same == spec);
        if let Some((_, refusal)) = known {
            let news = refuse(pod, &refusal.clone(), None, self.now, self.plan);
            return if news { Placed::Told } else { Placed::Known };
        }
        let demand = self.topology.demand(&self.places, pod);
        let mut request = Request::new(spec, owner(pod));
        request.company = (!demand.is_free()).then_some((&self.topology, &demand));
        let chosen = placement::choose(&self.places, &request, &mut self.from);
        let refusal = match chosen {
            Ok(at) => {
                self.keep(pod, at);
                bind(pod, self.places[at].name(), self.plan);
                return Placed::Bound;
            }
            Err(refusal) => refusal,
        };
        if let Some(at) = self.kept_for(pod) {
            // Those who make room are on their way out; nobody less important gets it meanwhile.
            self.keep(pod, at);
            return Placed::Known;
        }
        let priority = preempt::priority(pod);
        let room = preempt::may_preempt(pod)
            .then(|| preempt::room(&self.places, &request, priority, &self.observed.budgets))
            .flatten();
        if let Some(room) = room {
            self.make_room(pod, &refusal, room);
            return Placed::Told;
        }
        let news = refuse(pod, &refusal, None, self.now, self.plan);
        if demand.looks_for_company() {
            return Placed::Lonely(news);
        }
        if let Some(owner) = owner(pod) {
            self.failed.insert(owner, (spec, refusal));
        }
        if news { Placed::Told } else { Placed::Known }
    }

    /// The place that others leave for a pod: the one it was promised, while somebody less important is still going.
    fn kept_for(&self, pod: &PodRef) -> Option<usize> {
        let promised = pod.status.as_ref()?.nominated_node_name.as_deref()?;
        let at = self.places.iter().position(|p| p.name() == promised)?;
        let going =
            |p: &&PodRef| p.object().meta().is_deleting() && preempt::priority(p) < preempt::priority(pod);
        self.places[at].residents().iter().find(going).map(|_| at)
    }

    /// Has less important pods go, and keeps their place.
    fn make_room(&mut self, pod: &'a PodRef, refusal: &str, room: Room) {
        let node = self.places[room.at].name().to_owned();
        // The promise comes first: where the plan is cut after it, the next one goes on where this one ended.
        refuse(pod, refusal, Some(&node), self.now, self.plan);
        for victim in &room.victims {
            let target = Target::of(&builtin::POD, victim.object());
            if !pods::is_true(victim, pods::DISRUPTED) {
                let why = json!({"type": pods::DISRUPTED, "status": "True", "reason": "PreemptionByScheduler",
                    "message": "a more important pod needs the place", "lastTransitionTime": rfc3339(self.now)});
                let status = pods::with_condition(victim, why);
                self.plan.actions.push(Action::Status { target: target.clone(), status });
            }
            self.plan.actions.push(Action::Delete {
                target: target.clone().at_any_revision(),
                propagation: Propagation::Background,
                grace_seconds: None,
            });
            let message = format!("Preempted by pod {} on node {node}", pod.object().meta().uid);
            self.plan.event(target, EventType::Normal, "Preempted", message);
        }
        let left = self.places[room.at].emptied();
        let place = std::mem::replace(&mut self.places[room.at], left);
        let goes = |p: &PodRef| room.victims.iter().any(|v| v.object().meta().uid == p.object().meta().uid);
        place.residents().iter().filter(|p| !goes(p)).for_each(|p| self.places[room.at].host(p));
        self.keep(pod, room.at);
    }

    /// Counts a pod where it will be, so that no other is promised what goes with that.
    fn keep(&mut self, pod: &PodRef, at: usize) {
        self.places[at].host(pod);
        self.topology.placed(pod, &self.places[at]);
    }
}

/// Watched, but no reason to look again.
fn nowhere(resource: &ResourceType) -> Watched {
    Watched::all(resource, MapTo::With(|_, _| Vec::new()))
}

/// What a budget protects; `None` where it cannot be read, or protects nobody.
fn budget(object: &Object) -> Option<Budget> {
    let budget = object.typed::<PodDisruptionBudget>().ok()?;
    let selector = Selector::from_body(budget.spec.as_ref()?.selector.as_ref()?).ok()?;
    let allowed = budget.status.as_ref().map_or(0, |s| s.disruptions_allowed);
    Some(Budget { namespace: object.meta().namespace.clone(), selector, allowed })
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

/// Says that a pod fits nowhere, and which node it is promised, if that is not what is written. Answers whether it was
/// news.
fn refuse(pod: &PodRef, refusal: &str, promised: Option<&str>, now: Timestamp, plan: &mut Plan) -> bool {
    plan.note("Unschedulable", format!("pod {}: {refusal}", pod.object().key()));
    let conditions = pod.status.as_ref().and_then(|s| s.conditions.as_ref());
    let written = conditions.into_iter().flatten().find(|c| c.type_ == "PodScheduled");
    let same = written.is_some_and(|c| {
        c.status == "False"
            && c.reason.as_deref() == Some("Unschedulable")
            && c.message.as_deref() == Some(refusal)
    });
    let was_promised =
        pod.status.as_ref().and_then(|s| s.nominated_node_name.as_deref()).filter(|n| !n.is_empty());
    if same && was_promised == promised {
        return false;
    }
    let since = written.filter(|c| c.status == "False").and_then(|c| c.last_transition_time.as_ref());
    let since = rfc3339(since.map_or(now, |t| t.0));
    let condition = json!({"type": "PodScheduled", "status": "False", "reason": "Unschedulable",
        "message": refusal, "lastProbeTime": null, "lastTransitionTime": since});
    let target = Target::of(&builtin::POD, pod.object());
    let mut status = pods::with_condition(pod, condition);
    if was_promised != promised {
        status["nominatedNodeName"] = json!(promised);
    }
    plan.actions.push(Action::Status { target: target.clone(), status });
    plan.event(target, EventType::Warning, "FailedScheduling", refusal);
    true
}
