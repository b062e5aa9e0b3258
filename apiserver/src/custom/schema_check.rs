//! Whether a schema is structural, and whether what it says can be: the checks of a definition's schemas. Pure.

use regex::Regex;
use serde_json::{Map, Value};
use strata_model::field::{FieldError, FieldPath};

use super::cel::rules::VARIABLES;
use super::structural::{Kind, Structural};
use super::{prune, validate};
use crate::expression::program::Expression;
use crate::value::{flag, list, text};

/// Deepest nesting of a schema.
pub const MAX_DEPTH: usize = 64;
/// Most rules in CEL at one level.
const MAX_RULES: usize = 100;

/// Members that no schema of a definition has.
const UNSUPPORTED: &[&str] =
    &["$ref", "definitions", "dependencies", "id", "patternProperties", "additionalItems"];
/// Members that do not stand in alternatives.
const NOT_IN_JUNCTORS: &[&str] = &[
    "type",
    "default",
    "description",
    "title",
    "additionalProperties",
    "nullable",
    "x-kubernetes-embedded-resource",
    "x-kubernetes-int-or-string",
    "x-kubernetes-preserve-unknown-fields",
    "x-kubernetes-list-type",
    "x-kubernetes-list-map-keys",
    "x-kubernetes-map-type",
    "x-kubernetes-validations",
];

/// Checks the schema of a version.
pub fn check(schema: &Value, path: &FieldPath, faults: &mut Vec<FieldError>) {
    match text(schema, &["type"]) {
        "object" => {}
        "" => faults.push(FieldError::required(path.child("type"), "must not be empty at the root")),
        other => faults.push(FieldError::invalid(path.child("type"), other, "must be object at the root")),
    }
    let before = faults.len();
    level(schema, path, 0, faults);
    if let Some(metadata) = schema.pointer("/properties/metadata/properties").and_then(Value::as_object)
        && metadata.keys().any(|name| name != "name" && name != "generateName")
    {
        let detail = "must not specify anything other than name and generateName, but metadata is implicitly specified";
        faults.push(FieldError::forbidden(path.child("properties").key("metadata"), detail));
    }
    if faults.len() == before {
        defaults(schema, path, faults);
    }
}

fn level(schema: &Value, path: &FieldPath, depth: usize, faults: &mut Vec<FieldError>) {
    let Some(members) = schema.as_object() else { return };
    if depth > MAX_DEPTH {
        faults.push(FieldError::forbidden(path.clone(), format!("nests deeper than {MAX_DEPTH} levels")));
        return;
    }
    for name in UNSUPPORTED.iter().filter(|name| members.contains_key(**name)) {
        faults.push(FieldError::forbidden(path.child(name), format!("{name} is not supported")));
    }
    kind(schema, path, depth, faults);
    plain(schema, path, faults);
    extensions(schema, members, path, faults);
    rules(schema, path, faults);
    for (name, property) in members.get("properties").and_then(Value::as_object).into_iter().flatten() {
        level(property, &path.child("properties").key(name), depth + 1, faults);
    }
    match members.get("additionalProperties") {
        Some(Value::Bool(false)) => {
            let detail = "additionalProperties cannot be set to false";
            faults.push(FieldError::forbidden(path.child("additionalProperties"), detail));
        }
        Some(value @ Value::Object(_)) => {
            level(value, &path.child("additionalProperties"), depth + 1, faults)
        }
        _ => {}
    }
    if members.contains_key("additionalProperties")
        && members.get("properties").and_then(Value::as_object).is_some_and(|p| !p.is_empty())
    {
        let detail = "additionalProperties and properties are mutual exclusive";
        faults.push(FieldError::forbidden(path.child("additionalProperties"), detail));
    }
    if let Some(items) = members.get("items") {
        match items {
            Value::Array(_) => {
                let detail = "items must be a schema object and not an array";
                faults.push(FieldError::forbidden(path.child("items"), detail));
            }
            items => level(items, &path.child("items"), depth + 1, faults),
        }
    }
    for (name, branch, at) in branches(schema, path) {
        junctor(branch, &at, depth + 1, faults);
        if name != "not" {
            covered(branch, schema, &at, faults);
        }
    }
}

/// The alternatives of a schema with their paths.
fn branches<'s>(schema: &'s Value, path: &FieldPath) -> Vec<(&'static str, &'s Value, FieldPath)> {
    let mut found = Vec::new();
    for name in ["allOf", "anyOf", "oneOf"] {
        for (index, branch) in list(schema, &[name]).iter().enumerate() {
            found.push((name, branch, path.child(name).index(index)));
        }
    }
    if let Some(branch) = schema.get("not") {
        found.push(("not", branch, path.child("not")));
    }
    found
}

fn kind(schema: &Value, path: &FieldPath, depth: usize, faults: &mut Vec<FieldError>) {
    let free = flag(schema, &["x-kubernetes-int-or-string"])
        || flag(schema, &["x-kubernetes-preserve-unknown-fields"]);
    match text(schema, &["type"]) {
        "" if depth > 0 && !free => {
            let what = if path.as_str().ends_with("items") { "array items" } else { "object fields" };
            let detail = format!("must not be empty for specified {what}");
            faults.push(FieldError::required(path.child("type"), detail));
        }
        "" => {}
        "array" if schema.get("items").is_none() => {
            faults.push(FieldError::required(path.child("items"), "must be specified"));
        }
        word => {
            if Kind::parse(word).is_none() {
                let known = ["array", "boolean", "integer", "number", "object", "string"];
                faults.push(FieldError::not_supported(path.child("type"), word, &known));
            }
        }
    }
}

fn plain(schema: &Value, path: &FieldPath, faults: &mut Vec<FieldError>) {
    if flag(schema, &["uniqueItems"]) {
        let detail = "uniqueItems cannot be set to true since the runtime complexity becomes quadratic";
        faults.push(FieldError::forbidden(path.child("uniqueItems"), detail));
    }
    let pattern = text(schema, &["pattern"]);
    if !pattern.is_empty()
        && let Err(error) = Regex::new(pattern)
    {
        let detail = format!("must be a valid regular expression, but isn't: {error}");
        faults.push(FieldError::invalid(path.child("pattern"), pattern, detail));
    }
}

fn extensions(schema: &Value, members: &Map<String, Value>, path: &FieldPath, faults: &mut Vec<FieldError>) {
    let kind = text(schema, &["type"]);
    if flag(schema, &["x-kubernetes-int-or-string"]) && !kind.is_empty() {
        let detail = "must be empty if x-kubernetes-int-or-string is true";
        faults.push(FieldError::forbidden(path.child("type"), detail));
    }
    if flag(schema, &["x-kubernetes-embedded-resource"]) {
        if kind != "object" {
            let detail = "must be object if x-kubernetes-embedded-resource is true";
            faults.push(FieldError::invalid(path.child("type"), kind, detail));
        }
        let described =
            members.contains_key("properties") || flag(schema, &["x-kubernetes-preserve-unknown-fields"]);
        if !described {
            let detail = "must not be empty if x-kubernetes-embedded-resource is true without \
                          x-kubernetes-preserve-unknown-fields";
            faults.push(FieldError::required(path.child("properties"), detail));
        }
    }
    if members.get("x-kubernetes-preserve-unknown-fields") == Some(&Value::Bool(false)) {
        let detail = "must be true or undefined";
        faults.push(FieldError::invalid(path.child("x-kubernetes-preserve-unknown-fields"), false, detail));
    }
    match text(schema, &["x-kubernetes-map-type"]) {
        "" => {}
        "atomic" | "granular" if kind == "object" => {}
        "atomic" | "granular" => {
            let detail = "must be object if x-kubernetes-map-type is set";
            faults.push(FieldError::invalid(path.child("type"), kind, detail));
        }
        other => {
            let at = path.child("x-kubernetes-map-type");
            faults.push(FieldError::not_supported(at, other, &["atomic", "granular"]));
        }
    }
    lists(schema, path, faults);
}

fn lists(schema: &Value, path: &FieldPath, faults: &mut Vec<FieldError>) {
    let list_type = text(schema, &["x-kubernetes-list-type"]);
    let keys = list(schema, &["x-kubernetes-list-map-keys"]);
    let at = path.child("x-kubernetes-list-type");
    if !list_type.is_empty() && text(schema, &["type"]) != "array" {
        faults.push(FieldError::invalid(
            path.child("type"),
            text(schema, &["type"]),
            "must be array if x-kubernetes-list-type is specified",
        ));
    }
    match list_type {
        "" | "atomic" | "set" => {
            if !keys.is_empty() {
                let detail = "must be map if x-kubernetes-list-map-keys is non-empty";
                faults.push(FieldError::invalid(at, list_type, detail));
            }
        }
        "map" => {
            let keys_at = path.child("x-kubernetes-list-map-keys");
            if keys.is_empty() {
                faults.push(FieldError::required(
                    keys_at.clone(),
                    "must not be empty if x-kubernetes-list-type is map",
                ));
            }
            if text(schema, &["items", "type"]) != "object" {
                let at = path.child("items").child("type");
                let detail = "must be object if parent array's x-kubernetes-list-type is map";
                faults.push(FieldError::invalid(at, text(schema, &["items", "type"]), detail));
            }
            let required = list(schema, &["items", "required"]);
            for key in keys {
                let name = key.as_str().unwrap_or_default();
                let Some(property) = schema.pointer("/items/properties").and_then(|p| p.get(name)) else {
                    let detail = "entries must all be names of item properties";
                    faults.push(FieldError::invalid(keys_at.clone(), name, detail));
                    continue;
                };
                if !required.contains(key) && property.get("default").is_none() {
                    let at = path.child("items").child("properties").key(name).child("default");
                    let detail = "this property is in x-kubernetes-list-map-keys, so it must have a default or be a required property";
                    faults.push(FieldError::required(at, detail));
                }
            }
        }
        other => faults.push(FieldError::not_supported(at, other, &["atomic", "map", "set"])),
    }
}

fn rules(schema: &Value, path: &FieldPath, faults: &mut Vec<FieldError>) {
    let rules = list(schema, &["x-kubernetes-validations"]);
    let at = path.child("x-kubernetes-validations");
    if rules.len() > MAX_RULES {
        faults.push(FieldError::forbidden(at.clone(), format!("must have at most {MAX_RULES} rules")));
        return;
    }
    for (index, rule) in rules.iter().enumerate() {
        let at = at.index(index);
        self::rule(rule, schema, &at, faults);
    }
}

fn rule(rule: &Value, schema: &Value, at: &FieldPath, faults: &mut Vec<FieldError>) {
    let source = text(rule, &["rule"]);
    if source.trim().is_empty() {
        faults.push(FieldError::required(at.child("rule"), "rule is not specified"));
    } else {
        match Expression::compile(source, &VARIABLES) {
            Err(error) => faults.push(FieldError::invalid(at.child("rule"), source, error.to_string())),
            Ok(expression) => {
                let named = expression.members("self");
                if let Some(name) = named.iter().find_map(|members| unknown_member(schema, members)) {
                    let detail = format!("compilation failed: ERROR: <input>: undefined field '{name}'");
                    faults.push(FieldError::invalid(at.child("rule"), source, detail));
                }
                if flag(rule, &["optionalOldSelf"]) && !expression.uses("oldSelf") {
                    let detail = "option optionalOldSelf is only allowed on rules that use oldSelf";
                    faults.push(FieldError::invalid(at.child("optionalOldSelf"), true, detail));
                }
            }
        }
    }
    let message = text(rule, &["message"]);
    if rule.get("message").is_some() && message.trim().is_empty() {
        faults.push(FieldError::invalid(
            at.child("message"),
            message,
            "message must be non-empty if specified",
        ));
    }
    if message.contains('\n') {
        faults.push(FieldError::invalid(
            at.child("message"),
            message,
            "message must not contain line breaks",
        ));
    }
    if source.contains('\n') && message.is_empty() && text(rule, &["messageExpression"]).is_empty() {
        let detail = "message or messageExpression must be specified if rule contains line breaks";
        faults.push(FieldError::required(at.child("message"), detail));
    }
    let made = text(rule, &["messageExpression"]);
    if !made.is_empty()
        && let Err(error) = Expression::compile(made, &VARIABLES)
    {
        faults.push(FieldError::invalid(at.child("messageExpression"), made, error.to_string()));
    }
    let reason = text(rule, &["reason"]);
    let known = ["FieldValueDuplicate", "FieldValueForbidden", "FieldValueInvalid", "FieldValueRequired"];
    if !reason.is_empty() && !known.contains(&reason) {
        faults.push(FieldError::not_supported(at.child("reason"), reason, &known));
    }
}

/// The first member that a rule names and that the schema, closed there, does not have.
fn unknown_member(schema: &Value, members: &[&str]) -> Option<String> {
    let [name, rest @ ..] = members else { return None };
    if matches!(*name, "apiVersion" | "kind" | "metadata") {
        return None;
    }
    let own = schema.get("properties").and_then(Value::as_object);
    let found = own.into_iter().flatten().find(|(own, _)| super::cel::values::escaped(own) == **name);
    if let Some((_, below)) = found {
        return unknown_member(below, rest);
    }
    let open = flag(schema, &["x-kubernetes-preserve-unknown-fields"]) || text(schema, &["type"]) != "object";
    match schema.get("additionalProperties") {
        Some(below @ Value::Object(_)) => unknown_member(below, rest),
        Some(_) => None,
        None => (!open).then(|| (*name).to_owned()),
    }
}

fn junctor(branch: &Value, path: &FieldPath, depth: usize, faults: &mut Vec<FieldError>) {
    let Some(members) = branch.as_object() else { return };
    if depth > MAX_DEPTH {
        faults.push(FieldError::forbidden(path.clone(), format!("nests deeper than {MAX_DEPTH} levels")));
        return;
    }
    // Whole numbers or text are written as alternatives of types.
    let of_types = members.len() == 1 && members.contains_key("type");
    for name in NOT_IN_JUNCTORS.iter().filter(|name| members.contains_key(**name) && !of_types) {
        faults.push(FieldError::forbidden(path.child(name), "must be empty to be structural"));
    }
    plain(branch, path, faults);
    for (name, property) in members.get("properties").and_then(Value::as_object).into_iter().flatten() {
        junctor(property, &path.child("properties").key(name), depth + 1, faults);
    }
    if let Some(items) = members.get("items") {
        junctor(items, &path.child("items"), depth + 1, faults);
    }
    for (_, below, at) in branches(branch, path) {
        junctor(below, &at, depth + 1, faults);
    }
}

/// Every member that an alternative speaks of stands in the schema itself.
fn covered(branch: &Value, schema: &Value, path: &FieldPath, faults: &mut Vec<FieldError>) {
    for (name, below) in branch.get("properties").and_then(Value::as_object).into_iter().flatten() {
        let own =
            schema.get("properties").and_then(|p| p.get(name)).or_else(|| schema.get("additionalProperties"));
        match own {
            Some(own) => covered(below, own, &path.child("properties").key(name), faults),
            None if flag(schema, &["x-kubernetes-preserve-unknown-fields"]) => {}
            None => {
                let at = path.child("properties").key(name);
                let detail =
                    format!("must also be specified in the schema itself, because it is defined in {at}");
                faults.push(FieldError::required(at, detail));
            }
        }
    }
}

/// Every default is a value of its schema.
fn defaults(schema: &Value, path: &FieldPath, faults: &mut Vec<FieldError>) {
    if let Some(default) = schema.get("default").filter(|default| !default.is_null()) {
        let own = Structural::read(schema);
        let at = path.child("default");
        let mut pruned = default.clone();
        let unknown = prune::unknown(&own, &mut pruned);
        if let Some(first) = unknown.first() {
            let detail = format!("must not have unknown fields: {first}");
            faults.push(FieldError::invalid(at.clone(), default, detail));
        }
        let mut found = Vec::new();
        super::default::fill(&own, &mut pruned);
        validate::validate(&own, &pruned, None, &mut found);
        for fault in found {
            let place = match fault.path.as_str() {
                "<nil>" => at.clone(),
                below => at.child(below),
            };
            faults.push(FieldError { path: place, ..fault });
        }
    }
    for (name, property) in schema.get("properties").and_then(Value::as_object).into_iter().flatten() {
        defaults(property, &path.child("properties").key(name), faults);
    }
    for name in ["items", "additionalProperties"] {
        if let Some(below) = schema.get(name).filter(|below| below.is_object()) {
            defaults(below, &path.child(name), faults);
        }
    }
}
