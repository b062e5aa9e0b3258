//! Shared: what the committer publishes and every reader sees.
//! The only meeting place of the writing and the reading side; no lock is held across either.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};

use arc_swap::ArcSwap;
use tokio::sync::{Semaphore, watch};

use crate::engine::Archive;
use crate::revision::Revision;
use crate::ring::Ring;
use crate::state::State;

/// Readers of old history that may run at one time; more of them wait their turn.
pub const MAX_HISTORY_READERS: usize = 4;

/// The reading side of an open store.
pub struct Shared {
    /// The newest durable state.
    pub state: ArcSwap<State>,
    /// The newest durable transactions.
    pub ring: Arc<Ring>,
    /// The shared half of the engine.
    pub archive: Arc<dyn Archive>,
    /// The newest published revision; its sender is the committer's, so it closes with the store.
    pub published: watch::Receiver<Revision>,
    /// Bounds the readers of old history.
    pub history_readers: Arc<Semaphore>,
    /// Watches that exist.
    pub watchers: AtomicUsize,
    floor: AtomicU64,
}

impl Shared {
    /// The reading side of a store that stands at `state` and keeps history from `oldest` on.
    pub fn new(
        state: State,
        oldest: Revision,
        ring: Arc<Ring>,
        archive: Arc<dyn Archive>,
        published: watch::Receiver<Revision>,
    ) -> Self {
        Shared {
            state: ArcSwap::from_pointee(state),
            ring,
            archive,
            published,
            history_readers: Arc::new(Semaphore::new(MAX_HISTORY_READERS)),
            watchers: AtomicUsize::new(0),
            floor: AtomicU64::new(oldest.get()),
        }
    }

    /// Newest durable revision.
    pub fn current(&self) -> Revision {
        self.state.load().revision
    }

    /// Oldest revision that can be read or watched after.
    pub fn oldest(&self) -> Revision {
        Revision::new(self.floor.load(Ordering::Acquire))
    }

    /// Raises the oldest revision, never above the current one; gives the one that holds then.
    pub fn raise_floor(&self, to: Revision) -> Revision {
        let to = to.min(self.current());
        let before = self.floor.fetch_max(to.get(), Ordering::AcqRel);
        Revision::new(before.max(to.get()))
    }
}
