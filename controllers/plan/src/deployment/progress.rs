//! The status of a Deployment: counts, and the conditions that tell whether it is available and how its rollout goes.

use jiff::{Timestamp, ToSpan};
use k8s_openapi::api::apps::v1::DeploymentCondition;
use serde_json::{Value, json};
use strata_model::condition::{self, Condition, rfc3339};

use super::observed::{Observed, SetRef, actual, asked, available, ready};
use super::template::REVISION_HISTORY;
use crate::controller::{Action, Plan};

/// The rollout is complete.
pub const AVAILABLE: &str = "NewReplicaSetAvailable";
/// The rollout did not move in time. Clients read it.
pub const TIMED_OUT: &str = "ProgressDeadlineExceeded";
const CREATED: &str = "NewReplicaSetCreated";
const FOUND: &str = "FoundNewReplicaSet";
const UPDATED: &str = "ReplicaSetUpdated";
const PAUSED: &str = "DeploymentPaused";
const RESUMED: &str = "DeploymentResumed";
const PROGRESSING: &str = "Progressing";
const FAILURE: &str = "ReplicaFailure";

/// The numbers of a status.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Counts {
    replicas: i32,
    updated: i32,
    ready: i32,
    available: i32,
    unavailable: i32,
}

impl Counts {
    fn reported(observed: &Observed) -> Self {
        let available = observed.sets().map(available).sum();
        let asked: i32 = observed.sets().map(asked).sum();
        Self {
            replicas: observed.sets().map(actual).sum(),
            updated: observed.new.as_ref().map_or(0, actual),
            ready: observed.sets().map(ready).sum(),
            available,
            unavailable: (asked - available).max(0),
        }
    }

    fn written(observed: &Observed) -> Self {
        let Some(status) = observed.deployment.status.as_ref() else { return Self::default() };
        Self {
            replicas: status.replicas.unwrap_or(0),
            updated: status.updated_replicas.unwrap_or(0),
            ready: status.ready_replicas.unwrap_or(0),
            available: status.available_replicas.unwrap_or(0),
            unavailable: status.unavailable_replicas.unwrap_or(0),
        }
    }

    /// Whether the rollout is done, and nothing of the old is left.
    fn is_complete(self, replicas: i32) -> bool {
        self.updated == replicas && self.replicas == replicas && self.available == replicas
    }

    /// Whether the rollout came nearer to its end since `before`.
    fn is_nearer_than(self, before: Self) -> bool {
        self.updated > before.updated
            || self.replicas - self.updated < before.replicas - before.updated
            || self.ready > before.ready
            || self.available > before.available
    }
}

/// Whether the status that is written says that the rollout is done, of the present spec.
pub fn is_complete_as_written(observed: &Observed) -> bool {
    let seen = observed.deployment.status.as_ref().and_then(|s| s.observed_generation).unwrap_or(0);
    let generation = observed.deployment.object().meta().generation;
    seen >= generation && Counts::written(observed).is_complete(observed.replicas())
}

/// Whether the status that is written says, of the present spec, that the rollout of a ReplicaSet missed its deadline.
pub fn is_timed_out_as_written(observed: &Observed, set: &str) -> bool {
    let seen = observed.deployment.status.as_ref().and_then(|s| s.observed_generation).unwrap_or(0);
    let list = written_conditions(observed);
    let progressing = condition::find(&list, PROGRESSING);
    seen >= observed.deployment.object().meta().generation
        && progressing.is_some_and(|c| c.reason == TIMED_OUT && !is_of_another(c, set))
}

/// Takes over from the ReplicaSets that their pods cannot be made, or that they can again.
fn failing(observed: &Observed, list: &mut Vec<Condition>, now: Timestamp) {
    let conditions =
        |set: &SetRef| set.status.as_ref().and_then(|s| s.conditions.clone()).unwrap_or_default();
    let mut all = observed.sets().flat_map(conditions);
    match all.find(|c| c.type_ == FAILURE && c.status == "True") {
        Some(c) => {
            let (reason, message) = (c.reason.unwrap_or_default(), c.message.unwrap_or_default());
            set(list, condition(FAILURE, "True", &reason, message), now);
        }
        None => list.retain(|c| c.type_ != FAILURE),
    }
}

/// Writes the status, if it differs; looks again when the deadline passes. `new` is the name of the ReplicaSet of the
/// present template, if it exists or was created this turn.
pub fn report(observed: &Observed, new: Option<&str>, now: Timestamp, plan: &mut Plan) {
    let counts = Counts::reported(observed);
    let old = written_conditions(observed);
    let mut conditions = old.clone();
    set(&mut conditions, availability(observed, counts), now);
    progressing(observed, counts, new, &mut conditions, now);
    failing(observed, &mut conditions, now);
    if let Some(at) = deadline_of(observed, &conditions).filter(|at| *at > now) {
        plan.next = plan.next.or_at(at);
    }
    let generation = observed.deployment.object().meta().generation;
    let seen = observed.deployment.status.as_ref().and_then(|s| s.observed_generation);
    if counts == Counts::written(observed) && conditions == old && seen.unwrap_or(0) == generation {
        return;
    }
    let shown = |n: i32| if n == 0 { Value::Null } else { json!(n) };
    let status = json!({
        "observedGeneration": generation, "replicas": shown(counts.replicas),
        "updatedReplicas": shown(counts.updated), "readyReplicas": shown(counts.ready),
        "availableReplicas": shown(counts.available), "unavailableReplicas": shown(counts.unavailable),
        "conditions": conditions,
    });
    plan.actions.push(Action::Status { target: observed.target(), status });
}

fn written_conditions(observed: &Observed) -> Vec<Condition> {
    let list = observed.deployment.status.as_ref().and_then(|s| s.conditions.as_ref());
    list.into_iter().flatten().map(from_typed).collect()
}

fn from_typed(c: &DeploymentCondition) -> Condition {
    Condition {
        type_: c.type_.clone(),
        status: c.status.clone(),
        reason: c.reason.clone().unwrap_or_default(),
        message: c.message.clone().unwrap_or_default(),
        last_transition_time: c.last_transition_time.as_ref().map(|t| rfc3339(t.0)),
        last_update_time: c.last_update_time.as_ref().map(|t| rfc3339(t.0)),
    }
}

fn condition(type_: &str, status: &str, reason: &str, message: String) -> Condition {
    Condition {
        type_: type_.to_owned(),
        status: status.to_owned(),
        reason: reason.to_owned(),
        message,
        ..Condition::default()
    }
}

fn set(list: &mut Vec<Condition>, mut new: Condition, now: Timestamp) {
    new.last_update_time = Some(rfc3339(now));
    condition::set(list, new, now);
}

fn availability(observed: &Observed, counts: Counts) -> Condition {
    let enough = counts.available >= observed.limits().min_available();
    let (status, reason, message) = match enough {
        true => ("True", "MinimumReplicasAvailable", "Deployment has minimum availability."),
        false => ("False", "MinimumReplicasUnavailable", "Deployment does not have minimum availability."),
    };
    condition("Available", status, reason, message.to_owned())
}

/// The seconds that a rollout may stand still; `None`: forever.
fn patience(observed: &Observed) -> Option<i32> {
    observed.spec().progress_deadline_seconds.filter(|s| *s < i32::MAX)
}

/// Moves the condition `Progressing` on, in this order: no deadline, paused, resumed, rollout of another set begun,
/// done, nearer to the end, timed out.
fn progressing(
    observed: &Observed,
    counts: Counts,
    new: Option<&str>,
    list: &mut Vec<Condition>,
    now: Timestamp,
) {
    if patience(observed).is_none() {
        list.retain(|c| c.type_ != PROGRESSING);
        return;
    }
    let current = condition::find(list, PROGRESSING).cloned().unwrap_or_default();
    let say = |status: &str, reason: &str, message: String| condition(PROGRESSING, status, reason, message);
    if observed.is_paused() {
        if current.reason != PAUSED && current.reason != TIMED_OUT {
            set(list, say("Unknown", PAUSED, "Deployment is paused".to_owned()), now);
        }
        return;
    }
    if current.reason == PAUSED {
        set(list, say("Unknown", RESUMED, "Deployment is resumed".to_owned()), now);
        return;
    }
    let subject = match new {
        Some(name) => format!("ReplicaSet {name:?}"),
        None => format!("Deployment {:?}", observed.deployment.object().meta().name),
    };
    let begun = new.is_some_and(|name| is_of_another(&current, name));
    if current.reason == AVAILABLE && !begun && counts.replicas == counts.updated {
        return;
    }
    if counts.is_complete(observed.replicas()) && new.is_some() {
        set(list, say("True", AVAILABLE, format!("{subject} has successfully progressed.")), now);
    } else if let Some(name) = new.filter(|_| begun) {
        let reused =
            observed.new.as_ref().is_some_and(|s| s.object().meta().annotation(REVISION_HISTORY).is_some());
        let (reason, word) = if reused { (FOUND, "Found") } else { (CREATED, "Created") };
        set(list, say("True", reason, format!("{word} new replica set {name:?}")), now);
    } else if counts.is_nearer_than(Counts::written(observed)) {
        set(list, say("True", UPDATED, format!("{subject} is progressing.")), now);
        // Each step extends the deadline, also one that says the same as the last.
        let own = list.iter_mut().filter(|c| c.type_ == PROGRESSING);
        own.for_each(|c| c.last_update_time = Some(rfc3339(now)));
    } else if deadline_of(observed, list).is_some_and(|at| at <= now) {
        set(list, say("False", TIMED_OUT, format!("{subject} has timed out progressing.")), now);
    }
}

/// Whether what is written speaks of the rollout of another ReplicaSet, or of none yet.
fn is_of_another(current: &Condition, new: &str) -> bool {
    let speaks_of_a_set = !matches!(current.reason.as_str(), RESUMED | PAUSED);
    speaks_of_a_set && !current.message.contains(&format!("{new:?}"))
}

/// When the rollout times out; `None` where it does not run, or has done so already.
fn deadline_of(observed: &Observed, list: &[Condition]) -> Option<Timestamp> {
    let current = condition::find(list, PROGRESSING)?;
    if observed.is_paused() || matches!(current.reason.as_str(), AVAILABLE | TIMED_OUT) {
        return None;
    }
    let since: Timestamp = current.last_update_time.as_ref()?.parse().ok()?;
    since.checked_add(patience(observed)?.max(0).seconds()).ok()
}
