//! The store against a model: a map for each revision. Random transactions, reads, watches, compaction,
//! restarts and crashes must never tell the two apart.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on panics")]

mod support;

use std::collections::BTreeMap;

use proptest::collection::vec;
use proptest::prelude::*;
use proptest::sample::select;

use strata_store::config::Config;
use strata_store::engine::crash::Survives;
use strata_store::engine::memory::Memory;
use strata_store::error::{CommitError, ReadError, WatchError};
use strata_store::key::{Key, KeyRange};
use strata_store::revision::Revision;
use strata_store::snapshot::ReadAt;
use strata_store::store::{EngineChoice, Store};
use strata_store::txn::{Condition, Mutation, Txn, Value};
use strata_store::watch::{From, WatchItem};

use support::{next, tiny};

#[derive(Clone, Debug)]
enum Step {
    /// Conditions name how far back the revision that they expect lies.
    Commit {
        conditions: Vec<(u8, Expect)>,
        changes: BTreeMap<u8, Option<(u16, bool)>>,
    },
    ReadAt(u64),
    WatchAfter(u64, u8),
    Compact(u64),
    Maintain,
    Restart,
    Crash(Survives),
}

#[derive(Clone, Copy, Debug)]
enum Expect {
    Absent,
    Present,
    AtCurrent,
    AtZero,
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let key = 0u8..12;
    let expect = select(vec![Expect::Absent, Expect::Present, Expect::AtCurrent, Expect::AtZero]);
    let change = proptest::option::weighted(0.7, (0u16..700, any::<bool>()));
    let changes = proptest::collection::btree_map(key.clone(), change, 0..4);
    let commit = (vec((key.clone(), expect), 0..2), changes)
        .prop_map(|(conditions, changes)| Step::Commit { conditions, changes });
    let survives = select(vec![Survives::Synced, Survives::Written, Survives::Torn]);
    let step = prop_oneof![
        20 => commit,
        3 => (0u64..30).prop_map(Step::ReadAt),
        3 => (0u64..30, key).prop_map(|(back, key)| Step::WatchAfter(back, key)),
        1 => (0u64..20).prop_map(Step::Compact),
        1 => Just(Step::Maintain),
        1 => Just(Step::Restart),
        1 => survives.prop_map(Step::Crash),
    ];
    vec(step, 1..120)
}

/// Key to value, creation and modification.
type ModelState = BTreeMap<Key, (Vec<u8>, u64, u64)>;

/// One map a revision.
struct Model {
    states: Vec<ModelState>,
}

impl Model {
    fn current(&self) -> &ModelState {
        &self.states[self.states.len() - 1]
    }

    fn revision(&self) -> u64 {
        self.states.len() as u64 - 1
    }

    /// Whether the transaction's conditions hold; if so it is applied.
    fn commit(&mut self, txn: &Txn) -> bool {
        let mut state = self.current().clone();
        let holds = txn.conditions.iter().all(|(key, condition)| match condition {
            Condition::Absent => !state.contains_key(key),
            Condition::Present => state.contains_key(key),
            Condition::At(revision) => state.get(key).is_some_and(|(_, _, at)| *at == revision.get()),
        });
        let revision = self.revision() + 1;
        let mut changed = false;
        for mutation in txn.mutations.iter().filter(|_| holds) {
            match mutation {
                Mutation::Put(key, value) => {
                    let mut bytes = value.bytes.to_vec();
                    if let Some(offset) = value.stamp {
                        let at = offset as usize;
                        bytes.splice(at..at, revision.to_string().into_bytes());
                    }
                    let created = state.get(key).map_or(revision, |(_, created, _)| *created);
                    state.insert(key.clone(), (bytes, created, revision));
                    changed = true;
                }
                Mutation::Delete(key) => changed |= state.remove(key).is_some(),
            }
        }
        if changed {
            self.states.push(state);
        }
        holds
    }
}

fn key(number: u8) -> Key {
    Key::from(format!("key/{number:02}"))
}

fn txn(model: &Model, conditions: &[(u8, Expect)], changes: &BTreeMap<u8, Option<(u16, bool)>>) -> Txn {
    let mut txn = Txn::new().cause("model");
    for (number, expect) in conditions {
        let current = model.current().get(&key(*number)).map_or(0, |(_, _, at)| *at);
        txn = txn.when(
            key(*number),
            match expect {
                Expect::Absent => Condition::Absent,
                Expect::Present => Condition::Present,
                Expect::AtCurrent => Condition::At(Revision::new(current)),
                Expect::AtZero => Condition::At(Revision::ZERO),
            },
        );
    }
    for (number, change) in changes {
        txn = match change {
            None => txn.delete(key(*number)),
            Some((size, false)) => txn.put(key(*number), Value::plain(vec![b'.'; *size as usize])),
            Some((size, true)) => {
                txn.put(key(*number), Value::stamped(vec![b'.'; *size as usize], u32::from(*size) / 3))
            }
        };
    }
    txn
}

async fn check_read(store: &Store, model: &Model, at: u64) {
    let oldest = store.oldest_revision().get();
    match store.snapshot(ReadAt::Exact(Revision::new(at))).await {
        Err(ReadError::Compacted { .. }) => assert!(at < oldest),
        Err(other) => panic!("{other}"),
        Ok(snapshot) => {
            let range = KeyRange::all();
            let have: ModelState = snapshot
                .range(&range, None)
                .map(|r| (r.key.clone(), (r.value.to_vec(), r.created.get(), r.modified.get())))
                .collect();
            assert_eq!(&have, &model.states[at as usize], "at revision {at}");
        }
    }
}

async fn check_watch(store: &Store, model: &Model, after: u64, prefix: u8) {
    let range = KeyRange::prefix(format!("key/{}", prefix / 10));
    let mut watch = match store.watch(range.clone(), From::After(Revision::new(after))) {
        Ok(watch) => watch,
        Err(WatchError::Compacted { oldest }) => return assert!(after < oldest.get()),
        Err(other) => panic!("{other}"),
    };
    let current = Revision::new(model.revision());
    watch.announce(current);
    let mut state = model.states[after as usize].clone();
    let mut at = after;
    loop {
        match next(&mut watch).await {
            WatchItem::Transaction(transaction) => {
                at = transaction.revision.get();
                for change in transaction.changes_in(&range) {
                    let before = state.get(&change.key).map(|(value, _, at)| (value.clone(), *at));
                    let told = change.previous.as_ref().map(|r| (r.value.to_vec(), r.modified.get()));
                    assert_eq!(told, before, "previous of {} at {at}", change.key);
                    match &change.record {
                        Some(r) => state.insert(
                            change.key.clone(),
                            (r.value.to_vec(), r.created.get(), r.modified.get()),
                        ),
                        None => state.remove(&change.key),
                    };
                }
            }
            WatchItem::Progress(revision) if revision >= current => break,
            WatchItem::Progress(_) => {}
            WatchItem::Initial(_) => panic!("not asked for"),
        }
        let in_range = |state: &ModelState| -> ModelState {
            state.clone().into_iter().filter(|(key, _)| range.contains(key)).collect()
        };
        assert_eq!(in_range(&state), in_range(&model.states[at as usize]), "watched to {at}");
    }
    let wanted: Vec<_> = model.current().iter().filter(|(key, _)| range.contains(key)).collect();
    let have: Vec<_> = state.iter().filter(|(key, _)| range.contains(key)).collect();
    assert_eq!(have, wanted);
}

async fn run(steps: Vec<Step>, config: Config) {
    let memory = Memory::new();
    let open = || Store::open(config.clone(), EngineChoice::Memory(memory.clone())).unwrap();
    let mut store = open();
    let mut model = Model { states: vec![ModelState::new()] };
    for step in steps {
        match step {
            Step::Commit { conditions, changes } => {
                let txn = txn(&model, &conditions, &changes);
                let holds = model.commit(&txn);
                match store.commit(txn).await {
                    Ok(done) => assert!(holds && done.revision.get() == model.revision()),
                    Err(CommitError::Failed { .. }) => assert!(!holds),
                    Err(other) => panic!("{other}"),
                }
            }
            Step::ReadAt(back) => check_read(&store, &model, model.revision().saturating_sub(back)).await,
            Step::WatchAfter(back, prefix) => {
                check_watch(&store, &model, model.revision().saturating_sub(back), prefix).await;
            }
            Step::Compact(back) => {
                let below = Revision::new(model.revision().saturating_sub(back));
                assert!(store.compact(below).await.unwrap() >= below);
            }
            Step::Maintain => store.maintain().await.unwrap(),
            Step::Restart => {
                store.close().await;
                store = open();
            }
            Step::Crash(survives) => {
                memory.crash(survives);
                store = open();
            }
        }
        assert_eq!(store.current_revision().get(), model.revision());
        assert_eq!(store.stats().keys, model.current().len() as u64);
    }
    for at in store.oldest_revision().get()..=model.revision() {
        check_read(&store, &model, at).await;
    }
    store.close().await;
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 96, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn the_store_is_its_model(steps in steps()) {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        runtime.block_on(run(steps, tiny()));
    }
}
