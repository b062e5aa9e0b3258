//! Migrate: copies a store's newest state to another engine, with every record's revisions. The line
//! goes on where the old one's ends, so a revision that a client remembers is right or too old, never
//! another one. History is not copied. Knows nothing of how engines keep what they are given.

use crate::config::Config;
use crate::error::{EngineError, OpenError, ReadError};
use crate::key::KeyRange;
use crate::revision::Revision;
use crate::snapshot::{ReadAt, Snapshot};
use crate::store::{EngineChoice, Store};
use crate::target::{PIECE_RECORDS, Target, TargetError, is_store};

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
    if !is_store(&from).await.map_err(MigrateError::Source)? {
        return Err(MigrateError::NoSource);
    }
    let source = Store::open(config.clone(), from).map_err(MigrateError::Source)?;
    let copied = copy(&source, to).await;
    source.close().await;
    copied
}

impl From<TargetError> for MigrateError {
    fn from(error: TargetError) -> Self {
        match error {
            TargetError::Prepare(error) => MigrateError::Target(error),
            TargetError::Memory => MigrateError::Memory,
        }
    }
}

async fn copy(source: &Store, to: &EngineChoice) -> Result<Migrated, MigrateError> {
    let snapshot = source.snapshot(ReadAt::Latest).await.map_err(MigrateError::Read)?;
    let mut target = Target::begin(to).await?;
    match fill(source, &snapshot, &mut target).await {
        Ok(migrated) => {
            target.finish(migrated.revision).await.map_err(MigrateError::Write)?;
            Ok(migrated)
        }
        Err(error) => {
            target.abandon().await;
            Err(error)
        }
    }
}

async fn fill(source: &Store, snapshot: &Snapshot, target: &mut Target) -> Result<Migrated, MigrateError> {
    let mut piece = Vec::with_capacity(PIECE_RECORDS);
    let mut records = 0;
    for record in snapshot.range(&KeyRange::all(), None) {
        piece.push(record.clone());
        records += 1;
        if piece.len() == PIECE_RECORDS {
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
    Ok(Migrated { revision: from, records })
}
