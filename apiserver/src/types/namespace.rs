//! Namespaces: made with the finalizer that keeps them until they are empty.

use jiff::Timestamp;
use serde_json::{Value, json};
use strata_model::names;

use super::print;
use super::rules::{AGE, Column, NAME, PLAIN, Rules, column, field};
use crate::value::{at, child, default, list, object, put, text};

/// The label that names the namespace.
pub const NAME_LABEL: &str = "kubernetes.io/metadata.name";
/// The entry of `spec.finalizers` that the namespace controller removes when all content is gone.
pub const FINALIZER: &str = "kubernetes";
/// Namespaces that are made at start.
pub const AT_START: &[&str] = &["default", "kube-system", "kube-public", "kube-node-lease"];
/// Namespaces that may not be deleted.
pub const PROTECTED: &[&str] = &["default", "kube-system", "kube-public"];

const COLUMNS: &[Column] = &[NAME, column("Status", "Active, or Terminating while its content goes."), AGE];

/// Rules of namespaces.
pub static NAMESPACE: Rules = Rules {
    name: names::dns_label,
    defaults,
    create,
    update,
    columns: COLUMNS,
    row,
    fields: const { &[field("status.phase", &["/status/phase"])] },
    holds: |namespace| !(list(namespace, &["metadata", "finalizers"]).is_empty() && is_finalized(namespace)),
    mark: |namespace| drop(child(namespace, "status").insert("phase".to_owned(), json!("Terminating"))),
    encloses: true,
    protected: PROTECTED,
    ..PLAIN
};

/// Whether the namespace controller has said that all content is gone.
pub fn is_finalized(namespace: &Value) -> bool {
    list(namespace, &["spec", "finalizers"]).is_empty()
}

fn defaults(namespace: &mut Value) {
    let name = text(namespace, &["metadata", "name"]).to_owned();
    if !name.is_empty() {
        let labels = child(namespace, "metadata").entry("labels").or_insert(Value::Null);
        object(labels).insert(NAME_LABEL.to_owned(), json!(name));
    }
    child(namespace, "spec");
    default(child(namespace, "status"), "phase", "Active");
}

fn create(namespace: &mut Value) {
    let mut finalizers =
        at(namespace, &["spec", "finalizers"]).and_then(Value::as_array).cloned().unwrap_or_default();
    if !finalizers.contains(&json!(FINALIZER)) {
        finalizers.push(json!(FINALIZER));
    }
    child(namespace, "spec").insert("finalizers".to_owned(), finalizers.into());
    object(namespace).insert("status".to_owned(), json!({"phase": "Active"}));
}

/// Only `finalize` changes `spec.finalizers`.
fn update(new: &mut Value, old: &Value) {
    put(child(new, "spec"), "finalizers", at(old, &["spec", "finalizers"]).cloned());
}

fn row(namespace: &Value, now: Timestamp) -> Vec<Value> {
    let phase = json!(text(namespace, &["status", "phase"]));
    vec![print::name(namespace), phase, print::created(namespace, now)]
}
