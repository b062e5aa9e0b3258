//! Stateful sets: defaults, checks, row.

use jiff::Timestamp;
use serde_json::{Map, Value, json};
use strata_model::field::{FieldError, FieldPath};
use strata_model::names;

use super::rules::{AGE, Column, Faults, NAME, PLAIN, Rules, column, wide};
use super::{check, claim, print, workload};
use crate::value::{at, child, default, int, list, object, text};

const COLUMNS: &[Column] = &[
    NAME,
    column("Ready", "How many of the wanted pods are ready."),
    AGE,
    wide("Containers", "Names of the containers of the template."),
    wide("Images", "Images of the containers of the template."),
];

/// Members of the spec that an update may change.
const CHANGEABLE: &[&str] = &[
    "replicas",
    "ordinals",
    "template",
    "updateStrategy",
    "revisionHistoryLimit",
    "persistentVolumeClaimRetentionPolicy",
    "minReadySeconds",
];

/// Rules of stateful sets.
pub static STATEFUL_SET: Rules = Rules {
    name: names::dns_label,
    defaults,
    create: |set| workload::reset_status(set, json!({"availableReplicas": 0, "replicas": 0})),
    validate,
    validate_update,
    columns: COLUMNS,
    row,
    ..PLAIN
};

fn defaults(set: &mut Value) {
    workload::defaults(set);
    let spec = child(set, "spec");
    default(spec, "serviceName", "");
    default(spec, "podManagementPolicy", "OrderedReady");
    default(spec, "revisionHistoryLimit", 10);
    let strategy = object(spec.entry("updateStrategy").or_insert(Value::Null));
    default(strategy, "type", "RollingUpdate");
    if strategy["type"] == "RollingUpdate" {
        let rolling = object(strategy.entry("rollingUpdate").or_insert(Value::Null));
        default(rolling, "partition", 0);
    }
    let retention = object(spec.entry("persistentVolumeClaimRetentionPolicy").or_insert(Value::Null));
    default(retention, "whenDeleted", "Retain");
    default(retention, "whenScaled", "Retain");
    for template in spec.get_mut("volumeClaimTemplates").and_then(Value::as_array_mut).into_iter().flatten() {
        claim::defaults(template);
        let template = object(template);
        default(template, "apiVersion", "v1");
        default(template, "kind", "PersistentVolumeClaim");
        template.insert("status".to_owned(), json!({"phase": "Pending"}));
    }
}

fn validate(set: &Value, faults: &mut Faults) {
    let claims: Vec<&str> =
        list(set, &["spec", "volumeClaimTemplates"]).iter().map(|c| text(c, &["metadata", "name"])).collect();
    workload::validate(set, "StatefulSet", &claims, faults);
    let (path, spec) = (FieldPath::new("spec"), at(set, &["spec"]).unwrap_or(&Value::Null));
    check::not_negative(spec, &["revisionHistoryLimit"], &path, faults);
    let policy = text(spec, &["podManagementPolicy"]);
    if !matches!(policy, "OrderedReady" | "Parallel") {
        let detail = "must be 'OrderedReady' or 'Parallel'";
        faults.push(FieldError::invalid(path.child("podManagementPolicy"), policy, detail));
    }
    let strategy = at(spec, &["updateStrategy"]).unwrap_or(&Value::Null);
    let at_strategy = path.child("updateStrategy");
    match text(strategy, &["type"]) {
        "OnDelete" => {
            if let Some(rolling) = at(strategy, &["rollingUpdate"]) {
                let detail = "only allowed for updateStrategy 'RollingUpdate'";
                faults.push(FieldError::invalid(at_strategy.child("rollingUpdate"), rolling, detail));
            }
        }
        "RollingUpdate" => {
            let path = at_strategy.child("rollingUpdate");
            let rolling = at(strategy, &["rollingUpdate"]).unwrap_or(&Value::Null);
            check::not_negative(rolling, &["partition"], &path, faults);
            if let Some(most) = at(rolling, &["maxUnavailable"]) {
                let path = path.child("maxUnavailable");
                if check::count_or_percent(most, path.clone(), faults) == Some(0) {
                    faults.push(FieldError::invalid(path, most, "cannot be 0"));
                }
            }
        }
        _ => {
            let detail = "must be 'RollingUpdate' or 'OnDelete'";
            faults.push(FieldError::invalid(at_strategy, strategy, detail));
        }
    }
    let retention = at(spec, &["persistentVolumeClaimRetentionPolicy"]).unwrap_or(&Value::Null);
    for field in ["whenDeleted", "whenScaled"] {
        let path = path.child("persistentVolumeClaimRetentionPolicy");
        check::known(retention, field, &["Delete", "Retain"], &path, faults);
    }
    if let Some(ordinals) = at(spec, &["ordinals"]) {
        check::not_negative(ordinals, &["start"], &path.child("ordinals"), faults);
    }
    for (index, template) in list(spec, &["volumeClaimTemplates"]).iter().enumerate() {
        let path = path.child("volumeClaimTemplates").index(index);
        check::name(
            at(template, &["metadata"]).unwrap_or(&Value::Null),
            "name",
            names::dns_label,
            &path.child("metadata"),
            faults,
        );
        claim::validate_spec(at(template, &["spec"]).unwrap_or(&Value::Null), &path.child("spec"), faults);
    }
}

fn validate_update(new: &Value, old: &Value, faults: &mut Faults) {
    let fixed = |set: &Value| -> Map<String, Value> {
        let mut spec = at(set, &["spec"]).and_then(Value::as_object).cloned().unwrap_or_default();
        spec.retain(|name, _| !CHANGEABLE.contains(&name.as_str()));
        spec
    };
    if fixed(new) != fixed(old) {
        let detail = "updates to statefulset spec for fields other than 'replicas', 'ordinals', 'template', \
            'updateStrategy', 'revisionHistoryLimit', 'persistentVolumeClaimRetentionPolicy' and \
            'minReadySeconds' are forbidden";
        faults.push(FieldError::forbidden(FieldPath::new("spec"), detail));
    }
}

fn row(set: &Value, now: Timestamp) -> Vec<Value> {
    let count = |path: &[&str]| int(set, path).unwrap_or(0);
    let ready = format!("{}/{}", count(&["status", "readyReplicas"]), count(&["spec", "replicas"]));
    let [names, images, _] = workload::wide_cells(set);
    vec![print::name(set), json!(ready), print::created(set, now), names, images]
}
