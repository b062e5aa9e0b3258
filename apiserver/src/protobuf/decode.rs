//! Envelope and messages → JSON values, by the table.

use base64::Engine;
use base64::prelude::BASE64_STANDARD;
use serde_json::{Map, Value};

use super::error::ProtobufError;
use super::reader::{Reader, Wire};
use super::special;
use super::table::{Field, Form, Place, table};
use crate::decode::{MAX_DEPTH, depth_of};

/// The first bytes of every protobuf body.
pub const MAGIC: [u8; 4] = *b"k8s\0";

/// The type that a body is of when its envelope does not say.
#[derive(Debug, Clone, Copy)]
pub struct Expected<'a> {
    /// Group and version, such as `apps/v1`.
    pub api_version: &'a str,
    /// Kind.
    pub kind: &'a str,
}

/// Reads a body: an envelope and the message in it. The value has the `apiVersion` and `kind` that the envelope names,
/// or those expected if it names none.
pub fn decode(body: &[u8], expected: Option<Expected<'_>>) -> Result<Value, ProtobufError> {
    envelope(Reader::new(body, 0), expected, 0)
}

fn envelope(
    reader: Reader<'_>,
    expected: Option<Expected<'_>>,
    depth: usize,
) -> Result<Value, ProtobufError> {
    let mut reader = unmarked(reader)?;
    let (mut api_version, mut kind) =
        expected.map_or(("", ""), |expected| (expected.api_version, expected.kind));
    let (mut message, mut encoding, mut content_type) = (None, "", "");
    while let Some((number, wire)) = reader.field()? {
        match (number, wire) {
            (1, Wire::Delimited) => {
                let mut meta = reader.delimited()?;
                while let Some((number, wire)) = meta.field()? {
                    match (number, wire) {
                        (1, Wire::Delimited) => api_version = named(meta.delimited()?, api_version)?,
                        (2, Wire::Delimited) => kind = named(meta.delimited()?, kind)?,
                        (_, wire) => meta.skip(wire)?,
                    }
                }
            }
            (2, Wire::Delimited) => message = Some(reader.delimited()?),
            (3, Wire::Delimited) => encoding = reader.delimited()?.text()?,
            (4, Wire::Delimited) => content_type = reader.delimited()?.text()?,
            (_, wire) => reader.skip(wire)?,
        }
    }
    if !encoding.is_empty()
        || !(content_type.is_empty() || content_type == "application/vnd.kubernetes.protobuf")
    {
        let (content_type, encoding) = (content_type.to_owned(), encoding.to_owned());
        return Err(ProtobufError::Packed { content_type, encoding });
    }
    let Some(at) = table().find_type(api_version, kind) else {
        return Err(ProtobufError::UnknownType {
            api_version: api_version.to_owned(),
            kind: kind.to_owned(),
        });
    };
    let mut members = Map::new();
    if let Some(message) = message {
        struct_members(message, at, &mut members, depth + 1)?;
    }
    members.insert("apiVersion".to_owned(), api_version.into());
    members.insert("kind".to_owned(), kind.into());
    Ok(Value::Object(members))
}

fn unmarked(reader: Reader<'_>) -> Result<Reader<'_>, ProtobufError> {
    let mut reader = reader;
    if !reader.rest().starts_with(&MAGIC) {
        return Err(ProtobufError::NotMarked);
    }
    reader.pass(MAGIC.len());
    Ok(reader)
}

fn named<'a>(reader: Reader<'a>, default: &'a str) -> Result<&'a str, ProtobufError> {
    let text = reader.text()?;
    Ok(if text.is_empty() { default } else { text })
}

fn struct_members(
    mut reader: Reader<'_>,
    message: usize,
    members: &mut Map<String, Value>,
    depth: usize,
) -> Result<(), ProtobufError> {
    if depth > MAX_DEPTH {
        return Err(reader.error("nested too deep"));
    }
    let message = table().message(message);
    while let Some((number, wire)) = reader.field()? {
        match message.field(number) {
            None => reader.skip(wire)?,
            Some(field) => member(&mut reader, wire, field, members, depth)?,
        }
    }
    Ok(())
}

fn member(
    reader: &mut Reader<'_>,
    wire: Wire,
    field: &Field,
    members: &mut Map<String, Value>,
    depth: usize,
) -> Result<(), ProtobufError> {
    match (field.place, field.form) {
        (Place::Inline, Form::Message(message)) => {
            struct_members(expect_delimited(reader, wire)?, message, members, depth + 1)?;
        }
        (Place::Plain | Place::Inline, form) => {
            let value = value(reader, wire, form, depth)?;
            if !is_zero(&value, form) {
                members.insert(field.json.to_owned(), value);
            }
        }
        (Place::Pointer, form) => {
            let value = value(reader, wire, form, depth)?;
            if !value.is_null() {
                members.insert(field.json.to_owned(), value);
            }
        }
        (Place::List, form) => {
            let mut list = match members.remove(field.json) {
                Some(Value::Array(list)) => list,
                _ => Vec::new(),
            };
            elements(reader, wire, form, &mut list, depth + 1)?;
            members.insert(field.json.to_owned(), Value::Array(list));
        }
        (Place::Map, form) => {
            let (key, value) = entry(expect_delimited(reader, wire)?, form, depth + 1)?;
            let map = members.entry(field.json).or_insert_with(|| Value::Object(Map::new()));
            if let Value::Object(map) = map {
                map.insert(key, value);
            }
        }
    }
    Ok(())
}

fn expect_delimited<'a>(reader: &mut Reader<'a>, wire: Wire) -> Result<Reader<'a>, ProtobufError> {
    if wire == Wire::Delimited { reader.delimited() } else { Err(reader.error("a message was expected")) }
}

/// One element of a list, or many if numbers are packed.
fn elements(
    reader: &mut Reader<'_>,
    wire: Wire,
    form: Form,
    list: &mut Vec<Value>,
    depth: usize,
) -> Result<(), ProtobufError> {
    if wire == Wire::Delimited && matches!(form, Form::Integer | Form::Bool) {
        let mut packed = reader.delimited()?;
        while !packed.is_empty() {
            list.push(value(&mut packed, Wire::Varint, form, depth)?);
        }
    } else {
        list.push(value(reader, wire, form, depth)?);
    }
    Ok(())
}

fn entry(mut reader: Reader<'_>, form: Form, depth: usize) -> Result<(String, Value), ProtobufError> {
    let (mut key, mut content) = ("", None);
    while let Some((number, wire)) = reader.field()? {
        match (number, wire) {
            (1, Wire::Delimited) => key = reader.delimited()?.text()?,
            (2, wire) => content = Some(value(&mut reader, wire, form, depth)?),
            (_, wire) => reader.skip(wire)?,
        }
    }
    Ok((key.to_owned(), content.unwrap_or_else(|| zero(form))))
}

fn value(reader: &mut Reader<'_>, wire: Wire, form: Form, depth: usize) -> Result<Value, ProtobufError> {
    match (form, wire) {
        (Form::Bool, Wire::Varint) => return Ok(Value::from(reader.varint()? != 0)),
        (Form::Integer, Wire::Varint) => return Ok(Value::from(special::signed(reader.varint()?))),
        (Form::Double, Wire::Fixed64) => return special::double(reader),
        (Form::Bool | Form::Integer | Form::Double, _) => return Err(reader.error("a number was expected")),
        (_, Wire::Delimited) => {}
        _ => return Err(reader.error("a message or text was expected")),
    }
    let content = reader.delimited()?;
    match form {
        Form::Text => Ok(Value::from(content.text()?)),
        Form::Time => special::time(content, false),
        Form::MicroTime => special::time(content, true),
        Form::Json => embedded(content, depth),
        Form::Quantity => special::quantity(content),
        Form::IntOrString => special::int_or_string(content),
        Form::Texts => special::texts(content),
        Form::SchemaOrArray | Form::SchemaOrBool | Form::SchemaOrTexts => schema_or(content, form, depth),
        Form::Message(message) => {
            let mut members = Map::new();
            struct_members(content, message, &mut members, depth + 1)?;
            Ok(Value::Object(members))
        }
        Form::Bytes | Form::Bool | Form::Integer | Form::Double => {
            Ok(Value::from(BASE64_STANDARD.encode(content.rest())))
        }
    }
}

/// Whether a plain field with this value was never set.
fn is_zero(value: &Value, form: Form) -> bool {
    match value {
        Value::Null | Value::Bool(false) => true,
        Value::Number(number) => form != Form::IntOrString && number.as_i64() == Some(0),
        Value::String(text) => text.is_empty(),
        Value::Object(members) => members.is_empty() && form != Form::Json,
        Value::Array(list) => list.is_empty(),
        Value::Bool(true) => false,
    }
}

fn zero(form: Form) -> Value {
    match form {
        Form::Bool => Value::from(false),
        Form::Integer | Form::Double | Form::IntOrString => Value::from(0),
        Form::Text | Form::Bytes => Value::from(""),
        Form::Quantity => Value::from("0"),
        Form::Texts => Value::Array(Vec::new()),
        Form::Time | Form::MicroTime | Form::Json => Value::Null,
        Form::SchemaOrArray | Form::SchemaOrBool | Form::SchemaOrTexts | Form::Message(_) => {
            Value::Object(Map::new())
        }
    }
}

/// JSON text in a message, or a whole protobuf body in it.
fn embedded(reader: Reader<'_>, depth: usize) -> Result<Value, ProtobufError> {
    let Some(content) = special::bytes_of(reader)? else { return Ok(Value::Null) };
    if content.is_empty() {
        return Ok(Value::Null);
    }
    if depth > MAX_DEPTH {
        return Err(content.error("nested too deep"));
    }
    if content.rest().starts_with(&MAGIC) {
        return envelope(content, None, depth + 1);
    }
    let value: Value =
        serde_json::from_slice(content.rest()).map_err(|_| content.error("embedded JSON is not valid"))?;
    if depth + depth_of(&value) > MAX_DEPTH {
        return Err(content.error("nested too deep"));
    }
    Ok(value)
}

/// A JSON schema, or what may stand in its place.
fn schema_or(mut reader: Reader<'_>, form: Form, depth: usize) -> Result<Value, ProtobufError> {
    let start = reader;
    let message = table().find("apiextensions.v1.JSONSchemaProps").map(Form::Message);
    let Some(message) = message else { return Err(start.error("JSON schemas are not known")) };
    let schema_number = if form == Form::SchemaOrBool { 2 } else { 1 };
    let (mut schema, mut allows, mut list) = (None, false, Vec::new());
    while let Some((number, wire)) = reader.field()? {
        match (number, form) {
            (number, _) if number == schema_number => {
                schema = Some(value(&mut reader, wire, message, depth)?)
            }
            (1, Form::SchemaOrBool) => allows = value(&mut reader, wire, Form::Bool, depth)? == true,
            (2, Form::SchemaOrArray) => list.push(value(&mut reader, wire, message, depth + 1)?),
            (2, Form::SchemaOrTexts) => list.push(value(&mut reader, wire, Form::Text, depth + 1)?),
            _ => reader.skip(wire)?,
        }
    }
    Ok(match (schema, form) {
        (Some(schema), _) => schema,
        (None, Form::SchemaOrBool) => Value::from(allows),
        (None, _) => Value::Array(list),
    })
}
