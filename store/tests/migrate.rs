//! Moving a store between engines: records keep their revisions, the line goes on, and a revision of
//! before is refused as too old.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on panics")]

mod support;

use strata_store::config::Config;
use strata_store::error::{OpenError, ReadError, WatchError};
use strata_store::key::KeyRange;
use strata_store::migrate::{MigrateError, Migrated, migrate};
use strata_store::revision::Revision;
use strata_store::snapshot::{ReadAt, Snapshot};
use strata_store::store::{EngineChoice, Store};
use strata_store::txn::{Condition, Txn};
use strata_store::watch::From;

use support::promises::Seen;
use support::{Numbers, commit, plain, put};

fn open(engine: &EngineChoice) -> Store {
    Store::open(Config::default(), engine.clone()).unwrap()
}

fn sled(home: &tempfile::TempDir, name: &str) -> EngineChoice {
    EngineChoice::Sled { directory: home.path().join(name) }
}

async fn latest(store: &Store) -> Snapshot {
    store.snapshot(ReadAt::Latest).await.unwrap()
}

/// Writes a little; gives the state at the end.
async fn write(engine: &EngineChoice, seed: u64) -> Snapshot {
    let store = open(engine);
    put(&store, "kept", &seed.to_string()).await;
    let mut numbers = Numbers(seed);
    for _ in 0..60 {
        commit(&store, numbers.txn()).await;
    }
    let end = latest(&store).await;
    store.close().await;
    end
}

/// Moves, and checks that the new store is the old one going on.
async fn step(from: &EngineChoice, to: &EngineChoice) {
    let was = write(from, 5).await;
    let moved = migrate(&Config::default(), from.clone(), to).await.unwrap();
    let range = KeyRange::all();
    assert_eq!(moved, Migrated { revision: was.revision(), records: was.count(&range) });
    let store = open(to);
    let now = latest(&store).await;
    assert_eq!((now.revision(), store.oldest_revision()), (was.revision(), was.revision()));
    assert!(now.range(&range, None).eq(was.range(&range, None)));
    // What a client remembers: the newest revision is right, one before is too old.
    let before = Revision::new(was.revision().get() - 1);
    assert!(matches!(store.watch(range.clone(), From::After(before)), Err(WatchError::Compacted { .. })));
    assert!(matches!(store.snapshot(ReadAt::Exact(before)).await, Err(ReadError::Compacted { .. })));
    let mut watch = store.watch(range.clone(), From::After(was.revision())).unwrap();
    // Records of before the move are known by their revisions.
    let kept = was.get(&"kept".into()).unwrap();
    let wrong = Txn::new().when("kept", Condition::At(kept.modified.next())).put("kept", plain("x"));
    assert!(store.commit(wrong).await.is_err());
    let right = Txn::new().when("kept", Condition::At(kept.modified)).put("kept", plain("y"));
    let done = commit(&store, right.clone()).await;
    assert_eq!(done.revision, was.revision().next());
    let record = done.records[0].clone().unwrap();
    assert_eq!((record.created, record.modified), (kept.created, done.revision));
    assert!(store.commit(right).await.is_err());
    let gone = commit(&store, Txn::new().delete("kept")).await;
    assert_eq!(gone.records, [Some(record)]);
    assert_eq!(
        commit(&store, Txn::new().put("kept", plain("z"))).await.records[0].as_ref().unwrap().created,
        gone.revision.next()
    );
    let mut seen = Seen::new(range, was.revision());
    seen.read_to(&mut watch, store.current_revision()).await;
    assert_eq!(seen.transactions.len(), 3);
    let end = latest(&store).await;
    store.close().await;
    // And so after it was opened again.
    let store = open(to);
    let again = latest(&store).await;
    assert_eq!(again.revision(), end.revision());
    assert!(again.range(&KeyRange::all(), None).eq(end.range(&KeyRange::all(), None)));
    store.close().await;
}

#[tokio::test]
async fn from_directory_to_directory() {
    let home = tempfile::tempdir().unwrap();
    step(&sled(&home, "a"), &sled(&home, "b")).await;
    let full = migrate(&Config::default(), sled(&home, "a"), &sled(&home, "b")).await;
    assert!(matches!(full, Err(MigrateError::Target(OpenError::Directory { .. }))));
    let nothing = migrate(&Config::default(), sled(&home, "none"), &sled(&home, "c")).await;
    assert!(matches!(nothing, Err(MigrateError::NoSource)));
    assert!(!home.path().join("none").exists() && !home.path().join("c").exists());
}

#[tokio::test]
async fn an_import_that_did_not_finish_is_no_store() {
    let home = tempfile::tempdir().unwrap();
    let half = sled(&home, "half");
    std::fs::create_dir(home.path().join("half")).unwrap();
    std::fs::write(home.path().join("half/importing"), "").unwrap();
    let opened = Store::open(Config::default(), half);
    assert!(matches!(opened, Err(OpenError::Engine(error)) if error.to_string().contains("did not finish")));
}

#[cfg(feature = "etcd")]
#[tokio::test]
async fn to_etcd_on_to_etcd_and_back() {
    if !support::etcd::is_there() {
        return;
    }
    let cluster = support::etcd::Cluster::start(1);
    let home = tempfile::tempdir().unwrap();
    let (first, second) = (EngineChoice::Etcd(cluster.store()), EngineChoice::Etcd(cluster.store()));
    step(&sled(&home, "a"), &first).await;
    // The cluster's own revision may be behind the store's, or far before it.
    let other = open(&EngineChoice::Etcd(cluster.store()));
    for at in 0..300 {
        put(&other, "a", &at.to_string()).await;
    }
    other.close().await;
    step(&first, &second).await;
    step(&second, &sled(&home, "b")).await;
    let full = migrate(&Config::default(), sled(&home, "b"), &first).await;
    assert!(matches!(full, Err(MigrateError::Target(_))));
    let nothing = EngineChoice::Etcd(cluster.store());
    let nothing = migrate(&Config::default(), nothing, &sled(&home, "c")).await;
    assert!(matches!(nothing, Err(MigrateError::NoSource)));
}
