//! Quantities, such as `500m` and `1Gi`, and versions.

use ::cel::common::types::{INT_TYPE, STRING_TYPE, Type};
use ::cel::objects::Opaque;
use ::cel::{DeclarationError, Env, ExecutionError};
use strata_model::quantity::Quantity;

use super::{Arguments, fault, flag, give, global, member, number, opaque, own, text, whole};
use crate::decode::scalar;

const QUANTITY: &str = "kubernetes.Quantity";

/// A quantity in expressions.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Amount(Quantity);

impl Opaque for Amount {
    fn runtime_type_name(&self) -> &str {
        QUANTITY
    }
}

pub(super) fn declare(env: &mut Env) -> Result<(), DeclarationError> {
    let quantity = || Type::new_opaque_type(QUANTITY);
    global(env, "isQuantity", vec![STRING_TYPE], |a| flag(scalar::is_quantity(text(&a, 0)?)))?;
    global(env, "quantity", vec![STRING_TYPE], |a| opaque(parse(text(&a, 0)?)?))?;
    member(env, "isInteger", quantity(), vec![], |a| flag(amount(&a, 0)?.milli() % 1000 == 0))?;
    member(env, "asInteger", quantity(), vec![], |a| {
        let quantity = amount(&a, 0)?;
        match i64::try_from(quantity.units()) {
            Ok(whole) if quantity.milli() % 1000 == 0 => number(whole),
            _ => Err(fault("asInteger", "cannot convert value to integer")),
        }
    })?;
    member(env, "asApproximateFloat", quantity(), vec![], |a| {
        give(::cel::Value::Float(amount(&a, 0)?.milli() as f64 / 1000.0))
    })?;
    member(env, "sign", quantity(), vec![], |a| number(amount(&a, 0)?.milli().signum() as i64))?;
    member(env, "isLessThan", quantity(), vec![quantity()], |a| flag(amount(&a, 0)? < amount(&a, 1)?))?;
    member(env, "isGreaterThan", quantity(), vec![quantity()], |a| flag(amount(&a, 0)? > amount(&a, 1)?))?;
    member(env, "compareTo", quantity(), vec![quantity()], |a| {
        number(amount(&a, 0)?.cmp(&amount(&a, 1)?) as i64)
    })?;
    member(env, "add", quantity(), vec![quantity()], |a| {
        opaque(Amount(amount(&a, 0)?.plus(amount(&a, 1)?)))
    })?;
    member(env, "sub", quantity(), vec![quantity()], |a| {
        opaque(Amount(amount(&a, 0)?.minus(amount(&a, 1)?)))
    })?;
    member(env, "add", quantity(), vec![INT_TYPE], |a| {
        opaque(Amount(amount(&a, 0)?.plus(Quantity::from_units(whole(&a, 1)?))))
    })?;
    member(env, "sub", quantity(), vec![INT_TYPE], |a| {
        opaque(Amount(amount(&a, 0)?.minus(Quantity::from_units(whole(&a, 1)?))))
    })
}

fn parse(text: &str) -> Result<Amount, ExecutionError> {
    text.parse::<Quantity>().map(Amount).map_err(|error| fault("quantity", error))
}

fn amount(arguments: &Arguments<'_, '_>, at: usize) -> Result<Quantity, ExecutionError> {
    own::<Amount>(arguments, at).map(|amount| amount.0)
}
