//! Meters in expressions: each turn of a loop and each result of a call is counted against the budget. A rewriting of
//! the parsed expression; what it means stays the same.

use ::cel::IdedExpr;
use ::cel::common::ast::{CallExpr, EntryExpr, Expr};
use ::cel::common::types::{CelList, CelString, DYN_TYPE};
use ::cel::common::value::CowVal;
use ::cel::{DeclarationError, Env, ExecutionError};

use super::budget::spend;

/// The function that counts. No expression can name it.
const METER: &str = "@meter";
/// What text replacement is called once its result is bounded. No expression can name it.
pub const REPLACE: &str = "@replace";
/// Bytes or elements that count as a step.
const STEP_BYTES: usize = 100;
/// What is told when the budget is spent.
pub const SPENT: &str = "operation cancelled: actual cost limit exceeded";

/// Deepest nesting of an expression.
pub const MAX_DEPTH: usize = 64;

/// Operators that make nothing of a size.
const PLAIN: &[&str] = &[
    "_&&_",
    "_||_",
    "!_",
    "_?_:_",
    "_==_",
    "_!=_",
    "_<_",
    "_<=_",
    "_>_",
    "_>=_",
    "_-_",
    "_*_",
    "_/_",
    "_%_",
    "-_",
    "_[_]",
    "_[?_]",
    "_?._",
    "@in",
    "@not_strictly_false",
];

/// Declares the meter.
pub fn declare(env: &mut Env) -> Result<(), DeclarationError> {
    env.add_overload(METER, "meter", vec![DYN_TYPE], count)
}

fn count<'b, 'v>(arguments: Vec<CowVal<'b, 'v>>) -> Result<CowVal<'b, 'v>, ExecutionError> {
    let Some(value) = arguments.into_iter().next() else {
        return Err(ExecutionError::invalid_argument_count(1, 0));
    };
    let size = if let Some(text) = value.downcast_ref::<CelString<'_>>() {
        text.inner().len()
    } else if let Some(list) = value.downcast_ref::<CelList<'_>>() {
        list.inner().len() * 10
    } else {
        0
    };
    if spend(1 + (size / STEP_BYTES) as u64) {
        Ok(value)
    } else {
        Err(ExecutionError::function_error("cost", SPENT))
    }
}

/// Puts meters into an expression. `None` if it nests too deep.
pub fn install(expression: &mut IdedExpr) -> Option<()> {
    visit(expression, 0)
}

fn visit(node: &mut IdedExpr, depth: usize) -> Option<()> {
    if depth > MAX_DEPTH {
        return None;
    }
    let below = depth + 1;
    match &mut node.expr {
        Expr::Call(call) => {
            if let Some(target) = &mut call.target {
                visit(target, below)?;
            }
            call.args.iter_mut().try_for_each(|argument| visit(argument, below))?;
            if call.func_name == "replace" {
                REPLACE.clone_into(&mut call.func_name);
            }
            if !PLAIN.contains(&call.func_name.as_str()) {
                wrap(node);
            }
        }
        Expr::Comprehension(loop_) => {
            visit(&mut loop_.iter_range, below)?;
            visit(&mut loop_.accu_init, below)?;
            if !matches!(loop_.loop_cond.expr, Expr::Literal(_)) {
                visit(&mut loop_.loop_cond, below)?;
                wrap(&mut loop_.loop_cond);
            }
            let accumulator = loop_.accu_var.clone();
            step(&mut loop_.loop_step, &accumulator, below)?;
            visit(&mut loop_.result, below)?;
        }
        Expr::List(list) => list.elements.iter_mut().try_for_each(|element| visit(element, below))?,
        Expr::Map(map) => map.entries.iter_mut().try_for_each(|entry| entry_of(&mut entry.expr, below))?,
        Expr::Struct(object) => {
            object.entries.iter_mut().try_for_each(|entry| entry_of(&mut entry.expr, below))?;
        }
        Expr::Select(select) => visit(&mut select.operand, below)?,
        Expr::Ident(_) | Expr::Literal(_) | Expr::Unspecified => {}
    }
    Some(())
}

fn entry_of(entry: &mut EntryExpr, depth: usize) -> Option<()> {
    match entry {
        EntryExpr::StructField(field) => visit(&mut field.value, depth),
        EntryExpr::MapEntry(entry) => {
            visit(&mut entry.key, depth)?;
            visit(&mut entry.value, depth)
        }
    }
}

/// One turn of a loop. Lists that grow by one keep their form, in which they are built in place.
fn step(node: &mut IdedExpr, accumulator: &str, depth: usize) -> Option<()> {
    let is_accumulator = |node: &IdedExpr| matches!(&node.expr, Expr::Ident(name) if name == accumulator);
    if let Expr::Call(call) = &mut node.expr {
        match (call.func_name.as_str(), call.args.as_mut_slice()) {
            ("_?_:_", [condition, then, otherwise]) => {
                visit(condition, depth + 1)?;
                wrap(condition);
                step(then, accumulator, depth + 1)?;
                return step(otherwise, accumulator, depth + 1);
            }
            ("_+_", [left, IdedExpr { expr: Expr::List(list), .. }]) if is_accumulator(left) => {
                return list.elements.iter_mut().try_for_each(|element| {
                    visit(element, depth + 1)?;
                    wrap(element);
                    Some(())
                });
            }
            _ => {}
        }
    }
    visit(node, depth)
}

fn wrap(node: &mut IdedExpr) {
    let inner = std::mem::take(node);
    let id = inner.id;
    let call = CallExpr { func_name: METER.to_owned(), target: None, args: vec![inner] };
    *node = IdedExpr { id, expr: Expr::Call(call) };
}
