//! Backups that are whole, cut, flipped, mixed and of the future.

use std::sync::Arc;
use std::time::Duration;

use crate::restore::check;
use crate::state::Records;

use super::*;

fn record(key: &str, size: usize, created: u64, modified: u64) -> Arc<Record> {
    let value = vec![b'v'; size];
    Arc::new(Record::new(key.into(), value.into(), Revision::new(created), Revision::new(modified)))
}

fn backup(keys: usize, size: usize) -> (Vec<u8>, Vec<Arc<Record>>) {
    let records: Vec<_> =
        (0..keys).map(|at| record(&format!("key-{at:05}"), size, 1, at as u64 + 1)).collect();
    let map: Records = records.iter().map(|record| (record.key.clone(), record.clone())).collect();
    let snapshot = Snapshot::new(Revision::new(keys as u64 + 7), map);
    let taken = SystemTime::UNIX_EPOCH + Duration::from_secs(1_000_000);
    (chunks(&snapshot, taken).flatten().collect(), records)
}

#[test]
fn what_was_written_is_read() {
    for (keys, size) in [(0, 0), (1, 0), (3, 10), (2_000, 700)] {
        let (bytes, records) = backup(keys, size);
        let mut reader = BackupReader::open(&bytes[..]).unwrap();
        for record in &records {
            assert_eq!(reader.read().unwrap().unwrap(), **record);
        }
        assert!(reader.read().unwrap().is_none() && reader.read().unwrap().is_none());
        let summary = reader.summary();
        assert_eq!((summary.revision.get(), summary.records), (keys as u64 + 7, keys as u64));
        assert_eq!(summary.taken, SystemTime::UNIX_EPOCH + Duration::from_secs(1_000_000));
        assert_eq!(summary.bytes, records.iter().map(|record| record.size() as u64).sum::<u64>());
    }
}

#[test]
fn every_cut_is_told() {
    let (bytes, _) = backup(5, 20);
    for length in 0..bytes.len() {
        match check(&bytes[..length]) {
            Err(BackupError::Cut { bytes, .. }) if length > 0 => assert_eq!(bytes, length as u64),
            Err(BackupError::NoBackup) if length == 0 => {}
            other => panic!("{length}: {other:?}"),
        }
    }
    let longer = [&bytes[..], b"x"].concat();
    assert!(matches!(check(&longer[..]), Err(BackupError::Damaged { .. })));
}

#[test]
fn every_flipped_bit_is_told_and_those_in_records_by_key_and_revision() {
    let (bytes, records) = backup(5, 20);
    let mut named = 0;
    for bit in 0..bytes.len() * 8 {
        let mut flipped = bytes.clone();
        flipped[bit / 8] ^= 1 << (bit % 8);
        let refused = check(&flipped[..]).expect_err(&format!("bit {bit}"));
        let text = refused.to_string();
        named +=
            usize::from(records.iter().any(|record| {
                text.contains(&format!("in key {} at revision {}:", record.key, record.modified))
            }));
    }
    // Every payload byte and every checksum of a record.
    assert!(named >= 5 * 8 * (9 + 20 + 4 + 4), "{named}");
}

#[test]
fn a_newer_version_is_named() {
    let (mut bytes, _) = backup(1, 1);
    bytes[8..12].copy_from_slice(&2u32.to_le_bytes());
    let crc = crc32fast::hash(&bytes[..12]).to_le_bytes();
    bytes[12..16].copy_from_slice(&crc);
    assert!(matches!(check(&bytes[..]), Err(BackupError::Newer { found: 2, supported: 1 })));
}

#[test]
fn pieces_of_two_backups_make_none() {
    let (one, _) = backup(5, 20);
    let (two, _) = backup(6, 20);
    let piece = PIECE_BYTES + 1 + 9 + 1 + 1 + 1 + 20;
    let start = one.len() - (PIECE_BYTES + 3) - 5 * piece;
    let mixed = [&one[..start + 2 * piece], &two[start + 2 * piece..]].concat();
    assert!(matches!(check(&mixed[..]), Err(BackupError::Damaged { .. })));
    let left_out = [&one[..start + piece], &one[start + 2 * piece..]].concat();
    assert!(matches!(check(&left_out[..]), Err(BackupError::Damaged { .. })));
}
