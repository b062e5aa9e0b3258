//! Config: what a store may be told when it is opened, and the clock it takes time from.
//! Knows nothing of engines' files; no other module reads a clock.

use std::fmt;
use std::sync::Arc;
use std::time::{Duration, SystemTime};

/// Where the store takes the time of transactions from.
pub trait Clock: Send + Sync {
    /// The time now.
    fn now(&self) -> SystemTime;
}

/// The machine's clock.
#[derive(Clone, Copy, Debug, Default)]
pub struct SystemClock;

impl Clock for SystemClock {
    fn now(&self) -> SystemTime {
        SystemTime::now()
    }
}

/// Settings of a store. `Config::default()` suits a control plane of any size on one machine.
#[derive(Clone)]
pub struct Config {
    /// How long history is kept at least. Default 5 minutes.
    pub history: Duration,
    /// How many of the newest transactions are kept at least, however old. Default 1,000.
    pub history_transactions: u64,
    /// Most transactions kept in memory for watchers; older ones are read from disk. Default 8,192.
    pub ring_transactions: usize,
    /// Most bytes of transactions kept in memory for watchers. Default 16 MiB.
    pub ring_bytes: usize,
    /// Size of a log segment in bytes; less on a disk that is smaller than 64 segments. Default 16 MiB; servers with a
    /// high write rate want 64 MiB.
    pub segment_bytes: u64,
    /// A new log segment begins with a copy of the whole state if that is at most so many bytes: such
    /// a store opens from its log alone. Default 2 MiB; never more than an eighth of a segment.
    pub base_bytes: u64,
    /// The checkpoint is brought up to date when so many bytes of log are not in it, or as many as the state has if
    /// that is more. Default 8 MiB.
    pub checkpoint_bytes: u64,
    /// Where the time of transactions comes from. Default: the machine's clock.
    pub clock: Arc<dyn Clock>,
}

impl Default for Config {
    fn default() -> Self {
        Config {
            history: Duration::from_secs(300),
            history_transactions: 1_000,
            ring_transactions: 8_192,
            ring_bytes: 16 << 20,
            segment_bytes: 16 << 20,
            base_bytes: 2 << 20,
            checkpoint_bytes: 8 << 20,
            clock: Arc::new(SystemClock),
        }
    }
}

impl fmt::Debug for Config {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Config")
            .field("history", &self.history)
            .field("history_transactions", &self.history_transactions)
            .field("ring_transactions", &self.ring_transactions)
            .field("ring_bytes", &self.ring_bytes)
            .field("segment_bytes", &self.segment_bytes)
            .field("base_bytes", &self.base_bytes)
            .field("checkpoint_bytes", &self.checkpoint_bytes)
            .finish_non_exhaustive()
    }
}
