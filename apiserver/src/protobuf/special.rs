//! Messages whose JSON form is not that of a struct: times, quantities, numbers or text, embedded JSON. Knows only the
//! wire format.

use jiff::Timestamp;
use serde_json::{Number, Value};

use super::error::ProtobufError;
use super::reader::{Reader, Wire};

/// A message of seconds and nanoseconds as RFC 3339 text; with `micros` six digits of fraction are printed, else none.
/// The empty message is the time that was never set: `null`.
pub fn time(mut reader: Reader<'_>, micros: bool) -> Result<Value, ProtobufError> {
    if reader.is_empty() {
        return Ok(Value::Null);
    }
    let start = reader;
    let (mut seconds, mut nanos) = (0, 0);
    while let Some((number, wire)) = reader.field()? {
        match (number, wire) {
            (1, Wire::Varint) => seconds = signed(reader.varint()?),
            (2, Wire::Varint) => nanos = signed(reader.varint()?),
            (_, wire) => reader.skip(wire)?,
        }
    }
    let nanos =
        if micros { i32::try_from(nanos).map_err(|_| start.error("nanoseconds out of range"))? } else { 0 };
    let time = Timestamp::new(seconds, nanos).map_err(|_| start.error("time out of range"))?;
    Ok(Value::from(if micros { format!("{time:.6}") } else { format!("{time:.0}") }))
}

/// A message around the text of a quantity.
pub fn quantity(reader: Reader<'_>) -> Result<Value, ProtobufError> {
    let text = bytes_of(reader)?.map_or(Ok(""), |bytes| bytes.text())?;
    Ok(Value::from(if text.is_empty() { "0" } else { text }))
}

/// A message of a type, a number and a text, one of which counts.
pub fn int_or_string(mut reader: Reader<'_>) -> Result<Value, ProtobufError> {
    let (mut is_text, mut number, mut text) = (false, 0, "");
    while let Some((field, wire)) = reader.field()? {
        match (field, wire) {
            (1, Wire::Varint) => is_text = reader.varint()? != 0,
            (2, Wire::Varint) => number = signed(reader.varint()?),
            (3, Wire::Delimited) => text = reader.delimited()?.text()?,
            (_, wire) => reader.skip(wire)?,
        }
    }
    Ok(if is_text { Value::from(text) } else { Value::from(number) })
}

/// A message around a list of texts.
pub fn texts(mut reader: Reader<'_>) -> Result<Value, ProtobufError> {
    let mut list = Vec::new();
    while let Some((field, wire)) = reader.field()? {
        match (field, wire) {
            (1, Wire::Delimited) => list.push(Value::from(reader.delimited()?.text()?)),
            (_, wire) => reader.skip(wire)?,
        }
    }
    Ok(Value::Array(list))
}

/// The first field of a message, which holds bytes.
pub fn bytes_of(mut reader: Reader<'_>) -> Result<Option<Reader<'_>>, ProtobufError> {
    let mut bytes = None;
    while let Some((field, wire)) = reader.field()? {
        match (field, wire) {
            (1, Wire::Delimited) => bytes = Some(reader.delimited()?),
            (_, wire) => reader.skip(wire)?,
        }
    }
    Ok(bytes)
}

/// A floating point number as JSON writes it: whole numbers without a fraction.
pub fn double(reader: &mut Reader<'_>) -> Result<Value, ProtobufError> {
    const EXACT: f64 = 9_007_199_254_740_992.0;
    let start = *reader;
    let number = f64::from_bits(reader.fixed64()?);
    if number.fract() == 0.0 && number.abs() <= EXACT {
        #[expect(clippy::cast_possible_truncation, reason = "whole and within the exact range")]
        return Ok(Value::from(number as i64));
    }
    Number::from_f64(number).map(Value::Number).ok_or_else(|| start.error("number has no JSON form"))
}

/// The two's complement reading of a whole number.
pub fn signed(value: u64) -> i64 {
    i64::from_le_bytes(value.to_le_bytes())
}
