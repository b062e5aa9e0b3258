//! Segment: one file of the log, and the reader that gives its transactions back.
//!
//! The first frame says what the segment is; then, if the state was small, come base frames with all of
//! its records; then groups. A segment is read from its start: with the base, and with values written
//! out that an earlier segment held, it needs no other to tell what each change replaced.
//! Knows nothing of which segments there are.

use std::collections::VecDeque;
use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::SystemTime;

use crate::engine::codec::{self, Decoder, Known, Malformed};
use crate::engine::damage::{self, Expected, Flipped};
use crate::engine::disk::DiskFile;
use crate::engine::frame::{self, ALIGN, HEADER_BYTES, Header, Kind};
use crate::error::EngineError;
use crate::record::Record;
use crate::revision::Revision;
use crate::state::State;
use crate::txn::Transaction;

/// Bytes of base records put in one frame, counted before the last of them.
const BASE_FRAME_BYTES: usize = 256 << 10;
/// Bytes looked at in one read when searching for frames after a bad one.
const SEARCH_BYTES: u64 = 1 << 20;
/// Bytes read ahead with a frame's header: small frames take one read.
const READ_AHEAD: u64 = 16 << 10;

/// What a segment says of itself in its first frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Title {
    /// Number of the segment; each follows the one before.
    pub number: u64,
    /// Revision of its first transaction.
    pub first: Revision,
    /// Oldest revision that was readable when it was begun.
    pub floor: Revision,
    /// Time of the transaction before `first`.
    pub time: SystemTime,
    /// How many records its base has; `None` if it has no base.
    pub base: Option<u64>,
}

/// One file of the log.
pub struct Segment {
    /// What it says of itself.
    pub title: Title,
    /// The file's name.
    pub name: String,
    /// The file.
    pub file: Arc<dyn DiskFile>,
    end: AtomicU64,
    last: AtomicU64,
}

/// The name of the file of segment `number`.
pub fn file_name(number: u64) -> String {
    format!("{number:016x}.log")
}

/// The segment number in a file name, if it is one.
pub fn number_of(name: &str) -> Option<u64> {
    let digits = name.strip_suffix(".log").filter(|digits| digits.len() == 16)?;
    u64::from_str_radix(digits, 16).ok()
}

/// An engine error from a failed file operation. A sync that finds the disk full is no harmless
/// `NoSpace`: what is durable is unknown after it.
pub fn io_error(action: &'static str, file: &str, error: io::Error) -> EngineError {
    match error.kind() {
        io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded if action != "sync" => {
            EngineError::NoSpace { at: file.to_owned(), needed: 0, missing: None }
        }
        _ => EngineError::Io { action, file: file.to_owned(), source: Arc::new(error) },
    }
}

/// The bytes that begin a segment: its title, and the records of `state` if it gets a base.
pub fn opening(title: &Title, state: &State) -> Vec<u8> {
    let mut out = Vec::new();
    let start = frame::begin(&mut out);
    codec::put_number(&mut out, title.floor.get());
    codec::put_number(&mut out, codec::micros(title.time));
    codec::put_number(&mut out, title.base.map_or(0, |records| records + 1));
    frame::finish(&mut out, start, Kind::Segment, (title.number, 0), title.first.get(), 1);
    if title.base.is_none() {
        return out;
    }
    let mut records = state.records.values().peekable();
    while records.peek().is_some() {
        let start = frame::begin(&mut out);
        let mut count = 0;
        while out.len() - start < BASE_FRAME_BYTES {
            let Some(record) = records.next() else { break };
            codec::put_record(&mut out, record);
            count += 1;
        }
        let place = (title.number, start as u64);
        frame::finish(&mut out, start, Kind::Base, place, state.revision.get(), count);
    }
    out
}

impl Segment {
    /// A segment just begun, with an opening of so many bytes.
    pub fn begun(title: Title, file: Arc<dyn DiskFile>, opening: u64) -> Self {
        let last = title.first.get().saturating_sub(1);
        let (end, last) = (AtomicU64::new(opening), AtomicU64::new(last));
        Segment { title, name: file_name(title.number), file, end, last }
    }

    /// Reads the title of an existing segment. Its end is not known yet.
    ///
    /// # Errors
    /// `Corrupt` if it has no valid title: a file gets a segment's name only when it has one.
    pub fn open(number: u64, file: Arc<dyn DiskFile>) -> Result<Self, EngineError> {
        let name = file_name(number);
        let corrupt =
            |what: &str| EngineError::Corrupt { file: name.clone(), offset: 0, what: what.to_owned() };
        if file.length() < ALIGN {
            return Err(corrupt("the segment is too short for a title"));
        }
        let mut bytes = vec![0; ALIGN as usize];
        file.read_at(&mut bytes, 0).map_err(|error| io_error("read", &name, error))?;
        let header = Header::read(&bytes).filter(|header| header.kind == Kind::Segment);
        let header = header.filter(|header| frame::is_intact(header, &bytes, (number, 0)));
        let Some(header) = header else { return Err(corrupt("the segment has no valid title")) };
        let mut decoder = Decoder::new(&bytes[HEADER_BYTES..HEADER_BYTES + header.length as usize]);
        let mut title = || -> Result<Title, Malformed> {
            let (floor, time) = (decoder.revision()?, codec::time(decoder.number()?)?);
            let base = decoder.number()?.checked_sub(1);
            Ok(Title { number, first: Revision::new(header.first), floor, time, base })
        };
        let title = title().map_err(corrupt)?;
        Ok(Segment { title, file, end: AtomicU64::new(0), last: AtomicU64::new(u64::MAX), name })
    }

    /// Revision of its last durable transaction; the one before `first` if it has none.
    pub fn last(&self) -> Revision {
        Revision::new(self.last.load(Ordering::Acquire))
    }

    /// Offset after its last durable frame; 0 if that was not looked for.
    pub fn end(&self) -> u64 {
        self.end.load(Ordering::Acquire)
    }

    /// Moves the end: everything up to it is durable.
    pub fn set_end(&self, end: u64, last: Revision) {
        self.end.store(end, Ordering::Release);
        self.last.store(last.get(), Ordering::Release);
    }

    /// Tells a segment that is followed by another where it ends.
    pub fn set_last(&self, last: Revision) {
        self.last.store(last.get(), Ordering::Release);
    }

    /// Whether a record stored at `modified` is named in this segment.
    pub fn names(&self, record: &Record) -> bool {
        self.title.base.is_some() || record.modified >= self.title.first
    }

    /// A damage report of this segment.
    pub fn corrupt(&self, offset: u64, what: impl Into<String>) -> EngineError {
        EngineError::Corrupt { file: self.name.clone(), offset, what: what.into() }
    }

    /// A damage report of the frame at `offset`, which names what the frame held as well as that can be told.
    pub fn damaged(&self, offset: u64, expected: Expected, what: &str) -> EngineError {
        match self.rest(offset) {
            Ok(bytes) => {
                let told = damage::explain(&bytes, (self.title.number, offset), expected);
                self.corrupt(offset, format!("{what}: {told}"))
            }
            Err(error) => error,
        }
    }

    /// Whether the frame at `offset` is the expected one but for one bit: then it is no write that was torn.
    pub fn flipped(&self, offset: u64, expected: Expected) -> Result<Option<Flipped>, EngineError> {
        let rest = self.file.length().saturating_sub(offset);
        let mut start = vec![0; rest.min(HEADER_BYTES as u64) as usize];
        self.file.read_at(&mut start, offset).map_err(|error| io_error("read", &self.name, error))?;
        if !damage::is_plausible(&start, expected) {
            return Ok(None);
        }
        Ok(damage::flipped(&self.rest(offset)?, (self.title.number, offset), expected))
    }

    fn rest(&self, offset: u64) -> Result<Vec<u8>, EngineError> {
        let mut bytes = vec![0; self.file.length().saturating_sub(offset) as usize];
        self.file.read_at(&mut bytes, offset).map_err(|error| io_error("read", &self.name, error))?;
        Ok(bytes)
    }

    /// The valid frame at `offset`, if there is one: header and payload.
    pub fn frame_at(&self, offset: u64, buffer: &mut Vec<u8>) -> Result<Option<Header>, EngineError> {
        let rest = self.file.length().saturating_sub(offset);
        if rest < ALIGN {
            return Ok(None);
        }
        buffer.resize(rest.min(READ_AHEAD) as usize, 0);
        let read = |buffer: &mut [u8], at| {
            self.file.read_at(buffer, at).map_err(|error| io_error("read", &self.name, error))
        };
        read(buffer, offset)?;
        let Some(header) = Header::read(buffer).filter(|header| header.span() <= rest) else {
            return Ok(None);
        };
        let have = buffer.len();
        if (header.span() as usize) > have {
            buffer.resize(header.span() as usize, 0);
            read(&mut buffer[have..], offset + have as u64)?;
        }
        Ok(frame::is_intact(&header, buffer, (self.title.number, offset)).then_some(header))
    }

    /// Whether any valid frame of this segment begins after `offset`.
    pub fn has_frame_after(&self, offset: u64) -> Result<Option<u64>, EngineError> {
        let (mut buffer, mut frame) = (Vec::new(), Vec::new());
        let mut at = offset + ALIGN;
        while at < self.file.length() {
            buffer.resize((self.file.length() - at).min(SEARCH_BYTES) as usize, 0);
            self.file.read_at(&mut buffer, at).map_err(|error| io_error("read", &self.name, error))?;
            for step in (0..buffer.len()).step_by(ALIGN as usize) {
                let found = Header::read(&buffer[step..]).is_some();
                if found && self.frame_at(at + step as u64, &mut frame)?.is_some() {
                    return Ok(Some(at + step as u64));
                }
            }
            at += buffer.len() as u64;
        }
        Ok(None)
    }
}

/// Reads a segment's transactions in order.
pub struct SegmentReader {
    segment: Arc<Segment>,
    offset: u64,
    next: Revision,
    known: Known,
    ready: VecDeque<Arc<Transaction>>,
    buffer: Vec<u8>,
}

impl SegmentReader {
    /// A reader that has read the base, if there is one.
    ///
    /// # Errors
    /// `Corrupt` or `Io`.
    pub fn new(segment: Arc<Segment>) -> Result<Self, EngineError> {
        let mut reader = SegmentReader {
            offset: ALIGN,
            next: segment.title.first,
            known: Known::new(),
            ready: VecDeque::new(),
            buffer: Vec::new(),
            segment,
        };
        while (reader.known.len() as u64) < reader.segment.title.base.unwrap_or(0) {
            reader.read_base()?;
        }
        Ok(reader)
    }

    /// The segment that is read.
    pub fn segment(&self) -> &Arc<Segment> {
        &self.segment
    }

    /// Offset of the next frame.
    pub fn offset(&self) -> u64 {
        self.offset
    }

    /// The records known so far: before the first transaction those of the base.
    pub fn known(&self) -> &Known {
        &self.known
    }

    fn read_base(&mut self) -> Result<(), EngineError> {
        let header = self.segment.frame_at(self.offset, &mut self.buffer)?;
        let Some(header) = header.filter(|header| header.kind == Kind::Base) else {
            let first = Revision::new(self.segment.title.first.get().saturating_sub(1));
            let expected = Expected { kind: Kind::Base, first: Some(first) };
            return Err(self.segment.damaged(
                self.offset,
                expected,
                "a part of the segment's base is not valid",
            ));
        };
        let mut decoder = Decoder::new(&self.buffer[HEADER_BYTES..HEADER_BYTES + header.length as usize]);
        for _ in 0..header.count {
            let record = decoder.record().map_err(|what| self.segment.corrupt(self.offset, what))?;
            self.known.insert(record.key.clone(), Arc::new(record));
        }
        self.offset += header.span();
        Ok(())
    }

    /// The next transaction up to the segment's end; `None` at that.
    ///
    /// # Errors
    /// `Corrupt` if what must be there is not valid, `Io` if it cannot be read.
    pub fn next(&mut self) -> Result<Option<Arc<Transaction>>, EngineError> {
        while self.ready.is_empty() {
            if self.next > self.segment.last() {
                return Ok(None);
            }
            if !self.read_group()? {
                return Err(self.damaged("a group of transactions is not valid"));
            }
        }
        Ok(self.ready.pop_front())
    }

    /// What the next frame must be.
    pub fn expected(&self) -> Expected {
        Expected { kind: Kind::Group, first: Some(self.next) }
    }

    /// A damage report of the next frame.
    pub fn damaged(&self, what: &str) -> EngineError {
        self.segment.damaged(self.offset, self.expected(), what)
    }

    /// The next transaction as far as valid frames go; `None` at the first place without one.
    ///
    /// # Errors
    /// `Corrupt` if a valid frame holds nonsense, `Io` if it cannot be read.
    pub fn next_unbounded(&mut self) -> Result<Option<Arc<Transaction>>, EngineError> {
        if self.ready.is_empty() && !self.read_group()? {
            return Ok(None);
        }
        Ok(self.ready.pop_front())
    }

    fn read_group(&mut self) -> Result<bool, EngineError> {
        let Some(header) = self.segment.frame_at(self.offset, &mut self.buffer)? else {
            return Ok(false);
        };
        if header.kind != Kind::Group || header.first != self.next.get() || header.count == 0 {
            let what = format!("expected the group of revision {}, found {header:?}", self.next);
            return Err(self.segment.corrupt(self.offset, what));
        }
        let mut decoder = Decoder::new(&self.buffer[HEADER_BYTES..HEADER_BYTES + header.length as usize]);
        for _ in 0..header.count {
            let transaction = decoder.transaction(self.next, &mut self.known);
            let transaction = transaction.map_err(|what| self.segment.corrupt(self.offset, what))?;
            self.ready.push_back(Arc::new(transaction));
            self.next = self.next.next();
        }
        if !decoder.is_done() {
            return Err(self.segment.corrupt(self.offset, "bytes left over after a group"));
        }
        self.offset += header.span();
        Ok(true)
    }
}
