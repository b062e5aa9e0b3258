//! Migrate: copies a store's newest state to another engine, with every record's revisions. The line
//! goes on where the old one's ends, so a revision that a client remembers is right or too old, never
//! another one. History is not copied. Knows nothing of how engines keep what they are given.

use std::sync::Arc;

use crate::config::Config;
use crate::engine::{directory, sled};
use crate::error::{EngineError, OpenError, ReadError};
use crate::key::KeyRange;
use crate::record::Record;
use crate::revision::Revision;
use crate::snapshot::ReadAt;
use crate::store::{EngineChoice, Store};

#[cfg(feature = "etcd")]
use crate::engine::etcd::{import, layout::Layout, load, members::Members};

/// Records handed over in one piece.
const PIECE: usize = 4096;

/// What was copied.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Migrated {
    /// The revision that both stores stand at.
    pub revision: Revision,
    /// How many records were copied.
    pub records: usize,
}

/// Why a store was not copied. The source is as it was; the target is no store.
#[derive(Debug, thiserror::Error)]
pub enum MigrateError {
    /// The source has no store.
    #[error("there is no store to copy from")]
    NoSource,
    /// The source cannot be opened.
    #[error("the source cannot be opened")]
    Source(#[source] OpenError),
    /// The source cannot be read.
    #[error("the source cannot be read")]
    Read(#[source] ReadError),
    /// Somebody wrote to the source meanwhile.
    #[error(
        "the source was written to at revision {to} while it was copied at {from}: stop its servers first"
    )]
    Moved {
        /// The revision that was copied.
        from: Revision,
        /// The revision that it has now.
        to: Revision,
    },
    /// The target cannot be prepared: it must be empty.
    #[error("the target cannot be prepared")]
    Target(#[source] OpenError),
    /// The target cannot be written.
    #[error("the target cannot be written")]
    Write(#[source] EngineError),
    /// Nothing can be imported into this engine.
    #[error("a store in memory cannot be a target")]
    Memory,
}

/// A store that is being made.
enum Target {
    Sled(Box<sled::Import>),
    #[cfg(feature = "etcd")]
    Etcd(import::Import),
}

impl Target {
    async fn begin(engine: &EngineChoice) -> Result<Target, MigrateError> {
        match engine {
            EngineChoice::Sled { directory } => {
                let import = sled::Import::begin(directory).map_err(MigrateError::Target)?;
                Ok(Target::Sled(Box::new(import)))
            }
            EngineChoice::Memory(_) => Err(MigrateError::Memory),
            #[cfg(feature = "etcd")]
            EngineChoice::Etcd(etcd) => {
                import::Import::begin(etcd).await.map(Target::Etcd).map_err(MigrateError::Target)
            }
        }
    }

    async fn write(&mut self, records: &[Arc<Record>]) -> Result<(), EngineError> {
        match self {
            Target::Sled(import) => import.write(records),
            #[cfg(feature = "etcd")]
            Target::Etcd(import) => import.write(records).await,
        }
    }

    async fn finish(self, revision: Revision) -> Result<(), EngineError> {
        match self {
            Target::Sled(import) => import.finish(revision),
            #[cfg(feature = "etcd")]
            Target::Etcd(import) => import.finish(revision).await,
        }
    }
}

/// Copies the newest state of one store to a place where there is none yet. No server may use the
/// source meanwhile: one that did is noticed at the end. Blocks now and then while it writes to disk.
///
/// # Errors
/// See [`MigrateError`].
pub async fn migrate(
    config: &Config,
    from: EngineChoice,
    to: &EngineChoice,
) -> Result<Migrated, MigrateError> {
    if !is_there(&from).await? {
        return Err(MigrateError::NoSource);
    }
    let source = Store::open(config.clone(), from).map_err(MigrateError::Source)?;
    let copied = copy(&source, to).await;
    source.close().await;
    copied
}

async fn copy(source: &Store, to: &EngineChoice) -> Result<Migrated, MigrateError> {
    let snapshot = source.snapshot(ReadAt::Latest).await.map_err(MigrateError::Read)?;
    let mut target = Target::begin(to).await?;
    let mut piece = Vec::with_capacity(PIECE);
    let mut records = 0;
    for record in snapshot.range(&KeyRange::all(), None) {
        piece.push(record.clone());
        records += 1;
        if piece.len() == PIECE {
            target.write(&piece).await.map_err(MigrateError::Write)?;
            piece.clear();
        }
    }
    target.write(&piece).await.map_err(MigrateError::Write)?;
    let now = source.snapshot(ReadAt::Latest).await.map_err(MigrateError::Read)?;
    let (from, to) = (snapshot.revision(), now.revision());
    if from != to {
        return Err(MigrateError::Moved { from, to });
    }
    target.finish(from).await.map_err(MigrateError::Write)?;
    Ok(Migrated { revision: from, records })
}

/// Whether there is a store; opening one would make it.
async fn is_there(engine: &EngineChoice) -> Result<bool, MigrateError> {
    match engine {
        EngineChoice::Sled { directory } => directory::is_store(directory).map_err(MigrateError::Source),
        EngineChoice::Memory(_) => Ok(true),
        #[cfg(feature = "etcd")]
        EngineChoice::Etcd(etcd) => {
            let members = Members::new(etcd).map_err(|error| MigrateError::Source(error.into()))?;
            let found = load::find(&members, &Layout::new(&etcd.prefix)).await;
            found.map(|line| line.is_some()).map_err(MigrateError::Source)
        }
    }
}
