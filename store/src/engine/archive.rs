//! The shared half of the log engine: history for readers, and in bounded slices the checkpoint, spare
//! files, and giving segments back. A segment goes only when the checkpoint covers it and its history
//! is not wanted. Knows nothing of the commit path but what the log tells.

use std::any::Any;
use std::sync::{Arc, Mutex};

use crate::config::Config;
use crate::engine::checkpoint::{self, Checkpoint, Mark, Marker};
use crate::engine::disk::Disk;
use crate::engine::frame::ALIGN;
use crate::engine::log::{CHECKPOINT_MARGIN_BYTES, Log, LogWriter, Sizes, locked};
use crate::engine::reader::LogReader;
use crate::engine::recovery::{RecentLimits, open_segments, recover};
use crate::engine::segment::io_error;
use crate::engine::{Archive, DiskUsage, HistoryReader, Opened, Pressure};
use crate::error::EngineError;
use crate::key::Key;
use crate::revision::Revision;
use crate::state::State;

/// Bytes written to the checkpoint in one slice, counted before the last record.
const SLICE_BYTES: usize = 4 << 20;
/// Most of a disk that a segment may take is one part of so many.
const DISK_SHARE: u64 = 64;
/// The smallest segment that a small disk makes of a larger one.
const MIN_SEGMENT_BYTES: u64 = 256 << 10;
/// Most of a segment that a base may take is one part of so many.
const BASE_SHARE: u64 = 8;
/// Records that a checkpoint may write anew together with a changed one.
const LEAF_RECORDS: u64 = 64;
/// The checkpoint waits until this share of the state was logged anew: keys changed here and there make it write nearly
/// everything, and what that costs the processor is half of what a put costs in all if it comes twice as often. The price
/// is a log that is at most as long as the state when a store opens.
const STATE_SHARE: u64 = 1;

/// The shared half.
struct LogArchive {
    log: Arc<Log>,
    checkpoint_bytes: u64,
    keeper: Mutex<Keeper>,
    guard: Mutex<Option<Box<dyn Any + Send>>>,
}

/// What the upkeep works on.
struct Keeper {
    checkpoint: Box<dyn Checkpoint>,
    marker: Marker,
    floor: Revision,
    /// Revisions recovered from the log whose keys were not handed to the checkpoint yet.
    unseen: Option<(Revision, Revision)>,
    /// The revision that was recovered, until it was seen that the checkpoint has nothing newer.
    found: Option<Revision>,
    running: Option<Running>,
}

/// A checkpoint being written.
struct Running {
    target: Revision,
    keys: Vec<Key>,
    done: usize,
}

/// Opens the log engine on a disk. `guard` is held until the engine is closed.
pub fn open(
    disk: Arc<dyn Disk>,
    mut checkpoint: Box<dyn Checkpoint>,
    guard: Box<dyn Any + Send>,
    config: &Config,
) -> Result<Opened, EngineError> {
    let files = disk.list().map_err(|error| io_error("list", &disk.name(), error))?;
    let (marker, mark) = Marker::open(disk.as_ref(), &files)?;
    let segments = open_segments(disk.as_ref(), &files)?;
    let limits = RecentLimits { transactions: config.ring_transactions, bytes: config.ring_bytes };
    let load = || checkpoint::load(checkpoint.as_mut(), mark.revision);
    let mut recovered = recover(&segments, mark, limits, load)?;
    recovered.oldest = recovered.oldest.max(mark.floor);
    let sizes = sizes(disk.as_ref(), config)?;
    let log = Arc::new(Log::new(disk, sizes, segments, &files)?);
    log.note_floor(recovered.oldest);
    log.set_covered(mark.revision);
    let current = recovered.state.revision;
    let keeper = Keeper {
        checkpoint,
        marker,
        floor: mark.floor,
        unseen: (mark.revision < current).then_some((mark.revision, current)),
        found: Some(current),
        running: None,
    };
    let archive = LogArchive {
        log: log.clone(),
        checkpoint_bytes: config.checkpoint_bytes,
        keeper: Mutex::new(keeper),
        guard: Mutex::new(Some(guard)),
    };
    Ok(Opened { engine: Box::new(LogWriter::new(log)), archive: Arc::new(archive), recovered })
}

/// The log's sizes, on a small disk smaller ones: a log of few segments could not give back any of them, and the reserve
/// alone would fill the disk.
fn sizes(disk: &dyn Disk, config: &Config) -> Result<Sizes, EngineError> {
    let failed = |error| io_error("look", &disk.name(), error);
    let ours = disk.available().map_err(failed)?.saturating_add(disk.used().map_err(failed)?);
    let most = (ours / DISK_SHARE).max(MIN_SEGMENT_BYTES) / ALIGN * ALIGN;
    let segment_bytes = config.segment_bytes.min(most);
    // A base in every segment must leave most of it to history.
    Ok(Sizes { segment_bytes, base_bytes: config.base_bytes.min(segment_bytes / BASE_SHARE) })
}

impl LogArchive {
    fn checkpoint_due(&self, floor: Revision, pressure: Pressure) -> bool {
        let covered = self.log.covered();
        let could_free = || self.log.newest_sealed().is_some_and(|last| last > covered);
        let enough = self.checkpoint_bytes.max(self.log.bytes_of_state() / STATE_SHARE);
        (pressure != Pressure::None && could_free())
            || self.log.bytes_changed() >= enough
            || (self.log.oldest_sealed().is_some_and(|last| last <= floor && last > covered)
                && self.log.bytes_uncovered() >= enough)
    }

    /// Makes a spare; gives whether there was room for one.
    fn try_spare(&self) -> Result<bool, EngineError> {
        match self.log.make_spare() {
            Ok(()) => Ok(true),
            Err(EngineError::NoSpace { .. }) => Ok(false),
            Err(error) => Err(error),
        }
    }

    /// One slice of a checkpoint; on a full disk a small one.
    fn write_slice(
        &self,
        keeper: &mut Keeper,
        state: &State,
        floor: Revision,
        pressure: Pressure,
    ) -> Result<(), EngineError> {
        let running = match keeper.running.take() {
            Some(running) => running,
            None => self.begin(keeper, state)?,
        };
        let Running { target, keys, done } = keeper.running.insert(running);
        // A changed key may have its whole leaf written anew; but never more than everything.
        let leaf = LEAF_RECORDS * state.bytes / (state.records.len() as u64).max(1);
        let need = pressure == Pressure::Desperate;
        let room = self.log.room(need)?.saturating_sub(CHECKPOINT_MARGIN_BYTES);
        let (mut entries, mut bytes, mut needed, mut at) = (Vec::new(), 0, 0, *done);
        while at < keys.len() && bytes < SLICE_BYTES && (entries.is_empty() || needed + leaf < room) {
            let record = state.records.get(&keys[at]).map(Arc::as_ref);
            bytes += keys[at].as_bytes().len() + record.map_or(0, |record| record.size());
            entries.push(checkpoint::entry(&keys[at], record));
            needed = (entries.len() as u64 * leaf).min(state.bytes) + bytes as u64;
            at += 1;
        }
        let is_last = at == keys.len();
        self.log.make_room(needed + CHECKPOINT_MARGIN_BYTES, need)?;
        if is_last {
            entries.push(checkpoint::claim(*target));
        }
        entries.push(checkpoint::ahead(state.revision));
        keeper.checkpoint.write(entries)?;
        *done = at;
        if is_last {
            let mark = Mark { revision: *target, floor };
            keeper.marker.write(self.log.disk().as_ref(), mark)?;
            keeper.floor = floor;
            self.log.set_covered(mark.revision);
            keeper.running = None;
            tracing::debug!(revision = %mark.revision, "checkpoint written");
        }
        Ok(())
    }

    /// Decides what a new checkpoint has to write.
    fn begin(&self, keeper: &mut Keeper, state: &State) -> Result<Running, EngineError> {
        let mut keys: Vec<Key> = Vec::new();
        let found = keeper.found.unwrap_or(Revision::new(u64::MAX));
        let is_ahead = checkpoint::newest(keeper.checkpoint.as_mut())? > found;
        if is_ahead {
            // What the log lost is in it: it says so until it is whole again.
            keeper.checkpoint.write(vec![checkpoint::claim(Revision::ZERO)])?;
        }
        if is_ahead || checkpoint::claimed(keeper.checkpoint.as_mut())? < self.log.covered() {
            tracing::warn!("the checkpoint is missing, too old or too new, and is written anew");
            keys.extend(checkpoint::keys(keeper.checkpoint.as_mut())?);
            keys.extend(state.records.keys().cloned());
        } else if let Some((after, through)) = keeper.unseen {
            let mut reader = LogReader::new(self.log.clone(), after)?;
            while let Some(transaction) = reader.next()?.filter(|next| next.revision <= through) {
                keys.extend(transaction.changes.iter().map(|change| change.key.clone()));
            }
        }
        (keeper.unseen, keeper.found) = (None, None);
        keys.extend(self.log.take_changed(state.revision));
        keys.sort_unstable();
        keys.dedup();
        Ok(Running { target: state.revision, keys, done: 0 })
    }
}

impl Archive for LogArchive {
    fn read_after(&self, after: Revision) -> Result<Box<dyn HistoryReader>, EngineError> {
        Ok(Box::new(LogReader::new(self.log.clone(), after)?))
    }

    fn upkeep_due(&self, floor: Revision) -> bool {
        let removable = self.log.oldest_sealed().is_some_and(|last| last <= floor.min(self.log.covered()));
        removable || self.checkpoint_due(floor, Pressure::None) || self.log.wants_spare()
    }

    fn upkeep(&self, state: &State, floor: Revision, pressure: Pressure) -> Result<bool, EngineError> {
        self.log.note_floor(floor);
        if self.log.drop_oldest(floor.min(self.log.covered()))? {
            return Ok(true);
        }
        // First, as a commit that finds no spare makes one itself; but a full disk needs the checkpoint more.
        if pressure == Pressure::None && self.log.wants_spare() && self.try_spare()? {
            return Ok(true);
        }
        let mut keeper = locked(&self.keeper);
        if keeper.running.is_some() || self.checkpoint_due(floor, pressure) {
            self.write_slice(&mut keeper, state, floor, pressure)?;
            return Ok(true);
        }
        drop(keeper);
        if self.log.wants_spare() {
            self.log.make_spare()?;
            return Ok(true);
        }
        Ok(false)
    }

    fn log_bytes(&self) -> u64 {
        self.log.bytes()
    }

    fn disk_usage(&self) -> Option<DiskUsage> {
        let disk = self.log.disk();
        match (disk.used(), disk.available()) {
            (Ok(used), Ok(available)) => Some(DiskUsage { used, available }),
            (Err(error), _) | (_, Err(error)) => {
                tracing::warn!(%error, "the size of the store's files cannot be told");
                None
            }
        }
    }

    fn close(&self, _state: &State, floor: Revision) {
        let mut keeper = locked(&self.keeper);
        if floor > keeper.floor {
            let mark = Mark { revision: self.log.covered(), floor };
            if let Err(error) = keeper.marker.write(self.log.disk().as_ref(), mark) {
                tracing::warn!(%error, "the oldest readable revision could not be saved");
            }
        }
        keeper.checkpoint.release();
        drop(keeper);
        locked(&self.guard).take();
    }
}
