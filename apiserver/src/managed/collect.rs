//! The field set of a whole value: what an applied configuration claims, or what a new part of an object makes its
//! writer own. Knows nodes and field sets; decides nothing about others.

use std::collections::BTreeSet;
use std::fmt;

use serde_json::{Map, Value};

use super::fields::{FieldSet, Owned};
use super::path;
use super::shape::{Place, Schema, Shape, is_hollow};

/// The most problems of one configuration that are told.
pub const MAX_PROBLEMS: usize = 20;

/// Members of `metadata` that have owners; the others belong to the server.
pub const OWNED_METADATA: &[&str] =
    &["annotations", "finalizers", "generateName", "labels", "ownerReferences"];

/// Why a configuration cannot be applied.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Problem {
    /// Where, for people, such as `.spec.bogus`.
    pub path: String,
    /// What.
    pub kind: ProblemKind,
}

/// What is wrong with a configuration.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ProblemKind {
    /// The schema has no such field.
    NotDeclared,
    /// Two elements of a list or set are the same; the path of the second.
    Duplicate {
        /// The key or value, for people.
        key: String,
    },
    /// An element lacks a field that tells elements apart.
    NoKey {
        /// The fields that an element must have.
        keys: String,
    },
    /// A set holds something that is no plain value.
    NotPlain,
}

impl fmt::Display for Problem {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let path = &self.path;
        match &self.kind {
            ProblemKind::NotDeclared => write!(formatter, "{path}: field not declared in schema"),
            ProblemKind::Duplicate { key } => write!(formatter, "{path}: duplicate entries for key {key}"),
            ProblemKind::NoKey { keys } => {
                write!(formatter, "{path}: element must have the fields that tell elements apart: {keys}")
            }
            ProblemKind::NotPlain => write!(formatter, "{path}: elements of a set must be plain values"),
        }
    }
}

/// What an applied configuration claims. Structs and lists are claimed by what they hold, or themselves where they hold
/// nothing; elements and map keys themselves as well.
pub fn claimed(schema: Schema<'_>, config: &Value) -> Result<FieldSet, Vec<Problem>> {
    let mut collector = Collector { containers: false, path: String::new(), problems: Vec::new() };
    let owned = collector.value(Place::root(schema), config);
    if collector.problems.is_empty() { Ok(strip(owned.below)) } else { Err(collector.problems) }
}

/// What the writer of a value that was not there before owns of it. Lists, maps and optional structs are owned
/// themselves as well, as their being there is new.
pub fn added(place: Place<'_>, value: &Value) -> Owned {
    Collector { containers: true, path: String::new(), problems: Vec::new() }.value(place, value)
}

/// Takes out what nobody owns: the type, and the server's part of metadata.
pub fn strip(mut fields: FieldSet) -> FieldSet {
    fields.keep(|step| !matches!(step, "f:apiVersion" | "f:kind"));
    fields.keep_below("f:metadata", |name| OWNED_METADATA.contains(&name));
    fields
}

struct Collector {
    /// Whether containers are owned themselves.
    containers: bool,
    path: String,
    problems: Vec<Problem>,
}

impl Collector {
    fn problem(&mut self, step: &str, kind: ProblemKind) {
        if self.problems.len() < MAX_PROBLEMS {
            let mut path = self.path.clone();
            path::push(&mut path, step);
            self.problems.push(Problem { path, kind });
        }
    }

    fn below(&mut self, step: &str, place: Place<'_>, value: &Value) -> Owned {
        let length = self.path.len();
        path::push(&mut self.path, step);
        let owned = self.value(place, value);
        self.path.truncate(length);
        owned
    }

    fn value(&mut self, place: Place<'_>, value: &Value) -> Owned {
        let itself = if self.containers { !place.always } else { is_hollow(value) };
        let mut owned = Owned { itself, below: FieldSet::default() };
        match (place.shape(value), value) {
            (Shape::Struct(object), Value::Object(members)) => {
                for (name, member) in members {
                    let step = path::field(name);
                    let Some(field) = object.field(name) else {
                        self.problem(&step, ProblemKind::NotDeclared);
                        continue;
                    };
                    let below = self.below(&step, place.field(name, field), member);
                    owned.below.put(step, below);
                }
            }
            (Shape::Map(inner), Value::Object(members)) => self.map(inner, members, &mut owned),
            (Shape::Keyed(keys, item), Value::Array(items)) => self.keyed(keys, item, items, &mut owned),
            (Shape::Set, Value::Array(items)) => self.set(items, &mut owned),
            _ => owned.itself |= !is_hollow(value),
        }
        owned
    }

    fn map(&mut self, inner: Place<'_>, members: &Map<String, Value>, owned: &mut Owned) {
        for (name, member) in members {
            let step = path::field(name);
            let mut below = self.below(&step, inner, member);
            below.itself = true;
            owned.below.put(step, below);
        }
    }

    fn keyed(&mut self, keys: &[Box<str>], item: Place<'_>, items: &[Value], owned: &mut Owned) {
        let mut seen = BTreeSet::new();
        for (index, element) in items.iter().enumerate() {
            let Some(step) = path::keyed(keys, element) else {
                self.problem(&format!("i:{index}"), ProblemKind::NoKey { keys: keys.join(", ") });
                continue;
            };
            self.once(&mut seen, &step);
            let mut below = self.below(&step, item, element);
            below.itself = true;
            owned.below.put(step, below);
        }
    }

    fn set(&mut self, items: &[Value], owned: &mut Owned) {
        let mut seen = BTreeSet::new();
        for (index, element) in items.iter().enumerate() {
            let Some(step) = path::element(element) else {
                self.problem(&format!("i:{index}"), ProblemKind::NotPlain);
                continue;
            };
            self.once(&mut seen, &step);
            owned.below.put(step, Owned::leaf());
        }
    }

    fn once(&mut self, seen: &mut BTreeSet<String>, step: &str) {
        if !seen.insert(step.to_owned()) {
            let mut key = String::new();
            path::push(&mut key, step);
            if self.problems.len() < MAX_PROBLEMS {
                self.problems.push(Problem { path: self.path.clone(), kind: ProblemKind::Duplicate { key } });
            }
        }
    }
}
