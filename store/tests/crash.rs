//! The store on a disk that fails: a crash at every step, torn and failed writes, failed syncs, a full
//! disk, decayed bits. What was acknowledged is there, whole; nothing is there by halves.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on panics")]

mod support;

use std::collections::BTreeMap;
use std::sync::Arc;

use strata_store::config::Config;
use strata_store::engine::crash::Survives;
use strata_store::engine::memory::{Fault, Memory};
use strata_store::error::{Class, CommitError, EngineError, OpenError};
use strata_store::key::KeyRange;
use strata_store::record::Record;
use strata_store::revision::Revision;
use strata_store::snapshot::{ReadAt, Snapshot};
use strata_store::store::{EngineChoice, Store};
use strata_store::txn::{Condition, Transaction, Txn, Value};
use strata_store::watch::From;

use support::promises::Seen;
use support::{Numbers, commit, plain, put, tiny};

const TXNS: u64 = 60;

fn config() -> Config {
    // History of everything, unless a test compacts: what survives can be compared from the start.
    Config { history_transactions: u64::MAX, ..tiny() }
}

fn open(memory: &Memory) -> Result<Store, OpenError> {
    Store::open(config(), EngineChoice::Memory(memory.clone()))
}

async fn latest(store: &Store) -> Snapshot {
    store.snapshot(ReadAt::Latest).await.unwrap()
}

fn records(snapshot: &Snapshot) -> Vec<Arc<Record>> {
    snapshot.range(&KeyRange::all(), None).cloned().collect()
}

/// The state after each revision of the workload, on a disk that never fails.
async fn truth() -> Vec<Vec<Arc<Record>>> {
    let store = open(&Memory::new()).unwrap();
    let mut states = vec![Vec::new()];
    let mut numbers = Numbers(5);
    for _ in 0..TXNS {
        let before = store.current_revision();
        if commit(&store, numbers.txn()).await.revision > before {
            states.push(records(&latest(&store).await));
        }
    }
    store.close().await;
    states
}

/// Runs the workload until the disk stops; gives the last acknowledged revision.
async fn work(memory: &Memory) -> Revision {
    let mut acknowledged = Revision::ZERO;
    let Ok(store) = open(memory) else { return acknowledged };
    let mut numbers = Numbers(5);
    for at in 0..TXNS {
        match store.commit(numbers.txn()).await {
            Ok(done) => acknowledged = done.revision,
            Err(error) => {
                assert!(memory.has_crashed(), "{error}");
                assert_eq!(error.class(), Class::Terminal);
                break;
            }
        }
        if at % 20 == 19 {
            // Fails where the disk stops within; what it gave back before that must be enough.
            let below = Revision::new(acknowledged.get() / 2);
            assert!(store.compact(below).await.is_ok() || memory.has_crashed());
        }
    }
    store.close().await;
    acknowledged
}

async fn check_survivor(memory: &Memory, acknowledged: Revision, truth: &[Vec<Arc<Record>>], what: &str) {
    let store = open(memory).unwrap_or_else(|error| panic!("{what}: {error:?}"));
    let current = store.current_revision();
    assert!(current >= acknowledged, "{what}: {acknowledged} was acknowledged, {current} survived");
    assert!(current <= acknowledged.next(), "{what}: {current} was never asked for");
    let oldest = store.oldest_revision();
    for revision in [current, Revision::new(u64::midpoint(oldest.get(), current.get())), oldest] {
        let snapshot = store.snapshot(ReadAt::Exact(revision)).await;
        let snapshot = snapshot.unwrap_or_else(|error| panic!("{what}: at {revision}: {error:?}"));
        assert_eq!(records(&snapshot), truth[revision.get() as usize], "{what}: at {revision}");
    }
    // It goes on, through another restart.
    let next = put(&store, "after", "crash").await;
    assert_eq!(next, current.next(), "{what}");
    store.compact(next).await.unwrap();
    store.close().await;
    let store = open(memory).unwrap_or_else(|error| panic!("{what}, again: {error:?}"));
    assert_eq!(store.current_revision(), next, "{what}");
    assert_eq!(latest(&store).await.get(&"after".into()).unwrap().value, "crash", "{what}");
    store.close().await;
}

#[tokio::test]
async fn a_crash_at_any_step_loses_nothing_acknowledged() {
    let truth = truth().await;
    let undisturbed = Memory::new();
    work(&undisturbed).await;
    let steps = undisturbed.steps();
    assert!(steps > 150, "the workload takes only {steps} steps");
    for step in 1..=steps {
        let kinds = [Survives::Synced, Survives::Written, Survives::Torn, Survives::Scattered(step)];
        for survives in kinds {
            let memory = Memory::new();
            memory.crash_at(step);
            let acknowledged = work(&memory).await;
            memory.crash(survives);
            let what = format!("crash at step {step}, {survives:?}");
            check_survivor(&memory, acknowledged, &truth, &what).await;
        }
    }
}

#[tokio::test]
async fn a_crash_during_recovery_loses_nothing() {
    let truth = truth().await;
    for step in 1..=12 {
        let memory = Memory::new();
        memory.crash_at(120);
        let acknowledged = work(&memory).await;
        memory.crash(Survives::Torn);
        memory.crash_at(memory.steps() + step);
        if let Ok(store) = open(&memory) {
            store.close().await;
        }
        memory.crash(Survives::Torn);
        check_survivor(&memory, acknowledged, &truth, &format!("recovery, step {step}")).await;
    }
}

#[tokio::test]
async fn a_failed_write_or_sync_stops_the_store_until_it_is_opened_again() {
    for fault in [Fault::FailedWrite, Fault::TornWrite, Fault::FailedSync] {
        let memory = Memory::new();
        let store = open(&memory).unwrap();
        let mut watch = store.watch(KeyRange::all(), From::Now).unwrap();
        put(&store, "a", "1").await;
        store.maintain().await.unwrap();
        let before = records(&latest(&store).await);
        memory.inject(fault);
        let large = Value::plain(vec![b'2'; 2000]);
        let failed = store.commit(Txn::new().put("a", large)).await;
        assert!(matches!(&failed, Err(CommitError::Engine(error)) if error.class() == Class::Terminal));
        let refused = store.commit(Txn::new().put("a", plain("3"))).await;
        assert!(matches!(refused, Err(CommitError::Engine(EngineError::Stopped { .. }))), "{fault:?}");
        assert_eq!(records(&latest(&store).await), before, "reads go on, of what is durable");
        let mut seen = Seen::new(KeyRange::all(), Revision::ZERO);
        seen.read_to(&mut watch, Revision::new(1)).await;
        assert!(watch.try_next().unwrap().is_none(), "no watcher sees what is not durable");
        store.close().await;
        memory.crash(Survives::Torn);
        let store = open(&memory).unwrap();
        assert_eq!(records(&latest(&store).await), before, "{fault:?}");
        assert_eq!(put(&store, "a", "4").await, Revision::new(2));
        store.close().await;
    }
}

#[tokio::test]
async fn a_failed_checkpoint_is_written_later() {
    let memory = Memory::new();
    let store = open(&memory).unwrap();
    let mut numbers = Numbers(9);
    for _ in 0..100 {
        memory.inject(Fault::FailedCheckpoint);
        commit(&store, numbers.txn()).await;
    }
    let want = records(&latest(&store).await);
    store.close().await;
    memory.crash(Survives::Synced);
    let store = open(&memory).unwrap();
    assert_eq!(records(&latest(&store).await), want);
    let before = store.stats().log_bytes;
    store.compact(store.current_revision()).await.unwrap();
    assert!(store.stats().log_bytes < before, "covered segments are given back");
    store.close().await;
    let store = open(&memory).unwrap();
    assert_eq!(records(&latest(&store).await), want);
    store.close().await;
}

#[tokio::test]
async fn a_full_disk_takes_deletes_and_comes_back() {
    let memory = Memory::new();
    let store = open(&memory).unwrap();
    store.maintain().await.unwrap();
    memory.set_room(Some(memory.used() + 120_000));
    let mut stored = Vec::new();
    let refused = loop {
        let key = format!("k{}", stored.len());
        match store.commit(Txn::new().put(key.as_str(), Value::plain(vec![1; 1000]))).await {
            Ok(_) => stored.push(key),
            Err(error) => break error,
        }
        assert!(stored.len() < 200, "the disk never fills");
    };
    assert!(
        matches!(refused, CommitError::NoSpace { needed, missing: Some(1..) } if needed >= 1000),
        "{refused}"
    );
    assert_eq!(refused.class(), Class::Transient);
    assert_eq!(latest(&store).await.count(&KeyRange::all()), stored.len(), "reads go on");
    for key in &stored {
        commit(&store, Txn::new().when(key.as_str(), Condition::Present).delete(key.as_str())).await;
    }
    store.compact(store.current_revision()).await.unwrap();
    put(&store, "again", "there is room").await;
    store.close().await;
    let store = open(&memory).unwrap();
    assert_eq!(latest(&store).await.count(&KeyRange::all()), 1);
    store.close().await;
}

/// A store with some history, closed; and what it held.
async fn written() -> (Memory, Vec<Arc<Record>>) {
    let memory = Memory::new();
    let store = open(&memory).unwrap();
    let mut numbers = Numbers(3);
    for _ in 0..30 {
        commit(&store, numbers.txn()).await;
    }
    let want = records(&latest(&store).await);
    store.close().await;
    (memory, want)
}

#[tokio::test]
async fn a_flipped_bit_is_found_and_named() {
    let (memory, _) = written().await;
    let logs: Vec<_> = memory.files().into_iter().filter(|(name, _)| name.ends_with(".log")).collect();
    assert!(logs.len() > 1);
    let (name, length) = logs.last().unwrap();
    // The title, and the first group: there are groups after it.
    for byte in [20, 550] {
        assert!(byte < *length && memory.flip_bit(name, byte));
        match open(&memory).err() {
            Some(OpenError::Engine(error @ EngineError::Corrupt { .. })) => {
                assert_eq!(error.class(), Class::Corrupt);
                let EngineError::Corrupt { file, offset, .. } = &error else { continue };
                assert_eq!((file, *offset), (name, byte / 512 * 512), "{error}");
                let text = error.to_string();
                assert!(byte < 512 || text.contains("of it is flipped") && text.contains("key k"), "{text}");
            }
            other => panic!("byte {byte}: {other:?}"),
        }
        assert!(memory.flip_bit(name, byte), "and back");
        memory.crash(Survives::Synced);
        open(&memory).unwrap().close().await;
    }
}

#[tokio::test]
async fn a_log_without_room_for_its_title_is_damaged_not_unreadable() {
    for length in [0, 100, 511] {
        let (memory, _) = written().await;
        let logs: Vec<_> = memory.files().into_iter().filter(|(name, _)| name.ends_with(".log")).collect();
        let (name, _) = logs.last().unwrap();
        assert!(memory.cut(name, length));
        match open(&memory).err() {
            Some(OpenError::Engine(EngineError::Corrupt { file, offset: 0, .. })) => assert_eq!(&file, name),
            other => panic!("{length}: {other:?}"),
        }
    }
}

#[tokio::test]
async fn damage_never_passes_for_data() {
    let (pristine, want) = written().await;
    let store = open(&pristine).unwrap();
    let current = store.current_revision();
    store.close().await;
    let files = pristine.files();
    let (name, length) = files.iter().rfind(|(name, _)| name.ends_with(".log")).unwrap();
    let mut outcomes: BTreeMap<&str, u32> = BTreeMap::new();
    for byte in (0..*length).step_by(37) {
        let (memory, _) = written().await;
        memory.flip_bit(name, byte);
        let outcome = match open(&memory) {
            Err(OpenError::Engine(EngineError::Corrupt { .. })) => "reported",
            Err(other) => panic!("byte {byte}: {other}"),
            Ok(store) => {
                assert_eq!(store.current_revision(), current, "byte {byte}: taken for torn");
                assert_eq!(records(&latest(&store).await), want, "byte {byte}");
                store.close().await;
                "padding"
            }
        };
        *outcomes.entry(outcome).or_default() += 1;
    }
    assert!(outcomes["reported"] > 10, "{outcomes:?}");
}

#[tokio::test]
async fn a_transaction_is_whole_for_readers_watchers_and_after_a_crash() {
    let memory = Memory::new();
    let store = open(&memory).unwrap();
    let mut watch = store.watch(KeyRange::all(), From::Now).unwrap();
    let txn = Txn::new().put("a", plain("1")).put("b", plain("1")).put("c", plain("1"));
    let done = commit(&store, txn).await;
    let mut seen = Seen::new(KeyRange::all(), Revision::ZERO);
    seen.read_to(&mut watch, done.revision).await;
    let [transaction]: &[Arc<Transaction>] = &seen.transactions[..] else { panic!("one transaction") };
    assert_eq!(transaction.changes.len(), 3);
    let live = latest(&store).await.get(&"a".into()).unwrap();
    assert!(Arc::ptr_eq(transaction.changes[0].record.as_ref().unwrap(), &live), "one record for all");
    memory.crash(Survives::Synced);
    let store = open(&memory).unwrap();
    assert_eq!(latest(&store).await.count(&KeyRange::all()), 3);
    store.close().await;
}
