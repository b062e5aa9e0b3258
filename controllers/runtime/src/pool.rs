//! Objects that several caches of one process hold at the same state: kept once, and read as a type once. Forgets what
//! no cache holds any more. Knows no watch.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError, Weak};

use strata_model::object::Object;
use strata_model::resource::GroupResource;

/// As many entries at least before those of objects that are gone are looked for.
const FEW: usize = 1024;

/// Which object in which form: whole, or its metadata alone.
type Place = (GroupResource, String, bool);

/// The newest state of each object that some cache of the process holds.
#[derive(Debug, Default)]
pub struct Pool(Mutex<Kept>);

#[derive(Debug, Default)]
struct Kept {
    objects: HashMap<Place, Weak<Object>>,
    /// How many entries there may be before the next look for those of objects that are gone.
    room: usize,
}

impl Pool {
    /// The same state of the object as another cache has it, where one does; else this one, for others to come.
    pub fn share(&self, resource: &GroupResource, metadata_only: bool, object: Arc<Object>) -> Arc<Object> {
        let place = (resource.clone(), object.meta().uid.clone(), metadata_only);
        let mut kept = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(known) = kept.objects.get(&place).and_then(Weak::upgrade)
            && known.bytes() == object.bytes()
        {
            return known;
        }
        kept.make_room();
        kept.objects.insert(place, Arc::downgrade(&object));
        object
    }
}

impl Kept {
    fn make_room(&mut self) {
        if self.objects.len() >= self.room.max(FEW) {
            self.objects.retain(|_, object| object.strong_count() > 0);
            self.room = self.objects.len() * 2;
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;
    use strata_model::resource::builtin;

    use super::*;

    fn pod(uid: &str, revision: u64) -> Arc<Object> {
        let value = json!({"metadata": {"name": uid, "uid": uid, "resourceVersion": revision.to_string()}});
        Arc::new(Object::from_value(&value).unwrap())
    }

    #[test]
    fn the_same_state_is_kept_once_and_another_state_or_form_is_not_it() {
        let (pool, pods) = (Pool::default(), &builtin::POD.id);
        let first = pool.share(pods, false, pod("a", 1));
        assert!(Arc::ptr_eq(&first, &pool.share(pods, false, pod("a", 1))));
        assert!(!Arc::ptr_eq(&first, &pool.share(pods, true, pod("a", 1))));
        assert!(!Arc::ptr_eq(&first, &pool.share(&builtin::NODE.id, false, pod("a", 1))));
        let newer = pool.share(pods, false, pod("a", 2));
        assert_eq!(newer.meta().resource_version, "2");
        // A cache that is behind gets what it was sent, not what is newer.
        assert_eq!(pool.share(pods, false, pod("a", 1)).meta().resource_version, "1");
    }

    #[test]
    fn what_no_cache_holds_is_forgotten() {
        let pool = Pool::default();
        let held: Vec<Arc<Object>> =
            (0..100).map(|n| pool.share(&builtin::POD.id, false, pod(&format!("held-{n}"), 1))).collect();
        for n in 0..20 * FEW {
            drop(pool.share(&builtin::POD.id, false, pod(&format!("gone-{n}"), 1)));
        }
        let kept = pool.0.lock().unwrap();
        assert!(kept.objects.len() <= FEW + held.len(), "{}", kept.objects.len());
        assert_eq!(kept.objects.values().filter(|object| object.strong_count() > 0).count(), held.len());
    }
}
