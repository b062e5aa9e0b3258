//! What a controller is: the types it watches, how an observed object leads to a key, what it observes for a key, and
//! the plan it makes of that. The runtime drives it; nothing here runs.

use std::fmt;
use std::sync::Arc;

use jiff::Timestamp;
use serde_json::Value;
use strata_model::object::{Object, ObjectKey};
use strata_model::resource::{GroupResource, ResourceType};

/// What a work queue holds: a root object to be held to its desired state. Never an event.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Key {
    /// Type of the root.
    pub resource: GroupResource,
    /// Which one.
    pub object: ObjectKey,
}

impl Key {
    /// The key of an object of a type.
    pub fn new(resource: &ResourceType, object: ObjectKey) -> Self {
        Self { resource: resource.id.clone(), object }
    }
}

impl fmt::Display for Key {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.resource, self.object)
    }
}

/// The observed world: a consistent-enough cache of objects. All answers come from memory and are ordered by key.
pub trait View {
    /// One object.
    fn get(&self, resource: &GroupResource, key: &ObjectKey) -> Option<Arc<Object>>;
    /// All objects of a type in a namespace; an empty namespace means all.
    fn list(&self, resource: &GroupResource, namespace: &str) -> Vec<Arc<Object>>;
    /// All objects of a type with an owner reference to this uid, controlling or not.
    fn owned_by(&self, resource: &GroupResource, owner_uid: &str) -> Vec<Arc<Object>>;
    /// All objects of a type in a namespace that no controller manages. A cache with an index answers from it.
    fn orphans(&self, resource: &GroupResource, namespace: &str) -> Vec<Arc<Object>> {
        let mut all = self.list(resource, namespace);
        all.retain(|o| o.meta().controller().is_none());
        all
    }
}

/// A computed mapping that carries configuration: the known types, for one.
pub type Mapping = Arc<dyn Fn(&dyn View, &Object) -> Vec<Key> + Send + Sync>;

/// How a watched object leads to the keys that must look at it. The runtime maps a change twice, by the object's old
/// state and by its new one, so that what it no longer belongs to looks as well. The view already holds the change: a
/// deleted object is not in it any more.
#[derive(Clone)]
pub enum MapTo {
    /// It is the root.
    Itself,
    /// The root is its controlling owner, if that is of this group and kind.
    Controller(&'static ResourceType),
    /// Computed, from the object (its last state where it was deleted) and the view.
    With(fn(&dyn View, &Object) -> Vec<Key>),
    /// The same, by a function that carries configuration.
    By(Mapping),
}

/// One watched type.
#[derive(Clone)]
pub struct Watched {
    /// The type.
    pub resource: Arc<ResourceType>,
    /// To which keys a change leads.
    pub map: MapTo,
    /// Only metadata is needed: a fraction of the memory.
    pub metadata_only: bool,
    /// Restricts what is watched, such as `spec.nodeName=n1`; empty is everything.
    pub field_selector: String,
}

impl Watched {
    /// Watches whole objects of a built-in type, everywhere.
    pub fn all(resource: &ResourceType, map: MapTo) -> Self {
        Self {
            resource: Arc::new(resource.clone()),
            map,
            metadata_only: false,
            field_selector: String::new(),
        }
    }
}

/// Exactly which object a write means: refused if another of the same name took its place, or if it has changed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Target {
    /// Type.
    pub resource: ResourceType,
    /// Which one.
    pub key: ObjectKey,
    /// Its identity.
    pub uid: String,
    /// The state that was planned from; `None` only where any state will do (deletion of a known uid).
    pub resource_version: Option<String>,
}

impl Target {
    /// The object as it was observed.
    pub fn of(resource: &ResourceType, object: &Object) -> Self {
        Self {
            resource: resource.clone(),
            key: object.key(),
            uid: object.meta().uid.clone(),
            resource_version: Some(object.meta().resource_version.clone()),
        }
    }

    /// The same object in whatever state.
    #[must_use]
    pub fn at_any_revision(mut self) -> Self {
        self.resource_version = None;
        self
    }
}

/// What happens to the dependents of a deleted object.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Propagation {
    /// They are collected after it is gone.
    Background,
    /// It waits for them.
    Foreground,
    /// They are left.
    Orphan,
}

impl Propagation {
    /// The word of the API.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Background => "Background",
            Self::Foreground => "Foreground",
            Self::Orphan => "Orphan",
        }
    }
}

/// `Normal` or `Warning`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EventType {
    /// As intended.
    Normal,
    /// Somebody should look.
    Warning,
}

/// Stands in the message of an event for the name of the object that the latest `Create` before it in the plan made:
/// the server chooses names under `generateName`, so a plan cannot know them.
pub const CREATED_NAME: &str = "{created}";

/// What a [`Action::Confirm`] asks of the server.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fact {
    /// There is no object of that type, name and uid (another uid counts as absent).
    Absent,
    /// The object exists with that uid, and its deletion was not asked for.
    Alive,
    /// The object exists with that uid, is being deleted, and waits for its dependents: it has the finalizer
    /// [`FOREGROUND`].
    Foreground,
}

/// Finalizer of an object that goes after its dependents.
pub const FOREGROUND: &str = "foregroundDeletion";
/// Finalizer of an object that goes once its dependents are let go.
pub const ORPHAN: &str = "orphan";

/// One thing to do. The runtime does them in order and stops at the first that fails. Neighbours of the same kind about
/// different objects, none of them the key's own, may be done side by side: some that stand after a failed one may have
/// happened then.
#[derive(Clone, Debug, PartialEq)]
pub enum Action {
    /// Create an object. `metadata.generateName` is allowed.
    Create {
        /// Type.
        resource: ResourceType,
        /// The whole object as JSON.
        object: Value,
    },
    /// Change fields by JSON merge patch.
    Patch {
        /// Which.
        target: Target,
        /// The patch, without preconditions: the runtime adds uid and resourceVersion.
        patch: Value,
    },
    /// Change the status by JSON merge patch; the value is that of `status`. At most one an object and
    /// plan, and the last write to that object.
    Status {
        /// Which.
        target: Target,
        /// Patch of the status alone.
        status: Value,
    },
    /// Bind a pod to a node.
    Bind {
        /// The pod.
        target: Target,
        /// Name of the node.
        node: String,
    },
    /// Replace through a subresource (`finalize`).
    Replace {
        /// Which.
        target: Target,
        /// Subresource.
        subresource: &'static str,
        /// The whole object as JSON.
        object: Value,
    },
    /// Delete.
    Delete {
        /// Which.
        target: Target,
        /// What happens to dependents.
        propagation: Propagation,
        /// Seconds; `None` is what the object asks for.
        grace_seconds: Option<i64>,
    },
    /// Make sure, by a live read that no cache answers, of something the following actions rest on. Writes nothing.
    /// `perform` gets the object of the target's type and key (its `resource_version` is not looked at); where the fact
    /// does not hold, or the read fails for any reason but "not found", the plan stops there as at a conflict, and the
    /// key is planned anew after backoff, when the cache knows better.
    Confirm {
        /// About which object.
        target: Target,
        /// What must hold.
        fact: Fact,
    },
    /// Make sure, by a live list that no cache answers (`limit=1` is enough), that a namespace holds no object of a type.
    /// Writes nothing; where it holds one, or the list fails for any reason but "not found", the plan stops as with
    /// [`Action::Confirm`].
    ConfirmEmpty {
        /// The type.
        resource: ResourceType,
        /// The namespace.
        namespace: String,
    },
    /// Tell people. Never the reason for another reconcile; equal events are counted, not repeated.
    Event {
        /// About which object.
        about: Target,
        /// Kind of event.
        type_: EventType,
        /// One CamelCase word.
        reason: &'static str,
        /// A sentence. [`CREATED_NAME`] in it is replaced by the name of the object created last.
        message: String,
    },
}

impl Action {
    /// Whether the action changes an object (events are not objects in this sense, confirmations only read).
    pub fn is_write(&self) -> bool {
        !matches!(self, Self::Event { .. } | Self::Confirm { .. } | Self::ConfirmEmpty { .. })
    }
}

/// When to look again, if nothing happens before.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Next {
    /// Only when something changes.
    #[default]
    OnChange,
    /// At this instant at the latest.
    At(Timestamp),
}

impl Next {
    /// The earlier of both.
    #[must_use]
    pub fn or_at(self, at: Timestamp) -> Self {
        match self {
            Self::OnChange => Self::At(at),
            Self::At(other) => Self::At(other.min(at)),
        }
    }
}

/// Something that was not done, and what it waits for. Feeds conditions, events, `describe` and `strata why`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Note {
    /// One CamelCase word.
    pub reason: &'static str,
    /// What is waited for, as a sentence.
    pub message: String,
}

/// What to do for one key.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Plan {
    /// In order.
    pub actions: Vec<Action>,
    /// When to look again.
    pub next: Next,
    /// What is not done, and why.
    pub notes: Vec<Note>,
}

impl Plan {
    /// Nothing to do.
    pub fn settled() -> Self {
        Self::default()
    }

    /// Whether nothing is to be done now.
    pub fn is_settled(&self) -> bool {
        self.actions.is_empty()
    }

    /// Adds a note.
    pub fn note(&mut self, reason: &'static str, message: impl Into<String>) {
        self.notes.push(Note { reason, message: message.into() });
    }

    /// Adds an event about an object.
    pub fn event(
        &mut self,
        about: Target,
        type_: EventType,
        reason: &'static str,
        message: impl Into<String>,
    ) {
        self.actions.push(Action::Event { about, type_, reason, message: message.into() });
    }
}

/// An observation that cannot be made: an object in the cache that does not parse. Retrying does not help until it
/// changes, so the key waits for that.
#[derive(Debug, thiserror::Error)]
#[error("{key}: {message}")]
pub struct ObserveError {
    /// The key that was observed.
    pub key: Key,
    /// What is wrong, for people.
    pub message: String,
}

impl ObserveError {
    /// What `map_err` wants: the error of a key from whatever was wrong, with its sources.
    pub fn at<E: std::error::Error>(key: &Key) -> impl Fn(E) -> Self {
        move |error| {
            let mut message = error.to_string();
            let mut source = error.source();
            while let Some(inner) = source {
                message.push_str(": ");
                message.push_str(&inner.to_string());
                source = inner.source();
            }
            Self { key: key.clone(), message }
        }
    }
}

/// What a refused action was.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Attempt {
    /// To create something.
    Create,
    /// To delete something.
    Delete,
    /// Anything else.
    Other,
}

/// An action of a plan that the server refused, for a reason that is not one of timing.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Refusal {
    /// What was tried.
    pub attempt: Attempt,
    /// What the server said.
    pub message: String,
}

/// A controller. Its value holds configuration only; all state is in the world.
pub trait Controller: Send + Sync + 'static {
    /// What is observed for one key.
    type Observed: Send;

    /// Its name: of the process, the lease, the identity, the metrics.
    fn name(&self) -> &'static str;

    /// What it watches.
    fn watches(&self) -> Vec<Watched>;

    /// Gathers what matters for a key. `None`: the root is gone, and there is nothing to hold.
    fn observe(&self, view: &dyn View, key: &Key) -> Result<Option<Self::Observed>, ObserveError>;

    /// Decides. Total, deterministic, bounded; settles: once its actions are applied, it has none.
    fn plan(&self, observed: &Self::Observed, now: Timestamp) -> Plan;

    /// What else to do when the server refused an action of a plan for what was observed: to tell of it. The key is
    /// tried again in any case. Nothing, unless a controller says otherwise.
    fn refused(&self, observed: &Self::Observed, refusal: &Refusal, now: Timestamp) -> Plan {
        let _ = (observed, refusal, now);
        Plan::settled()
    }
}

/// The keys to which a changed object leads.
pub fn keys_of(watched: &Watched, view: &dyn View, object: &Object) -> Vec<Key> {
    match &watched.map {
        MapTo::Itself => vec![Key::new(&watched.resource, object.key())],
        MapTo::Controller(root) => {
            let owner =
                object.meta().controller().filter(|o| o.group() == root.id.group && o.kind == root.kind);
            let namespace =
                if root.is_namespaced() { object.meta().namespace.clone() } else { String::new() };
            owner.map(|o| Key::new(root, ObjectKey::new(namespace, o.name.clone()))).into_iter().collect()
        }
        MapTo::With(map) => map(view, object),
        MapTo::By(map) => map(view, object),
    }
}
