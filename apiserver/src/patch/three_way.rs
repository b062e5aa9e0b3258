//! Computes the patch of a client-side apply from three versions of an object: what was applied last, what is wanted
//! now, and what is there. It changes what is wanted and differs, deletes what was applied last and is no longer wanted,
//! and leaves alone what others set. Nothing to change gives `{}`; and applying the patch leaves nothing to change.

use std::collections::HashSet;
use std::sync::Arc;

use serde_json::{Map, Value, json};

use super::directive::{
    self, DELETE, DELETE_FROM_PRIMITIVE_LIST, PATCH, REPLACE, RETAIN_KEYS, SET_ELEMENT_ORDER,
};
use crate::decode::scalar;
use crate::schema::node::{Node, PatchRule};

type Members = Map<String, Value>;

/// The patch from `live` towards `wanted`. With a schema it is a strategic merge patch, without one a JSON merge patch.
/// `last` is `None` for an object that was never applied. In `wanted`, `null` counts as absent, but where `last` did not
/// know the member it is deleted.
///
/// Lists that do not merge are compared as their writer meant them: if `wanted` is what was applied last, fields that
/// the server or others added to the elements in place are no difference.
pub fn three_way<'a>(
    last: Option<&'a Value>,
    wanted: &'a Value,
    live: &'a Value,
    schema: Option<&Node>,
) -> Value {
    let nothing = Map::new();
    let members = |value: &'a Value| value.as_object();
    let last = last.and_then(members).unwrap_or(&nothing);
    let live = members(live).unwrap_or(&nothing);
    Value::Object(diff_struct(last, members(wanted).unwrap_or(&nothing), live, schema))
}

fn diff_struct(last: &Members, wanted: &Members, live: &Members, node: Option<&Node>) -> Members {
    let mut patch = Map::new();
    for (name, now) in live {
        let dropped = match wanted.get(name) {
            None => last.get(name).is_some_and(|value| !value.is_null()),
            Some(Value::Null) => last.get(name).is_none_or(|value| !value.is_null()),
            Some(_) => false,
        };
        if dropped && !now.is_null() {
            patch.insert(name.clone(), Value::Null);
        }
    }
    for (name, want) in wanted.iter().filter(|(_, want)| !want.is_null()) {
        let before = last.get(name);
        match live.get(name).filter(|now| !now.is_null()) {
            None if is_hollow(want) && before == Some(want) => {}
            None => {
                patch.insert(name.clone(), addition(want, name, node));
            }
            Some(now) => diff_member(&mut patch, name, Versions { before, want, now }, node),
        }
    }
    patch
}

/// Three versions of one member.
#[derive(Clone, Copy)]
struct Versions<'a> {
    before: Option<&'a Value>,
    want: &'a Value,
    now: &'a Value,
}

impl Versions<'_> {
    /// Whether a value that is replaced as a whole needs no change.
    fn settled(&self) -> bool {
        self.want == self.now || (self.before == Some(self.want) && covers(self.now, self.want))
    }
}

fn diff_member(patch: &mut Members, name: &str, versions: Versions<'_>, node: Option<&Node>) {
    let default = PatchRule::default();
    let rule = node.and_then(|node| node.field(name)).map_or(&default, |field| &field.patch);
    let child = node.and_then(|node| node.member(name)).map(Arc::as_ref);
    match (versions.want, versions.now) {
        (Value::Object(want), Value::Object(_)) if rule.replace => {
            if !versions.settled() {
                let mut whole = want.clone();
                whole.insert(PATCH.to_owned(), json!(REPLACE));
                patch.insert(name.to_owned(), Value::Object(whole));
            }
        }
        (Value::Object(want), Value::Object(now)) => {
            let empty = Map::new();
            let before = versions.before.and_then(Value::as_object).unwrap_or(&empty);
            let mut inner = diff_struct(before, want, now, child);
            if !inner.is_empty() {
                if rule.retain_keys {
                    inner.insert(RETAIN_KEYS.to_owned(), retained(want));
                }
                patch.insert(name.to_owned(), Value::Object(inner));
            }
        }
        (Value::Array(want), Value::Array(now)) if rule.merge => {
            let before = versions.before.and_then(Value::as_array).map_or(&[][..], Vec::as_slice);
            match rule.merge_key.as_deref() {
                Some(key) if told_apart(want, key) && told_apart(now, key) && told_apart(before, key) => {
                    let item = child.and_then(Node::item).map(Arc::as_ref);
                    diff_keyed(patch, name, Keyed { before, want, now, key, rule, item });
                }
                Some(_) if versions.settled() => {}
                Some(_) => {
                    patch.insert(name.to_owned(), replacement(want));
                }
                None => diff_plain(patch, name, before, want, now),
            }
        }
        _ if versions.settled() => {}
        (Value::String(want), Value::String(now)) if is_quantity(child) && same_quantity(want, now) => {}
        (want, _) => {
            patch.insert(name.to_owned(), addition(want, name, node));
        }
    }
}

/// A member that is not there yet, as a patch that merging it into nothing turns into `want`.
fn addition(want: &Value, name: &str, node: Option<&Node>) -> Value {
    let child = node.and_then(|node| node.member(name)).map(Arc::as_ref);
    match want {
        Value::Object(members) => added_struct(members, child),
        Value::Array(elements) => {
            let rule = node.and_then(|node| node.field(name)).map(|field| &field.patch);
            match rule.filter(|rule| rule.merge).and_then(|rule| rule.merge_key.as_deref()) {
                Some(key) if told_apart(elements, key) => {
                    let item = child.and_then(Node::item).map(Arc::as_ref);
                    let added = elements.iter().filter_map(Value::as_object);
                    added.map(|members| added_struct(members, item)).collect()
                }
                Some(_) => replacement(elements),
                None => want.clone(),
            }
        }
        scalar => scalar.clone(),
    }
}

fn added_struct(want: &Members, node: Option<&Node>) -> Value {
    let kept = want.iter().filter(|(_, value)| !value.is_null());
    Value::Object(kept.map(|(name, value)| (name.clone(), addition(value, name, node))).collect())
}

fn retained(want: &Members) -> Value {
    want.iter().filter(|(_, value)| !value.is_null()).map(|(name, _)| json!(name)).collect()
}

fn is_quantity(node: Option<&Node>) -> bool {
    node.is_some_and(|node| matches!(node.resolve(), Node::Quantity))
}

/// Whether two texts name the same amount: `0.5Gi` is stored as `512Mi`.
fn same_quantity(want: &str, now: &str) -> bool {
    scalar::quantity(want).is_some_and(|want| scalar::quantity(now) == Some(want))
}

/// Whether every element has the merge key, each another value.
fn told_apart(list: &[Value], key: &str) -> bool {
    let mut seen = HashSet::new();
    list.iter().all(|element| element.get(key).is_some_and(|id| seen.insert(id)))
}

/// The patch of a merging list whose elements cannot be told apart by the merge key: all or nothing.
fn replacement(want: &[Value]) -> Value {
    let marker = json!({ PATCH: REPLACE });
    std::iter::once(marker).chain(want.iter().map(without_nulls)).collect()
}

struct Keyed<'a> {
    before: &'a [Value],
    want: &'a [Value],
    now: &'a [Value],
    key: &'a str,
    rule: &'a PatchRule,
    item: Option<&'a Node>,
}

fn diff_keyed(patch: &mut Members, name: &str, lists: Keyed<'_>) {
    let Keyed { before, want, now, key, rule, item } = lists;
    let key_of = Some(key);
    let places = |list| directive::places(list, key_of);
    let (had, wants, has) = (places(before), places(want), places(now));
    let members = |list: &'_ [Value], place: Option<&usize>| {
        place.and_then(|place| list[*place].as_object()).cloned().unwrap_or_default()
    };
    let mut changes = Vec::new();
    for element in want {
        let (Some(id), Some(wanted)) = (element.get(key), element.as_object()) else { continue };
        if has.contains_key(id) {
            let (last, live) = (members(before, had.get(id)), members(now, has.get(id)));
            let mut change = diff_struct(&last, wanted, &live, item);
            if !change.is_empty() {
                change.insert(key.to_owned(), id.clone());
                if rule.retain_keys {
                    change.insert(RETAIN_KEYS.to_owned(), retained(wanted));
                }
                changes.push(Value::Object(change));
            }
        } else {
            changes.push(added_struct(wanted, item));
        }
    }
    for id in before.iter().filter_map(|element| element.get(key)) {
        if !wants.contains_key(id) && has.contains_key(id) {
            changes.push(json!({ key: id, PATCH: DELETE }));
        }
    }
    if !changes.is_empty() || !in_order(want, now, key_of) {
        let order = want.iter().filter_map(|element| Some(json!({ key: element.get(key)? }))).collect();
        patch.insert(format!("{SET_ELEMENT_ORDER}{name}"), Value::Array(order));
    }
    if !changes.is_empty() {
        patch.insert(name.to_owned(), Value::Array(changes));
    }
}

fn diff_plain(patch: &mut Members, name: &str, before: &[Value], want: &[Value], now: &[Value]) {
    let (wants, has) = (directive::places(want, None), directive::places(now, None));
    let added: Vec<Value> = want.iter().filter(|value| !has.contains_key(value)).cloned().collect();
    let dropped = before.iter().filter(|value| !wants.contains_key(value) && has.contains_key(value));
    let dropped: Vec<Value> = dropped.cloned().collect();
    if !added.is_empty() || !dropped.is_empty() || !in_order(want, now, None) {
        patch.insert(format!("{SET_ELEMENT_ORDER}{name}"), Value::Array(want.to_vec()));
    }
    if !added.is_empty() {
        patch.insert(name.to_owned(), Value::Array(added));
    }
    if !dropped.is_empty() {
        patch.insert(format!("{DELETE_FROM_PRIMITIVE_LIST}{name}"), Value::Array(dropped));
    }
}

/// Whether the elements of `want` that are in `now` stand there in the same order.
fn in_order(want: &[Value], now: &[Value], merge_key: Option<&str>) -> bool {
    let has = directive::places(now, merge_key);
    let mut seen = HashSet::new();
    let places = want.iter().filter_map(|element| {
        let id = directive::identity(element, merge_key)?;
        if seen.insert(id) { has.get(id) } else { None }
    });
    places.is_sorted()
}

/// The value without the members that are `null`, at any depth of structs. Lists keep theirs: there a `null` is a value.
fn without_nulls(value: &Value) -> Value {
    match value {
        Value::Object(members) => {
            let kept = members.iter().filter(|(_, member)| !member.is_null());
            Value::Object(kept.map(|(name, member)| (name.clone(), without_nulls(member))).collect())
        }
        other => other.clone(),
    }
}

/// Whether a value says nothing: an empty struct or list, or a struct of such. A server drops some of these.
fn is_hollow(value: &Value) -> bool {
    match value {
        Value::Object(members) => members.values().all(|member| member.is_null() || is_hollow(member)),
        Value::Array(items) => items.is_empty(),
        _ => false,
    }
}

/// Whether `now` has everything that `want` says, and at most more fields in structs.
fn covers(now: &Value, want: &Value) -> bool {
    match (now, want) {
        (Value::Object(now), Value::Object(want)) => want.iter().all(|(name, want)| match now.get(name) {
            Some(now) => want.is_null() || covers(now, want),
            None => want.is_null() || is_hollow(want),
        }),
        (Value::Array(now), Value::Array(want)) => {
            now.len() == want.len() && now.iter().zip(want).all(|(now, want)| covers(now, want))
        }
        _ => now == want,
    }
}
