//! The memory engine: the very log and recovery of the embedded engine on a disk in memory that fails
//! on demand, for tests and simulation. A [`Memory`] outlives the stores that open it, so closing (or
//! [crashing](Memory::crash)) and opening again is a restart. Knows nothing of real files.

use std::collections::{BTreeMap, HashMap, VecDeque};
use std::fmt;
use std::io;
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::Duration;

use crate::config::Config;
use crate::engine::checkpoint::{Checkpoint, Entry, Visit};
use crate::engine::crash::{Coin, Content, Survives, overwrite};
use crate::engine::disk::{Disk, DiskFile};
use crate::engine::log::locked;
use crate::engine::pace::Pace;
use crate::engine::segment::io_error;
use crate::engine::{Opened, archive};
use crate::error::{EngineError, OpenError};

/// A fault that happens once, to the next operation of its kind.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fault {
    /// A write to a file fails and leaves nothing.
    FailedWrite,
    /// A write to a file fails after half of its bytes.
    TornWrite,
    /// A sync of a file fails and makes nothing durable.
    FailedSync,
    /// A sync of a file says that it worked and makes nothing durable: the next one that is true does.
    LyingSync,
    /// A write to the checkpoint fails and leaves nothing.
    FailedCheckpoint,
}

/// A data set in memory, shared by its clones. One store at a time may have it open.
#[derive(Clone, Default)]
pub struct Memory {
    inner: Arc<Mutex<Inner>>,
    pace: Arc<Pace>,
}

#[derive(Default)]
struct Inner {
    contents: HashMap<u64, Arc<Mutex<Content>>>,
    names: BTreeMap<String, u64>,
    durable_names: BTreeMap<String, u64>,
    next_content: u64,
    checkpoint: BTreeMap<Vec<u8>, Vec<u8>>,
    /// The checkpoint as it is on the disk, where that was lied about.
    durable_checkpoint: Option<BTreeMap<Vec<u8>, Vec<u8>>>,
    lies: bool,
    faults: VecDeque<Fault>,
    room: Option<u64>,
    steps: u64,
    crash_at: Option<u64>,
    crashed: bool,
    life: u64,
    opened: bool,
}

impl Memory {
    /// An empty data set without faults.
    #[must_use]
    pub fn new() -> Self {
        Memory::default()
    }

    /// Makes the next operation of the fault's kind fail; several wait in line.
    pub fn inject(&self, fault: Fault) {
        locked(&self.inner).faults.push_back(fault);
    }

    /// Whether the disk lies from now on: it says of every sync that it worked, of files, names and checkpoint, and
    /// keeps nothing before it is asked again as an honest disk. Only a crash shows it.
    pub fn set_lying(&self, lies: bool) {
        locked(&self.inner).lies = lies;
    }

    /// Makes each write and sync take so long; zero for a disk that takes no time.
    pub fn set_slow(&self, each: Duration) {
        self.pace.slow(each);
    }

    /// Holds every write and sync, from the next one on, until the answer is dropped: a disk that hangs.
    pub fn stall(&self) -> Stall {
        self.pace.hold();
        Stall(self.pace.clone())
    }

    /// Limits the bytes that all files together may have; `None` for no limit.
    pub fn set_room(&self, bytes: Option<u64>) {
        locked(&self.inner).room = bytes;
    }

    /// Bytes that all files together have.
    #[must_use]
    pub fn used(&self) -> u64 {
        locked(&self.inner).used()
    }

    /// How many operations have changed the disk so far.
    #[must_use]
    pub fn steps(&self) -> u64 {
        locked(&self.inner).steps
    }

    /// Stops the disk right before the operation of this number, or half way through it if it is a
    /// write: that operation and all later ones fail until [`crash`](Memory::crash) is called.
    pub fn crash_at(&self, step: u64) {
        locked(&self.inner).crash_at = Some(step);
    }

    /// Whether the disk has stopped by `crash_at`.
    #[must_use]
    pub fn has_crashed(&self) -> bool {
        locked(&self.inner).crashed
    }

    /// A crash and a restart of the machine or process: stores that had it open fail from now on, and
    /// a new one may open what survives.
    pub fn crash(&self, survives: Survives) {
        let mut inner = locked(&self.inner);
        inner.life += 1;
        (inner.crash_at, inner.crashed, inner.opened) = (None, false, false);
        inner.faults.clear();
        inner.lies = false;
        let mut coin = Coin::new(survives);
        if coin.keeps_all() {
            inner.durable_names = inner.names.clone();
        } else {
            inner.names = inner.durable_names.clone();
        }
        if let Some(durable) = inner.durable_checkpoint.take()
            && !coin.keeps_all()
        {
            inner.checkpoint = durable;
        }
        let mut files: Vec<_> = inner.contents.iter().collect();
        files.sort_unstable_by_key(|(id, _)| **id);
        files.into_iter().for_each(|(_, content)| coin.toss(&mut locked(content)));
    }

    /// Flips one bit of a file, as decay does. Gives whether there is such a byte.
    pub fn flip_bit(&self, file: &str, byte: u64) -> bool {
        let inner = locked(&self.inner);
        let Some(content) = inner.names.get(file).and_then(|id| inner.contents.get(id)) else {
            return false;
        };
        let at = byte as usize;
        let Content { seen, durable, .. } = &mut *locked(content);
        for bytes in [seen, durable] {
            match bytes.get_mut(at) {
                Some(byte) => *byte ^= 1,
                None => return false,
            }
        }
        true
    }

    /// Cuts a file off, as a copy that broke off does. Gives whether there is such a file.
    pub fn cut(&self, file: &str, length: u64) -> bool {
        let inner = locked(&self.inner);
        let Some(content) = inner.names.get(file).and_then(|id| inner.contents.get(id)) else {
            return false;
        };
        let Content { length: allocated, seen, durable, .. } = &mut *locked(content);
        *allocated = length;
        for bytes in [seen, durable] {
            bytes.truncate(length as usize);
        }
        true
    }

    /// Names of the files, with the bytes that were written to each.
    #[must_use]
    pub fn files(&self) -> Vec<(String, u64)> {
        let inner = locked(&self.inner);
        let size = |id: &u64| inner.contents.get(id).map_or(0, |content| locked(content).seen.len() as u64);
        inner.names.iter().map(|(name, id)| (name.clone(), size(id))).collect()
    }

    /// Opens the data set.
    pub(crate) fn open(self, config: &Config) -> Result<Opened, OpenError> {
        let life = {
            let mut inner = locked(&self.inner);
            if inner.opened {
                return Err(OpenError::Locked { path: "memory".into() });
            }
            inner.opened = true;
            inner.life
        };
        let guard = OpenGuard { memory: self.clone(), life };
        let disk = MemoryDisk { memory: self, life };
        let checkpoint = Box::new(disk.clone());
        Ok(archive::open(Arc::new(disk), checkpoint, Box::new(guard), config)?)
    }
}

impl fmt::Debug for Memory {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Memory").field("used", &self.used()).field("steps", &self.steps()).finish()
    }
}

/// A disk that hangs, until this is dropped.
#[must_use]
pub struct Stall(Arc<Pace>);

impl Stall {
    /// How many writes and syncs hang at this moment.
    #[must_use]
    pub fn waiting(&self) -> usize {
        self.0.waiting()
    }
}

impl Drop for Stall {
    fn drop(&mut self) {
        self.0.let_go();
    }
}

impl Inner {
    fn used(&self) -> u64 {
        self.names.values().filter_map(|id| self.contents.get(id)).map(|content| locked(content).length).sum()
    }

    /// Counts an operation that changes the disk; fails if the disk stops at it.
    fn step(&mut self) -> io::Result<()> {
        if !self.crashed {
            self.steps += 1;
            self.crashed = self.crash_at == Some(self.steps);
        }
        if self.crashed { Err(io::Error::other("the disk has stopped")) } else { Ok(()) }
    }

    /// Whether the next fault in line is one of these; it is used up.
    fn fault(&mut self, kinds: &[Fault]) -> Option<Fault> {
        let at = self.faults.iter().position(|fault| kinds.contains(fault))?;
        self.faults.remove(at)
    }

    fn id(&self, name: &str) -> io::Result<u64> {
        self.names.get(name).copied().ok_or_else(|| io::Error::from(io::ErrorKind::NotFound))
    }

    fn content(&self, id: u64) -> io::Result<Arc<Mutex<Content>>> {
        self.contents.get(&id).cloned().ok_or_else(|| io::Error::from(io::ErrorKind::NotFound))
    }
}

/// Lets another store open the data set once this one has ended.
struct OpenGuard {
    memory: Memory,
    life: u64,
}

impl Drop for OpenGuard {
    fn drop(&mut self) {
        let mut inner = locked(&self.memory.inner);
        if inner.life == self.life {
            inner.opened = false;
        }
    }
}

/// The disk as one opened store sees it: useless after a crash.
#[derive(Clone)]
struct MemoryDisk {
    memory: Memory,
    life: u64,
}

impl MemoryDisk {
    /// The inside, for an operation that takes as long as the disk is slow.
    fn slowly(&self) -> io::Result<MutexGuard<'_, Inner>> {
        self.memory.pace.wait();
        self.inner()
    }

    fn inner(&self) -> io::Result<MutexGuard<'_, Inner>> {
        let inner = locked(&self.memory.inner);
        if inner.life == self.life { Ok(inner) } else { Err(io::Error::other("the disk was restarted")) }
    }
}

impl Disk for MemoryDisk {
    fn name(&self) -> String {
        "memory".to_owned()
    }

    fn list(&self) -> io::Result<Vec<String>> {
        Ok(self.inner()?.names.keys().cloned().collect())
    }

    fn open(&self, name: &str) -> io::Result<Arc<dyn DiskFile>> {
        let inner = self.inner()?;
        let content = inner.content(inner.id(name)?)?;
        let length = locked(&content).length;
        Ok(Arc::new(MemoryFile { disk: self.clone(), content, length }))
    }

    fn create(&self, name: &str, length: u64) -> io::Result<Arc<dyn DiskFile>> {
        let mut inner = self.inner()?;
        inner.step()?;
        if inner.room.is_some_and(|room| inner.used() + length > room) {
            return Err(io::Error::from(io::ErrorKind::StorageFull));
        }
        let id = inner.next_content;
        inner.next_content += 1;
        let content = Arc::new(Mutex::new(Content { length, ..Content::default() }));
        inner.contents.insert(id, content.clone());
        inner.names.insert(name.to_owned(), id);
        Ok(Arc::new(MemoryFile { disk: self.clone(), content, length }))
    }

    fn rename(&self, from: &str, to: &str) -> io::Result<()> {
        let mut inner = self.inner()?;
        inner.step()?;
        let id = inner.id(from)?;
        inner.names.remove(from);
        inner.names.insert(to.to_owned(), id);
        Ok(())
    }

    fn remove(&self, name: &str) -> io::Result<()> {
        let mut inner = self.inner()?;
        inner.step()?;
        inner.id(name)?;
        inner.names.remove(name);
        Ok(())
    }

    fn used(&self) -> io::Result<u64> {
        Ok(self.inner()?.used())
    }

    fn available(&self) -> io::Result<u64> {
        let inner = self.inner()?;
        Ok(inner.room.map_or(u64::MAX, |room| room.saturating_sub(inner.used())))
    }

    fn sync(&self) -> io::Result<()> {
        let mut inner = self.slowly()?;
        inner.step()?;
        if inner.lies {
            return Ok(());
        }
        inner.durable_names = inner.names.clone();
        // A file without a name stays readable for who has it open.
        let Inner { contents, names, .. } = &mut *inner;
        contents.retain(|id, _| names.values().any(|named| named == id));
        Ok(())
    }
}

struct MemoryFile {
    disk: MemoryDisk,
    content: Arc<Mutex<Content>>,
    length: u64,
}

impl DiskFile for MemoryFile {
    fn length(&self) -> u64 {
        self.length
    }

    fn read_at(&self, buffer: &mut [u8], offset: u64) -> io::Result<()> {
        if offset + buffer.len() as u64 > self.length {
            return Err(io::Error::from(io::ErrorKind::UnexpectedEof));
        }
        drop(self.disk.inner()?);
        let content = locked(&self.content);
        buffer.fill(0);
        if let Some(bytes) = content.seen.get(offset as usize..) {
            let count = bytes.len().min(buffer.len());
            buffer[..count].copy_from_slice(&bytes[..count]);
        }
        Ok(())
    }

    fn write_at(&self, bytes: &[u8], offset: u64) -> io::Result<()> {
        let mut inner = self.disk.slowly()?;
        let mut kept = bytes.len();
        let mut failure = inner.step().err();
        let torn = failure.is_some() && inner.crash_at == Some(inner.steps);
        if failure.is_none()
            && let Some(fault) = inner.fault(&[Fault::FailedWrite, Fault::TornWrite])
        {
            failure = Some(io::Error::other(format!("{fault:?}")));
            kept = if fault == Fault::TornWrite { bytes.len() / 2 } else { 0 };
        } else if torn {
            kept = bytes.len() / 2;
            inner.crash_at = None;
        } else if failure.is_some() {
            kept = 0;
        }
        let mut content = locked(&self.content);
        overwrite(&mut content.seen, &bytes[..kept], offset);
        if kept > 0 {
            content.unsynced.push((offset, bytes[..kept].to_vec()));
        }
        failure.map_or(Ok(()), Err)
    }

    fn sync(&self) -> io::Result<()> {
        let mut inner = self.disk.slowly()?;
        inner.step()?;
        match inner.fault(&[Fault::FailedSync, Fault::LyingSync]) {
            Some(Fault::FailedSync) => return Err(io::Error::other("FailedSync")),
            Some(_) => return Ok(()),
            None if inner.lies => return Ok(()),
            None => {}
        }
        let mut content = locked(&self.content);
        for (offset, bytes) in std::mem::take(&mut content.unsynced) {
            overwrite(&mut content.durable, &bytes, offset);
        }
        Ok(())
    }
}

impl Checkpoint for MemoryDisk {
    fn get(&mut self, key: &[u8]) -> Result<Option<Vec<u8>>, EngineError> {
        let inner = self.inner().map_err(|error| io_error("read", "checkpoint", error))?;
        Ok(inner.checkpoint.get(key).cloned())
    }

    fn visit(&mut self, visit: &mut Visit<'_>) -> Result<(), EngineError> {
        let inner = self.inner().map_err(|error| io_error("read", "checkpoint", error))?;
        inner.checkpoint.iter().try_for_each(|(key, value)| visit(key, value))
    }

    fn write(&mut self, entries: Vec<Entry>) -> Result<(), EngineError> {
        let failed = |error| io_error("write", "checkpoint", error);
        let mut inner = self.slowly().map_err(failed)?;
        inner.step().map_err(failed)?;
        if inner.fault(&[Fault::FailedCheckpoint]).is_some() {
            return Err(failed(io::Error::other("FailedCheckpoint")));
        }
        let Inner { lies, checkpoint, durable_checkpoint, .. } = &mut *inner;
        if !*lies {
            *durable_checkpoint = None;
        } else if durable_checkpoint.is_none() {
            *durable_checkpoint = Some(checkpoint.clone());
        }
        for (key, value) in entries {
            match value {
                Some(value) => inner.checkpoint.insert(key, value),
                None => inner.checkpoint.remove(&key),
            };
        }
        Ok(())
    }

    fn release(&mut self) {}
}
