//! How a value is owned, from its place in the schema: as one, by its members, or by its elements. Knows only nodes.

use serde_json::Value;

use crate::schema::node::{Field, ListKind, Node, Object};

/// The schema of a type, as ownership sees it.
#[derive(Clone, Copy, Debug)]
pub struct Schema<'a> {
    /// The root of the type.
    pub root: &'a Node,
    /// Whether clients write its main structs and required fields even when they are empty, as those of built-in types
    /// do: such places are always there, so that nobody owns their being there.
    pub native: bool,
}

impl Schema<'_> {
    /// The schema of objects that nothing is known of.
    pub const UNKNOWN: Schema<'static> = Schema { root: &Node::Any, native: false };
}

/// Structs of built-in types that are always there beside required fields, wherever only such places are above them.
const ALWAYS_THERE: &[&str] = &[
    "daemonEndpoints",
    "jobTemplate",
    "kubeletEndpoint",
    "loadBalancer",
    "metadata",
    "nodeInfo",
    "resources",
    "spec",
    "status",
    "strategy",
    "template",
    "updateStrategy",
];

/// A place in an object.
#[derive(Clone, Copy, Debug)]
pub struct Place<'a> {
    /// What may be there.
    pub node: &'a Node,
    /// What the place says of its value being replaced as a whole, where it does.
    atomic: Option<bool>,
    /// Whether something is always there.
    pub always: bool,
}

/// How a value is owned.
#[derive(Clone, Copy, Debug)]
pub enum Shape<'a> {
    /// As one.
    Leaf,
    /// By field.
    Struct(&'a Object),
    /// By key.
    Map(Place<'a>),
    /// By element, told apart by these fields.
    Keyed(&'a [Box<str>], Place<'a>),
    /// By element, each a plain value.
    Set,
}

impl<'a> Place<'a> {
    /// The place of a whole object.
    pub fn root(schema: Schema<'a>) -> Self {
        Self { node: schema.root, atomic: None, always: schema.native }
    }

    /// A place that only its node tells of.
    pub fn plain(node: &'a Node) -> Self {
        Self { node, atomic: None, always: false }
    }

    /// A field of the struct at this place.
    pub fn field(&self, name: &str, field: &'a Field) -> Self {
        let structure = || matches!(field.node.resolve(), Node::Object(_));
        let always = self.always && (field.required || ALWAYS_THERE.contains(&name) && structure());
        Self { node: &field.node, atomic: field.atomic, always }
    }

    /// How the value at this place is owned. What does not fit the schema is owned as one.
    pub fn shape(&self, value: &Value) -> Shape<'a> {
        let atomic = |of_type: bool| self.atomic.unwrap_or(of_type);
        match (self.node.resolve(), value) {
            (Node::Object(object), Value::Object(_)) if !atomic(object.atomic) => Shape::Struct(object),
            (Node::Map { value, atomic: own }, Value::Object(_)) if !atomic(*own) => {
                Shape::Map(Self::plain(value))
            }
            (Node::List { item, kind: ListKind::Map(keys) }, Value::Array(_)) => {
                Shape::Keyed(keys, Self::plain(item))
            }
            (Node::List { kind: ListKind::Set, .. }, Value::Array(_)) => Shape::Set,
            (Node::Any, Value::Object(_)) if !atomic(false) => Shape::Map(Self::plain(&Node::Any)),
            _ => Shape::Leaf,
        }
    }
}

/// Whether a value holds nothing: an empty struct or list.
pub fn is_hollow(value: &Value) -> bool {
    match value {
        Value::Object(members) => members.is_empty(),
        Value::Array(items) => items.is_empty(),
        _ => false,
    }
}
