//! The embedded engine of a directory: the log there, and sled in a folder of it as the checkpoint.
//!
//! sled is opened when it is first needed: to recover a large state, or for the first checkpoint. Its
//! opening runs the command `sync` twice, so a small store, which recovers from its log, must not wait
//! for it. Every call is wrapped: a panic inside is an error here. After a
//! failure sled is left alone until the store is opened again; the log goes on acknowledging, and keeps
//! what the checkpoint lacks. So that a full disk is no such failure, room is looked for beforehand.

use std::io;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use crate::config::Config;
use crate::engine::checkpoint::{Checkpoint, Entry, Visit};
use crate::engine::segment::io_error;
use crate::engine::{Opened, archive, directory};
use crate::error::{EngineError, OpenError};

/// Name of sled's folder.
const FOLDER: &str = "sled";
/// Keys in a leaf: what is written for one changed key grows with it.
const LEAF_FANOUT: usize = 64;
/// Memory that sled may keep leaves in; they are read only when a store opens.
const CACHE_BYTES: usize = 16 << 20;

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
    sled::Config::new()
        .path(folder)
        .cache_capacity_bytes(CACHE_BYTES)
        .flush_every_ms(None)
        .open::<LEAF_FANOUT>()
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
