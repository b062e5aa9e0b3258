//! Applies strategic merge patches: structs merge, lists that have a merge key merge element by element (new ones go to
//! the front), and directives say what plain merging cannot. Knows schemas only as rules for merging: whether the result
//! is a valid object is for others to check.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use serde_json::{Map, Value};

use super::directive::{
    self, DELETE, DELETE_FROM_PRIMITIVE_LIST, MERGE, PATCH, REPLACE, RETAIN_KEYS, SET_ELEMENT_ORDER,
};
use crate::schema::node::{Node, PatchRule};

/// Why a strategic merge patch was not applied.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum StrategicError {
    /// The patch or the object is not a JSON object.
    #[error("a strategic merge patch and what it applies to are objects")]
    NotAnObject,
    /// An element of a merging list lacks the field that tells it apart.
    #[error("map: {element} does not contain declared merge key: {key}")]
    MissingMergeKey {
        /// Path of the list.
        path: String,
        /// The element, as JSON.
        element: String,
        /// The field that it lacks.
        key: String,
    },
    /// An element of a list that merges by key is not an object.
    #[error("{path}: an element that merges by key {key} must be an object")]
    ElementNotAnObject {
        /// Path of the list.
        path: String,
        /// The merge key.
        key: String,
    },
    /// The value of `$patch` is not one that exists.
    #[error("unknown patch type {directive} found in {path:?}")]
    UnknownDirective {
        /// Path of the struct that has it.
        path: String,
        /// The value, as JSON.
        directive: String,
    },
    /// A directive does not hold what it must, or contradicts the patch beside it.
    #[error("{path}: {problem}")]
    BadDirective {
        /// Path of the directive.
        path: String,
        /// What is wrong.
        problem: &'static str,
    },
}

/// The object after the patch. `node` is the schema of the object; where it describes nothing, structs merge and lists
/// are replaced.
pub fn apply(object: Value, patch: &Value, node: &Node) -> Result<Value, StrategicError> {
    let (Value::Object(members), Value::Object(changes)) = (object, patch) else {
        return Err(StrategicError::NotAnObject);
    };
    merge_struct(members, changes, Some(node), &mut Path::default()).map(Value::Object)
}

/// Where we are, for errors.
#[derive(Default)]
struct Path(Vec<String>);

impl Path {
    fn text(&self) -> String {
        self.0.join(".")
    }

    fn with(&self, name: &str) -> String {
        if self.0.is_empty() { name.to_owned() } else { format!("{}.{name}", self.text()) }
    }

    fn below<T>(&mut self, name: &str, run: impl FnOnce(&mut Self) -> T) -> T {
        self.0.push(name.to_owned());
        let result = run(self);
        self.0.pop();
        result
    }
}

type Members = Map<String, Value>;

fn merge_struct(
    mut members: Members,
    patch: &Members,
    node: Option<&Node>,
    path: &mut Path,
) -> Result<Members, StrategicError> {
    match kind_of_patch(patch, path)? {
        Kind::Delete => return Ok(Map::new()),
        Kind::Replace => return Ok(directive::without_directives(patch)),
        Kind::Merge => {}
    }
    if let Some(kept) = patch.get(RETAIN_KEYS) {
        retain(&mut members, patch, kept, path)?;
    }
    for (name, change) in patch.iter().filter(|(name, _)| !directive::is_directive(name)) {
        if change.is_null() {
            members.remove(name);
            continue;
        }
        let old = members.remove(name);
        let new = path.below(name, |path| merge_member(old, change, patch, node, name, path))?;
        if let Some(new) = new {
            members.insert(name.clone(), new);
        }
    }
    for name in lists_with_directives_only(patch) {
        let Some(Value::Array(old)) = members.remove(name) else { continue };
        let new = path.below(name, |path| merge_list_member(old, &[], patch, node, name, path))?;
        members.insert(name.to_owned(), Value::Array(new));
    }
    Ok(members)
}

/// Fields that a patch orders or takes values out of, without having a value for them.
fn lists_with_directives_only(patch: &Members) -> Vec<&str> {
    let named = |name: &'_ String| -> Option<usize> {
        [SET_ELEMENT_ORDER, DELETE_FROM_PRIMITIVE_LIST]
            .iter()
            .find(|prefix| name.starts_with(**prefix))
            .map(|prefix| prefix.len())
    };
    let mut names: Vec<&str> = patch.keys().filter_map(|name| Some(&name[named(name)?..])).collect();
    names.retain(|name| !patch.contains_key(*name));
    names.sort_unstable();
    names.dedup();
    names
}

enum Kind {
    Merge,
    Replace,
    Delete,
}

fn kind_of_patch(patch: &Members, path: &Path) -> Result<Kind, StrategicError> {
    match patch.get(PATCH) {
        None => Ok(Kind::Merge),
        Some(Value::String(kind)) if kind == MERGE => Ok(Kind::Merge),
        Some(Value::String(kind)) if kind == REPLACE => Ok(Kind::Replace),
        Some(Value::String(kind)) if kind == DELETE => Ok(Kind::Delete),
        Some(other) => {
            Err(StrategicError::UnknownDirective { path: path.text(), directive: other.to_string() })
        }
    }
}

fn retain(members: &mut Members, patch: &Members, kept: &Value, path: &Path) -> Result<(), StrategicError> {
    let problem = |problem| StrategicError::BadDirective { path: path.with(RETAIN_KEYS), problem };
    let kept = kept.as_array().ok_or_else(|| problem("must be a list of field names"))?;
    let keeps = |name: &String| kept.iter().any(|kept| kept.as_str() == Some(name));
    let set = patch.iter().filter(|(name, value)| !directive::is_directive(name) && !value.is_null());
    if set.map(|(name, _)| name).any(|name| !keeps(name)) {
        return Err(problem("must list every field that the patch sets"));
    }
    members.retain(|name, _| keeps(name));
    Ok(())
}

/// The new value of the member `name`, or `None` if it is gone.
fn merge_member(
    old: Option<Value>,
    change: &Value,
    patch: &Members,
    node: Option<&Node>,
    name: &str,
    path: &mut Path,
) -> Result<Option<Value>, StrategicError> {
    match change {
        Value::Object(inner) => {
            let old = match old {
                Some(Value::Object(members)) if !replaces(node, name) => members,
                _ => Map::new(),
            };
            let child = node.and_then(|node| node.member(name)).map(Arc::as_ref);
            merge_struct(old, inner, child, path).map(|merged| Some(Value::Object(merged)))
        }
        Value::Array(elements) => {
            let old = match old {
                Some(Value::Array(old)) => old,
                _ => Vec::new(),
            };
            merge_list_member(old, elements, patch, node, name, path).map(|list| Some(Value::Array(list)))
        }
        scalar => Ok(Some(scalar.clone())),
    }
}

fn rule<'a>(node: Option<&'a Node>, name: &str) -> Option<&'a PatchRule> {
    node.and_then(|node| node.field(name)).map(|field| &field.patch)
}

fn replaces(node: Option<&Node>, name: &str) -> bool {
    rule(node, name).is_some_and(|rule| rule.replace)
}

fn merge_list_member(
    old: Vec<Value>,
    elements: &[Value],
    patch: &Members,
    node: Option<&Node>,
    name: &str,
    path: &mut Path,
) -> Result<Vec<Value>, StrategicError> {
    let list = |prefix: &str| match patch.get(&format!("{prefix}{name}")) {
        None => Ok(None),
        Some(Value::Array(list)) => Ok(Some(list.as_slice())),
        Some(_) => {
            let path = format!("{}{}", prefix, path.text());
            Err(StrategicError::BadDirective { path, problem: "must be a list" })
        }
    };
    let (wanted, deleted) = (list(SET_ELEMENT_ORDER)?, list(DELETE_FROM_PRIMITIVE_LIST)?);
    let Some(rule) = rule(node, name).filter(|rule| rule.merge) else {
        return Ok(if patch.contains_key(name) { elements.to_vec() } else { old });
    };
    let item = node.and_then(|node| node.member(name)).and_then(|list| list.item()).map(Arc::as_ref);
    match rule.merge_key.as_deref() {
        Some(key) => merge_by_key(old, elements, wanted, key, item, path),
        None => Ok(merge_plain(old, elements, wanted, deleted.unwrap_or_default())),
    }
}

fn merge_plain(
    before: Vec<Value>,
    added: &[Value],
    wanted: Option<&[Value]>,
    deleted: &[Value],
) -> Vec<Value> {
    let deleted = directive::places(deleted, None);
    let mut merged: Vec<Value> =
        before.iter().filter(|value| !deleted.contains_key(value)).cloned().collect();
    let known = directive::places(&before, None);
    let new = directive::places(added, None);
    let is_new = |(place, value): &(usize, &Value)| {
        new.get(value) == Some(place) && (!known.contains_key(value) || deleted.contains_key(value))
    };
    merged.extend(added.iter().enumerate().filter(is_new).map(|(_, value)| value.clone()));
    directive::order(merged, wanted.unwrap_or(added), &before, None)
}

fn merge_by_key(
    before: Vec<Value>,
    elements: &[Value],
    wanted: Option<&[Value]>,
    key: &str,
    item: Option<&Node>,
    path: &mut Path,
) -> Result<Vec<Value>, StrategicError> {
    let Changes { replace, deletes, merges } = read_changes(elements, key, path)?;
    if replace {
        return Ok(merges
            .into_iter()
            .map(|members| Value::Object(directive::without_directives(members)))
            .collect());
    }
    let deletes: HashSet<&Value> = deletes.into_iter().collect();
    let gone = |element: &Value| element.get(key).is_some_and(|id| deletes.contains(id));
    let mut merged: Vec<Value> = before.iter().filter(|element| !gone(element)).cloned().collect();
    let mut places: HashMap<Value, usize> = HashMap::new();
    for (place, element) in merged.iter().enumerate() {
        if let Some(id) = element.get(key) {
            places.entry(id.clone()).or_insert(place);
        }
    }
    for members in merges {
        let Some(id) = members.get(key) else { continue };
        let place = places.get(id).copied();
        let old = match place.map(|place| merged[place].take()) {
            Some(Value::Object(old)) => old,
            _ => Map::new(),
        };
        let name = format!("{key}={id}");
        let new = path.below(&name, |path| merge_struct(old, members, item, path))?;
        match place {
            Some(place) => merged[place] = Value::Object(new),
            None => {
                places.insert(id.clone(), merged.len());
                merged.push(Value::Object(new));
            }
        }
    }
    let elements_order: Vec<Value> = elements.iter().filter(|element| !is_marked(element)).cloned().collect();
    Ok(directive::order(merged, wanted.unwrap_or(&elements_order), &before, Some(key)))
}

fn is_marked(element: &Value) -> bool {
    element.get(PATCH).and_then(Value::as_str).is_some_and(|kind| kind == DELETE || kind == REPLACE)
}

/// The elements of a patch to a list that merges by key, by what they ask for.
#[derive(Default)]
struct Changes<'a> {
    replace: bool,
    deletes: Vec<&'a Value>,
    merges: Vec<&'a Members>,
}

fn read_changes<'a>(elements: &'a [Value], key: &str, path: &Path) -> Result<Changes<'a>, StrategicError> {
    let mut changes = Changes::default();
    let replace = elements.iter().any(|element| element.get(PATCH).is_some_and(|kind| kind == REPLACE));
    for element in elements {
        let Value::Object(members) = element else {
            return Err(StrategicError::ElementNotAnObject { path: path.text(), key: key.to_owned() });
        };
        let id = || {
            members.get(key).ok_or_else(|| StrategicError::MissingMergeKey {
                path: path.text(),
                element: element.to_string(),
                key: key.to_owned(),
            })
        };
        match kind_of_patch(members, path)? {
            Kind::Replace => changes.replace = true,
            Kind::Delete => changes.deletes.push(id()?),
            Kind::Merge => {
                if !replace {
                    id()?;
                }
                changes.merges.push(members);
            }
        }
    }
    Ok(changes)
}
