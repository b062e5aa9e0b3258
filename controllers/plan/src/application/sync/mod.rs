//! A sync, step by step: what is to be done next, side by side, what is waited for, and how it ends. All that it remembers
//! is in the operation's state, which is in the Application's status: a process that dies goes on where it was.

pub mod budget;
pub mod task;

use std::collections::BTreeSet;
use std::sync::Arc;

use jiff::{SignedDuration, Timestamp};
use serde_json::{Value, json};
use strata_model::condition::rfc3339;
use strata_model::object::{Object, ObjectKey};
use strata_model::resource::ResourceType;

use self::task::{FAILED, PRUNE_SKIPPED, PRUNED, SYNCED, Standing, Task, is_same};
use super::compare::Item;
use super::desired::{DeletePolicy, Desired, Phase};
use super::operation::SyncOperation;
use super::order::DEFINITIONS;
use super::retry;
use super::spec::Spec;
use super::status::{OperationPhase, OperationState, ResourceResult};

/// How long a type may take to be served after its definition is applied.
const TYPE_WAIT: SignedDuration = SignedDuration::from_secs(60);
/// Member of an operation's state: when it is tried again.
const RETRY_AT: &str = "retryAt";
/// Most objects that a message names.
const MOST_NAMED: usize = 5;

/// How an object is written.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct How {
    /// Nothing is stored.
    pub dry_run: bool,
    /// Put in its place whole, not applied.
    pub replace: bool,
    /// Deleted and made anew, where the server refuses the change.
    pub force: bool,
}

/// What is done.
#[derive(Clone, Debug)]
pub enum Work {
    /// A wish is made true.
    Apply(Arc<Desired>, How),
    /// An object goes.
    Delete(Arc<ResourceType>),
}

/// One thing to be done, and what is written down of it.
#[derive(Clone, Debug)]
pub struct Job {
    /// What.
    pub work: Work,
    /// The object as it is.
    pub live: Option<Arc<Object>>,
    /// Which one, and in which phase; `None`: nothing is written down (a hook that is cleared away).
    pub result: Option<ResourceResult>,
}

/// What comes next.
#[derive(Clone, Debug)]
pub enum Step {
    /// These, side by side; then ask again.
    Run(Vec<Job>),
    /// Something must change, by this instant at the latest where there is one.
    Wait(Option<Timestamp>),
    /// It is over: the phase and the message say how.
    Over,
}

/// What a sync looks at.
pub struct Input<'a> {
    /// The Application.
    pub app: &'a ObjectKey,
    /// Its wish.
    pub spec: &'a Spec,
    /// The annotation about pruning, or the operation's own word.
    pub max_prune: Option<&'a str>,
    /// Its objects.
    pub items: &'a [Item],
    /// What is wrong with single manifests.
    pub faults: &'a [String],
    /// Finds live objects.
    pub live: &'a dyn Fn(&ResourceType, &ObjectKey) -> Option<Arc<Object>>,
    /// The time.
    pub now: Timestamp,
}

impl Input<'_> {
    fn has_option(&self, sync: &SyncOperation, option: &str) -> bool {
        self.spec.sync_options().iter().chain(&sync.sync_options).any(|o| o == option)
    }
}

/// What is next in an operation. Writes down what it sees.
pub fn step(state: &mut OperationState, input: &Input<'_>) -> Step {
    let sync = state.operation.sync.clone().unwrap_or_default();
    if state.phase == OperationPhase::Terminating {
        return over(state, OperationPhase::Failed, "Operation terminated", input.now);
    }
    if let Some(at) = retry_at(state) {
        if input.now < at {
            return Step::Wait(Some(at));
        }
        state.other.remove(RETRY_AT);
        if let Some(result) = &mut state.sync_result {
            result.resources.clear();
        }
    }
    let begins = state.sync_result.as_ref().is_none_or(|r| r.resources.is_empty());
    if begins && let Some(why) = forbids(&sync, input) {
        return over(state, OperationPhase::Failed, &why, input.now);
    }
    let tasks = task::tasks(input.app, input.items, &sync, state, input.live);
    let mut walk = Walk { sync: &sync, input, cleared: Vec::new(), until: None };
    match walk.stages(state, &tasks) {
        Walked::Step(step) => step,
        Walked::End(None) => match walk.take_cleared() {
            Some(run) => run,
            None => over(state, OperationPhase::Succeeded, &success(&sync), input.now),
        },
        Walked::End(Some(why)) => match walk.failing(state, &tasks) {
            Some(step) => step,
            None => fail(state, &why, input),
        },
    }
}

fn success(sync: &SyncOperation) -> String {
    let how = if sync.dry_run { " (dry run)" } else { "" };
    format!("successfully synced (all tasks run){how}")
}

/// Why the sync may not begin at all.
fn forbids(sync: &SyncOperation, input: &Input<'_>) -> Option<String> {
    if !input.faults.is_empty() {
        return Some(format!("the source has faults: {}", input.faults.join("; ")));
    }
    if !sync.prune || sync.dry_run {
        return None;
    }
    let goes = |i: &&Item| i.is_extra() && !i.has("Prune=false");
    let prunes: Vec<&Item> = input.items.iter().filter(goes).collect();
    let allow_empty =
        input.spec.automated().is_some_and(|a| a.allow_empty) || input.has_option(sync, "AllowEmpty=true");
    budget::forbids(&prunes, input.items, input.max_prune, allow_empty)
}

enum Walked {
    Step(Step),
    /// All stages are done, or one failed.
    End(Option<String>),
}

struct Walk<'a, 'b> {
    sync: &'a SyncOperation,
    input: &'a Input<'b>,
    /// Hooks that are over and go.
    cleared: Vec<Job>,
    until: Option<Timestamp>,
}

impl Walk<'_, '_> {
    fn stages(&mut self, state: &mut OperationState, tasks: &[Task]) -> Walked {
        let usual: Vec<&Task> = tasks.iter().filter(|t| t.stage.phase != Phase::SyncFail).collect();
        let last = usual.last().map(|t| (t.stage.phase, t.stage.prunes, t.stage.wave));
        for stage in usual.chunk_by(|a, b| a.stage == b.stage) {
            let at = &stage[0].stage;
            let is_last = last == Some((at.phase, at.prunes, at.wave));
            let opens_types = at.rank == DEFINITIONS && !at.prunes && self.awaits_types();
            match self.stage(state, stage, !is_last || opens_types) {
                Walked::End(None) => {}
                other => return other,
            }
        }
        Walked::End(None)
    }

    fn stage(&mut self, state: &mut OperationState, stage: &[&Task], must_be_well: bool) -> Walked {
        let (mut jobs, mut waits, mut failed) = (Vec::new(), Vec::new(), Vec::new());
        for task in stage {
            match task.standing(state, must_be_well, self.sync.prune) {
                Standing::Due => match self.job(state, task) {
                    Ok(Some(job)) => jobs.push(job),
                    Ok(None) => waits.push(format!("waits for the type of {}", task.item.id)),
                    Err(why) => {
                        note(state, task, FAILED, OperationPhase::Failed, &why);
                        failed.push(why);
                    }
                },
                Standing::InTheWay => jobs.extend(clear(&task.item)),
                Standing::Waits(why) => waits.push(why),
                Standing::AsItIs if task.stage.prunes => {
                    note(state, task, PRUNE_SKIPPED, OperationPhase::Succeeded, "ignored (requires pruning)");
                }
                Standing::AsItIs => {
                    note(state, task, SYNCED, OperationPhase::Succeeded, "unchanged");
                    // Its health may matter.
                    if must_be_well {
                        match task.standing(state, true, self.sync.prune) {
                            Standing::Waits(why) => waits.push(why),
                            Standing::Failed(why) => failed.push(why),
                            _ => {}
                        }
                    }
                }
                Standing::Done => {
                    self.done(state, task, DeletePolicy::HookSucceeded, OperationPhase::Succeeded, "")
                }
                Standing::Failed(why) => {
                    self.done(state, task, DeletePolicy::HookFailed, OperationPhase::Failed, &why);
                    failed.push(why);
                }
            }
        }
        if !jobs.is_empty() {
            return Walked::Step(Step::Run(jobs));
        }
        if !failed.is_empty() {
            failed.truncate(MOST_NAMED);
            return Walked::End(Some(failed.join("; ")));
        }
        if let Some(why) = waits.into_iter().next() {
            state.message = why;
            return Walked::Step(self.take_cleared().unwrap_or(Step::Wait(self.until)));
        }
        Walked::End(None)
    }

    /// A hook is over: says so, and has it go where it says so.
    fn done(
        &mut self,
        state: &mut OperationState,
        task: &Task,
        policy: DeletePolicy,
        phase: OperationPhase,
        why: &str,
    ) {
        if !task.is_hook || task.found(state).is_none_or(|r| r.hook_phase == phase.as_str()) {
            return;
        }
        let status = if phase == OperationPhase::Succeeded { SYNCED } else { FAILED };
        note(state, task, status, phase, why);
        if task.item.desired.as_ref().is_some_and(|d| d.policies.contains(&policy)) {
            self.cleared.extend(clear(&task.item));
        }
    }

    fn take_cleared(&mut self) -> Option<Step> {
        let cleared = std::mem::take(&mut self.cleared);
        (!cleared.is_empty()).then_some(Step::Run(cleared))
    }

    /// After a failure: the hooks for it, once.
    fn failing(&mut self, state: &mut OperationState, tasks: &[Task]) -> Option<Step> {
        let hooks: Vec<&Task> = tasks.iter().filter(|t| t.stage.phase == Phase::SyncFail).collect();
        for stage in hooks.chunk_by(|a, b| a.stage == b.stage) {
            match self.stage(state, stage, true) {
                Walked::Step(step) => return Some(step),
                Walked::End(None) => {}
                Walked::End(Some(_)) => break,
            }
        }
        self.take_cleared()
    }

    /// Whether types are not served yet that a definition of the same source brings.
    fn awaits_types(&self) -> bool {
        self.input
            .items
            .iter()
            .filter_map(|i| i.desired.as_ref())
            .any(|d| d.resource.is_none() && self.brings(d))
    }

    fn brings(&self, wanted: &Desired) -> bool {
        let defined = self.input.items.iter().filter_map(|i| i.desired.as_ref());
        let mut definitions = defined.filter(|d| d.id.kind == "CustomResourceDefinition");
        definitions.any(|d| {
            let spec = &d.object["spec"];
            spec["group"] == *wanted.id.group && spec["names"]["kind"] == *wanted.id.kind
        })
    }

    /// What is to be done; `None`: its type is not served yet.
    fn job(&mut self, state: &OperationState, task: &Task) -> Result<Option<Job>, String> {
        let mut result = task.result();
        let Some(desired) = &task.item.desired else {
            let Some(resource) = task.item.resource.clone() else { return Ok(None) };
            result.status = PRUNED.to_owned();
            let work = Work::Delete(resource);
            return Ok(Some(Job { work, live: task.item.live.clone(), result: Some(result) }));
        };
        if let Some(holder) = &task.item.holder {
            return Err(format!("{} is part of the Application {holder}; two cannot hold it", task.item.id));
        }
        if desired.resource.is_none() {
            let began: Option<Timestamp> = state.started_at.parse().ok();
            let until = began.and_then(|at| at.checked_add(TYPE_WAIT).ok());
            if self.brings(desired) && until.is_some_and(|until| self.input.now < until) {
                self.until = until;
                return Ok(None);
            }
            let group = if desired.id.group.is_empty() { "core" } else { &desired.id.group };
            return Err(format!(
                "the type {} of {group}/{} is not served; {} cannot be made (from {})",
                desired.id.kind, desired.version, desired.id, desired.place
            ));
        }
        let force = self.sync.sync_strategy.as_ref();
        let forced = force.and_then(|s| s.apply.as_ref().or(s.hook.as_ref())).is_some_and(|f| f.force);
        let option = |name: &str| desired.has(name) || self.input.has_option(self.sync, name);
        let how = How {
            dry_run: self.sync.dry_run,
            replace: option("Replace=true"),
            force: forced || option("Force=true"),
        };
        result.status = SYNCED.to_owned();
        let work = Work::Apply(Arc::clone(desired), how);
        Ok(Some(Job { work, live: task.item.live.clone(), result: Some(result) }))
    }
}

/// A hook that goes; nothing where it is gone already.
fn clear(item: &Item) -> Option<Job> {
    let live = item.live.clone().filter(|o| !o.meta().is_deleting())?;
    let resource = item.desired.as_ref()?.resource.clone()?;
    Some(Job { work: Work::Delete(resource), live: Some(live), result: None })
}

fn note(state: &mut OperationState, task: &Task, status: &str, phase: OperationPhase, message: &str) {
    let result = ResourceResult {
        status: status.to_owned(),
        message: message.to_owned(),
        hook_phase: phase.as_str().to_owned(),
        ..task.result()
    };
    put(state, result);
}

fn put(state: &mut OperationState, result: ResourceResult) {
    let results = &mut state.sync_result.get_or_insert_default().resources;
    match results.iter_mut().find(|r| is_same(r, &result)) {
        Some(old) => *old = result,
        None => results.push(result),
    }
}

/// Writes down what became of a job.
pub fn record(state: &mut OperationState, job: &Job, outcome: Result<String, String>) {
    let Some(mut result) = job.result.clone() else { return };
    let is_hook = !result.hook_type.is_empty();
    result.hook_phase = match (&outcome, is_hook) {
        (Err(_), _) => OperationPhase::Failed,
        (Ok(_), true) => OperationPhase::Running,
        (Ok(_), false) => OperationPhase::Succeeded,
    }
    .as_str()
    .to_owned();
    match outcome {
        Ok(message) => result.message = message,
        Err(message) => {
            result.status = FAILED.to_owned();
            result.message = message;
        }
    }
    put(state, result);
}

fn retry_at(state: &OperationState) -> Option<Timestamp> {
    state.other.get(RETRY_AT).and_then(Value::as_str)?.parse().ok()
}

/// An operation did not work out: it is tried again where its policy says so, and else over.
pub fn fail(state: &mut OperationState, why: &str, input: &Input<'_>) -> Step {
    let message = format!("one or more objects failed to apply, reason: {why}");
    fail_as(state, OperationPhase::Failed, &message, input.now)
}

/// The same, with a phase and words of one's own.
pub fn fail_as(state: &mut OperationState, phase: OperationPhase, message: &str, now: Timestamp) -> Step {
    let attempt = state.retry_count + 1;
    let again = retry::wait(state.operation.retry.as_ref(), attempt).and_then(|w| now.checked_add(w).ok());
    let Some(at) = again else { return over(state, phase, message, now) };
    state.retry_count = attempt;
    state.message = format!("{message}. Retrying attempt #{attempt} at {}.", rfc3339(at));
    state.other.insert(RETRY_AT.to_owned(), json!(at.to_string()));
    Step::Wait(Some(at))
}

/// Ends an operation.
pub fn over(state: &mut OperationState, phase: OperationPhase, message: &str, now: Timestamp) -> Step {
    state.phase = phase;
    state.message = message.to_owned();
    state.finished_at = rfc3339(now);
    state.other.remove(RETRY_AT);
    Step::Over
}

/// The objects that a sync names, for a message.
pub fn named<'a>(ids: impl Iterator<Item = &'a super::identity::ObjectId>) -> String {
    let ids: BTreeSet<String> = ids.map(ToString::to_string).collect();
    let more = ids.len().saturating_sub(MOST_NAMED);
    let mut names: Vec<String> = ids.into_iter().take(MOST_NAMED).collect();
    if more > 0 {
        names.push(format!("{more} more"));
    }
    names.join(", ")
}

#[cfg(test)]
mod tests;
