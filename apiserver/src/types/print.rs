//! Cells of Tables: ages, lists and the words for nothing, as kubectl users know them. Knows no types.

use std::collections::BTreeMap;

use jiff::Timestamp;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::LabelSelector;
use serde_json::{Value, json};
use strata_model::selector::Selector;

use crate::value::{list, text};

const MINUTE: i64 = 60;
const HOUR: i64 = 60 * MINUTE;
const DAY: i64 = 24 * HOUR;
const YEAR: i64 = 365 * DAY;

/// The name of an object.
pub fn name(object: &Value) -> Value {
    json!(text(object, &["metadata", "name"]))
}

/// How long ago an object was created.
pub fn created(object: &Value, now: Timestamp) -> Value {
    json!(age(text(object, &["metadata", "creationTimestamp"]), now))
}

/// How long ago an instant was, or `<unknown>`.
pub fn age(instant: &str, now: Timestamp) -> String {
    match instant.parse::<Timestamp>() {
        Ok(then) => duration(now.as_second() - then.as_second()),
        Err(_) => "<unknown>".to_owned(),
    }
}

/// A number of seconds in at most two units.
pub fn duration(seconds: i64) -> String {
    let two = |big: i64, unit: char, small: i64, rest: char| match small {
        0 => format!("{big}{unit}"),
        _ => format!("{big}{unit}{small}{rest}"),
    };
    match seconds {
        s if s < -1 => "<invalid>".to_owned(),
        s if s < 0 => "0s".to_owned(),
        s if s < 2 * MINUTE => format!("{s}s"),
        s if s < 10 * MINUTE => two(s / MINUTE, 'm', s % MINUTE, 's'),
        s if s < 3 * HOUR => format!("{}m", s / MINUTE),
        s if s < 8 * HOUR => two(s / HOUR, 'h', s % HOUR / MINUTE, 'm'),
        s if s < 2 * DAY => format!("{}h", s / HOUR),
        s if s < 8 * DAY => two(s / DAY, 'd', s % DAY / HOUR, 'h'),
        s if s < 2 * YEAR => format!("{}d", s / DAY),
        s if s < 8 * YEAR => two(s / YEAR, 'y', s % YEAR / DAY, 'd'),
        s => format!("{}y", s / YEAR),
    }
}

/// A text, or `<none>`.
pub fn or_none(text: &str) -> Value {
    json!(if text.is_empty() { "<none>" } else { text })
}

/// The selector of a body as text, or `<none>`.
pub fn selector(body: Option<&Value>) -> Value {
    let parsed = body.and_then(|b| serde_json::from_value::<LabelSelector>(b.clone()).ok());
    let selector = parsed.and_then(|body| Selector::from_body(&body).ok()).unwrap_or_default();
    or_none(&selector.to_string())
}

/// Names of the containers and their images, each with commas between.
pub fn containers(pod_spec: Option<&Value>) -> [Value; 2] {
    let containers = pod_spec.map_or(&[][..], |spec| list(spec, &["containers"]));
    let join = |field: &str| {
        let all: Vec<&str> = containers.iter().map(|c| text(c, &[field])).collect();
        json!(all.join(","))
    };
    [join("name"), join("image")]
}

/// Labels as text.
pub fn labels(object: &Value) -> BTreeMap<String, String> {
    let found = object.pointer("/metadata/labels").cloned().unwrap_or_default();
    serde_json::from_value(found).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations_read_as_kubectl_prints_them() {
        for (seconds, printed) in [
            (-5, "<invalid>"),
            (-1, "0s"),
            (0, "0s"),
            (119, "119s"),
            (120, "2m"),
            (159, "2m39s"),
            (3600, "60m"),
            (4 * HOUR, "4h"),
            (4 * HOUR + 61, "4h1m"),
            (47 * HOUR, "47h"),
            (3 * DAY + HOUR, "3d1h"),
            (100 * DAY, "100d"),
            (3 * YEAR + DAY, "3y1d"),
            (9 * YEAR + DAY, "9y"),
        ] {
            assert_eq!(duration(seconds), printed, "{seconds}");
        }
        assert_eq!(age("nonsense", Timestamp::UNIX_EPOCH), "<unknown>");
    }
}
