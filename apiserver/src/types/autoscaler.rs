//! Horizontal pod autoscalers: what they default, check and print, and their older form.

use jiff::Timestamp;
use serde_json::{Map, Value, json};
use strata_model::field::{FieldError, FieldPath};

use super::print;
use super::rules::{AGE, Column, Conversion, Faults, NAME, PLAIN, Rules, column, number};
use crate::value::{at, child, default, int, list, members_mut, object, put, text};

const COLUMNS: &[Column] = &[
    NAME,
    column("Reference", "What is scaled."),
    column("Targets", "What is measured, and what is wanted."),
    column("MinPods", "Fewest pods."),
    column("MaxPods", "Most pods."),
    number("Replicas", "How many pods there are."),
    AGE,
];

/// Most metrics that a row shows.
const SHOWN_METRICS: usize = 2;
/// Percent of the requested processor time that is aimed at where nothing is said.
const CPU_PERCENT: i64 = 80;

/// Rules of horizontal pod autoscalers.
pub static AUTOSCALER: Rules = Rules {
    defaults,
    create: |scaler| {
        drop(
            object(scaler).insert("status".to_owned(), json!({"currentMetrics": null, "desiredReplicas": 0})),
        )
    },
    validate,
    columns: COLUMNS,
    row,
    ..PLAIN
};

/// `autoscaling/v1`: one target, percent of the processor; all else in annotations.
pub static V1: Conversion = Conversion {
    validate: |_, _| {},
    store: from_v1,
    show: to_v1,
    rules: const {
        &Rules {
            columns: COLUMNS,
            row: |scaler, now| {
                let mut scaler = scaler.clone();
                from_v1(&mut scaler);
                row(&scaler, now)
            },
            ..AUTOSCALER
        }
    },
    fields: &[],
};

const METRICS: &str = "autoscaling.alpha.kubernetes.io/metrics";
const BEHAVIOR: &str = "autoscaling.alpha.kubernetes.io/behavior";
const CURRENT_METRICS: &str = "autoscaling.alpha.kubernetes.io/current-metrics";
const CONDITIONS: &str = "autoscaling.alpha.kubernetes.io/conditions";

fn cpu(percent: &Value) -> Value {
    json!({"type": "Resource", "resource": {"name": "cpu",
        "target": {"type": "Utilization", "averageUtilization": percent}}})
}

/// Whether a metric, or its measurement, is percent of the processor time; then the percentage.
fn percent(metric: &Value, target: &str) -> Option<Value> {
    let is_cpu = text(metric, &["type"]) == "Resource" && text(metric, &["resource", "name"]) == "cpu";
    at(metric, &["resource", target, "averageUtilization"]).filter(|_| is_cpu).cloned()
}

fn to_v1(scaler: &mut Value) {
    let mut kept = Map::new();
    let mut keep = |name: &str, value: Option<Value>| {
        if let Some(value) = value.filter(|v| !v.is_null() && v.as_array().is_none_or(|l| !l.is_empty())) {
            kept.insert(name.to_owned(), json!(value.to_string()));
        }
    };
    if let Some(spec) = members_mut(scaler, &["spec"]) {
        let (target, rest) = part(spec.remove("metrics"), "target");
        put(spec, "targetCPUUtilizationPercentage", target);
        keep(METRICS, rest);
        keep(BEHAVIOR, spec.remove("behavior"));
    }
    if let Some(status) = members_mut(scaler, &["status"]) {
        let (current, rest) = part(status.remove("currentMetrics"), "current");
        put(status, "currentCPUUtilizationPercentage", current);
        keep(CURRENT_METRICS, rest);
        keep(CONDITIONS, status.remove("conditions"));
        default(status, "currentReplicas", 0);
    }
    if !kept.is_empty() {
        object(child(scaler, "metadata").entry("annotations").or_insert(Value::Null)).extend(kept);
    }
}

/// Parts metrics into the percentage of the processor and the others.
fn part(metrics: Option<Value>, target: &str) -> (Option<Value>, Option<Value>) {
    let Some(Value::Array(metrics)) = metrics else { return (None, None) };
    let found = metrics.iter().find_map(|metric| percent(metric, target));
    let rest: Vec<Value> = metrics.into_iter().filter(|metric| percent(metric, target).is_none()).collect();
    (found, Some(rest.into()))
}

fn from_v1(scaler: &mut Value) {
    let mut taken = |name: &str| -> Option<Value> {
        let kept = members_mut(scaler, &["metadata", "annotations"])?.remove(name)?;
        serde_json::from_str(kept.as_str()?).ok()
    };
    let (metrics, behavior) = (taken(METRICS), taken(BEHAVIOR));
    let (current, conditions) = (taken(CURRENT_METRICS), taken(CONDITIONS));
    let joined = |own: Option<Value>, rest: Option<Value>| {
        let rest = rest.and_then(|r| r.as_array().cloned()).unwrap_or_default();
        let all: Vec<Value> = own.into_iter().chain(rest).collect();
        (!all.is_empty()).then_some(Value::Array(all))
    };
    if let Some(spec) = members_mut(scaler, &["spec"]) {
        let own = spec.remove("targetCPUUtilizationPercentage").map(|percent| cpu(&percent));
        if let Some(metrics) = joined(own, metrics) {
            spec.insert("metrics".to_owned(), metrics);
        }
        if let Some(behavior) = behavior {
            spec.insert("behavior".to_owned(), behavior);
        }
    }
    if let Some(status) = members_mut(scaler, &["status"]) {
        let own = status.remove("currentCPUUtilizationPercentage").map(|percent| {
            json!({"type": "Resource", "resource": {"name": "cpu", "current": {"averageUtilization": percent}}})
        });
        put(status, "currentMetrics", joined(own, current));
        if let Some(conditions) = conditions {
            status.insert("conditions".to_owned(), conditions);
        }
    }
}

fn defaults(scaler: &mut Value) {
    let spec = child(scaler, "spec");
    default(spec, "minReplicas", 1);
    if spec.get("metrics").and_then(Value::as_array).is_none_or(Vec::is_empty) {
        spec.insert("metrics".to_owned(), json!([cpu(&json!(CPU_PERCENT))]));
    }
    let Some(behavior) = spec.get_mut("behavior").and_then(Value::as_object_mut) else { return };
    let up = object(behavior.entry("scaleUp").or_insert(Value::Null));
    default(up, "stabilizationWindowSeconds", 0);
    default(up, "selectPolicy", "Max");
    default(
        up,
        "policies",
        json!([{"type": "Pods", "value": 4, "periodSeconds": 15}, {"type": "Percent", "value": 100, "periodSeconds": 15}]),
    );
    let down = object(behavior.entry("scaleDown").or_insert(Value::Null));
    default(down, "selectPolicy", "Max");
    default(down, "policies", json!([{"type": "Percent", "value": 100, "periodSeconds": 15}]));
}

fn validate(scaler: &Value, faults: &mut Faults) {
    let path = FieldPath::new("spec");
    for field in ["kind", "name"] {
        if text(scaler, &["spec", "scaleTargetRef", field]).is_empty() {
            faults.push(FieldError::required(path.child("scaleTargetRef").child(field), ""));
        }
    }
    let least = int(scaler, &["spec", "minReplicas"]).unwrap_or(1);
    if least < 1 {
        let detail = "must be greater than or equal to 1";
        faults.push(FieldError::invalid(path.child("minReplicas"), least, detail));
    }
    let most = int(scaler, &["spec", "maxReplicas"]).unwrap_or(0);
    if most < 1 {
        faults.push(FieldError::invalid(path.child("maxReplicas"), most, "must be greater than 0"));
    }
    if most < least {
        let detail = "must be greater than or equal to `minReplicas`";
        faults.push(FieldError::invalid(path.child("maxReplicas"), most, detail));
    }
    for (index, metric) in list(scaler, &["spec", "metrics"]).iter().enumerate() {
        validate_metric(metric, &path.child("metrics").index(index), faults);
    }
}

/// Types of metrics, and the member that tells of each.
const SOURCES: &[(&str, &str)] = &[
    ("ContainerResource", "containerResource"),
    ("External", "external"),
    ("Object", "object"),
    ("Pods", "pods"),
    ("Resource", "resource"),
];

fn validate_metric(metric: &Value, path: &FieldPath, faults: &mut Faults) {
    let kind = text(metric, &["type"]);
    if kind.is_empty() {
        faults.push(FieldError::required(path.child("type"), "must specify a metric source type"));
        return;
    }
    let Some((_, source)) = SOURCES.iter().find(|(name, _)| *name == kind) else {
        let known: Vec<&str> = SOURCES.iter().map(|(name, _)| *name).collect();
        faults.push(FieldError::not_supported(path.child("type"), kind, &known));
        return;
    };
    if at(metric, &[source]).is_none() {
        let detail = "must populate information for the given metric source";
        faults.push(FieldError::required(path.child(source), detail));
        return;
    }
    for (_, other) in SOURCES.iter().filter(|(_, other)| other != source) {
        if at(metric, &[other]).is_some() {
            let detail = "must populate the given metric source only";
            faults.push(FieldError::forbidden(path.child(other), detail));
        }
    }
    let path = path.child(source);
    if source.ends_with("esource") && text(metric, &[source, "name"]).is_empty() {
        faults.push(FieldError::required(path.child("name"), "must specify a resource name"));
    }
    let target = at(metric, &[source, "target"]).unwrap_or(&Value::Null);
    let kind = text(target, &["type"]);
    if !matches!(kind, "Utilization" | "Value" | "AverageValue") {
        let detail = "must be either Utilization, Value, or AverageValue";
        faults.push(FieldError::invalid(path.child("target").child("type"), kind, detail));
    }
    if let Some(percent) = int(target, &["averageUtilization"]).filter(|n| *n < 1) {
        let path = path.child("target").child("averageUtilization");
        faults.push(FieldError::invalid(path, percent, "must be greater than 0"));
    }
}

fn row(scaler: &Value, now: Timestamp) -> Vec<Value> {
    let spec = |field: &str| int(scaler, &["spec", field]);
    let target = |field: &str| text(scaler, &["spec", "scaleTargetRef", field]);
    vec![
        print::name(scaler),
        json!(format!("{}/{}", target("kind"), target("name"))),
        json!(targets(scaler)),
        spec("minReplicas").map_or(json!("<unset>"), |n| json!(n.to_string())),
        json!(spec("maxReplicas").unwrap_or(0).to_string()),
        json!(int(scaler, &["status", "currentReplicas"]).unwrap_or(0)),
        print::created(scaler, now),
    ]
}

fn targets(scaler: &Value) -> String {
    let wanted = list(scaler, &["spec", "metrics"]);
    if wanted.is_empty() {
        return "<none>".to_owned();
    }
    let measured = list(scaler, &["status", "currentMetrics"]);
    let shown: Vec<String> = wanted
        .iter()
        .enumerate()
        .take(SHOWN_METRICS)
        .map(|(index, metric)| target(metric, measured.get(index).unwrap_or(&Value::Null)))
        .collect();
    match wanted.len().saturating_sub(SHOWN_METRICS) {
        0 => shown.join(", "),
        more => format!("{} + {more} more...", shown.join(", ")),
    }
}

fn target(metric: &Value, measured: &Value) -> String {
    let kind = text(metric, &["type"]);
    let Some((_, source)) = SOURCES.iter().find(|(name, _)| *name == kind) else {
        return "<unknown type>".to_owned();
    };
    let (target, current) = (at(metric, &[source, "target"]), at(measured, &[source, "current"]));
    let show = |value: Option<&Value>| match value {
        Some(Value::String(text)) => text.clone(),
        Some(Value::Number(number)) => format!("{number}%"),
        _ => "<unknown>".to_owned(),
    };
    let field = ["averageValue", "averageUtilization", "value"]
        .into_iter()
        .find(|field| target.is_some_and(|t| t.get(field).is_some()))
        .unwrap_or("value");
    let of = |part: Option<&Value>| show(part.and_then(|part| part.get(field)));
    let pair = format!("{}/{}", of(current), of(target));
    match (*source, field) {
        ("resource" | "containerResource", _) => format!("{}: {pair}", text(metric, &[source, "name"])),
        ("external" | "object", "averageValue") => format!("{pair} (avg)"),
        _ => pair,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_older_form_goes_there_and_back() {
        let mut scaler = json!({"metadata": {"name": "a"}, "spec": {"maxReplicas": 3,
            "scaleTargetRef": {"kind": "Deployment", "name": "d"}, "behavior": {"scaleUp": {}}, "metrics": [
            {"type": "Resource", "resource": {"name": "cpu", "target": {"type": "Utilization", "averageUtilization": 50}}},
            {"type": "Pods", "pods": {"metric": {"name": "m"}, "target": {"type": "AverageValue", "averageValue": "2"}}}]},
            "status": {"currentReplicas": 2, "conditions": [{"type": "AbleToScale", "status": "True"}]}});
        defaults(&mut scaler);
        let whole = scaler.clone();
        assert_eq!(row(&scaler, Timestamp::UNIX_EPOCH)[2], "cpu: <unknown>/50%, <unknown>/2");
        to_v1(&mut scaler);
        assert_eq!(scaler["spec"]["targetCPUUtilizationPercentage"], 50);
        assert!(scaler["metadata"]["annotations"][METRICS].as_str().unwrap().contains("Pods"));
        assert!(scaler["spec"].get("metrics").is_none() && scaler["status"].get("conditions").is_none());
        from_v1(&mut scaler);
        object(&mut scaler["metadata"]).remove("annotations");
        assert_eq!(scaler, whole);
    }

    #[test]
    fn a_scaler_without_a_target_is_refused() {
        let mut scaler = json!({"spec": {"minReplicas": 5, "maxReplicas": 2, "metrics": [{"type": "Odd"}]}});
        defaults(&mut scaler);
        let mut faults = Vec::new();
        validate(&scaler, &mut faults);
        let found: Vec<String> = faults.iter().map(ToString::to_string).collect();
        for part in [
            "spec.scaleTargetRef.kind: Required value",
            "spec.maxReplicas: Invalid value: 2: must be greater than or equal to `minReplicas`",
            "spec.metrics[0].type: Unsupported value: \"Odd\"",
        ] {
            assert!(found.iter().any(|f| f.contains(part)), "{part} in {found:?}");
        }
    }
}
