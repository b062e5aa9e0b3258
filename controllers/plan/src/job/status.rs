//! What a job's status says: counts, indexes, pods that are about to be counted, and the conditions of its end.

use jiff::Timestamp;
use serde_json::{Value, json};
use strata_model::condition::{self, Condition, rfc3339};

use super::indexes;
use super::observed::Work;
use super::tally::Tally;
use super::verdict::Verdict;
use crate::controller::{Action, EventType, Plan};
use crate::pods;
use crate::status::{count, difference};

/// Since when it runs: a job that rests does not.
pub fn started(work: &Work, now: Timestamp) -> Option<Timestamp> {
    if work.is_suspended() {
        return None;
    }
    let written = work.job.status.as_ref().and_then(|s| s.start_time.as_ref());
    Some(written.map_or(now, |time| time.0))
}

/// Writes what is so, where it differs from what is written; and tells of what changed by it.
pub fn write(work: &Work, tally: &Tally, verdict: Option<&Verdict>, now: Timestamp, plan: &mut Plan) {
    let (mut active, mut ready, mut terminating) = (0, 0, 0);
    for pod in &work.pods {
        let ended = pods::is_finished(pod);
        active += i32::from(pods::is_active(pod.object(), pod));
        ready += i32::from(pods::is_active(pod.object(), pod) && pods::ready_since(pod).is_some());
        terminating += i32::from(pod.object().meta().is_deleting() && !ended);
    }
    let mut conditions = written(work);
    let mut told = Vec::new();
    if let Some(verdict) = verdict {
        let over = active == 0 && terminating == 0 && tally.is_complete();
        judge(&mut conditions, verdict, over, now, &mut told);
    } else if !work.is_finished() {
        rest(work, &mut conditions, now, &mut told);
    }
    let completed = condition::find(&conditions, "Complete").is_some_and(|c| c.status == "True");
    let running = started(work, now).map(rfc3339);
    let text = |set: &std::collections::BTreeSet<i32>| match set.is_empty() {
        true => Value::Null,
        false => json!(indexes::text(set)),
    };
    let by_index = work.spec().is_some_and(|s| s.backoff_limit_per_index.is_some());
    let mut fields = json!({
        "active": count(active), "ready": ready, "terminating": terminating,
        "succeeded": count(tally.succeeded), "failed": count(tally.failed),
        "startTime": if work.is_finished() { kept(work, "startTime") } else { json!(running) },
        "completionTime": match (completed, kept(work, "completionTime")) {
            (true, Value::Null) => json!(rfc3339(now)),
            (_, kept) => kept,
        },
        "conditions": if conditions.is_empty() { Value::Null } else { json!(conditions) },
        "completedIndexes": if work.is_indexed() { text(&tally.completed) } else { Value::Null },
        "failedIndexes": if by_index { json!(indexes::text(&tally.failed_indexes)) } else { Value::Null },
    });
    if let Some(uncounted) = uncounted(work, tally) {
        fields["uncountedTerminatedPods"] = uncounted;
    }
    if let Some(status) = difference(work.job.object(), fields) {
        plan.actions.push(Action::Status { target: work.target(), status });
        for (type_, reason, message) in told {
            plan.event(work.target(), type_, reason, message);
        }
    }
}

/// A field of the status as it is written.
fn kept(work: &Work, field: &str) -> Value {
    let value = work.job.object().to_value().unwrap_or_default();
    value["status"].get(field).cloned().unwrap_or_default()
}

fn written(work: &Work) -> Vec<Condition> {
    serde_json::from_value(kept(work, "conditions")).unwrap_or_default()
}

/// The patch of the uids that are about to be counted; `None` where they stand there.
fn uncounted(work: &Work, tally: &Tally) -> Option<Value> {
    let mut new = json!({});
    for (field, uids) in [("succeeded", &tally.uncounted_succeeded), ("failed", &tally.uncounted_failed)] {
        if !uids.is_empty() {
            new[field] = json!(uids);
        }
    }
    let old = kept(work, "uncountedTerminatedPods");
    if old == new {
        return None;
    }
    // A merge patch takes away only what it names.
    for field in old.as_object().into_iter().flat_map(|fields| fields.keys()) {
        if new.get(field).is_none() {
            new[field.as_str()] = Value::Null;
        }
    }
    Some(new)
}

type Told = Vec<(EventType, &'static str, String)>;

/// First the verdict, and once every pod has ended and is counted, the end.
fn judge(conditions: &mut Vec<Condition>, verdict: &Verdict, over: bool, now: Timestamp, told: &mut Told) {
    let (target, end) = match verdict.success {
        true => ("SuccessCriteriaMet", "Complete"),
        false => ("FailureTarget", "Failed"),
    };
    let say = |type_: &str| Condition {
        type_: type_.to_owned(),
        status: "True".to_owned(),
        reason: verdict.reason.to_owned(),
        message: verdict.message.clone(),
        ..Condition::default()
    };
    condition::set(conditions, say(target), now);
    if over && condition::set(conditions, say(end), now) {
        told.push(match verdict.success {
            true => (EventType::Normal, "Completed", "Job completed".to_owned()),
            false => (EventType::Warning, verdict.reason, verdict.message.clone()),
        });
    }
}

/// Whether it rests, said only by a job that ever did.
fn rest(work: &Work, conditions: &mut Vec<Condition>, now: Timestamp, told: &mut Told) {
    let suspended = work.is_suspended();
    if !suspended && condition::find(conditions, "Suspended").is_none() {
        return;
    }
    let (status, reason, message, event) = match suspended {
        true => ("True", "JobSuspended", "Job suspended", "Suspended"),
        false => ("False", "JobResumed", "Job resumed", "Resumed"),
    };
    let new = Condition {
        type_: "Suspended".to_owned(),
        status: status.to_owned(),
        reason: reason.to_owned(),
        message: message.to_owned(),
        ..Condition::default()
    };
    if condition::set(conditions, new, now) {
        told.push((EventType::Normal, event, message.to_owned()));
    }
}
