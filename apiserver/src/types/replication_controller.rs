//! Replication controllers, pod templates and controller revisions: the older and the auxiliary forms of workloads.

use jiff::Timestamp;
use serde_json::{Value, json};
use strata_model::field::{FieldError, FieldPath};

use super::rules::{AGE, Column, Faults, Field, NAME, PLAIN, Rules, column, number, wide};
use super::{check, meta, pod_checks, pod_spec, print, workload};
use crate::value::{at, child, default, flag, int, list, members, text};

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

/// Rules of replication controllers.
pub static REPLICATION_CONTROLLER: Rules = Rules {
    defaults: |controller| {
        workload::defaults(controller);
        let labels = at(controller, &["spec", "template", "metadata", "labels"]).cloned();
        let Some(labels) = labels.filter(|l| l.as_object().is_some_and(|l| !l.is_empty())) else { return };
        let selector = child(controller, "spec").entry("selector").or_insert(Value::Null);
        if selector.as_object().is_none_or(serde_json::Map::is_empty) {
            *selector = labels.clone();
        }
        default(child(controller, "metadata"), "labels", labels);
    },
    create: |controller| workload::reset_status(controller, json!({"replicas": 0})),
    validate: validate_controller,
    warnings: meta::warn_of_dots,
    orphans: true,
    columns: COLUMNS,
    row: controller_row,
    fields: const { &[Field { name: "status.replicas", pointers: &["/status/replicas"], absent: "0" }] },
    ..PLAIN
};

/// Rules of pod templates.
pub static POD_TEMPLATE: Rules = Rules {
    defaults: |template| {
        if let Some(inner) = template.get_mut("template") {
            pod_spec::defaults(child(inner, "spec"));
            child(inner, "metadata").remove("creationTimestamp");
        }
    },
    validate: |template, faults| {
        let path = FieldPath::new("template");
        let spec = at(template, &["template", "spec"]).unwrap_or(&Value::Null);
        pod_checks::validate(spec, &path.child("spec"), &[], faults);
    },
    columns: const {
        &[
            NAME,
            column("Containers", "Names of the containers of the template."),
            column("Images", "Images of the containers of the template."),
            column("Pod Labels", "Labels of pods made from it."),
        ] as &[Column]
    },
    row: |template, _| {
        let [names, images] = print::containers(at(template, &["template", "spec"]));
        let labels = print::pairs(at(template, &["template", "metadata", "labels"]));
        vec![print::name(template), names, images, labels]
    },
    ..PLAIN
};

/// Rules of controller revisions.
pub static CONTROLLER_REVISION: Rules = Rules {
    validate: |revision, faults| {
        check::not_negative(revision, &["revision"], &FieldPath::new(""), faults);
        if at(revision, &["data"]).is_none() {
            faults.push(FieldError::required(FieldPath::new("data"), "data is mandatory"));
        }
    },
    validate_update: |new, old, faults| meta::immutable(new, old, &["data"], faults),
    columns: const {
        &[
            NAME,
            column("Controller", "Whose state it is."),
            number("Revision", "Its place among the states."),
            AGE,
        ] as &[Column]
    },
    row: |revision, now| {
        let owner =
            list(revision, &["metadata", "ownerReferences"]).iter().find(|o| flag(o, &["controller"]));
        let controller = owner.map(|owner| {
            let kind = text(owner, &["kind"]).to_lowercase();
            let group =
                text(owner, &["apiVersion"]).split_once('/').map_or(String::new(), |(g, _)| format!(".{g}"));
            format!("{kind}{group}/{}", text(owner, &["name"]))
        });
        vec![
            print::name(revision),
            print::or_none(&controller.unwrap_or_default()),
            json!(int(revision, &["revision"]).unwrap_or(0)),
            print::created(revision, now),
        ]
    },
    ..PLAIN
};

fn validate_controller(controller: &Value, faults: &mut Faults) {
    let (path, spec) = (FieldPath::new("spec"), at(controller, &["spec"]).unwrap_or(&Value::Null));
    check::not_negative(spec, &["replicas", "minReadySeconds"], &path, faults);
    let selector = members(spec, &["selector"]).filter(|s| !s.is_empty());
    if selector.is_none() {
        faults.push(FieldError::required(path.child("selector"), ""));
    }
    let Some(template) = at(spec, &["template"]) else {
        faults.push(FieldError::required(path.child("template"), ""));
        return;
    };
    let labels = at(template, &["metadata", "labels"]).cloned().unwrap_or_else(|| json!({}));
    if selector.is_some_and(|s| !s.iter().all(|(key, value)| labels.get(key) == Some(value))) {
        let path = path.child("template").child("metadata").child("labels");
        faults.push(FieldError::invalid(path, labels, "`selector` does not match template `labels`"));
    }
    workload::validate_template(template, "ReplicationController", &path.child("template"), &[], faults);
}

fn controller_row(controller: &Value, now: Timestamp) -> Vec<Value> {
    let count = |path: &[&str]| json!(int(controller, path).unwrap_or(0));
    let [names, images] = print::containers(at(controller, &["spec", "template", "spec"]));
    vec![
        print::name(controller),
        count(&["spec", "replicas"]),
        count(&["status", "replicas"]),
        count(&["status", "readyReplicas"]),
        print::created(controller, now),
        names,
        images,
        print::pairs(at(controller, &["spec", "selector"])),
    ]
}
