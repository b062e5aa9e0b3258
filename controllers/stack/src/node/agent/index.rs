//! Which pod uids stand under which name: a name can be taken again while containers of its last pod still
//! end. It must never know more of a pod.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Mutex, MutexGuard, PoisonError};

use strata_model::object::ObjectKey;

/// Uids and names, both ways.
#[derive(Debug, Default)]
pub struct Index {
    maps: Mutex<Maps>,
}

#[derive(Debug, Default)]
struct Maps {
    keys: BTreeMap<String, ObjectKey>,
    uids: BTreeMap<ObjectKey, BTreeSet<String>>,
}

impl Index {
    /// Notes a pod.
    pub fn put(&self, uid: &str, key: &ObjectKey) {
        let mut maps = self.maps();
        maps.keys.insert(uid.to_owned(), key.clone());
        maps.uids.entry(key.clone()).or_default().insert(uid.to_owned());
    }

    /// Forgets a pod.
    pub fn remove(&self, uid: &str) {
        let mut maps = self.maps();
        let Some(key) = maps.keys.remove(uid) else { return };
        if let Some(uids) = maps.uids.get_mut(&key) {
            uids.remove(uid);
            if uids.is_empty() {
                maps.uids.remove(&key);
            }
        }
    }

    /// The name of a pod.
    pub fn key(&self, uid: &str) -> Option<ObjectKey> {
        self.maps().keys.get(uid).cloned()
    }

    /// All pods that are or were of this name.
    pub fn uids(&self, key: &ObjectKey) -> BTreeSet<String> {
        self.maps().uids.get(key).cloned().unwrap_or_default()
    }

    /// All names.
    pub fn keys(&self) -> Vec<ObjectKey> {
        self.maps().uids.keys().cloned().collect()
    }

    fn maps(&self) -> MutexGuard<'_, Maps> {
        self.maps.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::Index;
    use strata_model::object::ObjectKey;

    #[test]
    fn a_name_can_have_two_pods_for_a_while() {
        let index = Index::default();
        let key = ObjectKey::new("n", "web-0");
        index.put("u1", &key);
        index.put("u2", &key);
        assert_eq!(index.uids(&key).len(), 2);
        index.remove("u1");
        assert_eq!((index.key("u1"), index.key("u2")), (None, Some(key.clone())));
        index.remove("u2");
        assert!(index.uids(&key).is_empty() && index.keys().is_empty());
    }
}
