//! The informer cache: all watched objects, by key, namespace and owner, and how far each type is. Pure: events in,
//! deltas out. Knows no connection.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::Arc;

use strata_client::event::Event;
use strata_model::object::{Object, ObjectKey};
use strata_model::resource::GroupResource;
use strata_plan::controller::View;

use crate::barrier::Barrier;

/// How an object came to change.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum How {
    /// Live.
    Changed,
    /// Live, or found missing after a gap.
    Deleted,
    /// Found, at the start or after a gap.
    Found,
}

/// One object that is not as it was.
#[derive(Clone, Debug)]
pub struct Delta {
    /// How.
    pub how: How,
    /// The state before, if it was known.
    pub old: Option<Arc<Object>>,
    /// The state now; the last one where it was deleted.
    pub new: Arc<Object>,
    /// Revision of the change.
    pub revision: u64,
}

/// What an event did.
#[derive(Clone, Debug, Default)]
pub struct Applied {
    /// Objects that changed.
    pub deltas: Vec<Delta>,
    /// The type is now known up to this revision.
    pub seen: Option<u64>,
    /// The type became complete for the first time.
    pub synced: bool,
    /// Revisions began anew below where they were.
    pub went_back: bool,
}

#[derive(Debug, Default)]
struct Shelf {
    objects: BTreeMap<Arc<ObjectKey>, Arc<Object>>,
    by_owner: HashMap<String, BTreeSet<Arc<ObjectKey>>>,
    /// Without a controlling owner.
    orphans: BTreeSet<Arc<ObjectKey>>,
    synced: bool,
    revision: u64,
    /// While a whole state comes in: what it held so far.
    coming: Option<BTreeSet<Arc<ObjectKey>>>,
}

/// Everything that is watched.
#[derive(Debug, Default)]
pub struct Cache {
    shelves: HashMap<GroupResource, Shelf>,
}

impl Cache {
    /// A cache of these types, all empty.
    pub fn new(types: impl IntoIterator<Item = GroupResource>) -> Self {
        Self { shelves: types.into_iter().map(|t| (t, Shelf::default())).collect() }
    }

    /// Whether a type is watched.
    pub fn holds(&self, resource: &GroupResource) -> bool {
        self.shelves.contains_key(resource)
    }

    /// Whether all types are complete.
    pub fn is_synced(&self) -> bool {
        self.shelves.values().all(|s| s.synced)
    }

    /// Types that are not yet complete.
    pub fn unsynced(&self) -> Vec<&GroupResource> {
        self.shelves.iter().filter(|(_, s)| !s.synced).map(|(id, _)| id).collect()
    }

    /// Up to which revision a type is known.
    pub fn revision(&self, resource: &GroupResource) -> u64 {
        self.shelves.get(resource).map_or(0, |s| s.revision)
    }

    /// How many objects there are, by type.
    pub fn sizes(&self) -> impl Iterator<Item = (&GroupResource, usize)> {
        self.shelves.iter().map(|(id, s)| (id, s.objects.len()))
    }

    /// Whether a barrier is passed. Those on types that are not watched always are: nothing will ever be seen of them.
    pub fn passed(&self, barrier: &Barrier) -> bool {
        match barrier {
            Barrier::Revision(resource, revision) => {
                self.shelves.get(resource).is_none_or(|s| s.revision >= *revision)
            }
            Barrier::Left { resource, key, uid, resource_version } => {
                let object = self.shelves.get(resource).and_then(|s| s.objects.get(key));
                object.is_none_or(|o| {
                    let meta = o.meta();
                    meta.uid != *uid || resource_version.as_ref().is_some_and(|v| *v != meta.resource_version)
                })
            }
        }
    }

    /// Takes an event of a type's watch.
    pub fn apply(&mut self, resource: &GroupResource, event: Event) -> Applied {
        let shelf = self.shelves.entry(resource.clone()).or_default();
        match event {
            Event::Restarted => {
                shelf.coming = Some(BTreeSet::new());
                Applied::default()
            }
            Event::Initial(object) => {
                let revision = object.meta().revision().unwrap_or(0);
                Applied {
                    deltas: shelf.put(object, revision, How::Found).into_iter().collect(),
                    ..Applied::default()
                }
            }
            Event::InitialEnd(revision) => shelf.complete(revision),
            Event::Applied(object, revision) => {
                let deltas = shelf.put(object, revision, How::Changed).into_iter().collect();
                Applied { deltas, seen: shelf.advance(revision), ..Applied::default() }
            }
            Event::Deleted(object, revision) => {
                let deltas = shelf.remove(&object.key(), Some(object), revision).into_iter().collect();
                Applied { deltas, seen: shelf.advance(revision), ..Applied::default() }
            }
            Event::Progress(revision) => Applied { seen: shelf.advance(revision), ..Applied::default() },
            Event::Lost(_) | Event::Failed(_) => Applied::default(),
        }
    }
}

impl Shelf {
    /// Revisions count only once the whole state is in.
    fn advance(&mut self, revision: u64) -> Option<u64> {
        if self.coming.is_some() {
            return None;
        }
        self.revision = self.revision.max(revision);
        Some(self.revision)
    }

    /// Equal bytes keep the object that is there, and so what was parsed of it.
    fn put(&mut self, object: Arc<Object>, revision: u64, how: How) -> Option<Delta> {
        let (key, old) = match self.objects.get_key_value(&object.key()) {
            Some((key, old)) => (Arc::clone(key), Some(Arc::clone(old))),
            None => (Arc::new(object.key()), None),
        };
        if let Some(coming) = &mut self.coming {
            coming.insert(Arc::clone(&key));
        }
        if old.as_ref().is_some_and(|old| **old == *object) {
            return None;
        }
        if let Some(old) = &old {
            self.unindex(&key, old);
        }
        for owner in &object.meta().owner_references {
            self.by_owner.entry(owner.uid.clone()).or_default().insert(Arc::clone(&key));
        }
        if object.meta().controller().is_none() {
            self.orphans.insert(Arc::clone(&key));
        }
        self.objects.insert(key, Arc::clone(&object));
        Some(Delta { how, old, new: object, revision })
    }

    fn remove(&mut self, key: &ObjectKey, last: Option<Arc<Object>>, revision: u64) -> Option<Delta> {
        if let Some(coming) = &mut self.coming {
            coming.remove(key);
        }
        let old = self.objects.remove(key)?;
        self.unindex(key, &old);
        let new = last.unwrap_or_else(|| Arc::clone(&old));
        Some(Delta { how: How::Deleted, old: Some(old), new, revision })
    }

    fn unindex(&mut self, key: &ObjectKey, object: &Object) {
        self.orphans.remove(key);
        for owner in &object.meta().owner_references {
            let Some(keys) = self.by_owner.get_mut(&owner.uid) else { continue };
            keys.remove(key);
            if keys.is_empty() {
                self.by_owner.remove(&owner.uid);
            }
        }
    }

    fn of_namespace<'a, V>(
        &'a self,
        entries: impl Iterator<Item = (&'a Arc<ObjectKey>, V)>,
        namespace: &str,
    ) -> Vec<V> {
        let here = |key: &ObjectKey| namespace.is_empty() || key.namespace == namespace;
        entries.take_while(|(key, _)| here(key)).map(|(_, value)| value).collect()
    }

    /// What was not in the whole state vanished while nobody looked.
    fn complete(&mut self, revision: u64) -> Applied {
        let coming = self.coming.take();
        let vanished: Vec<Arc<ObjectKey>> = match &coming {
            Some(coming) => self.objects.keys().filter(|k| !coming.contains(*k)).map(Arc::clone).collect(),
            None => Vec::new(),
        };
        let deltas = vanished.iter().filter_map(|key| self.remove(key, None, revision)).collect();
        let went_back = revision < self.revision;
        let synced = !std::mem::replace(&mut self.synced, true);
        self.revision = revision;
        Applied { deltas, seen: Some(revision), synced, went_back }
    }
}

impl View for Cache {
    fn get(&self, resource: &GroupResource, key: &ObjectKey) -> Option<Arc<Object>> {
        self.shelves.get(resource)?.objects.get(key).cloned()
    }

    fn list(&self, resource: &GroupResource, namespace: &str) -> Vec<Arc<Object>> {
        let Some(shelf) = self.shelves.get(resource) else { return Vec::new() };
        let from = shelf.objects.range::<ObjectKey, _>(ObjectKey::new(namespace, "")..);
        shelf.of_namespace(from, namespace).into_iter().cloned().collect()
    }

    fn orphans(&self, resource: &GroupResource, namespace: &str) -> Vec<Arc<Object>> {
        let Some(shelf) = self.shelves.get(resource) else { return Vec::new() };
        let from = shelf.orphans.range::<ObjectKey, _>(ObjectKey::new(namespace, "")..);
        let keys = shelf.of_namespace(from.map(|key| (key, key)), namespace);
        keys.into_iter().filter_map(|key| shelf.objects.get(key).cloned()).collect()
    }

    fn owned_by(&self, resource: &GroupResource, owner_uid: &str) -> Vec<Arc<Object>> {
        let Some(shelf) = self.shelves.get(resource) else { return Vec::new() };
        let keys = shelf.by_owner.get(owner_uid).into_iter().flatten();
        keys.filter_map(|key| shelf.objects.get(key).cloned()).collect()
    }
}

#[cfg(test)]
mod tests;
