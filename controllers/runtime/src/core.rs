//! Cache and queue together: an event goes in, and the keys that must look at it are in the queue. Pure.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;
use std::time::Duration;

use strata_client::event::Event;
use strata_model::object::ObjectKey;
use strata_model::readiness::is_ready;
use strata_model::resource::{GroupResource, ResourceType};
use strata_plan::controller::{Key, MapTo, View as _, Watched, keys_of};

use crate::barrier::Barrier;
use crate::cache::{Applied, Cache, Delta, How};
use crate::queue::{End, Job, Moment, Priority, Queue};
use crate::reason::{Reason, Why};

/// What a process knows and has to do.
#[derive(Default)]
pub struct Core {
    watched: Vec<Watched>,
    /// Objects.
    pub cache: Cache,
    /// Keys.
    pub queue: Queue,
    /// Since when roots are wished to be as they are not yet.
    converging: HashMap<Key, Moment>,
}

impl Core {
    /// A core that watches these types and knows nothing yet.
    pub fn new(watched: Vec<Watched>) -> Self {
        let cache = Cache::new(watched.iter().map(|w| w.resource.id.clone()));
        Self { watched, cache, queue: Queue::new(), converging: HashMap::new() }
    }

    /// The descriptor of a watched type.
    pub fn watched_type(&self, id: &GroupResource) -> Option<Arc<ResourceType>> {
        self.watched.iter().map(|w| &w.resource).find(|resource| resource.id == *id).cloned()
    }

    /// The key of a text as keys are shown to people: one that is in the queue, or of a watched type.
    pub fn key(&self, text: &str) -> Option<Key> {
        if let Some(key) = self.queue.find(text) {
            return Some(key.clone());
        }
        let (type_, rest) = text.split_once('/')?;
        let resource = &self.watched.iter().find(|w| w.resource.id.to_string() == type_)?.resource;
        let (namespace, name) = rest.split_once('/').unwrap_or(("", rest));
        let right = !name.is_empty() && namespace.is_empty() != resource.is_namespaced();
        right.then(|| Key::new(resource, ObjectKey::new(namespace, name)))
    }

    /// Takes an event of a type's watch. Answers whether the type became complete by it.
    pub fn apply(&mut self, resource: &GroupResource, event: Event, now: Moment) -> bool {
        let Applied { deltas, seen, synced, went_back } = self.cache.apply(resource, event);
        for delta in &deltas {
            self.enqueue(resource, delta, now);
            let cache = &self.cache;
            self.queue.touched(resource, &delta.new.key(), now, |b| cache.passed(b));
        }
        if went_back {
            self.queue.release(resource, now);
        }
        if let Some(revision) = seen {
            self.queue.seen(resource, revision, now);
        }
        synced
    }

    /// Both the old and the new state lead to keys: what an object no longer belongs to must look as well.
    fn enqueue(&mut self, resource: &GroupResource, delta: &Delta, now: Moment) {
        let object = delta.new.key();
        let (why, priority) = match delta.how {
            How::Changed => (Why::Changed(resource.clone(), object), Priority::Live),
            How::Deleted => (Why::Deleted(resource.clone(), object), Priority::Live),
            How::Found => (Why::Found(resource.clone(), object), Priority::Background),
        };
        let reason = Reason { why, revision: delta.revision };
        let mut keys: Vec<Key> = Vec::new();
        for watched in self.watched.iter().filter(|w| w.resource.id == *resource) {
            keys.extend(keys_of(watched, &self.cache, &delta.new));
            if matches!(watched.map, MapTo::Itself) && !watched.metadata_only {
                let key = Key::new(&watched.resource, delta.new.key());
                let same = delta
                    .old
                    .as_ref()
                    .is_some_and(|old| old.meta().generation == delta.new.meta().generation);
                match delta.how {
                    How::Deleted => drop(self.converging.remove(&key)),
                    How::Changed if !same => drop(self.converging.entry(key).or_insert(now)),
                    How::Changed | How::Found => {}
                }
            }
            if let Some(old) = &delta.old {
                keys.extend(keys_of(watched, &self.cache, old));
            }
        }
        keys.sort();
        keys.dedup();
        for key in keys {
            self.queue.add(key, priority, reason.clone(), now);
        }
    }

    /// Has every key looked at that some object leads to, after all else. Answers how many there are. Nothing hangs on
    /// it, as no event is ever dropped: it is how one checks that.
    pub fn resync(&mut self, now: Moment) -> usize {
        let mut keys: HashSet<Key> = HashSet::new();
        for watched in &self.watched {
            let objects = self.cache.list(&watched.resource.id, "");
            keys.extend(objects.iter().flat_map(|object| keys_of(watched, &self.cache, object)));
        }
        let count = keys.len();
        for key in keys {
            self.queue.add(key, Priority::Background, Reason::plain(Why::Resync), now);
        }
        count
    }

    /// A key found nothing to do. Where its root is ready by its own account, for the first time since its wish changed:
    /// how long that took.
    pub fn converged(&mut self, key: &Key, now: Moment) -> Option<Duration> {
        let since = *self.converging.get(key)?;
        let root = self.cache.get(&key.resource, &key.object)?;
        if !is_ready(&root.to_value().ok()?) {
            return None;
        }
        self.converging.remove(key);
        Some(now.saturating_sub(since))
    }

    /// A job is over; barriers that are passed already do not count.
    pub fn done(&mut self, job: Job, end: End, mut barriers: Vec<Barrier>, now: Moment, random: f64) {
        barriers.retain(|b| !self.cache.passed(b));
        self.queue.done(job, end, barriers, now, random);
    }
}

#[cfg(test)]
mod tests;
