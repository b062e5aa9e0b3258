//! Lists and sets.

use std::cmp::Ordering;
use std::sync::Arc;

use ::cel::common::types::{DYN_TYPE, LIST_TYPE};
use ::cel::{DeclarationError, Env, ExecutionError, Value as Cel};

use super::super::budget::spend;
use super::super::meter::SPENT;
use super::{Arguments, Outcome, fault, flag, give, global, member, number, plain};

/// Elements, shared.
type List = Arc<Vec<Cel>>;

pub(super) fn declare(env: &mut Env) -> Result<(), DeclarationError> {
    member(env, "isSorted", LIST_TYPE, vec![], |a| {
        let items = list(&a, 0)?;
        for pair in items.windows(2) {
            if order(&pair[0], &pair[1])? == Ordering::Greater {
                return flag(false);
            }
        }
        flag(true)
    })?;
    member(env, "sum", LIST_TYPE, vec![], sum)?;
    member(env, "min", LIST_TYPE, vec![], |a| extreme(&a, Ordering::Less))?;
    member(env, "max", LIST_TYPE, vec![], |a| extreme(&a, Ordering::Greater))?;
    member(env, "indexOf", LIST_TYPE, vec![DYN_TYPE], |a| {
        let wanted = plain(&a, 1)?;
        number(place(list(&a, 0)?.iter().position(|item| *item == wanted)))
    })?;
    member(env, "lastIndexOf", LIST_TYPE, vec![DYN_TYPE], |a| {
        let wanted = plain(&a, 1)?;
        number(place(list(&a, 0)?.iter().rposition(|item| *item == wanted)))
    })?;
    global(env, "sets.contains", vec![LIST_TYPE, LIST_TYPE], |a| {
        let (all, wanted) = pair(&a)?;
        flag(wanted.iter().all(|item| all.contains(item)))
    })?;
    global(env, "sets.equivalent", vec![LIST_TYPE, LIST_TYPE], |a| {
        let (left, right) = pair(&a)?;
        flag(left.iter().all(|item| right.contains(item)) && right.iter().all(|item| left.contains(item)))
    })?;
    global(env, "sets.intersects", vec![LIST_TYPE, LIST_TYPE], |a| {
        let (left, right) = pair(&a)?;
        flag(left.iter().any(|item| right.contains(item)))
    })
}

fn list(arguments: &Arguments<'_, '_>, at: usize) -> Result<Arc<Vec<Cel>>, ExecutionError> {
    match plain(arguments, at)? {
        Cel::List(items) if spend(1 + items.len() as u64) => Ok(items),
        Cel::List(_) => Err(fault("cost", SPENT)),
        other => Err(fault("argument", format!("is {}, not a list", other.type_of()))),
    }
}

/// Two lists, whose elements will all be compared.
fn pair(arguments: &Arguments<'_, '_>) -> Result<(List, List), ExecutionError> {
    let (left, right) = (list(arguments, 0)?, list(arguments, 1)?);
    if spend(1 + (left.len() as u64).saturating_mul(right.len() as u64)) {
        Ok((left, right))
    } else {
        Err(fault("cost", SPENT))
    }
}

fn place(found: Option<usize>) -> i64 {
    found.and_then(|at| i64::try_from(at).ok()).unwrap_or(-1)
}

fn order(left: &Cel, right: &Cel) -> Result<Ordering, ExecutionError> {
    left.partial_cmp(right).ok_or_else(|| fault("list", "its elements cannot be compared"))
}

fn extreme<'b, 'v>(arguments: &Arguments<'b, 'v>, wanted: Ordering) -> Outcome<'b, 'v> {
    let items = list(arguments, 0)?;
    let mut items = items.iter();
    let Some(mut found) = items.next() else { return Err(fault("min/max", "called on an empty list")) };
    for item in items {
        if order(item, found)? == wanted {
            found = item;
        }
    }
    give(found.clone())
}

fn sum<'b, 'v>(arguments: Arguments<'b, 'v>) -> Outcome<'b, 'v> {
    let items = list(&arguments, 0)?;
    let mut total = Cel::Int(0);
    for (index, item) in items.iter().enumerate() {
        let overflow = || fault("sum", "integer overflow");
        total = match (index, total, item) {
            (0, _, item @ (Cel::Int(_) | Cel::UInt(_) | Cel::Float(_) | Cel::Duration(_))) => item.clone(),
            (_, Cel::Int(a), Cel::Int(b)) => Cel::Int(a.checked_add(*b).ok_or_else(overflow)?),
            (_, Cel::UInt(a), Cel::UInt(b)) => Cel::UInt(a.checked_add(*b).ok_or_else(overflow)?),
            (_, Cel::Float(a), Cel::Float(b)) => Cel::Float(a + b),
            (_, Cel::Duration(a), Cel::Duration(b)) => Cel::Duration(a.checked_add(b).ok_or_else(overflow)?),
            _ => return Err(fault("sum", "its elements cannot be added")),
        };
    }
    give(total)
}
