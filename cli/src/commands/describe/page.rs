//! A page in the making: lines of cells, laid out at the end as kubectl's are.

use std::io::Write as _;

use jiff::Timestamp;
use serde_json::Value;
use tabwriter::TabWriter;

/// Spaces between columns.
const GAP: usize = 2;
/// What stands where there is nothing.
pub const NONE: &str = "<none>";

/// Lines whose cells are parted by tabs.
#[derive(Default)]
pub struct Page {
    text: String,
}

impl Page {
    /// A line, `level` steps in.
    pub fn line(&mut self, level: usize, line: &str) {
        self.text.extend(std::iter::repeat_n("  ", level));
        self.text.push_str(line);
        self.text.push('\n');
    }

    /// `Name:` and a value; an empty one is `<none>`.
    pub fn field(&mut self, level: usize, name: &str, value: &str) {
        self.line(level, &format!("{name}:\t{}", if value.is_empty() { NONE } else { value }));
    }

    /// A name and several values below each other.
    pub fn fields(&mut self, level: usize, name: &str, values: &[String]) {
        match values {
            [] => self.field(level, name, ""),
            [first, more @ ..] => {
                self.field(level, name, first);
                for value in more {
                    self.line(level, &format!("\t{value}"));
                }
            }
        }
    }

    /// A map, one `key<sign>value` a line.
    pub fn map(&mut self, level: usize, name: &str, map: &Value, sign: &str) {
        let pairs: Vec<String> = map
            .as_object()
            .into_iter()
            .flatten()
            .filter(|(key, _)| !key.ends_with("last-applied-configuration"))
            .map(|(key, value)| format!("{key}{sign}{}", text_of(value)))
            .collect();
        self.fields(level, name, &pairs);
    }

    /// Name, namespace, labels and annotations.
    pub fn head(&mut self, object: &Value) {
        let metadata = &object["metadata"];
        self.field(0, "Name", text(metadata, "name"));
        if metadata["namespace"].is_string() {
            self.field(0, "Namespace", text(metadata, "namespace"));
        }
    }

    /// Labels and annotations.
    pub fn marks(&mut self, object: &Value) {
        self.map(0, "Labels", &object["metadata"]["labels"], "=");
        self.map(0, "Annotations", &object["metadata"]["annotations"], ": ");
    }

    /// Since when it is being deleted, if it is, and what holds it.
    pub fn leaving(&mut self, object: &Value, now: Timestamp) {
        let metadata = &object["metadata"];
        if let Some(since) = age(&metadata["deletionTimestamp"], now) {
            self.line(0, &format!("Status:\tTerminating (lasts {})", strata_model::age::human(since.max(0))));
            let finalizers = list(&metadata["finalizers"]);
            if !finalizers.is_empty() {
                self.field(0, "Finalizers", &finalizers.join(", "));
            }
        }
    }

    /// The controller of an object, if it has one.
    pub fn controller(&mut self, object: &Value) {
        let owners = object["metadata"]["ownerReferences"].as_array();
        if let Some(owner) = owners.into_iter().flatten().find(|o| o["controller"] == true) {
            self.field(0, "Controlled By", &format!("{}/{}", text(owner, "kind"), text(owner, "name")));
        }
    }

    /// A table of conditions.
    pub fn conditions(&mut self, object: &Value) {
        let Some(conditions) = object["status"]["conditions"].as_array().filter(|c| !c.is_empty()) else {
            return;
        };
        self.line(0, "Conditions:");
        self.line(1, "Type\tStatus\tReason\tMessage");
        self.line(1, "----\t------\t------\t-------");
        for c in conditions {
            let cells =
                ["type", "status", "reason", "message"].map(|field| text(c, field).replace('\n', " "));
            self.line(1, &cells.join("\t"));
        }
    }

    /// A table of events.
    pub fn events(&mut self, events: &[Value], now: Timestamp) {
        if events.is_empty() {
            return self.field(0, "Events", "");
        }
        self.line(0, "Events:");
        self.line(1, "Type\tReason\tAge\tFrom\tMessage");
        self.line(1, "----\t------\t----\t----\t-------");
        for event in events {
            let last = age(&Value::String(event_time(event).to_owned()), now)
                .map_or("<unknown>".to_owned(), strata_model::age::human);
            let count = event["count"].as_i64().or(event["series"]["count"].as_i64()).unwrap_or(1);
            let first = ["firstTimestamp", "eventTime"].iter().find_map(|f| age(&event[*f], now));
            let when = match (count, first) {
                (2.., Some(first)) => format!("{last} (x{count} over {})", strata_model::age::human(first)),
                _ => last,
            };
            let from = match text(&event["source"], "component") {
                "" => text(event, "reportingComponent"),
                component => component,
            };
            let message = text(event, "message").trim().replace('\n', " ");
            let cells = [text(event, "type"), text(event, "reason"), &when, from, &message];
            self.line(1, &cells.join("\t"));
        }
    }

    /// The text, laid out.
    pub fn finish(self) -> std::io::Result<String> {
        let mut writer = TabWriter::new(Vec::new()).minwidth(0).padding(GAP);
        writer.write_all(self.text.as_bytes())?;
        let bytes = writer.into_inner().map_err(|e| std::io::Error::other(e.to_string()))?;
        let text = String::from_utf8_lossy(&bytes).into_owned();
        Ok(text.lines().map(|line| format!("{}\n", line.trim_end())).collect())
    }
}

/// The instant an event speaks of.
pub fn event_time(event: &Value) -> &str {
    let fields = [
        &event["series"]["lastObservedTime"],
        &event["lastTimestamp"],
        &event["eventTime"],
        &event["firstTimestamp"],
    ];
    fields
        .into_iter()
        .find_map(Value::as_str)
        .unwrap_or_else(|| text(&event["metadata"], "creationTimestamp"))
}

/// A text at a field, empty where there is none.
pub fn text<'a>(value: &'a Value, field: &str) -> &'a str {
    value[field].as_str().unwrap_or_default()
}

/// A scalar as text; what is missing is empty.
pub fn text_of(value: &Value) -> String {
    match value {
        Value::String(text) => text.clone(),
        Value::Null => String::new(),
        other => other.to_string(),
    }
}

/// A list of texts.
pub fn list(value: &Value) -> Vec<String> {
    value.as_array().into_iter().flatten().map(text_of).collect()
}

/// Seconds since an instant, if it is one.
pub fn age(at: &Value, now: Timestamp) -> Option<i64> {
    let at: Timestamp = at.as_str()?.parse().ok()?;
    Some(now.as_second() - at.as_second())
}

/// An instant as people read it: `Mon, 30 Nov 2026 20:00:00 +0000`.
pub fn instant(at: &Value) -> String {
    let parsed: Option<Timestamp> = at.as_str().and_then(|text| text.parse().ok());
    parsed.map_or_else(String::new, |at| at.strftime("%a, %d %b %Y %H:%M:%S +0000").to_string())
}
