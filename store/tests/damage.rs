//! Directories that were damaged from outside: bits flipped, files taken away, a format of the future. Nothing damaged is
//! served, what is damaged is named, and nothing is changed.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on panics")]

mod support;

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use strata_store::config::Config;
use strata_store::error::{Class, EngineError, OpenError, ReadError};
use strata_store::key::KeyRange;
use strata_store::revision::Revision;
use strata_store::snapshot::ReadAt;
use strata_store::store::{EngineChoice, Store};
use strata_store::txn::{Txn, Value};
use strata_store::verify::{VerifyError, verify};

use support::{Numbers, commit, put, tiny};

fn open(path: &Path) -> Result<Store, OpenError> {
    let config = Config { history_transactions: u64::MAX, ..tiny() };
    Store::open(config, EngineChoice::Sled { directory: path.to_owned() })
}

/// A closed store in a directory: some segments, a checkpoint, and a last transaction that puts `last`.
async fn written(home: &Path) -> PathBuf {
    let path = home.join("store");
    let store = open(&path).unwrap();
    let mut numbers = Numbers(21);
    for _ in 0..60 {
        commit(&store, numbers.txn()).await;
    }
    let (mut large, below) = (0, store.current_revision());
    while large < 12 {
        commit(&store, Txn::new().put(format!("large/{large}"), Value::plain(vec![b'x'; 900]))).await;
        large += 1;
    }
    store.compact(below).await.unwrap();
    put(&store, "last", "a value to be damaged").await;
    store.close().await;
    path
}

/// The files of a directory and of those below it, with their bytes; but not the lock.
fn files(path: &Path) -> BTreeMap<PathBuf, Vec<u8>> {
    let mut found = BTreeMap::new();
    for entry in fs::read_dir(path).unwrap() {
        let entry = entry.unwrap();
        if entry.file_type().unwrap().is_dir() {
            found.extend(files(&entry.path()));
        } else if entry.file_name() != "lock" {
            found.insert(entry.path(), fs::read(entry.path()).unwrap());
        }
    }
    found
}

fn logs(path: &Path) -> Vec<PathBuf> {
    files(path).into_keys().filter(|file| file.extension().is_some_and(|kind| kind == "log")).collect()
}

fn find(bytes: &[u8], word: &[u8]) -> usize {
    bytes.windows(word.len()).rposition(|window| window == word).unwrap()
}

#[tokio::test]
async fn a_flipped_bit_is_named_by_key_and_revision_and_never_served() {
    let home = tempfile::tempdir().unwrap();
    let path = written(home.path()).await;
    let whole = verify(&path).unwrap();
    assert!(whole.damages.is_empty() && whole.segments > 2 && whole.checkpoint_records > 0, "{whole:?}");
    let current = whole.current.unwrap();
    let log = logs(&path).pop().unwrap();
    let right = fs::read(&log).unwrap();
    let mut wrong = right.clone();
    let at = find(&wrong, b"a value to be damaged");
    wrong[at + 3] ^= 0b100;
    fs::write(&log, &wrong).unwrap();
    let named = format!("in key last at revision {current}");
    let Err(refused) = open(&path) else { panic!("it opened") };
    assert!(refused.class() == Class::Corrupt && refused.to_string().contains(&named), "{refused}");
    let before = files(&path);
    let found = verify(&path).unwrap();
    let [damage] = &found.damages[..] else { panic!("{found:?}") };
    assert!(damage.to_string().contains(&named), "{damage}");
    assert!(before.iter().all(|(file, bytes)| !file.ends_with("log") || fs::read(file).unwrap() == *bytes));
    fs::write(&log, &right).unwrap();
    let store = open(&path).unwrap();
    assert_eq!(store.current_revision(), current);
    store.close().await;
}

#[tokio::test]
async fn damage_under_an_open_store_is_not_served_either() {
    let home = tempfile::tempdir().unwrap();
    let path = written(home.path()).await;
    // A ring that holds nothing of before: history is read from the files.
    let store = open(&path).unwrap();
    for round in 0..40 {
        put(&store, "more", &round.to_string()).await;
    }
    let log = logs(&path)[1].clone();
    let mut bytes = fs::read(&log).unwrap();
    let at = 512 * 5 + 60;
    bytes[at] ^= 1;
    fs::write(&log, &bytes).unwrap();
    let mut refused = 0;
    for revision in store.oldest_revision().get()..store.current_revision().get() {
        match store.snapshot(ReadAt::Exact(Revision::new(revision))).await {
            Ok(_) => {}
            Err(ReadError::Engine(error)) => {
                assert_eq!(error.class(), Class::Corrupt, "{error}");
                refused += 1;
            }
            Err(other) => panic!("{other}"),
        }
    }
    assert!(refused > 0);
    // The state of now is whole, and can be saved.
    assert!(store.snapshot(ReadAt::Latest).await.unwrap().count(&KeyRange::all()) > 10);
    store.close().await;
}

#[tokio::test]
async fn every_damaged_file_is_told_or_harmless() {
    let home = tempfile::tempdir().unwrap();
    let path = written(home.path()).await;
    let store = open(&path).unwrap();
    let snapshot = store.snapshot(ReadAt::Latest).await.unwrap();
    store.close().await;
    let want: Vec<_> = snapshot.range(&KeyRange::all(), None).cloned().collect();
    let pristine = files(&path);
    let is_kept = |(file, bytes): &(&PathBuf, &Vec<u8>)| {
        !bytes.is_empty() && !file.file_name().unwrap().to_string_lossy().starts_with("spare")
    };
    let kept: Vec<_> = pristine.iter().filter(is_kept).collect();
    let mut numbers = Numbers(77);
    let mut told = 0;
    for round in 0..60 {
        let (file, bytes) = kept[numbers.below(kept.len() as u64) as usize];
        let mut wrong = bytes.clone();
        let used = bytes.iter().rposition(|byte| *byte != 0).unwrap_or(0) as u64 + 1;
        let bit = numbers.below(used * 8) as usize;
        wrong[bit / 8] ^= 1 << (bit % 8);
        fs::write(file, &wrong).unwrap();
        let what = format!("round {round}: bit {bit} of {}", file.display());
        let is_damaged = verify(&path).map_or(true, |found| !found.damages.is_empty());
        match open(&path) {
            Err(_) => assert!(is_damaged, "{what}: refused, but verify found nothing"),
            Ok(store) => {
                let now = store.snapshot(ReadAt::Latest).await.unwrap();
                assert_eq!(now.revision(), snapshot.revision(), "{what}");
                assert!(now.range(&KeyRange::all(), None).eq(want.iter()), "{what}: wrong data is served");
                store.close().await;
            }
        }
        told += u32::from(is_damaged);
        fs::remove_dir_all(&path).unwrap();
        for (file, bytes) in &pristine {
            fs::create_dir_all(file.parent().unwrap()).unwrap();
            fs::write(file, bytes).unwrap();
        }
    }
    assert!(told > 10, "{told}");
}

#[tokio::test]
async fn a_log_that_was_taken_away_is_missed() {
    for keep in [0, 1] {
        let home = tempfile::tempdir().unwrap();
        let path = written(home.path()).await;
        for log in logs(&path).into_iter().skip(keep) {
            fs::remove_file(log).unwrap();
        }
        let Err(OpenError::Engine(refused)) = open(&path) else { panic!("it opened without its log") };
        assert!(matches!(refused, EngineError::Corrupt { .. }), "{refused}");
        assert!(refused.to_string().contains("missing"), "{refused}");
        assert_eq!(verify(&path).unwrap().damages.len(), 1);
    }
    // One that never had a checkpoint, nor more than one segment.
    let home = tempfile::tempdir().unwrap();
    let path = home.path().join("store");
    let store = open(&path).unwrap();
    put(&store, "a", "1").await;
    store.close().await;
    for log in logs(&path) {
        fs::remove_file(log).unwrap();
    }
    assert!(open(&path).is_err());
}

#[tokio::test]
async fn spare_files_alone_are_no_lost_log() {
    let home = tempfile::tempdir().unwrap();
    let path = home.path().join("store");
    let store = open(&path).unwrap();
    store.maintain().await.unwrap();
    store.close().await;
    assert!(files(&path).keys().any(|file| file.to_string_lossy().contains("spare")));
    let store = open(&path).unwrap();
    assert_eq!(put(&store, "a", "1").await, Revision::new(1));
    store.close().await;
}

#[tokio::test]
async fn a_newer_format_is_refused_untouched() {
    let home = tempfile::tempdir().unwrap();
    let path = written(home.path()).await;
    fs::write(path.join("format"), "strata-store 2\n").unwrap();
    let before = files(&path);
    assert!(matches!(open(&path), Err(OpenError::NewerFormat { found: 2, supported: 1 })));
    let refused = verify(&path);
    assert!(matches!(refused, Err(VerifyError::Open(OpenError::NewerFormat { .. }))));
    assert_eq!(files(&path), before);
    let nothing = home.path().join("none");
    assert!(matches!(verify(&nothing), Err(VerifyError::NoStore)) && !nothing.exists());
}
