//! Checks that many types share: words of a closed list, bounds, names, ports, amounts. Knows no types.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::LabelSelector;
use serde_json::Value;
use strata_model::field::{FieldError, FieldPath};
use strata_model::names::NameRule;
use strata_model::quantity::Quantity;
use strata_model::selector::Selector;

use super::rules::Faults;
use crate::value::{at, int, text};

/// The words for a number below zero.
pub const NOT_NEGATIVE: &str = "must be greater than or equal to 0";
/// The words for what may not change.
pub const IMMUTABLE: &str = "field is immutable";

/// Checks that a word, where there is one, is among those known.
pub fn one_of(map: &Value, field: &str, known: &[&str], path: &FieldPath, faults: &mut Faults) {
    let value = text(map, &[field]);
    if !value.is_empty() && !known.contains(&value) {
        faults.push(FieldError::not_supported(path.child(field), value, known));
    }
}

/// Checks that a word is there and among those known.
pub fn known(map: &Value, field: &str, known: &[&str], path: &FieldPath, faults: &mut Faults) {
    if text(map, &[field]).is_empty() {
        faults.push(FieldError::required(path.child(field), ""));
    } else {
        one_of(map, field, known, path, faults);
    }
}

/// Checks that a text is there; gives it.
pub fn required<'a>(map: &'a Value, field: &str, path: &FieldPath, faults: &mut Faults) -> &'a str {
    let found = text(map, &[field]);
    if found.is_empty() {
        faults.push(FieldError::required(path.child(field), ""));
    }
    found
}

/// Checks that a text is there and is a name by this rule.
pub fn name(map: &Value, field: &str, rule: NameRule, path: &FieldPath, faults: &mut Faults) {
    if !required(map, field, path, faults).is_empty() {
        optional_name(map, field, rule, path, faults);
    }
}

/// Checks that a text, where there is one, is a name by this rule.
pub fn optional_name(map: &Value, field: &str, rule: NameRule, path: &FieldPath, faults: &mut Faults) {
    let found = text(map, &[field]);
    if !found.is_empty()
        && let Some(fault) = rule(found)
    {
        faults.push(FieldError::invalid(path.child(field), found, fault));
    }
}

/// Checks that a number, where there is one, is not below another.
pub fn at_least(map: &Value, field: &str, least: i64, path: &FieldPath, faults: &mut Faults) {
    if let Some(value) = int(map, &[field]).filter(|value| *value < least) {
        let detail = format!("must be greater than or equal to {least}");
        faults.push(FieldError::invalid(path.child(field), value, detail));
    }
}

/// Checks that numbers, where they are there, are not negative.
pub fn not_negative(map: &Value, fields: &[&str], path: &FieldPath, faults: &mut Faults) {
    for field in fields {
        at_least(map, field, 0, path, faults);
    }
}

/// Checks the number of a port.
pub fn port(number: i64, path: FieldPath, faults: &mut Faults) {
    if !(1..=65535).contains(&number) {
        faults.push(FieldError::invalid(path, number, "must be between 1 and 65535, inclusive"));
    }
}

/// What is wrong with a port's name, if anything.
pub fn port_name(name: &str) -> Option<&'static str> {
    const LONGEST: usize = 15;
    let known = |b: u8| b.is_ascii_lowercase() || b.is_ascii_digit() || b == b'-';
    if name.len() > LONGEST {
        Some("must be no more than 15 characters")
    } else if !name.bytes().all(known) {
        Some("must contain only alpha-numeric characters (a-z, 0-9), and hyphens (-)")
    } else if !name.bytes().any(|b| b.is_ascii_lowercase()) {
        Some("must contain at least one letter (a-z)")
    } else if name.contains("--") {
        Some("must not contain consecutive hyphens")
    } else if name.starts_with('-') || name.ends_with('-') {
        Some("must not begin or end with a hyphen")
    } else {
        None
    }
}

/// Checks a port that is a number or the name of one.
pub fn port_or_name(value: &Value, path: FieldPath, faults: &mut Faults) {
    match value {
        Value::Number(number) => port(number.as_i64().unwrap_or(0), path, faults),
        other => {
            let name = other.as_str().unwrap_or_default();
            if let Some(fault) = port_name(name) {
                faults.push(FieldError::invalid(path, name, fault));
            }
        }
    }
}

/// A number, or the number of a percentage.
pub fn amount(value: &Value) -> Option<i64> {
    match value {
        Value::Number(number) => number.as_i64(),
        Value::String(text) => text.strip_suffix('%').and_then(|digits| digits.parse().ok()),
        _ => None,
    }
}

/// Checks a count that may be a percentage; gives its number.
pub fn count_or_percent(value: &Value, path: FieldPath, faults: &mut Faults) -> Option<i64> {
    match amount(value) {
        None => {
            let detail = "a valid percent string must be a numeric string followed by an ending '%' (e.g. '1%',  \
                or '93%', regex used for validation is '[0-9]+%')";
            faults.push(FieldError::invalid(path, value, detail));
            None
        }
        Some(number) if number < 0 => {
            faults.push(FieldError::invalid(path, value, NOT_NEGATIVE));
            None
        }
        Some(number) if value.is_string() && number > 100 => {
            faults.push(FieldError::invalid(path, value, "must not be greater than 100%"));
            None
        }
        found => found,
    }
}

/// The quantity at a path.
pub fn quantity(value: &Value, path: &[&str]) -> Option<Quantity> {
    at(value, path).and_then(Value::as_str).and_then(|text| text.parse().ok())
}

/// Checks a label selector, where there is one; gives it.
pub fn selector(body: Option<&Value>, path: &FieldPath, faults: &mut Faults) -> Option<Selector> {
    let body = body?;
    let parsed: LabelSelector = serde_json::from_value(body.clone()).unwrap_or_default();
    match Selector::from_body(&parsed) {
        Ok(selector) => Some(selector),
        Err(error) => {
            faults.push(FieldError::invalid(path.clone(), body, error.to_string()));
            None
        }
    }
}

/// Checks that nothing changed at these places, each told as a path of names.
pub fn unchanged(new: &Value, old: &Value, places: &[&[&str]], faults: &mut Faults) {
    for place in places {
        super::meta::immutable(new, old, place, faults);
    }
}

/// Whether text is an address, of either family.
pub fn is_address(text: &str) -> bool {
    text.parse::<std::net::IpAddr>().is_ok()
}

/// The words for what is no address.
pub const NO_ADDRESS: &str = "must be a valid IP address, (e.g. 10.9.8.7 or 2001:db8::ffff)";

/// Whether text is a range of addresses: an address, `/`, and the length of the prefix.
pub fn is_cidr(text: &str) -> bool {
    let Some((address, length)) = text.split_once('/') else { return false };
    let most = match address.parse::<std::net::IpAddr>() {
        Ok(std::net::IpAddr::V4(_)) => 32,
        Ok(std::net::IpAddr::V6(_)) => 128,
        Err(_) => return false,
    };
    length.parse::<u8>().is_ok_and(|length| length <= most)
}

/// The words for what is no range of addresses.
pub const NO_CIDR: &str = "must be a valid CIDR value, (e.g. 10.9.8.0/24 or 2001:db8::/64)";

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn ports_ranges_and_amounts_are_told_apart() {
        for (name, fine) in [("http", true), ("80", false), ("a--b", false), ("Http", false), ("-a", false)] {
            assert_eq!(port_name(name).is_none(), fine, "{name}");
        }
        for (range, fine) in [("10.0.0.0/8", true), ("10.0.0.0/33", false), ("::/0", true), ("x/8", false)] {
            assert_eq!(is_cidr(range), fine, "{range}");
        }
        let mut faults = Vec::new();
        assert_eq!(count_or_percent(&json!("25%"), FieldPath::new("a"), &mut faults), Some(25));
        for wrong in [json!("x"), json!(-1), json!("120%")] {
            assert_eq!(count_or_percent(&wrong, FieldPath::new("a"), &mut faults), None);
        }
        assert_eq!(faults.len(), 3);
    }
}
