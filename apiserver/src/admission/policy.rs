//! Admission policies, compiled, and what they say to a write. Pure, within a budget.

use std::collections::BTreeMap;

use serde_json::Value;
use strata_model::status::Reason;

use super::asked::Asked;
use super::matching::Matching;
use super::terms::{self, Conditions};
use crate::expression::budget::Budget;
use crate::expression::program::{Expression, Prepared};
use crate::expression::value::{self, Boxed};
use crate::types::admission::OF_POLICIES;
use crate::value::{at, list, text};

/// Most steps of all expressions of a policy about one write: it stands in the way of every write that it is about.
const MAX_STEPS: u64 = 200_000;
/// Longest message that an expression may make.
const MAX_MESSAGE: usize = 5 * 1024;

type Compiled = Result<Expression, String>;

/// A policy.
#[derive(Debug)]
pub struct Policy {
    /// Its name.
    pub name: String,
    /// Which writes it is about.
    pub matching: Matching,
    /// `apiVersion` and `kind` of its parameters.
    pub parameters: Option<(String, String)>,
    conditions: Conditions,
    variables: Vec<(String, Compiled)>,
    validations: Vec<Validation>,
    annotations: Vec<(String, Compiled)>,
    lenient: bool,
}

#[derive(Debug)]
struct Validation {
    source: String,
    expression: Compiled,
    message: String,
    message_expression: Option<Expression>,
    reason: Reason,
}

/// A binding of a policy.
#[derive(Debug)]
pub struct Binding {
    /// Its name.
    pub name: String,
    /// The policy.
    pub policy: String,
    /// Which of the policy's writes it is about.
    pub matching: Matching,
    /// Where the parameters are; null where it names none.
    pub parameters: Value,
    /// Whether what fails is refused.
    pub denies: bool,
    /// Whether the user is told of what fails.
    pub warns: bool,
    /// Whether what fails is noted.
    pub audits: bool,
}

/// Something that a policy does not agree with.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Objection {
    /// What, for people.
    pub message: String,
    /// Why, for programs.
    pub reason: Reason,
}

/// What a policy says.
#[derive(Debug, Default)]
pub struct Verdict {
    /// What it does not agree with.
    pub objections: Vec<Objection>,
    /// What it wants noted.
    pub annotations: Vec<(String, String)>,
}

fn compile(source: &str) -> Compiled {
    Expression::compile(source, &OF_POLICIES).map_err(|error| error.to_string())
}

impl Binding {
    /// Reads a ValidatingAdmissionPolicyBinding.
    pub fn read(object: &Value) -> Self {
        let spec = at(object, &["spec"]).unwrap_or(&Value::Null);
        let action = |word: &str| list(spec, &["validationActions"]).iter().any(|action| action == word);
        Self {
            name: text(object, &["metadata", "name"]).to_owned(),
            policy: text(spec, &["policyName"]).to_owned(),
            matching: Matching::read(at(spec, &["matchResources"]).unwrap_or(&Value::Null)),
            parameters: at(spec, &["paramRef"]).cloned().unwrap_or_default(),
            denies: action("Deny"),
            warns: action("Warn"),
            audits: action("Audit"),
        }
    }
}

impl Policy {
    /// Reads a ValidatingAdmissionPolicy.
    pub fn read(object: &Value) -> Self {
        let spec = at(object, &["spec"]).unwrap_or(&Value::Null);
        let kind = |field: &str| text(spec, &["paramKind", field]).to_owned();
        let named = |from: &str, name: &str, source: &str| -> Vec<(String, Compiled)> {
            let one = |entry: &Value| (text(entry, &[name]).to_owned(), compile(text(entry, &[source])));
            list(spec, &[from]).iter().map(one).collect()
        };
        Self {
            name: text(object, &["metadata", "name"]).to_owned(),
            matching: Matching::read(at(spec, &["matchConstraints"]).unwrap_or(&Value::Null)),
            parameters: at(spec, &["paramKind"]).map(|_| (kind("apiVersion"), kind("kind"))),
            conditions: Conditions::read(spec, &OF_POLICIES),
            variables: named("variables", "name", "expression"),
            validations: list(spec, &["validations"]).iter().map(Validation::read).collect(),
            annotations: named("auditAnnotations", "key", "valueExpression"),
            lenient: text(spec, &["failurePolicy"]) == "Ignore",
        }
    }

    /// Whether an expression names a variable.
    pub fn uses(&self, name: &str) -> bool {
        let of = |compiled: &Compiled| compiled.as_ref().is_ok_and(|expression| expression.uses(name));
        self.conditions.uses(name)
            || self.variables.iter().chain(&self.annotations).any(|(_, compiled)| of(compiled))
            || self.validations.iter().any(|v| {
                of(&v.expression) || v.message_expression.as_ref().is_some_and(|message| message.uses(name))
            })
    }

    /// What the policy says to a write, given its parameters and (where it looks at that) the namespace.
    pub fn judge(&self, asked: &Asked<'_>, parameters: &Value, namespace: &Value) -> Verdict {
        let mut over = terms::prepare(asked, |name| self.uses(name));
        over.set("params", value::of(parameters));
        over.set("namespaceObject", value::of(namespace));
        let mut judge = Judge { policy: self, over, budget: Budget::of(MAX_STEPS), known: BTreeMap::new() };
        let mut verdict = Verdict::default();
        match self.conditions.hold(&judge.over, &mut judge.budget) {
            Ok(true) => {}
            Ok(false) => return verdict,
            Err(why) => {
                verdict.objections.extend(self.failed(why));
                return verdict;
            }
        }
        for validation in &self.validations {
            verdict.objections.extend(judge.one(validation));
        }
        for (key, annotation) in &self.annotations {
            match judge.annotation(annotation) {
                Ok(Some(text)) => verdict.annotations.push((key.clone(), text)),
                Ok(None) => {}
                Err(why) => verdict.objections.extend(self.failed(why)),
            }
        }
        verdict
    }

    /// What becomes of something that cannot be told.
    pub fn failed(&self, message: String) -> Option<Objection> {
        (!self.lenient).then_some(Objection { message, reason: Reason::Invalid })
    }
}

impl Validation {
    fn read(entry: &Value) -> Self {
        let source = text(entry, &["expression"]);
        let by_expression = text(entry, &["messageExpression"]);
        Self {
            source: source.trim().to_owned(),
            expression: compile(source),
            message: text(entry, &["message"]).trim().to_owned(),
            message_expression: (!by_expression.is_empty()).then(|| compile(by_expression).ok()).flatten(),
            reason: match text(entry, &["reason"]) {
                "Forbidden" => Reason::Forbidden,
                "Unauthorized" => Reason::Unauthorized,
                "RequestEntityTooLarge" => Reason::RequestEntityTooLarge,
                _ => Reason::Invalid,
            },
        }
    }
}

struct Judge<'p> {
    policy: &'p Policy,
    over: Prepared,
    budget: Budget,
    /// Variables that were needed so far.
    known: BTreeMap<&'p str, Result<Boxed, String>>,
}

impl<'p> Judge<'p> {
    fn one(&mut self, validation: &'p Validation) -> Option<Objection> {
        let Validation { source, reason, .. } = validation;
        let failed = |why: String| format!("expression '{source}' resulted in error: {why}");
        let expression = match &validation.expression {
            Ok(expression) => expression,
            Err(error) => return self.policy.failed(failed(error.clone())),
        };
        let held = self
            .bind(expression)
            .and_then(|()| expression.holds(&self.over, &mut self.budget).map_err(|error| error.to_string()));
        match held {
            Ok(true) => None,
            Ok(false) => {
                let told = self.told(validation);
                let plain = match validation.message.as_str() {
                    "" => format!("failed expression: {source}"),
                    message => message.to_owned(),
                };
                Some(Objection { message: told.unwrap_or(plain), reason: *reason })
            }
            Err(why) => self.policy.failed(failed(why)),
        }
    }

    /// The message that an expression makes, where it makes a good one.
    fn told(&mut self, validation: &'p Validation) -> Option<String> {
        let expression = validation.message_expression.as_ref()?;
        self.bind(expression).ok()?;
        let message = expression.text(&self.over, &mut self.budget).ok()?;
        let good = !message.trim().is_empty() && message.len() <= MAX_MESSAGE && !message.contains('\n');
        good.then(|| message.trim().to_owned())
    }

    fn annotation(&mut self, annotation: &'p Compiled) -> Result<Option<String>, String> {
        let expression = annotation.as_ref().map_err(Clone::clone)?;
        self.bind(expression)?;
        let made = expression.evaluate(&self.over, &mut self.budget).map_err(|error| error.to_string())?;
        Ok(value::json(&made).and_then(|json| json.as_str().map(str::to_owned)))
    }

    /// Puts the variables that an expression names in place.
    fn bind(&mut self, expression: &'p Expression) -> Result<(), String> {
        if !expression.uses("variables") {
            return Ok(());
        }
        let named: Vec<&str> =
            expression.members("variables").into_iter().filter_map(|path| path.first().copied()).collect();
        for (name, compiled) in &self.policy.variables {
            if !named.contains(&name.as_str()) || self.known.contains_key(name.as_str()) {
                continue;
            }
            // One that names itself finds this.
            self.known.insert(name, Err("it is made of itself".to_owned()));
            let made = self.variable(compiled);
            self.known.insert(name, made);
        }
        let mut members = Vec::new();
        for name in named {
            match self.known.get(name) {
                Some(Ok(value)) => members.push((name.to_owned(), value.clone_as_boxed())),
                Some(Err(why)) => {
                    return Err(format!("composited variable \"{name}\" fails to evaluate: {why}"));
                }
                None => return Err(format!("undefined field '{name}'")),
            }
        }
        self.over.set("variables", value::map(members.into_iter()));
        Ok(())
    }

    fn variable(&mut self, compiled: &'p Compiled) -> Result<Boxed, String> {
        let expression = compiled.as_ref().map_err(Clone::clone)?;
        self.bind(expression)?;
        let made = expression.evaluate(&self.over, &mut self.budget).map_err(|error| error.to_string())?;
        Boxed::try_from(made).map_err(|_| "it has no value".to_owned())
    }
}
