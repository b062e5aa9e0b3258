//! Layout: what the engine keeps in etcd, under which keys and in which form, and how etcd's revisions
//! and the store's map to each other. Format version 1; golden bytes in the tests. Pure.
//!
//! ```text
//! PREFIX/format     names the format, and the revision that an import began with; written once
//! PREFIX/importing  there while an import is under way
//! PREFIX/last       written by each transaction, last: who wrote, when, why
//! PREFIX/fence      written to make sure that a transaction of unknown fate does not happen later
//! PREFIX/d/KEY      a record: a header, then the value without the revision spliced in
//! ```
//!
//! etcd tells a revision only once it is written, so the header keeps where its digits go, and every
//! reader puts them there.

use std::time::SystemTime;

use bytes::Bytes;

use crate::engine::codec::{Decoder, Malformed, micros, put_number, time};
use crate::engine::etcd::wire::KeyValue;
use crate::key::{Key, KeyRange};
use crate::record::Record;
use crate::revision::Revision;
use crate::state::stamped;
use crate::txn::Value;

/// Newest format that this program reads, and the one that it writes.
pub const FORMAT: u32 = 1;

const FORMAT_PREFIX: &str = "strata-store etcd ";
const BASE_PREFIX: &str = "base ";
const VERSION: u8 = 1;
const STAMP: u8 = 1;
const CREATED: u8 = 2;
const MODIFIED: u8 = 4;

/// Where the keys of a store are.
#[derive(Clone, Debug)]
pub struct Layout {
    root: Vec<u8>,
    data: Vec<u8>,
}

impl Layout {
    /// A store below this prefix; a slash at its end makes no difference.
    #[must_use]
    pub fn new(prefix: &str) -> Self {
        let root = format!("{}/", prefix.trim_end_matches('/')).into_bytes();
        let data = [&root[..], b"d/"].concat();
        Layout { root, data }
    }

    /// The prefix of everything, for messages.
    #[must_use]
    pub fn name(&self) -> String {
        String::from_utf8_lossy(&self.root).into_owned()
    }

    fn own(&self, name: &str) -> Bytes {
        [&self.root[..], name.as_bytes()].concat().into()
    }

    /// Names the format.
    #[must_use]
    pub fn format(&self) -> Bytes {
        self.own("format")
    }

    /// Is there while an import is under way.
    #[must_use]
    pub fn importing(&self) -> Bytes {
        self.own("importing")
    }

    /// The note of the newest transaction.
    #[must_use]
    pub fn last(&self) -> Bytes {
        self.own("last")
    }

    /// The fence.
    #[must_use]
    pub fn fence(&self) -> Bytes {
        self.own("fence")
    }

    /// Where a record is.
    #[must_use]
    pub fn data(&self, key: &Key) -> Bytes {
        [&self.data[..], key.as_bytes()].concat().into()
    }

    /// The key whose record is there, `None` if it is no record's place.
    #[must_use]
    pub fn key(&self, at: &[u8]) -> Option<Key> {
        at.strip_prefix(&self.data[..]).map(Key::from)
    }

    /// First and last bound of everything.
    #[must_use]
    pub fn all(&self) -> (Bytes, Bytes) {
        span(&self.root)
    }

    /// First and last bound of the records.
    #[must_use]
    pub fn records(&self) -> (Bytes, Bytes) {
        span(&self.data)
    }
}

fn span(prefix: &[u8]) -> (Bytes, Bytes) {
    let range = KeyRange::prefix(prefix);
    // A prefix ends with a slash, so there is a bound.
    (range.start.bytes().clone(), range.end.map_or_else(Bytes::new, |end| end.bytes().clone()))
}

/// How etcd's revisions and the store's map to each other. Usually they are the same; after an import
/// they differ by what makes the store's line go on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Line {
    /// etcd's revision at which the format was written: what is older was imported.
    pub first: i64,
    offset: i64,
}

impl Line {
    /// The line of a store whose format was written at etcd's revision `first`, and was then at `base`.
    #[must_use]
    pub fn new(first: i64, base: Option<Revision>) -> Self {
        let base = base.map_or(first, |base| base.get() as i64);
        Line { first, offset: base - first }
    }

    /// The store's revision.
    #[must_use]
    pub fn revision(&self, etcd: i64) -> Revision {
        Revision::new(u64::try_from(etcd + self.offset).unwrap_or_default())
    }

    /// etcd's revision.
    #[must_use]
    pub fn etcd(&self, revision: Revision) -> i64 {
        i64::try_from(revision.get()).unwrap_or(i64::MAX).saturating_sub(self.offset)
    }
}

/// The bytes that name the format, with the revision that an import began with.
#[must_use]
pub fn put_format(base: Option<Revision>) -> Bytes {
    let base = base.map_or_else(String::new, |base| format!("{BASE_PREFIX}{base}\n"));
    format!("{FORMAT_PREFIX}{FORMAT}\n{base}").into()
}

/// The format's number and the revision that an import began with.
pub fn read_format(bytes: &[u8]) -> Result<(u32, Option<Revision>), Malformed> {
    let text = std::str::from_utf8(bytes).map_err(|_| "it does not name a format")?;
    let mut lines = text.lines();
    let number = lines.next().and_then(|line| line.strip_prefix(FORMAT_PREFIX)?.parse().ok());
    let number = number.ok_or("it does not name a format")?;
    let base = lines.find_map(|line| line.strip_prefix(BASE_PREFIX)?.parse().ok());
    Ok((number, base))
}

/// What each transaction says of itself.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Note {
    /// The open store that wrote it.
    pub writer: u64,
    /// Its number there, which never comes again.
    pub number: u64,
    /// When it was written.
    pub time: SystemTime,
    /// The writer's cause.
    pub cause: Bytes,
}

impl Note {
    /// As bytes.
    #[must_use]
    pub fn put(&self) -> Vec<u8> {
        let mut out = vec![VERSION];
        put_number(&mut out, self.writer);
        put_number(&mut out, self.number);
        put_number(&mut out, micros(self.time));
        out.extend_from_slice(&self.cause);
        out
    }

    /// From bytes.
    pub fn read(bytes: &[u8]) -> Result<Note, Malformed> {
        let mut decoder = Decoder::new(bytes);
        if decoder.byte()? != VERSION {
            return Err("a note of an unknown version");
        }
        let (writer, number, micros) = (decoder.number()?, decoder.number()?, decoder.number()?);
        let cause = Bytes::copy_from_slice(decoder.rest());
        Ok(Note { writer, number, time: time(micros)?, cause })
    }
}

/// A value with its header. `created` is told of a key that came with an import and was not deleted
/// since, `modified` of a record that an import stores.
#[must_use]
pub fn put_value(value: &Value, created: Option<Revision>, modified: Option<Revision>) -> Vec<u8> {
    let flag = |is_there: bool, flag: u8| if is_there { flag } else { 0 };
    let flags = flag(value.stamp.is_some(), STAMP)
        | flag(created.is_some(), CREATED)
        | flag(modified.is_some(), MODIFIED);
    let mut out = Vec::with_capacity(value.bytes.len() + 16);
    out.extend_from_slice(&[VERSION, flags]);
    let numbers = [value.stamp.map(u64::from), created.map(Revision::get), modified.map(Revision::get)];
    numbers.into_iter().flatten().for_each(|number| put_number(&mut out, number));
    out.extend_from_slice(&value.bytes);
    out
}

/// The record that etcd keeps for `key`.
pub fn record(key: Key, kv: &KeyValue, line: &Line) -> Result<Record, Malformed> {
    let mut decoder = Decoder::new(&kv.value);
    if decoder.byte()? != VERSION {
        return Err("a value of an unknown version");
    }
    let flags = decoder.byte()?;
    if flags & !(STAMP | CREATED | MODIFIED) != 0 {
        return Err("a value with unknown flags");
    }
    let mut number = |flag: u8| if flags & flag == 0 { Ok(None) } else { decoder.number().map(Some) };
    let (stamp, created, modified) = (number(STAMP)?, number(CREATED)?, number(MODIFIED)?);
    let stamp = stamp.map(u32::try_from).transpose().map_err(|_| "a stamp too large")?;
    // What the writer told of the past holds only if the key is still the one that was imported.
    let told = |number: Option<u64>, at: i64| number.filter(|_| at < line.first).map(Revision::new);
    let created = told(created, kv.create_revision).unwrap_or_else(|| line.revision(kv.create_revision));
    let modified = told(modified, kv.mod_revision).unwrap_or_else(|| line.revision(kv.mod_revision));
    // Copied, or one record would keep the whole message that it came in.
    let value = Value { bytes: Bytes::copy_from_slice(decoder.rest()), stamp };
    Ok(Record::new(key, stamped(&value, modified), created, modified))
}

#[cfg(test)]
mod tests {
    use std::time::{Duration, UNIX_EPOCH};

    use super::*;

    fn kv(value: Vec<u8>, create_revision: i64, mod_revision: i64) -> KeyValue {
        KeyValue { key: Bytes::new(), create_revision, mod_revision, version: 1, value: value.into() }
    }

    #[test]
    fn the_forms_are_these() {
        let stamped = put_value(&Value::stamped("ab", 1), None, None);
        assert_eq!(stamped, [1, 1, 1, b'a', b'b']);
        let imported = put_value(&Value::plain("ab"), Some(Revision::new(300)), Some(Revision::new(301)));
        assert_eq!(imported, [1, 6, 0xac, 2, 0xad, 2, b'a', b'b']);
        let note =
            Note { writer: 200, number: 3, time: UNIX_EPOCH + Duration::from_micros(5), cause: "why".into() };
        assert_eq!(note.put(), [1, 0xc8, 1, 3, 5, b'w', b'h', b'y']);
        assert_eq!(Note::read(&note.put()), Ok(note));
        assert!(Note::read(&[2, 0, 0, 0]).is_err() && Note::read(&[1, 0]).is_err());
        assert_eq!(put_format(None), "strata-store etcd 1\n");
        assert_eq!(put_format(Some(Revision::new(9))), "strata-store etcd 1\nbase 9\n");
        assert_eq!(read_format(b"strata-store etcd 7\nbase 9\n"), Ok((7, Some(Revision::new(9)))));
        assert!(read_format(b"something else").is_err() && read_format(&[0xff]).is_err());
    }

    #[test]
    fn keys_are_below_the_prefix() {
        let layout = Layout::new("/here/");
        let key = Key::from("a/b");
        assert_eq!(layout.data(&key), "/here/d/a/b");
        assert_eq!(layout.key(&layout.data(&key)), Some(key));
        assert_eq!(layout.key(&layout.last()), None);
        assert_eq!(layout.all(), ("/here/".into(), "/here0".into()));
        assert_eq!(layout.records(), ("/here/d/".into(), "/here/d0".into()));
    }

    #[test]
    fn revisions_are_etcds_or_go_on_after_an_import() {
        let line = Line::new(7, None);
        assert_eq!((line.revision(9), line.etcd(Revision::new(9))), (Revision::new(9), 9));
        for first in [7, 70_000] {
            let line = Line::new(first, Some(Revision::new(500)));
            assert_eq!(line.revision(first), Revision::new(500));
            assert_eq!(line.etcd(line.revision(first + 3)), first + 3);
        }
    }

    #[test]
    fn what_was_told_of_the_past_holds_for_the_imported_key_alone() {
        let line = Line::new(10, Some(Revision::new(500)));
        let read = |value: &Vec<u8>, created, modified| {
            let record = record("k".into(), &kv(value.clone(), created, modified), &line).unwrap();
            (record.created.get(), record.modified.get(), record.value)
        };
        let imported = put_value(&Value::plain("v"), Some(Revision::new(30)), Some(Revision::new(40)));
        assert_eq!(read(&imported, 4, 4), (30, 40, "v".into()));
        let written = put_value(&Value::stamped("v", 1), Some(Revision::new(30)), None);
        assert_eq!(read(&written, 4, 12), (30, 502, "v502".into()));
        assert_eq!(read(&written, 11, 12), (501, 502, "v502".into()));
        assert!(record("k".into(), &kv(vec![9, 0], 1, 1), &line).is_err());
        assert!(record("k".into(), &kv(vec![1, 8], 1, 1), &line).is_err());
    }
}
