//! Roles and their bindings: what they look like, and that nobody grants what they do not hold. What they allow is
//! decided elsewhere.

use serde_json::{Value, json};
use strata_model::field::{FieldError, FieldPath};
use strata_model::names;
use strata_model::resource::{ResourceType, builtin};

use super::rules::{AGE, Around, Column, Faults, NAME, PLAIN, Rules, Unsettled, column, wide};
use super::{check, print};
use crate::authz::Attributes;
use crate::rbac::cover;
use crate::rbac::rule::Rule;
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
    settle: Some(may_grant),
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

/// The type of roles in a namespace, or (empty) of those beside namespaces.
fn role_type(namespace: &str) -> &'static ResourceType {
    if namespace.is_empty() { &builtin::CLUSTER_ROLE } else { &builtin::ROLE }
}

/// Whether the writer may use a verb on a role of a type, by name, in a namespace.
fn may(around: &dyn Around, verb: &str, role: (&ResourceType, &str), namespace: &str) -> bool {
    let (type_, name) = role;
    let (group, resource) = (GROUP, &*type_.id.resource);
    let asked = Attributes { verb, group, resource, subresource: "", namespace, name };
    around.policy().allows(around.user(), &asked)
}

/// Nobody writes rules into a role that they do not hold themselves, unless they may `escalate` it.
fn may_grant(role: &mut Value, old: Option<&Value>, around: &dyn Around) -> Result<(), Unsettled> {
    let same = |part: &str| old.is_some_and(|old| old.get(part) == role.get(part));
    if same("rules") && same("aggregationRule") {
        return Ok(());
    }
    let (namespace, name) = (text(role, &["metadata", "namespace"]), text(role, &["metadata", "name"]));
    if may(around, "escalate", (role_type(namespace), name), namespace) {
        return Ok(());
    }
    let gathers = |role: &Value| at(role, &["aggregationRule"]).is_some_and(|rule| !rule.is_null());
    let (policy, user) = (around.policy(), around.user());
    if (gathers(role) || old.is_some_and(gathers))
        && policy.escalation(user, "", &cover::everything()).is_some()
    {
        let why = "must have cluster-admin privileges to use the aggregationRule";
        return Err(Unsettled::Forbidden(why.to_owned()));
    }
    refuse(policy.escalation(user, namespace, &Rule::read_all(role)))
}

/// Nobody binds a role whose rules they do not hold themselves, unless they may `bind` it.
fn may_bind(binding: &mut Value, old: Option<&Value>, around: &dyn Around) -> Result<(), Unsettled> {
    let same = |part: &str| old.is_some_and(|old| old.get(part) == binding.get(part));
    if same("roleRef") && same("subjects") {
        return Ok(());
    }
    let namespace = text(binding, &["metadata", "namespace"]);
    let (kind, name) = (text(binding, &["roleRef", "kind"]), text(binding, &["roleRef", "name"]));
    let place = if kind == builtin::ROLE.kind { namespace } else { "" };
    let type_ = role_type(place);
    if may(around, "bind", (type_, name), namespace) {
        return Ok(());
    }
    let role = around.get(&type_.id, place, name);
    let role = role.ok_or_else(|| Unsettled::Missing(type_, name.to_owned()))?;
    refuse(around.policy().escalation(around.user(), namespace, &Rule::read_all(&role)))
}

fn refuse(why: Option<String>) -> Result<(), Unsettled> {
    why.map_or(Ok(()), |why| Err(Unsettled::Forbidden(why)))
}

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
    settle: Some(may_bind),
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
