//! A configuration laid over an object: what it says replaces what is there, what it does not say stays. Knows nodes;
//! knows nothing of owners.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value;

use super::path;
use super::shape::{Place, Schema, Shape};
use crate::schema::node::Node;

/// Lays a configuration over an object.
pub fn merge(schema: Schema<'_>, live: Value, config: &Value) -> Value {
    lay(Place::root(schema), live, config)
}

fn lay(place: Place<'_>, live: Value, config: &Value) -> Value {
    match (place.shape(config), live, config) {
        (Shape::Struct(object), Value::Object(mut live), Value::Object(config)) => {
            for (name, value) in config {
                let inner = match object.field(name) {
                    Some(field) => place.field(name, field),
                    None => Place::plain(&Node::Any),
                };
                let merged = over(inner, live.remove(name), value);
                live.insert(name.clone(), merged);
            }
            Value::Object(live)
        }
        (Shape::Map(inner), Value::Object(mut live), Value::Object(config)) => {
            for (name, value) in config {
                let merged = over(inner, live.remove(name), value);
                live.insert(name.clone(), merged);
            }
            Value::Object(live)
        }
        (Shape::Keyed(keys, item), Value::Array(live), Value::Array(config)) => {
            Value::Array(lists(item, live, config, |element| path::keyed(keys, element)))
        }
        (Shape::Set, Value::Array(live), Value::Array(config)) => {
            Value::Array(lists(Place::plain(&Node::Any), live, config, path::element))
        }
        _ => config.clone(),
    }
}

fn over(place: Place<'_>, live: Option<Value>, config: &Value) -> Value {
    match live {
        Some(live) => lay(place, live, config),
        None => config.clone(),
    }
}

/// Merges lists by element. Elements that both have follow the configuration's order; those that only the object has
/// stay before the elements that they stood before.
fn lists(
    item: Place<'_>,
    live: Vec<Value>,
    config: &[Value],
    step: impl Fn(&Value) -> Option<String>,
) -> Vec<Value> {
    let wanted: Vec<Option<String>> = config.iter().map(&step).collect();
    let in_config: BTreeSet<&str> = wanted.iter().flatten().map(String::as_str).collect();
    let order: Vec<Option<String>> = live.iter().map(&step).collect();
    let shared = |at: &Option<String>| at.as_deref().is_some_and(|step| in_config.contains(step));
    let mut there: BTreeMap<String, Value> = BTreeMap::new();
    let mut own: Vec<Option<Value>> = Vec::with_capacity(live.len());
    for (value, at) in live.into_iter().zip(&order) {
        match at {
            Some(at) if shared(&Some(at.clone())) => {
                there.entry(at.clone()).or_insert(value);
                own.push(None);
            }
            _ => own.push(Some(value)),
        }
    }
    let in_live: BTreeSet<String> = there.keys().cloned().collect();
    let mut next_shared = wanted.iter().flatten().filter(|at| in_live.contains(*at)).peekable();
    let mut merged = Vec::with_capacity(own.len() + config.len());
    let mut at = 0;
    for (element, step) in config.iter().zip(&wanted) {
        // What only the object has comes first, up to the next element that both have.
        while at < own.len() {
            match own[at].take() {
                Some(value) => merged.push(value),
                None if order[at].as_ref() == next_shared.peek().copied() => break,
                None => {}
            }
            at += 1;
        }
        let before = step.as_ref().and_then(|step| there.remove(step));
        if before.is_some() {
            if order.get(at) == Some(step) {
                at += 1;
            }
            next_shared.next();
        }
        merged.push(over(item, before, element));
    }
    merged.extend(own.drain(at.min(own.len())..).flatten());
    merged
}
