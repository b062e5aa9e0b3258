//! Follow: what etcd says moves the state that readers see, and nothing else does. A watch that breaks
//! is taken up after the last revision applied. If that is compacted, the state is read anew: then
//! watchers that have not seen what lies between are told so, and nothing is made up for them.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use tokio::sync::watch;

use crate::engine::etcd::events::{Step, steps};
use crate::engine::etcd::load::{Loaded, load_whole};
use crate::engine::etcd::members::{CallError, Rest};
use crate::engine::etcd::wire::{WatchCreateRequest, WatchResponse};
use crate::error::EngineError;
use crate::remote::{Remote, Seen};
use crate::revision::Revision;
use crate::ring::RingWriter;
use crate::state::State;
use crate::txn::Transaction;

/// The task's own state.
pub struct Follower {
    /// What it shares.
    pub remote: Arc<Remote>,
    /// The newest state.
    pub state: State,
    /// Where recent transactions go.
    pub ring: RingWriter,
    /// Wakes watchers; they end when this is dropped.
    pub published: watch::Sender<Revision>,
    /// How far etcd was followed.
    pub seen: watch::Sender<Seen>,
    /// The newest revision that may be read from history.
    pub reached: Arc<AtomicU64>,
}

impl Follower {
    /// Follows until this future is dropped.
    pub async fn run(mut self) {
        let mut rest = Rest::new();
        loop {
            let before = self.seen.borrow().at;
            let error = self.follow().await;
            if self.seen.borrow().at > before {
                rest = Rest::new();
            }
            match error {
                Ok(()) => {}
                Err(Broken::Call(error)) => tracing::debug!(?error, "etcd is followed anew"),
                Err(Broken::Data(error)) => tracing::error!(%error, "what etcd holds cannot be read"),
            }
            rest.take().await;
        }
    }

    /// Follows until the watch breaks, or until the state was read anew.
    async fn follow(&mut self) -> Result<(), Broken> {
        let (key, range_end) = self.remote.layout.all();
        let start_revision = self.seen.borrow().at + 1;
        let create = WatchCreateRequest { key, range_end, start_revision, prev_kv: false };
        let members = self.remote.members.clone();
        let mut following = members.watch(create).await.map_err(Broken::Call)?;
        loop {
            let response = members.next(&mut following).await.map_err(Broken::Call)?;
            if response.compact_revision > 0 {
                return self.read_anew(response.compact_revision).await;
            }
            self.take(response).map_err(Broken::Data)?;
        }
    }

    /// Applies a response's steps, shows them all at once, and answers their writers.
    fn take(&mut self, response: WatchResponse) -> Result<(), EngineError> {
        let mut came = Vec::new();
        let mut seen = *self.seen.borrow();
        let steps = steps(&self.remote.layout, response.events)?;
        let applied = steps.iter().try_for_each(|step| self.step(step, &mut seen, &mut came));
        if self.state.revision > *self.published.borrow() {
            self.publish();
        }
        // Whoever waits for a revision to be seen may rely on its writer having been told.
        for (number, transaction) in came {
            self.remote.pending.came(number, &transaction);
        }
        self.seen.send_replace(seen);
        applied
    }

    fn step(
        &mut self,
        step: &Step,
        seen: &mut Seen,
        came: &mut Vec<(u64, Arc<Transaction>)>,
    ) -> Result<(), EngineError> {
        let records = &self.state.records;
        let transaction = step.transaction(&self.remote.line, |key, _| Ok(records.get(key).cloned()))?;
        if let Some(transaction) = transaction {
            self.state.apply(&transaction);
            self.ring.push(transaction.clone(), &mut Vec::new());
            let note = step.note.as_ref().filter(|note| note.writer == self.remote.writer);
            came.extend(note.map(|note| (note.number, transaction)));
        }
        seen.at = step.at;
        seen.fence = if step.is_fence { step.at } else { seen.fence };
        Ok(())
    }

    /// History reaches a revision before anybody may look for it there.
    fn publish(&self) {
        let revision = self.state.revision;
        self.reached.store(revision.get(), Ordering::Release);
        self.remote.shared.state.store(Arc::new(self.state.clone()));
        self.published.send_replace(revision);
    }

    async fn read_anew(&mut self, compacted: i64) -> Result<(), Broken> {
        let remote = self.remote.clone();
        let loaded = load_whole(&remote.members, &remote.layout, &remote.line).await.map_err(Broken::Data)?;
        let Loaded { state, at, fence } = loaded;
        tracing::warn!(
            after = %self.state.revision, revision = %state.revision,
            "history was given back before it was followed; the state was read anew"
        );
        self.state = state;
        self.ring.skip();
        self.publish();
        remote.shared.raise_floor(remote.line.revision(compacted));
        self.seen.send_replace(Seen { at, fence });
        remote.pending.lost();
        Ok(())
    }
}

/// Why following broke off.
enum Broken {
    /// The server was lost.
    Call(CallError),
    /// What it said cannot be read.
    Data(EngineError),
}
