//! Watch: every transaction that touches a range, whole, in order, once, from any kept revision on.
//!
//! A watch is a cursor. While it is near the end it reads the ring of recent transactions; when it
//! falls behind that, it reads the engine's history until it has caught up. It never slows the
//! committer. Knows nothing of what a change means, nor how events are framed.

use std::collections::VecDeque;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;

use tokio::sync::watch;

use crate::engine::HistoryReader;
use crate::error::{EngineError, WatchError};
use crate::key::KeyRange;
use crate::revision::Revision;
use crate::shared::{Seat, Shared};
use crate::snapshot::Snapshot;
use crate::txn::Transaction;

/// Transactions outside the range that pass before a watch yields `Progress` unasked.
pub const PROGRESS_EVERY: u64 = 4096;

/// Most transactions taken from history in one read.
const HISTORY_BATCH: usize = 256;
/// Most bytes taken from history in one read, counted before the last transaction.
const HISTORY_BATCH_BYTES: usize = 1 << 20;
/// Most transactions looked at in one read of history, in range or not.
const HISTORY_BATCH_SCAN: usize = 16_384;

/// Where a watch starts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum From {
    /// With the first transaction after the current revision.
    Now,
    /// With the first transaction after this revision.
    After(Revision),
    /// With a snapshot of the current revision, then everything after it.
    WithInitial,
}

/// What a watch yields.
#[derive(Clone, Debug)]
pub enum WatchItem {
    /// The state to start from, whole store; once, first, and only `From::WithInitial`.
    /// `snapshot.range(watch.range(), None)` are the records that matter.
    Initial(Snapshot),
    /// A transaction that touches the range; its changes outside the range are for the reader to skip.
    Transaction(Arc<Transaction>),
    /// Everything in range up to this revision was delivered.
    Progress(Revision),
}

/// A running watch. Dropping it ends it.
pub struct Watch {
    shared: Arc<Shared>,
    published: watch::Receiver<Revision>,
    range: KeyRange,
    position: Revision,
    initial: Option<Snapshot>,
    announce: Option<Revision>,
    passed: u64,
    fetched: Option<Fetched>,
    fetching: Option<Fetching>,
    ended: Option<WatchError>,
    seat: Seat,
}

/// Transactions in range read from history, and the revision that is delivered when they are.
struct Fetched {
    transactions: VecDeque<Arc<Transaction>>,
    through: Revision,
    reader: Option<Box<dyn HistoryReader>>,
}

type Fetching = Pin<Box<dyn Future<Output = Result<Fetched, EngineError>> + Send>>;

impl Watch {
    /// Starts a watch.
    pub(crate) fn start(shared: Arc<Shared>, range: KeyRange, from: From) -> Result<Self, WatchError> {
        let state = shared.state.load_full();
        let (position, initial) = match from {
            From::Now => (state.revision, None),
            From::WithInitial => (state.revision, Some(Snapshot::new(state.revision, state.records.clone()))),
            From::After(revision) => {
                let (oldest, current) = (shared.oldest(), state.revision);
                if revision > current {
                    return Err(WatchError::Future { current });
                }
                if revision < oldest {
                    return Err(WatchError::Compacted { oldest });
                }
                (revision, None)
            }
        };
        let published = shared.published.clone();
        let seat = shared.watchers.sit(position);
        Ok(Watch {
            shared,
            published,
            range,
            position,
            initial,
            announce: None,
            passed: 0,
            fetched: None,
            fetching: None,
            ended: None,
            seat,
        })
    }

    /// The range that is watched.
    #[must_use]
    pub fn range(&self) -> &KeyRange {
        &self.range
    }

    /// The revision up to which everything in range was delivered: a watch resumed after it loses
    /// nothing and repeats nothing. With `WithInitial` it counts once the initial item was taken.
    #[must_use]
    pub fn progress(&self) -> Revision {
        if self.initial.is_some() { Revision::ZERO } else { self.position }
    }

    /// Whether everything in range up to `revision` was delivered.
    #[must_use]
    pub fn caught_up_to(&self, revision: Revision) -> bool {
        self.initial.is_none() && self.position >= revision
    }

    /// Asks for one `Progress` as soon as everything in range up to `revision` was delivered (at once
    /// if it was). A later call replaces an earlier one.
    pub fn announce(&mut self, revision: Revision) {
        self.announce = Some(revision);
    }

    /// The next item; waits for one. Cancel safe: dropping the future loses nothing.
    ///
    /// # Errors
    /// `Compacted` if the watch fell behind the history kept, `Closed` when the store is closed and
    /// everything was delivered, `Engine` if history cannot be read. The same error from then on.
    pub async fn next(&mut self) -> Result<WatchItem, WatchError> {
        loop {
            if let Some(item) = self.try_next()? {
                return Ok(item);
            }
            if self.fetching.is_some() || self.is_behind() {
                self.fetch().await?;
            } else if self.published.changed().await.is_err() && !self.is_behind() {
                return Err(self.end(WatchError::Closed));
            }
        }
    }

    /// The next item if one is at hand: `None` means wait with [`next`](Watch::next). With it a caller
    /// takes everything that is ready and sends it in one write.
    ///
    /// # Errors
    /// As `next`.
    pub fn try_next(&mut self) -> Result<Option<WatchItem>, WatchError> {
        if let Some(error) = &self.ended {
            return Err(error.clone());
        }
        let item = self.take_next();
        self.seat.moved(self.position);
        Ok(item)
    }

    fn take_next(&mut self) -> Option<WatchItem> {
        if let Some(snapshot) = self.initial.take() {
            return Some(WatchItem::Initial(snapshot));
        }
        if let Some(transaction) = self.take_fetched().or_else(|| self.take_from_ring()) {
            self.passed = 0;
            return Some(WatchItem::Transaction(transaction));
        }
        if self.announce.is_some_and(|revision| self.position >= revision) || self.passed >= PROGRESS_EVERY {
            self.announce = self.announce.filter(|revision| self.position < *revision);
            self.passed = 0;
            return Some(WatchItem::Progress(self.position));
        }
        None
    }

    fn is_behind(&self) -> bool {
        self.position < *self.published.borrow()
    }

    fn take_fetched(&mut self) -> Option<Arc<Transaction>> {
        let fetched = self.fetched.as_mut()?;
        let transaction = fetched.transactions.pop_front();
        if let Some(transaction) = &transaction {
            self.position = transaction.revision;
        } else if fetched.through > self.position {
            self.passed += fetched.through.get() - self.position.get();
            self.position = fetched.through;
        }
        transaction
    }

    fn take_from_ring(&mut self) -> Option<Arc<Transaction>> {
        if self.fetching.is_some() {
            return None;
        }
        let published = *self.published.borrow_and_update();
        while self.position < published {
            let transaction = self.shared.ring.get(self.position.next())?;
            // What the ring has is not read from history again.
            self.fetched = None;
            self.position = transaction.revision;
            if transaction.touches(&self.range) {
                return Some(transaction);
            }
            self.passed += 1;
        }
        None
    }

    /// Reads the next piece of history; the running read is kept if this future is dropped.
    async fn fetch(&mut self) -> Result<(), WatchError> {
        let reader = self.fetched.take().and_then(|fetched| fetched.reader);
        let (shared, range, after) = (self.shared.clone(), self.range.clone(), self.position);
        let fetching = self.fetching.get_or_insert_with(|| Box::pin(fetch(shared, range, after, reader)));
        let result = fetching.as_mut().await;
        self.fetching = None;
        match result {
            Ok(fetched) => {
                self.fetched = Some(fetched);
                Ok(())
            }
            Err(EngineError::Compacted { oldest }) => {
                let oldest = oldest.max(self.shared.oldest());
                Err(self.end(WatchError::Compacted { oldest }))
            }
            Err(error) => Err(self.end(error.into())),
        }
    }

    fn end(&mut self, error: WatchError) -> WatchError {
        self.ended = Some(error.clone());
        error
    }
}

/// Reads a bounded piece of history after `after` on a thread where blocking is allowed.
async fn fetch(
    shared: Arc<Shared>,
    range: KeyRange,
    after: Revision,
    reader: Option<Box<dyn HistoryReader>>,
) -> Result<Fetched, EngineError> {
    let stopped = |reason: String| EngineError::Stopped { reason };
    let permit = shared.history_readers.clone().acquire_owned().await;
    let permit = permit.map_err(|error| stopped(error.to_string()))?;
    let read = tokio::task::spawn_blocking(move || {
        let read = read_batch(&shared, &range, after, reader);
        drop(permit);
        read
    });
    read.await.map_err(|error| stopped(error.to_string()))?
}

fn read_batch(
    shared: &Shared,
    range: &KeyRange,
    after: Revision,
    reader: Option<Box<dyn HistoryReader>>,
) -> Result<Fetched, EngineError> {
    let mut reader = match reader {
        Some(reader) => reader,
        None => shared.archive.read_after(after)?,
    };
    let published = shared.current();
    let mut transactions = VecDeque::new();
    let (mut through, mut bytes, mut scanned) = (after, 0, 0);
    // History may already hold what is durable but not yet published: that is left for later.
    while through < published
        && transactions.len() < HISTORY_BATCH
        && bytes < HISTORY_BATCH_BYTES
        && scanned < HISTORY_BATCH_SCAN
    {
        let Some(transaction) = reader.next()? else { break };
        through = transaction.revision;
        scanned += 1;
        if transaction.touches(range) {
            bytes += transaction.size();
            transactions.push_back(transaction);
        }
    }
    if through == after {
        let what = format!("history ends at revision {after}, {published} is published");
        return Err(EngineError::Corrupt { file: "history".to_owned(), offset: 0, what });
    }
    Ok(Fetched { transactions, through, reader: Some(reader) })
}
