//! Deployments: defaults, checks, row.

use jiff::Timestamp;
use serde_json::{Value, json};
use strata_model::field::{FieldError, FieldPath};

use super::rules::{AGE, Column, Faults, NAME, PLAIN, Rules, column, number, wide};
use super::{meta, print, workload};
use crate::value::{at, child, default, int, object, text};

const COLUMNS: &[Column] = &[
    NAME,
    column("Ready", "How many of the wanted pods are ready."),
    number("Up-to-date", "How many pods have the newest template."),
    number("Available", "How many pods have been ready for long enough."),
    AGE,
    wide("Containers", "Names of the containers of the template."),
    wide("Images", "Images of the containers of the template."),
    wide("Selector", "Which pods belong to it."),
];

/// Rules of deployments.
pub static DEPLOYMENT: Rules = Rules {
    defaults,
    create: |deployment| workload::reset_status(deployment, json!({})),
    validate,
    validate_update: |new, old, faults| meta::immutable(new, old, &["spec", "selector"], faults),
    warnings: meta::warn_of_dots,
    columns: COLUMNS,
    row,
    ..PLAIN
};

fn defaults(deployment: &mut Value) {
    workload::defaults(deployment);
    let spec = child(deployment, "spec");
    default(spec, "revisionHistoryLimit", 10);
    default(spec, "progressDeadlineSeconds", 600);
    let strategy = object(spec.entry("strategy").or_insert(Value::Null));
    default(strategy, "type", "RollingUpdate");
    if strategy["type"] == "RollingUpdate" {
        let rolling = object(strategy.entry("rollingUpdate").or_insert(Value::Null));
        default(rolling, "maxSurge", "25%");
        default(rolling, "maxUnavailable", "25%");
    }
}

fn validate(deployment: &Value, faults: &mut Faults) {
    workload::validate(deployment, "deployment", &[], faults);
    for field in ["revisionHistoryLimit", "progressDeadlineSeconds"] {
        workload::not_negative(deployment, field, faults);
    }
    let spec = FieldPath::new("spec");
    let ready = int(deployment, &["spec", "minReadySeconds"]).unwrap_or(0);
    if let Some(deadline) = int(deployment, &["spec", "progressDeadlineSeconds"]).filter(|d| *d <= ready) {
        let detail = "must be greater than minReadySeconds";
        faults.push(FieldError::invalid(spec.child("progressDeadlineSeconds"), deadline, detail));
    }
    let path = spec.child("strategy");
    match text(deployment, &["spec", "strategy", "type"]) {
        "Recreate" => {
            if at(deployment, &["spec", "strategy", "rollingUpdate"]).is_some() {
                let detail = "may not be specified when strategy `type` is 'Recreate'";
                faults.push(FieldError::forbidden(path.child("rollingUpdate"), detail));
            }
        }
        "RollingUpdate" => rolling(deployment, &path.child("rollingUpdate"), faults),
        other => {
            faults.push(FieldError::not_supported(path.child("type"), other, &["Recreate", "RollingUpdate"]))
        }
    }
}

fn rolling(deployment: &Value, path: &FieldPath, faults: &mut Faults) {
    let mut zeros = 0;
    for field in ["maxUnavailable", "maxSurge"] {
        let value = at(deployment, &["spec", "strategy", "rollingUpdate", field]).unwrap_or(&Value::Null);
        match amount(value) {
            Some(0) => zeros += 1,
            Some(n) if n < 0 => {
                let detail = "must be greater than or equal to 0";
                faults.push(FieldError::invalid(path.child(field), value, detail));
            }
            Some(n) if field == "maxUnavailable" && value.is_string() && n > 100 => {
                faults.push(FieldError::invalid(path.child(field), value, "must not be greater than 100%"));
            }
            Some(_) => {}
            None => {
                let detail = "must be an integer or percentage (e.g '5%%')";
                faults.push(FieldError::invalid(path.child(field), value, detail));
            }
        }
    }
    if zeros == 2 {
        let detail = "may not be 0 when `maxSurge` is 0";
        faults.push(FieldError::invalid(path.child("maxUnavailable"), 0, detail));
    }
}

/// A count, or the number of a percentage.
fn amount(value: &Value) -> Option<i64> {
    match value {
        Value::String(text) => text.strip_suffix('%')?.parse().ok(),
        other => other.as_i64(),
    }
}

fn row(deployment: &Value, now: Timestamp) -> Vec<Value> {
    let count = |path: &[&str]| int(deployment, path).unwrap_or(0);
    let ready = format!("{}/{}", count(&["status", "readyReplicas"]), count(&["spec", "replicas"]));
    let mut cells = vec![
        print::name(deployment),
        json!(ready),
        json!(count(&["status", "updatedReplicas"])),
        json!(count(&["status", "availableReplicas"])),
        print::created(deployment, now),
    ];
    cells.extend(workload::wide_cells(deployment));
    cells
}

#[cfg(test)]
mod tests {
    use super::*;

    fn minimal() -> Value {
        json!({"metadata": {"name": "d"}, "spec": {"selector": {"matchLabels": {"app": "d"}}, "template": {
            "metadata": {"labels": {"app": "d"}, "creationTimestamp": null},
            "spec": {"containers": [{"name": "c", "image": "nginx"}]}}}})
    }

    fn faults(change: impl Fn(&mut Value)) -> Vec<String> {
        let (mut deployment, mut faults) = (minimal(), Vec::new());
        change(&mut deployment);
        defaults(&mut deployment);
        validate(&deployment, &mut faults);
        faults.iter().map(ToString::to_string).collect()
    }

    #[test]
    fn a_minimal_deployment_is_filled() {
        let mut deployment = minimal();
        defaults(&mut deployment);
        assert_eq!(deployment["spec"]["replicas"], 1);
        assert_eq!(
            deployment["spec"]["strategy"]["rollingUpdate"],
            json!({"maxSurge": "25%", "maxUnavailable": "25%"})
        );
        assert_eq!(deployment["spec"]["template"]["spec"]["restartPolicy"], "Always");
        assert!(faults(|_| {}).is_empty(), "{:?}", faults(|_| {}));
    }

    #[test]
    fn a_deployment_that_cannot_work_is_refused() {
        type Case<'a> = (&'a dyn Fn(&mut Value), &'a str);
        let cases: &[Case<'_>] = &[
            (&|d| d["spec"]["selector"] = Value::Null, "spec.selector"),
            (&|d| d["spec"]["selector"] = json!({}), "empty selector is invalid"),
            (
                &|d| d["spec"]["template"]["metadata"]["labels"] = json!({"app": "x"}),
                "does not match template `labels`",
            ),
            (&|d| d["spec"]["replicas"] = json!(-1), "spec.replicas: Invalid value: -1"),
            (
                &|d| d["spec"]["template"]["spec"]["restartPolicy"] = json!("Never"),
                "supported values: \"Always\"",
            ),
            (&|d| d["spec"]["strategy"] = json!({"type": "Recreate", "rollingUpdate": {}}), "Forbidden"),
            (
                &|d| d["spec"]["strategy"] = json!({"rollingUpdate": {"maxSurge": 0, "maxUnavailable": 0}}),
                "may not be 0",
            ),
            (&|d| d["spec"]["minReadySeconds"] = json!(700), "must be greater than minReadySeconds"),
            (
                &|d| d["spec"]["template"]["spec"]["containers"] = json!([]),
                "spec.template.spec.containers: Required",
            ),
        ];
        for (change, part) in cases {
            let found = faults(change);
            assert!(found.iter().any(|f| f.contains(part)), "{part} in {found:?}");
        }
    }
}
