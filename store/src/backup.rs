//! Backup: a whole store at one revision as a stream of bytes, written and read with bounded memory.
//!
//! ```text
//! "STRATABK" | version u32 | crc32 of these 12 bytes u32
//! pieces:  kind u8 | payload length u32 | crc32 u32 | payload
//!   1 header   revision, time of the backup in microseconds since 1970
//!   2 record   as in the log: key, created, modified, value
//!   3 end      number of records, bytes of their keys and values
//! ```
//! Little endian; numbers in payloads are LEB128. Records come in key order. The checksum of a piece covers its number in
//! the stream and the checksum of the header, so that no piece of another place or another backup passes for it. A
//! backup without its end is no backup. Knows nothing of where the bytes go.

use std::io::{self, Read};
use std::time::SystemTime;

use crate::engine::codec::{self, Decoder};
use crate::engine::flip::{self, Flip};
use crate::key::{Key, KeyRange, MAX_KEY_BYTES};
use crate::record::Record;
use crate::revision::Revision;
use crate::snapshot::Snapshot;
use crate::txn::MAX_TXN_BYTES;

/// Newest version of backups that this program reads, and the one that it writes.
pub const VERSION: u32 = 1;
/// Bytes of one chunk of a backup, counted before its last record.
pub const CHUNK_BYTES: usize = 256 << 10;

const MAGIC: [u8; 8] = *b"STRATABK";
const OPENING_BYTES: usize = 16;
const PIECE_BYTES: usize = 9;
/// Longest payload that a piece may claim to have.
const MAX_PAYLOAD_BYTES: usize = MAX_KEY_BYTES + MAX_TXN_BYTES + 64;

const HEADER: u8 = 1;
const RECORD: u8 = 2;
const END: u8 = 3;

/// Why bytes are no backup to restore from.
#[derive(Debug, thiserror::Error)]
pub enum BackupError {
    /// It begins like no backup.
    #[error("this is no backup of a store")]
    NoBackup,
    /// A newer version wrote it.
    #[error("the backup has version {found}, this program reads versions up to {supported}")]
    Newer {
        /// Its version.
        found: u32,
        /// Newest version that this program reads.
        supported: u32,
    },
    /// It ends before its end.
    #[error(
        "the backup is cut off: it ends after {bytes} bytes and {records} records, without its end marker"
    )]
    Cut {
        /// Bytes that are there.
        bytes: u64,
        /// Whole records that are there.
        records: u64,
    },
    /// Its bytes are not what was written.
    #[error("the backup is damaged at byte {offset}, {what}")]
    Damaged {
        /// Where the damaged piece begins.
        offset: u64,
        /// What is wrong, with the record's key and revision where they can be told.
        what: String,
    },
    /// It cannot be read.
    #[error("the backup cannot be read")]
    Read(#[source] io::Error),
}

/// What a backup says of itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Summary {
    /// The revision that it shows.
    pub revision: Revision,
    /// When it was taken, by the clock of who took it.
    pub taken: SystemTime,
    /// Records in it.
    pub records: u64,
    /// Bytes of their keys and values.
    pub bytes: u64,
}

/// Writes pieces in order.
struct Pieces {
    number: u64,
    seed: u32,
}

impl Pieces {
    fn put(&mut self, out: &mut Vec<u8>, kind: u8, payload: &[u8]) {
        let length = (payload.len() as u32).to_le_bytes();
        let crc = self.checksum(kind, length, payload);
        out.push(kind);
        out.extend_from_slice(&length);
        out.extend_from_slice(&crc.to_le_bytes());
        out.extend_from_slice(payload);
        self.passed(crc);
    }

    fn checksum(&self, kind: u8, length: [u8; 4], payload: &[u8]) -> u32 {
        let mut hasher = crc32fast::Hasher::new();
        hasher.update(&self.seed.to_le_bytes());
        hasher.update(&self.number.to_le_bytes());
        hasher.update(&[kind]);
        hasher.update(&length);
        hasher.update(payload);
        hasher.finalize()
    }

    fn passed(&mut self, crc: u32) {
        if self.number == 0 {
            self.seed = crc;
        }
        self.number += 1;
    }
}

/// The bytes of a backup of a snapshot, in chunks of about [`CHUNK_BYTES`]. `taken` is the time now.
pub fn chunks(snapshot: &Snapshot, taken: SystemTime) -> impl Iterator<Item = Vec<u8>> + '_ {
    let mut pieces = Pieces { number: 0, seed: 0 };
    let range = KeyRange::all();
    let mut records = snapshot.range(&range, None);
    let (mut count, mut size, mut is_done) = (0u64, 0u64, false);
    std::iter::from_fn(move || {
        if is_done {
            return None;
        }
        let (mut chunk, mut payload) = (Vec::new(), Vec::new());
        if pieces.number == 0 {
            chunk.extend_from_slice(&MAGIC);
            chunk.extend_from_slice(&VERSION.to_le_bytes());
            chunk.extend_from_slice(&crc32fast::hash(&chunk).to_le_bytes());
            codec::put_number(&mut payload, snapshot.revision().get());
            codec::put_number(&mut payload, codec::micros(taken));
            pieces.put(&mut chunk, HEADER, &payload);
        }
        while chunk.len() < CHUNK_BYTES {
            payload.clear();
            let Some(record) = records.next() else {
                codec::put_number(&mut payload, count);
                codec::put_number(&mut payload, size);
                pieces.put(&mut chunk, END, &payload);
                is_done = true;
                break;
            };
            codec::put_record(&mut payload, record);
            pieces.put(&mut chunk, RECORD, &payload);
            count += 1;
            size += record.size() as u64;
        }
        Some(chunk)
    })
}

/// Reads a backup record by record, checking each.
pub struct BackupReader<R> {
    from: R,
    pieces: Pieces,
    summary: Summary,
    offset: u64,
    last: Option<Key>,
    is_done: bool,
}

impl<R: Read> BackupReader<R> {
    /// Reads what a backup says of itself first.
    ///
    /// # Errors
    /// See [`BackupError`].
    pub fn open(mut from: R) -> Result<Self, BackupError> {
        let mut opening = [0; OPENING_BYTES];
        let got = fill(&mut from, &mut opening)?;
        if got < OPENING_BYTES {
            let is_start = got > 0 && opening[..got.min(8)] == MAGIC[..got.min(8)];
            let cut = BackupError::Cut { bytes: got as u64, records: 0 };
            return Err(if is_start { cut } else { BackupError::NoBackup });
        }
        if opening[..8] != MAGIC {
            return Err(BackupError::NoBackup);
        }
        let word =
            |at: usize| u32::from_le_bytes([opening[at], opening[at + 1], opening[at + 2], opening[at + 3]]);
        if word(12) != crc32fast::hash(&opening[..12]) {
            return Err(BackupError::Damaged { offset: 0, what: "in its version".to_owned() });
        }
        if word(8) > VERSION {
            return Err(BackupError::Newer { found: word(8), supported: VERSION });
        }
        let summary =
            Summary { revision: Revision::ZERO, taken: SystemTime::UNIX_EPOCH, records: 0, bytes: 0 };
        let pieces = Pieces { number: 0, seed: 0 };
        let offset = OPENING_BYTES as u64;
        let mut reader = BackupReader { from, pieces, summary, offset, last: None, is_done: false };
        let (kind, payload) = reader.piece()?;
        let mut decoder = Decoder::new(&payload);
        match (kind, decoder.revision(), decoder.number().and_then(codec::time)) {
            (HEADER, Ok(revision), Ok(taken)) => {
                (reader.summary.revision, reader.summary.taken) = (revision, taken);
                Ok(reader)
            }
            _ => Err(reader.nonsense("in its header")),
        }
    }

    /// What is known of it so far; records and bytes are those read.
    pub fn summary(&self) -> Summary {
        self.summary
    }

    /// The next record; `None` at the end, where it was checked that nothing is missing and nothing follows.
    ///
    /// # Errors
    /// See [`BackupError`]. Nothing more is to be read after one.
    pub fn read(&mut self) -> Result<Option<Record>, BackupError> {
        if self.is_done {
            return Ok(None);
        }
        let (kind, payload) = self.piece()?;
        match kind {
            RECORD => self.record(&payload).map(Some),
            END => self.end(&payload).map(|()| None),
            _ => Err(self.nonsense(&format!("a piece of the unknown kind {kind}"))),
        }
    }

    fn record(&mut self, payload: &[u8]) -> Result<Record, BackupError> {
        let mut decoder = Decoder::new(payload);
        let record = decoder.record().map_err(|what| self.nonsense(what))?;
        if !decoder.is_done() {
            return Err(self.nonsense(&format!("bytes left over after key {}", record.key)));
        }
        if self.last.as_ref().is_some_and(|last| *last >= record.key) {
            return Err(self.nonsense(&format!("key {} is out of order", record.key)));
        }
        if record.created > record.modified || record.modified > self.summary.revision {
            return Err(self.nonsense(&format!("key {} has impossible revisions", record.key)));
        }
        self.last = Some(record.key.clone());
        self.summary.records += 1;
        self.summary.bytes += record.size() as u64;
        Ok(record)
    }

    fn end(&mut self, payload: &[u8]) -> Result<(), BackupError> {
        let mut decoder = Decoder::new(payload);
        let (records, bytes) = (decoder.number(), decoder.number());
        if records != Ok(self.summary.records) || bytes != Ok(self.summary.bytes) {
            return Err(self.nonsense("its end counts other records than are there"));
        }
        let mut more = [0];
        if fill(&mut self.from, &mut more)? > 0 {
            return Err(self.nonsense("something follows its end"));
        }
        self.is_done = true;
        Ok(())
    }

    /// The next piece, whose checksum is right.
    fn piece(&mut self) -> Result<(u8, Vec<u8>), BackupError> {
        let mut head = [0; PIECE_BYTES];
        self.whole(&mut head, 0)?;
        let [kind, a, b, c, d, rest @ ..] = head;
        let (length, stored) = ([a, b, c, d], u32::from_le_bytes(rest));
        let size = u32::from_le_bytes(length) as usize;
        if size > MAX_PAYLOAD_BYTES {
            return Err(self.damaged("a length that no record has", &[], None));
        }
        let mut payload = vec![0; size];
        self.whole(&mut payload, PIECE_BYTES)?;
        let found = self.pieces.checksum(kind, length, &payload);
        if found != stored {
            let flip = flip::find(payload.len(), stored, found);
            return Err(self.damaged("the checksum is wrong", &payload, flip));
        }
        self.pieces.passed(stored);
        self.offset += (PIECE_BYTES + size) as u64;
        Ok((kind, payload))
    }

    fn whole(&mut self, buffer: &mut [u8], before: usize) -> Result<(), BackupError> {
        let got = fill(&mut self.from, buffer)?;
        if got < buffer.len() {
            let bytes = self.offset + (before + got) as u64;
            return Err(BackupError::Cut { bytes, records: self.summary.records });
        }
        Ok(())
    }

    fn nonsense(&self, what: &str) -> BackupError {
        BackupError::Damaged { offset: self.offset, what: what.to_owned() }
    }

    /// A damage report that names the record, as well as that can be told.
    fn damaged(&self, what: &str, payload: &[u8], flip: Option<Flip>) -> BackupError {
        let mut payload = payload.to_vec();
        let bit = match flip {
            Some(Flip::Bit(bit)) => {
                payload[bit / 8] ^= 1 << (bit % 8);
                format!(": bit {} of byte {} is flipped", bit % 8, bit / 8 + PIECE_BYTES)
            }
            Some(Flip::Checksum) => ": a bit of the checksum itself is flipped".to_owned(),
            None => String::new(),
        };
        let record = Decoder::new(&payload).record().ok();
        let place = match (&record, &self.last) {
            (Some(record), _) if flip.is_some() => {
                format!("in key {} at revision {}", record.key, record.modified)
            }
            (_, Some(last)) => format!("in what follows key {last}"),
            (_, None) => "in its first record".to_owned(),
        };
        self.nonsense(&format!("{place}: {what}{bit}"))
    }
}

/// Reads until the buffer is full or nothing comes any more; gives how much came.
fn fill(from: &mut impl Read, buffer: &mut [u8]) -> Result<usize, BackupError> {
    let mut got = 0;
    while got < buffer.len() {
        match from.read(&mut buffer[got..]) {
            Ok(0) => break,
            Ok(read) => got += read,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(BackupError::Read(error)),
        }
    }
    Ok(got)
}

#[cfg(test)]
mod tests;
