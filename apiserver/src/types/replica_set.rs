//! Replica sets: defaults, checks, row.

use jiff::Timestamp;
use serde_json::{Value, json};

use super::rules::{AGE, Column, Field, NAME, PLAIN, Rules, number, wide};
use super::{meta, print, workload};
use crate::value::int;

const COLUMNS: &[Column] = &[
    NAME,
    number("Desired", "How many pods are wanted."),
    number("Current", "How many pods there are."),
    number("Ready", "How many pods are ready."),
    AGE,
    wide("Containers", "Names of the containers of the template."),
    wide("Images", "Images of the containers of the template."),
    wide("Selector", "Which pods belong to it."),
];

const FIELDS: &[Field] = &[Field { name: "status.replicas", pointers: &["/status/replicas"], absent: "0" }];

/// Rules of replica sets.
pub static REPLICA_SET: Rules = Rules {
    defaults: workload::defaults,
    create: |set| workload::reset_status(set, json!({"replicas": 0})),
    validate: |set, faults| workload::validate(set, "ReplicaSet", &[], faults),
    validate_update: |new, old, faults| meta::immutable(new, old, &["spec", "selector"], faults),
    warnings: meta::warn_of_dots,
    columns: COLUMNS,
    row,
    fields: FIELDS,
    ..PLAIN
};

fn row(set: &Value, now: Timestamp) -> Vec<Value> {
    let count = |path: &[&str]| json!(int(set, path).unwrap_or(0));
    let mut cells = vec![
        print::name(set),
        count(&["spec", "replicas"]),
        count(&["status", "replicas"]),
        count(&["status", "readyReplicas"]),
        print::created(set, now),
    ];
    cells.extend(workload::wide_cells(set));
    cells
}
