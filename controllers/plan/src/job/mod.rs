//! The Job controller: runs pods until enough of them have succeeded, and counts each that ended exactly once.
//!
//! Owns the pods that a Job controls, their finalizer, and the Job's status. What must always hold:
//! * a pod that ended is counted once, whatever dies in between (see `tally`);
//! * a job that has ended, well or not, makes no pods, and its end is never taken back;
//! * the end is said only when every pod has ended and is counted;
//! * pods of a job that is gone are let go, uncounted.
//!
//! The status goes before the finalizers that it speaks of, and both before pods are made: an API that refuses pods must
//! not hold up the count.

mod indexes;
mod observed;
mod policy;
mod status;
mod tally;
#[cfg(test)]
mod tests;
mod verdict;
mod workers;

use jiff::{Timestamp, ToSpan};
use serde_json::json;
use strata_model::object::Object;
use strata_model::resource::builtin;

use self::observed::{Observed, TRACKING, Work, selector_of};
use self::tally::Tally;
use crate::controller::{
    Action, Controller, Key, MapTo, ObserveError, Plan, Propagation, Target, View, Watched,
};
use crate::ownership::{self, Claim};
use crate::pods::PodRef;

/// Who holds a job, where its spec says so; another name means another controller.
const MANAGER: &str = "kubernetes.io/job-controller";

/// The controller. Has no configuration.
#[derive(Clone, Copy, Debug, Default)]
pub struct Jobs;

impl Controller for Jobs {
    type Observed = Observed;

    fn name(&self) -> &'static str {
        "job"
    }

    fn watches(&self) -> Vec<Watched> {
        vec![
            Watched::all(&builtin::JOB, MapTo::Itself),
            Watched::all(&builtin::POD, MapTo::With(jobs_of_pod)),
        ]
    }

    fn observe(&self, view: &dyn View, key: &Key) -> Result<Option<Observed>, ObserveError> {
        observed::observe(view, key)
    }

    fn plan(&self, observed: &Observed, now: Timestamp) -> Plan {
        let mut plan = Plan::settled();
        match observed {
            Observed::Orphans(pods) => pods.iter().for_each(|pod| release(pod, &mut plan)),
            Observed::Job(work) => hold(work, now, &mut plan),
        }
        plan
    }
}

/// The keys of a pod: the job that controls it, or every job that would adopt it.
fn jobs_of_pod(view: &dyn View, pod: &Object) -> Vec<Key> {
    ownership::keys_of_dependent(view, &builtin::JOB, pod, |job| {
        job.typed().ok().and_then(selector_of).is_some_and(|selector| selector.matches(&pod.meta().labels))
    })
}

fn hold(work: &Work, now: Timestamp, plan: &mut Plan) {
    let manager = work.spec().and_then(|s| s.managed_by.as_deref());
    if manager.is_some_and(|manager| manager != MANAGER) {
        return;
    }
    let finished = work.is_finished();
    let mut tally = tally::count(work, finished);
    work.strangers.iter().for_each(|pod| release(pod, plan));
    if finished {
        status::write(work, &tally, None, now, plan);
        settle(&tally, plan);
        return expire(work, now, plan);
    }
    let started = status::started(work, now);
    let verdict = verdict::decide(work, &tally, started, now);
    if verdict.is_none()
        && let Some(at) = verdict::deadline(work, started)
    {
        plan.next = plan.next.or_at(at);
    }
    status::write(work, &tally, verdict.as_ref(), now, plan);
    if verdict.is_none() && !work.is_suspended() {
        tally::keep_last(work, &mut tally);
    }
    settle(&tally, plan);
    if verdict.is_some() || work.is_suspended() {
        return workers::stop(work, plan);
    }
    adopt(work, plan);
    workers::hold(work, &tally, now, plan);
}

/// Lets pods go that the status knows now.
fn settle(tally: &Tally, plan: &mut Plan) {
    tally.release.iter().for_each(|pod| release(pod, plan));
}

fn release(pod: &PodRef, plan: &mut Plan) {
    let rest: Vec<&String> = pod.object().meta().finalizers.iter().filter(|f| *f != TRACKING).collect();
    let finalizers = if rest.is_empty() { json!(null) } else { json!(rest) };
    let target = Target::of(&builtin::POD, pod.object());
    plan.actions.push(Action::Patch { target, patch: json!({"metadata": {"finalizers": finalizers}}) });
}

/// Takes pods that it selects and nobody controls, each held until it is counted.
fn adopt(work: &Work, plan: &mut Plan) {
    let claim = Claim { owner_type: &builtin::JOB, owner: work.job.object(), dependents: &builtin::POD };
    claim.adopt_with(work.orphans.iter().map(|pod| &**pod.object()), plan, |pod, patch| {
        let mut finalizers = pod.meta().finalizers.clone();
        if finalizers.iter().all(|f| f != TRACKING) {
            finalizers.push(TRACKING.to_owned());
            patch["metadata"]["finalizers"] = json!(finalizers);
        }
    });
}

/// Deletes a job that ended long enough ago.
fn expire(work: &Work, now: Timestamp, plan: &mut Plan) {
    let Some(seconds) = work.spec().and_then(|s| s.ttl_seconds_after_finished) else { return };
    let end = work.condition("Complete").or_else(|| work.condition("Failed"));
    let Some(ended) = end.and_then(|c| c.last_transition_time.as_ref()) else { return };
    let due = ended.0.checked_add(i64::from(seconds).seconds()).unwrap_or(Timestamp::MAX);
    if now < due {
        plan.next = plan.next.or_at(due);
        return;
    }
    plan.actions.push(Action::Delete {
        target: work.target(),
        propagation: Propagation::Foreground,
        grace_seconds: None,
    });
}
