//! Damage: what happened to a frame whose checksum is wrong, as well as its bytes can tell: which bit is flipped, and of
//! which key and revision. Nothing here is repaired; it is for messages, and to tell decay from a write that was torn.
//! Knows nothing of files.

use std::fmt;

use crate::engine::codec::{Part, parts_of_base, parts_of_group};
use crate::engine::flip::{self, Flip};
use crate::engine::frame::{self, HEADER_BYTES, Header, Kind};
use crate::revision::Revision;

/// Bits before the checksum's place in a header: those that a checksum alone cannot find, as they say how long a frame is.
const LEADING_BITS: usize = 12 * 8;
/// Bytes of a header's checksum.
const CHECKSUM_BYTES: usize = 4;
/// Most records named in one message.
const MAX_NAMED: usize = 3;

/// A frame that is whole but for one bit.
#[derive(Debug, PartialEq, Eq)]
pub struct Flipped {
    /// Which bit, from the frame's start, the lowest of each byte first.
    bit: usize,
    /// The record that the bit is of, if it is of one.
    part: Option<Part>,
    /// All records of the frame.
    parts: Vec<Part>,
}

impl fmt::Display for Flipped {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "bit {} of byte {} of it is flipped, ", self.bit % 8, self.bit / 8)?;
        match &self.part {
            Some(part) => write!(f, "in key {} at revision {}", part.key, part.revision),
            None => write!(f, "in its header; it holds {}", Named(&self.parts)),
        }
    }
}

/// The first few of some records.
struct Named<'a>(&'a [Part]);

impl fmt::Display for Named<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.0.is_empty() {
            return f.write_str("no record");
        }
        for (at, part) in self.0.iter().take(MAX_NAMED).enumerate() {
            let comma = if at > 0 { ", " } else { "" };
            write!(f, "{comma}key {} at revision {}", part.key, part.revision)?;
        }
        let more = self.0.len().saturating_sub(MAX_NAMED);
        if more > 0 { write!(f, " and {more} more") } else { Ok(()) }
    }
}

/// What a frame must be to be meant.
#[derive(Clone, Copy, Debug)]
pub struct Expected {
    /// Its kind.
    pub kind: Kind,
    /// The revision in its header; `None` if that is not known.
    pub first: Option<Revision>,
}

impl Expected {
    fn is_met(&self, header: &Header) -> bool {
        header.kind == self.kind && self.first.is_none_or(|first| header.first == first.get())
    }

    /// Whether a header could be the expected one but for one bit of its revision or kind.
    fn is_near(&self, header: &Header) -> bool {
        self.first.is_none_or(|first| (header.first ^ first.get()).count_ones() <= 1)
    }
}

/// Whether the header in these bytes could be the expected one with one bit flipped: worth a closer look.
pub fn is_plausible(start: &[u8], expected: Expected) -> bool {
    Header::read(start).is_some_and(|header| expected.is_near(&header))
        || leading_flips(start).any(|(_, header)| expected.is_met(&header))
}

/// Headers that would be readable with one bit of their first bytes the other way.
fn leading_flips(start: &[u8]) -> impl Iterator<Item = (usize, Header)> + '_ {
    let header = start.get(..HEADER_BYTES).unwrap_or_default();
    (0..if header.is_empty() { 0 } else { LEADING_BITS }).filter_map(move |bit| {
        let mut flipped = header.to_vec();
        flipped[bit / 8] ^= 1 << (bit % 8);
        Header::read(&flipped).map(|header| (bit, header))
    })
}

/// The frame at the front of `bytes`, written at `place`, if it is the expected one but for one bit.
pub fn flipped(bytes: &[u8], place: (u64, u64), expected: Expected) -> Option<Flipped> {
    let by_checksum = Header::read(bytes).filter(|header| expected.is_near(header)).and_then(|header| {
        let whole = bytes.get(..HEADER_BYTES + header.length as usize)?;
        let (stored, found) = (header.checksum(), frame::checksum(whole, place));
        match flip::find(whole.len() - CHECKSUM_BYTES, stored, found)? {
            Flip::Bit(bit) if bit < LEADING_BITS => Some(bit),
            Flip::Bit(bit) => Some(bit + CHECKSUM_BYTES * 8),
            Flip::Checksum => Some(LEADING_BITS + (stored ^ found).trailing_zeros() as usize),
        }
    });
    let by_trial = || leading_flips(bytes).find(|(_, header)| expected.is_met(header)).map(|(bit, _)| bit);
    let bit = by_checksum.or_else(by_trial)?;
    let mut mended = bytes.to_vec();
    mended[bit / 8] ^= 1 << (bit % 8);
    let header = Header::read(&mended).filter(|header| expected.is_met(header))?;
    if !frame::is_intact(&header, &mended, place) {
        return None;
    }
    let (parts, is_whole) = parts_of(&header, &mended);
    let at = (bit / 8).checked_sub(HEADER_BYTES);
    let part = at.and_then(|at| parts.iter().find(|part| at < part.end).cloned());
    is_whole.then_some(Flipped { bit, part, parts })
}

fn parts_of(header: &Header, bytes: &[u8]) -> (Vec<Part>, bool) {
    let payload = bytes.get(HEADER_BYTES..).unwrap_or_default();
    let payload = &payload[..payload.len().min(header.length as usize)];
    match header.kind {
        Kind::Group => parts_of_group(payload, Revision::new(header.first), header.count),
        Kind::Base => parts_of_base(payload, header.count),
        Kind::Segment | Kind::Checkpoint => (Vec::new(), true),
    }
}

/// What can be said of a damaged frame.
pub fn explain(bytes: &[u8], place: (u64, u64), expected: Expected) -> String {
    if let Some(flipped) = flipped(bytes, place, expected) {
        return flipped.to_string();
    }
    let parts = Header::read(bytes).filter(|header| expected.is_met(header));
    match parts.map(|header| parts_of(&header, bytes).0) {
        Some(parts) if !parts.is_empty() => {
            format!("more than one bit of it is wrong; it held {}", Named(&parts))
        }
        _ => match expected.first {
            Some(first) => format!("it held revision {first}, and nothing more can be told"),
            None => "nothing more can be told".to_owned(),
        },
    }
}
