//! Flip: which single bit of some bytes is wrong, told from their checksum alone.
//!
//! A CRC is linear: flipping one bit of the bytes changes the checksum by a pattern that depends on nothing but how far
//! that bit is from the end. So the difference between the checksum that was stored and the one that is found names the
//! bit, if it is only one. Knows nothing of what the bytes mean.

/// The polynomial of CRC-32 (IEEE), reflected.
const POLYNOMIAL: u32 = 0xedb8_8320;

/// Where the one flipped bit is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Flip {
    /// In the bytes: the number of the bit, eight to a byte, the lowest of each byte first.
    Bit(usize),
    /// In the stored checksum: the bytes are right.
    Checksum,
}

/// Which one bit of the last `length` bytes under a checksum would have to be flipped for the stored checksum to be
/// theirs; `None` if there is none, so that more than one is wrong.
pub fn find(length: usize, stored: u32, found: u32) -> Option<Flip> {
    let difference = stored ^ found;
    if difference.count_ones() == 1 {
        return Some(Flip::Checksum);
    }
    let mut effect = POLYNOMIAL;
    for bit in (0..length * 8).rev() {
        if effect == difference {
            return Some(Flip::Bit(bit));
        }
        effect = (effect >> 1) ^ if effect & 1 == 1 { POLYNOMIAL } else { 0 };
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_flipped_bit_is_found() {
        let right = b"what was written, and some more of it".to_vec();
        let stored = crc32fast::hash(&right);
        for bit in 0..right.len() * 8 {
            let mut bytes = right.clone();
            bytes[bit / 8] ^= 1 << (bit % 8);
            assert_eq!(find(bytes.len(), stored, crc32fast::hash(&bytes)), Some(Flip::Bit(bit)));
        }
        assert_eq!(find(right.len(), stored ^ 8, stored), Some(Flip::Checksum));
        let mut bytes = right.clone();
        bytes[3] ^= 0b101;
        assert_eq!(find(bytes.len(), stored, crc32fast::hash(&bytes)), None);
    }
}
