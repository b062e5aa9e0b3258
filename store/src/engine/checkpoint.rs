//! Checkpoint: the keyed, compacted state behind the log, and the marker that says how far it reaches.
//!
//! The checkpoint is fuzzy: each record is from some revision between the marker's and the one at which
//! it was last written. The log from the marker on makes it whole. Record keys are prefixed `k`; the key
//! `m` holds the revision that the checkpoint itself claims, the key `a` the newest one that a record in it may be from:
//! a log that ends before that has lost something. Knows nothing of when it is written.

use std::sync::Arc;

use crate::engine::codec::{self, Decoder};
use crate::engine::disk::Disk;
use crate::engine::flip::{self, Flip};
use crate::engine::slots::Slots;
use crate::error::EngineError;
use crate::key::Key;
use crate::record::Record;
use crate::revision::Revision;
use crate::state::State;

/// Version of the values that this program writes.
const VALUE_VERSION: u8 = 1;
/// Key of the revision that the checkpoint claims.
const META_KEY: &[u8] = b"m";
const AHEAD_KEY: &[u8] = b"a";
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
        let name = key.strip_prefix(&[RECORD_PREFIX]).unwrap_or(key);
        let file = format!("the checkpoint's record of key {}", name.escape_ascii());
        EngineError::Corrupt { file, offset: 0, what: what.to_owned() }
    };
    let Some((&[version, a, b, c, d], payload)) = value.split_first_chunk::<5>() else {
        return Err(corrupt("the value is too short"));
    };
    if version != VALUE_VERSION {
        return Err(corrupt("the value has an unknown version"));
    }
    let (stored, found) = (u32::from_le_bytes([a, b, c, d]), checksum(key, payload));
    if stored != found {
        return Err(corrupt(&format!("the checksum is wrong{}", explained(key, payload, stored, found))));
    }
    Ok(payload)
}

/// Which bit of a damaged record is flipped, and of which revision it is, where that can be told.
fn explained(key: &[u8], payload: &[u8], stored: u32, found: u32) -> String {
    let mut payload = payload.to_vec();
    let told = match flip::find(payload.len(), stored, found) {
        Some(Flip::Bit(bit)) => {
            payload[bit / 8] ^= 1 << (bit % 8);
            format!("bit {} of byte {} is flipped", bit % 8, bit / 8)
        }
        Some(Flip::Checksum) => "a bit of the checksum itself is flipped".to_owned(),
        None => return ": more than one bit is wrong".to_owned(),
    };
    let record = Decoder::new(&payload).stored(Key::from(key));
    record.map_or_else(
        |_| format!(": {told}"),
        |record| format!(": {told}, in the value of revision {}", record.modified),
    )
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

/// The entry that says how new a record in the checkpoint may be; written with each record that is newer than before.
pub fn ahead(revision: Revision) -> Entry {
    (AHEAD_KEY.to_vec(), Some(sealed(AHEAD_KEY, &revision.get().to_le_bytes())))
}

/// How new a record in the checkpoint may be; zero if that was never said.
///
/// # Errors
/// It could not be read.
pub fn newest(checkpoint: &mut dyn Checkpoint) -> Result<Revision, EngineError> {
    match checkpoint.get(AHEAD_KEY)? {
        None => Ok(Revision::ZERO),
        Some(value) => revision_in(AHEAD_KEY, &value),
    }
}

/// The revision that a checkpoint claims; zero if it is empty.
pub fn claimed(checkpoint: &mut dyn Checkpoint) -> Result<Revision, EngineError> {
    match checkpoint.get(META_KEY)? {
        None => Ok(Revision::ZERO),
        Some(value) => revision_in(META_KEY, &value),
    }
}

fn revision_in(key: &[u8], value: &[u8]) -> Result<Revision, EngineError> {
    let number: Result<[u8; 8], _> = unsealed(key, value)?.try_into();
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

/// Reads all records of a checkpoint and tells those that are damaged; gives how many are not.
pub fn inspect(checkpoint: &mut dyn Checkpoint, damage: &mut dyn FnMut(EngineError)) -> u64 {
    let (mut count, mut last) = (0, None);
    let read = checkpoint.visit(&mut |name, value| {
        let Some(key) = name.strip_prefix(&[RECORD_PREFIX]) else { return Ok(()) };
        match unsealed(name, value) {
            Ok(_) => count += 1,
            Err(error) => damage(error),
        }
        last = Some(Key::from(key));
        Ok(())
    });
    if let Err(error) = read {
        let place = last.map_or_else(|| "at its first key".to_owned(), |key| format!("after key {key}"));
        let mut what = format!("it cannot be read {place}");
        let mut cause: Option<&dyn std::error::Error> = Some(&error);
        while let Some(error) = cause {
            what.push_str(&format!(": {error}"));
            cause = error.source();
        }
        damage(EngineError::Corrupt { file: "checkpoint".to_owned(), offset: 0, what });
    }
    count
}

/// A checkpoint as read.
pub struct Loaded {
    /// The records, and the revision from which on the log makes them whole.
    pub state: State,
    /// How new a record in it may be: the log must reach that far.
    pub newest: Revision,
}

/// The state of a checkpoint, to be made whole by the log after `marked`.
///
/// # Errors
/// `Corrupt` if a value is damaged or the checkpoint does not reach `marked`.
pub fn load(checkpoint: &mut dyn Checkpoint, marked: Revision) -> Result<Loaded, EngineError> {
    let mut state = State::empty();
    let (mut reaches, mut newest) = (Revision::ZERO, Revision::ZERO);
    checkpoint.visit(&mut |name, value| {
        if name == META_KEY {
            reaches = revision_in(name, value)?;
        } else if name == AHEAD_KEY {
            newest = revision_in(name, value)?;
        } else if let Some(key) = name.strip_prefix(&[RECORD_PREFIX]) {
            let payload = unsealed(name, value)?;
            let record =
                Decoder::new(payload).stored(Key::from(key)).map_err(|what| EngineError::Corrupt {
                    file: format!("the checkpoint's record of key {}", Key::from(key)),
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
    Ok(Loaded { state, newest })
}

/// Name of the folder that the checkpoint is in, where it is in one.
pub const FOLDER: &str = "sled";
/// Name of the marker's file.
pub const MARKER: &str = "checkpoint";

/// What the marker says.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Mark {
    /// The checkpoint with the log after this revision is whole.
    pub revision: Revision,
    /// Oldest revision that may be read.
    pub floor: Revision,
}

/// The marker.
pub struct Marker(Slots);

impl Marker {
    /// Reads the marker of a disk.
    ///
    /// # Errors
    /// `Corrupt` if there is a file but nothing valid in it.
    pub fn open(disk: &dyn Disk, files: &[String]) -> Result<(Marker, Mark), EngineError> {
        let (slots, said) = Slots::open(disk, files, MARKER)?;
        let (revision, floor) = said.unwrap_or_default();
        Ok((Marker(slots), Mark { revision: Revision::new(revision), floor: Revision::new(floor) }))
    }

    /// Makes a mark durable.
    ///
    /// # Errors
    /// It may or may not be.
    pub fn write(&mut self, disk: &dyn Disk, mark: Mark) -> Result<(), EngineError> {
        self.0.write(disk, (mark.revision.get(), mark.floor.get()))
    }
}
