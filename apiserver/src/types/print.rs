//! Cells of Tables: ages, lists and the words for nothing, as kubectl users know them. Knows no types.

use std::collections::BTreeMap;

use jiff::Timestamp;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::LabelSelector;
use serde_json::{Value, json};
use strata_model::age::human;
use strata_model::selector::Selector;

use crate::value::{list, text};

/// The name of an object.
pub fn name(object: &Value) -> Value {
    json!(text(object, &["metadata", "name"]))
}

/// How long ago an object was created.
pub fn created(object: &Value, now: Timestamp) -> Value {
    json!(age(text(object, &["metadata", "creationTimestamp"]), now))
}

/// Some of many: the first few, and how many more there are.
pub fn some(all: &[String], few: usize) -> String {
    let shown: Vec<&str> = all.iter().take(few).map(String::as_str).collect();
    match all.len().saturating_sub(few) {
        0 => shown.join(","),
        more => format!("{} + {more} more...", shown.join(",")),
    }
}

/// The name of the newest object that an annotation of `true` makes the default of its type.
pub fn default_of(objects: &[Value], annotation: &str) -> Option<String> {
    let marked = objects.iter().filter(|o| text(o, &["metadata", "annotations", annotation]) == "true");
    let newest = marked.max_by_key(|o| text(o, &["metadata", "creationTimestamp"]))?;
    Some(text(newest, &["metadata", "name"]).to_owned())
}

/// The cells of a type that shows its name and when it was created.
pub fn name_and_creation(object: &Value, _: Timestamp) -> Vec<Value> {
    vec![name(object), json!(text(object, &["metadata", "creationTimestamp"]))]
}

/// How long ago an instant was, or `<unknown>`.
pub fn age(instant: &str, now: Timestamp) -> String {
    match instant.parse::<Timestamp>() {
        Ok(then) => human(now.as_second() - then.as_second()),
        Err(_) => "<unknown>".to_owned(),
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

/// A map of labels as the text of a selector, or `<none>`.
pub fn pairs(map: Option<&Value>) -> Value {
    or_none(&joined(map))
}

/// A map of labels as the text of a selector: `a=b,c=d`.
pub fn joined(map: Option<&Value>) -> String {
    let pairs = map.and_then(Value::as_object).into_iter().flatten();
    let pairs: Vec<String> =
        pairs.map(|(key, value)| format!("{key}={}", value.as_str().unwrap_or_default())).collect();
    pairs.join(",")
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
    fn an_instant_that_is_none_has_no_age() {
        assert_eq!(age("1970-01-01T00:00:00Z", Timestamp::UNIX_EPOCH), "0s");
        assert_eq!(age("nonsense", Timestamp::UNIX_EPOCH), "<unknown>");
    }
}
