//! Backups of real stores, and stores made from them: all records with their revisions, the line goes on; what is cut,
//! flipped or of the future leaves nothing behind; and a process killed in the middle of a restore leaves no store.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on panics")]

mod support;

use std::io::Read;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::SystemTime;

use strata_store::backup::chunks;
use strata_store::config::Config;
use strata_store::error::OpenError;
use strata_store::key::KeyRange;
use strata_store::restore::{RestoreError, SaveError, check, restore, save};
use strata_store::snapshot::{ReadAt, Snapshot};
use strata_store::store::{EngineChoice, Store};
use strata_store::txn::{Condition, Txn, Value};
use strata_store::verify::verify;
use strata_store::watch::From;

use support::promises::Seen;
use support::{LIMIT, Numbers, Site, commit, plain, put, tiny};

fn sled(path: &Path) -> EngineChoice {
    EngineChoice::Sled { directory: path.to_owned() }
}

async fn latest(store: &Store) -> Snapshot {
    store.snapshot(ReadAt::Latest).await.unwrap()
}

fn bytes_of(snapshot: &Snapshot) -> Vec<u8> {
    chunks(snapshot, SystemTime::UNIX_EPOCH).flatten().collect()
}

/// Writes a little; gives the state at the end.
async fn write(store: &Store) -> Snapshot {
    put(store, "kept", "1").await;
    let mut numbers = Numbers(11);
    for _ in 0..120 {
        commit(store, numbers.txn()).await;
    }
    latest(store).await
}

/// A store made from a backup is the one that was backed up, going on.
async fn check_restored(engine: &EngineChoice, was: &Snapshot) {
    let range = KeyRange::all();
    let store = Store::open(Config::default(), engine.clone()).unwrap();
    let now = latest(&store).await;
    assert_eq!((now.revision(), store.oldest_revision()), (was.revision(), was.revision()));
    assert!(now.range(&range, None).eq(was.range(&range, None)), "records and their revisions");
    let mut watch = store.watch(range.clone(), From::After(was.revision())).unwrap();
    let kept = was.get(&"kept".into()).unwrap();
    let done =
        commit(&store, Txn::new().when("kept", Condition::At(kept.modified)).put("kept", plain("2"))).await;
    assert_eq!(done.revision, was.revision().next());
    let mut seen = Seen::new(range, was.revision());
    seen.read_to(&mut watch, done.revision).await;
    assert_eq!(seen.transactions.len(), 1);
    assert_eq!(seen.transactions[0].changes[0].previous.as_ref(), Some(&kept));
    store.close().await;
    // And so after it was opened again.
    let store = Store::open(Config::default(), engine.clone()).unwrap();
    assert_eq!(latest(&store).await.get(&"kept".into()).unwrap().created, kept.created);
    store.close().await;
}

#[tokio::test]
async fn a_backup_is_restored_with_its_revisions() {
    let home = tempfile::tempdir().unwrap();
    for site in [Site::memory("memory", tiny()), Site::sled("sled", tiny())] {
        let store = site.open();
        let was = write(&store).await;
        store.close().await;
        let mut bytes = Vec::new();
        let saved = if site.name == "memory" {
            bytes = bytes_of(&was);
            check(&bytes[..]).unwrap()
        } else {
            save(&Config::default(), site.engine.clone(), &mut bytes).await.unwrap()
        };
        let target = sled(&home.path().join(site.name));
        assert_eq!(restore(&bytes[..], &target).await.unwrap(), saved);
        assert_eq!((saved.revision, saved.records), (was.revision(), was.count(&KeyRange::all()) as u64));
        let found = verify(&home.path().join(site.name)).unwrap();
        assert_eq!(
            (found.damages.len(), found.current, found.records),
            (0, Some(was.revision()), saved.records)
        );
        check_restored(&target, &was).await;
        let again = restore(&bytes[..], &target).await;
        assert!(matches!(again, Err(RestoreError::Target(OpenError::Directory { .. }))), "{again:?}");
    }
    let nothing = save(&Config::default(), sled(&home.path().join("none")), &mut Vec::new()).await;
    assert!(matches!(nothing, Err(SaveError::NoSource)));
    assert!(!home.path().join("none").exists());
}

#[tokio::test]
async fn a_backup_is_of_one_revision_while_others_write() {
    let site = Site::sled("sled", tiny());
    let store = site.open();
    let writer = tokio::spawn({
        let store = store.clone();
        async move {
            for round in 0..200u32 {
                let txn = Txn::new().put("a", plain(&round.to_string())).put("b", plain(&round.to_string()));
                commit(&store, txn).await;
            }
        }
    });
    for _ in 0..20 {
        let bytes = bytes_of(&latest(&store).await);
        let home = tempfile::tempdir().unwrap();
        let target = sled(&home.path().join("copy"));
        let restored = restore(&bytes[..], &target).await.unwrap();
        let copy = Store::open(Config::default(), target).unwrap();
        let state = latest(&copy).await;
        assert_eq!(state.revision(), restored.revision);
        let value = |key: &str| state.get(&key.into()).map(|record| record.value.clone());
        assert_eq!(value("a"), value("b"), "half a transaction");
        copy.close().await;
    }
    writer.await.unwrap();
    store.close().await;
}

#[tokio::test]
async fn what_is_no_whole_backup_is_refused_and_leaves_nothing() {
    let home = tempfile::tempdir().unwrap();
    let store = Site::memory("memory", tiny()).open();
    let whole = bytes_of(&write(&store).await);
    store.close().await;
    let mut newer = whole.clone();
    newer[8] = 2;
    let crc = crc32(&newer[..12]);
    newer[12..16].copy_from_slice(&crc.to_le_bytes());
    let mut flipped = whole.clone();
    let middle = flipped.len() / 2;
    flipped[middle] ^= 4;
    let cases: [(&str, Vec<u8>); 5] = [
        ("is cut off", whole[..whole.len() - 1].to_vec()),
        ("is cut off", whole[..middle].to_vec()),
        ("is damaged at byte", flipped),
        ("has version 2", newer),
        ("is no backup", b"{}\nsome other file\n".to_vec()),
    ];
    for (word, bytes) in cases {
        let place = home.path().join("new");
        let refused = restore(&bytes[..], &sled(&place)).await.unwrap_err();
        assert!(
            matches!(refused, RestoreError::Backup(_)) && refused.to_string().contains(word),
            "{refused}"
        );
        assert!(!place.exists(), "{word}: something is left");
        // A directory that was there stays, and stays empty.
        std::fs::create_dir(&place).unwrap();
        assert!(restore(&bytes[..], &sled(&place)).await.is_err());
        assert_eq!(std::fs::read_dir(&place).unwrap().count(), 0, "{word}: something is left");
        std::fs::remove_dir(&place).unwrap();
    }
}

/// The checksum of the format, by its definition.
fn crc32(bytes: &[u8]) -> u32 {
    !bytes.iter().fold(!0u32, |crc, byte| {
        (0..8).fold(crc ^ u32::from(*byte), |crc, _| (crc >> 1) ^ (0xedb8_8320 & (crc & 1).wrapping_neg()))
    })
}

const TEST: &str = "a_restore_that_is_killed_leaves_no_store_and_can_be_done_again";
const DIRECTORY: &str = "STRATA_RESTORE_DIRECTORY";

/// A backup that says where it is, and goes on when it is told to.
struct Slow<R> {
    bytes: R,
    left: usize,
}

impl<R: Read> Read for Slow<R> {
    fn read(&mut self, buffer: &mut [u8]) -> std::io::Result<usize> {
        if self.left == 0 {
            println!("\nhalf");
            std::thread::park_timeout(LIMIT);
        }
        let most = buffer.len().min(self.left.max(1));
        let read = self.bytes.read(&mut buffer[..most])?;
        self.left = self.left.saturating_sub(read);
        Ok(read)
    }
}

#[tokio::test]
async fn a_restore_that_is_killed_leaves_no_store_and_can_be_done_again() {
    let store = Site::memory("memory", tiny()).open();
    for at in 0..40 {
        let txn = Txn::new().put(format!("large/{at}"), Value::plain(vec![b'x'; 256 << 10]));
        commit(&store, txn).await;
    }
    put(&store, "kept", "1").await;
    let was = latest(&store).await;
    store.close().await;
    let bytes = bytes_of(&was);
    if let Some(directory) = std::env::var_os(DIRECTORY) {
        let slow = Slow { left: bytes.len() - 1000, bytes: &bytes[..] };
        restore(slow, &sled(Path::new(&directory))).await.unwrap();
        return;
    }
    let home = tempfile::tempdir().unwrap();
    let place = home.path().join("store");
    let mut child = Command::new(std::env::current_exe().unwrap())
        .args(["--exact", TEST, "--nocapture", "--test-threads=1"])
        .env(DIRECTORY, &place)
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let lines = std::io::BufRead::lines(std::io::BufReader::new(child.stdout.take().unwrap()));
    assert!(lines.map_while(Result::ok).any(|line| line == "half"), "the restore never got half way");
    child.kill().unwrap();
    child.wait().unwrap();
    assert!(std::fs::read_dir(&place).unwrap().count() > 1, "it had begun");
    let opened = Store::open(Config::default(), sled(&place));
    assert!(matches!(opened, Err(OpenError::Engine(error)) if error.to_string().contains("did not finish")));
    restore(&bytes[..], &sled(&place)).await.unwrap();
    check_restored(&sled(&place), &was).await;
}

#[cfg(feature = "etcd")]
#[tokio::test]
async fn a_backup_goes_into_etcd_and_out_of_it() {
    if !support::etcd::is_there() {
        return;
    }
    let cluster = support::etcd::Cluster::start(1);
    let store = Site::memory("memory", tiny()).open();
    let was = write(&store).await;
    store.close().await;
    let bytes = bytes_of(&was);
    let engine = EngineChoice::Etcd(cluster.store());
    let cut = restore(&bytes[..bytes.len() - 3], &engine).await;
    assert!(matches!(cut, Err(RestoreError::Backup(strata_store::backup::BackupError::Cut { .. }))));
    let nothing = save(&Config::default(), engine.clone(), &mut Vec::new()).await;
    assert!(matches!(nothing, Err(SaveError::NoSource)), "nothing of it is left");
    restore(&bytes[..], &engine).await.unwrap();
    let mut again = Vec::new();
    let saved = save(&Config::default(), engine.clone(), &mut again).await.unwrap();
    assert_eq!((saved.revision, saved.records), (was.revision(), was.count(&KeyRange::all()) as u64));
    check_restored(&engine, &was).await;
    let home = tempfile::tempdir().unwrap();
    restore(&again[..], &sled(&home.path().join("a"))).await.unwrap();
    check_restored(&sled(&home.path().join("a")), &was).await;
}
