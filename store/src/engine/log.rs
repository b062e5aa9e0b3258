//! Log: the segments in order, and the one writer that appends to the last of them.
//!
//! A group is one frame and one sync. A full segment is followed by a new one, made from a spare file
//! where there is one; a file gets a segment's name only when its opening is durable. Some spares are a
//! reserve that keeps deletes and the checkpoint going on a full disk. Knows nothing of the checkpoint but where it stands.

use std::collections::{HashMap, VecDeque};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use crate::engine::codec;
use crate::engine::disk::{Disk, DiskFile};
use crate::engine::frame::{self, ALIGN, Kind};
use crate::engine::segment::{Segment, Title, file_name, io_error, opening};
use crate::engine::slots::Slots;
use crate::engine::{Engine, Group, Pressure};
use crate::error::{Class, EngineError};
use crate::key::Key;
use crate::revision::Revision;
use crate::state::State;
use crate::txn::Transaction;

/// Spare files kept for a full disk.
pub const RESERVE_SPARES: usize = 2;
/// Those of the reserve that deletes leave, so that there is room for the checkpoint that lets old
/// segments go.
const CHECKPOINT_SPARES: usize = 1;
/// Room that a checkpoint wants beside the records.
pub const CHECKPOINT_MARGIN_BYTES: u64 = 64 << 10;
/// Bytes of a spare written at a time; each piece is synced, so that commits never wait for much of it.
const ZERO_BYTES: u64 = 1 << 20;
/// Bytes that a record's numbers and lengths may take beside its key and value, in a base.
const RECORD_OVERHEAD: u64 = 32;

/// Sizes of the log.
#[derive(Clone, Copy, Debug)]
pub struct Sizes {
    /// Bytes of a segment, unless one group needs more.
    pub segment_bytes: u64,
    /// Most bytes of a base.
    pub base_bytes: u64,
}

/// The shared part of the log.
pub struct Log {
    disk: Arc<dyn Disk>,
    sizes: Sizes,
    segments: Mutex<VecDeque<Arc<Segment>>>,
    spares: Mutex<Spares>,
    changed: Mutex<Changed>,
    newest: Mutex<Slots>,
    floor: AtomicU64,
    covered: AtomicU64,
    state_bytes: AtomicU64,
}

/// Name of the file that says which segment is the newest, so that one which is gone is missed.
const NEWEST: &str = "log";

/// The number of the newest segment that a log surely has; `None` if it may have none.
///
/// # Errors
/// `Corrupt` if it cannot be told.
pub fn newest_of(disk: &dyn Disk, files: &[String]) -> Result<Option<u64>, EngineError> {
    Slots::open(disk, files, NEWEST).map(|(_, said)| said.map(|(number, _)| number))
}

#[derive(Default)]
struct Spares {
    files: Vec<(String, u64)>,
    named: u64,
}

/// What was logged since the checkpoint took it over.
#[derive(Default)]
struct Changed {
    keys: HashMap<Key, Revision>,
    bytes: u64,
}

/// Locks, also after a thread died with the lock: each critical section here leaves whole data.
pub fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

fn spare_name(number: u64) -> String {
    format!("spare-{number:08x}")
}

fn spare_number(name: &str) -> Option<u64> {
    u64::from_str_radix(name.strip_prefix("spare-")?, 16).ok()
}

impl Log {
    /// A log of these segments on this disk; other files of the listing become spares.
    pub fn new(
        disk: Arc<dyn Disk>,
        sizes: Sizes,
        segments: VecDeque<Arc<Segment>>,
        files: &[String],
    ) -> Result<Self, EngineError> {
        let mut spares = Spares::default();
        for name in files {
            let Some(number) = spare_number(name) else { continue };
            let file = disk.open(name).map_err(|error| io_error("open", name, error))?;
            spares.files.push((name.clone(), file.length()));
            spares.named = spares.named.max(number + 1);
        }
        let (newest, _) = Slots::open(disk.as_ref(), files, NEWEST)?;
        Ok(Log {
            newest: Mutex::new(newest),
            disk,
            sizes,
            segments: Mutex::new(segments),
            spares: Mutex::new(spares),
            changed: Mutex::default(),
            floor: AtomicU64::new(0),
            covered: AtomicU64::new(0),
            state_bytes: AtomicU64::new(0),
        })
    }

    /// The disk that it is on.
    pub fn disk(&self) -> &Arc<dyn Disk> {
        &self.disk
    }

    /// Last revision of the oldest segment, if it is followed by another.
    pub fn oldest_sealed(&self) -> Option<Revision> {
        let segments = locked(&self.segments);
        segments.front().filter(|_| segments.len() > 1).map(|segment| segment.last())
    }

    /// Last revision of the newest segment that is followed by another.
    pub fn newest_sealed(&self) -> Option<Revision> {
        let segments = locked(&self.segments);
        segments.iter().nth_back(1).map(|segment| segment.last())
    }

    /// Bytes of its files, spares not counted.
    pub fn bytes(&self) -> u64 {
        locked(&self.segments).iter().map(|segment| segment.file.length()).sum()
    }

    /// Notes the oldest readable revision, for the titles of segments to come.
    pub fn note_floor(&self, floor: Revision) {
        self.floor.fetch_max(floor.get(), Ordering::AcqRel);
    }

    /// Notes how far the checkpoint reaches.
    pub fn set_covered(&self, covered: Revision) {
        self.covered.store(covered.get(), Ordering::Release);
    }

    /// How far the checkpoint reaches.
    pub fn covered(&self) -> Revision {
        Revision::new(self.covered.load(Ordering::Acquire))
    }

    /// Bytes of the segments that hold something the checkpoint does not.
    pub fn bytes_uncovered(&self) -> u64 {
        let covered = self.covered();
        let segments = locked(&self.segments);
        let uncovered = segments.iter().filter(|segment| segment.last() > covered);
        uncovered.map(|segment| segment.file.length()).sum()
    }

    /// Bytes logged that the checkpoint has not taken over.
    pub fn bytes_changed(&self) -> u64 {
        locked(&self.changed).bytes
    }

    /// Bytes of the state before the newest group.
    pub fn bytes_of_state(&self) -> u64 {
        self.state_bytes.load(Ordering::Relaxed)
    }

    /// Takes over the keys whose newest change is not after `through`. Commits wait only while what came later is
    /// put back.
    pub fn take_changed(&self, through: Revision) -> Vec<Key> {
        let taken = std::mem::take(&mut *locked(&self.changed)).keys;
        let (taken, later): (Vec<_>, Vec<_>) =
            taken.into_iter().partition(|(_, revision)| *revision <= through);
        let mut changed = locked(&self.changed);
        for (key, revision) in later {
            // Unless it changed again meanwhile.
            changed.keys.entry(key).or_insert(revision);
        }
        taken.into_iter().map(|(key, _)| key).collect()
    }

    fn note_changed(&self, before: &State, transactions: &[Arc<Transaction>], bytes: u64) {
        self.state_bytes.store(before.bytes, Ordering::Relaxed);
        let mut changed = locked(&self.changed);
        changed.bytes += bytes;
        for transaction in transactions {
            for change in &transaction.changes {
                changed.keys.insert(change.key.clone(), transaction.revision);
            }
        }
    }

    /// The segment that holds the transaction after `after`, or will.
    ///
    /// # Errors
    /// `Compacted` if it is not there any more.
    pub fn segment_after(&self, after: Revision) -> Result<Arc<Segment>, EngineError> {
        let segments = locked(&self.segments);
        let found = segments.iter().rev().find(|segment| segment.title.first <= after.next());
        let oldest = segments.front().map_or(Revision::ZERO, |segment| segment.title.first);
        found.cloned().ok_or(EngineError::Compacted { oldest: Revision::new(oldest.get().saturating_sub(1)) })
    }

    /// Removes the oldest segment if it is sealed and wholly at or before `through`. Its file becomes a
    /// spare if nobody reads it and a spare is wanted. Gives whether one was removed.
    pub fn drop_oldest(&self, through: Revision) -> Result<bool, EngineError> {
        let mut segments = locked(&self.segments);
        let sealed = segments.len() > 1;
        let Some(segment) = segments.front().filter(|segment| sealed && segment.last() <= through).cloned()
        else {
            return Ok(false);
        };
        segments.pop_front();
        drop(segments);
        let reuse = Arc::strong_count(&segment) == 1
            && segment.file.length() == self.sizes.segment_bytes
            && locked(&self.spares).files.len() < RESERVE_SPARES + 1;
        if reuse {
            let mut spares = locked(&self.spares);
            let name = spare_name(spares.named);
            self.disk
                .rename(&segment.name, &name)
                .map_err(|error| io_error("rename", &segment.name, error))?;
            spares.named += 1;
            spares.files.push((name, segment.file.length()));
        } else {
            self.disk.remove(&segment.name).map_err(|error| io_error("remove", &segment.name, error))?;
        }
        self.disk.sync().map_err(|error| io_error("sync", &segment.name, error))?;
        Ok(true)
    }

    /// Whether a spare should be made: the reserve is used up, or the next segment is near.
    pub fn wants_spare(&self) -> bool {
        let near = locked(&self.segments).back().is_some_and(|last| last.end() * 2 > last.file.length());
        locked(&self.spares).files.len() < RESERVE_SPARES + usize::from(near)
    }

    /// Makes a spare. It is written once, so that no later write to it changes more than its bytes: else each sync of a
    /// commit would wait for the file system's own log as well.
    ///
    /// # Errors
    /// `NoSpace` if there is no room for it.
    pub fn make_spare(&self) -> Result<(), EngineError> {
        let name = {
            let mut spares = locked(&self.spares);
            spares.named += 1;
            spare_name(spares.named - 1)
        };
        let length = self.sizes.segment_bytes;
        let file = self.disk.create(&name, length).map_err(|error| io_error("create", &name, error));
        let written = file.map_err(|error| self.no_space(error, length)).and_then(|file| {
            let zeros = vec![0; ZERO_BYTES.min(length) as usize];
            for offset in (0..length).step_by(ZERO_BYTES as usize) {
                let piece = &zeros[..ZERO_BYTES.min(length - offset) as usize];
                file.write_at(piece, offset).map_err(|error| io_error("write", &name, error))?;
                file.sync().map_err(|error| io_error("sync", &name, error))?;
            }
            Ok(())
        });
        if let Err(error) = written {
            // Where it was not made there is nothing to remove.
            if let Err(left) = self.disk.remove(&name) {
                tracing::debug!(%left, name, "no half-made spare was left");
            }
            return Err(error);
        }
        self.disk.sync().map_err(|error| io_error("sync", &name, error))?;
        locked(&self.spares).files.push((name, self.sizes.segment_bytes));
        Ok(())
    }

    /// Bytes that the checkpoint may take: what the disk has, in `need` with the reserve.
    pub fn room(&self, need: bool) -> Result<u64, EngineError> {
        let name = self.disk.name();
        let available = self.disk.available().map_err(|error| io_error("look", &name, error))?;
        let reserve: u64 = locked(&self.spares).files.iter().map(|(_, length)| length).sum();
        Ok(available.saturating_add(if need { reserve } else { 0 }))
    }

    /// Sees that the disk has room for `bytes`, in `need` by giving up spares.
    ///
    /// # Errors
    /// `NoSpace` if there is no such room; nothing was given up then.
    pub fn make_room(&self, bytes: u64, need: bool) -> Result<(), EngineError> {
        let room = self.room(need)?;
        if room < bytes {
            return Err(self.full(bytes, bytes - room));
        }
        while self.room(false)? < bytes {
            let Some((spare, _)) = locked(&self.spares).files.pop() else { break };
            self.disk.remove(&spare).map_err(|error| io_error("remove", &spare, error))?;
        }
        Ok(())
    }

    fn full(&self, needed: u64, missing: u64) -> EngineError {
        EngineError::NoSpace { at: self.disk.name(), needed, missing: Some(missing) }
    }

    /// An error in making a file of so many bytes, with what the disk lacks for it.
    fn no_space(&self, error: EngineError, needed: u64) -> EngineError {
        match error {
            EngineError::NoSpace { .. } => {
                let available = self.disk.available().unwrap_or_default();
                self.full(needed, needed.saturating_sub(available).max(1))
            }
            other => other,
        }
    }

    /// A file of at least `length` bytes under a spare's name: a spare, or a new one. The reserve is
    /// touched only under pressure.
    fn take_file(&self, length: u64, pressure: Pressure) -> Result<(String, Arc<dyn DiskFile>), EngineError> {
        let spare = |reserve: usize| {
            let mut spares = locked(&self.spares);
            let fits = spares.files.iter().position(|(_, spare)| *spare >= length);
            fits.filter(|_| spares.files.len() > reserve).map(|at| spares.files.swap_remove(at).0)
        };
        let open = |name: String| {
            let file = self.disk.open(&name).map_err(|error| io_error("open", &name, error))?;
            Ok((name, file))
        };
        // What is logged must find room in the checkpoint one day, or the log could never be given back.
        // It takes up to twice its size there, until old leaves are given back; deletes make it smaller.
        let (frees_space, share) = match pressure {
            Pressure::None => (false, 2),
            Pressure::Full => (true, 2),
            Pressure::Desperate => (true, 1),
        };
        let (room, wanted) =
            (self.room(frees_space)?, share * (self.bytes_uncovered() + length) + CHECKPOINT_MARGIN_BYTES);
        if room < wanted {
            return Err(self.full(length, wanted - room));
        }
        if let Some(name) = spare(RESERVE_SPARES) {
            return open(name);
        }
        let name = {
            let mut spares = locked(&self.spares);
            spares.named += 1;
            spare_name(spares.named - 1)
        };
        let created = self.disk.create(&name, length).map_err(|error| io_error("create", &name, error));
        match created {
            Ok(file) => Ok((name, file)),
            Err(EngineError::NoSpace { .. }) if frees_space => match spare(CHECKPOINT_SPARES) {
                Some(name) => open(name),
                None => Err(self.full(length, length)),
            },
            Err(error) => Err(self.no_space(error, length)),
        }
    }

    /// Begins the segment that follows `before`, with room for `room` bytes of groups.
    pub fn begin_segment(&self, before: &State, room: u64, pressure: Pressure) -> Result<(), EngineError> {
        let size = before.bytes + before.records.len() as u64 * RECORD_OVERHEAD;
        let number = locked(&self.segments).back().map_or(1, |segment| segment.title.number + 1);
        let title = Title {
            number,
            first: before.revision.next(),
            floor: Revision::new(self.floor.load(Ordering::Acquire)),
            time: before.time,
            base: (size <= self.sizes.base_bytes).then_some(before.records.len() as u64),
        };
        let bytes = opening(&title, before);
        let length = self.sizes.segment_bytes.max(bytes.len() as u64 + room).next_multiple_of(ALIGN);
        let (name, file) = self.take_file(length, pressure)?;
        let named = file_name(number);
        file.write_at(&bytes, 0).map_err(|error| io_error("write", &name, error))?;
        file.sync().map_err(|error| io_error("sync", &name, error))?;
        self.disk.rename(&name, &named).map_err(|error| io_error("rename", &name, error))?;
        self.disk.sync().map_err(|error| io_error("sync", &named, error))?;
        // Before anything in it is acknowledged.
        locked(&self.newest).write(self.disk.as_ref(), (number, 0))?;
        let segment = Segment::begun(title, file, bytes.len() as u64);
        locked(&self.segments).push_back(Arc::new(segment));
        Ok(())
    }
}

/// The one writer.
pub struct LogWriter {
    log: Arc<Log>,
    active: Option<Arc<Segment>>,
    frame: Vec<u8>,
    stopped: Option<String>,
}

/// Bytes that the frame buffer keeps between groups; a larger one is let go.
const KEEP_BUFFER_BYTES: usize = 1 << 20;

impl LogWriter {
    /// A writer that goes on at the end of the log.
    pub fn new(log: Arc<Log>) -> Self {
        let active = locked(&log.segments).back().cloned();
        LogWriter { log, active, frame: Vec::new(), stopped: None }
    }

    /// Encodes the group for a segment; gives whether it fits there.
    fn encode(&mut self, group: &Group<'_>, segment: &Segment) -> bool {
        self.frame.clear();
        let start = frame::begin(&mut self.frame);
        for transaction in group.transactions {
            codec::put_transaction(&mut self.frame, transaction, |record| segment.names(record));
        }
        let (first, count) = (group.transactions[0].revision.get(), group.transactions.len() as u32);
        frame::finish(
            &mut self.frame,
            start,
            Kind::Group,
            (segment.title.number, segment.end()),
            first,
            count,
        );
        segment.end() + self.frame.len() as u64 <= segment.file.length()
    }

    fn write(&mut self, group: &Group<'_>) -> Result<(), EngineError> {
        let segment = match self.active.clone() {
            Some(segment) if self.encode(group, &segment) => segment,
            _ => self.rotate(group)?,
        };
        let end = segment.end();
        segment.file.write_at(&self.frame, end).map_err(|error| io_error("write", &segment.name, error))?;
        segment.file.sync().map_err(|error| io_error("sync", &segment.name, error))?;
        let last = group.transactions[group.transactions.len() - 1].revision;
        segment.set_end(end + self.frame.len() as u64, last);
        self.log.note_changed(group.before, group.transactions, self.frame.len() as u64);
        self.frame.shrink_to(KEEP_BUFFER_BYTES);
        Ok(())
    }

    fn rotate(&mut self, group: &Group<'_>) -> Result<Arc<Segment>, EngineError> {
        // Room for the group with every value before it written out.
        let sizes = group.transactions.iter().map(|transaction| {
            64 + transaction.size() as u64 + transaction.changes.len() as u64 * RECORD_OVERHEAD * 2
        });
        let room = sizes.sum::<u64>() + ALIGN * 2;
        self.log.begin_segment(group.before, room, group.pressure)?;
        let segment = locked(&self.log.segments).back().cloned();
        let Some(segment) = segment.filter(|segment| self.encode(group, segment)) else {
            return Err(EngineError::Stopped {
                reason: "a new segment has no room for its group".to_owned(),
            });
        };
        self.active = Some(segment.clone());
        Ok(segment)
    }
}

impl Engine for LogWriter {
    fn append(&mut self, group: &Group<'_>) -> Result<(), EngineError> {
        if let Some(reason) = &self.stopped {
            return Err(EngineError::Stopped { reason: reason.clone() });
        }
        self.write(group).inspect_err(|error| {
            if error.class() != Class::Transient {
                self.stopped = Some(error.to_string());
            }
        })
    }
}
