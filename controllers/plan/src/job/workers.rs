//! The pods that work for a job: how many there should be, which are made and which are too many. A pod that failed is
//! made up for later and later.

use std::collections::BTreeSet;

use jiff::{SignedDuration, Timestamp};
use serde_json::{Value, json};
use strata_model::resource::builtin;

use super::observed::{FAILURES, INDEX, TRACKING, Work, finished_at, index_of};
use super::policy::{Meaning, meaning};
use super::tally::Tally;
use crate::controller::{Action, CREATED_NAME, EventType, Plan, Propagation, Target};
use crate::pods::{self, PodRef};
use crate::podtemplate;

/// Most pods created or deleted in one turn.
const BURST: usize = 100;
/// After the first failure since a success.
const BACKOFF: SignedDuration = SignedDuration::from_secs(10);
/// The longest pause.
const LONGEST_BACKOFF: SignedDuration = SignedDuration::from_secs(600);
/// What a container of an indexed job learns its index by.
const VARIABLE: &str = "JOB_COMPLETION_INDEX";

/// Deletes all that work: the job has ended, or rests.
pub fn stop(work: &Work, plan: &mut Plan) {
    active(work).take(BURST).for_each(|pod| delete(work, pod, plan));
}

/// Makes up what is missing, and deletes what is too much.
pub fn hold(work: &Work, tally: &Tally, now: Timestamp, plan: &mut Plan) {
    let surplus = surplus(work, tally);
    let gone: BTreeSet<&str> = surplus.iter().map(|pod| pod.object().meta().uid.as_str()).collect();
    let stays = |pod: &&PodRef| !gone.contains(pod.object().meta().uid.as_str());
    let leaving = match work.replaces_failed_only() {
        true => {
            work.pods.iter().filter(|p| p.object().meta().is_deleting() && !pods::is_finished(p)).collect()
        }
        false => Vec::new(),
    };
    let there: Vec<&PodRef> = active(work).filter(stays).chain(leaving).collect();
    surplus.into_iter().take(BURST).for_each(|pod| delete(work, pod, plan));
    let missing = wanted(work, tally).saturating_sub(there.len());
    if missing == 0 {
        return;
    }
    if let Some(at) = backoff(work).filter(|at| *at > now) {
        plan.note("BackOff", format!("the next pod is made at {at}, since pods have failed"));
        plan.next = plan.next.or_at(at);
        return;
    }
    let places: Vec<Option<i32>> = match work.is_indexed() {
        true => free_indexes(work, tally, &there).take(missing.min(BURST)).map(Some).collect(),
        false => vec![None; missing.min(BURST)],
    };
    for index in places {
        match pod(work, tally, index) {
            Ok(object) => {
                plan.actions.push(Action::Create { resource: builtin::POD.clone(), object });
                let message = format!("Created pod: {CREATED_NAME}");
                plan.event(work.target(), EventType::Normal, "SuccessfulCreate", message);
            }
            Err(message) => return plan.note("BadTemplate", message),
        }
    }
}

fn active(work: &Work) -> impl Iterator<Item = &PodRef> {
    work.pods.iter().filter(|p| pods::is_active(p.object(), p))
}

/// How many pods should work now.
fn wanted(work: &Work, tally: &Tally) -> usize {
    let succeeded = tally.all_succeeded(work.is_indexed());
    let parallelism = work.parallelism();
    let wanted = match work.completions() {
        // One success says that the work is done: those that still work may end, none is added.
        None if succeeded > 0 => return active(work).count().min(usize::try_from(parallelism).unwrap_or(0)),
        None => parallelism,
        Some(completions) => {
            let failed = i32::try_from(tally.failed_indexes.len()).unwrap_or(i32::MAX);
            completions.saturating_sub(succeeded).saturating_sub(failed).min(parallelism)
        }
    };
    usize::try_from(wanted).unwrap_or(0)
}

/// Pods that work and should not: of an index that is done or double, or more than wanted; the least useful first.
fn surplus<'a>(work: &'a Work, tally: &Tally) -> Vec<&'a PodRef> {
    let mut rest: Vec<&PodRef> = active(work).collect();
    // What runs and is older is worth more.
    rest.sort_by_key(|pod| {
        (
            pods::ready_since(pod).is_none(),
            pods::phase(pod) != "Running",
            pod.object().meta().creation_timestamp,
        )
    });
    let mut surplus = Vec::new();
    if work.is_indexed() {
        let mut taken = BTreeSet::new();
        rest.retain(|pod| {
            let useful = index_of(pod).is_some_and(|index| {
                let in_range = work.completions().is_none_or(|completions| index < completions);
                let open = !tally.completed.contains(&index) && !tally.failed_indexes.contains(&index);
                in_range && open && taken.insert(index)
            });
            if !useful {
                surplus.push(*pod);
            }
            useful
        });
    }
    surplus.extend(rest.into_iter().skip(wanted(work, tally)));
    surplus
}

fn free_indexes<'a>(work: &Work, tally: &'a Tally, there: &[&PodRef]) -> impl Iterator<Item = i32> + use<'a> {
    let taken: BTreeSet<i32> = there.iter().filter_map(|pod| index_of(pod)).collect();
    let all = 0..work.completions().unwrap_or(0);
    all.filter(move |index| {
        !taken.contains(index) && !tally.completed.contains(index) && !tally.failed_indexes.contains(index)
    })
}

/// When the next pod may be made: the longer the more pods have failed in a row.
fn backoff(work: &Work) -> Option<Timestamp> {
    let succeeded = |pod: &&PodRef| pods::phase(pod) == "Succeeded";
    let last_success = work.pods.iter().filter(succeeded).filter_map(finished_at).max();
    let failed =
        work.pods.iter().filter(|pod| pods::phase(pod) == "Failed" && meaning(work, pod) != Meaning::Ignored);
    let ends = failed.filter_map(finished_at).filter(|at| last_success.is_none_or(|success| *at > success));
    let (failures, last) = ends.fold((0u32, None), |(n, last), at| (n + 1, last.max(Some(at))));
    let pause = BACKOFF.saturating_mul(1 << failures.saturating_sub(1).min(16)).min(LONGEST_BACKOFF);
    last.map(|last: Timestamp| last.checked_add(pause).unwrap_or(Timestamp::MAX))
}

fn delete(work: &Work, pod: &PodRef, plan: &mut Plan) {
    plan.actions.push(Action::Delete {
        target: Target::of(&builtin::POD, pod.object()).at_any_revision(),
        propagation: Propagation::Background,
        grace_seconds: None,
    });
    let message = format!("Deleted pod: {}", pod.object().meta().name);
    plan.event(work.target(), EventType::Normal, "SuccessfulDelete", message);
}

/// A pod of the template, held until it is counted.
fn pod(work: &Work, tally: &Tally, index: Option<i32>) -> Result<Value, String> {
    let job = work.job.object();
    let value = job.to_value().map_err(|e| e.to_string())?;
    let mut pod = podtemplate::pod(&value["spec"]["template"], &builtin::JOB, job)?;
    let mut finalizers: Vec<Value> = pod["metadata"]["finalizers"].as_array().cloned().unwrap_or_default();
    finalizers.push(json!(TRACKING));
    pod["metadata"]["finalizers"] = Value::Array(finalizers);
    let name = &job.meta().name;
    let Some(index) = index else {
        pod["metadata"]["generateName"] = json!(format!("{name}-"));
        return Ok(pod);
    };
    pod["metadata"]["generateName"] = json!(format!("{name}-{index}-"));
    for place in ["labels", "annotations"] {
        if !pod["metadata"][place].is_object() {
            pod["metadata"][place] = json!({});
        }
        pod["metadata"][place][INDEX] = json!(index.to_string());
    }
    if work.spec().is_some_and(|s| s.backoff_limit_per_index.is_some()) {
        let failures = tally.failures.get(&index).copied().unwrap_or(0);
        pod["metadata"]["annotations"][FAILURES] = json!(failures.to_string());
    }
    if pod["spec"]["hostname"].is_null() {
        pod["spec"]["hostname"] = json!(format!("{name}-{index}"));
    }
    let field =
        json!({"fieldRef": {"apiVersion": "v1", "fieldPath": format!("metadata.annotations['{INDEX}']")}});
    for list in ["containers", "initContainers"] {
        for container in pod["spec"][list].as_array_mut().into_iter().flatten() {
            tell(container, &field);
        }
    }
    Ok(pod)
}

fn tell(container: &mut Value, field: &Value) {
    if !container["env"].is_array() {
        container["env"] = json!([]);
    }
    let Some(env) = container["env"].as_array_mut() else { return };
    if env.iter().all(|variable| variable["name"] != VARIABLE) {
        env.push(json!({"name": VARIABLE, "valueFrom": field}));
    }
}
