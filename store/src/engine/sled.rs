//! The embedded engine of a directory: the log there, and sled in a folder of it as the checkpoint.
//!
//! sled is opened when it is first needed: to recover a large state, or for the first checkpoint. Its
//! opening runs the command `sync` twice, so a small store, which recovers from its log, must not wait
//! for it. Every call is wrapped: a panic inside is an error here. After a
//! failure sled is left alone until the store is opened again; the log goes on acknowledging, and keeps
//! what the checkpoint lacks. So that a full disk is no such failure, room is looked for beforehand.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::{fs, io};

use crate::config::Config;
use crate::engine::checkpoint::{self, Checkpoint, Entry, FOLDER, Visit};
use crate::engine::inspect::{self, Inspection};
use crate::engine::segment::io_error;
use crate::engine::{Opened, archive, directory};
use crate::error::{EngineError, OpenError};
use crate::record::Record;
use crate::revision::Revision;

/// Name of the folder in it where sled keeps its metadata, and of the files there.
const METADATA_FOLDER: &str = "metadata";
const SNAPSHOT_PREFIX: &str = "snapshot_";
const LOG_PREFIX: &str = "log_";
/// Keys in a leaf: what is written for one changed key grows with it.
const LEAF_FANOUT: usize = 64;
/// Memory that sled may keep leaves in; they are read only when a store opens.
const CACHE_BYTES: usize = 16 << 20;

/// Level of zstd, below nought the fast ones: the checkpoint is written on the processors that commits want.
const COMPRESSION: i32 = -5;

type Db = sled::Db<LEAF_FANOUT>;

/// Opens a directory.
///
/// # Errors
/// As `Store::open`.
pub fn open(path: &Path, config: &Config) -> Result<Opened, OpenError> {
    let (directory, lock) = directory::prepare(path)?;
    let checkpoint = SledCheckpoint { folder: path.join(FOLDER), db: None, broken: None };
    Ok(archive::open(Arc::new(directory), Box::new(checkpoint), Box::new(lock), config)?)
}

/// Looks at everything in a directory.
///
/// # Errors
/// As `Store::open`, but for damage.
pub fn inspect(path: &Path) -> Result<Inspection, OpenError> {
    let (directory, _lock) = directory::prepare(path)?;
    let mut checkpoint = SledCheckpoint { folder: path.join(FOLDER), db: None, broken: None };
    let found = inspect::inspect(&directory, &mut checkpoint);
    checkpoint.release();
    Ok(found?)
}

/// A directory that is being filled with the state of another store.
pub struct Import {
    directory: directory::Directory,
    checkpoint: SledCheckpoint,
    is_new: bool,
    _lock: directory::Lock,
}

impl Import {
    /// Begins with an empty or missing directory, or one in which an import did not finish.
    ///
    /// # Errors
    /// As `Store::open`; `Directory` if there is something.
    pub fn begin(path: &Path) -> Result<Import, OpenError> {
        let is_new = !path.exists();
        let (directory, lock) = directory::prepare_import(path)?;
        let checkpoint = SledCheckpoint { folder: path.join(FOLDER), db: None, broken: None };
        Ok(Import { directory, checkpoint, is_new, _lock: lock })
    }

    /// Takes records.
    ///
    /// # Errors
    /// They could not be written.
    pub fn write(&mut self, records: &[Arc<Record>]) -> Result<(), EngineError> {
        let entry = |record: &Arc<Record>| checkpoint::entry(&record.key, Some(record));
        self.checkpoint.write(records.iter().map(entry).collect())
    }

    /// Ends: the store stands at `revision`, without any history before.
    ///
    /// # Errors
    /// It could not be written.
    pub fn finish(mut self, revision: Revision) -> Result<(), EngineError> {
        self.checkpoint.write(vec![checkpoint::claim(revision)])?;
        self.checkpoint.release();
        let (mut marker, _) = checkpoint::Marker::open(&self.directory, &[])?;
        marker.write(&self.directory, checkpoint::Mark { revision, floor: revision })?;
        let finished = directory::finish_import(&self.directory);
        finished.map_err(|error| io_error("finish", directory::IMPORTING_FILE, error))
    }

    /// Ends: there is nothing.
    ///
    /// # Errors
    /// Something could not be removed.
    pub fn abandon(mut self) -> Result<(), EngineError> {
        self.checkpoint.release();
        let discarded = directory::discard_import(&self.directory, self.is_new);
        discarded.map_err(|error| io_error("remove", directory::IMPORTING_FILE, error))
    }
}

struct SledCheckpoint {
    folder: PathBuf,
    db: Option<Db>,
    broken: Option<String>,
}

impl SledCheckpoint {
    /// Runs `call` on the open database.
    fn with<T>(
        &mut self,
        action: &'static str,
        call: impl FnOnce(&Db) -> io::Result<T>,
    ) -> Result<T, EngineError> {
        if let Some(reason) = &self.broken {
            return Err(EngineError::Stopped { reason: reason.clone() });
        }
        let failed = |error: io::Error| io_error(action, FOLDER, error);
        let db = match self.db.take() {
            Some(db) => db,
            None => guarded(|| open_db(&self.folder)).map_err(failed)?,
        };
        match guarded(|| call(&db)) {
            Ok(done) => {
                self.db = Some(db);
                Ok(done)
            }
            Err(error) => {
                // Dropping it would flush it, which waits for ever for the flush that failed.
                std::mem::forget(db);
                self.broken = Some(format!("sled failed: {error}"));
                Err(failed(error))
            }
        }
    }
}

fn open_db(folder: &Path) -> io::Result<Db> {
    mend(&folder.join(METADATA_FOLDER))?;
    sled::Config::new()
        .path(folder)
        .cache_capacity_bytes(CACHE_BYTES)
        .flush_every_ms(None)
        .zstd_compression_level(COMPRESSION)
        .open::<LEAF_FANOUT>()
}

/// Undoes a half-done opening. sled opens by writing a snapshot of its metadata, numbered like the last
/// log in it, removing snapshot and logs that went before, and beginning the next log. Killed in front
/// of that last step it leaves a snapshot with no log after it, and then its next opening writes the
/// same number again and removes that as the one before: everything is lost. An empty log gives the
/// next opening a new number.
fn mend(metadata: &Path) -> io::Result<()> {
    let entries = match fs::read_dir(metadata) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
        other => other?,
    };
    let (mut snapshot, mut log) = (None, None);
    for entry in entries {
        let Ok(name) = entry?.file_name().into_string() else { continue };
        let number = |prefix: &str| u64::from_str_radix(name.strip_prefix(prefix)?, 16).ok();
        snapshot = snapshot.max(number(SNAPSHOT_PREFIX));
        log = log.max(number(LOG_PREFIX));
    }
    match snapshot {
        Some(number) if log.is_none_or(|log| log <= number) => {
            fs::File::create(metadata.join(format!("{LOG_PREFIX}{:016x}", number + 1)))?.sync_all()?;
            fs::File::open(metadata)?.sync_all()
        }
        _ => Ok(()),
    }
}

/// A panic inside is an error outside.
fn guarded<T>(call: impl FnOnce() -> io::Result<T>) -> io::Result<T> {
    catch_unwind(AssertUnwindSafe(call)).unwrap_or_else(|_| Err(io::Error::other("sled panicked")))
}

impl Checkpoint for SledCheckpoint {
    fn get(&mut self, key: &[u8]) -> Result<Option<Vec<u8>>, EngineError> {
        self.with("read", |db| Ok(db.get(key)?.map(|value| value.to_vec())))
    }

    fn visit(&mut self, visit: &mut Visit<'_>) -> Result<(), EngineError> {
        self.with("read", |db| {
            for item in db.iter() {
                let (key, value) = item?;
                if let Err(error) = visit(&key, &value) {
                    return Ok(Err(error));
                }
            }
            Ok(Ok(()))
        })?
    }

    fn write(&mut self, entries: Vec<Entry>) -> Result<(), EngineError> {
        self.with("write", |db| {
            for (key, value) in entries {
                match value {
                    Some(value) => db.insert(key, value)?,
                    None => db.remove(key)?,
                };
            }
            db.flush().map(|_| ())
        })
    }

    fn release(&mut self) {
        let Some(db) = self.db.take() else { return };
        let closed = guarded(|| {
            drop(db);
            Ok(())
        });
        if let Err(error) = closed {
            tracing::warn!(%error, "sled was not closed in order; the next open recovers it");
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_opening_that_was_killed_before_its_last_step_loses_nothing() {
        let home = tempfile::tempdir().unwrap();
        let open = || SledCheckpoint { folder: home.path().join(FOLDER), db: None, broken: None };
        let mut checkpoint = open();
        checkpoint.write(vec![(b"key".to_vec(), Some(b"value".to_vec()))]).unwrap();
        checkpoint.release();
        for _ in 0..3 {
            let mut checkpoint = open();
            assert_eq!(checkpoint.get(b"key").unwrap().as_deref(), Some(&b"value"[..]));
            checkpoint.release();
            // As after a kill: the new snapshot is there, the next log is not.
            for entry in fs::read_dir(home.path().join(FOLDER).join(METADATA_FOLDER)).unwrap() {
                let entry = entry.unwrap();
                if entry.file_name().to_string_lossy().starts_with(LOG_PREFIX) {
                    fs::remove_file(entry.path()).unwrap();
                }
            }
        }
    }
}
