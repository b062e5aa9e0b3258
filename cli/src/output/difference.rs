//! The difference between two versions of an object, as `diff -u` prints it. Pure.

use serde_json::Value;
use similar::TextDiff;

use super::style::{Painter, Tone};
use super::{format, yaml};

/// Lines of context around a difference.
const CONTEXT: usize = 3;
/// What stands for a value that is not shown.
const HIDDEN: &str = "***";

/// The unified difference of two versions; empty where they are the same. What is not there has no lines.
pub fn unified(before: (&str, Option<&Value>), after: (&str, Option<&Value>), painter: Painter) -> String {
    let text = |value: Option<&Value>| value.map_or_else(String::new, yaml::to_string);
    let (old, new) = (text(before.1), text(after.1));
    if old == new {
        return String::new();
    }
    let difference = TextDiff::from_lines(old.as_str(), new.as_str());
    let mut unified = difference.unified_diff();
    let plain = unified.context_radius(CONTEXT).header(before.0, after.0).to_string();
    if !painter.colour {
        return plain;
    }
    let paint = |line: &str| match line.as_bytes().first() {
        _ if line.starts_with("--- ") || line.starts_with("+++ ") => painter.paint(Tone::Strong, line),
        Some(b'+') => painter.paint(Tone::Good, line),
        Some(b'-') => painter.paint(Tone::Bad, line),
        Some(b'@') => painter.paint(Tone::Faint, line),
        _ => line.to_owned(),
    };
    plain.lines().map(|line| paint(line) + "\n").collect()
}

/// Makes two versions comparable: without what changes with every write, and with the values of secrets hidden, but
/// so that it can be seen which differ.
pub fn comparable(before: &mut Option<Value>, after: &mut Option<Value>) {
    for value in [&mut *before, &mut *after].into_iter().flatten() {
        format::strip_managed_fields(value);
        if let Some(Value::Object(metadata)) = value.get_mut("metadata") {
            metadata.remove("resourceVersion");
        }
    }
    let is_secret = |value: &Option<Value>| {
        value.as_ref().is_some_and(|v| v["kind"] == "Secret" && v["apiVersion"] == "v1")
    };
    if is_secret(before) || is_secret(after) {
        for member in ["data", "stringData"] {
            hide(before, after, member);
        }
    }
}

fn hide(before: &mut Option<Value>, after: &mut Option<Value>, member: &str) {
    let of = |value: &Option<Value>| {
        value.as_ref().and_then(|v| v[member].as_object()).cloned().unwrap_or_default()
    };
    let (old, new) = (of(before), of(after));
    let mask = |value: &mut Option<Value>, other: &serde_json::Map<String, Value>, word: &str| {
        let Some(Value::Object(members)) = value.as_mut().and_then(|v| v.get_mut(member)) else { return };
        for (key, value) in members {
            let hidden = match other.get(key) {
                Some(there) if there != value => format!("{HIDDEN} ({word})"),
                _ => HIDDEN.to_owned(),
            };
            *value = Value::String(hidden);
        }
    };
    mask(before, &new, "before");
    mask(after, &old, "after");
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn differences_read_as_of_diff() {
        let (old, new) = (json!({"a": 1, "b": 2}), json!({"a": 1, "b": 3}));
        let text = unified(("x", Some(&old)), ("y", Some(&new)), Painter::PLAIN);
        assert_eq!(text, "--- x\n+++ y\n@@ -1,2 +1,2 @@\n a: 1\n-b: 2\n+b: 3\n");
        assert_eq!(unified(("x", Some(&old)), ("y", Some(&old)), Painter::PLAIN), "");
        let made = unified(("x", None), ("y", Some(&json!({"a": 1}))), Painter::PLAIN);
        assert!(made.ends_with("+a: 1\n"), "{made}");
        assert!(
            unified(("x", Some(&old)), ("y", Some(&new)), Painter { colour: true }).contains("\x1b[32m+b: 3")
        );
    }

    #[test]
    fn secrets_show_that_they_differ_and_no_more() {
        let secret = |password: &str| {
            Some(json!({"apiVersion": "v1", "kind": "Secret", "data": {"p": password, "same": "x"},
                "metadata": {"resourceVersion": "1", "managedFields": []}}))
        };
        let (mut old, mut new) = (secret("one"), secret("two"));
        comparable(&mut old, &mut new);
        assert_eq!(old.unwrap()["data"], json!({"p": "*** (before)", "same": "***"}));
        let new = new.unwrap();
        assert_eq!(new["data"]["p"], "*** (after)");
        assert_eq!(new["metadata"], json!({}));
    }
}
