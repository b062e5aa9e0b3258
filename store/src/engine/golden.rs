//! Golden bytes: what is on disk today must be read by every later version. A change here needs a new
//! format version, not new golden bytes.

use std::fmt::Write;
use std::sync::{Arc, Mutex};
use std::time::{Duration, UNIX_EPOCH};
use std::{io, slice};

use crate::engine::codec::{Decoder, Known, put_transaction};
use crate::engine::disk::DiskFile;
use crate::engine::frame::{self, HEADER_BYTES, Kind};
use crate::engine::segment::{Segment, SegmentReader, Title, opening};
use crate::engine::{checkpoint, directory};
use crate::record::Record;
use crate::revision::Revision;
use crate::state::State;
use crate::txn::{Change, Transaction};

fn hex(bytes: &[u8]) -> String {
    bytes.iter().fold(String::new(), |mut out, byte| {
        let _ = write!(out, "{byte:02x}");
        out
    })
}

fn unhex(text: &str) -> Vec<u8> {
    text.as_bytes()
        .chunks(2)
        .map(|two| u8::from_str_radix(str::from_utf8(two).unwrap(), 16).unwrap())
        .collect()
}

fn record(key: &str, value: &str, created: u64, modified: u64) -> Arc<Record> {
    let (created, modified) = (Revision::new(created), Revision::new(modified));
    Arc::new(Record::new(key.into(), value.to_owned().into(), created, modified))
}

/// The state at revision 200: `a` and `b`.
fn state() -> State {
    let mut state = State::empty();
    state.insert(record("a", "one", 5, 200));
    state.insert(record("b", "two", 6, 6));
    state.revision = Revision::new(200);
    state.time = UNIX_EPOCH + Duration::from_micros(1_000_000);
    state
}

/// Revision 201: `a` updated, `b` deleted, `c` created.
fn transaction() -> Transaction {
    let change = |key: &str, record: Option<Arc<Record>>, previous: Option<Arc<Record>>| Change {
        key: key.into(),
        record,
        previous,
    };
    Transaction {
        revision: Revision::new(201),
        time: UNIX_EPOCH + Duration::from_micros(1_000_001),
        cause: "why".into(),
        changes: vec![
            change("a", Some(record("a", "ONE", 5, 201)), Some(record("a", "one", 5, 200))),
            change("b", None, Some(record("b", "two", 6, 6))),
            change("c", Some(record("c", "new", 201, 201)), None),
        ],
    }
}

const HERE: &str = "c1843d0377687903050161034f4e45040162010163036e6577";
const INLINE: &str = "c1843d0377687903090161034f4e4505c801036f6e6508016206060374776f010163036e6577";
const OPENING: &str = "535452460101000006000000e2b2827fc90000000000000001000000000000009601c0843d03 535452460201000011000000be86e75cc8000000000000000200000000000000016105c801036f6e65016206060374776f";
const GROUP: &str = "53545246030100001900000009d213c9c9000000000000000100000000000000c1843d0377687903050161034f4e45040162010163036e6577";
const ENTRY: &str = "6b61 01e5b4dfda05c801036f6e65";
const CLAIM: &str = "6d 018f00264ac800000000000000";

#[test]
fn a_transaction_with_its_previous_records_in_the_segment() {
    let mut out = Vec::new();
    put_transaction(&mut out, &transaction(), |_| true);
    assert_eq!(hex(&out), HERE);
    let mut known: Known = state().records.iter().map(|(key, r)| (key.clone(), r.clone())).collect();
    let read = Decoder::new(&unhex(HERE)).transaction(Revision::new(201), &mut known).unwrap();
    assert_eq!(read, transaction());
    assert!(known.contains_key(&b"c"[..]) && !known.contains_key(&b"b"[..]));
}

#[test]
fn a_transaction_with_its_previous_records_written_out() {
    let mut out = Vec::new();
    put_transaction(&mut out, &transaction(), |_| false);
    assert_eq!(hex(&out), INLINE);
    let read = Decoder::new(&unhex(INLINE)).transaction(Revision::new(201), &mut Known::new()).unwrap();
    assert_eq!(read, transaction());
    for length in 0..out.len() {
        let cut = Decoder::new(&out[..length]).transaction(Revision::new(201), &mut Known::new());
        assert!(cut.is_err(), "cut to {length}");
    }
}

struct Bytes(Mutex<Vec<u8>>);

impl DiskFile for Bytes {
    fn length(&self) -> u64 {
        self.0.lock().unwrap().len() as u64
    }
    fn read_at(&self, buffer: &mut [u8], offset: u64) -> io::Result<()> {
        let start = offset as usize;
        buffer.copy_from_slice(&self.0.lock().unwrap()[start..start + buffer.len()]);
        Ok(())
    }
    fn write_at(&self, _bytes: &[u8], _offset: u64) -> io::Result<()> {
        Err(io::ErrorKind::Unsupported.into())
    }
    fn sync(&self) -> io::Result<()> {
        Err(io::ErrorKind::Unsupported.into())
    }
}

/// Frame bytes without the zeros that fill up the sector.
fn unpadded(frame: &[u8]) -> &[u8] {
    let header = frame::Header::read(frame).unwrap();
    let end = HEADER_BYTES + header.length as usize;
    assert!(frame[end..header.span() as usize].iter().all(|byte| *byte == 0));
    &frame[..end]
}

fn padded(text: &str) -> Vec<u8> {
    let mut bytes = unhex(text);
    bytes.resize(bytes.len().next_multiple_of(512), 0);
    bytes
}

#[test]
fn a_segment_with_a_base_and_a_group() {
    let title = Title {
        number: 3,
        first: Revision::new(201),
        floor: Revision::new(150),
        time: state().time,
        base: Some(2),
    };
    let bytes = opening(&title, &state());
    assert_eq!(bytes.len(), 1024);
    assert_eq!(format!("{} {}", hex(unpadded(&bytes)), hex(unpadded(&bytes[512..]))), OPENING);
    let mut group = Vec::new();
    let start = frame::begin(&mut group);
    put_transaction(&mut group, &transaction(), |_| true);
    frame::finish(&mut group, start, Kind::Group, (3, 1024), 201, 1);
    assert_eq!(hex(unpadded(&group)), GROUP);

    let file: Vec<u8> = OPENING.split(' ').chain([GROUP]).flat_map(padded).collect();
    let segment = Segment::open(3, Arc::new(Bytes(Mutex::new(file)))).unwrap();
    assert_eq!(segment.title, title);
    segment.set_last(Revision::new(201));
    let mut reader = SegmentReader::new(Arc::new(segment)).unwrap();
    assert_eq!(reader.known().len(), 2);
    assert_eq!(reader.next().unwrap().as_deref(), Some(&transaction()));
    assert_eq!(reader.next().unwrap(), None);
}

#[test]
fn checkpoint_values_and_the_format() {
    let record = record("a", "one", 5, 200);
    let (key, value) = checkpoint::entry(&record.key, Some(&record));
    assert_eq!(format!("{} {}", hex(&key), hex(&value.unwrap())), ENTRY);
    let (key, value) = checkpoint::claim(Revision::new(200));
    assert_eq!(format!("{} {}", hex(&key), hex(&value.unwrap())), CLAIM);
    assert_eq!(checkpoint::entry(&record.key, None), (b"ka".to_vec(), None));
    assert_eq!(directory::FORMAT, 1);
    assert_eq!(slice::from_ref(&frame::FRAME_VERSION), [1]);
}
