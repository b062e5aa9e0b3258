//! Carries out the actions of a plan, each with its precondition, stage by stage; stops at the first that fails. What a
//! plan wrote itself does not count as a change under its feet.

pub mod abreast;
pub mod stages;
pub mod hand;

use std::collections::HashMap;

use strata_client::client::Client;
use strata_client::error::{Class, ClientError};
use strata_model::resource::ResourceType;
use strata_model::status::Status;
use strata_plan::controller::{Action, Attempt, CREATED_NAME, Key, Refusal, Target};
use tokio::time::Instant;

use self::abreast::{Begin, Ended};
use self::hand::{Done, Failure, Hand};
use self::stages::Stage;
use crate::barrier::Barrier;
use crate::events::{Recorder, Told};
use crate::queue::Job;
use crate::reconcile::ReconcileError;

/// What came of the actions of a plan.
#[derive(Debug, Default)]
pub struct Performed {
    /// One for each write: what the cache must see.
    pub barriers: Vec<Barrier>,
    /// How many writes changed something.
    pub writes: usize,
    /// Types of writes that may or may not have happened.
    pub unsure: Vec<ResourceType>,
    /// Why it stopped, if it did: the first failure.
    pub error: Option<ReconcileError>,
    /// What the server refused, if that is why it stopped and time alone does not help.
    pub refusal: Option<Refusal>,
}

/// Performs actions for one job.
pub struct Performer<'a> {
    hand: Hand<'a>,
    root: Key,
    progress: Progress<'a>,
}

/// What was done so far.
struct Progress<'a> {
    recorder: &'a Recorder,
    /// Revisions of objects after our own writes, by uid.
    ours: HashMap<String, String>,
    /// Name of the object created last, in the order of the plan.
    created: String,
    performed: Performed,
}

impl<'a> Performer<'a> {
    /// `manager` owns what is written; the job says for which key and why.
    pub fn new(client: &'a Client, recorder: &'a Recorder, manager: &str, job: &Job) -> Self {
        let cause = format!("{}: {}", job.key, job.reasons);
        let progress = Progress {
            recorder,
            ours: HashMap::new(),
            created: String::new(),
            performed: Performed::default(),
        };
        Self { hand: Hand::new(client, manager, cause), root: job.key.clone(), progress }
    }

    /// Performs all, or as many as succeed by the deadline.
    pub async fn all(self, actions: Vec<Action>, deadline: Instant) -> Performed {
        let Self { hand, root, mut progress } = self;
        let (first, stages) = stages::of(actions, &root);
        first.into_iter().for_each(|told| progress.tell(told));
        for stage in stages {
            progress.act(&hand, stage, deadline).await;
            if progress.performed.error.is_some() {
                break;
            }
        }
        progress.performed
    }
}

impl Progress<'_> {
    async fn act(&mut self, hand: &Hand<'_>, steps: Stage, deadline: Instant) {
        let attempt = match steps.first().map(|step| &step.action) {
            Some(Action::Create { .. }) => Attempt::Create,
            Some(Action::Delete { .. }) => Attempt::Delete,
            _ => Attempt::Other,
        };
        let (mut calls, mut told) = (Vec::with_capacity(steps.len()), Vec::with_capacity(steps.len()));
        for step in steps {
            let version = self.version(&step.action);
            calls.push(hand.act(step.action, version));
            told.push(step.told);
        }
        let begin = if attempt == Attempt::Create { Begin::Slowly } else { Begin::AtOnce };
        let mut last = None;
        let ended = abreast::run(calls, begin, deadline, |place, result| match result {
            Ok(done) => {
                if let Some(name) = &done.created {
                    self.created.clone_from(name);
                    last = last.take().max(Some((place, name.clone())));
                }
                self.did(done);
                std::mem::take(&mut told[place]).into_iter().for_each(|told| self.tell(told));
            }
            Err(failure) => self.failed(failure, attempt),
        })
        .await;
        if let Some((_, name)) = last {
            self.created = name;
        }
        if ended == Ended::Late {
            let message = "not done in time; going on from here".to_owned();
            let late = ReconcileError::Effect { message, class: Class::Transient };
            self.performed.error.get_or_insert(late);
        }
    }

    fn did(&mut self, done: Done) {
        self.performed.writes += usize::from(done.wrote);
        self.performed.barriers.extend(done.barrier);
        self.ours.extend(done.left_at);
    }

    fn failed(&mut self, failure: Failure, attempt: Attempt) {
        self.performed.unsure.extend(failure.unsure);
        if self.performed.error.is_none() {
            self.performed.refusal = refusal(&failure.error, attempt);
        }
        self.performed.error.get_or_insert(failure.error);
    }

    fn tell(&self, mut told: Told) {
        if told.message.contains(CREATED_NAME) {
            told.message = told.message.replace(CREATED_NAME, &self.created);
        }
        self.recorder.tell(told);
    }

    /// The revision that the target of a write must be at: as planned, or as this plan left it.
    fn version(&self, action: &Action) -> Option<String> {
        let (Action::Patch { target, .. }
        | Action::Status { target, .. }
        | Action::Bind { target, .. }
        | Action::Replace { target, .. }
        | Action::Delete { target, .. }) = action
        else {
            return None;
        };
        let Target { uid, resource_version, .. } = target;
        let planned = resource_version.as_ref()?;
        Some(self.ours.get(uid).unwrap_or(planned).clone())
    }
}

/// What a failure says of the server's mind: nothing where it had no say, where another was quicker, or where what is
/// asked for goes away.
fn refusal(error: &ReconcileError, attempt: Attempt) -> Option<Refusal> {
    let ReconcileError::Request { source: ClientError::Refused { status }, .. } = error else { return None };
    let helps = matches!(error.class(), Class::Invalid | Class::Terminal) && !is_ending(status);
    helps.then(|| Refusal { attempt, message: status.message.clone() })
}

/// The cause the server gives where a namespace is being deleted.
const NAMESPACE_ENDS: &str = "NamespaceTerminating";

/// Whether the server refused because the namespace is on its way out: everybody who deletes one brings that about.
pub fn is_ending(status: &Status) -> bool {
    status.details.iter().flat_map(|details| &details.causes).any(|cause| cause.reason == NAMESPACE_ENDS)
}

#[cfg(test)]
mod tests;
