//! A disk that is really full: a file system of 64 MiB. Puts are refused with what is missing, everything else goes on,
//! and what comes free is used again by itself. One line of log tells of it.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on panics")]

mod support;

use std::fs::{self, File};
use std::io::{self, Write};
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};

use strata_store::config::Config;
use strata_store::error::CommitError;
use strata_store::key::KeyRange;
use strata_store::revision::Revision;
use strata_store::snapshot::{ReadAt, Snapshot};
use strata_store::store::{EngineChoice, Store};
use strata_store::txn::{Condition, Txn, Value};
use strata_store::verify::verify;
use strata_store::watch::From;
use tracing_subscriber::fmt::MakeWriter;

use support::commit;
use support::mount::Mounted;
use support::promises::Seen;

const DISK_MIB: u64 = 64;

fn open(path: &Path, config: &Config) -> Store {
    Store::open(config.clone(), EngineChoice::Sled { directory: path.join("store") }).unwrap()
}

async fn latest(store: &Store) -> Snapshot {
    store.snapshot(ReadAt::Latest).await.unwrap()
}

fn large(size: usize) -> Value {
    Value::plain(vec![b'x'; size])
}

/// Puts until the disk is full; gives the keys that are there, and the refusal.
async fn fill(store: &Store, name: &str, size: usize) -> (Vec<String>, CommitError) {
    let mut keys = Vec::new();
    loop {
        let key = format!("{name}/{:05}", keys.len());
        match store.commit(Txn::new().put(key.as_str(), large(size))).await {
            Ok(_) => keys.push(key),
            Err(refused) => return (keys, refused),
        }
        assert!(keys.len() * size < (DISK_MIB << 21) as usize, "the disk never fills");
    }
}

fn missing(refused: &CommitError) -> u64 {
    match refused {
        CommitError::NoSpace { missing: Some(missing), .. } => *missing,
        other => panic!("{other:?}"),
    }
}

/// The lines of the log.
#[derive(Clone, Default)]
struct Lines(Arc<Mutex<Vec<u8>>>);

impl Lines {
    fn take(&self) -> Vec<String> {
        let bytes = std::mem::take(&mut *self.0.lock().unwrap_or_else(PoisonError::into_inner));
        String::from_utf8(bytes).unwrap().lines().map(str::to_owned).collect()
    }
}

impl Write for Lines {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl<'a> MakeWriter<'a> for Lines {
    type Writer = Lines;

    fn make_writer(&'a self) -> Lines {
        self.clone()
    }
}

/// One life on the small disk, from filling it to using it again.
async fn live(config: Config, size: usize, lines: &Lines) {
    let Some(disk) = Mounted::tmpfs(DISK_MIB) else { return };
    let store = open(&disk.path(), &config);
    let mut watch = store.watch(KeyRange::all(), From::Now).unwrap();
    let (keys, refused) = fill(&store, "a", size).await;
    assert!(
        keys.len() * size > 2 << 20,
        "full after only {} values of {size} bytes: {refused:?} {:#?}",
        keys.len(),
        lines.take()
    );
    assert!(missing(&refused) <= DISK_MIB << 20, "{refused}");
    for _ in 0..50 {
        assert!(store.commit(Txn::new().put("more", large(size))).await.is_err());
    }
    let told = lines.take();
    let warned = told.iter().filter(|line| line.contains("the disk is full")).count();
    assert!(warned == 1 && told.len() == 1, "51 refusals, and the log says {told:#?}");
    // Reads and watches go on.
    assert_eq!(latest(&store).await.count(&KeyRange::all()), keys.len());
    let mut seen = Seen::new(KeyRange::all(), Revision::ZERO);
    seen.read_to(&mut watch, store.current_revision()).await;
    assert_eq!(seen.transactions.len(), keys.len());
    // So do deletes, one by one, and compaction; until everything is gone.
    for key in &keys {
        commit(&store, Txn::new().when(key.as_str(), Condition::Present).delete(key.as_str())).await;
    }
    // What they freed is used again, as often as one likes, once history does not hold it any more: that goes by age.
    for round in 0..2 {
        store.compact(store.current_revision()).await.unwrap();
        let (again, _) = fill(&store, &format!("b{round}"), size).await;
        assert!(again.len() * 4 > keys.len(), "round {round}: {} of {}", again.len(), keys.len());
        for key in &again {
            commit(&store, Txn::new().delete(key.as_str())).await;
        }
    }
    store.close().await;
    assert!(verify(&disk.path().join("store")).unwrap().damages.is_empty());
    let store = open(&disk.path(), &config);
    assert_eq!(latest(&store).await.count(&KeyRange::all()), 0);
    store.close().await;
    lines.take();
}

/// Others fill the disk, and free it: no operator has to tell the store.
async fn share(config: Config, lines: &Lines) {
    let Some(disk) = Mounted::tmpfs(DISK_MIB) else { return };
    let store = open(&disk.path(), &config);
    commit(&store, Txn::new().put("first", large(1000))).await;
    store.maintain().await.unwrap();
    let ballast = disk.path().join("ballast");
    let mut file = File::create(&ballast).unwrap();
    while file.write_all(&[0; 64 << 10]).is_ok() {}
    drop(file);
    let (keys, refused) = fill(&store, "a", 10_000).await;
    let lacking = missing(&refused);
    commit(&store, Txn::new().delete("first")).await;
    // A store that is opened on a full disk is there, too.
    store.close().await;
    let store = open(&disk.path(), &config);
    assert_eq!(latest(&store).await.count(&KeyRange::all()), keys.len());
    assert!(store.commit(Txn::new().put("more", large(10_000))).await.is_err());
    // As much as it said, and puts are taken again.
    let length = fs::metadata(&ballast).unwrap().len();
    let file = File::options().write(true).open(&ballast).unwrap();
    file.set_len(length - lacking.next_multiple_of(4096) - (1 << 20)).unwrap();
    commit(&store, Txn::new().put("more", large(10_000))).await;
    assert!(lines.take().iter().any(|line| line.contains("has room again")));
    store.close().await;
}

#[tokio::test]
async fn a_full_disk_refuses_puts_alone_and_comes_back_by_itself() {
    let lines = Lines::default();
    tracing_subscriber::fmt()
        .with_max_level(tracing::Level::WARN)
        .with_ansi(false)
        .with_writer(lines.clone())
        .init();
    live(Config::default(), 60_000, &lines).await;
    live(Config::default(), 500_000, &lines).await;
    share(Config::default(), &lines).await;
}
