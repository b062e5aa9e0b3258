//! Checkpoint: the keyed, compacted state behind the log, and the marker that says how far it reaches.
//!
//! The checkpoint is fuzzy: each record is from some revision between the marker's and the one at which
//! it was last written. The log from the marker on makes it whole. Record keys are prefixed `k`; the key
//! `m` holds the revision that the checkpoint itself claims. Knows nothing of when it is written.

use std::sync::Arc;

use crate::engine::codec::{self, Decoder};
use crate::engine::disk::{Disk, DiskFile};
use crate::engine::frame::{self, ALIGN, HEADER_BYTES, Header, Kind};
use crate::engine::segment::io_error;
use crate::error::EngineError;
use crate::key::Key;
use crate::record::Record;
use crate::revision::Revision;
use crate::state::State;

/// Version of the values that this program writes.
const VALUE_VERSION: u8 = 1;
/// Key of the revision that the checkpoint claims.
const META_KEY: &[u8] = b"m";
const RECORD_PREFIX: u8 = b'k';

/// One change of the checkpoint: a value to store, or `None` to remove the key.
pub type Entry = (Vec<u8>, Option<Vec<u8>>);

/// Called with each key and value of a checkpoint.
pub type Visit<'a> = dyn FnMut(&[u8], &[u8]) -> Result<(), EngineError> + 'a;

/// A keyed store behind the log. It is opened when it is first used.
pub trait Checkpoint: Send {
    /// The value of a key.
    fn get(&mut self, key: &[u8]) -> Result<Option<Vec<u8>>, EngineError>;

    /// Visits everything.
    fn visit(&mut self, visit: &mut Visit<'_>) -> Result<(), EngineError>;

    /// Makes the entries durable. After an error some, all or none of them may be.
    fn write(&mut self, entries: Vec<Entry>) -> Result<(), EngineError>;

    /// Lets go of its files; the next use opens them again.
    fn release(&mut self);
}

fn sealed(key: &[u8], payload: &[u8]) -> Vec<u8> {
    let mut out = Vec::with_capacity(payload.len() + 5);
    out.push(VALUE_VERSION);
    out.extend_from_slice(&checksum(key, payload).to_le_bytes());
    out.extend_from_slice(payload);
    out
}

fn unsealed<'a>(key: &[u8], value: &'a [u8]) -> Result<&'a [u8], EngineError> {
    let corrupt = |what: &str| {
        let file = format!("checkpoint key \"{}\"", key.escape_ascii());
        EngineError::Corrupt { file, offset: 0, what: what.to_owned() }
    };
    let Some((&[version, a, b, c, d], payload)) = value.split_first_chunk::<5>() else {
        return Err(corrupt("the value is too short"));
    };
    if version != VALUE_VERSION {
        return Err(corrupt("the value has an unknown version"));
    }
    if checksum(key, payload) != u32::from_le_bytes([a, b, c, d]) {
        return Err(corrupt("the checksum is wrong"));
    }
    Ok(payload)
}

fn checksum(key: &[u8], payload: &[u8]) -> u32 {
    let mut hasher = crc32fast::Hasher::new();
    hasher.update(&(key.len() as u64).to_le_bytes());
    hasher.update(key);
    hasher.update(payload);
    hasher.finalize()
}

/// The entry for a key: its record, or its absence.
pub fn entry(key: &Key, record: Option<&Record>) -> Entry {
    let mut name = Vec::with_capacity(key.as_bytes().len() + 1);
    name.push(RECORD_PREFIX);
    name.extend_from_slice(key.as_bytes());
    let value = record.map(|record| {
        let mut payload = Vec::with_capacity(record.value.len() + 16);
        codec::put_stored(&mut payload, record);
        sealed(&name, &payload)
    });
    (name, value)
}

/// The entry that claims a revision.
pub fn claim(revision: Revision) -> Entry {
    (META_KEY.to_vec(), Some(sealed(META_KEY, &revision.get().to_le_bytes())))
}

/// The revision that a checkpoint claims; zero if it is empty.
pub fn claimed(checkpoint: &mut dyn Checkpoint) -> Result<Revision, EngineError> {
    match checkpoint.get(META_KEY)? {
        None => Ok(Revision::ZERO),
        Some(value) => claimed_in(&value),
    }
}

fn claimed_in(value: &[u8]) -> Result<Revision, EngineError> {
    let number: Result<[u8; 8], _> = unsealed(META_KEY, value)?.try_into();
    number.map(|number| Revision::new(u64::from_le_bytes(number))).map_err(|_| EngineError::Corrupt {
        file: "checkpoint".to_owned(),
        offset: 0,
        what: "its revision is not a number".to_owned(),
    })
}

/// All keys that a checkpoint has.
pub fn keys(checkpoint: &mut dyn Checkpoint) -> Result<Vec<Key>, EngineError> {
    let mut keys = Vec::new();
    checkpoint.visit(&mut |name, _| {
        keys.extend(name.strip_prefix(&[RECORD_PREFIX]).map(Key::from));
        Ok(())
    })?;
    Ok(keys)
}

/// The state of a checkpoint, to be made whole by the log after `marked`.
///
/// # Errors
/// `Corrupt` if a value is damaged or the checkpoint does not reach `marked`.
pub fn load(checkpoint: &mut dyn Checkpoint, marked: Revision) -> Result<State, EngineError> {
    let mut state = State::empty();
    let mut reaches = Revision::ZERO;
    checkpoint.visit(&mut |name, value| {
        if name == META_KEY {
            reaches = claimed_in(value)?;
        } else if let Some(key) = name.strip_prefix(&[RECORD_PREFIX]) {
            let payload = unsealed(name, value)?;
            let record =
                Decoder::new(payload).stored(Key::from(key)).map_err(|what| EngineError::Corrupt {
                    file: format!("checkpoint key {}", Key::from(key)),
                    offset: 0,
                    what: what.to_owned(),
                })?;
            state.insert(Arc::new(record));
        }
        Ok(())
    })?;
    if reaches < marked {
        let what = format!("it reaches revision {reaches}, the log begins after {marked}");
        return Err(EngineError::Corrupt { file: "checkpoint".to_owned(), offset: 0, what });
    }
    state.revision = marked;
    Ok(state)
}

/// Name of the marker's file.
const MARKER: &str = "checkpoint";
/// Name of the marker's file while it is made.
const MARKER_NEW: &str = "checkpoint.new";

/// What the marker says.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Mark {
    /// The checkpoint with the log after this revision is whole.
    pub revision: Revision,
    /// Oldest revision that may be read.
    pub floor: Revision,
}

/// The marker: two slots written in turn, so that a torn write leaves the one before.
#[derive(Default)]
pub struct Marker {
    file: Option<Arc<dyn DiskFile>>,
    generation: u64,
}

impl Marker {
    /// Reads the marker of a disk.
    ///
    /// # Errors
    /// `Corrupt` if there is a file but neither slot is valid.
    pub fn open(disk: &dyn Disk, files: &[String]) -> Result<(Marker, Mark), EngineError> {
        if !files.iter().any(|name| name == MARKER) {
            return Ok((Marker::default(), Mark::default()));
        }
        let file = disk.open(MARKER).map_err(|error| io_error("open", MARKER, error))?;
        let mut newest: Option<(u64, Mark)> = None;
        for slot in 0..2 {
            let found = read_slot(file.as_ref(), slot)?;
            newest = newest.into_iter().chain(found).max_by_key(|(generation, _)| *generation);
        }
        let Some((generation, mark)) = newest else {
            let what = "neither slot is valid".to_owned();
            return Err(EngineError::Corrupt { file: MARKER.to_owned(), offset: 0, what });
        };
        Ok((Marker { file: Some(file), generation }, mark))
    }

    /// Makes a mark durable.
    pub fn write(&mut self, disk: &dyn Disk, mark: Mark) -> Result<(), EngineError> {
        let generation = self.generation + 1;
        let offset = generation % 2 * ALIGN;
        let mut bytes = Vec::new();
        let start = frame::begin(&mut bytes);
        codec::put_number(&mut bytes, generation);
        codec::put_number(&mut bytes, mark.floor.get());
        frame::finish(&mut bytes, start, Kind::Checkpoint, (0, offset), mark.revision.get(), 1);
        let put = |file: &dyn DiskFile| {
            file.write_at(&bytes, offset).map_err(|error| io_error("write", MARKER, error))?;
            file.sync().map_err(|error| io_error("sync", MARKER, error))
        };
        match &self.file {
            Some(file) => put(file.as_ref())?,
            None => {
                let file = disk.create(MARKER_NEW, 2 * ALIGN);
                let file = file.map_err(|error| io_error("create", MARKER_NEW, error))?;
                put(file.as_ref())?;
                disk.rename(MARKER_NEW, MARKER).map_err(|error| io_error("rename", MARKER, error))?;
                disk.sync().map_err(|error| io_error("sync", MARKER, error))?;
                self.file = Some(file);
            }
        }
        self.generation = generation;
        Ok(())
    }
}

fn read_slot(file: &dyn DiskFile, slot: u64) -> Result<Option<(u64, Mark)>, EngineError> {
    let offset = slot * ALIGN;
    let mut bytes = vec![0; ALIGN as usize];
    file.read_at(&mut bytes, offset).map_err(|error| io_error("read", MARKER, error))?;
    let header = Header::read(&bytes).filter(|header| header.kind == Kind::Checkpoint);
    let Some(header) = header.filter(|header| frame::is_intact(header, &bytes, (0, offset))) else {
        return Ok(None);
    };
    let mut decoder = Decoder::new(&bytes[HEADER_BYTES..]);
    let (Ok(generation), Ok(floor)) = (decoder.number(), decoder.revision()) else { return Ok(None) };
    Ok(Some((generation, Mark { revision: Revision::new(header.first), floor })))
}
