//! Runs reconciles: bounded in number, one a key, each in a span, within a time limit; a panic is an error of that key
//! alone.

use std::any::Any;
use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use std::time::Duration;

use futures_util::FutureExt as _;
use strata_client::error::{Class, ClientError};
use strata_client::options::{ListOptions, Projection};
use strata_client::watch::Watches;
use strata_model::resource::ResourceType;
use strata_model::status::Reason;
use strata_plan::controller::Next;
use tokio::sync::watch;
use tokio::task::JoinSet;
use tokio::time::Instant;
use tracing::Instrument as _;

use crate::barrier::Barrier;
use crate::perform;
use crate::queue::{End, Job};
use crate::reconcile::{Context, Damped, Outcome, Reconcile, ReconcileError};
use crate::telemetry::{Ending, Metrics};

/// While keys wait for the cache: how often the server is asked how far the watches are.
const ASK_PROGRESS: Duration = Duration::from_millis(200);
/// Most time running reconciles get to finish when the process drains.
pub const DRAIN: Duration = Duration::from_secs(5);
/// From which attempt on a failure is worth a warning: the first ones are mostly conflicts that pass.
const WARN_FROM_ATTEMPT: u32 = 5;
/// How long after its deadline a reconcile is broken off: longer than a request may take.
const GRACE: Duration = Duration::from_secs(40);

/// Bounds on the work.
#[derive(Clone, Copy, Debug)]
pub struct Limits {
    /// Reconciles that run at the same time, at least 1.
    pub concurrency: usize,
    /// Most time one may take.
    pub timeout: Duration,
}

impl Default for Limits {
    fn default() -> Self {
        Self { concurrency: 16, timeout: Duration::from_secs(60) }
    }
}

/// What the workers hear and say.
pub struct Signals {
    /// Told once, when the cache is complete.
    pub ready: Option<Box<dyn FnOnce() + Send>>,
    /// Whether this process leads.
    pub leads: watch::Receiver<bool>,
    /// Whether to stop.
    pub stop: watch::Receiver<bool>,
}

/// How one reconcile ended.
struct Ended {
    job: Job,
    outcome: Outcome,
    ending: Ending,
    took: Duration,
    /// It was not tried: the cache must be brought up first.
    again: bool,
}

/// Works until `stop` turns true, then drains. Begins when the cache is complete and `leads` is true.
pub async fn run<R: Reconcile>(
    reconciler: Arc<R>,
    context: Context,
    watches: Watches,
    metrics: Arc<Metrics>,
    limits: Limits,
    signals: Signals,
) {
    let Signals { mut ready, mut leads, mut stop } = signals;
    let shared = Arc::clone(&context.shared);
    let mut running: JoinSet<Ended> = JoinSet::new();
    let mut asked = Instant::now();
    let mut synced = false;
    let mut started = false;
    loop {
        synced = synced || shared.core().cache.is_synced();
        if let Some(ready) = ready.take_if(|_| synced) {
            ready();
        }
        let active = synced && *leads.borrow_and_update();
        if active && !started {
            started = true;
            reconciler.started(&context);
        }
        while active && running.len() < limits.concurrency.max(1) {
            let now = shared.now();
            let Some(job) = shared.core().queue.pop(now) else { break };
            metrics.began(job.waited.as_secs_f64());
            running.spawn(one(Arc::clone(&reconciler), context.clone(), job, limits.timeout));
        }
        let (due, parked) = {
            let core = shared.core();
            (core.queue.next_due().filter(|_| active), core.queue.has_parked())
        };
        if parked && asked.elapsed() >= ASK_PROGRESS {
            asked = Instant::now();
            watches.ask_progress();
        }
        let due = due.map(|at| shared.instant(at));
        let ask = parked.then(|| asked + ASK_PROGRESS);
        let until = [due.filter(|_| running.len() < limits.concurrency), ask].into_iter().flatten().min();
        tokio::select! {
            Some(ended) = running.join_next() => finish(&context, &metrics, ended),
            () = shared.work.notified() => {}
            () = sleep_until(until) => {}
            changed = leads.changed() => if changed.is_err() { break },
            _ = stop.wait_for(|stop| *stop) => break,
        }
    }
    drain(&context, &metrics, running).await;
}

async fn sleep_until(until: Option<Instant>) {
    match until {
        Some(until) => tokio::time::sleep_until(until).await,
        None => std::future::pending().await,
    }
}

async fn drain(context: &Context, metrics: &Metrics, mut running: JoinSet<Ended>) {
    let until = Instant::now() + DRAIN;
    while let Ok(Some(ended)) = tokio::time::timeout_at(until, running.join_next()).await {
        finish(context, metrics, ended);
    }
    if !running.is_empty() {
        tracing::warn!(running = running.len(), "reconciles broken off");
        running.shutdown().await;
    }
}

async fn one<R: Reconcile>(reconciler: Arc<R>, mut context: Context, job: Job, limit: Duration) -> Ended {
    let span = tracing::info_span!("reconcile", controller = reconciler.name(), key = %job.key,
        attempt = job.attempt, reasons = %job.reasons);
    let started = Instant::now();
    context.deadline = started + limit;
    let doubts = context.shared.take_doubts(&job.key);
    if !doubts.is_empty() {
        let (outcome, again) = resolve(&context, &job, doubts).instrument(span).await;
        return Ended { job, outcome, ending: Ending::Failed, took: started.elapsed(), again };
    }
    let work = async {
        let work = AssertUnwindSafe(reconciler.reconcile(&job, &context)).catch_unwind();
        tokio::time::timeout_at(context.deadline + GRACE, work).await
    };
    let (outcome, ending) = match work.instrument(span.clone()).await {
        Ok(Ok(outcome)) => {
            let ending = ending(&outcome);
            (outcome, ending)
        }
        Ok(Err(panic)) => {
            let message = format!("panicked: {}", panic_text(&*panic));
            span.in_scope(|| tracing::error!(message, "reconcile panicked"));
            (effect_failed(message), Ending::Panicked)
        }
        Err(_) => {
            let message = format!("took longer than {} s", (limit + GRACE).as_secs());
            span.in_scope(|| tracing::error!(message, "reconcile broken off"));
            (effect_failed(message), Ending::TimedOut)
        }
    };
    context.shared.doubt(&job.key, outcome.unsure.clone());
    let took = started.elapsed();
    span.in_scope(|| report(&job, &outcome, took));
    Ended { job, outcome, ending, took, again: false }
}

/// A write of the key may have happened without an answer. A list made now is of a revision that would show it: that
/// becomes the key's barrier. Answers true where the key may go on once that is passed.
async fn resolve(context: &Context, job: &Job, doubts: Vec<ResourceType>) -> (Outcome, bool) {
    let mut barriers = Vec::new();
    let options = ListOptions { limit: 1, projection: Projection::Metadata, ..ListOptions::default() };
    for resource in &doubts {
        match context.client.list(resource, "", &options).await {
            Ok(list) => {
                if let Ok(revision) = list.resource_version.parse() {
                    barriers.push(Barrier::Revision(resource.id.clone(), revision));
                }
            }
            Err(source) => {
                let doing = format!("see whether {} were written", resource.id);
                context.shared.doubt(&job.key, doubts);
                return (Outcome::failed(ReconcileError::Request { doing, source }), false);
            }
        }
    }
    (Outcome { barriers, ..Outcome::default() }, true)
}

fn effect_failed(message: String) -> Outcome {
    Outcome::failed(ReconcileError::Effect { message, class: Class::Transient })
}

fn panic_text(panic: &(dyn Any + Send)) -> &str {
    let text = panic.downcast_ref::<&str>().copied();
    text.or_else(|| panic.downcast_ref::<String>().map(String::as_str)).unwrap_or("without a text")
}

fn ending(outcome: &Outcome) -> Ending {
    match &outcome.error {
        None if outcome.writes == 0 => Ending::Noop,
        None => Ending::Wrote,
        Some(error) if is_terminal(error) => Ending::Terminal,
        Some(_) => Ending::Failed,
    }
}

/// Whether only a change helps. What the transport says is never final: servers come back with other certificates; nor
/// is what is forbidden: quotas are freed, rights are granted.
fn is_terminal(error: &ReconcileError) -> bool {
    let answered = match error {
        ReconcileError::Request { source: ClientError::Refused { status }, .. } => {
            status.reason != Some(Reason::Forbidden)
        }
        ReconcileError::Request { .. } => false,
        ReconcileError::Observe(_) | ReconcileError::Effect { .. } => true,
    };
    answered
        && match error.class() {
            Class::Invalid | Class::Terminal => true,
            Class::Conflict | Class::NotFound | Class::Transient => false,
        }
}

/// Whether the server refused because the namespace is on its way out.
fn is_ending(error: &ReconcileError) -> bool {
    match error {
        ReconcileError::Request { source: ClientError::Refused { status }, .. } => perform::is_ending(status),
        _ => false,
    }
}

fn report(job: &Job, outcome: &Outcome, took: Duration) {
    let Some(error) = &outcome.error else {
        if outcome.writes > 0 {
            tracing::debug!(writes = outcome.writes, ?took, "reconciled");
        }
        return;
    };
    let sentence = error.sentence();
    if is_ending(error) {
        tracing::debug!(error = sentence, "nothing is made any more in a namespace that goes away");
    } else if is_terminal(error) {
        tracing::warn!(error = sentence, "reconcile failed; waiting for a change");
    } else if job.attempt >= WARN_FROM_ATTEMPT {
        tracing::warn!(error = sentence, "reconcile fails");
    } else {
        tracing::debug!(error = sentence, "reconcile failed");
    }
}

fn finish(context: &Context, metrics: &Metrics, ended: Result<Ended, tokio::task::JoinError>) {
    let Ended { job, outcome, ending, took, again } = match ended {
        Ok(ended) => ended,
        Err(error) => {
            // Panics are caught within; what is left is our own abort.
            tracing::error!(%error, "reconcile task ended");
            return;
        }
    };
    let shared = &context.shared;
    let now = shared.now();
    if !again {
        metrics.ended(ending, took.as_secs_f64());
    }
    let end = match &outcome.error {
        _ if again => End::Drained,
        Some(error) if ending == Ending::Terminal => End::Terminal(error.sentence()),
        Some(error) => End::Failed(error.sentence()),
        None => match outcome.damped {
            Some(Damped { pause, why }) => End::Damped(now + pause, why),
            None => End::Settled(match outcome.next {
                Next::OnChange => None,
                Next::At(at) => Some(shared.moment(at).max(now)),
            }),
        },
    };
    if ending == Ending::Noop
        && let Some(took) = shared.core().converged(&job.key, now)
    {
        metrics.converged(took.as_secs_f64());
    }
    let barriers: Vec<Barrier> = outcome.barriers;
    shared.core().done(job, end, barriers, now, rand::random());
}
