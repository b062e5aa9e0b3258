//! The formats that schemas may name. Pure; a format that is not known holds of everything.

use std::net::{Ipv4Addr, Ipv6Addr};
use std::str::FromStr;
use std::sync::OnceLock;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use jiff::civil::Date;
use regex::Regex;
use serde_json::Value;

use crate::decode::scalar;

/// Whether a value has a format.
pub fn fits(format: &str, value: &Value) -> bool {
    match (format, value) {
        ("", _) => true,
        ("int32", Value::Number(_)) => {
            value.as_i64().is_some_and(|n| i32::try_from(n).is_ok()) || !is_whole(value)
        }
        ("int64", Value::Number(_)) => value.as_i64().is_some() || !is_whole(value),
        ("float" | "double", Value::Number(_)) => true,
        (format, Value::String(text)) => text_fits(format, text),
        _ => true,
    }
}

fn is_whole(value: &Value) -> bool {
    value.as_f64().is_some_and(|n| n.fract() == 0.0)
}

fn text_fits(format: &str, text: &str) -> bool {
    match format {
        "byte" => STANDARD.decode(text.trim()).is_ok(),
        "date" => text.len() == 10 && text.parse::<Date>().is_ok(),
        "date-time" | "datetime" => scalar::time(text).is_some(),
        "duration" => is_duration(text),
        "ipv4" => Ipv4Addr::from_str(text).is_ok(),
        "ipv6" => Ipv6Addr::from_str(text).is_ok(),
        "ip" => text.parse::<std::net::IpAddr>().is_ok(),
        "cidr" => is_cidr(text),
        "mac" => matches(&MAC, r"^([0-9A-Fa-f]{2}[:-]){5}[0-9A-Fa-f]{2}$", text),
        "uuid" | "uuid3" | "uuid4" | "uuid5" => uuid::Uuid::parse_str(text).is_ok_and(|uuid| {
            let wanted = format.strip_prefix("uuid").and_then(|n| n.parse::<usize>().ok());
            wanted.is_none_or(|wanted| uuid.get_version_num() == wanted)
        }),
        "email" => matches(&EMAIL, r"^[^@\s]+@[^@\s]+$", text),
        "hostname" => {
            text.len() <= 255
                && matches(
                    &HOST,
                    r"^([a-zA-Z0-9]([a-zA-Z0-9-]{0,61}[a-zA-Z0-9])?\.)*[a-zA-Z0-9]([a-zA-Z0-9-]{0,61}[a-zA-Z0-9])?\.?$",
                    text,
                )
        }
        "uri" => {
            text.parse::<http::Uri>().is_ok_and(|uri| uri.scheme().is_some())
                || matches(&URI, r"^[a-zA-Z][a-zA-Z0-9+.-]*:[^\s]+$", text)
        }
        "k8s-short-name" => strata_model::names::dns_label(text).is_none(),
        "k8s-long-name" => strata_model::names::dns_subdomain(text).is_none(),
        _ => true,
    }
}

static MAC: OnceLock<Option<Regex>> = OnceLock::new();
static EMAIL: OnceLock<Option<Regex>> = OnceLock::new();
static HOST: OnceLock<Option<Regex>> = OnceLock::new();
static URI: OnceLock<Option<Regex>> = OnceLock::new();
static DURATION: OnceLock<Option<Regex>> = OnceLock::new();

fn matches(cell: &OnceLock<Option<Regex>>, pattern: &str, text: &str) -> bool {
    cell.get_or_init(|| Regex::new(pattern).ok()).as_ref().is_none_or(|regex| regex.is_match(text))
}

/// `1h30m`, `500ms`, `0`; also words such as `2 weeks`.
fn is_duration(text: &str) -> bool {
    let pattern = r"^[-+]?(0|([0-9]+(\.[0-9]*)?|\.[0-9]+)\s*(ns|us|µs|μs|ms|s|m|h|d|w|sec|secs|second|seconds|min|mins|minute|minutes|hr|hour|hours|day|days|week|weeks)\s*)+$";
    matches(&DURATION, pattern, text)
}

fn is_cidr(text: &str) -> bool {
    let Some((address, bits)) = text.split_once('/') else { return false };
    let Ok(bits) = bits.parse::<u8>() else { return false };
    match address.parse::<std::net::IpAddr>() {
        Ok(std::net::IpAddr::V4(_)) => bits <= 32,
        Ok(std::net::IpAddr::V6(_)) => bits <= 128,
        Err(_) => false,
    }
}
