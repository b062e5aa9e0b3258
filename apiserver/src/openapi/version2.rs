//! An OpenAPI v3 document → the same as v2. Works on the documents alone.

use serde_json::{Map, Value, json};

use super::custom;
use crate::schema::build::REFERENCE;

const DEFINITIONS: &str = "#/definitions/";

/// The v2 document of a v3 document.
pub fn document(version3: Value) -> Value {
    let Value::Object(mut document) = version3 else { return version3 };
    let mut take = |name: &str| document.remove(name).unwrap_or_default();
    let (info, paths, mut components) = (take("info"), take("paths"), take("components"));
    let schemas = components.get_mut("schemas").map(Value::take).unwrap_or_default();
    let definitions = map_members(schemas, definition);
    let paths = map_members(paths, |_, item| path_item(item));
    json!({"swagger": "2.0", "info": info, "paths": paths, "definitions": definitions})
}

fn map_members(value: Value, change: impl Fn(&str, Value) -> Value) -> Value {
    let Value::Object(members) = value else { return value };
    let changed = members.into_iter().map(|(name, member)| {
        let member = change(&name, member);
        (name, member)
    });
    Value::Object(changed.collect())
}

fn definition(name: &str, mut schema: Value) -> Value {
    if !name.starts_with("io.k8s.") {
        custom::plain(&mut schema);
    }
    let mut schema = references(schema);
    if let Some(members) = schema.as_object_mut() {
        // Alternatives do not exist in this version: the text form stands for both.
        if members.remove("oneOf").is_some() && !members.contains_key("type") && name.contains(".pkg.") {
            let is_int_or_string = name.ends_with(".IntOrString");
            if is_int_or_string || name.ends_with(".Quantity") {
                members.insert("type".to_owned(), json!("string"));
            }
            if is_int_or_string {
                members.insert("format".to_owned(), json!("int-or-string"));
            }
        }
    }
    schema
}

/// References point to the definitions, and stand beside descriptions without a wrapper.
fn references(value: Value) -> Value {
    match value {
        Value::Object(mut members) => {
            // A member of this name that is no list is a property that happens to have the name.
            let wrapped = members.get_mut("allOf").and_then(Value::as_array_mut).and_then(Vec::pop);
            if let Some(Value::Object(wrapped)) = wrapped {
                members.remove("allOf");
                members.extend(wrapped);
            }
            let changed = members.into_iter().map(|(name, member)| match (name.as_str(), member) {
                ("$ref", Value::String(target)) => {
                    let target = target.replacen(REFERENCE, DEFINITIONS, 1);
                    (name, Value::String(target))
                }
                (_, member) => (name, references(member)),
            });
            Value::Object(changed.collect())
        }
        Value::Array(items) => items.into_iter().map(references).collect(),
        scalar => scalar,
    }
}

fn path_item(item: Value) -> Value {
    map_members(item, |name, member| match (name, member) {
        ("parameters", Value::Array(parameters)) => parameters.into_iter().map(parameter).collect(),
        (_, member) => operation(member),
    })
}

fn parameter(mut parameter: Value) -> Value {
    let schema = parameter.as_object_mut().and_then(|members| members.remove("schema"));
    if let (Some(members), Some(Value::Object(schema))) = (parameter.as_object_mut(), schema) {
        members.extend(schema);
    }
    parameter
}

fn operation(operation: Value) -> Value {
    let Value::Object(mut members) = operation else { return operation };
    let mut parameters: Vec<Value> = match members.remove("parameters") {
        Some(Value::Array(parameters)) => parameters.into_iter().map(parameter).collect(),
        _ => Vec::new(),
    };
    if let Some(body) = members.remove("requestBody") {
        let required = body["required"] == true;
        let (media, schema) = content(&body);
        parameters.push(json!({"name": "body", "in": "body", "required": required, "schema": schema}));
        members.insert("consumes".to_owned(), media);
    }
    let responses = members.remove("responses").unwrap_or_default();
    let answers = map_members(responses, |_, response| {
        let (media, schema) = content(&response);
        let mut answer = Map::from_iter([("description".to_owned(), response["description"].clone())]);
        if media.as_array().is_some_and(|media| !media.is_empty()) {
            answer.insert("schema".to_owned(), schema);
        }
        Value::Object(answer)
    });
    members.insert("parameters".to_owned(), Value::Array(parameters));
    members.insert("produces".to_owned(), json!(["application/json", "application/yaml"]));
    members.insert("responses".to_owned(), answers);
    Value::Object(members)
}

/// The media types of a body, and its schema, which is the same for all.
fn content(body: &Value) -> (Value, Value) {
    let empty = Map::new();
    let content = body["content"].as_object().unwrap_or(&empty);
    let schema = content.values().next().map(|media| references(media["schema"].clone()));
    (content.keys().map(String::as_str).collect(), schema.unwrap_or_default())
}
