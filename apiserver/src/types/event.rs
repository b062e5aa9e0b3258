//! Events: what happened to an object, for people; they go by themselves after an hour.

use jiff::Timestamp;
use serde_json::{Value, json};
use strata_model::field::{FieldError, FieldPath};

use super::print;
use super::rules::{Column, Faults, Field, PLAIN, Rules, column, field, wide};
use crate::value::{child, int, text};

/// Seconds after its last change at which an event goes.
pub const TTL_SECONDS: i64 = 3600;

const COLUMNS: &[Column] = &[
    column("Last Seen", "When it was last seen."),
    column("Type", "Normal or Warning."),
    column("Reason", "What happened, in one word."),
    column("Object", "What it happened to."),
    wide("Subobject", "The part of the object."),
    wide("Source", "Who saw it."),
    column("Message", "What happened, in a sentence."),
    wide("First Seen", "When it was first seen."),
    wide("Count", "How often it was seen."),
    wide("Name", "The name of the event."),
];

const FIELDS: &[Field] = &[
    field("involvedObject.kind", &["/involvedObject/kind"]),
    field("involvedObject.namespace", &["/involvedObject/namespace"]),
    field("involvedObject.name", &["/involvedObject/name"]),
    field("involvedObject.uid", &["/involvedObject/uid"]),
    field("involvedObject.apiVersion", &["/involvedObject/apiVersion"]),
    field("involvedObject.resourceVersion", &["/involvedObject/resourceVersion"]),
    field("involvedObject.fieldPath", &["/involvedObject/fieldPath"]),
    field("reason", &["/reason"]),
    field("reportingComponent", &["/reportingComponent"]),
    field("source", &["/source/component", "/reportingComponent"]),
    field("type", &["/type"]),
];

/// Rules of events.
pub static EVENT: Rules = Rules {
    defaults: |event| {
        child(event, "source");
    },
    validate,
    columns: COLUMNS,
    row,
    fields: FIELDS,
    create_on_update: true,
    expires_after_seconds: Some(TTL_SECONDS),
    ..PLAIN
};

fn validate(event: &Value, faults: &mut Faults) {
    let (own, involved) =
        (text(event, &["metadata", "namespace"]), text(event, &["involvedObject", "namespace"]));
    let fits = if involved.is_empty() { own == "default" || own.is_empty() } else { own == involved };
    if !fits {
        let path = FieldPath::new("involvedObject").child("namespace");
        let detail = "does not match event.namespace";
        faults.push(FieldError::invalid(path, involved, detail));
    }
}

fn row(event: &Value, now: Timestamp) -> Vec<Value> {
    let age_of = |paths: &[&[&str]]| {
        let found = paths.iter().map(|path| text(event, path)).find(|t| !t.is_empty());
        json!(print::age(found.unwrap_or_default(), now))
    };
    let first = age_of(&[&["firstTimestamp"], &["eventTime"]]);
    let last = age_of(&[&["series", "lastObservedTime"], &["lastTimestamp"], &["eventTime"]]);
    let kind = text(event, &["involvedObject", "kind"]).to_lowercase();
    let target = match text(event, &["involvedObject", "name"]) {
        "" => kind,
        name => format!("{kind}/{name}"),
    };
    let count = int(event, &["series", "count"]).or_else(|| int(event, &["count"])).unwrap_or(1);
    vec![
        last,
        json!(text(event, &["type"])),
        json!(text(event, &["reason"])),
        json!(target),
        json!(text(event, &["involvedObject", "fieldPath"])),
        json!(source(event)),
        json!(text(event, &["message"]).trim()),
        first,
        json!(count),
        print::name(event),
    ]
}

fn source(event: &Value) -> String {
    let first = |a: &[&str], b: &[&str]| match text(event, a) {
        "" => text(event, b).to_owned(),
        found => found.to_owned(),
    };
    let component = first(&["source", "component"], &["reportingComponent"]);
    let host = first(&["source", "host"], &["reportingInstance"]);
    if host.is_empty() { component } else { format!("{component}, {host}") }
}
