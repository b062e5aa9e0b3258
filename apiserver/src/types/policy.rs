//! Disruption budgets and priority classes: how much of a workload may be missing, and what goes first.

use jiff::Timestamp;
use serde_json::{Value, json};
use strata_model::field::{FieldError, FieldPath};

use super::rules::{AGE, Column, Faults, NAME, PLAIN, Rules, column, number, truth};
use super::{check, meta, print};
use crate::value::{at, child, default, flag, int, object, text};

/// Highest priority that users may give.
const HIGHEST: i64 = 1_000_000_000;
/// What the names of the platform's own classes begin with.
const SYSTEM: &str = "system-";
/// The platform's own classes, highest first.
pub const SYSTEM_CLASSES: &[(&str, i64)] =
    &[("system-node-critical", 2_000_001_000), ("system-cluster-critical", 2_000_000_000)];

/// Rules of disruption budgets.
pub static DISRUPTION_BUDGET: Rules = Rules {
    create: |budget| {
        let status =
            json!({"currentHealthy": 0, "desiredHealthy": 0, "disruptionsAllowed": 0, "expectedPods": 0});
        object(budget).insert("status".to_owned(), status);
    },
    validate: validate_budget,
    columns: const {
        &[
            NAME,
            column("Min Available", "How many pods must stay."),
            column("Max Unavailable", "How many pods may be missing."),
            number("Allowed Disruptions", "How many pods may go now."),
            AGE,
        ] as &[Column]
    },
    row: |budget, now| {
        let amount = |field: &str| match at(budget, &["spec", field]) {
            Some(Value::Number(number)) => json!(number.to_string()),
            Some(Value::String(text)) => json!(text),
            _ => json!("N/A"),
        };
        vec![
            print::name(budget),
            amount("minAvailable"),
            amount("maxUnavailable"),
            json!(int(budget, &["status", "disruptionsAllowed"]).unwrap_or(0)),
            print::created(budget, now),
        ]
    },
    revision_required: true,
    ..PLAIN
};

fn validate_budget(budget: &Value, faults: &mut Faults) {
    let (path, spec) = (FieldPath::new("spec"), at(budget, &["spec"]).unwrap_or(&Value::Null));
    if at(spec, &["minAvailable"]).is_some() && at(spec, &["maxUnavailable"]).is_some() {
        let detail = "minAvailable and maxUnavailable cannot be both set";
        faults.push(FieldError::invalid(path.clone(), spec, detail));
    }
    for field in ["minAvailable", "maxUnavailable"] {
        if let Some(amount) = at(spec, &[field]) {
            check::count_or_percent(amount, path.child(field), faults);
        }
    }
    check::selector(at(spec, &["selector"]), &path.child("selector"), faults);
    let policies = &["AlwaysAllow", "IfHealthyBudget"];
    check::one_of(spec, "unhealthyPodEvictionPolicy", policies, &path, faults);
}

/// Rules of priority classes.
pub static PRIORITY_CLASS: Rules = Rules {
    defaults: |class| default(object(class), "preemptionPolicy", "PreemptLowerPriority"),
    create: |class| drop(child(class, "metadata").insert("generation".to_owned(), json!(1))),
    validate: validate_class,
    validate_update: |new, old, faults| {
        if at(new, &["value"]) != at(old, &["value"]) {
            faults.push(FieldError::forbidden(FieldPath::new("value"), "may not be changed in an update."));
        }
        meta::immutable(new, old, &["preemptionPolicy"], faults);
    },
    protected: &["system-node-critical", "system-cluster-critical"],
    columns: const {
        &[
            NAME,
            number("Value", "The priority that its pods get."),
            truth("Global-Default", "Whether pods that name no class get it."),
            AGE,
            column("PreemptionPolicy", "Whether its pods take the place of others."),
        ] as &[Column]
    },
    row: class_row,
    ..PLAIN
};

fn validate_class(class: &Value, faults: &mut Faults) {
    let name = text(class, &["metadata", "name"]);
    let value = int(class, &["value"]).unwrap_or(0);
    if name.starts_with(SYSTEM) {
        if !SYSTEM_CLASSES.contains(&(name, value)) {
            let detail = "priority class names with 'system-' prefix are reserved for system use only";
            faults.push(FieldError::forbidden(meta::path().child("name"), detail));
        }
    } else if value > HIGHEST {
        let detail = format!("maximum allowed value of a user defined priority is {HIGHEST}");
        faults.push(FieldError::forbidden(FieldPath::new("value"), detail));
    }
    let policies = &["Never", "PreemptLowerPriority"];
    check::one_of(class, "preemptionPolicy", policies, &FieldPath::new(""), faults);
}

fn class_row(class: &Value, now: Timestamp) -> Vec<Value> {
    vec![
        print::name(class),
        json!(int(class, &["value"]).unwrap_or(0)),
        json!(flag(class, &["globalDefault"])),
        print::created(class, now),
        json!(text(class, &["preemptionPolicy"])),
    ]
}
