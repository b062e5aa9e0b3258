//! Rules over objects. What did not change on an update is not held against it; rules about the change itself run only
//! where there was a value before. Pure, within a budget.

use ::cel::common::types::CelOptional;
use serde_json::Value;
use strata_model::field::{FieldError, FieldFault, FieldPath};

use super::super::structural::Structural;
use super::super::validate::{counterpart, map_key};
use super::rules::{Compiled, Rules};
use super::values;
use crate::expression::budget::Budget;
use crate::expression::program::{EvaluationError, Prepared, Scope};
use crate::expression::value::Boxed;

/// Longest message that an expression may make.
const MAX_MESSAGE: usize = 5 * 1024;

/// Checks the rules over an object, or over a change from an old one.
pub fn check(
    schema: &Structural,
    rules: &Rules,
    new: &Value,
    old: Option<&Value>,
    faults: &mut Vec<FieldError>,
) {
    if rules.is_empty() {
        return;
    }
    let mut checker = Checker { budget: Budget::default(), faults };
    checker.value((schema, rules), &FieldPath::new(""), new, old, true);
}

struct Checker<'a> {
    budget: Budget,
    faults: &'a mut Vec<FieldError>,
}

impl Checker<'_> {
    fn value(
        &mut self,
        (schema, rules): (&Structural, &Rules),
        path: &FieldPath,
        new: &Value,
        old: Option<&Value>,
        is_object: bool,
    ) {
        if self.budget.is_spent() || (new.is_null() && schema.nullable) {
            return;
        }
        self.here((schema, rules), path, new, old, is_object);
        match new {
            Value::Object(members) => {
                for (name, member) in members {
                    let was = old.and_then(|old| old.get(name));
                    if let (Some(rules), Some(known)) =
                        (rules.properties.get(name.as_str()), schema.properties.get(name.as_str()))
                    {
                        self.value((known, rules), &path.child(name), member, was, known.embedded);
                    } else if let (Some(rules), Some(known)) = (&rules.additional, schema.member(name)) {
                        self.value((known, rules), &map_key(path, name), member, was, known.embedded);
                    }
                }
            }
            Value::Array(items) => {
                let (Some(rules), Some(item)) = (&rules.items, &schema.items) else { return };
                for (index, element) in items.iter().enumerate() {
                    let was = counterpart(schema, element, old);
                    self.value((item, rules), &path.index(index), element, was, item.embedded);
                }
            }
            _ => {}
        }
    }

    fn here(
        &mut self,
        (schema, rules): (&Structural, &Rules),
        path: &FieldPath,
        new: &Value,
        old: Option<&Value>,
        is_object: bool,
    ) {
        let unchanged = old == Some(new);
        let due: Vec<&Compiled> = rules
            .here
            .iter()
            .filter(|rule| match rule.is_transition {
                true => rule.rule.optional_old_self || old.is_some(),
                // What was so before is tolerated.
                false => !unchanged,
            })
            .collect();
        if due.is_empty() {
            return;
        }
        let value = |json: &Value| values::of(schema, json, is_object);
        let mut scope = Prepared::new(&Scope::new().with_value("self", value(new)));
        for rule in due {
            if rule.is_transition {
                let before: Boxed = match (rule.rule.optional_old_self, old) {
                    (true, Some(old)) => Box::new(CelOptional::of(value(old))),
                    (true, None) => Box::new(CelOptional::none()),
                    (false, Some(old)) => value(old),
                    (false, None) => continue,
                };
                scope.set("oldSelf", before);
            }
            self.rule(rule, &scope, path, new);
        }
    }

    fn rule(&mut self, rule: &Compiled, scope: &Prepared, path: &FieldPath, new: &Value) {
        let Ok(expression) = &rule.expression else { return };
        let root =
            |path: &FieldPath| if path.as_str().is_empty() { FieldPath::new("<nil>") } else { path.clone() };
        match expression.holds(scope, &mut self.budget) {
            Ok(true) => {}
            Ok(false) => {
                let message = self.message(rule, scope);
                let at = root(&below(path, &rule.rule.field_path));
                self.faults.push(fault(&rule.rule.reason, at, new, message));
            }
            Err(EvaluationError::Spent) => {
                let detail = format!(
                    "CEL expression evaluation: the validation budget is exceeded by rule: {}; it is too expensive",
                    rule.rule.rule
                );
                self.faults.push(FieldError::forbidden(root(path), detail));
            }
            Err(EvaluationError::Failed(why)) => {
                let detail = format!("{why} evaluating rule: {}", told(rule));
                self.faults.push(FieldError {
                    value: Some(shape(new)),
                    ..FieldError::invalid(root(path), "", detail)
                });
            }
        }
    }

    fn message(&mut self, rule: &Compiled, scope: &Prepared) -> String {
        if let Some(expression) = &rule.message {
            match expression.text(scope, &mut self.budget) {
                Ok(text) if !text.trim().is_empty() && text.len() <= MAX_MESSAGE && !text.contains('\n') => {
                    return text.trim().to_owned();
                }
                Ok(_) => {}
                Err(error) => tracing::debug!(%error, "the message of a rule cannot be made"),
            }
        }
        told(rule)
    }
}

/// What a user is told where a rule has no message that is made for the value.
fn told(rule: &Compiled) -> String {
    match rule.rule.message.as_str() {
        "" => format!("failed rule: {}", rule.rule.rule),
        message => message.to_owned(),
    }
}

/// The path that a rule names below its own: `.a.b`, `['a']`.
fn below(path: &FieldPath, field_path: &str) -> FieldPath {
    let plain = field_path.replace("['", ".").replace("']", "");
    plain.split('.').filter(|part| !part.is_empty()).fold(path.clone(), |path, part| path.child(part))
}

fn fault(reason: &str, path: FieldPath, value: &Value, detail: String) -> FieldError {
    let kind = match reason {
        "FieldValueRequired" => FieldFault::Required,
        "FieldValueForbidden" => FieldFault::Forbidden,
        "FieldValueDuplicate" => FieldFault::Duplicate,
        _ => FieldFault::Invalid,
    };
    let shown = matches!(kind, FieldFault::Invalid | FieldFault::Duplicate).then(|| shape(value));
    FieldError { path, fault: kind, value: shown, detail }
}

/// A value as faults show it: objects and lists by their type alone.
fn shape(value: &Value) -> String {
    match value {
        Value::Object(_) => "\"object\"".to_owned(),
        Value::Array(_) => "\"array\"".to_owned(),
        scalar => scalar.to_string(),
    }
}
