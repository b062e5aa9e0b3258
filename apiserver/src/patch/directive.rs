//! The names of a strategic merge patch's directives, and the order it gives to merged lists. Knows no schema.

use std::collections::HashMap;

use serde_json::{Map, Value};

/// In a struct or a list element: what to do with it; one of [`DELETE`], [`REPLACE`], [`MERGE`].
pub const PATCH: &str = "$patch";
/// In a struct: the fields to keep; all others are cleared.
pub const RETAIN_KEYS: &str = "$retainKeys";
/// Before the name of a list field: the order that its elements shall have.
pub const SET_ELEMENT_ORDER: &str = "$setElementOrder/";
/// Before the name of a list field of plain values: the values to take out.
pub const DELETE_FROM_PRIMITIVE_LIST: &str = "$deleteFromPrimitiveList/";

/// Value of [`PATCH`]: clear the struct, or take the element out of the list.
pub const DELETE: &str = "delete";
/// Value of [`PATCH`]: take the struct or the list as the patch has it.
pub const REPLACE: &str = "replace";
/// Value of [`PATCH`]: merge, as without a directive.
pub const MERGE: &str = "merge";

/// Whether a member of a patch is a directive and not a field.
pub fn is_directive(name: &str) -> bool {
    name == PATCH
        || name == RETAIN_KEYS
        || name.starts_with(SET_ELEMENT_ORDER)
        || name.starts_with(DELETE_FROM_PRIMITIVE_LIST)
}

/// What tells an element of a merging list apart: its merge key's value, or the plain value itself.
pub fn identity<'a>(element: &'a Value, merge_key: Option<&str>) -> Option<&'a Value> {
    match merge_key {
        Some(key) => element.get(key),
        None => Some(element),
    }
}

/// The members of a struct without directives, as a new value.
pub fn without_directives(members: &Map<String, Value>) -> Map<String, Value> {
    let kept = members.iter().filter(|(name, _)| !is_directive(name));
    kept.map(|(name, member)| (name.clone(), member.clone())).collect()
}

/// Where each element of a list is, by its identity; of equal ones the first.
pub fn places<'a>(list: &'a [Value], merge_key: Option<&str>) -> HashMap<&'a Value, usize> {
    let mut places = HashMap::with_capacity(list.len());
    for (place, element) in list.iter().enumerate() {
        if let Some(id) = identity(element, merge_key) {
            places.entry(id).or_insert(place);
        }
    }
    places
}

/// Puts a merged list in order. Elements that `wanted` names follow its order; the others keep the order they had in
/// `before`. Where the two meet, an element goes first if it was in front of the other one before; an element that was
/// not there before goes first.
pub fn order(merged: Vec<Value>, wanted: &[Value], before: &[Value], merge_key: Option<&str>) -> Vec<Value> {
    let (wanted, before) = (places(wanted, merge_key), places(before, merge_key));
    let ranked = merged.into_iter().map(|element| {
        let id = identity(&element, merge_key);
        let rank = |places: &HashMap<&Value, usize>| id.and_then(|id| places.get(id).copied());
        Ranked { wanted: rank(&wanted), before: rank(&before), element }
    });
    let (mut named, mut others): (Vec<_>, Vec<_>) = ranked.partition(|ranked| ranked.wanted.is_some());
    named.sort_by_key(|ranked| ranked.wanted);
    others.sort_by_key(|ranked| ranked.before.unwrap_or(usize::MAX));

    let mut ordered = Vec::with_capacity(named.len() + others.len());
    let mut others = others.into_iter().peekable();
    for named in named {
        let in_front = |other: &Ranked| matches!((other.before, named.before), (Some(a), Some(b)) if a < b);
        while let Some(other) = others.next_if(in_front) {
            ordered.push(other.element);
        }
        ordered.push(named.element);
    }
    ordered.extend(others.map(|other| other.element));
    ordered
}

struct Ranked {
    wanted: Option<usize>,
    before: Option<usize>,
    element: Value,
}
