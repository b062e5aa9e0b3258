//! Frame: the unit in which the log is written, checked and found again.
//!
//! ```text
//! 0 magic "STRF" | 4 kind | 5 version | 6 zero u16 | 8 payload length u32 | 12 crc32 u32
//! 16 first revision u64 | 24 count u32 | 28 zero u32 | 32 payload | zeros up to a multiple of 512
//! ```
//! Little endian. The checksum covers segment number, offset, header and payload, so a frame is valid
//! only where it was written: what an earlier use of the file left behind never passes for data. A
//! frame owns its sectors, so tearing one never touches its acknowledged neighbour.
//! Knows nothing of what a payload means.

/// Version of the frames that this program writes.
pub const FRAME_VERSION: u8 = 1;
/// Frames begin at multiples of this.
pub const ALIGN: u64 = 512;
/// Bytes before the payload.
pub const HEADER_BYTES: usize = 32;

const MAGIC: [u8; 4] = *b"STRF";

/// What a frame holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// The first frame of a segment: what the segment is.
    Segment = 1,
    /// Records of the state that a segment starts from.
    Base = 2,
    /// Transactions that became durable together.
    Group = 3,
    /// Where the checkpoint stands.
    Checkpoint = 4,
}

/// A frame's header, as read and plausible; only [`is_intact`] says that it is valid.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Header {
    /// What it holds.
    pub kind: Kind,
    /// Bytes of payload.
    pub length: u32,
    /// Revision of its first transaction, or what the kind wants.
    pub first: u64,
    /// Number of things in the payload.
    pub count: u32,
    crc: u32,
}

impl Header {
    /// Bytes that the frame takes up in its file.
    pub fn span(&self) -> u64 {
        span(self.length as usize)
    }

    /// The checksum that it names.
    pub fn checksum(&self) -> u32 {
        self.crc
    }

    /// Reads a header from the first bytes of a frame.
    pub fn read(bytes: &[u8]) -> Option<Header> {
        let bytes: &[u8; HEADER_BYTES] = bytes.get(..HEADER_BYTES)?.try_into().ok()?;
        let word = |at: usize| u32::from_le_bytes([bytes[at], bytes[at + 1], bytes[at + 2], bytes[at + 3]]);
        if bytes[..4] != MAGIC || bytes[5] != FRAME_VERSION {
            return None;
        }
        let kind = match bytes[4] {
            1 => Kind::Segment,
            2 => Kind::Base,
            3 => Kind::Group,
            4 => Kind::Checkpoint,
            _ => return None,
        };
        let first = u64::from(word(16)) | u64::from(word(20)) << 32;
        Some(Header { kind, length: word(8), first, count: word(24), crc: word(12) })
    }
}

/// Bytes that a frame with so much payload takes up.
pub fn span(payload: usize) -> u64 {
    (HEADER_BYTES as u64 + payload as u64).next_multiple_of(ALIGN)
}

/// Begins a frame at the end of `out`; gives where it begins. The payload is appended after this.
pub fn begin(out: &mut Vec<u8>) -> usize {
    let start = out.len();
    out.resize(start + HEADER_BYTES, 0);
    start
}

/// Completes the frame begun at `start`, which will be written at `offset` of a segment.
pub fn finish(out: &mut Vec<u8>, start: usize, kind: Kind, place: (u64, u64), first: u64, count: u32) {
    let length = (out.len() - start - HEADER_BYTES) as u32;
    let header = &mut out[start..start + HEADER_BYTES];
    header[..4].copy_from_slice(&MAGIC);
    header[4] = kind as u8;
    header[5] = FRAME_VERSION;
    header[8..12].copy_from_slice(&length.to_le_bytes());
    header[16..24].copy_from_slice(&first.to_le_bytes());
    header[24..28].copy_from_slice(&count.to_le_bytes());
    let crc = checksum(&out[start..], place);
    out[start + 12..start + 16].copy_from_slice(&crc.to_le_bytes());
    out.resize(start + span(length as usize) as usize, 0);
}

/// Whether header and payload at the front of `bytes` are what was written at `place`, which is
/// segment number and offset.
pub fn is_intact(header: &Header, bytes: &[u8], place: (u64, u64)) -> bool {
    let whole = bytes.get(..HEADER_BYTES + header.length as usize);
    whole.is_some_and(|whole| checksum(whole, place) == header.crc)
}

/// The checksum of a frame's header and payload at that place, whatever its header says.
pub fn checksum(frame: &[u8], (segment, offset): (u64, u64)) -> u32 {
    let mut hasher = crc32fast::Hasher::new();
    hasher.update(&segment.to_le_bytes());
    hasher.update(&offset.to_le_bytes());
    hasher.update(&frame[..12]);
    hasher.update(&frame[16..]);
    hasher.finalize()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_frame_is_valid_only_where_it_was_written() {
        let mut out = Vec::new();
        let start = begin(&mut out);
        out.extend_from_slice(b"payload");
        finish(&mut out, start, Kind::Group, (7, 1024), 42, 1);
        assert_eq!(out.len(), 512);
        let header = Header::read(&out).unwrap();
        assert_eq!((header.kind, header.length, header.first, header.count), (Kind::Group, 7, 42, 1));
        assert!(is_intact(&header, &out, (7, 1024)));
        assert!(!is_intact(&header, &out, (8, 1024)) && !is_intact(&header, &out, (7, 1536)));
        for bit in 0..(HEADER_BYTES + 7) * 8 {
            let mut flipped = out.clone();
            flipped[bit / 8] ^= 1 << (bit % 8);
            let read = Header::read(&flipped);
            assert!(!read.is_some_and(|header| is_intact(&header, &flipped, (7, 1024))), "bit {bit}");
        }
    }
}
