//! The store on a disk that is slow, hangs or lies: a slow one costs writers time and nobody else anything; one that
//! lied about its syncs loses whole transactions from the end, or is refused, and who saw more is told.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on panics")]

mod support;

use std::sync::Arc;
use std::time::Duration;

use tokio::task::JoinSet;

use strata_store::config::Config;
use strata_store::engine::crash::Survives;
use strata_store::engine::memory::{Fault, Memory};
use strata_store::error::{CommitError, EngineError, OpenError, ReadError, WatchError};
use strata_store::key::KeyRange;
use strata_store::record::Record;
use strata_store::revision::Revision;
use strata_store::snapshot::{ReadAt, Snapshot};
use strata_store::store::{EngineChoice, Store};
use strata_store::txn::{Condition, Txn, Value};
use strata_store::watch::{From, WatchItem};

use support::promises::Seen;
use support::{LIMIT, Numbers, commit, next, plain, put, tiny};

fn open(memory: &Memory) -> Result<Store, OpenError> {
    // History of everything: what survives can be compared from the start.
    let config = Config { history_transactions: u64::MAX, ..tiny() };
    Store::open(config, EngineChoice::Memory(memory.clone()))
}

async fn latest(store: &Store) -> Snapshot {
    store.snapshot(ReadAt::Latest).await.unwrap()
}

fn records(snapshot: &Snapshot) -> Vec<Arc<Record>> {
    snapshot.range(&KeyRange::all(), None).cloned().collect()
}

async fn until(what: &str, holds: impl Fn() -> bool) {
    let turns = async {
        while !holds() {
            tokio::task::yield_now().await;
        }
    };
    tokio::time::timeout(LIMIT, turns).await.unwrap_or_else(|_| panic!("not within the limit: {what}"));
}

#[tokio::test]
async fn a_disk_that_hangs_keeps_no_reader_and_no_watcher_waiting() {
    let memory = Memory::new();
    let store = open(&memory).unwrap();
    let mut watch = store.watch(KeyRange::all(), From::Now).unwrap();
    let mut numbers = Numbers(11);
    for _ in 0..20 {
        commit(&store, numbers.txn()).await;
    }
    let before = store.current_revision();
    let (want, middle) = (records(&latest(&store).await), Revision::new(before.get() / 2));

    let stall = memory.stall();
    let mut writers = JoinSet::new();
    for writer in 0..40u64 {
        let store = store.clone();
        let key = format!("w{writer:02}");
        writers.spawn(async move { (writer, put(&store, &key, "late").await) });
    }
    until("a write hangs", || stall.waiting() > 0).await;

    assert_eq!((store.current_revision(), records(&latest(&store).await)), (before, want.clone()));
    assert!(store.snapshot(ReadAt::Exact(middle)).await.is_ok(), "history is read, from the disk too");
    let mut seen = Seen::new(KeyRange::all(), Revision::ZERO);
    seen.read_to(&mut watch, before).await;
    let mut begun = store.watch(KeyRange::all(), From::WithInitial).unwrap();
    let WatchItem::Initial(initial) = next(&mut begun).await else { panic!("no state to start from") };
    assert_eq!(records(&initial), want);
    assert!(watch.try_next().unwrap().is_none() && begun.try_next().unwrap().is_none());
    assert!(writers.try_join_next().is_none(), "nobody is answered before the disk is");

    drop(stall);
    let mut done = Vec::new();
    while let Some(answer) = writers.join_next().await {
        done.push(answer.unwrap());
    }
    done.sort_unstable();
    let revisions: Vec<_> = done.iter().map(|(_, revision)| revision.get()).collect();
    let asked: Vec<_> = (before.get() + 1..=before.get() + 40).collect();
    assert_eq!(revisions, asked, "in the order in which they were asked");
    seen.read_to(&mut watch, store.current_revision()).await;
    seen.check(&seen.transactions);
    store.close().await;
}

#[tokio::test]
async fn a_slow_disk_loses_no_order() {
    let memory = Memory::new();
    let store = open(&memory).unwrap();
    memory.set_slow(Duration::from_millis(1));
    let mut watch = store.watch(KeyRange::all(), From::Now).unwrap();
    let mut narrow = store.watch(KeyRange::prefix("w3/"), From::Now).unwrap();
    let mut writers = JoinSet::new();
    for writer in 0..8 {
        let store = store.clone();
        writers.spawn(async move {
            let mut last = Revision::ZERO;
            for turn in 0..12 {
                let txn = Txn::new().put(format!("w{writer}/{turn}"), plain("x")).put("all", plain("x"));
                let revision = commit(&store, txn).await.revision;
                assert!(revision > last, "a writer's own order");
                let read = store.snapshot(ReadAt::NotOlderThan(revision)).await.unwrap();
                assert!(read.get(&format!("w{writer}/{turn}").as_str().into()).is_some());
                last = revision;
            }
        });
    }
    while let Some(answer) = writers.join_next().await {
        answer.unwrap();
    }
    let current = store.current_revision();
    assert_eq!(current, Revision::new(8 * 12));
    let (mut seen, mut part) =
        (Seen::new(KeyRange::all(), Revision::ZERO), Seen::new(KeyRange::prefix("w3/"), Revision::ZERO));
    seen.read_to(&mut watch, current).await;
    part.read_to(&mut narrow, current).await;
    seen.check(&seen.transactions);
    part.check(&seen.transactions);
    assert_eq!((seen.transactions.len(), part.transactions.len()), (96, 12));
    memory.set_slow(Duration::ZERO);
    store.close().await;
}

/// Transactions of a run on a lying disk, and those that were made while it was honest.
const TXNS: u64 = 60;

/// The state after each revision of the run.
async fn truth() -> Vec<Vec<Arc<Record>>> {
    let store = open(&Memory::new()).unwrap();
    let (mut states, mut numbers) = (vec![Vec::new()], Numbers(5));
    for _ in 0..TXNS {
        let before = store.current_revision();
        if commit(&store, numbers.txn()).await.revision > before {
            states.push(records(&latest(&store).await));
        }
    }
    store.close().await;
    states
}

/// The run, on a disk that lies after so many transactions; gives the last revision before, and the last of all.
async fn run(memory: &Memory, honest: u64) -> (Revision, Revision) {
    let store = open(memory).unwrap();
    let mut numbers = Numbers(5);
    let mut safe = Revision::ZERO;
    for at in 0..TXNS {
        if at == honest {
            safe = store.current_revision();
            memory.set_lying(true);
        }
        commit(&store, numbers.txn()).await;
        if at % 20 == 19 {
            store.maintain().await.unwrap();
        }
    }
    (safe, store.current_revision())
}

#[tokio::test]
async fn what_a_lying_sync_loses_is_a_run_of_whole_transactions_from_the_end() {
    let truth = truth().await;
    let (mut refused, mut shorter) = (0, 0);
    for honest in [1, 7, 20, 33, 46, 59] {
        let scattered = (0..24).map(Survives::Scattered);
        for survives in [Survives::Synced, Survives::Written, Survives::Torn].into_iter().chain(scattered) {
            let what = format!("{honest} honest, then {survives:?}");
            let is_whole = matches!(survives, Survives::Synced | Survives::Written);
            let memory = Memory::new();
            let (safe, told) = run(&memory, honest).await;
            memory.crash(survives);
            let store = match open(&memory) {
                Ok(store) => store,
                Err(OpenError::Engine(EngineError::Corrupt { .. })) => {
                    assert!(!is_whole, "{what}: refused");
                    refused += 1;
                    continue;
                }
                Err(error) => panic!("{what}: {error}"),
            };
            let current = store.current_revision();
            assert!(current >= safe && current <= told, "{what}: {safe}, {current}, {told}");
            assert!(survives != Survives::Synced || current == safe, "{what}: nothing else was kept");
            assert!(survives != Survives::Written || current == told, "{what}: all was there");
            shorter += u32::from(current < told);
            let oldest = store.oldest_revision().get();
            for at in [oldest, u64::midpoint(oldest, current.get()), current.get()] {
                match store.snapshot(ReadAt::Exact(Revision::new(at))).await {
                    Ok(snapshot) => assert_eq!(records(&snapshot), truth[at as usize], "{what}: at {at}"),
                    // The state came from the checkpoint, and history before it has the hole.
                    Err(ReadError::Engine(EngineError::Corrupt { .. })) => {
                        assert!(!is_whole && at < current.get(), "{what}: at {at}");
                    }
                    Err(error) => panic!("{what}: at {at}: {error}"),
                }
            }
            assert_eq!(put(&store, "after", "crash").await, current.next(), "{what}: the line goes on");
            store.close().await;
        }
    }
    assert!(refused > 5 && shorter > 5, "{refused} refused, {shorter} shorter: too few of either");
}

#[tokio::test]
async fn a_checkpoint_that_kept_what_the_log_lost_is_never_served() {
    let config = Config { checkpoint_bytes: 4 << 10, segment_bytes: 64 << 10, ..tiny() };
    let open = |memory: &Memory| Store::open(config.clone(), EngineChoice::Memory(memory.clone()));
    let large = |byte: u8| Txn::new().put("b", Value::plain(vec![byte; 3000]));
    let (mut refused, mut whole) = (0, 0);
    for seed in 0..64 {
        let memory = Memory::new();
        let store = open(&memory).unwrap();
        put(&store, "a", "kept").await;
        memory.set_lying(true);
        commit(&store, Txn::new().delete("a")).await;
        commit(&store, large(1)).await;
        commit(&store, large(2)).await;
        store.maintain().await.unwrap();
        memory.crash(Survives::Scattered(seed));
        let store = match open(&memory) {
            Ok(store) => store,
            Err(OpenError::Engine(EngineError::Corrupt { .. })) => {
                refused += 1;
                continue;
            }
            Err(error) => panic!("{seed}: {error}"),
        };
        let is_there = store.current_revision() == Revision::new(1);
        whole += u32::from(is_there);
        // Through checkpoints, and an opening that needs them.
        for byte in 3..9 {
            commit(&store, large(byte)).await;
            store.maintain().await.unwrap();
            let found = latest(&store).await.get(&"a".into()).is_some();
            assert_eq!(found, is_there, "{seed}: {byte}");
        }
        store.close().await;
        let store = open(&memory).unwrap_or_else(|error| panic!("{seed}: {error}"));
        assert_eq!(latest(&store).await.get(&"a".into()).is_some(), is_there, "{seed}: opened again");
        store.close().await;
    }
    assert!(refused > 5 && whole > 5, "{refused} refused, {whole} at what was safe: too few of either");
}

#[tokio::test]
async fn who_saw_more_than_survived_is_told() {
    let memory = Memory::new();
    let store = open(&memory).unwrap();
    let mut watch = store.watch(KeyRange::all(), From::Now).unwrap();
    for _ in 0..5 {
        put(&store, "a", "kept").await;
    }
    memory.set_lying(true);
    for _ in 0..3 {
        put(&store, "a", "lost").await;
    }
    let (kept, lost) = (Revision::new(5), Revision::new(8));
    let mut seen = Seen::new(KeyRange::all(), Revision::ZERO);
    seen.read_to(&mut watch, lost).await;
    memory.crash(Survives::Synced);
    let gone = store.commit(Txn::new().put("a", plain("later"))).await;
    assert!(matches!(gone, Err(CommitError::Engine(_))), "the old handle is of no use: {gone:?}");

    let store = open(&memory).unwrap();
    assert_eq!(store.current_revision(), kept);
    let resumed = store.watch(KeyRange::all(), From::After(watch.progress())).err();
    assert!(matches!(resumed, Some(WatchError::Future { current }) if current == kept), "{resumed:?}");
    for at in [ReadAt::NotOlderThan(lost), ReadAt::Exact(lost)] {
        let read = store.snapshot(at).await;
        assert!(matches!(read, Err(ReadError::Future { current }) if current == kept), "{read:?}");
    }
    let stale = store.commit(Txn::new().when("a", Condition::At(lost)).put("a", plain("b"))).await;
    let Err(CommitError::Failed { actual: Some(actual), .. }) = stale else { panic!("{stale:?}") };
    assert_eq!((actual.modified, actual.value.as_ref()), (kept, &b"kept"[..]));

    // Who goes on from what is there, sees what happens from then on.
    let mut watch = store.watch(KeyRange::all(), From::After(kept)).unwrap();
    assert_eq!(put(&store, "a", "new").await, kept.next());
    let WatchItem::Transaction(new) = next(&mut watch).await else { panic!("no transaction") };
    assert_eq!(new.changes[0].previous.as_ref().unwrap().value, "kept");
    store.close().await;
}

#[tokio::test]
async fn an_honest_sync_makes_good_a_lie_before_it() {
    for (syncs_after, survived) in [(0, 1), (1, 3)] {
        let memory = Memory::new();
        let store = open(&memory).unwrap();
        put(&store, "a", "1").await;
        // Nothing else is to sync.
        store.maintain().await.unwrap();
        memory.inject(Fault::LyingSync);
        put(&store, "a", "2").await;
        for _ in 0..syncs_after {
            put(&store, "a", "3").await;
        }
        memory.crash(Survives::Synced);
        let store = open(&memory).unwrap();
        assert_eq!(store.current_revision(), Revision::new(survived));
        store.close().await;
    }
}
