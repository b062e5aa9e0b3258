//! Restore: makes a store from a backup, in a new directory or under an empty prefix of etcd, with every record's
//! revisions; and takes a backup of a store that nobody has open. Knows nothing of how either is kept.

use std::io::{self, Read, Write};
use std::sync::Arc;

use crate::backup::{BackupError, BackupReader, Summary, chunks};
use crate::config::Config;
use crate::error::{EngineError, OpenError, ReadError};
use crate::key::KeyRange;
use crate::snapshot::{ReadAt, Snapshot};
use crate::state::to_microseconds;
use crate::store::{EngineChoice, Store};
use crate::target::{PIECE_BYTES, PIECE_RECORDS, Target, TargetError, is_store};

/// Why a store was not restored. The target is no store, and what was written to it is gone.
#[derive(Debug, thiserror::Error)]
pub enum RestoreError {
    /// The backup is none, or not whole.
    #[error(transparent)]
    Backup(#[from] BackupError),
    /// The target cannot be prepared: it must be empty.
    #[error("the target cannot be prepared")]
    Target(#[source] OpenError),
    /// The target cannot be written.
    #[error("the target cannot be written")]
    Write(#[source] EngineError),
    /// Nothing can be restored into this engine.
    #[error("a store in memory cannot be a target")]
    Memory,
}

impl From<TargetError> for RestoreError {
    fn from(error: TargetError) -> Self {
        match error {
            TargetError::Prepare(error) => RestoreError::Target(error),
            TargetError::Memory => RestoreError::Memory,
        }
    }
}

/// Why no backup was taken.
#[derive(Debug, thiserror::Error)]
pub enum SaveError {
    /// There is no store.
    #[error("there is no store to back up")]
    NoSource,
    /// The store cannot be opened.
    #[error("the store cannot be opened")]
    Source(#[source] OpenError),
    /// The store cannot be read.
    #[error("the store cannot be read")]
    Read(#[source] ReadError),
    /// The backup cannot be written.
    #[error("the backup cannot be written")]
    Write(#[source] io::Error),
}

/// Makes a store from a backup where there is none yet. The line of revisions goes on where the backup stands; of
/// history before that there is none. Blocks while it reads and writes.
///
/// # Errors
/// See [`RestoreError`].
pub async fn restore(from: impl Read, to: &EngineChoice) -> Result<Summary, RestoreError> {
    let mut reader = BackupReader::open(from)?;
    let mut target = Target::begin(to).await?;
    match fill(&mut reader, &mut target).await {
        Ok(()) => {
            target.finish(reader.summary().revision).await.map_err(RestoreError::Write)?;
            Ok(reader.summary())
        }
        Err(error) => {
            target.abandon().await;
            Err(error)
        }
    }
}

async fn fill<R: Read>(reader: &mut BackupReader<R>, target: &mut Target) -> Result<(), RestoreError> {
    let (mut piece, mut bytes) = (Vec::new(), 0);
    while let Some(record) = reader.read()? {
        bytes += record.size();
        piece.push(Arc::new(record));
        if piece.len() == PIECE_RECORDS || bytes >= PIECE_BYTES {
            target.write(&piece).await.map_err(RestoreError::Write)?;
            piece.clear();
            bytes = 0;
        }
    }
    target.write(&piece).await.map_err(RestoreError::Write)
}

/// Reads a whole backup without restoring it.
///
/// # Errors
/// See [`BackupError`].
pub fn check(from: impl Read) -> Result<Summary, BackupError> {
    let mut reader = BackupReader::open(from)?;
    while reader.read()?.is_some() {}
    Ok(reader.summary())
}

/// Writes a backup of the newest state of a store that nobody has open; one in etcd may be in use. Blocks while it
/// reads and writes.
///
/// # Errors
/// See [`SaveError`].
pub async fn save(config: &Config, from: EngineChoice, out: &mut impl Write) -> Result<Summary, SaveError> {
    if !is_store(&from).await.map_err(SaveError::Source)? {
        return Err(SaveError::NoSource);
    }
    let source = Store::open(config.clone(), from).map_err(SaveError::Source)?;
    let taken = to_microseconds(config.clock.now());
    let saved = match source.snapshot(ReadAt::Latest).await {
        Ok(snapshot) => write(&snapshot, taken, out).map_err(SaveError::Write),
        Err(error) => Err(SaveError::Read(error)),
    };
    source.close().await;
    saved
}

fn write(snapshot: &Snapshot, taken: std::time::SystemTime, out: &mut impl Write) -> io::Result<Summary> {
    chunks(snapshot, taken).try_for_each(|chunk| out.write_all(&chunk))?;
    out.flush()?;
    let records = snapshot.range(&KeyRange::all(), None);
    let bytes = records.clone().map(|record| record.size() as u64).sum();
    Ok(Summary { revision: snapshot.revision(), taken, records: records.count() as u64, bytes })
}
