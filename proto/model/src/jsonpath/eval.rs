//! From steps and a value to values and text.

use std::cmp::Ordering;

use serde_json::Value;

use super::{Comparison, Filter, JsonPathError, Operand, Piece, Step, text_of};

/// Appends the text of the pieces for `here` within `root`.
pub(super) fn render(
    pieces: &[Piece],
    root: &Value,
    here: &Value,
    out: &mut String,
) -> Result<(), JsonPathError> {
    for piece in pieces {
        match piece {
            Piece::Text(text) => out.push_str(text),
            Piece::Path(steps) => {
                let texts: Vec<String> = walk(steps, root, here)?.into_iter().map(text_of).collect();
                out.push_str(&texts.join(" "));
            }
            Piece::Range(steps, inner) => {
                for element in walk(steps, root, here)? {
                    render(inner, root, element, out)?;
                }
            }
        }
    }
    Ok(())
}

/// The values that the steps lead to from `here`.
pub(super) fn walk<'a>(
    steps: &[Step],
    root: &'a Value,
    here: &'a Value,
) -> Result<Vec<&'a Value>, JsonPathError> {
    let mut values = vec![here];
    for step in steps {
        let mut next = Vec::new();
        for value in values {
            take(step, root, value, &mut next)?;
        }
        values = next;
    }
    Ok(values)
}

fn take<'a>(
    step: &Step,
    root: &'a Value,
    value: &'a Value,
    out: &mut Vec<&'a Value>,
) -> Result<(), JsonPathError> {
    match step {
        Step::Root => out.push(root),
        Step::Field(name) => out.extend(value.get(name)),
        Step::Every => match value {
            Value::Array(items) => out.extend(items),
            Value::Object(members) => out.extend(members.values()),
            _ => {}
        },
        Step::Deep => deep(value, out),
        Step::Index(index) => {
            if let Value::Array(items) = value {
                let length = items.len();
                let at = if *index < 0 { index + length as i64 } else { *index };
                match usize::try_from(at).ok().and_then(|at| items.get(at)) {
                    Some(item) => out.push(item),
                    None => return Err(JsonPathError::OutOfBounds { index: *index, length }),
                }
            }
        }
        Step::Slice(from, to, by) => {
            if let Value::Array(items) = value {
                let length = items.len() as i64;
                let place = |at: i64| (if at < 0 { at + length } else { at }).clamp(0, length) as usize;
                let (from, to) = (place(from.unwrap_or(0)), place(to.unwrap_or(length)));
                let step = usize::try_from(*by).unwrap_or(1).max(1);
                out.extend(items.get(from..to).unwrap_or_default().iter().step_by(step));
            }
        }
        Step::Union(parts) => {
            for part in parts {
                take(part, root, value, out)?;
            }
        }
        Step::Filter(filter) => {
            let elements: Vec<&Value> = match value {
                Value::Array(items) => items.iter().collect(),
                Value::Object(members) => members.values().collect(),
                _ => Vec::new(),
            };
            for element in elements {
                if holds(filter, root, element)? {
                    out.push(element);
                }
            }
        }
    }
    Ok(())
}

fn deep<'a>(value: &'a Value, out: &mut Vec<&'a Value>) {
    out.push(value);
    match value {
        Value::Array(items) => items.iter().for_each(|item| deep(item, out)),
        Value::Object(members) => members.values().for_each(|member| deep(member, out)),
        _ => {}
    }
}

fn holds(filter: &Filter, root: &Value, element: &Value) -> Result<bool, JsonPathError> {
    let left = side(&filter.left, root, element)?;
    let Some((comparison, right)) = &filter.test else { return Ok(left.is_some()) };
    let (Some(left), Some(right)) = (left, side(right, root, element)?) else { return Ok(false) };
    let order = compare(left, right);
    Ok(match comparison {
        Comparison::Equal => order == Some(Ordering::Equal),
        Comparison::NotEqual => order != Some(Ordering::Equal),
        Comparison::Less => order == Some(Ordering::Less),
        Comparison::LessOrEqual => matches!(order, Some(Ordering::Less | Ordering::Equal)),
        Comparison::Greater => order == Some(Ordering::Greater),
        Comparison::GreaterOrEqual => matches!(order, Some(Ordering::Greater | Ordering::Equal)),
    })
}

fn side<'a>(
    operand: &'a Operand,
    root: &'a Value,
    element: &'a Value,
) -> Result<Option<&'a Value>, JsonPathError> {
    match operand {
        Operand::Literal(value) => Ok(Some(value)),
        Operand::Path(steps) => Ok(walk(steps, root, element)?.first().copied()),
    }
}

/// The order of two values of one sort; `None` where they cannot be compared.
pub fn compare(left: &Value, right: &Value) -> Option<Ordering> {
    match (left, right) {
        (Value::Number(a), Value::Number(b)) => a.as_f64()?.partial_cmp(&b.as_f64()?),
        (Value::String(a), Value::String(b)) => Some(a.cmp(b)),
        (Value::Bool(a), Value::Bool(b)) => Some(a.cmp(b)),
        (a, b) if a == b => Some(Ordering::Equal),
        _ => None,
    }
}
