//! The count of pods that ended, each exactly once, over any crash. A pod is held by a finalizer until its uid stands in
//! `status.uncountedTerminatedPods`; it is counted when the finalizer is gone and the uid still stands there; both in
//! one write. An index of an indexed job is counted by standing in `completedIndexes`.

use std::collections::BTreeSet;

use super::observed::{Work, index_of, is_tracked};
use super::policy::{Meaning, meaning};
use crate::pods::{self, PodRef};

/// Most pods that one turn takes up.
const BATCH: usize = 500;

/// The count after this turn.
#[derive(Debug, Default)]
pub struct Tally {
    /// Pods that succeeded and are counted.
    pub succeeded: i32,
    /// Pods that failed and are counted.
    pub failed: i32,
    /// Uids of pods that succeeded and are counted as soon as their finalizer is gone.
    pub uncounted_succeeded: BTreeSet<String>,
    /// The same of pods that failed.
    pub uncounted_failed: BTreeSet<String>,
    /// Indexes that succeeded.
    pub completed: BTreeSet<i32>,
    /// Indexes that failed for good.
    pub failed_indexes: BTreeSet<i32>,
    /// Pods to be let go, once the status says what is said here.
    pub release: Vec<PodRef>,
    /// Why the job fails because of one pod, if it does.
    pub fails_job: Option<String>,
}

impl Tally {
    /// All that succeeded, counted or about to be.
    pub fn all_succeeded(&self, indexed: bool) -> i32 {
        match indexed {
            true => size(self.completed.len()),
            false => self.succeeded.saturating_add(size(self.uncounted_succeeded.len())),
        }
    }

    /// All that failed, counted or about to be.
    pub fn all_failed(&self) -> i32 {
        self.failed.saturating_add(size(self.uncounted_failed.len()))
    }

    /// Whether every pod that ended is counted.
    pub fn is_complete(&self) -> bool {
        self.uncounted_succeeded.is_empty() && self.uncounted_failed.is_empty() && self.release.is_empty()
    }
}

fn size(n: usize) -> i32 {
    i32::try_from(n).unwrap_or(i32::MAX)
}

/// Counts. `over`: the job has ended, so that a pod that has not is as good as failed.
pub fn count(work: &Work, over: bool) -> Tally {
    let status = work.job.status.as_ref();
    let mut tally = Tally {
        succeeded: status.and_then(|s| s.succeeded).unwrap_or(0),
        failed: status.and_then(|s| s.failed).unwrap_or(0),
        completed: work.completed_indexes(),
        failed_indexes: work.failed_indexes(),
        ..Tally::default()
    };
    let held: BTreeSet<&str> =
        work.pods.iter().filter(|p| is_tracked(p)).map(|p| p.object().meta().uid.as_str()).collect();
    let uncounted = status.and_then(|s| s.uncounted_terminated_pods.as_ref());
    for uid in uncounted.and_then(|u| u.succeeded.as_ref()).into_iter().flatten() {
        match held.contains(uid.as_str()) {
            true => drop(tally.uncounted_succeeded.insert(uid.clone())),
            false => tally.succeeded += 1,
        }
    }
    for uid in uncounted.and_then(|u| u.failed.as_ref()).into_iter().flatten() {
        match held.contains(uid.as_str()) {
            true => drop(tally.uncounted_failed.insert(uid.clone())),
            false => tally.failed += 1,
        }
    }
    let ended = work.pods.iter().filter(|pod| is_tracked(pod) && (over || has_ended(work, pod)));
    for pod in ended.take(BATCH) {
        take(work, pod, &mut tally);
    }
    if work.is_indexed() {
        tally.succeeded = size(tally.completed.len());
        fail_indexes(work, &mut tally);
    }
    tally
}

fn has_ended(work: &Work, pod: &PodRef) -> bool {
    pods::phase(pod) == "Succeeded" || work.is_failed(pod)
}

fn take(work: &Work, pod: &PodRef, tally: &mut Tally) {
    let uid = pod.object().meta().uid.clone();
    let index = index_of(pod);
    let in_range = |index: i32| work.completions().is_none_or(|completions| index < completions);
    if pods::phase(pod) == "Succeeded" {
        match (work.is_indexed(), index) {
            (true, Some(index)) if in_range(index) => drop(tally.completed.insert(index)),
            (true, _) => {}
            (false, _) => drop(tally.uncounted_succeeded.insert(uid)),
        }
    } else if !work.is_indexed() || index.is_some_and(in_range) {
        match meaning(work, pod) {
            Meaning::Ignored => {}
            Meaning::FailsJob(why) => {
                tally.fails_job.get_or_insert(why);
                tally.uncounted_failed.insert(uid);
            }
            Meaning::Counts | Meaning::FailsIndex => drop(tally.uncounted_failed.insert(uid)),
        }
    }
    tally.release.push(pod.clone());
}

/// Indexes that failed more often than each may, or whose failure was said to be final.
fn fail_indexes(work: &Work, tally: &mut Tally) {
    let Some(limit) = work.spec().and_then(|s| s.backoff_limit_per_index) else { return };
    let mut failures: std::collections::BTreeMap<i32, i32> = std::collections::BTreeMap::new();
    for pod in work.pods.iter().filter(|pod| work.is_failed(pod)) {
        let Some(index) = index_of(pod) else { continue };
        match meaning(work, pod) {
            Meaning::Ignored => {}
            Meaning::FailsIndex => drop(tally.failed_indexes.insert(index)),
            Meaning::Counts | Meaning::FailsJob(_) => *failures.entry(index).or_default() += 1,
        }
    }
    tally.failed_indexes.extend(failures.into_iter().filter(|(_, n)| *n > limit).map(|(index, _)| index));
    let completed = &tally.completed;
    tally.failed_indexes.retain(|index| !completed.contains(index));
}
