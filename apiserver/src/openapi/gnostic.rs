//! An OpenAPI v2 document → its protobuf form (message `openapi.v2.Document` of gnostic). Works on the document alone;
//! writes only what our documents have.

use serde_json::{Map, Value};

use crate::protobuf::writer::Writer;

/// The media type of this form.
pub const MEDIA_TYPE: &str = "application/com.github.proto-openapi.spec.v2.v1.0+protobuf";

/// The bytes of a document.
pub fn document(version2: &Value) -> Vec<u8> {
    let info = &version2["info"];
    let info = Writer::new().text(1, info["title"].as_str()).text(2, info["version"].as_str());
    let paths = Writer::new().blocks(2, named(&version2["paths"], path_item));
    let definitions = Writer::new().blocks(1, named(&version2["definitions"], schema));
    let document = Writer::new().text(1, version2["swagger"].as_str()).block(2, info);
    document.block(8, paths).block(9, definitions).into_bytes()
}

/// Each member as a message of its name and its value.
fn named(members: &Value, write: impl Fn(&Value) -> Writer) -> Vec<Writer> {
    let members = members.as_object().into_iter().flatten();
    members.map(|(name, member)| Writer::new().block(1, name).block(2, write(member))).collect()
}

fn texts(value: &Value) -> impl Iterator<Item = &str> {
    value.as_array().into_iter().flatten().filter_map(Value::as_str)
}

/// The members that begin with `x-`, each as a name and its JSON, which is YAML as well.
fn extensions(members: &Map<String, Value>) -> Vec<Writer> {
    let extensions = members.iter().filter(|(name, _)| name.starts_with("x-"));
    let any = |value: &Value| Writer::new().block(2, value.to_string());
    extensions.map(|(name, value)| Writer::new().block(1, name).block(2, any(value))).collect()
}

fn schema(value: &Value) -> Writer {
    let Some(members) = value.as_object() else { return Writer::new() };
    let text = |name: &str| members.get(name).and_then(Value::as_str);
    let mut message =
        Writer::new().text(1, text("$ref")).text(2, text("format")).text(4, text("description"));
    message = message.blocks(19, texts(&value["required"]));
    match members.get("additionalProperties") {
        Some(Value::Bool(open)) => message = message.block(21, Writer::new().varint(2, u64::from(*open))),
        Some(inner) => message = message.block(21, Writer::new().block(1, schema(inner))),
        None => {}
    }
    if let Some(kind) = text("type") {
        message = message.block(22, Writer::new().block(1, kind));
    }
    if let Some(items) = members.get("items") {
        message = message.block(23, Writer::new().block(1, schema(items)));
    }
    if members.contains_key("properties") {
        message = message.block(25, Writer::new().blocks(1, named(&value["properties"], schema)));
    }
    message.blocks(31, extensions(members))
}

fn path_item(value: &Value) -> Writer {
    let methods = [(2, "get"), (3, "put"), (4, "post"), (5, "delete"), (8, "patch")];
    let item = methods.into_iter().fold(Writer::new(), |item, (number, method)| match value.get(method) {
        Some(content) => item.block(number, operation(content)),
        None => item,
    });
    item.blocks(9, parameters(value))
}

fn operation(value: &Value) -> Writer {
    let message = Writer::new().blocks(1, texts(&value["tags"])).text(5, value["operationId"].as_str());
    let message = message.blocks(6, texts(&value["produces"])).blocks(7, texts(&value["consumes"]));
    let responses = Writer::new().blocks(1, named(&value["responses"], response));
    let message = message.blocks(8, parameters(value)).block(9, responses);
    message.blocks(13, value.as_object().map(extensions).unwrap_or_default())
}

fn response(value: &Value) -> Writer {
    let message = Writer::new().text(1, value["description"].as_str());
    let message = match value.get("schema") {
        Some(inner) => message.block(2, Writer::new().block(1, schema(inner))),
        None => message,
    };
    Writer::new().block(1, message)
}

fn parameters(value: &Value) -> Vec<Writer> {
    let parameters = value["parameters"].as_array().into_iter().flatten();
    parameters.map(|value| Writer::new().block(1, parameter(value))).collect()
}

fn parameter(value: &Value) -> Writer {
    let text = |name: &str| value[name].as_str();
    let flag = |name: &str| u64::from(value[name] == true);
    match text("in") {
        Some("body") => {
            let body = Writer::new().text(2, text("name")).text(3, text("in")).varint(4, flag("required"));
            Writer::new().block(1, body.block(5, schema(&value["schema"])))
        }
        Some("path") => {
            let path =
                Writer::new().varint(1, flag("required")).text(2, text("in")).text(3, text("description"));
            let path = path.text(4, text("name")).text(5, text("type")).varint(19, flag("uniqueItems"));
            Writer::new().block(2, Writer::new().block(4, path))
        }
        _ => {
            let query = Writer::new().text(2, text("in")).text(3, text("description")).text(4, text("name"));
            let query = query.text(6, text("type")).varint(20, flag("uniqueItems"));
            Writer::new().block(2, Writer::new().block(3, query))
        }
    }
}
