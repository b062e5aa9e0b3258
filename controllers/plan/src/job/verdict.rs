//! Whether a job has ended, and how: the conditions that lead to its end, in the words of Kubernetes.

use std::collections::BTreeSet;

use jiff::{Timestamp, ToSpan};

use super::indexes;
use super::observed::Work;
use super::tally::Tally;
use crate::pods;

/// How a job ends.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Verdict {
    /// Whether it did what it is there for.
    pub success: bool,
    /// One word.
    pub reason: &'static str,
    /// A sentence.
    pub message: String,
}

impl Verdict {
    fn fail(reason: &'static str, message: impl Into<String>) -> Self {
        Self { success: false, reason, message: message.into() }
    }

    fn succeed(reason: &'static str, message: impl Into<String>) -> Self {
        Self { success: true, reason, message: message.into() }
    }
}

/// What the status says already of how it ends: a verdict is never taken back.
fn given(work: &Work) -> Option<Verdict> {
    let word = |reason: Option<&str>| -> &'static str {
        let known = [
            "BackoffLimitExceeded",
            "DeadlineExceeded",
            "PodFailurePolicy",
            "FailedIndexes",
            "MaxFailedIndexesExceeded",
            "SuccessPolicy",
            "CompletionsReached",
        ];
        known.into_iter().find(|known| Some(*known) == reason).unwrap_or("CompletionsReached")
    };
    if let Some(failing) = work.condition("FailureTarget").or_else(|| work.condition("Failed")) {
        let message = failing.message.clone().unwrap_or_default();
        return Some(Verdict::fail(word(failing.reason.as_deref()), message));
    }
    let met = work.condition("SuccessCriteriaMet").or_else(|| work.condition("Complete"))?;
    Some(Verdict::succeed(word(met.reason.as_deref()), met.message.clone().unwrap_or_default()))
}

/// Decides. `started`: since when it runs, for its deadline.
pub fn decide(work: &Work, tally: &Tally, started: Option<Timestamp>, now: Timestamp) -> Option<Verdict> {
    if let Some(verdict) = given(work) {
        return Some(verdict);
    }
    if let Some(why) = &tally.fails_job {
        return Some(Verdict::fail("PodFailurePolicy", why.clone()));
    }
    let limit = work.spec().and_then(|s| s.backoff_limit).unwrap_or(6);
    let restarts = past_limit_by_restarts(work, limit);
    if tally.all_failed() > limit || restarts {
        return Some(Verdict::fail("BackoffLimitExceeded", "Job has reached the specified backoff limit"));
    }
    if deadline(work, started).is_some_and(|at| at <= now) {
        return Some(Verdict::fail("DeadlineExceeded", "Job was active longer than specified deadline"));
    }
    if let Some(verdict) = by_indexes(work, tally) {
        return Some(verdict);
    }
    let succeeded = tally.all_succeeded(work.is_indexed());
    let reached = match work.completions() {
        Some(completions) => succeeded >= completions,
        None => succeeded > 0 && active(work) == 0,
    };
    reached.then(|| Verdict::succeed("CompletionsReached", "Reached expected number of succeeded pods"))
}

/// When the time of a job is over.
pub fn deadline(work: &Work, started: Option<Timestamp>) -> Option<Timestamp> {
    let seconds = work.spec()?.active_deadline_seconds.filter(|_| !work.is_suspended())?;
    started?.checked_add(seconds.seconds()).ok()
}

fn active(work: &Work) -> usize {
    work.pods.iter().filter(|p| pods::is_active(p.object(), p)).count()
}

/// Pods that restart their containers themselves do not fail: their restarts count.
fn past_limit_by_restarts(work: &Work, limit: i32) -> bool {
    let policy = work.spec().and_then(|s| s.template.spec.as_ref()?.restart_policy.as_deref());
    if policy != Some("OnFailure") {
        return false;
    }
    let restarts = |pod: &pods::PodRef| -> i32 {
        let status = pod.status.as_ref();
        let lists = status.into_iter().flat_map(|s| [&s.container_statuses, &s.init_container_statuses]);
        lists.flatten().flatten().map(|c| c.restart_count).sum()
    };
    let running = work.pods.iter().filter(|p| matches!(pods::phase(p), "Running" | "Pending"));
    let all: i32 = running.map(restarts).sum();
    if limit == 0 { all > 0 } else { all >= limit }
}

fn by_indexes(work: &Work, tally: &Tally) -> Option<Verdict> {
    if !work.is_indexed() {
        return None;
    }
    let spec = work.spec()?;
    let rules = spec.success_policy.as_ref().map(|p| p.rules.as_slice()).unwrap_or_default();
    for (number, rule) in rules.iter().enumerate() {
        let wanted: Option<BTreeSet<i32>> = rule.succeeded_indexes.as_deref().map(indexes::parse);
        let met = wanted.as_ref().map_or(tally.completed.len(), |w| w.intersection(&tally.completed).count());
        let needed = rule.succeeded_count.and_then(|n| usize::try_from(n).ok());
        let needed = needed.or(wanted.map(|w| w.len())).unwrap_or(usize::MAX);
        if met >= needed {
            return Some(Verdict::succeed("SuccessPolicy", format!("Matched rules at index {number}")));
        }
    }
    let failed = i32::try_from(tally.failed_indexes.len()).unwrap_or(i32::MAX);
    if spec.max_failed_indexes.is_some_and(|most| failed > most) {
        let message = "Job has exceeded the specified maximal number of failed indexes";
        return Some(Verdict::fail("MaxFailedIndexesExceeded", message));
    }
    let done = tally.completed.len() + tally.failed_indexes.len();
    let all = work.completions().and_then(|n| usize::try_from(n).ok())?;
    (failed > 0 && done >= all).then(|| Verdict::fail("FailedIndexes", "Job has failed indexes"))
}
