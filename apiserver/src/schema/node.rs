//! Nodes of a schema tree: plain data, shared by `Arc`. Knows nothing of where a schema came from.

use std::sync::{Arc, OnceLock};

/// What one value of an object may be.
#[derive(Debug, Clone)]
pub enum Node {
    /// A struct: a closed set of named fields.
    Object(Object),
    /// A map from free text keys to values of one shape.
    Map {
        /// Shape of each value.
        value: Arc<Node>,
        /// True if the map is replaced as a whole (server-side apply), never merged by key.
        atomic: bool,
    },
    /// A list.
    List {
        /// Shape of each element.
        item: Arc<Node>,
        /// How two versions of the list are matched up.
        kind: ListKind,
    },
    /// `true` or `false`.
    Boolean,
    /// A whole number that fits 32 bits.
    Integer32,
    /// A whole number that fits 64 bits.
    Integer64,
    /// Any number.
    Number,
    /// Text.
    Text,
    /// Bytes, as base64 text.
    Bytes,
    /// A time in RFC 3339 form.
    Time,
    /// A time in RFC 3339 form with six digits of fraction.
    MicroTime,
    /// A quantity such as `500m` or `1Gi`: text or a number.
    Quantity,
    /// A 32-bit whole number or text.
    IntOrString,
    /// Anything: its content is not described.
    Any,
    /// A definition with a name, shared by all its users (and so able to contain itself).
    Named(Arc<Definition>),
}

impl Node {
    /// The node itself, or what its name stands for.
    pub fn resolve(&self) -> &Node {
        let mut node = self;
        while let Node::Named(definition) = node {
            node = definition.node();
        }
        node
    }

    /// The field `name`, if this is a struct that has one.
    pub fn field(&self, name: &str) -> Option<&Field> {
        match self.resolve() {
            Node::Object(object) => object.field(name),
            _ => None,
        }
    }

    /// What is below the member `name`: a field's node, a map's value node, or `None` where nothing is described.
    pub fn member(&self, name: &str) -> Option<&Arc<Node>> {
        match self.resolve() {
            Node::Object(object) => object.field(name).map(|field| &field.node),
            Node::Map { value, .. } => Some(value),
            _ => None,
        }
    }

    /// The node of a list's elements.
    pub fn item(&self) -> Option<&Arc<Node>> {
        match self.resolve() {
            Node::List { item, .. } => Some(item),
            _ => None,
        }
    }

    /// The node at a path of field names, map keys and (for lists, any text) elements.
    pub fn at<'a>(&self, path: impl IntoIterator<Item = &'a str>) -> Option<&Node> {
        let mut node = self.resolve();
        for part in path {
            node = match node {
                Node::List { item, .. } => item.resolve(),
                other => other.member(part)?.resolve(),
            };
        }
        Some(node)
    }
}

/// A struct's fields.
#[derive(Debug, Clone, Default)]
pub struct Object {
    fields: Box<[(Box<str>, Field)]>,
    /// What a field without a description holds, where such fields may be.
    rest: Option<Box<Field>>,
    /// True if the struct is replaced as a whole (server-side apply), never merged by field.
    pub atomic: bool,
}

impl Object {
    /// A struct of these fields.
    pub fn new(mut fields: Vec<(Box<str>, Field)>, atomic: bool) -> Self {
        fields.sort_by(|a, b| a.0.cmp(&b.0));
        Self { fields: fields.into_boxed_slice(), rest: None, atomic }
    }

    /// The same struct, open to fields that nothing is known of.
    pub fn open(mut self) -> Self {
        self.rest = Some(Box::new(Field::plain(Arc::new(Node::Any))));
        self
    }

    /// The field `name`; names are case-sensitive.
    pub fn field(&self, name: &str) -> Option<&Field> {
        match self.fields.binary_search_by(|(key, _)| (**key).cmp(name)) {
            Ok(at) => Some(&self.fields[at].1),
            Err(_) => self.rest.as_deref(),
        }
    }

    /// All fields in alphabetical order.
    pub fn fields(&self) -> impl Iterator<Item = (&str, &Field)> {
        self.fields.iter().map(|(name, field)| (&**name, field))
    }
}

/// One field of a struct.
#[derive(Debug, Clone)]
pub struct Field {
    /// What it holds.
    pub node: Arc<Node>,
    /// True if a valid object must have it.
    pub required: bool,
    /// How a strategic merge patch treats it.
    pub patch: PatchRule,
    /// Whether this place overrides what the node says about being atomic.
    pub atomic: Option<bool>,
}

impl Field {
    /// An optional field without a patch rule.
    pub fn plain(node: Arc<Node>) -> Self {
        Self { node, required: false, patch: PatchRule::default(), atomic: None }
    }
}

/// How a strategic merge patch treats a field. The default is: structs merge, lists are replaced.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct PatchRule {
    /// A list merges: by `merge_key` if it has one, as a set of plain values if not.
    pub merge: bool,
    /// A struct or map is replaced as a whole.
    pub replace: bool,
    /// Fields that the patch does not list as kept are cleared (one-of structs).
    pub retain_keys: bool,
    /// The field that tells elements of a merging list apart.
    pub merge_key: Option<Box<str>>,
}

/// How two versions of a list are matched up by server-side apply.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ListKind {
    /// Replaced as a whole.
    Atomic,
    /// A set of plain values.
    Set,
    /// Elements are told apart by these fields.
    Map(Box<[Box<str>]>),
}

/// A named part of a schema. It is created empty so that others can refer to it, and filled once.
#[derive(Debug)]
pub struct Definition {
    name: Box<str>,
    node: OnceLock<Node>,
}

static UNDESCRIBED: Node = Node::Any;

impl Definition {
    /// A definition that has a name but no content yet.
    pub fn empty(name: &str) -> Self {
        Self { name: name.into(), node: OnceLock::new() }
    }

    /// Its name in OpenAPI form, such as `io.k8s.api.apps.v1.Deployment`.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Its content; [`Node::Any`] before it is filled.
    pub fn node(&self) -> &Node {
        self.node.get().unwrap_or(&UNDESCRIBED)
    }

    /// Gives it its content. The first content stays; returns false if it had one already.
    pub fn fill(&self, node: Node) -> bool {
        self.node.set(node).is_ok()
    }
}
