//! Custom objects against their schema, told as Kubernetes tells it. On updates what did not change is tolerated even
//! where it is faulty. Pure; rules in CEL are next door.

use std::collections::BTreeSet;

use serde_json::{Map, Value};
use strata_model::field::{FieldError, FieldFault, FieldPath};

use super::formats;
use super::structural::{Checks, Kind, ListType, Structural};

/// Most faults of one object that are told.
pub const MAX_FAULTS: usize = 100;

/// Checks an object, or the change from an old one.
pub fn validate(schema: &Structural, new: &Value, old: Option<&Value>, faults: &mut Vec<FieldError>) {
    let mut validator = Validator { faults: Vec::new() };
    validator.value(schema, &FieldPath::new(""), new, old);
    faults.append(&mut validator.faults);
}

/// The value in an old list that an element of the new one was, where elements have keys.
pub fn counterpart<'v>(schema: &Structural, element: &Value, old: Option<&'v Value>) -> Option<&'v Value> {
    let Some(ListType::Map(keys)) = &schema.list_type else { return None };
    let same = |other: &&Value| keys.iter().all(|key| other.get(&**key) == element.get(&**key));
    old?.as_array()?.iter().find(same)
}

/// The JSON type of a value, in the word of a schema.
pub fn type_of(value: &Value) -> &'static str {
    match value {
        Value::Null => "null",
        Value::Bool(_) => "boolean",
        Value::Number(number) if number.is_f64() && !is_whole(value) => "number",
        Value::Number(_) => "integer",
        Value::String(_) => "string",
        Value::Array(_) => "array",
        Value::Object(_) => "object",
    }
}

fn is_whole(value: &Value) -> bool {
    value.is_i64() || value.is_u64() || value.as_f64().is_some_and(|number| number.fract() == 0.0)
}

struct Validator {
    faults: Vec<FieldError>,
}

impl Validator {
    fn tell(&mut self, fault: FieldError) {
        if self.faults.len() < MAX_FAULTS {
            self.faults.push(FieldError {
                path: if fault.path.as_str().is_empty() { FieldPath::new("<nil>") } else { fault.path },
                ..fault
            });
        }
    }

    fn invalid(&mut self, path: &FieldPath, value: &Value, what: &str) {
        let detail = format!("{path} in body {what}");
        self.tell(FieldError::invalid(path.clone(), value, detail));
    }

    fn value(&mut self, schema: &Structural, path: &FieldPath, new: &Value, old: Option<&Value>) {
        if old == Some(new) || (new.is_null() && schema.nullable) {
            return;
        }
        if !self.is_typed(schema, path, new) {
            return;
        }
        if let Some(checks) = &schema.checks {
            self.checks(checks, path, new);
        }
        match new {
            Value::Object(members) => self.members(schema, path, members, old),
            Value::Array(items) => {
                self.unique(schema, path, items);
                let Some(item) = &schema.items else { return };
                for (index, element) in items.iter().enumerate() {
                    self.value(item, &path.index(index), element, counterpart(schema, element, old));
                }
            }
            _ => {}
        }
    }

    fn members(
        &mut self,
        schema: &Structural,
        path: &FieldPath,
        members: &Map<String, Value>,
        old: Option<&Value>,
    ) {
        let embedded = path.as_str().is_empty() || schema.embedded;
        if schema.embedded {
            for name in ["apiVersion", "kind"] {
                if members.get(name).and_then(Value::as_str).is_none_or(str::is_empty) {
                    self.tell(FieldError::required(path.child(name), "must not be empty"));
                }
            }
        }
        for (name, member) in members {
            if embedded && matches!(name.as_str(), "apiVersion" | "kind") {
                continue;
            }
            let Some(known) = schema.member(name) else { continue };
            let at = if schema.properties.contains_key(name.as_str()) {
                path.child(name)
            } else {
                map_key(path, name)
            };
            self.value(known, &at, member, old.and_then(|old| old.get(name)));
        }
    }

    fn is_typed(&mut self, schema: &Structural, path: &FieldPath, value: &Value) -> bool {
        let fits = match schema.kind {
            _ if schema.int_or_string => value.is_string() || (value.is_number() && is_whole(value)),
            None => return true,
            Some(Kind::Object) => value.is_object(),
            Some(Kind::Array) => value.is_array(),
            Some(Kind::String) => value.is_string(),
            Some(Kind::Integer) => value.is_number() && is_whole(value),
            Some(Kind::Number) => value.is_number(),
            Some(Kind::Boolean) => value.is_boolean(),
        };
        if !fits {
            let wanted = match schema.kind {
                _ if schema.int_or_string => "integer,string",
                kind => kind.map_or("any", Kind::word),
            };
            let found = format!("\"{}\"", type_of(value));
            let detail = format!("{path} in body must be of type {wanted}: {found}");
            let (path, fault) = (path.clone(), FieldFault::TypeInvalid);
            self.tell(FieldError { path, fault, value: Some(found), detail });
        }
        fits
    }

    fn unique(&mut self, schema: &Structural, path: &FieldPath, items: &[Value]) {
        let mut seen = BTreeSet::new();
        for (index, item) in items.iter().enumerate() {
            let key = match &schema.list_type {
                Some(ListType::Set) => item.clone(),
                Some(ListType::Map(keys)) => {
                    let part = |key: &str| Some((key.to_owned(), item.get(key)?.clone()));
                    Value::Object(keys.iter().filter_map(|key| part(key)).collect())
                }
                Some(ListType::Atomic) | None => return,
            };
            if !seen.insert(key.to_string()) {
                self.tell(FieldError::duplicate(path.index(index), &key));
            }
        }
    }

    fn checks(&mut self, checks: &Checks, path: &FieldPath, value: &Value) {
        match value {
            Value::Number(_) => self.number(checks, path, value),
            Value::String(text) => self.text(checks, path, text),
            Value::Array(items) => {
                let size = items.len() as u64;
                if let Some(least) = checks.items.0.filter(|least| size < *least) {
                    self.invalid(path, &size.into(), &format!("should have at least {least} items"));
                }
                self.too_many(path, size, checks.items.1);
            }
            Value::Object(members) => {
                let size = members.len() as u64;
                if let Some(least) = checks.members.0.filter(|least| size < *least) {
                    self.invalid(path, &size.into(), &format!("should have at least {least} properties"));
                }
                self.too_many(path, size, checks.members.1);
                for name in &checks.required {
                    if !members.contains_key(&**name) {
                        self.tell(FieldError::required(path.child(name), ""));
                    }
                }
            }
            _ => {}
        }
        if !checks.enumeration.is_empty() && !checks.enumeration.contains(value) {
            let known: Vec<String> = checks.enumeration.iter().map(shown).collect();
            let known: Vec<&str> = known.iter().map(String::as_str).collect();
            self.tell(FieldError::not_supported(path.clone(), value, &known));
        }
        self.junctors(checks, path, value);
    }

    fn too_many(&mut self, path: &FieldPath, size: u64, most: Option<u64>) {
        if let Some(most) = most.filter(|most| size > *most) {
            let (path, value) = (path.clone(), Some(size.to_string()));
            let detail = format!("must have at most {most} items");
            self.tell(FieldError { path, fault: FieldFault::TooMany, value, detail });
        }
    }

    fn number(&mut self, checks: &Checks, path: &FieldPath, value: &Value) {
        let Some(number) = value.as_f64() else { return };
        if let Some((least, open)) = checks.minimum
            && (number < least || (open && number <= least))
        {
            let or = if open { "" } else { " or equal to" };
            self.invalid(path, value, &format!("should be greater than{or} {least}"));
        }
        if let Some((most, open)) = checks.maximum
            && (number > most || (open && number >= most))
        {
            let or = if open { "" } else { " or equal to" };
            self.invalid(path, value, &format!("should be less than{or} {most}"));
        }
        if let Some(factor) = checks.multiple_of
            && factor > 0.0
            && ((number / factor).round() - number / factor).abs() > f64::EPSILON * 8.0
        {
            self.invalid(path, value, &format!("should be a multiple of {factor}"));
        }
        self.format(checks, path, value);
    }

    fn text(&mut self, checks: &Checks, path: &FieldPath, text: &str) {
        let value = Value::from(text);
        let length = text.chars().count() as u64;
        if let Some(least) = checks.length.0.filter(|least| length < *least) {
            self.invalid(path, &value, &format!("should be at least {least} chars long"));
        }
        if let Some(most) = checks.length.1.filter(|most| length > *most) {
            self.tell(FieldError::too_long(path.clone(), usize::try_from(most).unwrap_or(usize::MAX)));
        }
        if let Some(pattern) = checks.pattern.as_ref().filter(|pattern| !pattern.matches(text)) {
            self.invalid(path, &value, &format!("should match '{}'", pattern.text));
        }
        self.format(checks, path, &value);
    }

    fn format(&mut self, checks: &Checks, path: &FieldPath, value: &Value) {
        if !formats::fits(&checks.format, value) {
            self.invalid(path, value, &format!("must be of type {}: {value}", checks.format));
        }
    }

    fn junctors(&mut self, checks: &Checks, path: &FieldPath, value: &Value) {
        let mut holds = |schema: &Structural| {
            let mut below = Validator { faults: Vec::new() };
            below.value(schema, path, value, None);
            let fine = below.faults.is_empty();
            (fine, below.faults)
        };
        let mut told: Vec<FieldError> = Vec::new();
        let mut words: Vec<String> = Vec::new();
        let all: Vec<_> = checks.all_of.iter().map(&mut holds).collect();
        if all.iter().any(|(fine, _)| !fine) {
            words.push("must validate all the schemas (allOf)".to_owned());
            told.extend(all.into_iter().flat_map(|(_, faults)| faults));
        }
        let mut any: Vec<_> = checks.any_of.iter().map(&mut holds).collect();
        if !any.is_empty() && !any.iter().any(|(fine, _)| *fine) {
            words.push("must validate at least one schema (anyOf)".to_owned());
            // The alternative that came nearest is told.
            any.sort_by_key(|(_, faults)| faults.len());
            told.extend(any.into_iter().take(1).flat_map(|(_, faults)| faults));
        }
        let one: Vec<_> = checks.one_of.iter().map(&mut holds).collect();
        let found = one.iter().filter(|(fine, _)| *fine).count();
        if !one.is_empty() && found != 1 {
            let found =
                if found == 0 { "none valid".to_owned() } else { format!("{found} valid alternatives") };
            words.push(format!("must validate one and only one schema (oneOf). Found {found}"));
            if found.starts_with("none") {
                let nearest = one.into_iter().min_by_key(|(_, faults)| faults.len());
                told.extend(nearest.into_iter().flat_map(|(_, faults)| faults));
            }
        }
        if checks.not.as_ref().is_some_and(|not| holds(not).0) {
            words.push("must not validate the schema (not)".to_owned());
        }
        for words in words {
            self.tell(FieldError::invalid(path.clone(), "", format!("\"{path}\" {words}")));
        }
        told.into_iter().for_each(|fault| self.tell(fault));
    }
}

/// The path of a member of a map.
pub fn map_key(path: &FieldPath, key: &str) -> FieldPath {
    path.child(key)
}

/// A value of an enumeration as messages name it.
fn shown(value: &Value) -> String {
    match value {
        Value::String(text) => text.clone(),
        other => other.to_string(),
    }
}
