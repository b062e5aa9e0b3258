//! Engine: the small seam between the store and what keeps its transactions.
//! Ours owns revisions: an engine is told them. It knows nothing of conditions, watchers or callers.

use std::sync::Arc;

use crate::error::EngineError;
use crate::revision::Revision;
use crate::state::State;
use crate::txn::Transaction;

pub(crate) mod disk;
pub(crate) mod codec;
pub(crate) mod flip;
pub(crate) mod frame;
pub(crate) mod damage;
pub(crate) mod segment;
pub(crate) mod slots;
pub(crate) mod log;
pub(crate) mod reader;
pub(crate) mod checkpoint;
pub(crate) mod recovery;
pub(crate) mod inspect;
pub(crate) mod archive;
pub(crate) mod directory;
pub(crate) mod sled;
pub(crate) mod pace;
pub mod crash;
pub mod memory;
#[cfg(feature = "etcd")]
pub mod etcd;
#[cfg(test)]
mod golden;

/// How badly space is wanted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Pressure {
    /// There is enough.
    None,
    /// A put found no room: what can be given back without loss should be.
    Full,
    /// A delete found no room either: the reserve may be used to win more.
    Desperate,
}

/// Transactions that become durable together.
#[derive(Clone, Copy, Debug)]
pub struct Group<'a> {
    /// The state that the first of them changes.
    pub before: &'a State,
    /// The transactions, in order, without a gap; never empty.
    pub transactions: &'a [Arc<Transaction>],
    /// Anything but `None`: they only free space, and the engine's reserve may be used for them.
    pub pressure: Pressure,
}

/// What an engine found when it was opened.
#[derive(Clone, Debug)]
pub struct Recovered {
    /// The newest state.
    pub state: State,
    /// The newest transactions, oldest first, the last being the state's; may be empty.
    pub recent: Vec<Arc<Transaction>>,
    /// Oldest revision after which history is whole.
    pub oldest: Revision,
}

/// The writing half of an engine, owned by the committer.
pub trait Engine: Send {
    /// Makes a group durable: when this returns, no crash or power cut undoes it.
    ///
    /// # Errors
    /// `NoSpace` or an error of class `Transient`: nothing is kept of the group, later groups may work.
    /// Any other: the group may or may not be found by the next open, and no later group is taken.
    fn append(&mut self, group: &Group<'_>) -> Result<(), EngineError>;
}

/// What an engine takes of its disk.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DiskUsage {
    /// Bytes that its files take.
    pub used: u64,
    /// Bytes that are free.
    pub available: u64,
}

/// The shared half of an engine: reading history, and work off the commit path.
pub trait Archive: Send + Sync {
    /// Reads the transactions after a revision.
    ///
    /// # Errors
    /// `Compacted` if they are not all there any more.
    fn read_after(&self, after: Revision) -> Result<Box<dyn HistoryReader>, EngineError>;

    /// Whether [`upkeep`](Archive::upkeep) has something to do.
    fn upkeep_due(&self, floor: Revision) -> bool;

    /// One bounded slice of background work: checkpoint `state`, give back history before `floor`,
    /// renew reserves. `state` is durable and published. Gives whether there is more to do at once.
    ///
    /// # Errors
    /// The slice failed; it may be tried again later, and nothing is lost by it.
    fn upkeep(&self, state: &State, floor: Revision, pressure: Pressure) -> Result<bool, EngineError>;

    /// Bytes of history kept.
    fn log_bytes(&self) -> u64;

    /// What it takes of its disk; `None` where that is not this machine's, or cannot be told.
    fn disk_usage(&self) -> Option<DiskUsage>;

    /// Orderly end: leaves what makes the next open fast and lets go of the files.
    fn close(&self, state: &State, floor: Revision);
}

/// Reads transactions in order.
pub trait HistoryReader: Send {
    /// The next transaction; `None` at the end of what was durable when it was looked at. Later calls
    /// see what came since.
    ///
    /// # Errors
    /// `Compacted` if the next transaction is not there any more, `Corrupt` or `Io` if it cannot be read.
    fn next(&mut self) -> Result<Option<Arc<Transaction>>, EngineError>;
}

/// An engine as opened: both halves, and what it found.
pub struct Opened {
    /// The writing half.
    pub engine: Box<dyn Engine>,
    /// The shared half.
    pub archive: Arc<dyn Archive>,
    /// What was found.
    pub recovered: Recovered,
}
