//! A field set: which places of an object somebody owns, in the JSON form `fieldsV1` in which it is stored. Knows no
//! schema and no objects.
//!
//! The form is a tree of steps. `{}` below a step says that the place itself is owned; where places below it are owned
//! too, the member `.` says so. No branch of the tree is without an owned place.

use serde_json::{Map, Value};

use super::path;

/// Marks that a place is owned itself, beside what is below it.
const SELF: &str = ".";
/// How deep a field set may nest: an object's depth and some room.
const MAX_DEPTH: usize = 160;

/// A tree of owned places. Empty: nothing is owned.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct FieldSet(Map<String, Value>);

/// Text that is no field set.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum FieldSetError {
    /// A place that should hold steps holds something else.
    #[error("a field set is a tree of objects")]
    NotATree,
    /// A step of no known form.
    #[error("{step:?} is no step of a field path")]
    BadStep {
        /// The step.
        step: String,
    },
    /// Nested too deep.
    #[error("a field set nests at most {MAX_DEPTH} levels")]
    TooDeep,
}

/// What is owned at one place: itself, and places below it.
#[derive(Debug, Default)]
pub struct Owned {
    /// Whether the place itself is.
    pub itself: bool,
    /// What is below it.
    pub below: FieldSet,
}

impl Owned {
    /// The place itself and nothing below it.
    pub fn leaf() -> Self {
        Self { itself: true, below: FieldSet::default() }
    }

    /// Whether anything is owned here.
    pub fn any(&self) -> bool {
        self.itself || !self.below.is_empty()
    }
}

impl FieldSet {
    /// The set of a `fieldsV1` that a client wrote, brought into its one form.
    pub fn parse(value: &Value) -> Result<Self, FieldSetError> {
        canonical(value, 0).map(|mut tree| {
            tree.remove(SELF);
            Self(tree)
        })
    }

    /// The set of a `fieldsV1` that was stored by this server, taken as it is.
    pub fn stored(value: Value) -> Self {
        match value {
            Value::Object(tree) => Self(tree),
            _ => Self::default(),
        }
    }

    /// Its stored form.
    pub fn into_value(self) -> Value {
        Value::Object(self.0)
    }

    /// Whether nothing is owned.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// The tree of steps.
    pub fn tree(&self) -> &Map<String, Value> {
        &self.0
    }

    /// Puts what is owned at the place one step down; replaces what was known of it.
    pub fn put(&mut self, step: String, owned: Owned) {
        if owned.any() {
            let mut tree = owned.below.0;
            if owned.itself && !tree.is_empty() {
                tree.insert(SELF.to_owned(), Value::Object(Map::new()));
            }
            self.0.insert(step, Value::Object(tree));
        }
    }

    /// Takes out what is owned one step down.
    pub fn take(&mut self, step: &str) -> Option<FieldSet> {
        self.0.remove(step).map(Self::stored)
    }

    /// Keeps what is below these fields of this struct field; all else below it goes.
    pub fn keep_below(&mut self, step: &str, kept: impl Fn(&str) -> bool) {
        let Some(Value::Object(tree)) = self.0.get_mut(step) else { return };
        tree.retain(|below, _| below.strip_prefix("f:").is_some_and(&kept));
        if tree.is_empty() {
            self.0.remove(step);
        }
    }

    /// Keeps these of the steps.
    pub fn keep(&mut self, kept: impl Fn(&str) -> bool) {
        self.0.retain(|step, _| kept(step));
    }

    /// Adds what another set owns.
    pub fn add(&mut self, other: &FieldSet) {
        add(&mut self.0, &other.0);
    }

    /// Adds what another set owns, which is used up.
    pub fn absorb(&mut self, other: FieldSet) {
        absorb(&mut self.0, other.0);
    }

    /// Takes away what another set owns.
    pub fn subtract(&mut self, other: &FieldSet) {
        subtract(&mut self.0, &other.0);
    }

    /// The places that both own, for people, such as `.spec.replicas`.
    pub fn shared(&self, other: &FieldSet) -> Vec<String> {
        let mut found = Vec::new();
        shared(&self.0, &other.0, &mut String::new(), &mut found);
        found
    }

    /// All owned places, for people.
    pub fn paths(&self) -> Vec<String> {
        self.shared(self)
    }
}

/// Whether the place that holds this tree is owned itself.
pub fn owns_itself(tree: &Map<String, Value>) -> bool {
    tree.is_empty() || tree.contains_key(SELF)
}

/// The tree below a step.
pub fn below<'a>(tree: &'a Map<String, Value>, step: &str) -> Option<&'a Map<String, Value>> {
    tree.get(step).and_then(Value::as_object)
}

fn canonical(value: &Value, depth: usize) -> Result<Map<String, Value>, FieldSetError> {
    let Value::Object(members) = value else { return Err(FieldSetError::NotATree) };
    if depth > MAX_DEPTH {
        return Err(FieldSetError::TooDeep);
    }
    let mut tree = Map::new();
    for (step, value) in members {
        let value = canonical(value, depth + 1)?;
        if step == SELF {
            tree.insert(SELF.to_owned(), Value::Object(Map::new()));
            continue;
        }
        let step = path::canonical(step).ok_or_else(|| FieldSetError::BadStep { step: step.to_owned() })?;
        match tree.get_mut(&step) {
            Some(Value::Object(known)) => join(known, &value),
            _ => drop(tree.insert(step, Value::Object(value))),
        }
    }
    if tree.len() == 1 && tree.contains_key(SELF) {
        tree.clear();
    }
    Ok(tree)
}

/// Makes one of two trees of the same place.
fn join(tree: &mut Map<String, Value>, other: &Map<String, Value>) {
    let itself = owns_itself(tree) || owns_itself(other);
    add(tree, other);
    settle(tree, itself);
}

/// Writes whether the place itself is owned; true if anything of it is.
fn settle(tree: &mut Map<String, Value>, itself: bool) -> bool {
    let marked = tree.contains_key(SELF);
    let holds_more = tree.len() > usize::from(marked);
    match (itself && holds_more, marked) {
        (true, false) => drop(tree.insert(SELF.to_owned(), Value::Object(Map::new()))),
        (false, true) => drop(tree.remove(SELF)),
        _ => {}
    }
    itself || holds_more
}

/// Adds the places below; says nothing of the place itself.
fn add(tree: &mut Map<String, Value>, other: &Map<String, Value>) {
    for (step, value) in other.iter().filter(|(step, _)| *step != SELF) {
        match (tree.get_mut(step), value) {
            (Some(Value::Object(known)), Value::Object(value)) => join(known, value),
            _ => drop(tree.insert(step.clone(), value.clone())),
        }
    }
}

/// Adds the places below; says nothing of the place itself.
fn absorb(tree: &mut Map<String, Value>, other: Map<String, Value>) {
    for (step, value) in other.into_iter().filter(|(step, _)| step != SELF) {
        match (tree.get_mut(&step), value) {
            (Some(Value::Object(known)), Value::Object(value)) => {
                let itself = owns_itself(known) || owns_itself(&value);
                absorb(known, value);
                settle(known, itself);
            }
            (_, value) => drop(tree.insert(step, value)),
        }
    }
}

/// Takes away the places below; says nothing of the place itself.
fn subtract(tree: &mut Map<String, Value>, other: &Map<String, Value>) {
    for (step, value) in other.iter().filter(|(step, _)| *step != SELF) {
        let (Some(Value::Object(known)), Value::Object(value)) = (tree.get_mut(step), value) else {
            continue;
        };
        let itself = owns_itself(known) && !owns_itself(value);
        subtract(known, value);
        if !settle(known, itself) {
            tree.remove(step);
        }
    }
}

fn shared(one: &Map<String, Value>, other: &Map<String, Value>, path: &mut String, found: &mut Vec<String>) {
    for (step, value) in one.iter().filter(|(step, _)| *step != SELF) {
        let (Value::Object(value), Some(other)) = (value, below(other, step)) else { continue };
        let length = path.len();
        path::push(path, step);
        if owns_itself(value) && owns_itself(other) {
            found.push(path.clone());
        }
        shared(value, other, path, found);
        path.truncate(length);
    }
}
