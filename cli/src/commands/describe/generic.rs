//! Any object: its fields, as they are, with names for people.

use serde_json::Value;

use super::Subject;
use super::page::{Page, text, text_of};

/// Metadata that is not of interest here, or was told before.
const KNOWN_METADATA: [&str; 5] = ["name", "namespace", "labels", "annotations", "managedFields"];

/// Describes an object of any type.
pub fn describe(page: &mut Page, subject: &Subject<'_>) {
    let object = subject.object;
    page.head(object);
    page.marks(object);
    page.field(0, "API Version", text(object, "apiVersion"));
    page.field(0, "Kind", text(object, "kind"));
    for (name, value) in object.as_object().into_iter().flatten() {
        match name.as_str() {
            "apiVersion" | "kind" => {}
            "metadata" => {
                page.line(0, "Metadata:");
                for (name, value) in value.as_object().into_iter().flatten() {
                    if !KNOWN_METADATA.contains(&name.as_str()) {
                        field(page, 1, name, value);
                    }
                }
            }
            _ => field(page, 0, name, value),
        }
    }
}

fn field(page: &mut Page, level: usize, name: &str, value: &Value) {
    let title = title(name);
    match value {
        Value::Object(members) if members.is_empty() => page.field(level, &title, ""),
        Value::Object(members) => {
            page.line(level, &format!("{title}:"));
            for (name, value) in members {
                field(page, level + 1, name, value);
            }
        }
        Value::Array(items) if items.is_empty() => page.field(level, &title, ""),
        Value::Array(items) if items.iter().all(Value::is_object) => {
            page.line(level, &format!("{title}:"));
            for (at, item) in items.iter().enumerate() {
                if at > 0 {
                    page.line(level + 1, "");
                }
                for (name, value) in item.as_object().into_iter().flatten() {
                    field(page, level + 1, name, value);
                }
            }
        }
        Value::Array(items) => {
            page.line(level, &format!("{title}:"));
            for item in items {
                page.line(level + 1, &text_of(item));
            }
        }
        scalar => page.field(level, &title, &text_of(scalar).replace('\n', "\\n")),
    }
}

/// `leaseDurationSeconds` as `Lease Duration Seconds`; names that are no such words stay.
pub fn title(name: &str) -> String {
    if !name.chars().all(|c| c.is_ascii_alphanumeric()) {
        return name.to_owned();
    }
    let mut title = String::new();
    let mut before = ' ';
    for c in name.chars() {
        if title.is_empty() {
            title.push(c.to_ascii_uppercase());
        } else {
            if c.is_ascii_uppercase() && before.is_ascii_lowercase() {
                title.push(' ');
            }
            title.push(c);
        }
        before = c;
    }
    title
}
