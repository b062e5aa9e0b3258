//! The count of pods that ended, each exactly once, over any crash. A pod is held by a finalizer until its uid stands in
//! `status.uncountedTerminatedPods`; it is counted when the finalizer is gone and the uid still stands there; both in
//! one write. An index of an indexed job is counted by standing in `completedIndexes`.

use std::collections::{BTreeMap, BTreeSet};

use super::observed::{Work, failures_before, index_of, is_tracked};
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
    /// How often each index has failed, where that is bounded.
    pub failures: BTreeMap<i32, i32>,
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
    for pod in work.pods.iter().filter(|pod| work.is_failed(pod)) {
        if let (Some(index), Meaning::FailsIndex) = (index_of(pod), meaning(work, pod)) {
            tally.failed_indexes.insert(index);
        }
    }
    tally.failures = failures(work);
    let past = tally.failures.iter().filter(|(_, n)| **n > limit).map(|(index, _)| *index);
    tally.failed_indexes.extend(past);
    let completed = &tally.completed;
    tally.failed_indexes.retain(|index| !completed.contains(index));
}

/// How often each index has failed: what its pods say of those that are gone, and the pods that are there.
fn failures(work: &Work) -> BTreeMap<i32, i32> {
    let (mut all, mut there) = (BTreeMap::<i32, i32>::new(), BTreeMap::<i32, i32>::new());
    for pod in &work.pods {
        let Some(index) = index_of(pod) else { continue };
        let counts = work.is_failed(pod) && meaning(work, pod) != Meaning::Ignored;
        *there.entry(index).or_default() += i32::from(counts);
        let known = failures_before(pod).saturating_add(i32::from(counts));
        let most = all.entry(index).or_default();
        *most = known.max(*most);
    }
    // Pods that were made before this was written down on them are counted as far as they are there.
    for (index, n) in there {
        if let Some(most) = all.get_mut(&index) {
            *most = n.max(*most);
        }
    }
    all
}

/// Keeps the last pod that failed of an index until there is one in its place, which knows of the failure: what is
/// counted by pods must not be forgotten with them.
pub fn keep_last(work: &Work, tally: &mut Tally) {
    if work.spec().and_then(|s| s.backoff_limit_per_index).is_none() {
        return;
    }
    let knows = |index: i32, before: i32| {
        let same = work.pods.iter().filter(|pod| index_of(pod) == Some(index));
        same.into_iter().any(|pod| failures_before(pod) > before)
    };
    let done: BTreeSet<i32> = tally.completed.union(&tally.failed_indexes).copied().collect();
    tally.release.retain(|pod| match index_of(pod) {
        Some(index) if pods::phase(pod) != "Succeeded" && meaning(work, pod) != Meaning::Ignored => {
            let in_range = work.completions().is_none_or(|completions| index < completions);
            done.contains(&index) || !in_range || knows(index, failures_before(pod))
        }
        _ => true,
    });
}
