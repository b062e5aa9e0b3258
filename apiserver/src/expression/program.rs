//! Expressions, compiled and run. This is what rules and policies use.

use std::collections::BTreeMap;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, LazyLock};

use ::cel::common::ast::{EntryExpr, Expr};
use ::cel::{Context, Env, ExecutionError, IdedExpr, Program, Value as Cel};
use serde_json::Value;

use super::budget::Budget;
use super::value::{self, Boxed};
use super::{library, meter};

/// Longest expression, in bytes.
pub const MAX_BYTES: usize = 10 * 1024;
/// Most brackets and operators of which each stands on the one before.
const MAX_CHAIN: usize = 300;
/// Bytes of stack for parsing.
const PARSE_STACK: usize = 32 * 1024 * 1024;

static ENVIRONMENT: LazyLock<Arc<Env>> = LazyLock::new(|| Arc::new(library::environment()));

/// Why an expression is none.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum CompileError {
    /// The text is empty.
    #[error("the expression is empty")]
    Empty,
    /// The text is too long.
    #[error("the expression is longer than {MAX_BYTES} bytes")]
    TooLong,
    /// The expression nests too deep.
    #[error("the expression nests deeper than {} levels", meter::MAX_DEPTH)]
    TooDeep,
    /// The text is no CEL.
    #[error("compilation failed: {0}")]
    Syntax(String),
    /// A variable is named that is not there.
    #[error(
        "compilation failed: ERROR: <input>:{line}:{column}: undeclared reference to '{name}' (in container '')"
    )]
    Undeclared {
        /// The variable or function.
        name: String,
        /// Line, from 1.
        line: usize,
        /// Column, from 1.
        column: usize,
    },
}

/// Why an expression gave nothing.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum EvaluationError {
    /// It used more steps than it may.
    #[error("{}", meter::SPENT)]
    Spent,
    /// It failed, such as by naming what is not there.
    #[error("{0}")]
    Failed(String),
}

/// The values that an expression may name.
#[derive(Default)]
pub struct Scope {
    values: BTreeMap<String, Boxed>,
}

impl Scope {
    /// A scope with nothing in it.
    pub fn new() -> Self {
        Self::default()
    }

    /// The same scope with one more variable, of JSON.
    #[must_use]
    pub fn with(self, name: &str, value: &Value) -> Self {
        self.with_value(name, value::of(value))
    }

    /// The same scope with one more variable.
    #[must_use]
    pub fn with_value(mut self, name: &str, value: Boxed) -> Self {
        self.values.insert(name.to_owned(), value);
        self
    }

    /// Sets a variable.
    pub fn set(&mut self, name: &str, value: Boxed) {
        self.values.insert(name.to_owned(), value);
    }

    fn context(&self) -> Context<'static, 'static> {
        let mut context = Context::with_env(Arc::clone(&ENVIRONMENT));
        for (name, value) in &self.values {
            context.add_variable_as_val(name.as_str(), value.clone_as_boxed());
        }
        context
    }
}

/// A scope with its values in place, for several expressions over the same values.
pub struct Prepared(Context<'static, 'static>);

impl Prepared {
    /// Puts the values of a scope in place.
    pub fn new(scope: &Scope) -> Self {
        Self(scope.context())
    }

    /// Adds or replaces a variable.
    pub fn set(&mut self, name: &str, value: Boxed) {
        self.0.add_variable_as_val(name, value);
    }
}

/// A compiled expression.
#[derive(Debug)]
pub struct Expression {
    root: IdedExpr,
    uses: Vec<String>,
}

impl Expression {
    /// Compiles an expression that may name these variables.
    ///
    /// # Errors
    /// What is wrong, with line and column where that is known.
    pub fn compile(source: &str, variables: &[&str]) -> Result<Self, CompileError> {
        if source.trim().is_empty() {
            return Err(CompileError::Empty);
        }
        if source.len() > MAX_BYTES {
            return Err(CompileError::TooLong);
        }
        if deepest(source) > MAX_CHAIN {
            return Err(CompileError::TooDeep);
        }
        let program = parse(source)?;
        let references = program.references();
        let mut uses: Vec<String> = references.variables().into_iter().map(str::to_owned).collect();
        uses.sort();
        let bound = bound(program.expression());
        let known = |name: &str| {
            let name = name.trim_start_matches('.');
            variables.contains(&name) || bound.iter().any(|own| own == name) || library::is_type(name)
        };
        let undeclared = |name: &str| {
            let at = source.find(name).unwrap_or(0);
            let line = source[..at].matches('\n').count() + 1;
            let column = at - source[..at].rfind('\n').map_or(0, |newline| newline + 1) + 1;
            CompileError::Undeclared { name: name.to_owned(), line, column }
        };
        if let Some(name) = uses.iter().find(|name| !known(name)) {
            return Err(undeclared(name));
        }
        let mut functions = references.functions();
        functions.sort_unstable();
        if let Some(name) = functions.into_iter().find(|name| !library::is_function(name)) {
            return Err(undeclared(name));
        }
        let mut root = program.expression().clone();
        meter::install(&mut root).ok_or(CompileError::TooDeep)?;
        Ok(Self { root, uses })
    }

    /// Whether the expression names a variable.
    pub fn uses(&self, variable: &str) -> bool {
        self.uses.iter().any(|name| name.trim_start_matches('.') == variable)
    }

    /// The members that the expression names of a variable: for `self.a.b == self.c` those are `a.b` and `c`.
    pub fn members(&self, variable: &str) -> Vec<Vec<&str>> {
        let mut found = Vec::new();
        members(&self.root, variable, &mut found);
        found
    }

    /// The expression's value over these variables.
    ///
    /// # Errors
    /// That it failed, or that the budget is spent.
    pub fn evaluate(&self, scope: &Prepared, budget: &mut Budget) -> Result<Cel, EvaluationError> {
        // The library asserts what its parser guarantees; should it be wrong, one rule fails and nothing else.
        let run = || catch_unwind(AssertUnwindSafe(|| Cel::resolve(&self.root, &scope.0)));
        let (result, spent) = budget.run(run);
        let result = match result {
            Ok(result) => result,
            Err(_) => return Err(EvaluationError::Failed("the expression cannot be evaluated".to_owned())),
        };
        match result {
            Ok(value) => Ok(value),
            Err(_) if spent => Err(EvaluationError::Spent),
            Err(error) => Err(EvaluationError::Failed(words(&error))),
        }
    }

    /// Whether the expression holds.
    ///
    /// # Errors
    /// As [`Self::evaluate`], and where its value is neither true nor false.
    pub fn holds(&self, scope: &Prepared, budget: &mut Budget) -> Result<bool, EvaluationError> {
        match self.evaluate(scope, budget)? {
            Cel::Bool(holds) => Ok(holds),
            other => Err(EvaluationError::Failed(format!(
                "the expression must be a bool, and is {}",
                other.type_of()
            ))),
        }
    }

    /// The expression's value as text.
    ///
    /// # Errors
    /// As [`Self::evaluate`], and where its value is no text.
    pub fn text(&self, scope: &Prepared, budget: &mut Budget) -> Result<String, EvaluationError> {
        match self.evaluate(scope, budget)? {
            Cel::String(text) => Ok(text.to_string()),
            other => Err(EvaluationError::Failed(format!(
                "the expression must be a string, and is {}",
                other.type_of()
            ))),
        }
    }
}

/// Parses on a stack that is large enough for what [`MAX_CHAIN`] lets through.
fn parse(source: &str) -> Result<Program, CompileError> {
    let parse = || ENVIRONMENT.compile(source).map_err(|errors| CompileError::Syntax(errors.to_string()));
    std::thread::scope(|scope| {
        let thread = std::thread::Builder::new().stack_size(PARSE_STACK).spawn_scoped(scope, parse);
        let unable = || CompileError::Syntax("the expression cannot be parsed now; try again".to_owned());
        thread.map_err(|_| unable())?.join().map_err(|_| unable())?
    })
}

fn words(error: &ExecutionError) -> String {
    match error {
        ExecutionError::NoSuchKey(name) => format!("no such key: {name}"),
        other => other.to_string(),
    }
}

/// How deep a parser may have to go into a text: brackets, and operators one after the other, of which each stands on
/// the one before. Text in quotes does not count.
fn deepest(source: &str) -> usize {
    let (mut open, mut here, mut most) = (Vec::new(), 0usize, 0usize);
    let mut quote = None;
    let mut bytes = source.bytes();
    while let Some(byte) = bytes.next() {
        match (quote, byte) {
            (Some(_), b'\\') => drop(bytes.next()),
            (Some(end), byte) => {
                if byte == end {
                    quote = None;
                }
            }
            (None, b'"' | b'\'') => quote = Some(byte),
            (None, b'(' | b'[' | b'{') => {
                open.push(here);
                here += 1;
            }
            (None, b')' | b']' | b'}') => here = open.pop().unwrap_or(0) + 1,
            (None, b',') => here = open.last().map_or(0, |outer| outer + 1),
            (
                None,
                b'+' | b'-' | b'*' | b'/' | b'%' | b'.' | b'?' | b'!' | b'&' | b'|' | b'<' | b'>' | b'=',
            ) => {
                here += 1;
            }
            (None, _) => {}
        }
        most = most.max(here);
    }
    most
}

fn members<'e>(node: &'e IdedExpr, variable: &str, found: &mut Vec<Vec<&'e str>>) {
    let (mut chain, mut here) = (Vec::new(), node);
    while let Expr::Select(select) = &here.expr {
        chain.push(select.field.as_str());
        here = &select.operand;
    }
    if matches!(&here.expr, Expr::Ident(name) if name == variable) {
        chain.reverse();
        found.push(chain);
    } else {
        below(here, &mut |node| members(node, variable, found));
    }
}

/// Visits what is right below a part of an expression.
fn below<'e>(node: &'e IdedExpr, visit: &mut dyn FnMut(&'e IdedExpr)) {
    let entry = |entry: &'e EntryExpr, visit: &mut dyn FnMut(&'e IdedExpr)| match entry {
        EntryExpr::StructField(field) => visit(&field.value),
        EntryExpr::MapEntry(entry) => {
            visit(&entry.key);
            visit(&entry.value);
        }
    };
    match &node.expr {
        Expr::Call(call) => call.target.iter().map(AsRef::as_ref).chain(&call.args).for_each(visit),
        Expr::Comprehension(inner) => {
            [&inner.iter_range, &inner.accu_init, &inner.loop_cond, &inner.loop_step, &inner.result]
                .into_iter()
                .for_each(visit);
        }
        Expr::List(list) => list.elements.iter().for_each(visit),
        Expr::Map(map) => map.entries.iter().for_each(|e| entry(&e.expr, visit)),
        Expr::Struct(object) => object.entries.iter().for_each(|e| entry(&e.expr, visit)),
        Expr::Select(select) => visit(&select.operand),
        Expr::Ident(_) | Expr::Literal(_) | Expr::Unspecified => {}
    }
}

/// Variables that loops in an expression bind.
fn bound(node: &IdedExpr) -> Vec<String> {
    let mut found = Vec::new();
    collect(node, &mut found);
    found
}

fn collect(node: &IdedExpr, found: &mut Vec<String>) {
    if let Expr::Comprehension(inner) = &node.expr {
        found.extend([inner.iter_var.clone(), inner.accu_var.clone()]);
        found.extend(inner.iter_var2.clone());
    }
    below(node, &mut |node| collect(node, found));
}
