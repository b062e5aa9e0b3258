//! What deployments, replica sets, stateful sets and daemon sets share: selector, template and replicas. Knows none of them.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::LabelSelector;
use serde_json::{Value, json};
use strata_model::field::{FieldError, FieldPath};
use strata_model::selector::Selector;

use super::rules::Faults;
use super::{meta, pod_checks, pod_spec, print};
use crate::value::{at, child, default, int, members, object, text};

/// Fills replicas and the template.
pub fn defaults(workload: &mut Value) {
    default(child(workload, "spec"), "replicas", 1);
    template_defaults(workload);
}

/// Fills the template.
pub fn template_defaults(workload: &mut Value) {
    if let Some(template) = child(workload, "spec").get_mut("template") {
        pod_spec::defaults(child(template, "spec"));
        let metadata = child(template, "metadata");
        metadata.remove("creationTimestamp");
    }
}

/// Checks counts, selector and template. `kind` is the word for the type in messages; `claims` are volumes that its
/// pods get beside those of the template.
pub fn validate(workload: &Value, kind: &str, claims: &[&str], faults: &mut Faults) {
    let path = FieldPath::new("spec");
    for field in ["replicas", "minReadySeconds"] {
        not_negative(workload, field, faults);
    }
    let selector = selector(workload, kind, faults);
    let Some(template) = at(workload, &["spec", "template"]) else {
        faults.push(FieldError::required(path.child("template"), ""));
        return;
    };
    let path = path.child("template");
    if selector.is_some_and(|s| !s.matches(&print::labels(template))) {
        let shown = at(template, &["metadata", "labels"]).cloned().unwrap_or_else(|| json!({}));
        let detail = "`selector` does not match template `labels`";
        faults.push(FieldError::invalid(path.child("metadata").child("labels"), shown, detail));
    }
    validate_template(template, kind, &path, claims, faults);
}

/// Checks the template of pods that run for ever.
pub fn validate_template(
    template: &Value,
    kind: &str,
    path: &FieldPath,
    claims: &[&str],
    faults: &mut Faults,
) {
    if let Some(labels) = members(template, &["metadata", "labels"]) {
        meta::validate_labels(labels, &path.child("metadata").child("labels"), faults);
    }
    let spec = at(template, &["spec"]).unwrap_or(&Value::Null);
    pod_checks::validate(spec, &path.child("spec"), claims, faults);
    no_ephemeral(spec, &path.child("spec"), faults);
    let policy = text(spec, &["restartPolicy"]);
    if policy != "Always" {
        faults.push(FieldError::not_supported(
            path.child("spec").child("restartPolicy"),
            policy,
            &["Always"],
        ));
    }
    if at(spec, &["activeDeadlineSeconds"]).is_some() {
        let detail = format!("activeDeadlineSeconds in {kind} is not Supported");
        faults.push(FieldError::forbidden(path.child("spec").child("activeDeadlineSeconds"), detail));
    }
}

/// Checks that a template has no containers that are only added to pods that are there.
pub fn no_ephemeral(spec: &Value, path: &FieldPath, faults: &mut Faults) {
    if at(spec, &["ephemeralContainers"]).is_some() {
        let detail = "ephemeral containers not allowed in pod template";
        faults.push(FieldError::forbidden(path.child("ephemeralContainers"), detail));
    }
}

/// Checks that a count is not negative.
pub fn not_negative(workload: &Value, field: &str, faults: &mut Faults) {
    if let Some(count) = int(workload, &["spec", field]).filter(|n| *n < 0) {
        let path = FieldPath::new("spec").child(field);
        faults.push(FieldError::invalid(path, count, "must be greater than or equal to 0"));
    }
}

fn selector(workload: &Value, kind: &str, faults: &mut Faults) -> Option<Selector> {
    let path = FieldPath::new("spec").child("selector");
    let Some(body) = at(workload, &["spec", "selector"]) else {
        faults.push(FieldError::required(path, ""));
        return None;
    };
    let parsed: LabelSelector = serde_json::from_value(body.clone()).unwrap_or_default();
    match Selector::from_body(&parsed) {
        Ok(selector) if selector.is_everything() => {
            let detail = format!("empty selector is invalid for {kind}");
            faults.push(FieldError::invalid(path, body, detail));
            None
        }
        Ok(selector) => Some(selector),
        Err(error) => {
            faults.push(FieldError::invalid(path, body, error.to_string()));
            None
        }
    }
}

/// The status of a workload that was just made.
pub fn reset_status(workload: &mut Value, status: Value) {
    object(workload).insert("status".to_owned(), status);
}

/// Cells of containers, images and selector.
pub fn wide_cells(workload: &Value) -> [Value; 3] {
    let [names, images] = print::containers(at(workload, &["spec", "template", "spec"]));
    [names, images, print::selector(at(workload, &["spec", "selector"]))]
}
