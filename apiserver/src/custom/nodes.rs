//! Structural schemas → the nodes that field ownership works on. Knows both forms, and nothing else.

use std::sync::Arc;

use super::structural::{Additional, Kind, ListType, Structural};
use crate::schema::node::{Definition, Field, ListKind, Node, Object};
use crate::schema::registry;

/// The node of the objects of a schema, under a name.
pub fn definition(name: &str, schema: &Structural) -> Arc<Definition> {
    let definition = Definition::empty(name);
    definition.fill(object(schema, true));
    Arc::new(definition)
}

fn node(schema: &Structural) -> Arc<Node> {
    Arc::new(match schema.kind {
        _ if schema.int_or_string => Node::IntOrString,
        Some(Kind::Object) => object(schema, schema.embedded),
        Some(Kind::Array) => list(schema),
        Some(Kind::String) => Node::Text,
        Some(Kind::Integer) => Node::Integer64,
        Some(Kind::Number) => Node::Number,
        Some(Kind::Boolean) => Node::Boolean,
        None => Node::Any,
    })
}

fn list(schema: &Structural) -> Node {
    let item = schema.items.as_ref().map_or_else(|| Arc::new(Node::Any), |items| node(items));
    let kind = match &schema.list_type {
        Some(ListType::Set) => ListKind::Set,
        Some(ListType::Map(keys)) => ListKind::Map(keys.clone()),
        Some(ListType::Atomic) | None => ListKind::Atomic,
    };
    Node::List { item, kind }
}

fn object(schema: &Structural, is_object: bool) -> Node {
    if let (Some(Additional::Schema(value)), false) = (&schema.additional, is_object) {
        return Node::Map { value: node(value), atomic: schema.atomic };
    }
    let open = schema.preserve || matches!(schema.additional, Some(Additional::Open));
    let mut fields: Vec<(Box<str>, Field)> =
        schema.properties.iter().map(|(name, schema)| (name.clone(), Field::plain(node(schema)))).collect();
    if fields.is_empty() && open && !is_object {
        return if schema.atomic {
            Node::Map { value: Arc::new(Node::Any), atomic: true }
        } else {
            Node::Any
        };
    }
    if is_object {
        fields.retain(|(name, _)| !matches!(&**name, "apiVersion" | "kind" | "metadata"));
        let text = Arc::new(Node::Text);
        fields.push(("apiVersion".into(), Field::plain(Arc::clone(&text))));
        fields.push(("kind".into(), Field::plain(text)));
        let metadata = registry::by_name("io.k8s.apimachinery.pkg.apis.meta.v1.ObjectMeta");
        let metadata = metadata.map_or(Node::Any, Node::Named);
        fields.push(("metadata".into(), Field::plain(Arc::new(metadata))));
    }
    let object = Object::new(fields, schema.atomic);
    Node::Object(if open { object.open() } else { object })
}
