//! History: the shared half of the engine: reads older transactions through watches of their own, and
//! has etcd give back what is not wanted any more. The tasks run where the connections are; whoever
//! reads waits for them. Knows nothing of the commit path.

use std::sync::Arc;
use std::sync::atomic::{AtomicI64, AtomicU64, Ordering};
use std::time::Duration;

use tokio::sync::{mpsc, oneshot};
use tokio::task::JoinSet;
use tokio::time::{Instant, timeout};

use crate::engine::etcd::events::steps;
use crate::engine::etcd::layout::{Layout, Line};
use crate::engine::etcd::members::{CallError, Members, Rest};
use crate::engine::etcd::wire::{COMPACT, CompactionRequest, CompactionResponse, WatchCreateRequest};
use crate::engine::{Archive, DiskUsage, HistoryReader, Pressure};
use crate::error::EngineError;
use crate::revision::Revision;
use crate::state::State;
use crate::txn::Transaction;

/// Errands that may wait.
pub const MAX_ERRANDS: usize = 64;
/// Transactions read ahead of a reader.
const READ_AHEAD: usize = 256;
/// Longest that a reader waits for etcd, and the upkeep for a compaction.
const LIMIT: Duration = Duration::from_secs(20);

/// What is to be done where the connections are.
pub enum Errand {
    /// Read the transactions after a revision until the reader is gone.
    Read {
        /// After which.
        after: Revision,
        /// Where they go.
        found: mpsc::Sender<Result<Arc<Transaction>, EngineError>>,
    },
    /// Give back history below a revision.
    Compact {
        /// The revision that stays readable.
        below: Revision,
        /// Told when etcd has taken note.
        done: oneshot::Sender<Result<(), EngineError>>,
    },
}

/// The shared half.
pub struct EtcdArchive {
    errands: mpsc::Sender<Errand>,
    compacted: AtomicU64,
    reached: Arc<AtomicU64>,
}

impl EtcdArchive {
    /// An archive whose errands go there; `reached` is the newest revision that is there to be read.
    #[must_use]
    pub fn new(errands: mpsc::Sender<Errand>, oldest: Revision, reached: Arc<AtomicU64>) -> Self {
        EtcdArchive { errands, compacted: AtomicU64::new(oldest.get()), reached }
    }
}

fn gone() -> EngineError {
    EngineError::Stopped { reason: "the connection to etcd is closed".to_owned() }
}

impl Archive for EtcdArchive {
    fn read_after(&self, after: Revision) -> Result<Box<dyn HistoryReader>, EngineError> {
        let (found, reader) = mpsc::channel(READ_AHEAD);
        self.errands.blocking_send(Errand::Read { after, found }).map_err(|_| gone())?;
        let reached = self.reached.clone();
        Ok(Box::new(EtcdReader { position: after, found: reader, reached }))
    }

    fn upkeep_due(&self, floor: Revision) -> bool {
        floor.get() > self.compacted.load(Ordering::Relaxed)
    }

    fn upkeep(&self, _state: &State, floor: Revision, _pressure: Pressure) -> Result<bool, EngineError> {
        if self.upkeep_due(floor) {
            let (done, answer) = oneshot::channel();
            self.errands.blocking_send(Errand::Compact { below: floor, done }).map_err(|_| gone())?;
            answer.blocking_recv().map_err(|_| gone())??;
            self.compacted.fetch_max(floor.get(), Ordering::Relaxed);
        }
        Ok(false)
    }

    fn log_bytes(&self) -> u64 {
        0
    }

    fn disk_usage(&self) -> Option<DiskUsage> {
        None
    }

    fn close(&self, _state: &State, _floor: Revision) {}
}

struct EtcdReader {
    position: Revision,
    found: mpsc::Receiver<Result<Arc<Transaction>, EngineError>>,
    reached: Arc<AtomicU64>,
}

impl HistoryReader for EtcdReader {
    fn next(&mut self) -> Result<Option<Arc<Transaction>>, EngineError> {
        if self.position.get() >= self.reached.load(Ordering::Acquire) {
            return Ok(None);
        }
        let transaction = self.found.blocking_recv().ok_or_else(gone)??;
        self.position = transaction.revision;
        Ok(Some(transaction))
    }
}

/// Where errands are done.
#[derive(Clone)]
pub struct Historian {
    /// The cluster.
    pub members: Arc<Members>,
    /// Where things are there.
    pub layout: Layout,
    /// How revisions map.
    pub line: Line,
    /// The newest revision that is there to be read.
    pub reached: Arc<AtomicU64>,
}

impl Historian {
    /// Does errands until nobody is left to give any.
    pub async fn run(self, mut errands: mpsc::Receiver<Errand>) {
        let mut readers = JoinSet::new();
        while let Some(errand) = errands.recv().await {
            while readers.try_join_next().is_some() {}
            match errand {
                Errand::Read { after, found } => readers.spawn(self.clone().read(after, found)),
                Errand::Compact { below, done } => readers.spawn(self.clone().compact(below, done)),
            };
        }
    }

    async fn compact(self, below: Revision, done: oneshot::Sender<Result<(), EngineError>>) {
        let request = CompactionRequest { revision: self.line.etcd(below) };
        let deadline = Instant::now() + LIMIT;
        let answer = self.members.call_until::<_, CompactionResponse>(COMPACT, request, deadline).await;
        let result = match answer {
            Ok(_) => Ok(()),
            // Another user of the cluster was faster.
            Err(CallError::Refused { status, .. }) if status.message().contains("has been compacted") => {
                Ok(())
            }
            Err(error) => Err(error.of_read()),
        };
        if done.send(result).is_err() {
            tracing::debug!("nobody waits for the compaction any more");
        }
    }

    async fn read(self, after: Revision, found: mpsc::Sender<Result<Arc<Transaction>, EngineError>>) {
        let position = AtomicI64::new(self.line.etcd(after));
        let read = self.follow(&position, &found);
        let ended = tokio::select! {
            error = read => error,
            () = found.closed() => return,
        };
        if found.send(Err(ended)).await.is_err() {
            tracing::trace!("a reader left before the end of its history");
        }
    }

    /// Reads on until that fails for good; gives why.
    async fn follow(
        &self,
        position: &AtomicI64,
        found: &mpsc::Sender<Result<Arc<Transaction>, EngineError>>,
    ) -> EngineError {
        let (mut rest, mut failing_since) = (Rest::new(), None);
        loop {
            let before = position.load(Ordering::Relaxed);
            let error = match self.read_once(position, found).await {
                Ok(never) => match never {},
                Err(Ended::Lost(error)) => error.of_read(),
                Err(Ended::Failed(error)) => return error,
            };
            if position.load(Ordering::Relaxed) > before {
                (rest, failing_since) = (Rest::new(), None);
            }
            let since = *failing_since.get_or_insert_with(Instant::now);
            if since.elapsed() > LIMIT {
                return error;
            }
            tracing::debug!(%error, "history is read on from another server");
            rest.take().await;
        }
    }

    async fn read_once(
        &self,
        position: &AtomicI64,
        found: &mpsc::Sender<Result<Arc<Transaction>, EngineError>>,
    ) -> Result<std::convert::Infallible, Ended> {
        let (key, range_end) = self.layout.all();
        let start_revision = position.load(Ordering::Relaxed) + 1;
        let create = WatchCreateRequest { key, range_end, start_revision, prev_kv: true };
        let mut following = self.members.watch(create).await.map_err(Ended::Lost)?;
        loop {
            let next = self.members.next(&mut following);
            let is_behind = || {
                let at = self.line.revision(position.load(Ordering::Relaxed));
                at.get() < self.reached.load(Ordering::Acquire)
            };
            let response = if is_behind() {
                timeout(LIMIT, next).await.map_err(|_| Ended::Failed(silent()))?
            } else {
                next.await
            };
            let response = response.map_err(Ended::Lost)?;
            if response.compact_revision > 0 {
                let oldest = self.line.revision(response.compact_revision);
                return Err(Ended::Failed(EngineError::Compacted { oldest }));
            }
            for step in steps(&self.layout, response.events).map_err(Ended::Failed)? {
                let transaction = step.transaction_of_history(&self.line).map_err(Ended::Failed)?;
                if let Some(transaction) = transaction {
                    // A reader that has left is noticed by who runs this.
                    if found.send(Ok(transaction)).await.is_err() {
                        return Err(Ended::Failed(gone()));
                    }
                }
                position.store(step.at, Ordering::Relaxed);
            }
        }
    }
}

fn silent() -> EngineError {
    EngineError::Unavailable { at: "etcd".to_owned(), what: "history did not come in time".to_owned() }
}

/// Why reading stopped.
enum Ended {
    /// The server was lost.
    Lost(CallError),
    /// It makes no sense to go on.
    Failed(EngineError),
}
