//! What admission keeps of the objects that configure it: tables that follow stored objects, so that a request that nothing
//! concerns finds that out by one look, and one that something does concern parses none of it anew.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use strata_model::resource::{GroupResource, builtin};
use strata_store::record::Record;

use super::limits::Limit;
use crate::storage;

/// Objects of one type by namespace and name.
type Placed<T> = BTreeMap<String, BTreeMap<String, T>>;

fn remove<T: Clone>(table: &mut Arc<Placed<T>>, namespace: &str, name: &str) {
    let table = Arc::make_mut(table);
    let Some(here) = table.get_mut(namespace) else { return };
    here.remove(name);
    if here.is_empty() {
        table.remove(namespace);
    }
}

/// Everything that configures admission, at one revision. Cheap to clone.
#[derive(Clone, Default)]
pub struct Tables {
    limits: Arc<Placed<Arc<[Limit]>>>,
    quotas: Arc<BTreeMap<String, BTreeSet<String>>>,
}

impl Tables {
    /// The types whose objects are followed.
    pub fn types() -> [&'static GroupResource; 2] {
        [&builtin::LIMIT_RANGE.id, &builtin::RESOURCE_QUOTA.id]
    }

    /// The limits of a namespace.
    pub fn limits(&self, namespace: &str) -> impl Iterator<Item = &Limit> {
        self.limits.get(namespace).into_iter().flat_map(BTreeMap::values).flat_map(|limits| limits.iter())
    }

    /// Whether a namespace has quotas. What they say is read with the write that they are charged for.
    pub fn has_quotas(&self, namespace: &str) -> bool {
        self.quotas.contains_key(namespace)
    }

    /// Takes an object of a followed type that came or changed. Answers whether that changes anything here.
    pub fn put(&mut self, id: &GroupResource, record: &Record) -> bool {
        let (namespace, name) = (storage::namespace_of(record), storage::name_of(record));
        if *id == builtin::RESOURCE_QUOTA.id {
            // Its usage changes with every write that is charged to it: that there is one is all that counts here.
            let known = self.quotas.get(namespace).is_some_and(|here| here.contains(name));
            if !known {
                let here = Arc::make_mut(&mut self.quotas).entry(namespace.to_owned()).or_default();
                here.insert(name.to_owned());
            }
            return !known;
        }
        let Ok(object) = storage::parse(record) else {
            tracing::warn!(kind = %id, namespace, name, "a stored object that configures admission cannot be read");
            return false;
        };
        if *id == builtin::LIMIT_RANGE.id {
            let here = Arc::make_mut(&mut self.limits).entry(namespace.to_owned()).or_default();
            here.insert(name.to_owned(), Limit::all(&object).into());
        }
        true
    }

    /// Forgets an object of a followed type.
    pub fn remove(&mut self, id: &GroupResource, namespace: &str, name: &str) {
        if *id == builtin::LIMIT_RANGE.id {
            remove(&mut self.limits, namespace, name);
        } else if *id == builtin::RESOURCE_QUOTA.id {
            let quotas = Arc::make_mut(&mut self.quotas);
            if let Some(here) = quotas.get_mut(namespace) {
                here.remove(name);
                if here.is_empty() {
                    quotas.remove(namespace);
                }
            }
        }
    }
}
