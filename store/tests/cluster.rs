//! A store over a cluster of three etcd servers that are killed under load, and two stores over one
//! cluster: nothing acknowledged is lost, nothing is made up, and no watch notices.

#![cfg(feature = "etcd")]
#![allow(clippy::unwrap_used, reason = "a test that cannot go on panics")]

mod support;

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use strata_store::config::Config;
use strata_store::engine::etcd::EtcdConfig;
use strata_store::error::{CommitError, EngineError, WatchError};
use strata_store::key::KeyRange;
use strata_store::revision::Revision;
use strata_store::snapshot::ReadAt;
use strata_store::store::{EngineChoice, Store};
use strata_store::txn::{Condition, Transaction, Txn, Value};
use strata_store::watch::From;

use support::etcd::{Cluster, is_there};
use support::promises::{Seen, resumable};
use support::{LIMIT, Numbers, commit, next, plain, put, tiny};

const WRITERS: u64 = 6;
/// Transactions that must be acknowledged between one blow and the next.
const BETWEEN: u64 = 60;

fn open(etcd: &EtcdConfig, config: Config) -> Store {
    Store::open(config, EngineChoice::Etcd(etcd.clone())).unwrap()
}

/// What a writer was told: its own counter's value, and the revision.
type Acknowledged = Vec<(u64, Revision)>;

/// Counts up a key of its own, so that a write that happened twice or not at all shows; and changes
/// others. Gives what was acknowledged.
async fn count(store: Store, writer: u64, stop: Arc<AtomicBool>) -> Acknowledged {
    let key = format!("counter/{writer}");
    let mut numbers = Numbers(writer + 77);
    let mut told = Vec::new();
    let mut last = put(&store, &key, "0").await;
    let mut value = 0;
    while !stop.load(Ordering::Relaxed) {
        let txn = numbers.txn().when(key.as_str(), Condition::At(last));
        let txn = txn.put(key.as_str(), Value::plain((value + 1).to_string()));
        match store.commit(txn).await {
            Ok(done) => {
                value += 1;
                last = done.revision;
                told.push((value, last));
            }
            Err(other) => panic!("writer {writer} at {last}: {other:?}"),
        }
    }
    told
}

/// Follows everything from the start of the line.
async fn follow(store: Store, from: Revision) -> (Store, Seen, strata_store::watch::Watch) {
    let watch = store.watch(KeyRange::all(), From::After(from)).unwrap();
    (store, Seen::new(KeyRange::all(), from), watch)
}

async fn progress(store: &Store, transactions: u64) {
    let reached = Revision::new(store.current_revision().get() + transactions);
    let deadline = tokio::time::Instant::now() + LIMIT * 2;
    store.wait_for(reached, deadline).await.unwrap();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn servers_may_die_under_load() {
    if !is_there() {
        return;
    }
    let mut cluster = Cluster::start(3);
    let etcd = cluster.store();
    let config = || Config { history_transactions: u64::MAX, ..tiny() };
    let (first, second) = (open(&etcd, config()), open(&etcd, config()));
    let start = first.current_revision();
    let (first, mut here, mut watch_here) = follow(first, start).await;
    let (second, mut there, mut watch_there) = follow(second, start).await;
    let stop = Arc::new(AtomicBool::new(false));
    let mut writers = tokio::task::JoinSet::new();
    for writer in 0..WRITERS {
        let store = if writer % 2 == 0 { first.clone() } else { second.clone() };
        let stop = stop.clone();
        writers.spawn(async move { (writer, count(store, writer, stop).await) });
    }
    // Each server dies once, so the leader does, and both stores' own servers do.
    for member in 0..cluster.size() {
        progress(&first, BETWEEN).await;
        cluster.kill(member);
        progress(&first, BETWEEN).await;
        progress(&second, BETWEEN).await;
        cluster.revive(member);
        progress(&second, BETWEEN).await;
    }
    stop.store(true, Ordering::Relaxed);
    let mut told = BTreeMap::new();
    while let Some(done) = writers.join_next().await {
        let (writer, acknowledged) = done.unwrap();
        told.insert(writer, acknowledged);
    }
    let end = first.snapshot(ReadAt::Latest).await.unwrap();
    let same = second.snapshot(ReadAt::Latest).await.unwrap();
    assert_eq!(end.revision(), same.revision());
    let range = KeyRange::all();
    assert!(end.range(&range, None).eq(same.range(&range, None)), "two stores, two states");
    here.read_to(&mut watch_here, end.revision()).await;
    there.read_to(&mut watch_there, end.revision()).await;
    // What etcd itself kept is the truth that both watches are held to.
    let third = open(&etcd, config());
    let (_third, mut truth, mut watch) = follow(third.clone(), start).await;
    truth.read_to(&mut watch, end.revision()).await;
    let history = truth.transactions.clone();
    for seen in [&truth, &here, &there] {
        seen.check(&history);
        resumable(&truth, seen);
    }
    for (writer, acknowledged) in &told {
        check_counter(*writer, acknowledged, &history);
    }
    let acknowledged: usize = told.values().map(Vec::len).sum();
    println!("{acknowledged} acknowledged, {} in history", history.len());
    for store in [first, second, third] {
        store.close().await;
    }
}

/// Every acknowledged count is in history at its revision, and history has no other.
fn check_counter(writer: u64, acknowledged: &Acknowledged, history: &[Arc<Transaction>]) {
    let key = format!("counter/{writer}").as_str().into();
    let mut happened = Vec::new();
    for transaction in history {
        let change = transaction.changes.iter().find(|change| change.key == key);
        if let Some(record) = change.and_then(|change| change.record.as_ref()) {
            let value: u64 = std::str::from_utf8(&record.value).unwrap().parse().unwrap();
            happened.push((value, transaction.revision));
        }
    }
    assert_eq!(happened.first().map(|first| first.0), Some(0));
    assert_eq!(&happened[1..], &acknowledged[..], "of writer {writer}");
}

#[tokio::test]
async fn two_stores_see_each_other() {
    if !is_there() {
        return;
    }
    let cluster = Cluster::start(1);
    let etcd = cluster.store();
    let (first, second) = (open(&etcd, tiny()), open(&etcd, tiny()));
    let mut watch = second.watch(KeyRange::single("a"), From::Now).unwrap();
    for round in 0..20 {
        let revision = put(&first, "a", &round.to_string()).await;
        let record = second.snapshot(ReadAt::Latest).await.unwrap().get(&"a".into()).unwrap();
        assert_eq!((record.modified, &record.value[..]), (revision, round.to_string().as_bytes()));
        next(&mut watch).await;
        assert_eq!(watch.progress(), revision);
        // A transaction that was planned from what the other has changed since.
        let gone = commit(&second, Txn::new().delete("a").put("b", plain("x"))).await;
        let absent = first.commit(Txn::new().when("a", Condition::Present).put("c", plain("x"))).await;
        assert!(matches!(absent, Err(CommitError::Failed { actual: None, .. })));
        let nothing = commit(&first, Txn::new().delete("a")).await;
        assert_eq!((nothing.revision, nothing.records), (gone.revision, vec![None]));
        next(&mut watch).await;
    }
    // Stores under other prefixes use up revisions, and are not seen.
    let other = open(&cluster.store(), tiny());
    let before = put(&first, "a", "1").await;
    for _ in 0..30 {
        put(&other, "a", "2").await;
    }
    let after = put(&second, "a", "3").await;
    assert!(after.get() > before.get() + 30);
    let mut seen = Seen::new(KeyRange::single("a"), watch.progress());
    seen.read_to(&mut watch, after).await;
    let revisions: Vec<_> = seen.transactions.iter().map(|transaction| transaction.revision).collect();
    assert_eq!(revisions, [before, after]);
    for store in [first, second, other] {
        store.close().await;
    }
}

#[tokio::test]
async fn history_that_another_gave_back_is_refused() {
    if !is_there() {
        return;
    }
    let cluster = Cluster::start(1);
    let etcd = cluster.store();
    let (first, second) = (open(&etcd, tiny()), open(&etcd, tiny()));
    let start = second.current_revision();
    let mut behind = second.watch(KeyRange::all(), From::After(start)).unwrap();
    for round in 0..40 {
        put(&first, "a", &round.to_string()).await;
    }
    let current = second.snapshot(ReadAt::Latest).await.unwrap().revision();
    first.compact(current).await.unwrap();
    let refused = second.snapshot(ReadAt::Exact(start.next())).await;
    assert!(matches!(refused, Err(strata_store::error::ReadError::Compacted { oldest }) if oldest > start));
    let refused = loop {
        match tokio::time::timeout(LIMIT, behind.next()).await.unwrap() {
            Ok(_) => {}
            Err(refused) => break refused,
        }
    };
    assert!(matches!(refused, WatchError::Compacted { oldest } if oldest > start), "{refused:?}");
    first.close().await;
    second.close().await;
}

#[tokio::test]
async fn a_cluster_that_is_away_is_told_of() {
    if !is_there() {
        return;
    }
    let mut cluster = Cluster::start(1);
    let etcd = cluster.store();
    let store = open(&etcd, tiny());
    put(&store, "a", "1").await;
    cluster.kill(0);
    // What waits for the cluster goes on when it is back.
    let waiting = tokio::spawn({
        let store = store.clone();
        async move { store.commit(Txn::new().put("a", plain("2"))).await }
    });
    let refused = tokio::time::timeout(LIMIT, store.snapshot(ReadAt::Latest)).await.unwrap();
    let Err(strata_store::error::ReadError::Engine(EngineError::Unavailable { .. })) = refused else {
        panic!("{refused:?}")
    };
    let cached = store.snapshot(ReadAt::NotOlderThan(Revision::ZERO)).await.unwrap();
    assert_eq!(cached.get(&"a".into()).unwrap().value, "1");
    cluster.revive(0);
    let done = tokio::time::timeout(LIMIT * 2, waiting).await.unwrap().unwrap().unwrap();
    assert_eq!(store.snapshot(ReadAt::Latest).await.unwrap().revision(), done.revision);
    store.close().await;
}
