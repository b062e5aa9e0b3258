//! The schemas of a document: JSON schemas of the types, with the extensions that Kubernetes clients read. Knows no
//! paths.

use std::collections::BTreeSet;

use serde_json::{Map, Value, json};

use super::custom;
use super::operation::PATCH;
use super::published::{Gvk, PublishedResource};
use crate::schema::keys::{self, Keys};
use crate::schema::registry::{self, BuiltIn};

/// The schemas of everything that these resources take and give. `versions` are all group versions published anywhere:
/// delete options belong to each of them.
pub fn schemas(resources: &[PublishedResource], versions: &BTreeSet<(String, String)>) -> Map<String, Value> {
    let entries = entries(resources);
    let mut schemas = decorated(entries.iter().copied());
    for entry in entries {
        let kinds = if entry.kind == "DeleteOptions" {
            let versions = versions.iter();
            versions.map(|(group, version)| gvk_json(&Gvk { group, version, kind: entry.kind })).collect()
        } else {
            json!([gvk_json(&Gvk { group: entry.group, version: entry.version, kind: entry.kind })])
        };
        if let Some(schema) = schemas.get_mut(&entry.definition_name()) {
            schema["x-kubernetes-group-version-kind"] = kinds;
        }
    }
    for resource in resources {
        if let Some(custom) = &resource.custom {
            custom::add(&mut schemas, resource, custom);
        }
    }
    let patch =
        json!({"type": "object", "description": "The changes to an object, in one of the patch formats."});
    schemas.insert(PATCH.to_owned(), patch);
    schemas
}

/// The schemas of built-in types and all that they refer to, with their extensions.
pub fn decorated(entries: impl IntoIterator<Item = &'static BuiltIn>) -> Map<String, Value> {
    let mut schemas = registry::json_definitions(entries);
    for (name, schema) in &mut schemas {
        decorate(name, schema);
    }
    schemas
}

fn gvk_json(gvk: &Gvk<'_>) -> Value {
    json!({"group": gvk.group, "version": gvk.version, "kind": gvk.kind})
}

/// The built-in types behind the resources, each once.
fn entries(resources: &[PublishedResource]) -> Vec<&'static BuiltIn> {
    let mut entries: Vec<&'static BuiltIn> = Vec::new();
    let mut add = |gvk: Gvk<'_>| {
        let found = registry::find(gvk.group, gvk.version, gvk.kind);
        if let Some(entry) = found.filter(|entry| !entries.iter().any(|known| std::ptr::eq(*known, *entry))) {
            entries.push(entry);
        }
    };
    for resource in resources {
        add(resource.gvk());
        add(Gvk { kind: &resource.list_kind(), ..resource.gvk() });
        resource.subresources.iter().for_each(|subresource| add(subresource.gvk()));
    }
    for kind in ["Status", "DeleteOptions"] {
        add(Gvk { group: "", version: "v1", kind });
    }
    entries
}

/// Adds the extensions of one definition and brings references into the form that clients of OpenAPI v3 expect.
fn decorate(name: &str, schema: &mut Value) {
    if keys::is_atomic(name) {
        schema["x-kubernetes-map-type"] = json!("atomic");
    }
    if let Some(forms) = alternatives(name) {
        schema["oneOf"] = forms;
        if let Some(members) = schema.as_object_mut() {
            members.remove("x-kubernetes-int-or-string");
        }
    }
    let Some(properties) = schema.get_mut("properties").and_then(Value::as_object_mut) else { return };
    for (field, property) in properties {
        wrap_reference(property);
        if let Some(facts) = keys::of_field(name, field) {
            extend(property, &facts);
        }
    }
}

/// The types of a scalar that may be one of two.
fn alternatives(name: &str) -> Option<Value> {
    match name {
        "io.k8s.apimachinery.pkg.util.intstr.IntOrString" => {
            Some(json!([{"type": "integer"}, {"type": "string"}]))
        }
        "io.k8s.apimachinery.pkg.api.resource.Quantity" => {
            Some(json!([{"type": "string"}, {"type": "number"}]))
        }
        _ => None,
    }
}

/// A reference with anything beside it becomes `allOf: [reference]`: beside a plain reference all else is ignored.
fn wrap_reference(property: &mut Value) {
    let Some(members) = property.as_object_mut() else { return };
    if members.len() == 1 {
        return;
    }
    if let Some(reference) = members.remove("$ref") {
        members.insert("allOf".to_owned(), json!([{"$ref": reference}]));
    }
}

fn extend(property: &mut Value, facts: &Keys) {
    let mut set = |name: &str, value: Option<Value>| {
        if let Some(value) = value {
            property[name] = value;
        }
    };
    set("x-kubernetes-patch-strategy", facts.patch_strategy.map(Value::from));
    set("x-kubernetes-patch-merge-key", facts.patch_merge_key.map(Value::from));
    set("x-kubernetes-list-type", facts.list_type.map(Value::from));
    set("x-kubernetes-list-map-keys", facts.list_map_keys.map(|keys| keys.split(',').collect()));
    set("x-kubernetes-map-type", facts.map_type.map(Value::from));
}
