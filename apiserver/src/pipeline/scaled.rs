//! The Scale of a workload, made of it. Pure; knows no requests.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::LabelSelector;
use serde_json::{Value, json};
use strata_model::selector::Selector;

use crate::types::catalogue::Served;
use crate::types::print;
use crate::value::{at, int, object, put};

/// Where the scale of a built-in type is.
const WANTED: &[&str] = &["spec", "replicas"];

/// Where the wanted replicas of a type are.
pub fn wanted_at(served: &Served) -> Vec<&str> {
    match served.custom.as_ref().and_then(|custom| custom.version().scale.as_ref()) {
        Some(scale) => scale.wanted.iter().map(String::as_str).collect(),
        None => WANTED.to_vec(),
    }
}

/// How many replicas of a workload there are, and which they are.
fn actual(served: &Served, workload: &Value) -> (i64, Option<String>) {
    if let Some(custom) = &served.custom {
        let Some(scale) = &custom.version().scale else { return (0, None) };
        let find =
            |parts: &Vec<String>| parts.iter().try_fold(workload, |value, part| value.get(part)).cloned();
        let selector = scale.selector.as_ref().and_then(find);
        let selector = selector.and_then(|selector| selector.as_str().map(str::to_owned));
        return (find(&scale.actual).and_then(|n| n.as_i64()).unwrap_or(0), selector);
    }
    let selector = at(workload, &["spec", "selector"]).and_then(selector);
    (int(workload, &["status", "replicas"]).unwrap_or(0), selector)
}

/// The scale of a workload.
pub fn of(served: &Served, workload: &Value) -> Value {
    let (replicas, selector) = actual(served, workload);
    let metadata = at(workload, &["metadata"]).cloned().unwrap_or_default();
    let mut kept = json!({});
    for member in ["name", "namespace", "uid", "resourceVersion", "creationTimestamp"] {
        put(object(&mut kept), member, metadata.get(member).cloned());
    }
    let mut scale = json!({
        "apiVersion": "autoscaling/v1",
        "kind": "Scale",
        "metadata": kept,
        "spec": {},
        "status": {"replicas": replicas},
    });
    if let Some(replicas) = int(workload, &wanted_at(served)).filter(|n| *n != 0) {
        scale["spec"]["replicas"] = json!(replicas);
    }
    if let Some(selector) = selector {
        scale["status"]["selector"] = json!(selector);
    }
    scale
}

/// A selector as text: a label selector, or (replication controllers) a plain map of labels.
fn selector(body: &Value) -> Option<String> {
    if body.as_object().is_some_and(|map| !map.is_empty() && map.values().all(Value::is_string)) {
        return Some(print::joined(Some(body)));
    }
    let body = serde_json::from_value::<LabelSelector>(body.clone()).ok()?;
    Selector::from_body(&body).ok().map(|selector| selector.to_string())
}
