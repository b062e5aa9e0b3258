//! The errors of the store: one enum per family of operations, each with a class to act on.
//! Knows nothing of how a facade words them.

use std::io;
use std::path::PathBuf;
use std::sync::Arc;

use crate::key::Key;
use crate::record::Record;
use crate::revision::Revision;
use crate::txn::Condition;

/// What kind of failure an error is: the only thing that a retry may depend on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Class {
    /// The state is not what the caller took it to be: read again, then decide again.
    Conflict,
    /// What was asked for is not there (any more).
    NotFound,
    /// The request can never succeed as it is.
    Invalid,
    /// May succeed later without any change.
    Transient,
    /// This store will not do it any more; opening it again may.
    Terminal,
    /// Stored data is damaged.
    Corrupt,
}

/// A failure below the store. The text names file and place; the source, where there is one, the cause.
#[derive(Clone, Debug, thiserror::Error)]
pub enum EngineError {
    /// No room for the data; nothing was written, and a later try may succeed.
    #[error("no space left in {at} ({needed} bytes needed{})", more(.missing))]
    NoSpace {
        /// Directory or device that is full.
        at: String,
        /// Bytes that were asked for.
        needed: u64,
        /// Bytes that must come free there before this can be done; `None` if that is not known.
        missing: Option<u64>,
    },
    /// Reading or writing failed; nothing of the request was made visible.
    #[error("{action} of {file} failed")]
    Io {
        /// What was tried: "write", "sync", ...
        action: &'static str,
        /// The file it was tried on.
        file: String,
        /// Why it failed.
        #[source]
        source: Arc<io::Error>,
    },
    /// Stored bytes are not what was written.
    #[error("{file} is damaged at byte {offset}: {what}")]
    Corrupt {
        /// The damaged file, or the checkpoint's key.
        file: String,
        /// Where in it.
        offset: u64,
        /// What is wrong.
        what: String,
    },
    /// The history asked for is not kept any more.
    #[error("history before revision {oldest} is compacted")]
    Compacted {
        /// Oldest revision still kept.
        oldest: Revision,
    },
    /// The engine's servers cannot be reached, or do not agree among themselves; nothing happened.
    #[error("{at} does not answer: {what}")]
    Unavailable {
        /// The servers, or the one that was asked last.
        at: String,
        /// What it said, or what went wrong.
        what: String,
    },
    /// The engine's servers were lost before they answered: the transaction may or may not have
    /// happened. What happened will be seen by readers and watchers.
    #[error("{at} was lost before it answered: {what}")]
    Uncertain {
        /// The server that was asked.
        at: String,
        /// What went wrong.
        what: String,
    },
    /// The engine's servers refuse what was asked.
    #[error("{at} refuses: {what}")]
    Refused {
        /// The server that was asked.
        at: String,
        /// What it said.
        what: String,
    },
    /// An earlier failure left the engine unsure of what is durable; the store must be opened again.
    #[error("stopped after an earlier failure: {reason}")]
    Stopped {
        /// The earlier failure.
        reason: String,
    },
}

fn more(missing: &Option<u64>) -> String {
    missing.map(|bytes| format!(", {bytes} more must be free")).unwrap_or_default()
}

impl EngineError {
    /// The kind of failure.
    #[must_use]
    pub fn class(&self) -> Class {
        match self {
            EngineError::NoSpace { .. }
            | EngineError::Unavailable { .. }
            | EngineError::Uncertain { .. }
            | EngineError::Refused { .. } => Class::Transient,
            EngineError::Io { .. } | EngineError::Stopped { .. } => Class::Terminal,
            EngineError::Corrupt { .. } => Class::Corrupt,
            EngineError::Compacted { .. } => Class::NotFound,
        }
    }
}

/// Why a store could not be opened.
#[derive(Debug, thiserror::Error)]
pub enum OpenError {
    /// Another process (or another store of this process) has the directory open.
    #[error("{path} is in use by another process")]
    Locked {
        /// The data directory.
        path: PathBuf,
    },
    /// The data was written by a newer version; it was not touched.
    #[error("the data has format {found}, this program knows formats up to {supported}")]
    NewerFormat {
        /// Format of the data.
        found: u32,
        /// Newest format that this program reads.
        supported: u32,
    },
    /// The directory cannot be created, read or written.
    #[error("{action} of {path} failed")]
    Directory {
        /// What was tried.
        action: &'static str,
        /// On which path.
        path: PathBuf,
        /// Why it failed.
        #[source]
        source: io::Error,
    },
    /// The engine could not be read or prepared.
    #[error(transparent)]
    Engine(#[from] EngineError),
    /// A thread could not be started.
    #[error("a thread could not be started")]
    Thread(#[source] io::Error),
}

impl OpenError {
    /// The kind of failure.
    #[must_use]
    pub fn class(&self) -> Class {
        match self {
            OpenError::Locked { .. } => Class::Conflict,
            OpenError::NewerFormat { .. } => Class::Invalid,
            OpenError::Directory { .. } => Class::Terminal,
            OpenError::Engine(error) => error.class(),
            OpenError::Thread(_) => Class::Transient,
        }
    }
}

/// Why a transaction was not committed.
#[derive(Clone, Debug, thiserror::Error)]
pub enum CommitError {
    /// A condition did not hold; nothing happened.
    #[error("key {key} does not meet {condition:?}")]
    Failed {
        /// The first key whose condition did not hold.
        key: Key,
        /// Its condition.
        condition: Condition,
        /// Its record at that point of history, durable; `None` if the key was absent.
        actual: Option<Arc<Record>>,
    },
    /// The transaction is not well formed; nothing happened.
    #[error("invalid transaction: {reason}")]
    Invalid {
        /// What is wrong with it.
        reason: String,
    },
    /// The disk is full; nothing happened. Reads, watches and pure deletes go on, puts work again when
    /// there is space.
    #[error("no space left for a transaction of {needed} bytes{}", more(.missing))]
    NoSpace {
        /// Bytes that were needed.
        needed: u64,
        /// Bytes that must come free on the disk before puts are taken again; `None` if that is not known.
        missing: Option<u64>,
    },
    /// The store is closed; nothing happened.
    #[error("the store is closed")]
    Closed,
    /// The engine failed. If its class is `Terminal` the transaction may or may not be there after the
    /// store is opened again; it is not visible before. If it is `Uncertain` the transaction may or may
    /// not have happened.
    #[error("the transaction could not be made durable")]
    Engine(#[source] EngineError),
}

impl CommitError {
    /// The kind of failure.
    #[must_use]
    pub fn class(&self) -> Class {
        match self {
            CommitError::Failed { .. } => Class::Conflict,
            CommitError::Invalid { .. } => Class::Invalid,
            CommitError::NoSpace { .. } => Class::Transient,
            CommitError::Closed => Class::Terminal,
            CommitError::Engine(error) => error.class(),
        }
    }
}

/// Why a read was refused.
#[derive(Clone, Debug, thiserror::Error)]
pub enum ReadError {
    /// The revision is older than the history kept.
    #[error("the revision is compacted; the oldest kept is {oldest}")]
    Compacted {
        /// Oldest revision that can be read.
        oldest: Revision,
    },
    /// The revision has not happened yet.
    #[error("the revision is in the future; the current one is {current}")]
    Future {
        /// Current revision.
        current: Revision,
    },
    /// The store closed before the revision came.
    #[error("the store is closed")]
    Closed,
    /// History could not be read.
    #[error("history could not be read")]
    Engine(#[source] EngineError),
}

impl ReadError {
    /// The kind of failure.
    #[must_use]
    pub fn class(&self) -> Class {
        match self {
            ReadError::Compacted { .. } => Class::NotFound,
            ReadError::Future { .. } => Class::Transient,
            ReadError::Closed => Class::Terminal,
            ReadError::Engine(error) => error.class(),
        }
    }
}

/// Why a watch was refused or ended. After an error a watch yields nothing more.
#[derive(Clone, Debug, thiserror::Error)]
pub enum WatchError {
    /// The history that the watch needs next is compacted: read the state anew and watch from there.
    #[error("the watch's history is compacted; the oldest kept is {oldest}")]
    Compacted {
        /// Oldest revision to watch after.
        oldest: Revision,
    },
    /// The watch was to start after a revision that has not happened yet.
    #[error("the watch starts in the future; the current revision is {current}")]
    Future {
        /// Current revision.
        current: Revision,
    },
    /// The store is closed, and everything in range was delivered.
    #[error("the store is closed")]
    Closed,
    /// History could not be read.
    #[error("history could not be read")]
    Engine(#[source] EngineError),
}

impl WatchError {
    /// The kind of failure.
    #[must_use]
    pub fn class(&self) -> Class {
        match self {
            WatchError::Compacted { .. } => Class::NotFound,
            WatchError::Future { .. } => Class::Transient,
            WatchError::Closed => Class::Terminal,
            WatchError::Engine(error) => error.class(),
        }
    }
}

impl From<EngineError> for ReadError {
    fn from(error: EngineError) -> Self {
        match error {
            EngineError::Compacted { oldest } => ReadError::Compacted { oldest },
            other => ReadError::Engine(other),
        }
    }
}

impl From<EngineError> for WatchError {
    fn from(error: EngineError) -> Self {
        match error {
            EngineError::Compacted { oldest } => WatchError::Compacted { oldest },
            other => WatchError::Engine(other),
        }
    }
}

impl From<EngineError> for CommitError {
    fn from(error: EngineError) -> Self {
        match error {
            EngineError::NoSpace { needed, missing, .. } => CommitError::NoSpace { needed, missing },
            other => CommitError::Engine(other),
        }
    }
}
