//! JSON schema definitions → nodes. Reads only the JSON forms that `k8s-openapi` produces and the merge facts; knows
//! nothing of which types exist.

use std::collections::BTreeMap;
use std::sync::Arc;

use serde_json::{Map, Value};

use super::keys;
use super::node::{Definition, Field, ListKind, Node, Object, PatchRule};

/// Definitions by OpenAPI name.
pub type Library = BTreeMap<Box<str>, Arc<Definition>>;

/// Where references between definitions point to.
pub const REFERENCE: &str = "#/components/schemas/";

/// Adds the definitions that the library does not have yet; those it has stay as they are.
pub fn extend(library: &mut Library, definitions: &Map<String, Value>) {
    let mut added = Vec::new();
    for (name, schema) in definitions {
        if !library.contains_key(name.as_str()) {
            let definition = Arc::new(Definition::empty(name));
            library.insert(name.as_str().into(), definition.clone());
            added.push((definition, schema));
        }
    }
    let scalars = Scalars::default();
    for (definition, schema) in added {
        let node = named(library, &scalars, definition.name(), schema);
        definition.fill(node);
    }
}

/// One shared node for each scalar form, so that a leaf costs a pointer.
struct Scalars {
    boolean: Arc<Node>,
    integer32: Arc<Node>,
    integer64: Arc<Node>,
    number: Arc<Node>,
    text: Arc<Node>,
    bytes: Arc<Node>,
    time: Arc<Node>,
    int_or_string: Arc<Node>,
    any: Arc<Node>,
}

impl Default for Scalars {
    fn default() -> Self {
        Self {
            boolean: Arc::new(Node::Boolean),
            integer32: Arc::new(Node::Integer32),
            integer64: Arc::new(Node::Integer64),
            number: Arc::new(Node::Number),
            text: Arc::new(Node::Text),
            bytes: Arc::new(Node::Bytes),
            time: Arc::new(Node::Time),
            int_or_string: Arc::new(Node::IntOrString),
            any: Arc::new(Node::Any),
        }
    }
}

fn named(library: &Library, scalars: &Scalars, name: &str, schema: &Value) -> Node {
    match name {
        "io.k8s.apimachinery.pkg.api.resource.Quantity" => return Node::Quantity,
        "io.k8s.apimachinery.pkg.util.intstr.IntOrString" => return Node::IntOrString,
        "io.k8s.apimachinery.pkg.apis.meta.v1.Time" => return Node::Time,
        "io.k8s.apimachinery.pkg.apis.meta.v1.MicroTime" => return Node::MicroTime,
        _ => {}
    }
    let Some(properties) = schema.get("properties").and_then(Value::as_object) else {
        return Node::clone(&anonymous(library, scalars, schema));
    };
    let required: Vec<&str> =
        schema["required"].as_array().into_iter().flatten().filter_map(Value::as_str).collect();
    let fields = properties.iter().map(|(field, schema)| {
        let keys = keys::of_field(name, field).unwrap_or_default();
        let node = field_node(library, scalars, schema, &keys);
        let field_schema = Field {
            node,
            required: required.contains(&field.as_str()),
            patch: patch_rule(&keys),
            atomic: keys.map_type.map(|kind| kind == "atomic"),
        };
        (field.as_str().into(), field_schema)
    });
    Node::Object(Object::new(fields.collect(), keys::is_atomic(name)))
}

fn patch_rule(keys: &keys::Keys) -> PatchRule {
    let strategies = keys.patch_strategy.unwrap_or_default();
    let has = |wanted: &str| strategies.split(',').any(|strategy| strategy == wanted);
    PatchRule {
        merge: has("merge"),
        replace: has("replace"),
        retain_keys: has("retainKeys"),
        merge_key: keys.patch_merge_key.map(Into::into),
    }
}

fn field_node(library: &Library, scalars: &Scalars, schema: &Value, keys: &keys::Keys) -> Arc<Node> {
    let node = anonymous(library, scalars, schema);
    match &*node {
        Node::List { item, .. } if keys.list_type.is_some() => {
            let kind = match keys.list_type {
                Some("set") => ListKind::Set,
                Some("map") => {
                    ListKind::Map(keys.list_map_keys.unwrap_or_default().split(',').map(Into::into).collect())
                }
                _ => ListKind::Atomic,
            };
            Arc::new(Node::List { item: item.clone(), kind })
        }
        Node::Map { value, .. } if keys.map_type == Some("atomic") => {
            Arc::new(Node::Map { value: value.clone(), atomic: true })
        }
        _ => node,
    }
}

fn anonymous(library: &Library, scalars: &Scalars, schema: &Value) -> Arc<Node> {
    if let Some(reference) = schema.get("$ref").and_then(Value::as_str) {
        let name = reference.strip_prefix(REFERENCE).unwrap_or(reference);
        return match library.get(name) {
            Some(definition) => Arc::new(Node::Named(definition.clone())),
            None => scalars.any.clone(),
        };
    }
    if schema.get("x-kubernetes-int-or-string").and_then(Value::as_bool) == Some(true) {
        return scalars.int_or_string.clone();
    }
    let format = schema.get("format").and_then(Value::as_str);
    match (schema.get("type").and_then(Value::as_str), format) {
        (Some("boolean"), _) => scalars.boolean.clone(),
        (Some("integer"), Some("int32")) => scalars.integer32.clone(),
        (Some("integer"), _) => scalars.integer64.clone(),
        (Some("number"), _) => scalars.number.clone(),
        (Some("string"), Some("byte")) => scalars.bytes.clone(),
        (Some("string"), Some("date-time")) => scalars.time.clone(),
        (Some("string"), _) => scalars.text.clone(),
        (Some("array"), _) => {
            let item = schema.get("items").map(|items| anonymous(library, scalars, items));
            let item = item.unwrap_or_else(|| scalars.any.clone());
            Arc::new(Node::List { item, kind: ListKind::Atomic })
        }
        (Some("object"), _) => match schema.get("additionalProperties") {
            Some(value) if value.is_object() => {
                Arc::new(Node::Map { value: anonymous(library, scalars, value), atomic: false })
            }
            _ => scalars.any.clone(),
        },
        _ => scalars.any.clone(),
    }
}
