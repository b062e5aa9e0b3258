//! Daemon sets: defaults, checks, row.

use jiff::Timestamp;
use serde_json::{Value, json};
use strata_model::field::{FieldError, FieldPath};

use super::rules::{AGE, Column, Faults, NAME, PLAIN, Rules, column, number, wide};
use super::{check, meta, print, workload};
use crate::value::{at, child, default, int, object, text};

/// Counts changes of the template; clients of older versions read it.
const GENERATION: &str = "deprecated.daemonset.template.generation";

const COLUMNS: &[Column] = &[
    NAME,
    number("Desired", "How many nodes should run its pod."),
    number("Current", "How many nodes run its pod."),
    number("Ready", "How many of its pods are ready."),
    number("Up-to-date", "How many of its pods have the newest template."),
    number("Available", "How many of its pods have been ready for long enough."),
    column("Node Selector", "Labels of the nodes that run its pod."),
    AGE,
    wide("Containers", "Names of the containers of the template."),
    wide("Images", "Images of the containers of the template."),
    wide("Selector", "Which pods belong to it."),
];

/// Rules of daemon sets.
pub static DAEMON_SET: Rules = Rules {
    defaults,
    create: |set| {
        workload::reset_status(
            set,
            json!({"currentNumberScheduled": 0, "desiredNumberScheduled": 0, "numberMisscheduled": 0, "numberReady": 0}),
        );
        count_template(set, 1);
    },
    update: |new, old| {
        let was = text(old, &["metadata", "annotations", GENERATION]).parse::<i64>().unwrap_or(1);
        let differs = at(new, &["spec", "template"]) != at(old, &["spec", "template"]);
        count_template(new, was + i64::from(differs));
    },
    validate,
    validate_update: |new, old, faults| meta::immutable(new, old, &["spec", "selector"], faults),
    warnings: meta::warn_of_dots,
    columns: COLUMNS,
    row,
    ..PLAIN
};

fn count_template(set: &mut Value, count: i64) {
    let annotations = child(set, "metadata").entry("annotations").or_insert(Value::Null);
    object(annotations).insert(GENERATION.to_owned(), json!(count.to_string()));
}

fn defaults(set: &mut Value) {
    workload::template_defaults(set);
    let spec = child(set, "spec");
    default(spec, "revisionHistoryLimit", 10);
    let strategy = object(spec.entry("updateStrategy").or_insert(Value::Null));
    default(strategy, "type", "RollingUpdate");
    if strategy["type"] == "RollingUpdate" {
        let rolling = object(strategy.entry("rollingUpdate").or_insert(Value::Null));
        default(rolling, "maxUnavailable", 1);
        default(rolling, "maxSurge", 0);
    }
}

fn validate(set: &Value, faults: &mut Faults) {
    workload::validate(set, "daemonset", &[], faults);
    let (path, spec) = (FieldPath::new("spec"), at(set, &["spec"]).unwrap_or(&Value::Null));
    check::not_negative(spec, &["revisionHistoryLimit"], &path, faults);
    let path = path.child("updateStrategy");
    let strategy = at(spec, &["updateStrategy"]).unwrap_or(&Value::Null);
    check::known(strategy, "type", &["OnDelete", "RollingUpdate"], &path, faults);
    if text(strategy, &["type"]) != "RollingUpdate" {
        return;
    }
    let path = path.child("rollingUpdate");
    let mut count = |field: &str| {
        let value = at(strategy, &["rollingUpdate", field]).unwrap_or(&Value::Null);
        check::count_or_percent(value, path.child(field), faults)
    };
    match (count("maxUnavailable"), count("maxSurge")) {
        (Some(0), Some(0)) => {
            let detail = "cannot be 0 when maxSurge is 0";
            faults.push(FieldError::required(path.child("maxUnavailable"), detail));
        }
        (Some(unavailable), Some(surge)) if unavailable > 0 && surge > 0 => {
            let shown = at(strategy, &["rollingUpdate", "maxSurge"]);
            let detail = "may not be set when maxUnavailable is non-zero";
            faults.push(FieldError::invalid(path.child("maxSurge"), shown, detail));
        }
        _ => {}
    }
}

fn row(set: &Value, now: Timestamp) -> Vec<Value> {
    let count = |field: &str| json!(int(set, &["status", field]).unwrap_or(0));
    let mut cells = vec![
        print::name(set),
        count("desiredNumberScheduled"),
        count("currentNumberScheduled"),
        count("numberReady"),
        count("updatedNumberScheduled"),
        count("numberAvailable"),
        print::pairs(at(set, &["spec", "template", "spec", "nodeSelector"])),
        print::created(set, now),
    ];
    cells.extend(workload::wide_cells(set));
    cells
}
