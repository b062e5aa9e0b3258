//! Codec: transactions and records as bytes, and back. Format version 1; golden bytes in the tests.
//!
//! Numbers are LEB128 unless said. A change does not repeat what its segment already says: the value
//! that it replaces is written out only if no earlier frame of the same segment holds it.
//! Knows nothing of files, frames or checksums.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use bytes::Bytes;

use crate::key::Key;
use crate::record::Record;
use crate::revision::Revision;
use crate::txn::{Change, Transaction};

/// The change stores a record.
const PUT: u8 = 1;
/// The record before is in this segment.
const PREVIOUS_HERE: u8 = 1 << 2;
/// The record before follows.
const PREVIOUS_INLINE: u8 = 2 << 2;

/// Records that a segment has named so far, by key: what "the record before" refers to.
pub type Known = HashMap<Key, Arc<Record>>;

/// What is wrong with bytes that cannot be read.
pub type Malformed = &'static str;

/// Microseconds since 1970, as times are stored.
pub fn micros(time: SystemTime) -> u64 {
    let micros = time.duration_since(UNIX_EPOCH).unwrap_or_default().as_micros();
    u64::try_from(micros).unwrap_or(u64::MAX)
}

/// The time of so many microseconds since 1970; one that no clock can show counts as malformed.
pub fn time(micros: u64) -> Result<SystemTime, Malformed> {
    UNIX_EPOCH.checked_add(Duration::from_micros(micros)).ok_or("a time out of range")
}

/// Appends a number.
pub fn put_number(out: &mut Vec<u8>, mut number: u64) {
    while number >= 0x80 {
        out.push(number as u8 | 0x80);
        number >>= 7;
    }
    out.push(number as u8);
}

fn put_bytes(out: &mut Vec<u8>, bytes: &[u8]) {
    put_number(out, bytes.len() as u64);
    out.extend_from_slice(bytes);
}

/// Appends a record in full.
pub fn put_record(out: &mut Vec<u8>, record: &Record) {
    put_bytes(out, record.key.as_bytes());
    put_stored(out, record);
}

/// Appends a record without its key.
pub fn put_stored(out: &mut Vec<u8>, record: &Record) {
    put_number(out, record.created.get());
    put_number(out, record.modified.get());
    put_bytes(out, &record.value);
}

/// Appends a transaction. `is_here` says of the record before a change whether the segment holds it.
pub fn put_transaction(out: &mut Vec<u8>, transaction: &Transaction, is_here: impl Fn(&Record) -> bool) {
    put_number(out, micros(transaction.time));
    put_bytes(out, &transaction.cause);
    put_number(out, transaction.changes.len() as u64);
    for change in &transaction.changes {
        let inline = change.previous.as_ref().filter(|previous| !is_here(previous));
        let before = match (&change.previous, inline) {
            (None, _) => 0,
            (Some(_), None) => PREVIOUS_HERE,
            (Some(_), Some(_)) => PREVIOUS_INLINE,
        };
        out.push(before | if change.record.is_some() { PUT } else { 0 });
        put_bytes(out, change.key.as_bytes());
        if let Some(record) = &change.record {
            put_bytes(out, &record.value);
        }
        if let Some(previous) = inline {
            put_stored(out, previous);
        }
    }
}

/// Reads what was put, from the front of a buffer.
pub struct Decoder<'a> {
    rest: &'a [u8],
}

impl<'a> Decoder<'a> {
    /// A reader of these bytes.
    pub fn new(bytes: &'a [u8]) -> Self {
        Decoder { rest: bytes }
    }

    /// Whether everything was read.
    pub fn is_done(&self) -> bool {
        self.rest.is_empty()
    }

    /// Everything that was not read yet.
    #[cfg(feature = "etcd")]
    pub fn rest(&self) -> &'a [u8] {
        self.rest
    }

    /// A byte.
    pub fn byte(&mut self) -> Result<u8, Malformed> {
        let (first, rest) = self.rest.split_first().ok_or("it ends early")?;
        self.rest = rest;
        Ok(*first)
    }

    /// A number.
    pub fn number(&mut self) -> Result<u64, Malformed> {
        let mut number = 0u64;
        for shift in (0..64).step_by(7) {
            let byte = self.byte()?;
            let bits = u64::from(byte & 0x7f);
            if shift == 63 && bits > 1 {
                break;
            }
            number |= bits << shift;
            if byte & 0x80 == 0 {
                return Ok(number);
            }
        }
        Err("a number too large")
    }

    /// A revision.
    pub fn revision(&mut self) -> Result<Revision, Malformed> {
        self.number().map(Revision::new)
    }

    fn bytes(&mut self) -> Result<&'a [u8], Malformed> {
        let length = usize::try_from(self.number()?).map_err(|_| "a length too large")?;
        if length > self.rest.len() {
            return Err("it ends early");
        }
        let (bytes, rest) = self.rest.split_at(length);
        self.rest = rest;
        Ok(bytes)
    }

    /// A record in full.
    pub fn record(&mut self) -> Result<Record, Malformed> {
        let key = Key::from(self.bytes()?);
        self.stored(key)
    }

    /// A record without its key.
    pub fn stored(&mut self, key: Key) -> Result<Record, Malformed> {
        let (created, modified) = (self.revision()?, self.revision()?);
        Ok(Record::new(key, Bytes::copy_from_slice(self.bytes()?), created, modified))
    }

    /// Bytes that were not read yet.
    pub fn left(&self) -> usize {
        self.rest.len()
    }

    /// A transaction, which has this revision; `known` moves on with it.
    pub fn transaction(&mut self, revision: Revision, known: &mut Known) -> Result<Transaction, Malformed> {
        let time = time(self.number()?)?;
        let cause = Bytes::copy_from_slice(self.bytes()?);
        let count = self.number()?;
        if count > self.rest.len() as u64 {
            return Err("it ends early");
        }
        let mut changes = Vec::with_capacity(count as usize);
        for _ in 0..count {
            changes.push(self.change(revision, known)?);
        }
        Ok(Transaction { revision, time, cause, changes })
    }

    fn change(&mut self, revision: Revision, known: &mut Known) -> Result<Change, Malformed> {
        let tag = self.byte()?;
        let key = Key::from(self.bytes()?);
        let value = match tag & 3 {
            0 => None,
            PUT => Some(Bytes::copy_from_slice(self.bytes()?)),
            _ => return Err("an unknown kind of change"),
        };
        let previous = match tag & !3 {
            0 => None,
            PREVIOUS_HERE => Some(known.get(&key).cloned().ok_or("a change of a record never named")?),
            PREVIOUS_INLINE => Some(Arc::new(self.stored(key.clone())?)),
            _ => return Err("an unknown kind of change"),
        };
        let record = value.map(|value| {
            let created = previous.as_ref().map_or(revision, |previous| previous.created);
            Arc::new(Record::new(key.clone(), value, created, revision))
        });
        match &record {
            Some(record) => known.insert(key.clone(), record.clone()),
            None => known.remove(&key),
        };
        Ok(Change { key, record, previous })
    }
}

/// A record that bytes name, for messages about damage: its key and revision, and where in the bytes it ends.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Part {
    /// The key.
    pub key: Key,
    /// The revision at which it was stored or deleted.
    pub revision: Revision,
    /// Offset after it.
    pub end: usize,
}

/// The changes that a group of so many transactions names, as far as it can be read, and whether that is all of it.
pub fn parts_of_group(payload: &[u8], first: Revision, count: u32) -> (Vec<Part>, bool) {
    let (mut decoder, mut parts, mut revision) = (Decoder::new(payload), Vec::new(), first);
    let mut read = |decoder: &mut Decoder<'_>| -> Result<(), Malformed> {
        for _ in 0..count {
            time(decoder.number()?)?;
            decoder.bytes()?;
            for _ in 0..decoder.number()? {
                let tag = decoder.byte()?;
                let key = Key::from(decoder.bytes()?);
                if tag & 3 == PUT {
                    decoder.bytes()?;
                }
                if tag & !3 == PREVIOUS_INLINE {
                    decoder.stored(key.clone())?;
                }
                parts.push(Part { key, revision, end: payload.len() - decoder.left() });
            }
            revision = revision.next();
        }
        Ok(())
    };
    let is_whole = read(&mut decoder).is_ok() && decoder.is_done();
    (parts, is_whole)
}

/// The records that a part of a base names, as far as it can be read, and whether that is all of it.
pub fn parts_of_base(payload: &[u8], count: u32) -> (Vec<Part>, bool) {
    let (mut decoder, mut parts) = (Decoder::new(payload), Vec::new());
    for _ in 0..count {
        let Ok(record) = decoder.record() else { return (parts, false) };
        let end = payload.len() - decoder.left();
        parts.push(Part { key: record.key, revision: record.modified, end });
    }
    (parts, decoder.is_done())
}
