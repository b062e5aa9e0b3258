//! Structural schemas: what a version of a custom type says of its objects, read from the JSON of its definition.
//! Data alone; what is done with it (prune, default, validate) is next door. Knows nothing of requests.

use std::collections::BTreeMap;
use std::sync::{Arc, OnceLock};

use regex::Regex;
use serde_json::{Map, Value};

use crate::value::{flag, int, list, text};

/// The JSON type of a value. Absent where a schema takes several.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// A struct or a map.
    Object,
    /// A list.
    Array,
    /// Text.
    String,
    /// A whole number.
    Integer,
    /// A number.
    Number,
    /// `true` or `false`.
    Boolean,
}

impl Kind {
    /// Reads the word of a schema.
    pub fn parse(word: &str) -> Option<Self> {
        Some(match word {
            "object" => Self::Object,
            "array" => Self::Array,
            "string" => Self::String,
            "integer" => Self::Integer,
            "number" => Self::Number,
            "boolean" => Self::Boolean,
            _ => return None,
        })
    }

    /// The word of a schema.
    pub fn word(self) -> &'static str {
        match self {
            Self::Object => "object",
            Self::Array => "array",
            Self::String => "string",
            Self::Integer => "integer",
            Self::Number => "number",
            Self::Boolean => "boolean",
        }
    }
}

/// What members beside the named ones may be.
#[derive(Debug)]
pub enum Additional {
    /// Anything.
    Open,
    /// Values of one shape.
    Schema(Arc<Structural>),
}

/// How elements of a list are told apart.
#[derive(Debug, PartialEq, Eq)]
pub enum ListType {
    /// Not at all: the list is one value.
    Atomic,
    /// By their values.
    Set,
    /// By these members.
    Map(Box<[Box<str>]>),
}

/// A rule in CEL, as it is written.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Rule {
    /// The expression; true where the value is fine.
    pub rule: String,
    /// What a user is told; empty for a sentence made of the rule.
    pub message: String,
    /// An expression that makes what a user is told; empty for none.
    pub message_expression: String,
    /// The kind of fault: `FieldValueInvalid` where empty.
    pub reason: String,
    /// A path below the value that the fault is at; empty for the value itself.
    pub field_path: String,
    /// Whether the rule holds for values that were not there before, `oldSelf` being optional.
    pub optional_old_self: bool,
}

/// One level of a schema.
#[derive(Debug, Default)]
pub struct Structural {
    /// The JSON type.
    pub kind: Option<Kind>,
    /// Named members.
    pub properties: BTreeMap<Box<str>, Arc<Structural>>,
    /// Other members.
    pub additional: Option<Additional>,
    /// Elements.
    pub items: Option<Arc<Structural>>,
    /// The value where there is none.
    pub default: Option<Value>,
    /// Whether null is a value.
    pub nullable: bool,
    /// Whether unknown members stay.
    pub preserve: bool,
    /// Whether it is a whole number or text.
    pub int_or_string: bool,
    /// Whether it is an object with a type and metadata.
    pub embedded: bool,
    /// How elements are told apart.
    pub list_type: Option<ListType>,
    /// Whether a struct or map is one value.
    pub atomic: bool,
    /// What else must hold.
    pub checks: Option<Box<Checks>>,
    /// Rules in CEL.
    pub rules: Vec<Rule>,
}

/// A regular expression, compiled when a value is first held against it: most never are, and each takes kilobytes.
#[derive(Debug)]
pub struct Pattern {
    /// As it is written.
    pub text: Box<str>,
    regex: OnceLock<Option<Regex>>,
}

impl Pattern {
    fn new(text: &str) -> Self {
        Self { text: text.into(), regex: OnceLock::new() }
    }

    /// Whether a text matches. What is no expression, which was refused unless it was stored before, matches all.
    pub fn matches(&self, text: &str) -> bool {
        let regex = self.regex.get_or_init(|| Regex::new(&self.text).ok());
        regex.as_ref().is_none_or(|regex| regex.is_match(text))
    }
}

/// What must hold of a value beyond its type.
#[derive(Debug, Default)]
pub struct Checks {
    /// Least number, and whether it is itself excluded.
    pub minimum: Option<(f64, bool)>,
    /// Greatest number, and whether it is itself excluded.
    pub maximum: Option<(f64, bool)>,
    /// What a number is a multiple of.
    pub multiple_of: Option<f64>,
    /// Least and most characters.
    pub length: (Option<u64>, Option<u64>),
    /// Least and most elements.
    pub items: (Option<u64>, Option<u64>),
    /// Least and most members.
    pub members: (Option<u64>, Option<u64>),
    /// What text matches.
    pub pattern: Option<Pattern>,
    /// The form of text or a number.
    pub format: String,
    /// The values there are.
    pub enumeration: Vec<Value>,
    /// Members that must be there.
    pub required: Vec<Box<str>>,
    /// Schemas that all hold.
    pub all_of: Vec<Structural>,
    /// Schemas of which one holds.
    pub any_of: Vec<Structural>,
    /// Schemas of which exactly one holds.
    pub one_of: Vec<Structural>,
    /// The schema that does not hold.
    pub not: Option<Box<Structural>>,
}

impl Structural {
    /// Reads a schema, which was checked when its definition was stored. What is not understood says nothing.
    pub fn read(schema: &Value) -> Self {
        let below = |name: &str| schema.get(name).filter(|s| s.is_object());
        let additional = match schema.get("additionalProperties") {
            Some(Value::Bool(true)) => Some(Additional::Open),
            Some(value @ Value::Object(_)) => Some(Additional::Schema(Arc::new(Self::read(value)))),
            _ => None,
        };
        let properties = schema.get("properties").and_then(Value::as_object);
        let read = |(name, schema): (&String, &Value)| (name.as_str().into(), Arc::new(Self::read(schema)));
        Self {
            kind: Kind::parse(text(schema, &["type"])),
            properties: properties.into_iter().flatten().map(read).collect(),
            additional,
            items: below("items").map(|items| Arc::new(Self::read(items))),
            default: schema.get("default").filter(|d| !d.is_null()).cloned(),
            nullable: flag(schema, &["nullable"]),
            preserve: flag(schema, &["x-kubernetes-preserve-unknown-fields"]),
            int_or_string: flag(schema, &["x-kubernetes-int-or-string"]),
            embedded: flag(schema, &["x-kubernetes-embedded-resource"]),
            list_type: list_type(schema),
            atomic: text(schema, &["x-kubernetes-map-type"]) == "atomic",
            checks: Checks::read(schema),
            rules: list(schema, &["x-kubernetes-validations"]).iter().map(Rule::read).collect(),
        }
    }

    /// The schema of a member.
    pub fn member(&self, name: &str) -> Option<&Arc<Structural>> {
        match (self.properties.get(name), &self.additional) {
            (Some(property), _) => Some(property),
            (None, Some(Additional::Schema(schema))) => Some(schema),
            (None, _) => None,
        }
    }

    /// Whether null stands here for no value.
    pub fn refuses_null(&self, value: &Value) -> bool {
        value.is_null() && !self.nullable
    }

    /// Whether any rule in CEL is here or below.
    pub fn has_rules(&self) -> bool {
        !self.rules.is_empty() || self.below().any(Self::has_rules)
    }

    /// Whether any default is here or below.
    pub fn has_defaults(&self) -> bool {
        self.default.is_some() || self.below().any(Self::has_defaults)
    }

    fn below(&self) -> impl Iterator<Item = &Structural> {
        let additional = match &self.additional {
            Some(Additional::Schema(schema)) => Some(schema),
            _ => None,
        };
        self.properties.values().chain(additional).chain(&self.items).map(AsRef::as_ref)
    }
}

fn list_type(schema: &Value) -> Option<ListType> {
    Some(match text(schema, &["x-kubernetes-list-type"]) {
        "atomic" => ListType::Atomic,
        "set" => ListType::Set,
        "map" => {
            let keys = list(schema, &["x-kubernetes-list-map-keys"]);
            ListType::Map(keys.iter().filter_map(Value::as_str).map(Into::into).collect())
        }
        _ => return None,
    })
}

impl Rule {
    fn read(rule: &Value) -> Self {
        let word = |name: &str| text(rule, &[name]).to_owned();
        Self {
            rule: word("rule"),
            message: word("message"),
            message_expression: word("messageExpression"),
            reason: word("reason"),
            field_path: word("fieldPath"),
            optional_old_self: flag(rule, &["optionalOldSelf"]),
        }
    }
}

impl Checks {
    const NAMES: &[&str] = &[
        "minimum",
        "maximum",
        "multipleOf",
        "minLength",
        "maxLength",
        "minItems",
        "maxItems",
        "minProperties",
        "maxProperties",
        "pattern",
        "format",
        "enum",
        "required",
        "allOf",
        "anyOf",
        "oneOf",
        "not",
    ];

    fn read(schema: &Value) -> Option<Box<Self>> {
        let members: &Map<String, Value> = schema.as_object()?;
        if !Self::NAMES.iter().any(|name| members.contains_key(*name)) {
            return None;
        }
        let number = |name: &str| members.get(name).and_then(Value::as_f64);
        let bound = |name: &str, open: &str| Some((number(name)?, flag(schema, &[open])));
        let count = |name: &str| int(schema, &[name]).and_then(|n| u64::try_from(n).ok());
        let several = |name: &str| list(schema, &[name]).iter().map(Structural::read).collect();
        let pattern = Some(text(schema, &["pattern"])).filter(|p| !p.is_empty());
        let required = list(schema, &["required"]);
        Some(Box::new(Self {
            minimum: bound("minimum", "exclusiveMinimum"),
            maximum: bound("maximum", "exclusiveMaximum"),
            multiple_of: number("multipleOf"),
            length: (count("minLength"), count("maxLength")),
            items: (count("minItems"), count("maxItems")),
            members: (count("minProperties"), count("maxProperties")),
            pattern: pattern.map(Pattern::new),
            format: text(schema, &["format"]).to_owned(),
            enumeration: list(schema, &["enum"]).to_vec(),
            required: required.iter().filter_map(Value::as_str).map(Into::into).collect(),
            all_of: several("allOf"),
            any_of: several("anyOf"),
            one_of: several("oneOf"),
            not: members.get("not").map(|not| Box::new(Structural::read(not))),
        }))
    }
}
