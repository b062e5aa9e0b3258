//! Expressions of policies and webhooks over a write: what they may name, and conditions that say whether one is meant at
//! all. Pure, within a budget.

use serde_json::Value;

use super::asked::Asked;
use crate::expression::budget::Budget;
use crate::expression::program::{EvaluationError, Expression, Prepared, Scope};
use crate::expression::value;
use crate::value::{list, text};

/// The values that expressions over a write may name, as far as any of them does.
pub fn prepare(asked: &Asked<'_>, uses: impl Fn(&str) -> bool) -> Prepared {
    let mut scope = Scope::new();
    for (name, object) in [("object", asked.object), ("oldObject", asked.old)] {
        if uses(name) {
            scope.set(name, value::of(object.unwrap_or(&Value::Null)));
        }
    }
    if uses("request") {
        scope.set("request", value::of(&asked.request()));
    }
    Prepared::new(&scope)
}

/// Conditions under which a policy or webhook is asked at all.
#[derive(Debug, Default)]
pub struct Conditions(Vec<(String, Result<Expression, String>)>);

impl Conditions {
    /// Reads `matchConditions`.
    pub fn read(from: &Value, variables: &[&str]) -> Self {
        let compile = |condition: &Value| {
            let expression = Expression::compile(text(condition, &["expression"]), variables);
            (text(condition, &["name"]).to_owned(), expression.map_err(|error| error.to_string()))
        };
        Self(list(from, &["matchConditions"]).iter().map(compile).collect())
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Whether any of them names a variable.
    pub fn uses(&self, variable: &str) -> bool {
        self.0.iter().any(|(_, condition)| condition.as_ref().is_ok_and(|c| c.uses(variable)))
    }

    /// Whether all hold. One that does not hold decides, whatever others fail at.
    ///
    /// # Errors
    /// The first that cannot be told.
    pub fn hold(&self, over: &Prepared, budget: &mut Budget) -> Result<bool, String> {
        let mut failed = None;
        for (name, condition) in &self.0 {
            let held = match condition {
                Ok(condition) => {
                    condition.holds(over, budget).map_err(|error: EvaluationError| error.to_string())
                }
                Err(error) => Err(error.clone()),
            };
            match held {
                Ok(true) => {}
                Ok(false) => return Ok(false),
                Err(error) => {
                    failed.get_or_insert(format!("match condition '{name}' resulted in error: {error}"));
                }
            }
        }
        failed.map_or(Ok(true), Err)
    }
}
