//! Kinds are data: one descriptor per resource type, and the registry that finds it. Routes, discovery, key layout and
//! command-line names all read this; nothing else matches on kinds. Strategy (defaults, validation, columns) is the
//! API server's and hangs on the same identity.

pub mod builtin;
mod registry;

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::fmt;
use std::sync::{Mutex, PoisonError};

pub use registry::{Lookup, Registry};

/// Static or owned text: built-in descriptors are constants, those of custom resources are not.
pub type Text = Cow<'static, str>;

/// The identity of a type over its versions: group and plural.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct GroupResource {
    /// API group; empty for core.
    pub group: Text,
    /// Plural, lower case.
    pub resource: Text,
}

impl GroupResource {
    /// An identity from static text.
    pub const fn constant(group: &'static str, resource: &'static str) -> Self {
        Self { group: Cow::Borrowed(group), resource: Cow::Borrowed(resource) }
    }
}

impl fmt::Display for GroupResource {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &*self.group {
            "" => f.write_str(&self.resource),
            group => write!(f, "{}.{group}", self.resource),
        }
    }
}

/// Whether objects live in namespaces.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Scope {
    /// In a namespace.
    Namespaced,
    /// Beside all namespaces.
    Cluster,
}

/// What may be asked of a resource. The order is that of discovery (alphabetical).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[allow(missing_docs, reason = "the verbs of the Kubernetes API, by their own names")]
pub enum Verb {
    Create,
    Delete,
    DeleteCollection,
    Get,
    List,
    Patch,
    Update,
    Watch,
}

impl Verb {
    /// The word in discovery, access rules and messages.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Create => "create",
            Self::Delete => "delete",
            Self::DeleteCollection => "deletecollection",
            Self::Get => "get",
            Self::List => "list",
            Self::Patch => "patch",
            Self::Update => "update",
            Self::Watch => "watch",
        }
    }
}

impl Verb {
    const ALL: [Self; 8] = [
        Self::Create,
        Self::Delete,
        Self::DeleteCollection,
        Self::Get,
        Self::List,
        Self::Patch,
        Self::Update,
        Self::Watch,
    ];

    /// The verbs among these words, in order. Words that are no verb are left out. Each set is kept once for the life
    /// of the process; there are at most 256.
    pub fn set<'a>(words: impl IntoIterator<Item = &'a str>) -> &'static [Self] {
        static KEPT: Mutex<BTreeMap<Vec<Verb>, &'static [Verb]>> = Mutex::new(BTreeMap::new());
        let words: Vec<&str> = words.into_iter().collect();
        let set: Vec<Self> = Self::ALL.into_iter().filter(|v| words.contains(&v.as_str())).collect();
        let mut kept = KEPT.lock().unwrap_or_else(PoisonError::into_inner);
        kept.entry(set).or_insert_with_key(|set| Box::leak(set.clone().into_boxed_slice()))
    }
}

/// All verbs of an ordinary resource.
pub const ALL_VERBS: &[Verb] = &[
    Verb::Create,
    Verb::Delete,
    Verb::DeleteCollection,
    Verb::Get,
    Verb::List,
    Verb::Patch,
    Verb::Update,
    Verb::Watch,
];
/// All verbs but `deletecollection` (namespaces).
pub const NO_COLLECTION: &[Verb] =
    &[Verb::Create, Verb::Delete, Verb::Get, Verb::List, Verb::Patch, Verb::Update, Verb::Watch];
/// Verbs of `status`, `scale` and the like.
pub const READ_WRITE: &[Verb] = &[Verb::Get, Verb::Patch, Verb::Update];
/// Verbs of subresources that only act.
pub const CREATE_ONLY: &[Verb] = &[Verb::Create];
/// Verbs of `finalize`.
pub const UPDATE_ONLY: &[Verb] = &[Verb::Update];
/// Verbs of `log`.
pub const GET_ONLY: &[Verb] = &[Verb::Get];

/// A part of an object with rules of its own.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Subresource {
    /// Name in the path: `status`, `scale`, `log`.
    pub name: Text,
    /// Group, version and kind of its body, where they are not those of the parent.
    pub body: Option<(Text, Text, Text)>,
    /// What may be asked of it.
    pub verbs: &'static [Verb],
}

/// A resource type in one served version.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ResourceType {
    /// Group and plural: the identity under which objects are stored.
    pub id: GroupResource,
    /// Version in which the objects are served.
    pub version: Text,
    /// Kind.
    pub kind: Text,
    /// Singular, lower case.
    pub singular: Text,
    /// Short names of the command line.
    pub short_names: Cow<'static, [Text]>,
    /// Categories, such as `all`.
    pub categories: Cow<'static, [Text]>,
    /// Namespaced or not.
    pub scope: Scope,
    /// What may be asked of it.
    pub verbs: &'static [Verb],
    /// Subresources.
    pub subresources: Cow<'static, [Subresource]>,
    /// Whether `metadata.generation` counts changes of desired state.
    pub counts_generation: bool,
}

impl ResourceType {
    /// A custom type as most are: in namespaces, with a status beside the spec. What a controller of one's own watches.
    pub fn custom(group: &str, version: &str, plural: &str, kind: &str) -> Self {
        let owned = |text: &str| Text::Owned(text.to_owned());
        let status = Subresource { name: Text::Borrowed("status"), body: None, verbs: READ_WRITE };
        Self {
            id: GroupResource { group: owned(group), resource: owned(plural) },
            version: owned(version),
            kind: owned(kind),
            singular: owned(&kind.to_lowercase()),
            short_names: Cow::Borrowed(&[]),
            categories: Cow::Borrowed(&[]),
            scope: Scope::Namespaced,
            verbs: ALL_VERBS,
            subresources: Cow::Owned(vec![status]),
            counts_generation: true,
        }
    }

    /// `group/version`, or the version alone for core.
    pub fn api_version(&self) -> String {
        match &*self.id.group {
            "" => self.version.to_string(),
            group => format!("{group}/{}", self.version),
        }
    }

    /// Whether objects live in namespaces.
    pub fn is_namespaced(&self) -> bool {
        self.scope == Scope::Namespaced
    }

    /// The subresource of a name.
    pub fn subresource(&self, name: &str) -> Option<&Subresource> {
        self.subresources.iter().find(|s| s.name == name)
    }

    /// Whether the type keeps its status apart from its spec.
    pub fn has_status(&self) -> bool {
        self.subresource("status").is_some()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_set_of_verbs_is_kept_once() {
        let words = ["watch", "get", "approve", "get"];
        assert_eq!(Verb::set(words), &[Verb::Get, Verb::Watch]);
        assert!(std::ptr::eq(Verb::set(words), Verb::set(["get", "watch"])));
        assert_eq!(Verb::set(ALL_VERBS.iter().map(|v| v.as_str())), ALL_VERBS);
    }
}
