//! Finds descriptors: by path (group, version, plural), by kind, and by what people type (`po`, `deploy.apps`).

use std::collections::BTreeMap;
use std::sync::Arc;

use super::{GroupResource, ResourceType, builtin};

/// What a look-up by a user's word found.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Lookup {
    /// One type.
    One(Arc<ResourceType>),
    /// No type. The strings are the known names nearest to the word, best first, at most three.
    None(Vec<String>),
}

/// All known types. A plain value: whoever adds custom resources makes a new one and swaps it in.
#[derive(Clone, Debug, Default)]
pub struct Registry {
    types: Vec<Arc<ResourceType>>,
    by_path: BTreeMap<(String, String, String), usize>,
}

impl Registry {
    /// The built-in types.
    pub fn builtin() -> Self {
        let mut registry = Self::default();
        for resource in builtin::ALL {
            registry.add((*resource).clone());
        }
        registry
    }

    /// Adds a type, or replaces the one with the same group, version and plural.
    pub fn add(&mut self, resource: ResourceType) {
        let path =
            (resource.id.group.to_string(), resource.version.to_string(), resource.id.resource.to_string());
        match self.by_path.get(&path) {
            Some(at) => self.types[*at] = Arc::new(resource),
            None => {
                self.by_path.insert(path, self.types.len());
                self.types.push(Arc::new(resource));
            }
        }
    }

    /// All types in the order they were added.
    pub fn types(&self) -> &[Arc<ResourceType>] {
        &self.types
    }

    /// The type served at a path.
    pub fn by_path(&self, group: &str, version: &str, resource: &str) -> Option<&Arc<ResourceType>> {
        let path = (group.to_owned(), version.to_owned(), resource.to_owned());
        self.by_path.get(&path).map(|at| &self.types[*at])
    }

    /// The first version of a type.
    pub fn by_id(&self, id: &GroupResource) -> Option<&Arc<ResourceType>> {
        self.types.iter().find(|t| t.id == *id)
    }

    /// The type of a kind.
    pub fn by_kind(&self, group: &str, version: &str, kind: &str) -> Option<&Arc<ResourceType>> {
        self.types.iter().find(|t| t.id.group == group && t.version == version && t.kind == kind)
    }

    /// The type of an object's `apiVersion` and `kind`.
    pub fn by_api_version(&self, api_version: &str, kind: &str) -> Option<&Arc<ResourceType>> {
        let (group, version) = api_version.split_once('/').unwrap_or(("", api_version));
        self.by_kind(group, version, kind)
    }

    /// What a person types: plural, singular, short name or kind, in any case, optionally with `.group` or
    /// `.version.group` behind it.
    pub fn lookup(&self, word: &str) -> Lookup {
        let lower = word.to_ascii_lowercase();
        let (name, rest) = lower.split_once('.').unwrap_or((&lower, ""));
        let found = self.types.iter().find(|t| named(t, name) && qualified(t, rest));
        match found {
            Some(found) => Lookup::One(Arc::clone(found)),
            None => Lookup::None(self.nearest(name)),
        }
    }

    fn nearest(&self, word: &str) -> Vec<String> {
        let mut scored: Vec<(usize, String)> = self
            .types
            .iter()
            .flat_map(|t| [t.id.resource.to_string(), t.singular.to_string()])
            .map(|name| (distance(word, &name), name))
            .filter(|(d, name)| *d <= 1 + name.len() / 4)
            .collect();
        scored.sort();
        scored.dedup_by(|a, b| a.1 == b.1);
        scored.into_iter().take(3).map(|(_, name)| name).collect()
    }
}

fn named(t: &ResourceType, name: &str) -> bool {
    t.id.resource == name
        || t.singular == name
        || t.kind.eq_ignore_ascii_case(name)
        || t.short_names.iter().any(|s| s == name)
}

fn qualified(t: &ResourceType, rest: &str) -> bool {
    rest.is_empty()
        || t.id.group == rest
        || rest.strip_prefix(&*t.version).is_some_and(|r| r.strip_prefix('.').unwrap_or(r) == t.id.group)
}

/// Edit distance, bounded by short words: names of types.
fn distance(a: &str, b: &str) -> usize {
    let b: Vec<char> = b.chars().collect();
    let mut row: Vec<usize> = (0..=b.len()).collect();
    for (i, ca) in a.chars().take(64).enumerate() {
        let mut diagonal = row[0];
        row[0] = i + 1;
        for (j, cb) in b.iter().enumerate() {
            let change = diagonal + usize::from(ca != *cb);
            diagonal = row[j + 1];
            row[j + 1] = change.min(row[j] + 1).min(diagonal + 1);
        }
    }
    row[b.len()]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn people_find_types_by_every_usual_name() {
        let registry = Registry::builtin();
        for word in ["po", "pod", "pods", "Pod", "PODS", "pods.v1", "pods.v1."] {
            assert!(matches!(registry.lookup(word), Lookup::One(t) if t.kind == "Pod"), "{word}");
        }
        for word in ["deploy", "deployments.apps", "deployment.v1.apps"] {
            assert!(matches!(registry.lookup(word), Lookup::One(t) if t.kind == "Deployment"), "{word}");
        }
        assert_eq!(
            registry.lookup("deploymnt"),
            Lookup::None(vec!["deployment".into(), "deployments".into()])
        );
        assert!(matches!(registry.lookup("pods.apps"), Lookup::None(_)));
    }

    #[test]
    fn every_builtin_is_found_by_its_path_and_kind() {
        let registry = Registry::builtin();
        for t in builtin::ALL {
            let found = registry.by_path(&t.id.group, &t.version, &t.id.resource).unwrap();
            assert_eq!(registry.by_api_version(&t.api_version(), &t.kind).unwrap(), found);
        }
    }
}
