//! What the store's test suites share: sites to open stores at, a clock that is moved by hand, a writer
//! of random transactions, and the promises of a watch as named checks.

#![allow(dead_code, reason = "each suite uses a part of it")]
#![allow(clippy::unwrap_used, reason = "a test that cannot go on panics")]

#[cfg(feature = "etcd")]
pub mod etcd;
pub mod mount;
pub mod promises;
pub mod writer;

use std::path::PathBuf;
use std::sync::{Arc, Mutex, OnceLock};
use std::time::{Duration, SystemTime};

use strata_store::config::{Clock, Config};
use strata_store::engine::memory::Memory;
use strata_store::revision::Revision;
use strata_store::store::{EngineChoice, Store};
use strata_store::txn::{Committed, Txn, Value};
use strata_store::watch::{Watch, WatchItem};

/// Longest that a test waits for anything.
pub const LIMIT: Duration = Duration::from_secs(20);

/// A clock that is moved by hand.
#[derive(Clone)]
pub struct HandClock(Arc<Mutex<SystemTime>>);

impl HandClock {
    pub fn new() -> Self {
        HandClock(Arc::new(Mutex::new(SystemTime::UNIX_EPOCH + Duration::from_secs(1_000_000))))
    }

    pub fn advance(&self, by: Duration) {
        *self.0.lock().unwrap() += by;
    }
}

impl Clock for HandClock {
    fn now(&self) -> SystemTime {
        *self.0.lock().unwrap()
    }
}

/// A place where a store can be opened again and again.
pub struct Site {
    pub name: &'static str,
    pub config: Config,
    pub clock: HandClock,
    pub engine: EngineChoice,
    /// The revision at which the place was first opened.
    zero: OnceLock<Revision>,
    _directory: Option<tempfile::TempDir>,
}

impl Site {
    pub fn memory(name: &'static str, config: Config) -> Site {
        Site::new(name, config, EngineChoice::Memory(Memory::new()), None)
    }

    pub fn sled(name: &'static str, config: Config) -> Site {
        let directory = tempfile::tempdir().unwrap();
        let engine = EngineChoice::Sled { directory: directory.path().join("store") };
        Site::new(name, config, engine, Some(directory))
    }

    fn new(
        name: &'static str,
        mut config: Config,
        engine: EngineChoice,
        dir: Option<tempfile::TempDir>,
    ) -> Site {
        let clock = HandClock::new();
        config.clock = Arc::new(clock.clone());
        Site { name, config, clock, engine, zero: OnceLock::new(), _directory: dir }
    }

    #[cfg(feature = "etcd")]
    pub fn etcd(name: &'static str, config: Config, cluster: &etcd::Cluster) -> Site {
        Site::new(name, config, EngineChoice::Etcd(cluster.store()), None)
    }

    pub fn open(&self) -> Store {
        let store = Store::open(self.config.clone(), self.engine.clone()).unwrap();
        self.zero.get_or_init(|| store.current_revision());
        store
    }

    /// The revision of so many transactions after the place was first opened.
    pub fn at(&self, transactions: u64) -> Revision {
        Revision::new(self.zero.get().unwrap().get() + transactions)
    }

    /// Whether several stores may have it open.
    pub fn is_shared(&self) -> bool {
        !matches!(self.engine, EngineChoice::Memory(_) | EngineChoice::Sled { .. })
    }

    pub fn directory(&self) -> PathBuf {
        match &self.engine {
            EngineChoice::Sled { directory } => directory.clone(),
            _ => panic!("no directory"),
        }
    }
}

/// A config in which everything that happens rarely happens all the time: short segments, bases only of
/// tiny states, checkpoints, a ring that watchers fall out of.
pub fn tiny() -> Config {
    Config {
        history_transactions: 5,
        ring_transactions: 8,
        ring_bytes: 4 << 10,
        segment_bytes: 8 << 10,
        base_bytes: 600,
        checkpoint_bytes: 6 << 10,
        ..Config::default()
    }
}

pub fn plain(text: &str) -> Value {
    Value::plain(text.to_owned())
}

pub async fn put(store: &Store, key: &str, value: &str) -> Revision {
    commit(store, Txn::new().put(key, plain(value))).await.revision
}

pub async fn commit(store: &Store, txn: Txn) -> Committed {
    tokio::time::timeout(LIMIT, store.commit(txn)).await.expect("a commit hangs").unwrap()
}

pub async fn next(watch: &mut Watch) -> WatchItem {
    tokio::time::timeout(LIMIT, watch.next()).await.expect("a watch hangs").unwrap()
}

/// A small deterministic source of numbers.
pub struct Numbers(pub u64);

impl Numbers {
    pub fn below(&mut self, bound: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0 % bound
    }

    /// A transaction over keys `k0`..`k19`, one to three of them, some deletes, values of some size.
    pub fn txn(&mut self) -> Txn {
        let mut txn = Txn::new().cause(format!("cause {}", self.below(100)));
        let (first, count) = (self.below(20), 1 + self.below(3));
        for at in 0..count {
            let key = format!("k{}", (first + at * 7) % 20);
            let size = self.below(300) as usize;
            txn = match self.below(4) {
                0 => txn.delete(key),
                1 => txn.put(key, Value::stamped(vec![b'a'; size], size as u32 / 2)),
                _ => txn.put(key, Value::plain(vec![b'b'; size])),
            };
        }
        txn
    }
}
