//! The rules of a schema, compiled, in a tree of the same shape. Knows expressions and schemas.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::super::structural::{Additional, Rule, Structural};
use crate::expression::program::{CompileError, Expression};

/// Variables of a rule.
pub const VARIABLES: [&str; 2] = ["self", "oldSelf"];

/// A rule, ready to run.
#[derive(Debug)]
pub struct Compiled {
    /// As it is written.
    pub rule: Rule,
    /// The expression; the error where it is none, which was refused unless it was stored before.
    pub expression: Result<Expression, CompileError>,
    /// The expression of the message.
    pub message: Option<Expression>,
    /// Whether it speaks of the value before.
    pub is_transition: bool,
}

/// Rules at one level of a schema and below. Levels without rules are left out.
#[derive(Debug, Default)]
pub struct Rules {
    /// Rules here.
    pub here: Vec<Compiled>,
    /// Rules below named members.
    pub properties: BTreeMap<Box<str>, Rules>,
    /// Rules of other members.
    pub additional: Option<Box<Rules>>,
    /// Rules of elements.
    pub items: Option<Box<Rules>>,
}

impl Rules {
    /// Compiles the rules of a schema.
    pub fn compile(schema: &Structural) -> Self {
        if !schema.has_rules() {
            return Self::default();
        }
        let below = |schema: &Arc<Structural>| Some(Self::compile(schema)).filter(|rules| !rules.is_empty());
        let properties =
            schema.properties.iter().filter_map(|(name, schema)| Some((name.clone(), below(schema)?)));
        let additional = match &schema.additional {
            Some(Additional::Schema(schema)) => below(schema).map(Box::new),
            Some(Additional::Open) | None => None,
        };
        Self {
            here: schema.rules.iter().map(Compiled::new).collect(),
            properties: properties.collect(),
            additional,
            items: schema.items.as_ref().and_then(below).map(Box::new),
        }
    }

    /// Whether there is no rule here or below.
    pub fn is_empty(&self) -> bool {
        self.here.is_empty()
            && self.properties.is_empty()
            && self.additional.is_none()
            && self.items.is_none()
    }
}

impl Compiled {
    fn new(rule: &Rule) -> Self {
        let expression = Expression::compile(&rule.rule, &VARIABLES);
        let message = Some(&rule.message_expression).filter(|text| !text.is_empty());
        let is_transition = expression.as_ref().is_ok_and(|expression| expression.uses("oldSelf"));
        Self {
            rule: rule.clone(),
            expression,
            message: message.and_then(|text| Expression::compile(text, &VARIABLES).ok()),
            is_transition,
        }
    }
}
