//! Decides what becomes of something that is to be told: a new Event, a higher count on one that is there, or nothing
//! where an object talks too much. Pure and bounded.

use std::collections::{BTreeMap, HashMap};
use std::time::Duration;

use crate::queue::Moment;

/// Most different events that are remembered.
pub const MAX_REMEMBERED: usize = 1024;
/// How many events an object may have at once, and how long until one more, as in client-go.
pub const BURST: f64 = 25.0;
/// Seconds for one more.
pub const REFILL: Duration = Duration::from_secs(300);

/// What makes two events equal.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Same {
    /// Identity of the object.
    pub uid: String,
    /// Whether it is a warning.
    pub warning: bool,
    /// Word.
    pub reason: String,
    /// Sentence.
    pub message: String,
}

/// What to do.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Tell {
    /// A new Event.
    New,
    /// Raise the count of the Event of this name.
    Again {
        /// Name of the Event.
        name: String,
        /// The new count.
        count: u32,
    },
    /// Nothing: the object talks too much.
    Nothing,
}

#[derive(Debug)]
struct Known {
    name: String,
    count: u32,
    used: u64,
}

#[derive(Debug)]
struct Bucket {
    tokens: f64,
    filled: Moment,
    used: u64,
}

/// Remembers what was told.
#[derive(Debug, Default)]
pub struct Correlator {
    known: HashMap<Same, Known>,
    by_use: BTreeMap<u64, Same>,
    buckets: HashMap<String, Bucket>,
    buckets_by_use: BTreeMap<u64, String>,
    clock: u64,
}

impl Correlator {
    /// What to do about an event.
    pub fn tell(&mut self, same: &Same, now: Moment) -> Tell {
        if !self.spend(&same.uid, now) {
            return Tell::Nothing;
        }
        self.clock += 1;
        let Some(known) = self.known.get_mut(same) else { return Tell::New };
        known.count = known.count.saturating_add(1);
        self.by_use.remove(&known.used);
        known.used = self.clock;
        self.by_use.insert(self.clock, same.clone());
        Tell::Again { name: known.name.clone(), count: known.count }
    }

    /// A new Event was stored under this name.
    pub fn told(&mut self, same: Same, name: String) {
        self.clock += 1;
        if let Some(old) = self.known.insert(same.clone(), Known { name, count: 1, used: self.clock }) {
            self.by_use.remove(&old.used);
        }
        self.by_use.insert(self.clock, same);
        while self.known.len() > MAX_REMEMBERED {
            let Some((_, oldest)) = self.by_use.pop_first() else { break };
            self.known.remove(&oldest);
        }
    }

    /// The Event is no longer there (they expire).
    pub fn forget(&mut self, same: &Same) {
        if let Some(known) = self.known.remove(same) {
            self.by_use.remove(&known.used);
        }
    }

    fn spend(&mut self, uid: &str, now: Moment) -> bool {
        self.clock += 1;
        let used = self.clock;
        let bucket =
            self.buckets.entry(uid.to_owned()).or_insert(Bucket { tokens: BURST, filled: now, used: 0 });
        let passed = now.saturating_sub(bucket.filled).as_secs_f64();
        bucket.tokens = (bucket.tokens + passed / REFILL.as_secs_f64()).min(BURST);
        bucket.filled = now;
        self.buckets_by_use.remove(&bucket.used);
        bucket.used = used;
        let allowed = bucket.tokens >= 1.0;
        if allowed {
            bucket.tokens -= 1.0;
        }
        self.buckets_by_use.insert(used, uid.to_owned());
        while self.buckets.len() > MAX_REMEMBERED {
            let Some((_, oldest)) = self.buckets_by_use.pop_first() else { break };
            self.buckets.remove(&oldest);
        }
        allowed
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn same(n: usize) -> Same {
        Same { uid: "u".into(), warning: false, reason: "R".into(), message: n.to_string() }
    }

    #[test]
    fn equal_events_are_counted_and_forgotten_ones_are_new() {
        let mut correlator = Correlator::default();
        assert_eq!(correlator.tell(&same(1), Moment::ZERO), Tell::New);
        correlator.told(same(1), "e".into());
        assert_eq!(correlator.tell(&same(1), Moment::ZERO), Tell::Again { name: "e".into(), count: 2 });
        assert_eq!(correlator.tell(&same(2), Moment::ZERO), Tell::New);
        correlator.forget(&same(1));
        assert_eq!(correlator.tell(&same(1), Moment::ZERO), Tell::New);
    }

    #[test]
    fn an_object_that_talks_too_much_is_stopped_and_may_talk_again_later() {
        let mut correlator = Correlator::default();
        let told = (0..100).filter(|n| correlator.tell(&same(*n), Moment::ZERO) == Tell::New).count();
        assert_eq!(told, 25);
        assert_eq!(correlator.tell(&same(0), REFILL * 2), Tell::New);
    }

    #[test]
    fn memory_is_bounded() {
        let mut correlator = Correlator::default();
        for n in 0..MAX_REMEMBERED * 2 {
            let same = Same { uid: n.to_string(), ..same(n) };
            correlator.tell(&same, Moment::ZERO);
            correlator.told(same, "e".into());
        }
        assert_eq!(correlator.known.len(), MAX_REMEMBERED);
        assert_eq!(correlator.by_use.len(), MAX_REMEMBERED);
        assert_eq!(correlator.buckets.len(), MAX_REMEMBERED);
        assert_eq!(correlator.buckets_by_use.len(), MAX_REMEMBERED);
    }
}
