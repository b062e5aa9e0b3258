//! Removal by omission: what a manager applied before and no longer applies goes, unless somebody owns it. Knows nodes
//! and field sets.

use serde_json::{Map, Value};

use super::fields::{FieldSet, below, owns_itself};
use super::path;
use super::shape::{Place, Schema, Shape, is_hollow};
use crate::schema::node::Node;

type Tree = Map<String, Value>;

/// Removes from an object what `last` owns and none of `now` does. A struct field counts as owned where anything below
/// it is; a map's key or a list's element only where it is owned itself.
pub fn prune(schema: Schema<'_>, object: &mut Value, last: &FieldSet, now: &[&FieldSet]) {
    let now: Vec<&Tree> = now.iter().map(|set| set.tree()).collect();
    walk(Place::root(schema), object, last.tree(), &now);
}

/// The trees one step down.
fn down<'a>(trees: &[&'a Tree], step: &str) -> Vec<&'a Tree> {
    trees.iter().filter_map(|tree| below(tree, step)).collect()
}

fn walk(place: Place<'_>, value: &mut Value, last: &Tree, now: &[&Tree]) {
    match (place.shape(value), value) {
        (Shape::Struct(object), Value::Object(members)) => members.retain(|name, member| {
            let step = path::field(name);
            let Some(last) = below(last, &step) else { return true };
            let now = down(now, &step);
            let inner = match object.field(name) {
                Some(field) => place.field(name, field),
                None => Place::plain(&Node::Any),
            };
            !now.is_empty() && stays(inner, member, last, &now)
        }),
        (Shape::Map(inner), Value::Object(members)) => {
            members.retain(|name, member| entry_stays(inner, &path::field(name), member, last, now));
        }
        (Shape::Keyed(keys, item), Value::Array(items)) => items.retain_mut(|element| {
            let Some(step) = path::keyed(keys, element) else { return true };
            let names: Tree = keys
                .iter()
                .filter_map(|key| Some(((**key).to_owned(), element.get(&**key)?.clone())))
                .collect();
            let stays = entry_stays(item, &step, element, last, now);
            // What tells an element apart stays as long as the element does.
            if let (true, Value::Object(members)) = (stays, element) {
                members.extend(names);
            }
            stays
        }),
        (Shape::Set, Value::Array(items)) => items.retain_mut(|element| {
            path::element(element)
                .is_none_or(|step| entry_stays(Place::plain(&Node::Any), &step, element, last, now))
        }),
        _ => {}
    }
}

/// Prunes a map's entry or a list's element; false if it goes.
fn entry_stays(place: Place<'_>, step: &str, value: &mut Value, last: &Tree, now: &[&Tree]) -> bool {
    let Some(last) = below(last, step) else { return true };
    let now = down(now, step);
    if owns_itself(last) && !now.iter().any(|tree| owns_itself(tree)) {
        return false;
    }
    stays(place, value, last, &now)
}

/// Prunes below a value; false if that emptied it and nobody wants it empty.
fn stays(place: Place<'_>, value: &mut Value, last: &Tree, now: &[&Tree]) -> bool {
    let was_empty = is_hollow(value);
    if !last.is_empty() {
        walk(place, value, last, now);
    }
    was_empty || !is_hollow(value) || now.iter().any(|tree| owns_itself(tree))
}
