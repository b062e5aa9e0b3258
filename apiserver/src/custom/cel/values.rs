//! JSON → values of rules, as the schema types it: instants, durations and bytes where it says so, members under names
//! that expressions can write. Members that the schema does not know are not there.

use ::cel::Value as Cel;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::Value;

use super::super::structural::{Additional, Kind, Structural};
use crate::expression::value::{self, Boxed};

/// Words that no member can be named by in an expression.
const RESERVED: &[&str] = &[
    "true",
    "false",
    "null",
    "in",
    "as",
    "break",
    "const",
    "continue",
    "else",
    "for",
    "function",
    "if",
    "import",
    "let",
    "loop",
    "package",
    "namespace",
    "return",
    "var",
    "void",
    "while",
];

/// The value of some JSON of this shape.
pub fn of(schema: &Structural, json: &Value, is_object: bool) -> Boxed {
    match (json, schema.kind) {
        (Value::Object(members), _) if is_object || schema.embedded => {
            let known = members.iter().filter_map(|(name, member)| {
                let value = match (name.as_str(), schema.properties.get(name.as_str())) {
                    ("apiVersion" | "kind", _) => value::of(member),
                    ("metadata", _) => metadata(member),
                    (_, Some(property)) => of(property, member, false),
                    (_, None) => return None,
                };
                Some((escaped(name), value))
            });
            value::map(known)
        }
        (Value::Object(members), _) => match &schema.additional {
            Some(Additional::Schema(shape)) => {
                value::map(members.iter().map(|(name, member)| (name.clone(), of(shape, member, false))))
            }
            Some(Additional::Open) => value::of(json),
            None if schema.properties.is_empty() && schema.preserve => value::of(json),
            None => value::map(members.iter().filter_map(|(name, member)| {
                let property = schema.properties.get(name.as_str())?;
                Some((escaped(name), of(property, member, false)))
            })),
        },
        (Value::Array(items), _) => match &schema.items {
            Some(item) => value::list(items.iter().map(|element| of(item, element, false))),
            None => value::of(json),
        },
        (Value::Number(number), Some(Kind::Number)) => value::double(number),
        (Value::String(text), Some(Kind::String)) => self::text(schema, text),
        (scalar, _) => value::of(scalar),
    }
}

/// What rules may know of metadata.
fn metadata(json: &Value) -> Boxed {
    let members = json.as_object().into_iter().flatten();
    let known = members.filter(|(name, _)| matches!(name.as_str(), "name" | "generateName"));
    value::map(known.map(|(name, member)| (name.clone(), value::of(member))))
}

fn text(schema: &Structural, text: &str) -> Boxed {
    let format = schema.checks.as_ref().map_or("", |checks| checks.format.as_str());
    let typed = match format {
        "date-time" => text.parse().ok().map(Cel::Timestamp),
        "date" => format!("{text}T00:00:00Z").parse().ok().map(Cel::Timestamp),
        "byte" => STANDARD.decode(text).ok().map(|bytes| Cel::Bytes(bytes.into())),
        _ => None,
    };
    let typed = typed.and_then(|typed| Boxed::try_from(typed).ok());
    typed.unwrap_or_else(|| value::of(&Value::from(text)))
}

/// The name under which an expression finds a member.
pub fn escaped(name: &str) -> String {
    if RESERVED.contains(&name) {
        return format!("__{name}__");
    }
    let plain = |c: char| c.is_ascii_alphanumeric() || c == '_';
    if !name.contains("__") && name.chars().all(plain) {
        return name.to_owned();
    }
    name.replace("__", "__underscores__")
        .replace('.', "__dot__")
        .replace('-', "__dash__")
        .replace('/', "__slash__")
}
