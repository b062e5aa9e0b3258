//! What differs between two versions of an object, as field sets. Looks only into the parts that differ. Knows nodes
//! and field sets; decides nothing about owners.

use std::collections::BTreeMap;

use serde_json::{Map, Value};

use super::collect::{self, OWNED_METADATA};
use super::fields::{FieldSet, Owned};
use super::path;
use super::shape::{Place, Schema, Shape, is_hollow};
use crate::schema::node::Node;

/// What differs between two versions.
#[derive(Debug, Default)]
pub struct Changes {
    /// Places with a new value, whether there was one before or not.
    pub set: FieldSet,
    /// Places that are gone.
    pub removed: FieldSet,
}

impl Changes {
    /// Whether nothing differs. (The order of list elements may: nobody owns it.)
    pub fn is_empty(&self) -> bool {
        self.set.is_empty() && self.removed.is_empty()
    }

    fn put(&mut self, step: String, difference: Difference) {
        if difference.removed.any() {
            self.removed.put(step.clone(), difference.removed);
        }
        self.set.put(step, difference.set);
    }
}

/// Compares two versions of an object, or takes it as new where there is no old one. The type and the server's part of
/// metadata do not count.
pub fn objects(schema: Schema<'_>, old: Option<&Value>, new: &Value) -> Changes {
    let nothing = Map::new();
    let old = old.and_then(Value::as_object).unwrap_or(&nothing);
    let new = new.as_object().unwrap_or(&nothing);
    let root = Place::root(schema);
    let mut changes = members(root, old, new, |name| !matches!(name, "apiVersion" | "kind" | "metadata"));
    let (old, new) = (metadata(old).unwrap_or(&nothing), metadata(new).unwrap_or(&nothing));
    let inner = members(member(root, "metadata"), old, new, |name| OWNED_METADATA.contains(&name));
    changes.put(path::field("metadata"), inner.into());
    changes
}

fn metadata(object: &Map<String, Value>) -> Option<&Map<String, Value>> {
    object.get("metadata").and_then(Value::as_object)
}

/// What differs at one place.
#[derive(Debug, Default)]
struct Difference {
    set: Owned,
    removed: Owned,
}

impl From<Changes> for Difference {
    fn from(changes: Changes) -> Self {
        Self {
            set: Owned { itself: false, below: changes.set },
            removed: Owned { itself: false, below: changes.removed },
        }
    }
}

/// The place of a member of a struct or map.
fn member<'a>(place: Place<'a>, name: &str) -> Place<'a> {
    match place.node.resolve() {
        Node::Object(object) => match object.field(name) {
            Some(field) => place.field(name, field),
            None => Place::plain(&Node::Any),
        },
        Node::Map { value, .. } => Place::plain(value),
        _ => Place::plain(&Node::Any),
    }
}

fn members(
    place: Place<'_>,
    old: &Map<String, Value>,
    new: &Map<String, Value>,
    counts: impl Fn(&str) -> bool,
) -> Changes {
    let mut changes = Changes::default();
    for (name, value) in new.iter().filter(|(name, _)| counts(name)) {
        let before = old.get(name);
        if before != Some(value) {
            changes.put(path::field(name), at(member(place, name), before, Some(value)));
        }
    }
    for (name, value) in old.iter().filter(|(name, _)| counts(name) && !new.contains_key(*name)) {
        changes.put(path::field(name), at(member(place, name), Some(value), None));
    }
    changes
}

/// What differs between two values of one place.
fn at(place: Place<'_>, old: Option<&Value>, new: Option<&Value>) -> Difference {
    match (old, new) {
        (None, Some(new)) => Difference { set: collect::added(place, new), removed: Owned::default() },
        (Some(old), None) => Difference { set: Owned::default(), removed: collect::added(place, old) },
        (Some(old), Some(new)) if old != new => both(place, old, new),
        _ => Difference::default(),
    }
}

fn both(place: Place<'_>, old: &Value, new: &Value) -> Difference {
    let replaced = || Difference { set: Owned::leaf(), removed: Owned::default() };
    if is_hollow(old) && is_hollow(new) {
        return replaced();
    }
    match (place.shape(old), place.shape(new), old, new) {
        (Shape::Struct(_), Shape::Struct(_), Value::Object(old), Value::Object(new))
        | (Shape::Map(_), Shape::Map(_), Value::Object(old), Value::Object(new)) => {
            members(place, old, new, |_| true).into()
        }
        (Shape::Keyed(keys, item), Shape::Keyed(..), Value::Array(old), Value::Array(new)) => {
            let step = |element: &Value| path::keyed(keys, element);
            match (index(old, step), index(new, step)) {
                (Some(old), Some(new)) => elements(item, &old, new),
                _ => replaced(),
            }
        }
        (Shape::Set, Shape::Set, Value::Array(old), Value::Array(new)) => {
            match (index(old, path::element), index(new, path::element)) {
                (Some(old), Some(new)) => elements(Place::plain(&Node::Any), &old, new),
                _ => replaced(),
            }
        }
        _ => replaced(),
    }
}

/// Elements by the step that tells them apart. Of two with the same step the first counts. `None` where some element
/// cannot be told apart.
fn index(items: &[Value], step: impl Fn(&Value) -> Option<String>) -> Option<BTreeMap<String, &Value>> {
    let mut index = BTreeMap::new();
    for item in items {
        index.entry(step(item)?).or_insert(item);
    }
    Some(index)
}

fn elements(item: Place<'_>, old: &BTreeMap<String, &Value>, new: BTreeMap<String, &Value>) -> Difference {
    let mut changes = Changes::default();
    for (step, value) in old.iter().filter(|(step, _)| !new.contains_key(*step)) {
        changes.put(step.clone(), at(item, Some(value), None));
    }
    for (step, value) in new {
        let before = old.get(&step).copied();
        changes.put(step, at(item, before, Some(value)));
    }
    changes.into()
}
