//! What admission keeps of the objects that configure it: tables that follow stored objects, so that a request that nothing
//! concerns finds that out by one look, and one that something does concern parses none of it anew.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use serde_json::Value;
use strata_model::resource::{GroupResource, builtin};
use strata_store::record::Record;

use super::hook::Hook;
use super::limits::Limit;
use super::policy::{Binding, Policy};
use crate::storage;

/// Webhooks by the name of their configuration, and all of them in the order in which they are asked.
#[derive(Clone, Default)]
struct Hooks {
    by_name: BTreeMap<String, Arc<[Arc<Hook>]>>,
    all: Arc<[Arc<Hook>]>,
}

impl Hooks {
    fn put(&mut self, name: &str, configuration: &Value) {
        let hooks: Vec<Arc<Hook>> = Hook::all(configuration).into_iter().map(Arc::new).collect();
        self.by_name.insert(name.to_owned(), hooks.into());
        self.list();
    }

    fn remove(&mut self, name: &str) {
        self.by_name.remove(name);
        self.list();
    }

    fn list(&mut self) {
        self.all = self.by_name.values().flat_map(|hooks| hooks.iter().cloned()).collect();
    }
}

/// The limits of a namespace, by the name of their LimitRange.
type LimitsOf = BTreeMap<String, Arc<[Limit]>>;

/// Everything that configures admission, at one revision. Cheap to clone.
#[derive(Clone, Default)]
pub struct Tables {
    limits: Arc<BTreeMap<String, LimitsOf>>,
    quotas: Arc<BTreeMap<String, BTreeSet<String>>>,
    policies: Arc<BTreeMap<String, Arc<Policy>>>,
    bindings: Arc<BTreeMap<String, Arc<Binding>>>,
    mutating: Arc<Hooks>,
    validating: Arc<Hooks>,
}

/// Takes an entry out of a table of namespaces, and the namespace with its last.
fn take<T: Clone>(
    table: &mut Arc<BTreeMap<String, T>>,
    namespace: &str,
    remove: impl FnOnce(&mut T) -> bool,
) {
    let table = Arc::make_mut(table);
    if table.get_mut(namespace).is_some_and(remove) {
        table.remove(namespace);
    }
}

impl Tables {
    /// The types whose objects are followed.
    pub fn types() -> [&'static GroupResource; 6] {
        [
            &builtin::LIMIT_RANGE.id,
            &builtin::RESOURCE_QUOTA.id,
            &builtin::VALIDATING_ADMISSION_POLICY.id,
            &builtin::VALIDATING_ADMISSION_POLICY_BINDING.id,
            &builtin::MUTATING_WEBHOOK_CONFIGURATION.id,
            &builtin::VALIDATING_WEBHOOK_CONFIGURATION.id,
        ]
    }

    /// The limits of a namespace.
    pub fn limits(&self, namespace: &str) -> impl Iterator<Item = &Limit> {
        self.limits.get(namespace).into_iter().flat_map(BTreeMap::values).flat_map(|limits| limits.iter())
    }

    /// Whether a namespace has quotas. What they say is read with the write that they are charged for.
    pub fn has_quotas(&self, namespace: &str) -> bool {
        self.quotas.contains_key(namespace)
    }

    /// The policies, by name.
    pub fn policies(&self) -> impl Iterator<Item = &Policy> {
        self.policies.values().map(AsRef::as_ref)
    }

    /// The bindings of a policy, by name.
    pub fn bindings(&self, policy: &str) -> impl Iterator<Item = &Binding> {
        self.bindings.values().map(AsRef::as_ref).filter(move |binding| binding.policy == policy)
    }

    /// Webhooks that may change objects, in the order in which they are asked.
    pub fn mutating(&self) -> &[Arc<Hook>] {
        &self.mutating.all
    }

    /// Webhooks that may refuse writes.
    pub fn validating(&self) -> &[Arc<Hook>] {
        &self.validating.all
    }

    /// Takes an object of a followed type that came or changed.
    pub fn put(&mut self, id: &GroupResource, record: &Record) {
        let (namespace, name) = (storage::namespace_of(record), storage::name_of(record));
        if *id == builtin::RESOURCE_QUOTA.id {
            // Its usage changes with every write that is charged to it: that there is one is all that counts here.
            if !self.quotas.get(namespace).is_some_and(|here| here.contains(name)) {
                let here = Arc::make_mut(&mut self.quotas).entry(namespace.to_owned()).or_default();
                here.insert(name.to_owned());
            }
            return;
        }
        match storage::parse(record) {
            Ok(object) => self.read(id, namespace, name, &object),
            Err(_) => {
                tracing::warn!(kind = %id, namespace, name, "what is stored to configure admission cannot be read");
            }
        }
    }

    fn read(&mut self, id: &GroupResource, namespace: &str, name: &str, object: &Value) {
        let name = name.to_owned();
        if *id == builtin::LIMIT_RANGE.id {
            let here = Arc::make_mut(&mut self.limits).entry(namespace.to_owned()).or_default();
            here.insert(name, Limit::all(object).into());
        } else if *id == builtin::VALIDATING_ADMISSION_POLICY.id {
            Arc::make_mut(&mut self.policies).insert(name, Arc::new(Policy::read(object)));
        } else if *id == builtin::VALIDATING_ADMISSION_POLICY_BINDING.id {
            Arc::make_mut(&mut self.bindings).insert(name, Arc::new(Binding::read(object)));
        } else if *id == builtin::MUTATING_WEBHOOK_CONFIGURATION.id {
            Arc::make_mut(&mut self.mutating).put(&name, object);
        } else if *id == builtin::VALIDATING_WEBHOOK_CONFIGURATION.id {
            Arc::make_mut(&mut self.validating).put(&name, object);
        }
    }

    /// Forgets an object of a followed type.
    pub fn remove(&mut self, id: &GroupResource, namespace: &str, name: &str) {
        if *id == builtin::LIMIT_RANGE.id {
            take(&mut self.limits, namespace, |here| {
                here.remove(name);
                here.is_empty()
            });
        } else if *id == builtin::RESOURCE_QUOTA.id {
            take(&mut self.quotas, namespace, |here| {
                here.remove(name);
                here.is_empty()
            });
        } else if *id == builtin::VALIDATING_ADMISSION_POLICY.id {
            Arc::make_mut(&mut self.policies).remove(name);
        } else if *id == builtin::VALIDATING_ADMISSION_POLICY_BINDING.id {
            Arc::make_mut(&mut self.bindings).remove(name);
        } else if *id == builtin::MUTATING_WEBHOOK_CONFIGURATION.id {
            Arc::make_mut(&mut self.mutating).remove(name);
        } else if *id == builtin::VALIDATING_WEBHOOK_CONFIGURATION.id {
            Arc::make_mut(&mut self.validating).remove(name);
        }
    }
}
