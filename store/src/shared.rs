//! Shared: what the committer publishes and every reader sees.
//! The only meeting place of the writing and the reading side; no lock is held across either.

use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use arc_swap::ArcSwap;
use tokio::sync::{Semaphore, watch};

use crate::config::Clock;
use crate::engine::Archive;
use crate::engine::log::locked;
use crate::holds::Holds;
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
    pub watchers: Arc<Watchers>,
    floor: AtomicU64,
    clock: Arc<dyn Clock>,
    holds: Mutex<Holds>,
    /// Whether the disk is full, and that was told.
    is_full: AtomicBool,
}

impl Shared {
    /// The reading side of a store that stands at `state` and keeps history from `oldest` on.
    pub fn new(
        state: State,
        oldest: Revision,
        ring: Arc<Ring>,
        archive: Arc<dyn Archive>,
        published: watch::Receiver<Revision>,
        clock: Arc<dyn Clock>,
    ) -> Self {
        Shared {
            state: ArcSwap::from_pointee(state),
            ring,
            archive,
            published,
            history_readers: Arc::new(Semaphore::new(MAX_HISTORY_READERS)),
            watchers: Arc::default(),
            floor: AtomicU64::new(oldest.get()),
            clock,
            holds: Mutex::default(),
            is_full: AtomicBool::new(false),
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

    /// Holds a revision against automatic compaction for so long.
    pub fn hold(&self, revision: Revision, how_long: Duration) {
        locked(&self.holds).hold(revision, self.clock.now(), how_long);
    }

    /// The oldest revision that is held.
    pub fn held(&self) -> Option<Revision> {
        locked(&self.holds).oldest(self.clock.now())
    }

    /// Notes that the disk is full; gives whether that is news.
    pub fn note_full(&self) -> bool {
        !self.is_full.swap(true, Ordering::Relaxed)
    }

    /// Notes that the disk has room; gives whether that is news.
    pub fn note_room(&self) -> bool {
        self.is_full.load(Ordering::Relaxed) && self.is_full.swap(false, Ordering::Relaxed)
    }

    /// Raises the oldest revision, never above the current one; gives the one that holds then.
    pub fn raise_floor(&self, to: Revision) -> Revision {
        let to = to.min(self.current());
        let before = self.floor.fetch_max(to.get(), Ordering::AcqRel);
        Revision::new(before.max(to.get()))
    }
}

/// The watches that exist, and how far each has delivered. Its lock is taken when one comes, goes, or is counted.
#[derive(Default)]
pub struct Watchers {
    seats: Mutex<HashMap<u64, Arc<AtomicU64>>>,
    named: AtomicU64,
}

impl Watchers {
    /// A seat for a watch that has delivered everything up to `position`.
    pub fn sit(self: &Arc<Self>, position: Revision) -> Seat {
        let number = self.named.fetch_add(1, Ordering::Relaxed);
        let position = Arc::new(AtomicU64::new(position.get()));
        locked(&self.seats).insert(number, position.clone());
        Seat { watchers: self.clone(), number, position }
    }

    /// How many there are, how many have not delivered everything up to `current`, and how many revisions the slowest
    /// of them is behind.
    pub fn count(&self, current: Revision) -> (u64, u64, u64) {
        let seats = locked(&self.seats);
        let behind = seats.values().map(|at| current.get().saturating_sub(at.load(Ordering::Relaxed)));
        let (late, slowest) =
            behind.fold((0, 0), |(late, slowest), by| (late + u64::from(by > 0), by.max(slowest)));
        (seats.len() as u64, late, slowest)
    }
}

/// One watch among all; gone when dropped.
pub struct Seat {
    watchers: Arc<Watchers>,
    number: u64,
    position: Arc<AtomicU64>,
}

impl Seat {
    /// Notes how far the watch has delivered.
    pub fn moved(&self, position: Revision) {
        self.position.store(position.get(), Ordering::Relaxed);
    }
}

impl Drop for Seat {
    fn drop(&mut self) {
        locked(&self.watchers.seats).remove(&self.number);
    }
}
