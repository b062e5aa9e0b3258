//! What a worker runs for a key: the one trait between the queue and the work. Controllers of `strata_plan` come in by
//! the adapter in `planned`; those with effects beyond the API (a node agent, a builder) implement it themselves.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use jiff::Timestamp;
use strata_client::client::Client;
use strata_client::error::{Class, ClientError};
use strata_model::resource::ResourceType;
use strata_plan::controller::{Key, Next, ObserveError, View, Watched};
use tokio::sync::Notify;
use tokio::time::Instant;

use crate::barrier::Barrier;
use crate::core::Core;
use crate::events::Recorder;
use crate::guard::Guard;
use crate::queue::{Job, Moment, Priority};
use crate::reason::{Reason, Why};

/// Why a reconcile failed.
#[derive(Debug, thiserror::Error)]
pub enum ReconcileError {
    /// A request failed.
    #[error("cannot {doing}")]
    Request {
        /// What was being done, as `create pods in default`.
        doing: String,
        /// Why.
        #[source]
        source: ClientError,
    },
    /// What is observed cannot be read.
    #[error(transparent)]
    Observe(#[from] ObserveError),
    /// An effect outside the API failed.
    #[error("{message}")]
    Effect {
        /// What, and why.
        message: String,
        /// What can be done about it.
        class: Class,
    },
}

impl ReconcileError {
    /// What can be done about it.
    pub fn class(&self) -> Class {
        match self {
            Self::Request { source, .. } => source.class(),
            Self::Observe(_) => Class::Invalid,
            Self::Effect { class, .. } => *class,
        }
    }

    /// The whole chain as one sentence.
    pub fn sentence(&self) -> String {
        let mut text = self.to_string();
        let mut at = std::error::Error::source(self);
        while let Some(cause) = at {
            text.push_str(": ");
            text.push_str(&cause.to_string());
            at = cause.source();
        }
        text
    }
}

/// What a reconcile came to.
#[derive(Debug, Default)]
pub struct Outcome {
    /// When to look again, if nothing happens before.
    pub next: Next,
    /// What the cache must see before the key runs again: one for each write.
    pub barriers: Vec<Barrier>,
    /// How many writes were made.
    pub writes: usize,
    /// Types of writes of which nobody knows whether they happened: the connection broke before the answer. Before the
    /// key runs again, the cache is brought to where such a write would show.
    pub unsure: Vec<ResourceType>,
    /// Why it failed, if it did.
    pub error: Option<ReconcileError>,
    /// It fights with another writer: the key pauses, whatever changes meanwhile.
    pub damped: Option<Damped>,
}

/// How a key that fights is held back.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Damped {
    /// How long it pauses.
    pub pause: Duration,
    /// With whom and about what, as a sentence.
    pub why: String,
}

impl Outcome {
    /// Nothing was to be done.
    pub fn settled(next: Next) -> Self {
        Self { next, ..Self::default() }
    }

    /// It failed before it wrote.
    pub fn failed(error: ReconcileError) -> Self {
        Self { error: Some(error), ..Self::default() }
    }
}

/// Holds keys to their desired state.
pub trait Reconcile: Send + Sync + 'static {
    /// Name: of the process, the lease, the field manager, the metrics.
    fn name(&self) -> &'static str;

    /// What is watched, and to which keys it leads.
    fn watches(&self) -> Vec<Watched>;

    /// Told once, when the cache is complete and (where there is a lease) this process leads, before the first key: the
    /// place to wake keys that no object leads to.
    fn started(&self, context: &Context) {
        let _ = context;
    }

    /// Looks at one key and acts. Runs at most once at a time for a key. Must be over by [`Context::deadline`]; is
    /// dropped, at any await, some time after it, and when the process has drained long enough.
    fn reconcile(&self, job: &Job, context: &Context) -> impl Future<Output = Outcome> + Send;
}

/// What a process shares.
pub struct Shared {
    core: Mutex<Core>,
    unsure: Mutex<HashMap<Key, Vec<ResourceType>>>,
    guard: Mutex<Guard>,
    /// Rung when the queue may have work.
    pub(crate) work: Notify,
    start: Instant,
}

impl Shared {
    pub(crate) fn new(core: Core) -> Self {
        Self {
            core: Mutex::new(core),
            unsure: Mutex::default(),
            guard: Mutex::default(),
            work: Notify::new(),
            start: Instant::now(),
        }
    }

    pub(crate) fn core(&self) -> MutexGuard<'_, Core> {
        self.core.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn guard(&self) -> MutexGuard<'_, Guard> {
        self.guard.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Remembers, until it is taken, that writes of a key may or may not have happened.
    pub(crate) fn doubt(&self, key: &Key, types: Vec<ResourceType>) {
        if !types.is_empty() {
            let mut unsure = self.unsure.lock().unwrap_or_else(PoisonError::into_inner);
            unsure.entry(key.clone()).or_default().extend(types);
        }
    }

    pub(crate) fn take_doubts(&self, key: &Key) -> Vec<ResourceType> {
        let mut types =
            self.unsure.lock().unwrap_or_else(PoisonError::into_inner).remove(key).unwrap_or_default();
        types.sort_by(|a, b| a.id.cmp(&b.id));
        types.dedup();
        types
    }

    /// Has a key run as soon as may be: somebody asked for it.
    pub(crate) fn hurry(&self, key: Key) {
        let now = self.now();
        self.core().queue.hurry(key, now);
        self.work.notify_one();
    }

    /// Has every key looked at; answers how many there are.
    pub(crate) fn resync(&self) -> usize {
        let now = self.now();
        let count = self.core().resync(now);
        self.work.notify_one();
        count
    }

    /// Time since the process started.
    pub fn now(&self) -> Moment {
        self.start.elapsed()
    }

    /// When a wall-clock instant is, on that line.
    pub(crate) fn moment(&self, at: Timestamp) -> Moment {
        let ahead = at.duration_since(Timestamp::now());
        self.now() + std::time::Duration::try_from(ahead).unwrap_or_default()
    }

    /// The wall-clock instant of a moment.
    pub(crate) fn timestamp(&self, at: Moment) -> Timestamp {
        Timestamp::now() + at.saturating_sub(self.now())
    }

    /// The tokio instant of a moment.
    pub(crate) fn instant(&self, at: Moment) -> Instant {
        self.start + at
    }
}

/// What a reconcile may use.
#[derive(Clone)]
pub struct Context {
    /// The API server.
    pub client: Client,
    /// Tells people.
    pub recorder: Recorder,
    pub(crate) shared: Arc<Shared>,
    /// When this reconcile must be over; far away outside of one.
    pub(crate) deadline: Instant,
}

impl Context {
    /// When this reconcile must be over. Work in steps looks at it between them and stops by itself, with an error:
    /// what is broken off in the middle of a request does not know what it did.
    pub fn deadline(&self) -> Instant {
        self.deadline
    }

    /// Reads the cache. The view is one consistent state for as long as the closure runs; keep it short, nothing else
    /// moves meanwhile.
    pub fn view<T>(&self, read: impl FnOnce(&dyn View) -> T) -> T {
        read(&self.shared.core().cache)
    }

    /// Has a key looked at because of something outside of the API: a process ended, a probe failed.
    pub fn wake(&self, key: Key, why: &'static str) {
        let now = self.shared.now();
        self.shared.core().queue.add(key, Priority::Live, Reason::plain(Why::Other(why)), now);
        self.shared.work.notify_one();
    }
}
