//! What a queue shows to people and to metrics: counts, and its keys with their states. Changes nothing.

use std::time::Duration;

use strata_plan::controller::Key;

use super::{Item, Moment, Queue, State, Wake};

/// One key, for people.
#[derive(Clone, Debug, serde::Serialize)]
#[serde(rename_all = "camelCase")]
pub struct KeyState {
    /// Key.
    pub key: String,
    /// `ready`, `delayed`, `running`, `waiting for cache`, `failed`, `damped` (it fights with another writer).
    pub state: &'static str,
    /// Seconds in this state; until it is due, where delayed.
    pub seconds: f64,
    /// Failures in a row.
    pub failures: u32,
    /// Why it is here.
    pub reasons: String,
    /// The last failure, if any.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub error: String,
}

/// Counts since the start, and the present.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    /// Ready keys.
    pub depth: usize,
    /// Keys that wait for a moment.
    pub delayed: usize,
    /// Keys that wait for the cache.
    pub parked: usize,
    /// Keys that run.
    pub running: usize,
    /// Additions.
    pub adds: u64,
    /// Additions of a key that was there already.
    pub dedups: u64,
    /// Failures that will be tried again.
    pub retries: u64,
    /// Failures that will not.
    pub terminal: u64,
}

impl Queue {
    /// How long the oldest ready key has waited.
    pub fn oldest(&self, now: Moment) -> Duration {
        let first = [self.live.first_key_value(), self.background.first_key_value()];
        let since =
            first.into_iter().flatten().filter_map(|(_, key)| self.items.get(key)).map(|i| i.since).min();
        since.map_or(Duration::ZERO, |since| now.saturating_sub(since))
    }

    /// Counts.
    pub fn counts(&self) -> Counts {
        Counts {
            depth: self.live.len() + self.background.len(),
            delayed: self.delayed.len(),
            parked: self.parked,
            running: self.running,
            adds: self.adds,
            dedups: self.dedups,
            retries: self.retries,
            terminal: self.terminal,
        }
    }

    /// The key that is shown so.
    pub fn find(&self, text: &str) -> Option<&Key> {
        self.items.keys().find(|key| key.to_string() == text)
    }

    /// At most `limit` keys, in order, for people.
    pub fn keys(&self, now: Moment, limit: usize) -> Vec<KeyState> {
        let mut keys: Vec<(&Key, &Item)> =
            self.items.iter().filter(|(_, i)| i.state != State::Idle).collect();
        keys.sort_by_key(|(key, _)| *key);
        keys.into_iter().take(limit).map(|(key, item)| item.describe(key, now)).collect()
    }
}

impl Item {
    fn describe(&self, key: &Key, now: Moment) -> KeyState {
        let age = now.saturating_sub(self.since).as_secs_f64();
        let (state, seconds) = match self.state {
            State::Ready(..) => ("ready", age),
            State::Running => ("running", age),
            State::Parked(_) => ("waiting for cache", age),
            State::Idle => ("idle", age),
            State::Delayed(at, _, Wake::Damped) => ("damped", at.saturating_sub(now).as_secs_f64()),
            State::Delayed(at, _, Wake::Terminal) => ("failed", at.saturating_sub(now).as_secs_f64()),
            State::Delayed(at, _, _) => ("delayed", at.saturating_sub(now).as_secs_f64()),
        };
        KeyState {
            key: key.to_string(),
            state,
            seconds,
            failures: self.failures,
            reasons: self.reasons.to_string(),
            error: self.error.clone(),
        }
    }
}
