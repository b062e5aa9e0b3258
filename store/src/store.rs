//! Store: the handle that callers hold, over the committer, the readers and the engine.
//! Knows keys and bytes, never kinds.

use std::path::PathBuf;
use std::sync::Arc;
use std::thread;
use std::time::Duration;

use tokio::sync::{mpsc, oneshot, watch};
use tokio::time::Instant;

use crate::committer::{Committer, MAX_WAITING, Request};
use crate::config::Config;
use crate::engine::Opened;
#[cfg(feature = "etcd")]
use crate::engine::etcd::EtcdConfig;
use crate::engine::memory::Memory;
use crate::error::{CommitError, EngineError, OpenError, ReadError, WatchError};
use crate::key::KeyRange;
use crate::past::{self, Moment, Which};
use crate::revision::Revision;
use crate::ring::{Ring, RingWriter};
use crate::shared::Shared;
use crate::snapshot::{ReadAt, Snapshot};
use crate::state::{State, Undo, validate};
use crate::txn::{Committed, Txn};
use crate::upkeep::{Order, Orders, Upkeep};
use crate::watch::{From, Watch};

/// What keeps the data.
#[derive(Clone, Debug)]
pub enum EngineChoice {
    /// A directory of this machine, created if it is missing: an append log that acknowledges, and a
    /// sled database behind it that holds the checkpoint.
    Sled {
        /// The directory; only one store may have it open.
        directory: PathBuf,
    },
    /// Memory, with faults on demand: for tests and simulation.
    Memory(Memory),
    /// An etcd cluster, which several stores may have open at one time, and which owns the line of
    /// revisions: where others write to the cluster too, some of them are skipped.
    #[cfg(feature = "etcd")]
    Etcd(EtcdConfig),
}

/// An open store. Clones are handles to the same store; it ends with [`close`](Store::close), or when
/// the last handle is dropped.
#[derive(Clone)]
pub struct Store {
    shared: Arc<Shared>,
    requests: mpsc::Sender<Request>,
    orders: Orders,
    /// Whether other stores may write to the same data.
    is_one_of_many: bool,
}

/// Figures of a store at one moment.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Stats {
    /// Keys that are there.
    pub keys: u64,
    /// Bytes of all keys and values that are there.
    pub bytes: u64,
    /// Oldest revision that can be read or watched after.
    pub oldest: Revision,
    /// Newest durable revision.
    pub current: Revision,
    /// Watches that exist.
    pub watchers: u64,
    /// Those of them that have not delivered everything up to the newest revision.
    pub watchers_behind: u64,
    /// How many revisions the slowest watch is behind.
    pub watch_lag: u64,
    /// Bytes of history kept by the engine.
    pub log_bytes: u64,
    /// Bytes that the engine takes of its disk, reserve and all; `None` where that is not this machine's.
    pub disk_bytes: Option<u64>,
    /// Bytes that are free on that disk.
    pub disk_available: Option<u64>,
}

impl Store {
    /// Opens a store, recovering what its engine holds. Blocks while it reads; `commit` and `snapshot`
    /// may be called from any tokio runtime afterwards.
    ///
    /// # Errors
    /// `Locked` if it is open elsewhere, `NewerFormat` if a newer version wrote it, `Engine` of class
    /// `Corrupt` if stored data is damaged; nothing is changed on disk by these.
    pub fn open(config: Config, engine: EngineChoice) -> Result<Store, OpenError> {
        let opened = match engine {
            EngineChoice::Sled { directory } => crate::engine::sled::open(&directory, &config)?,
            EngineChoice::Memory(memory) => memory.open(&config)?,
            #[cfg(feature = "etcd")]
            EngineChoice::Etcd(etcd) => {
                let (requests, requested) = mpsc::channel(MAX_WAITING);
                let (shared, orders) = crate::remote::start::open(&config, etcd, requested)?;
                return Ok(Store { shared, requests, orders, is_one_of_many: true });
            }
        };
        Store::start(&config, opened)
    }

    fn start(config: &Config, opened: Opened) -> Result<Store, OpenError> {
        let Opened { engine, archive, recovered } = opened;
        let state = recovered.state;
        let ring = Arc::new(Ring::new(config.ring_transactions));
        let mut writer = RingWriter::new(ring.clone(), config.ring_bytes);
        let mut left = Vec::new();
        recovered.recent.into_iter().for_each(|transaction| writer.push(transaction, &mut left));
        let (published, receiver) = watch::channel(state.revision);
        let shared = Arc::new(Shared::new(
            state.clone(),
            recovered.oldest,
            ring,
            archive,
            receiver,
            config.clock.clone(),
        ));
        let (orders, ordered) = Orders::channel();
        let (requests, requested) = mpsc::channel(MAX_WAITING);
        let upkeep = Upkeep::new(shared.clone(), config);
        let committer = Committer {
            engine,
            state,
            shared: shared.clone(),
            ring: writer,
            published,
            orders: orders.clone(),
            clock: config.clock.clone(),
            stopped: None,
            asked: 0,
        };
        let spawn = |name: &str, body: Box<dyn FnOnce() + Send>| {
            thread::Builder::new().name(name.to_owned()).spawn(body).map_err(OpenError::Thread)
        };
        spawn("store-upkeep", Box::new(move || upkeep.run(&ordered)))?;
        spawn("store-commit", Box::new(move || committer.run(requested)))?;
        Ok(Store { shared, requests, orders, is_one_of_many: false })
    }

    /// Commits a transaction: all of it or nothing, durable when this returns. Once this future was
    /// polled, dropping it does not call the transaction back.
    ///
    /// # Errors
    /// `Failed` with the first condition that did not hold, `Invalid`, `NoSpace`, `Closed`, `Engine`.
    pub async fn commit(&self, txn: Txn) -> Result<Committed, CommitError> {
        let size = validate(&txn)?;
        let (answer, outcome) = oneshot::channel();
        let request = Request::Commit { txn, size, answer };
        self.requests.send(request).await.map_err(|_| CommitError::Closed)?;
        outcome.await.map_err(|_| CommitError::Closed)?
    }

    /// The whole store at one revision, without waiting for it: see [`wait_for`](Store::wait_for).
    /// `Latest`, `NotOlderThan` and the current revision cost nothing; an older `Exact` revision is
    /// rebuilt from the current one and the history between. Over etcd `Latest` asks the cluster, so
    /// that it shows what any store on it was answered for before.
    ///
    /// # Errors
    /// `Future` if the revision has not happened yet, `Compacted` if it is older than the history kept.
    pub async fn snapshot(&self, at: ReadAt) -> Result<Snapshot, ReadError> {
        if at == ReadAt::Latest && self.is_one_of_many {
            self.catch_up().await?;
        }
        let state = self.shared.state.load_full();
        let current = state.revision;
        match at {
            ReadAt::NotOlderThan(revision) | ReadAt::Exact(revision) if revision > current => {
                Err(ReadError::Future { current })
            }
            ReadAt::Exact(revision) if revision < current => self.rebuild(state, revision).await,
            _ => Ok(Snapshot::new(current, state.records.clone())),
        }
    }

    /// Waits until this store has seen what any other was answered for before. A closed store stays at
    /// what it has seen.
    async fn catch_up(&self) -> Result<(), ReadError> {
        let (answer, newest) = oneshot::channel();
        if self.requests.send(Request::Newest { answer }).await.is_err() {
            return Ok(());
        }
        match newest.await {
            Ok(Ok(_)) | Err(_) => Ok(()),
            Ok(Err(error)) => Err(error.into()),
        }
    }

    async fn rebuild(&self, state: Arc<State>, revision: Revision) -> Result<Snapshot, ReadError> {
        let oldest = self.oldest_revision();
        if revision < oldest {
            return Err(ReadError::Compacted { oldest });
        }
        let stopped = |reason: String| ReadError::Engine(EngineError::Stopped { reason });
        let permit = self.shared.history_readers.clone().acquire_owned().await;
        let permit = permit.map_err(|error| stopped(error.to_string()))?;
        let shared = self.shared.clone();
        let read = tokio::task::spawn_blocking(move || {
            let rebuilt = rebuild(&shared, &state, revision);
            drop(permit);
            rebuilt
        });
        Ok(read.await.map_err(|error| stopped(error.to_string()))??)
    }

    /// The revision of a moment, and when it was. What is in memory costs a few steps; before that, history is read
    /// up to there.
    ///
    /// # Errors
    /// `Future` if the revision has not happened yet, `Compacted` if the moment is before the history kept.
    pub async fn moment(&self, which: Which) -> Result<Moment, ReadError> {
        if which == Which::Now && self.is_one_of_many {
            self.catch_up().await?;
        }
        let stopped = |reason: String| ReadError::Engine(EngineError::Stopped { reason });
        let permit = self.shared.history_readers.clone().acquire_owned().await;
        let permit = permit.map_err(|error| stopped(error.to_string()))?;
        let shared = self.shared.clone();
        let read = tokio::task::spawn_blocking(move || {
            let found = past::find(&shared, which);
            drop(permit);
            found
        });
        read.await.map_err(|error| stopped(error.to_string()))?
    }

    /// Waits until a revision is durable and readable; gives the current one then.
    ///
    /// # Errors
    /// `Future` if the deadline passes first, `Closed` if the store closes first.
    pub async fn wait_for(&self, revision: Revision, deadline: Instant) -> Result<Revision, ReadError> {
        let mut published = self.shared.published.clone();
        let reached = published.wait_for(|current| *current >= revision);
        match tokio::time::timeout_at(deadline, reached).await {
            Ok(Ok(current)) => Ok(*current),
            Ok(Err(_)) => Err(ReadError::Closed),
            Err(_) => Err(ReadError::Future { current: self.current_revision() }),
        }
    }

    /// Watches a range.
    ///
    /// # Errors
    /// With `From::After`: `Compacted` if it is older than the history kept, `Future` if it has not
    /// happened yet.
    pub fn watch(&self, range: KeyRange, from: From) -> Result<Watch, WatchError> {
        Watch::start(self.shared.clone(), range, from)
    }

    /// Gives up history below a revision (that revision itself stays readable), off the commit path
    /// and in bounded slices. Gives the oldest revision that is kept, never above the current one.
    /// The log is given back by whole segments; the answer does not wait for commits. The limit is
    /// remembered by `close`; after a crash, history that is still whole may be readable again.
    ///
    /// # Errors
    /// `Closed`, or `Engine` if giving back failed; history below is refused all the same.
    pub async fn compact(&self, below: Revision) -> Result<Revision, ReadError> {
        let oldest = self.shared.raise_floor(below);
        self.maintain().await?;
        Ok(oldest)
    }

    /// Keeps a revision readable for so long at least, whatever the history's age: for a reader who will come back to it,
    /// as with the next page of a list. [`compact`](Store::compact) and a full disk take it all the same.
    pub fn hold(&self, revision: Revision, how_long: Duration) {
        self.shared.hold(revision, how_long);
    }

    /// Does now what upkeep would do in time: automatic compaction, checkpoint, giving back space.
    ///
    /// # Errors
    /// `Closed`, or `Engine` if it failed; it is tried again by itself.
    pub async fn maintain(&self) -> Result<(), ReadError> {
        let (answer, outcome) = oneshot::channel();
        let orders = self.orders.clone();
        let sent = tokio::task::spawn_blocking(move || orders.send(Order::Run(answer))).await;
        if !sent.unwrap_or(false) {
            return Err(ReadError::Closed);
        }
        outcome.await.map_err(|_| ReadError::Closed)?.map_err(ReadError::Engine)
    }

    /// Newest durable revision.
    #[must_use]
    pub fn current_revision(&self) -> Revision {
        self.shared.current()
    }

    /// Oldest revision that can be read or watched after.
    #[must_use]
    pub fn oldest_revision(&self) -> Revision {
        self.shared.oldest()
    }

    /// Figures of the store at this moment. Looks at the files' sizes.
    #[must_use]
    pub fn stats(&self) -> Stats {
        let state = self.shared.state.load();
        let (watchers, watchers_behind, watch_lag) = self.shared.watchers.count(state.revision);
        let disk = self.shared.archive.disk_usage();
        Stats {
            keys: state.records.len() as u64,
            bytes: state.bytes,
            oldest: self.shared.oldest(),
            current: state.revision,
            watchers,
            watchers_behind,
            watch_lag,
            log_bytes: self.shared.archive.log_bytes(),
            disk_bytes: disk.map(|disk| disk.used),
            disk_available: disk.map(|disk| disk.available),
        }
    }

    /// Closes the store in order: what was sent before is committed and answered, later transactions
    /// are refused with `Closed`, watches end when they have delivered everything, the files are free
    /// when this returns. Closing a closed store does nothing.
    pub async fn close(&self) {
        let (answer, closed) = oneshot::channel();
        if self.requests.send(Request::Close { answer }).await.is_err() || closed.await.is_err() {
            tracing::debug!("the store was closed already");
        }
    }
}

/// The state at an older revision: the given one with all transactions after it undone.
fn rebuild(shared: &Shared, state: &State, revision: Revision) -> Result<Snapshot, EngineError> {
    let mut undo = Undo::default();
    let mut at = revision;
    let mut reader = None;
    while at < state.revision {
        let recent = if reader.is_none() { shared.ring.get(at.next()) } else { None };
        let transaction = match recent {
            Some(transaction) => Some(transaction),
            None => match &mut reader {
                Some(reader) => reader,
                None => reader.insert(shared.archive.read_after(at)?),
            }
            .next()?,
        };
        let Some(transaction) = transaction else {
            let what = format!("history ends at revision {at}, {} is published", state.revision);
            return Err(EngineError::Corrupt { file: "history".to_owned(), offset: 0, what });
        };
        undo.note(&transaction);
        at = transaction.revision;
    }
    Ok(Snapshot::new(revision, undo.take_from(state)))
}
