//! Events: what happened to an object, for people; they go by themselves after an hour.

use jiff::Timestamp;
use serde_json::{Value, json};
use strata_model::field::{FieldError, FieldPath};
use strata_model::names;

use super::print;
use super::rules::{Column, Conversion, Faults, Field, PLAIN, Rules, column, field, wide};
use crate::value::{at, child, int, object, text};

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

/// `events.k8s.io/v1`: the same events, with other names for their fields.
pub static EVENTS: Conversion = Conversion {
    validate: validate_new,
    store: |event| rename(event, |(shown, stored)| (shown, stored)),
    show: |event| rename(event, |(shown, stored)| (stored, shown)),
    rules: const {
        &Rules {
            columns: COLUMNS,
            row: |event, now| {
                let mut event = event.clone();
                rename(&mut event, |(shown, stored)| (shown, stored));
                row(&event, now)
            },
            ..EVENT
        }
    },
    fields: &[
        ("regarding.kind", "involvedObject.kind"),
        ("regarding.namespace", "involvedObject.namespace"),
        ("regarding.name", "involvedObject.name"),
        ("regarding.uid", "involvedObject.uid"),
        ("regarding.apiVersion", "involvedObject.apiVersion"),
        ("regarding.resourceVersion", "involvedObject.resourceVersion"),
        ("regarding.fieldPath", "involvedObject.fieldPath"),
        ("reportingController", "reportingComponent"),
    ],
};

/// Names of fields in `events.k8s.io/v1`, and in the core group.
const NAMES: &[(&str, &str)] = &[
    ("regarding", "involvedObject"),
    ("note", "message"),
    ("reportingController", "reportingComponent"),
    ("deprecatedSource", "source"),
    ("deprecatedFirstTimestamp", "firstTimestamp"),
    ("deprecatedLastTimestamp", "lastTimestamp"),
    ("deprecatedCount", "count"),
];

/// Longest texts of an event that tell who does what.
const MAX_WORD: usize = 128;
/// Longest note.
const MAX_NOTE: usize = 1024;

type Names = (&'static str, &'static str);

fn rename(event: &mut Value, direction: fn(Names) -> Names) {
    let members = object(event);
    for names in NAMES {
        let (from, to) = direction(*names);
        if let Some(value) = members.remove(from) {
            members.insert(to.to_owned(), value);
        }
    }
}

fn validate_new(event: &Value, faults: &mut Faults) {
    if at(event, &["eventTime"]).is_none() {
        faults.push(FieldError::required(FieldPath::new("eventTime"), ""));
    }
    let kind = text(event, &["type"]);
    if !matches!(kind, "Normal" | "Warning") {
        faults.push(FieldError::invalid(FieldPath::new("type"), "", format!("has invalid value: {kind}")));
    }
    let controller = text(event, &["reportingController"]);
    if controller.is_empty() {
        faults.push(FieldError::required(FieldPath::new("reportingController"), ""));
    } else if let Some(fault) = names::qualified_name(controller) {
        faults.push(FieldError::invalid(FieldPath::new("reportingController"), controller, fault));
    }
    for field in ["reportingInstance", "action", "reason"] {
        match text(event, &[field]) {
            "" => faults.push(FieldError::required(FieldPath::new(field), "")),
            word if word.len() > MAX_WORD => {
                let detail = format!("can have at most {MAX_WORD} characters");
                faults.push(FieldError::invalid(FieldPath::new(field), "", detail));
            }
            _ => {}
        }
    }
    if text(event, &["note"]).len() > MAX_NOTE {
        let detail = format!("can have at most {MAX_NOTE} characters");
        faults.push(FieldError::invalid(FieldPath::new("note"), "", detail));
    }
}

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
