//! Roles and their bindings: stored and checked here; what they allow is decided elsewhere.

use serde_json::{Value, json};
use strata_model::field::{FieldError, FieldPath};
use strata_model::names;

use super::rules::{AGE, Column, Faults, NAME, PLAIN, Rules, column, wide};
use super::{check, print};
use crate::value::{at, child, default, list, object, text};

const GROUP: &str = "rbac.authorization.k8s.io";

const ROLE_COLUMNS: &[Column] = &[NAME, column("Created At", "When it was created.")];

/// Rules of roles.
pub static ROLE: Rules = Rules {
    name: names::path_segment,
    defaults: |role| default(object(role), "rules", json!([])),
    validate: |role, faults| validate_rules(role, true, faults),
    columns: ROLE_COLUMNS,
    row: print::name_and_creation,
    create_on_update: true,
    ..PLAIN
};

/// Rules of cluster roles.
pub static CLUSTER_ROLE: Rules = Rules {
    validate: |role, faults| {
        validate_rules(role, false, faults);
        let path = FieldPath::new("aggregationRule");
        let Some(aggregation) = at(role, &["aggregationRule"]) else { return };
        let path = path.child("clusterRoleSelectors");
        let selectors = list(aggregation, &["clusterRoleSelectors"]);
        if selectors.is_empty() {
            let detail = "at least one clusterRoleSelector required if aggregationRule is non-nil";
            faults.push(FieldError::required(path.clone(), detail));
        }
        for (index, selector) in selectors.iter().enumerate() {
            check::selector(Some(selector), &path.index(index), faults);
        }
    },
    ..ROLE
};

fn validate_rules(role: &Value, in_namespace: bool, faults: &mut Faults) {
    for (index, rule) in list(role, &["rules"]).iter().enumerate() {
        let path = FieldPath::new("rules").index(index);
        let has = |part: &str| !list(rule, &[part]).is_empty();
        if !has("verbs") {
            faults.push(FieldError::required(path.child("verbs"), "verbs must contain at least one value"));
        }
        if has("nonResourceURLs") {
            let shown = at(rule, &["nonResourceURLs"]);
            let path = path.child("nonResourceURLs");
            if in_namespace {
                let detail = "namespaced rules cannot apply to non-resource URLs";
                faults.push(FieldError::invalid(path.clone(), shown, detail));
            }
            if has("apiGroups") || has("resources") || has("resourceNames") {
                let detail = "rules cannot apply to both regular resources and non-resource URLs";
                faults.push(FieldError::invalid(path, shown, detail));
            }
            continue;
        }
        if !has("apiGroups") {
            let detail = "resource rules must supply at least one api group";
            faults.push(FieldError::required(path.child("apiGroups"), detail));
        }
        if !has("resources") {
            let detail = "resource rules must supply at least one resource";
            faults.push(FieldError::required(path.child("resources"), detail));
        }
    }
}

/// Rules of role bindings.
pub static ROLE_BINDING: Rules = Rules {
    name: names::path_segment,
    defaults: |binding| {
        default(child(binding, "roleRef"), "apiGroup", GROUP);
        for subject in binding.get_mut("subjects").and_then(Value::as_array_mut).into_iter().flatten() {
            if matches!(text(subject, &["kind"]), "User" | "Group") {
                default(object(subject), "apiGroup", GROUP);
            }
        }
    },
    validate: |binding, faults| validate_binding(binding, &["Role", "ClusterRole"], faults),
    validate_update: |new, old, faults| {
        if at(new, &["roleRef"]) != at(old, &["roleRef"]) {
            let shown = at(new, &["roleRef"]);
            faults.push(FieldError::invalid(FieldPath::new("roleRef"), shown, "cannot change roleRef"));
        }
    },
    columns: const {
        &[
            NAME,
            column("Role", "The role that is given."),
            AGE,
            wide("Users", "To whom: users."),
            wide("Groups", "To whom: groups."),
            wide("ServiceAccounts", "To whom: service accounts."),
        ] as &[Column]
    },
    row: |binding, now| {
        let of = |kind: &str| {
            let subjects = list(binding, &["subjects"]).iter().filter(|s| text(s, &["kind"]) == kind);
            let names: Vec<String> = subjects
                .map(|s| match text(s, &["namespace"]) {
                    "" => text(s, &["name"]).to_owned(),
                    namespace => format!("{namespace}/{}", text(s, &["name"])),
                })
                .collect();
            json!(names.join(", "))
        };
        let role = |field: &str| text(binding, &["roleRef", field]);
        vec![
            print::name(binding),
            json!(format!("{}/{}", role("kind"), role("name"))),
            print::created(binding, now),
            of("User"),
            of("Group"),
            of("ServiceAccount"),
        ]
    },
    create_on_update: true,
    ..PLAIN
};

/// Rules of cluster role bindings.
pub static CLUSTER_ROLE_BINDING: Rules =
    Rules { validate: |binding, faults| validate_binding(binding, &["ClusterRole"], faults), ..ROLE_BINDING };

fn validate_binding(binding: &Value, roles: &[&str], faults: &mut Faults) {
    let (path, role) = (FieldPath::new("roleRef"), at(binding, &["roleRef"]).unwrap_or(&Value::Null));
    let group = text(role, &["apiGroup"]);
    if group != GROUP {
        faults.push(FieldError::not_supported(path.child("apiGroup"), group, &[GROUP]));
    }
    let kind = text(role, &["kind"]);
    if !roles.contains(&kind) {
        faults.push(FieldError::not_supported(path.child("kind"), kind, roles));
    }
    check::name(role, "name", names::path_segment, &path, faults);
    let placed = !text(binding, &["metadata", "namespace"]).is_empty();
    for (index, subject) in list(binding, &["subjects"]).iter().enumerate() {
        let path = FieldPath::new("subjects").index(index);
        check::required(subject, "name", &path, faults);
        let group = text(subject, &["apiGroup"]);
        match text(subject, &["kind"]) {
            "ServiceAccount" => {
                if !group.is_empty() {
                    faults.push(FieldError::not_supported(path.child("apiGroup"), group, &[""]));
                }
                if !placed {
                    check::required(subject, "namespace", &path, faults);
                }
            }
            "User" | "Group" => {
                if group != GROUP {
                    faults.push(FieldError::not_supported(path.child("apiGroup"), group, &[GROUP]));
                }
            }
            other => {
                let known = &["ServiceAccount", "User", "Group"];
                faults.push(FieldError::not_supported(path.child("kind"), other, known));
            }
        }
    }
}
