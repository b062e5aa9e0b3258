//! What a job's controller sees: the job, its pods, and what its status says of pods that are counted already.

use std::collections::BTreeSet;

use jiff::Timestamp;
use k8s_openapi::api::batch::v1::{Job, JobSpec};
use strata_model::object::ObjectKey;
use strata_model::resource::builtin;
use strata_model::selector::Selector;

use super::indexes;
use crate::controller::{Key, ObserveError, Target, View};
use crate::ownership;
use crate::pods::{self, PodRef};
use crate::typed::Typed;

/// The finalizer that holds a pod until it is counted.
pub const TRACKING: &str = "batch.kubernetes.io/job-tracking";
/// Annotation and label with the index of a pod of an indexed job.
pub const INDEX: &str = "batch.kubernetes.io/job-completion-index";

/// Annotation of a pod of a job that bounds the failures of each index: how often the index had failed before it.
pub const FAILURES: &str = "batch.kubernetes.io/job-index-failure-count";

/// What matters for one key.
#[derive(Debug)]
pub enum Observed {
    /// A job that is there.
    Job(Box<Work>),
    /// Pods whose job is gone or going: nobody will count them.
    Orphans(Vec<PodRef>),
}

/// A job and its pods.
#[derive(Debug)]
pub struct Work {
    /// The job.
    pub job: Typed<Job>,
    /// Its pods, by name.
    pub pods: Vec<PodRef>,
    /// Pods that it selects and nobody controls.
    pub orphans: Vec<PodRef>,
    /// Pods of a job that had its name before, held for a count that nobody will make.
    pub strangers: Vec<PodRef>,
}

/// Gathers what matters for a key.
pub fn observe(view: &dyn View, key: &Key) -> Result<Option<Observed>, ObserveError> {
    let job = view.get(&builtin::JOB.id, &key.object).filter(|job| !job.meta().is_deleting());
    let uid = job.as_ref().map(|job| job.meta().uid.clone()).unwrap_or_default();
    let mut left = view.list(&builtin::POD.id, &key.object.namespace);
    left.retain(|pod| {
        let owner = pod.meta().controller().filter(|o| o.kind == builtin::JOB.kind);
        is_tracked_name(pod.meta().finalizers.as_slice())
            && owner.is_some_and(|o| o.name == key.object.name && o.uid != uid)
    });
    let strangers = Typed::all(left).map_err(ObserveError::at(key))?;
    let Some(job) = job else {
        return Ok((!strangers.is_empty()).then_some(Observed::Orphans(strangers)));
    };
    let mut owned = view.owned_by(&builtin::POD.id, &job.meta().uid);
    owned.retain(|pod| ownership::controls(&job, pod));
    let pods = Typed::all(owned).map_err(ObserveError::at(key))?;
    let job = Typed::<Job>::new(job).map_err(ObserveError::at(key))?;
    let orphans = match selector_of(&job) {
        Some(selector) => {
            let mut orphans = view.orphans(&builtin::POD.id, &key.object.namespace);
            orphans.retain(|pod| selector.matches(&pod.meta().labels) && !pod.meta().is_deleting());
            Typed::all(orphans).map_err(ObserveError::at(key))?
        }
        None => Vec::new(),
    };
    Ok(Some(Observed::Job(Box::new(Work { job, pods, orphans, strangers }))))
}

/// The selector of a job; `None` where it selects nothing.
pub fn selector_of(job: &Job) -> Option<Selector> {
    let selector = Selector::from_body(job.spec.as_ref()?.selector.as_ref()?).ok()?;
    (!selector.is_everything()).then_some(selector)
}

fn is_tracked_name(finalizers: &[String]) -> bool {
    finalizers.iter().any(|f| f == TRACKING)
}

/// Whether a pod is held until it is counted.
pub fn is_tracked(pod: &PodRef) -> bool {
    is_tracked_name(&pod.object().meta().finalizers)
}

/// The index of a pod of an indexed job.
pub fn index_of(pod: &PodRef) -> Option<i32> {
    pod.object().meta().annotation(INDEX)?.parse().ok()
}

/// How often the index of a pod had failed before it.
pub fn failures_before(pod: &PodRef) -> i32 {
    pod.object().meta().annotation(FAILURES).and_then(|text| text.parse().ok()).unwrap_or(0)
}

/// When a pod came to its end: the latest of its containers', else its deletion, else its creation.
pub fn finished_at(pod: &PodRef) -> Option<Timestamp> {
    let statuses = pod.status.as_ref().and_then(|s| s.container_statuses.as_ref());
    let ends = statuses
        .into_iter()
        .flatten()
        .filter_map(|c| c.state.as_ref()?.terminated.as_ref()?.finished_at.as_ref());
    let meta = pod.object().meta();
    ends.map(|t| t.0).max().or(meta.deletion_timestamp).or(meta.creation_timestamp)
}

impl Work {
    /// The spec; a job without one is refused by the server.
    pub fn spec(&self) -> Option<&JobSpec> {
        self.job.spec.as_ref()
    }

    /// The job as the target of a write.
    pub fn target(&self) -> Target {
        Target::of(&builtin::JOB, self.job.object())
    }

    /// Namespace and name.
    pub fn key(&self) -> ObjectKey {
        self.job.object().key()
    }

    /// Whether each pod has an index.
    pub fn is_indexed(&self) -> bool {
        self.spec().and_then(|s| s.completion_mode.as_deref()) == Some("Indexed")
    }

    /// How many pods are to succeed; `None`: one is enough, and says that the work is done.
    pub fn completions(&self) -> Option<i32> {
        self.spec()?.completions
    }

    /// How many may run at a time.
    pub fn parallelism(&self) -> i32 {
        self.spec().and_then(|s| s.parallelism).unwrap_or(1).max(0)
    }

    /// Whether it rests.
    pub fn is_suspended(&self) -> bool {
        self.spec().and_then(|s| s.suspend).unwrap_or(false)
    }

    /// Whether a pod is replaced only once it has failed, not as soon as it is being deleted.
    pub fn replaces_failed_only(&self) -> bool {
        self.spec().and_then(|s| s.pod_replacement_policy.as_deref()) == Some("Failed")
    }

    /// Whether a pod counts as failed.
    pub fn is_failed(&self, pod: &PodRef) -> bool {
        let phase = pods::phase(pod);
        phase == "Failed"
            || (!self.replaces_failed_only() && pod.object().meta().is_deleting() && phase != "Succeeded")
    }

    /// A condition of the status that is true.
    pub fn condition(&self, type_: &str) -> Option<&k8s_openapi::api::batch::v1::JobCondition> {
        let conditions = self.job.status.as_ref()?.conditions.as_ref()?;
        conditions.iter().find(|c| c.type_ == type_ && c.status == "True")
    }

    /// Whether it has ended, well or not.
    pub fn is_finished(&self) -> bool {
        self.condition("Complete").is_some() || self.condition("Failed").is_some()
    }

    /// Indexes that succeeded, as the status has them.
    pub fn completed_indexes(&self) -> BTreeSet<i32> {
        let text = self.job.status.as_ref().and_then(|s| s.completed_indexes.as_deref());
        let mut indexes = indexes::parse(text.unwrap_or_default());
        if let Some(completions) = self.completions() {
            indexes.retain(|index| *index < completions);
        }
        indexes
    }

    /// Indexes that failed for good, as the status has them.
    pub fn failed_indexes(&self) -> BTreeSet<i32> {
        let text = self.job.status.as_ref().and_then(|s| s.failed_indexes.as_deref());
        indexes::parse(text.unwrap_or_default())
    }
}
