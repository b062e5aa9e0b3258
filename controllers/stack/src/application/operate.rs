//! What a turn does: takes an operation as far as it goes, and puts back what deviates. Decisions are the plan's.

use std::sync::Arc;

use jiff::Timestamp;
use strata_client::error::Class;
use strata_model::object::ObjectKey;
use strata_model::resource::ResourceType;
use strata_plan::application::compare::Item;
use strata_plan::application::decide;
use strata_plan::application::desired::Wish;
use strata_plan::application::difference::Verdict;
use strata_plan::application::operation::SyncOperation;
use strata_plan::application::permit::Allowed;
use strata_plan::application::project::ProjectSpec;
use strata_plan::application::rendered::RenderError;
use strata_plan::application::spec::Source;
use strata_plan::application::status::{OperationPhase, OperationState};
use strata_plan::application::sync::task::Task;
use strata_plan::application::sync::{self, How, Input, Job, Step, Work};
use strata_plan::application::types::{APPLICATION, MANAGER, MAX_PRUNE};
use strata_plan::controller::{Action, EventType, Target};
use strata_runtime::breaker::Breaker;
use strata_runtime::events::Told;
use strata_runtime::reconcile::ReconcileError;
use tokio::time::Instant;

use super::gather::{Gathered, Places};
use super::hand::{Became, Did, Hand};
use super::judge;
use super::layer::{Known, Purpose, Renders};
use super::repositories::Repositories;
use super::turn::Turn;

/// Most stages that one turn goes through: what remains is for the next one.
const MOST_STEPS: usize = 1000;
/// Option of a sync: the annotation about pruning, for this once.
const MAX_PRUNE_OPTION: &str = "MaxPrune=";

/// A wish, and the sources it is of.
struct Goal {
    wish: Arc<Wish>,
    sources: Vec<Source>,
}

/// What an operation goes by.
enum By {
    Ready(Goal),
    Waits,
    Failed(RenderError),
}

impl<R: Repositories> Turn<'_, R> {
    /// By what an operation goes: the Application's own render where that is the same, else one of its own.
    fn by(&mut self, state: &OperationState, known: Option<&Known>) -> By {
        let sync = bound(state);
        let own = self.app.spec.all_sources().to_vec();
        let sources = decide::pinned(&own, &sync);
        let fresh = known.and_then(|k| k.answer.as_ref().ok());
        if let Some(renders) = fresh.filter(|r| sources == own || is_at(r, &own, &sync)).cloned() {
            let wish = self.made(Purpose::Wish, &renders);
            return By::Ready(Goal { wish, sources: own });
        }
        if sources == own {
            return match known.map(|k| &k.answer) {
                Some(Err(error)) => By::Failed(error.clone()),
                _ => By::Waits,
            };
        }
        let place = (self.key().clone(), Purpose::Operation);
        match self.layer.ask(place, self.question(&sources)).map(|k| k.answer) {
            Some(Ok(renders)) => {
                let wish = self.made(Purpose::Operation, &renders);
                By::Ready(Goal { wish, sources })
            }
            Some(Err(error)) => By::Failed(error),
            None => By::Waits,
        }
    }

    /// Takes an operation as far as it goes now.
    pub async fn operate(
        &mut self,
        state: &mut OperationState,
        known: Option<&Known>,
        invalid: Option<&str>,
        allowed: Allowed,
        project: &ProjectSpec,
    ) {
        let now = Timestamp::now();
        let is_new = state.sync_result.is_none();
        if is_new && let Some(why) = self.refuses(state, invalid, allowed) {
            sync::over(state, OperationPhase::Error, &why, now);
            return self.tell_over(state);
        }
        let target = match self.by(state, known) {
            By::Ready(target) => target,
            By::Waits => {
                state.message = "waits for the source to be rendered".to_owned();
                return;
            }
            By::Failed(error) => {
                let step = sync::fail_as(state, OperationPhase::Error, &error.message, now);
                return self.waits(state, &step);
            }
        };
        if is_new {
            let before = self.object.meta().resource_version.clone();
            decide::bind(state, &target.wish, &target.sources, Some(&before));
        }
        for _ in 0..MOST_STEPS {
            if Instant::now() >= self.context.deadline() {
                let message = "not synced in time; going on from here".to_owned();
                return self.fail(ReconcileError::Effect { message, class: Class::Transient });
            }
            let Some(found) = self.judged(&target.wish, project).await else { return };
            let step = self.step(state, &found);
            match step {
                Step::Run(jobs) => self.work(state, &jobs).await,
                Step::Wait(_) | Step::Over => return self.waits(state, &step),
            }
            if self.outcome.error.is_some() {
                return;
            }
        }
    }

    fn step(&self, state: &mut OperationState, found: &Gathered) -> Step {
        let sync = state.operation.sync.clone().unwrap_or_default();
        let said = sync.sync_options.iter().find_map(|o| o.strip_prefix(MAX_PRUNE_OPTION));
        let live = |resource: &ResourceType, key: &ObjectKey| {
            let spot = (resource.id.clone(), key.clone());
            self.context.view(|view| Places { view, overlay: &self.overlay }.live(&spot))
        };
        let input = Input {
            app: self.key(),
            spec: &self.app.spec,
            max_prune: said.or(self.object.meta().annotation(MAX_PRUNE)),
            items: &found.items,
            faults: &found.faults,
            live: &live,
            now: Timestamp::now(),
        };
        sync::step(state, &input)
    }

    fn refuses(&self, state: &OperationState, invalid: Option<&str>, allowed: Allowed) -> Option<String> {
        if let Some(why) = invalid {
            return Some(why.to_owned());
        }
        let by_itself = state.operation.initiated_by.automated;
        let may = if by_itself { allowed.automated } else { allowed.manual };
        (!may).then(|| "cannot sync: blocked by a sync window of the project".to_owned())
    }

    fn waits(&mut self, state: &OperationState, step: &Step) {
        match step {
            Step::Wait(at) => self.look_at(*at),
            Step::Over => {
                self.layer.forget(&(self.key().clone(), Purpose::Operation));
                self.tell_over(state);
            }
            Step::Run(_) => {}
        }
    }

    fn tell(&self, type_: EventType, reason: &'static str, message: String) {
        let about = Target::of(&APPLICATION, &self.object);
        self.context.recorder.tell(Told { about, type_, reason, message });
    }

    fn tell_over(&self, state: &OperationState) {
        let type_ = match state.phase {
            OperationPhase::Succeeded => EventType::Normal,
            _ => EventType::Warning,
        };
        let revision = state.sync_result.as_ref().map(|r| r.revision.as_str()).unwrap_or_default();
        let message = format!("Sync operation to {revision} {}: {}", state.phase.as_str(), state.message);
        self.tell(type_, "OperationCompleted", message);
    }

    /// Takes over what jobs did: what is there now, and what the cache must see.
    fn absorb(&mut self, did: &mut Did) {
        if let Some((spot, now)) = did.now.take() {
            self.overlay.insert(spot, now);
        }
        self.outcome.writes += usize::from(did.wrote);
        self.outcome.barriers.extend(did.barrier.take());
        self.outcome.unsure.extend(did.unsure.take());
    }

    /// What was applied is as it is wished: nobody needs to be asked.
    fn settled(&mut self, job: &Job) {
        let Work::Apply(desired, How { dry_run: false, .. }) = &job.work else { return };
        let Some(resource) = &desired.resource else { return };
        let spot = (resource.id.clone(), desired.id.key());
        if let Some(Some(live)) = self.overlay.get(&spot).cloned() {
            let seen = self.own.seen(&desired.id, &live);
            let item = Item { id: desired.id.clone(), live: Some(live), seen, ..Item::default() };
            judge::remember(self.own, &item, desired.hash, Verdict::Same);
        }
    }

    async fn work(&mut self, state: &mut OperationState, jobs: &[Job]) {
        let client = self.context.client.clone();
        let hand = Hand::new(&client, self.cause("sync"));
        for (at, mut did) in hand.all(jobs, self.context.deadline()).await {
            self.absorb(&mut did);
            let job = &jobs[at];
            match did.became {
                Became::Done(message) => {
                    self.settled(job);
                    sync::record(state, job, Ok(message));
                }
                Became::Cleared => {}
                Became::Refused(why) => sync::record(state, job, Err(why)),
                Became::Failed(source) => {
                    let doing = "sync".to_owned();
                    self.fail(ReconcileError::Request { doing, source });
                }
            }
        }
    }

    /// Puts back what is not as it is wished.
    pub async fn heal(&mut self, tasks: Vec<Task>) {
        let client = self.context.client.clone();
        let hand = Hand::new(&client, self.cause("heal"));
        let context = self.context;
        let breaker = Breaker::new(context, MANAGER, &self.job.key);
        let suspects = breaker.suspects(&edits(&tasks)).await;
        let mut names = Vec::new();
        for stage in tasks.chunk_by(|a, b| a.stage == b.stage) {
            let jobs: Vec<Job> = stage.iter().filter_map(job_of).collect();
            for (at, mut did) in hand.all(&jobs, self.context.deadline()).await {
                self.absorb(&mut did);
                let task = &stage[at];
                match did.became {
                    Became::Done(_) | Became::Cleared => {
                        self.settled(&jobs[at]);
                        names.push(task.item.id.clone());
                    }
                    Became::Refused(why) => {
                        let hash = task.item.desired.as_ref().map_or(0, |d| d.hash);
                        judge::remember(self.own, &task.item, hash, Verdict::Refused(why));
                    }
                    Became::Failed(source) => {
                        let doing = format!("put {} back", task.item.id);
                        self.fail(ReconcileError::Request { doing, source });
                    }
                }
            }
        }
        if !names.is_empty() {
            let message = format!("put back as the source says: {}", sync::named(names.iter()));
            self.tell(EventType::Normal, "Healed", message);
        }
        let outcome = std::mem::take(&mut self.outcome);
        self.outcome = if outcome.error.is_none() { breaker.made(suspects, outcome).await } else { outcome };
    }
}

/// The sync of an operation, at the commits that it has begun with.
fn bound(state: &OperationState) -> SyncOperation {
    let mut sync = state.operation.sync.clone().unwrap_or_default();
    if let Some(result) =
        state.sync_result.as_ref().filter(|r| !r.revision.is_empty() || !r.revisions.is_empty())
    {
        sync.revision.clone_from(&result.revision);
        sync.revisions.clone_from(&result.revisions);
    }
    sync
}

/// Whether renders of the Application's own sources are at the commits of a sync.
fn is_at(renders: &Renders, own: &[Source], sync: &SyncOperation) -> bool {
    let other = sync.source.as_ref().is_some_and(|s| Some(s) != own.first())
        || (!sync.sources.is_empty() && sync.sources != own);
    let at = |n: usize| sync.revisions.get(n).or(Some(&sync.revision).filter(|r| n == 0 && !r.is_empty()));
    !other && renders.iter().enumerate().all(|(n, r)| at(n).is_none_or(|wanted| *wanted == r.revision))
}

fn job_of(task: &Task) -> Option<Job> {
    let work = match &task.item.desired {
        Some(desired) => Work::Apply(Arc::clone(desired), How::default()),
        None => Work::Delete(task.item.resource.clone()?),
    };
    Some(Job { work, live: task.item.live.clone(), result: None })
}

/// The edits that heals are, for the eyes of the breaker.
fn edits(tasks: &[Task]) -> Vec<Action> {
    let edit = |task: &Task| {
        let (desired, live) = (task.item.desired.as_ref()?, task.item.live.as_ref()?);
        let target = Target::of(desired.resource.as_ref()?, live);
        Some(Action::Patch { target, patch: desired.object.clone() })
    };
    tasks.iter().filter_map(edit).collect()
}
