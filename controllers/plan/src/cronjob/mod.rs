//! The CronJob controller: makes a Job at each instant of a schedule.
//!
//! Owns the Jobs that a CronJob controls and its status. What must always hold:
//! * an instant has at most one Job: its name is the instant's, so a second one cannot be made;
//! * of instants that were missed only the latest is made up for, and none where the deadline has passed;
//! * clocks may jump: a run is looked for between the last one and now, never counted in timers.

pub mod schedule;
#[cfg(test)]
mod tests;

use jiff::{SignedDuration, Timestamp, ToSpan};
use k8s_openapi::api::batch::v1::{CronJob, CronJobSpec, Job};
use serde_json::{Value, json};
use strata_model::condition::rfc3339;
use strata_model::resource::builtin;

use self::schedule::{MOST_MISSED, Schedule};
use crate::controller::{
    Action, Controller, EventType, Key, MapTo, ObserveError, Plan, Propagation, Target, View, Watched,
};
use crate::ownership;
use crate::status::difference;
use crate::typed::Typed;

/// Annotation of a Job with the instant that it is for.
const SCHEDULED: &str = "batch.kubernetes.io/cronjob-scheduled-timestamp";

/// For how long after an instant it is told what became of its run: what is looked at later is told no more.
const AT_ITS_INSTANT: SignedDuration = SignedDuration::from_secs(1);

/// The controller. Has no configuration.
#[derive(Clone, Copy, Debug, Default)]
pub struct CronJobs;

/// What matters for one CronJob.
#[derive(Debug)]
pub struct Observed {
    cron: Typed<CronJob>,
    /// Jobs that it controls, by name.
    jobs: Vec<Typed<Job>>,
}

impl Controller for CronJobs {
    type Observed = Observed;

    fn name(&self) -> &'static str {
        "cronjob"
    }

    fn watches(&self) -> Vec<Watched> {
        vec![
            Watched::all(&builtin::CRON_JOB, MapTo::Itself),
            Watched::all(&builtin::JOB, MapTo::Controller(&builtin::CRON_JOB)),
        ]
    }

    fn observe(&self, view: &dyn View, key: &Key) -> Result<Option<Observed>, ObserveError> {
        let Some(cron) = view.get(&key.resource, &key.object) else { return Ok(None) };
        let mut jobs = view.owned_by(&builtin::JOB.id, &cron.meta().uid);
        jobs.retain(|job| ownership::controls(&cron, job));
        let jobs = Typed::all(jobs).map_err(ObserveError::at(key))?;
        let cron = Typed::new(cron).map_err(ObserveError::at(key))?;
        Ok(Some(Observed { cron, jobs }))
    }

    fn plan(&self, observed: &Observed, now: Timestamp) -> Plan {
        let mut plan = Plan::settled();
        let Some(spec) = observed.cron.spec.as_ref() else { return plan };
        if observed.cron.object().meta().is_deleting() {
            return plan;
        }
        finished(observed, &mut plan);
        let run = if spec.suspend == Some(true) { None } else { run(observed, spec, now, &mut plan) };
        forget(observed, spec, &mut plan);
        status(observed, run, &mut plan);
        plan
    }
}

impl Observed {
    fn target(&self) -> Target {
        Target::of(&builtin::CRON_JOB, self.cron.object())
    }

    /// Jobs that have not ended.
    fn active(&self) -> impl Iterator<Item = &Typed<Job>> {
        self.jobs.iter().filter(|job| end_of(job).is_none() && !job.object().meta().is_deleting())
    }

    fn last_run(&self) -> Option<Timestamp> {
        Some(self.cron.status.as_ref()?.last_schedule_time.as_ref()?.0)
    }
}

/// `Complete` or `Failed`, once a job has ended.
fn end_of(job: &Job) -> Option<&str> {
    let conditions = job.status.as_ref()?.conditions.as_ref()?;
    let end =
        conditions.iter().find(|c| c.status == "True" && matches!(c.type_.as_str(), "Complete" | "Failed"));
    end.map(|c| c.type_.as_str())
}

/// Tells of jobs that ended since the status was written.
fn finished(observed: &Observed, plan: &mut Plan) {
    let written = observed.cron.status.as_ref().and_then(|s| s.active.as_ref());
    for reference in written.into_iter().flatten() {
        let found =
            observed.jobs.iter().find(|job| reference.uid.as_deref() == Some(&job.object().meta().uid));
        let Some(job) = found else {
            let name = reference.name.as_deref().unwrap_or_default();
            let message = format!("Active job went missing: {name}");
            plan.event(observed.target(), EventType::Normal, "MissingJob", message);
            continue;
        };
        let Some(end) = end_of(job) else { continue };
        let message = format!("Saw completed job: {}, condition: {end}", job.object().meta().name);
        plan.event(observed.target(), EventType::Normal, "SawCompletedJob", message);
    }
}

/// Makes the job that is due, if one is. Answers the instant that the status should name as the last one run.
fn run(observed: &Observed, spec: &CronJobSpec, now: Timestamp, plan: &mut Plan) -> Option<Timestamp> {
    let schedule = match Schedule::parse(&spec.schedule, spec.time_zone.as_deref()) {
        Ok(schedule) => schedule,
        Err(error) => {
            plan.note("UnparseableSchedule", error.to_string());
            plan.event(observed.target(), EventType::Warning, "UnparseableSchedule", error.to_string());
            return None;
        }
    };
    if let Some(next) = schedule.after(now) {
        plan.next = plan.next.or_at(next);
    }
    let created = observed.cron.object().meta().creation_timestamp.unwrap_or(now);
    let deadline = spec.starting_deadline_seconds;
    let earliest = deadline.and_then(|seconds| now.checked_sub(seconds.seconds()).ok());
    let since = observed.last_run().unwrap_or(created).max(earliest.unwrap_or(Timestamp::MIN));
    let due = schedule.due(since, now);
    let Some(at) = due.latest else {
        missed(observed, &schedule, earliest, now, plan);
        return None;
    };
    let name = format!("{}-{}", observed.cron.object().meta().name, at.as_second().div_euclid(60));
    if observed.jobs.iter().any(|job| job.object().meta().name == name) {
        return Some(at);
    }
    if due.count > MOST_MISSED {
        let message = format!(
            "too many missed start times: {}. Set or decrease .spec.startingDeadlineSeconds or check clock skew",
            due.count
        );
        plan.event(observed.target(), EventType::Warning, "TooManyMissedTimes", message);
    }
    if observed.active().next().is_some() {
        let first = now.duration_since(at) < AT_ITS_INSTANT;
        match spec.concurrency_policy.as_deref() {
            Some("Forbid") => {
                let message =
                    "Not starting job because prior execution is running and concurrency policy is Forbid";
                plan.note("JobAlreadyActive", message);
                if let Some(late) = deadline.and_then(|seconds| at.checked_add(seconds.seconds()).ok()) {
                    plan.next = plan.next.or_at(late.max(now));
                }
                if first {
                    plan.event(observed.target(), EventType::Normal, "JobAlreadyActive", message);
                }
                return None;
            }
            Some("Replace") => observed.active().for_each(|job| delete(observed, job, plan)),
            _ => {}
        }
    }
    match job(observed, &name, at) {
        Ok(object) => {
            plan.actions.push(Action::Create { resource: builtin::JOB.clone(), object });
            plan.event(
                observed.target(),
                EventType::Normal,
                "SuccessfulCreate",
                format!("Created job {name}"),
            );
            Some(at)
        }
        Err(message) => {
            plan.note("BadTemplate", message);
            None
        }
    }
}

/// Says of a run that its deadline has passed, at the time it did.
fn missed(
    observed: &Observed,
    schedule: &Schedule,
    earliest: Option<Timestamp>,
    now: Timestamp,
    plan: &mut Plan,
) {
    let (Some(earliest), created) = (earliest, observed.cron.object().meta().creation_timestamp) else {
        return;
    };
    let since = observed.last_run().or(created).unwrap_or(now);
    let Some(at) = (since < earliest).then(|| schedule.due(since, earliest).latest).flatten() else { return };
    plan.note("MissSchedule", format!("the deadline of the run at {at} has passed"));
    let deadline = now.duration_since(earliest);
    if now.duration_since(at + deadline) < AT_ITS_INSTANT {
        let message =
            format!("Missed scheduled time to start a job: {}", at.strftime("%a, %d %b %Y %H:%M:%S +0000"));
        plan.event(observed.target(), EventType::Warning, "MissSchedule", message);
    }
}

fn job(observed: &Observed, name: &str, at: Timestamp) -> Result<Value, String> {
    let cron = observed.cron.object();
    let value = cron.to_value().map_err(|e| e.to_string())?;
    let template = &value["spec"]["jobTemplate"];
    let mut metadata = json!({"name": name, "namespace": cron.meta().namespace});
    for field in ["labels", "annotations"] {
        if !template["metadata"][field].is_null() {
            metadata[field] = template["metadata"][field].clone();
        }
    }
    if !metadata["annotations"].is_object() {
        metadata["annotations"] = json!({});
    }
    metadata["annotations"][SCHEDULED] = json!(rfc3339(at));
    metadata["ownerReferences"] = json!([ownership::controller_reference(&builtin::CRON_JOB, cron)]);
    if template["spec"].is_null() {
        return Err("the job template has no spec".to_owned());
    }
    Ok(json!({
        "apiVersion": builtin::JOB.api_version(), "kind": builtin::JOB.kind,
        "metadata": metadata, "spec": template["spec"],
    }))
}

fn delete(observed: &Observed, job: &Typed<Job>, plan: &mut Plan) {
    plan.actions.push(Action::Delete {
        target: Target::of(&builtin::JOB, job.object()).at_any_revision(),
        propagation: Propagation::Background,
        grace_seconds: None,
    });
    let message = format!("Deleted job {}", job.object().meta().name);
    plan.event(observed.target(), EventType::Normal, "SuccessfulDelete", message);
}

/// Deletes the oldest of the jobs that ended, beyond what is to be kept of each kind.
fn forget(observed: &Observed, spec: &CronJobSpec, plan: &mut Plan) {
    let keep =
        |limit: Option<i32>, default: usize| limit.map_or(default, |n| usize::try_from(n).unwrap_or(0));
    for (end, kept) in [
        ("Complete", keep(spec.successful_jobs_history_limit, 3)),
        ("Failed", keep(spec.failed_jobs_history_limit, 1)),
    ] {
        let ended = |job: &&Typed<Job>| end_of(job) == Some(end) && !job.object().meta().is_deleting();
        let mut jobs: Vec<&Typed<Job>> = observed.jobs.iter().filter(ended).collect();
        let started = |job: &Typed<Job>| job.status.as_ref().and_then(|s| s.start_time.as_ref()).map(|t| t.0);
        jobs.sort_by_key(|job| (started(job), job.object().meta().name.clone()));
        let surplus = jobs.len().saturating_sub(kept);
        jobs.into_iter().take(surplus).for_each(|job| delete(observed, job, plan));
    }
}

fn status(observed: &Observed, run: Option<Timestamp>, plan: &mut Plan) {
    let active: Vec<Value> = observed
        .active()
        .map(|job| {
            let meta = job.object().meta();
            json!({"apiVersion": builtin::JOB.api_version(), "kind": builtin::JOB.kind, "name": meta.name,
                "namespace": meta.namespace, "uid": meta.uid})
        })
        .collect();
    let written = observed.cron.status.as_ref();
    let succeeded = observed.jobs.iter().filter(|job| end_of(job) == Some("Complete"));
    let latest = succeeded.filter_map(|job| Some(job.status.as_ref()?.completion_time.as_ref()?.0)).max();
    let latest = latest.max(written.and_then(|s| s.last_successful_time.as_ref()).map(|t| t.0));
    let fields = json!({
        "active": if active.is_empty() { Value::Null } else { Value::Array(active) },
        "lastScheduleTime": run.max(observed.last_run()).map(rfc3339),
        "lastSuccessfulTime": latest.map(rfc3339),
    });
    if let Some(status) = difference(observed.cron.object(), fields) {
        plan.actions.push(Action::Status { target: observed.target(), status });
    }
}
