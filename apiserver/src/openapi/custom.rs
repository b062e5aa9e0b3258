//! The schemas of custom types, as they are published. Knows their JSON, and nothing of how they are served.

use serde_json::{Map, Value, json};

use super::published::{CustomSchema, PublishedResource};
use crate::schema::build::REFERENCE;
use crate::schema::registry;

const OBJECT_META: &str = "io.k8s.apimachinery.pkg.apis.meta.v1.ObjectMeta";
const LIST_META: &str = "io.k8s.apimachinery.pkg.apis.meta.v1.ListMeta";

/// Members that alternatives are written with; they do not exist in OpenAPI version 2.
const JUNCTORS: &[&str] = &["allOf", "anyOf", "oneOf", "not", "nullable"];

/// Adds the schemas of a custom type and its list, and those of metadata.
pub fn add(schemas: &mut Map<String, Value>, resource: &PublishedResource, custom: &CustomSchema) {
    let reference = |name: &str| json!({"$ref": format!("{REFERENCE}{name}")});
    if !schemas.contains_key(OBJECT_META) {
        add_metadata(schemas);
    }
    let (group, version) = (&resource.group, &resource.version);
    let kinds = |kind: &str| json!([{"group": group, "version": version, "kind": kind}]);
    let name = CustomSchema::name(group, version, &resource.kind);
    let mut schema = (custom.make)();
    embed(&mut schema, &reference(OBJECT_META), true);
    schema["x-kubernetes-group-version-kind"] = kinds(&resource.kind);
    let list_name = CustomSchema::name(group, version, &custom.list_kind);
    let list = json!({
        "type": "object",
        "description": format!("{} is a list of {} objects.", custom.list_kind, resource.kind),
        "required": ["items"],
        "properties": {
            "apiVersion": {"type": "string", "description": "The group and version of this form of the list."},
            "kind": {"type": "string", "description": "The kind of the list."},
            "metadata": reference(LIST_META),
            "items": {"type": "array", "items": reference(&name), "description": "The objects."},
        },
        "x-kubernetes-group-version-kind": kinds(&custom.list_kind),
    });
    schemas.insert(name, schema);
    schemas.insert(list_name, list);
}

/// The definitions of metadata: those of a type that has nothing else.
fn add_metadata(schemas: &mut Map<String, Value>) {
    let entries = ["ConfigMap", "ConfigMapList"].iter().filter_map(|kind| registry::find("", "v1", kind));
    for (name, schema) in super::schemas::decorated(entries) {
        if name.contains(".apis.meta.") {
            schemas.entry(name).or_insert(schema);
        }
    }
}

/// Says what every object has, at the root and wherever objects are embedded.
fn embed(schema: &mut Value, metadata: &Value, is_object: bool) {
    let Some(members) = schema.as_object_mut() else { return };
    let embedded = members.get("x-kubernetes-embedded-resource") == Some(&Value::Bool(true));
    if is_object || embedded {
        let properties = members.entry("properties").or_insert_with(|| json!({}));
        if let Some(properties) = properties.as_object_mut() {
            let text = |description: &str| json!({"type": "string", "description": description});
            properties
                .insert("apiVersion".to_owned(), text("The group and version of this form of the object."));
            properties.insert("kind".to_owned(), text("The kind of the object."));
            properties.insert("metadata".to_owned(), metadata.clone());
        }
    }
    if let Some(properties) = members.get_mut("properties").and_then(Value::as_object_mut) {
        for (name, property) in properties {
            if !(is_object && name == "metadata") {
                embed(property, metadata, false);
            }
        }
    }
    for name in ["items", "additionalProperties"] {
        if let Some(below) = members.get_mut(name) {
            embed(below, metadata, false);
        }
    }
}

/// Takes out of a schema what OpenAPI version 2 does not know.
pub fn plain(schema: &mut Value) {
    let Some(members) = schema.as_object_mut() else { return };
    members.retain(|name, _| !JUNCTORS.contains(&name.as_str()));
    if let Some(properties) = members.get_mut("properties").and_then(Value::as_object_mut) {
        properties.values_mut().for_each(plain);
    }
    for name in ["items", "additionalProperties"] {
        if let Some(below) = members.get_mut(name) {
            plain(below);
        }
    }
}
