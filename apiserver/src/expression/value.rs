//! JSON → values of expressions, and results → JSON. Knows nothing of where the JSON is from.

use std::collections::HashMap;

use ::cel::Value as Cel;
use ::cel::common::types::{
    CelBool, CelDouble, CelInt, CelList, CelMap, CelMapKey, CelNull, CelString, CelUInt,
};
use ::cel::common::value::Val;
use serde_json::{Map, Number, Value};

/// A value of an expression.
pub type Boxed = Box<dyn Val>;

/// The value of some JSON: numbers without a fraction are `int`, objects are maps with text keys.
pub fn of(value: &Value) -> Boxed {
    match value {
        Value::Null => Box::new(CelNull),
        Value::Bool(flag) => Box::new(CelBool::from(*flag)),
        Value::Number(number) => self::number(number),
        Value::String(text) => Box::new(CelString::from(text.clone())),
        Value::Array(items) => list(items.iter().map(of)),
        Value::Object(members) => map(members.iter().map(|(name, member)| (name.clone(), of(member)))),
    }
}

fn number(number: &Number) -> Boxed {
    match (number.as_i64(), number.as_u64(), number.as_f64()) {
        (Some(whole), _, _) => Box::new(CelInt::from(whole)),
        (None, Some(whole), _) => Box::new(CelUInt::from(whole)),
        (None, None, real) => Box::new(CelDouble::from(real.unwrap_or(f64::NAN))),
    }
}

/// A number as `double`, whatever it looks like.
pub fn double(number: &Number) -> Boxed {
    Box::new(CelDouble::from(number.as_f64().unwrap_or(f64::NAN)))
}

/// A list.
pub fn list(items: impl Iterator<Item = Boxed>) -> Boxed {
    Box::new(CelList::from(items.collect::<Vec<Boxed>>()))
}

/// A map with text keys.
pub fn map(members: impl Iterator<Item = (String, Boxed)>) -> Boxed {
    let members: HashMap<CelMapKey<'static>, Boxed> =
        members.map(|(name, member)| (CelMapKey::from(name), member)).collect();
    Box::new(CelMap::from(members))
}

/// A result as JSON; `None` for what has no JSON, such as types.
pub fn json(value: &Cel) -> Option<Value> {
    Some(match value {
        Cel::Null => Value::Null,
        Cel::Bool(flag) => Value::from(*flag),
        Cel::Int(whole) => Value::from(*whole),
        Cel::UInt(whole) => Value::from(*whole),
        Cel::Float(real) => Number::from_f64(*real).map_or(Value::Null, Value::Number),
        Cel::String(text) => Value::from(text.as_str()),
        Cel::Duration(duration) => Value::from(format!("{}s", duration.num_milliseconds() as f64 / 1000.0)),
        Cel::Timestamp(instant) => Value::from(instant.to_rfc3339()),
        Cel::List(items) => Value::Array(items.iter().map(json).collect::<Option<Vec<_>>>()?),
        Cel::Map(members) => {
            let mut out = Map::new();
            for (key, member) in members.map.iter() {
                let name = match key {
                    ::cel::objects::Key::String(text) => text.to_string(),
                    ::cel::objects::Key::Int(n) => n.to_string(),
                    ::cel::objects::Key::Uint(n) => n.to_string(),
                    ::cel::objects::Key::Bool(flag) => flag.to_string(),
                };
                out.insert(name, json(member)?);
            }
            Value::Object(out)
        }
        _ => return None,
    })
}
