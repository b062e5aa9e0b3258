//! The work queue. It holds keys, never events, and makes these promises:
//!
//! 1. A key is in it once, and runs once at a time; one added while it runs runs again afterwards.
//! 2. Nothing is lost: a key leaves only by success, and comes back by itself after a failure.
//! 3. Live changes go before what was found at start, but neither starves the other: of [`LIVE_IN_A_ROW`] + 1 keys
//!    taken while both wait, one is of the background.
//! 4. A key that wrote does not run before the cache has seen what it wrote (the freshness barrier).
//! 5. Failures wait exponentially longer; a change runs the key at once.
//! 6. A key that fights with another writer pauses, and no change hurries it.
//!
//! No IO, no clock, no randomness: time is a [`Moment`], randomness a number.

pub mod shown;

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::time::Duration;

use strata_model::object::ObjectKey;
use strata_model::resource::GroupResource;
use strata_plan::controller::Key;

use crate::backoff::{self, Bucket};
use crate::barrier::{self, Barrier};
use crate::reason::{Reason, Reasons, Why};

/// Time since the process started.
pub type Moment = Duration;

/// How many live keys may be taken in a row while background keys wait.
pub const LIVE_IN_A_ROW: u32 = 7;
/// When a key that failed for good is looked at again without a change: a check, not the mechanism.
pub const TERMINAL_RECHECK: Duration = Duration::from_secs(600);

/// How urgent a key is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Priority {
    /// Something changed.
    Live,
    /// First list, resync.
    Background,
}

/// A key to be reconciled now.
#[derive(Clone, Debug)]
pub struct Job {
    /// Which.
    pub key: Key,
    /// 1 for the first try since the last success.
    pub attempt: u32,
    /// Why.
    pub reasons: Reasons,
    /// How long it was ready.
    pub waited: Duration,
}

/// How a reconcile ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum End {
    /// It did what was to be done; look again at the moment given, if any.
    Settled(Option<Moment>),
    /// It failed, and trying again may help.
    Failed(String),
    /// It failed, and nothing changes that but a change.
    Terminal(String),
    /// It did what was to be done, but another writer undoes it: nothing runs the key before that moment.
    Damped(Moment, String),
    /// It was broken off by us (shutdown): as if it had not been tried.
    Drained,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    Ready(Priority, u64),
    Delayed(Moment, u64, Wake),
    Running,
    /// It is due, but its barriers are not passed.
    Parked(Priority),
    /// Nothing to do; kept only for its barriers.
    Idle,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Wake {
    Timer,
    Backoff,
    Terminal,
    Damped,
}

#[derive(Clone, Debug)]
struct Item {
    state: State,
    since: Moment,
    failures: u32,
    reasons: Reasons,
    /// Added while running.
    dirty: Option<Priority>,
    barriers: BTreeSet<Barrier>,
    error: String,
}

/// The queue.
#[derive(Debug, Default)]
pub struct Queue {
    items: HashMap<Key, Item>,
    live: BTreeMap<u64, Key>,
    background: BTreeMap<u64, Key>,
    delayed: BTreeMap<(Moment, u64), Key>,
    /// Keys by what they wait for. Holds every barrier of every item.
    revisions: BTreeMap<(GroupResource, u64), BTreeSet<Key>>,
    objects: BTreeMap<(GroupResource, ObjectKey), BTreeSet<Key>>,
    sequence: u64,
    live_in_a_row: u32,
    running: usize,
    parked: usize,
    adds: u64,
    dedups: u64,
    retries: u64,
    terminal: u64,
    bucket: Bucket,
}

impl Queue {
    /// An empty queue.
    pub fn new() -> Self {
        Self::default()
    }

    fn next_sequence(&mut self) -> u64 {
        self.sequence += 1;
        self.sequence
    }

    /// Adds a key, or another reason to one that is here.
    pub fn add(&mut self, key: Key, priority: Priority, reason: Reason, now: Moment) {
        self.adds += 1;
        let Some(item) = self.items.get_mut(&key) else {
            let mut reasons = Reasons::default();
            reasons.add(reason);
            let item = Item {
                state: State::Idle,
                since: now,
                failures: 0,
                reasons,
                dirty: None,
                barriers: BTreeSet::new(),
                error: String::new(),
            };
            self.items.insert(key.clone(), item);
            self.make_ready(&key, priority, now);
            return;
        };
        item.reasons.add(reason);
        match item.state {
            State::Running => {
                self.dedups += u64::from(item.dirty.is_some());
                item.dirty = Some(item.dirty.map_or(priority, |p| p.min(priority)));
            }
            State::Parked(p) => {
                self.dedups += 1;
                item.state = State::Parked(p.min(priority));
            }
            State::Ready(p, _) if p <= priority => self.dedups += 1,
            State::Ready(Priority::Background, at) => {
                self.dedups += 1;
                self.background.remove(&at);
                self.make_ready(&key, priority, now);
            }
            // What failed is not hurried by a mere look at everything.
            State::Delayed(_, _, Wake::Backoff | Wake::Terminal) if priority == Priority::Background => {
                self.dedups += 1;
            }
            // It pauses because of changes: another one is no reason to go on.
            State::Delayed(_, _, Wake::Damped) => self.dedups += 1,
            State::Delayed(at, sequence, _) => {
                self.delayed.remove(&(at, sequence));
                self.make_ready(&key, priority, now);
            }
            State::Idle | State::Ready(..) => self.make_ready(&key, priority, now),
        }
    }

    fn make_ready(&mut self, key: &Key, priority: Priority, now: Moment) {
        let sequence = self.next_sequence();
        let Some(item) = self.items.get_mut(key) else { return };
        // A promoted key keeps its age.
        if !matches!(item.state, State::Ready(..)) {
            item.since = now;
        }
        item.state = State::Ready(priority, sequence);
        match priority {
            Priority::Live => self.live.insert(sequence, key.clone()),
            Priority::Background => self.background.insert(sequence, key.clone()),
        };
    }

    /// Takes the next key that may run. The caller must answer with [`Queue::done`].
    pub fn pop(&mut self, now: Moment) -> Option<Job> {
        self.wake_delayed(now);
        while let Some((priority, key)) = self.take_ready() {
            let Some(item) = self.items.get_mut(&key) else { continue };
            if !item.barriers.is_empty() {
                item.state = State::Parked(priority);
                self.parked += 1;
                continue;
            }
            item.state = State::Running;
            self.running += 1;
            let waited = now.saturating_sub(item.since);
            item.since = now;
            let reasons = std::mem::take(&mut item.reasons);
            return Some(Job { attempt: item.failures.saturating_add(1), key, reasons, waited });
        }
        None
    }

    fn take_ready(&mut self) -> Option<(Priority, Key)> {
        let background_due = self.live_in_a_row >= LIVE_IN_A_ROW && !self.background.is_empty();
        if !background_due && let Some((_, key)) = self.live.pop_first() {
            self.live_in_a_row += 1;
            return Some((Priority::Live, key));
        }
        self.live_in_a_row = 0;
        let (_, key) = self.background.pop_first()?;
        Some((Priority::Background, key))
    }

    fn wake_delayed(&mut self, now: Moment) {
        while let Some(first) = self.delayed.first_entry() {
            if first.key().0 > now {
                return;
            }
            let key = first.remove();
            let Some(item) = self.items.get_mut(&key) else { continue };
            let State::Delayed(_, _, wake) = item.state else { continue };
            item.reasons.add(Reason::plain(match wake {
                Wake::Timer => Why::Timer,
                Wake::Backoff | Wake::Terminal => Why::Retry,
                Wake::Damped => Why::Other("pause over"),
            }));
            let priority = if wake == Wake::Terminal { Priority::Background } else { Priority::Live };
            self.make_ready(&key, priority, now);
        }
    }

    /// When [`Queue::pop`] may have more to give without anything else happening.
    pub fn next_due(&self) -> Option<Moment> {
        self.delayed.first_key_value().map(|((at, _), _)| *at)
    }

    /// A job is over. `barriers` are those of its writes that the cache has not passed yet; `random` is in `[0, 1)`.
    pub fn done(&mut self, job: Job, end: End, barriers: Vec<Barrier>, now: Moment, random: f64) {
        let key = job.key;
        let Some(item) = self.items.get_mut(&key) else { return };
        if item.state != State::Running {
            return;
        }
        self.running -= 1;
        item.state = State::Idle;
        item.since = now;
        let dirty = item.dirty.take();
        let delay = match end {
            End::Settled(at) => {
                item.failures = 0;
                item.error.clear();
                at.map(|at| (at, Wake::Timer))
            }
            End::Failed(error) => {
                item.failures = item.failures.saturating_add(1);
                item.error = error;
                self.retries += 1;
                let at = now + backoff::pause(item.failures, random);
                Some((self.bucket.take(at, now), Wake::Backoff))
            }
            End::Terminal(error) => {
                item.failures = item.failures.saturating_add(1);
                item.error = error;
                self.terminal += 1;
                Some((now + TERMINAL_RECHECK.mul_f64(1.0 + random / 10.0), Wake::Terminal))
            }
            End::Damped(at, why) => {
                item.failures = 0;
                item.error = why;
                Some((at, Wake::Damped))
            }
            End::Drained => {
                let newer = std::mem::replace(&mut item.reasons, job.reasons);
                item.reasons.merge(newer);
                Some((now, Wake::Backoff))
            }
        };
        for barrier in barrier::strongest(barriers) {
            self.bar(&key, barrier);
        }
        match (dirty, delay) {
            (_, Some((at, Wake::Damped))) => self.delay(&key, at, Wake::Damped),
            (Some(priority), _) => self.make_ready(&key, priority, now),
            (None, Some((at, wake))) => self.delay(&key, at, wake),
            (None, None) => self.forget_if_idle(&key),
        }
    }

    fn delay(&mut self, key: &Key, at: Moment, wake: Wake) {
        let sequence = self.next_sequence();
        if let Some(item) = self.items.get_mut(key) {
            item.state = State::Delayed(at, sequence, wake);
            self.delayed.insert((at, sequence), key.clone());
        }
    }

    fn forget_if_idle(&mut self, key: &Key) {
        if self.items.get(key).is_some_and(|i| i.state == State::Idle && i.barriers.is_empty()) {
            self.items.remove(key);
        }
    }

    fn bar(&mut self, key: &Key, barrier: Barrier) {
        let Some(item) = self.items.get_mut(key) else { return };
        match &barrier {
            Barrier::Revision(resource, revision) => {
                self.revisions.entry((resource.clone(), *revision)).or_default().insert(key.clone());
            }
            Barrier::Left { resource, key: object, .. } => {
                self.objects.entry((resource.clone(), object.clone())).or_default().insert(key.clone());
            }
        }
        item.barriers.insert(barrier);
    }

    /// The cache has seen everything of a type up to a revision.
    pub fn seen(&mut self, resource: &GroupResource, revision: u64, now: Moment) {
        let range = (resource.clone(), 0)..=(resource.clone(), revision);
        let passed: Vec<(GroupResource, u64)> = self.revisions.range(range).map(|(k, _)| k.clone()).collect();
        for place in passed {
            let barrier = Barrier::Revision(place.0.clone(), place.1);
            for key in self.revisions.remove(&place).unwrap_or_default() {
                self.lift(&key, &barrier, now);
            }
        }
    }

    /// The cache has another state of an object, or none; `passed` says whether a barrier on it holds no longer.
    pub fn touched(
        &mut self,
        resource: &GroupResource,
        object: &ObjectKey,
        now: Moment,
        passed: impl Fn(&Barrier) -> bool,
    ) {
        let place = (resource.clone(), object.clone());
        let Some(keys) = self.objects.remove(&place) else { return };
        let mut left = BTreeSet::new();
        for key in keys {
            for barrier in self.left_barriers(&key, &place) {
                match passed(&barrier) {
                    true => self.lift(&key, &barrier, now),
                    false => {
                        left.insert(key.clone());
                    }
                }
            }
        }
        if !left.is_empty() {
            self.objects.insert(place, left);
        }
    }

    /// What a key waits for of one object: few of the many barriers that it may have.
    fn left_barriers(&self, key: &Key, (resource, object): &(GroupResource, ObjectKey)) -> Vec<Barrier> {
        let Some(item) = self.items.get(key) else { return Vec::new() };
        let first = Barrier::Left {
            resource: resource.clone(),
            key: object.clone(),
            uid: String::new(),
            resource_version: None,
        };
        let here = |b: &&Barrier| matches!(b, Barrier::Left { resource: r, key: k, .. } if r == resource && k == object);
        item.barriers.range(first..).take_while(here).cloned().collect()
    }

    /// The line of revisions began anew (a server restored from a backup): no barrier on a type says anything.
    pub fn release(&mut self, resource: &GroupResource, now: Moment) {
        self.seen(resource, u64::MAX, now);
        let objects: Vec<ObjectKey> =
            self.objects.keys().filter(|(r, _)| r == resource).map(|(_, k)| k.clone()).collect();
        for object in objects {
            self.touched(resource, &object, now, |_| true);
        }
    }

    fn lift(&mut self, key: &Key, barrier: &Barrier, now: Moment) {
        let Some(item) = self.items.get_mut(key) else { return };
        item.barriers.remove(barrier);
        if !item.barriers.is_empty() {
            return;
        }
        match item.state {
            State::Parked(priority) => {
                self.parked -= 1;
                self.make_ready(key, priority, now);
            }
            _ => self.forget_if_idle(key),
        }
    }

    /// Whether keys wait for the cache.
    pub fn has_parked(&self) -> bool {
        self.parked > 0
    }

    /// Runs a key as soon as may be, whatever it waits for but the cache: somebody asked for it.
    pub fn hurry(&mut self, key: Key, now: Moment) {
        let reason = Reason::plain(Why::Other("asked for by hand"));
        if let Some(item) = self.items.get_mut(&key)
            && let State::Delayed(at, sequence, _) = item.state
        {
            item.reasons.add(reason);
            self.delayed.remove(&(at, sequence));
            return self.make_ready(&key, Priority::Live, now);
        }
        self.add(key, Priority::Live, reason, now);
    }
}

#[cfg(test)]
mod tests;
