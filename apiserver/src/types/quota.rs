//! Quotas and limits: how much a namespace may have, and how much one thing in it.

use serde_json::{Map, Value, json};
use strata_model::field::{FieldError, FieldPath};
use strata_model::names;
use strata_model::quantity::Quantity;

use super::rules::{AGE, Column, Faults, NAME, PLAIN, Rules, column};
use super::{check, pod_spec, print};
use crate::value::{at, child, list, members, object, text};

/// Names of what a quota bounds that stand without a domain.
const STANDARD: &[&str] = &[
    "configmaps",
    "cpu",
    "ephemeral-storage",
    "limits.cpu",
    "limits.ephemeral-storage",
    "limits.memory",
    "memory",
    "persistentvolumeclaims",
    "pods",
    "replicationcontrollers",
    "requests.cpu",
    "requests.ephemeral-storage",
    "requests.memory",
    "requests.storage",
    "resourcequotas",
    "secrets",
    "services",
    "services.loadbalancers",
    "services.nodeports",
];
/// Those that count things.
const COUNTS: &[&str] = &[
    "configmaps",
    "persistentvolumeclaims",
    "pods",
    "replicationcontrollers",
    "resourcequotas",
    "secrets",
    "services",
    "services.loadbalancers",
    "services.nodeports",
];

/// Rules of quotas.
pub static RESOURCE_QUOTA: Rules = Rules {
    defaults: |quota| {
        pod_spec::amounts(child(quota, "spec").get_mut("hard"));
        child(quota, "status");
    },
    create: |quota| drop(object(quota).insert("status".to_owned(), json!({}))),
    validate: validate_quota,
    validate_update: |new, old, faults| check::unchanged(new, old, &[&["spec", "scopes"]], faults),
    columns: const {
        &[
            NAME,
            AGE,
            column("Request", "Amounts asked for and bounds on them."),
            column("Limit", "Limits given and bounds on them."),
        ] as &[Column]
    },
    row: |quota, now| {
        let cell = |limits: bool| {
            let hard = members(quota, &["status", "hard"]).or_else(|| members(quota, &["spec", "hard"]));
            let parts: Vec<String> = hard
                .into_iter()
                .flatten()
                .filter(|(name, _)| name.starts_with("limits") == limits)
                .map(|(name, bound)| {
                    let used = text(quota, &["status", "used", name]);
                    let used = if used.is_empty() { "0" } else { used };
                    format!("{name}: {used}/{}", bound.as_str().unwrap_or_default())
                })
                .collect();
            json!(parts.join(", "))
        };
        vec![print::name(quota), print::created(quota, now), cell(false), cell(true)]
    },
    ..PLAIN
};

fn validate_quota(quota: &Value, faults: &mut Faults) {
    let path = FieldPath::new("spec").child("hard");
    for (name, amount) in members(quota, &["spec", "hard"]).into_iter().flatten() {
        let at = path.key(name);
        if !name.contains('/') && !STANDARD.contains(&name.as_str()) {
            let detail = "must be a standard resource for quota";
            faults.push(FieldError::invalid(at.clone(), name, detail));
        } else if let Some(fault) = names::qualified_name(name) {
            faults.push(FieldError::invalid(at.clone(), name, fault));
        }
        let Some(parsed) = amount.as_str().and_then(|text| text.parse::<Quantity>().ok()) else { continue };
        if parsed < Quantity::ZERO {
            faults.push(FieldError::invalid(at.clone(), amount, check::NOT_NEGATIVE));
        }
        let counts = COUNTS.contains(&name.as_str()) || name.starts_with("count/");
        if counts && parsed.milli() % 1000 != 0 {
            faults.push(FieldError::invalid(at, amount, "must be an integer"));
        }
    }
    let scopes = [
        "BestEffort",
        "CrossNamespacePodAffinity",
        "NotBestEffort",
        "NotTerminating",
        "PriorityClass",
        "Terminating",
        "VolumeAttributesClass",
    ];
    for scope in list(quota, &["spec", "scopes"]).iter().filter_map(Value::as_str) {
        if !scopes.contains(&scope) {
            let path = FieldPath::new("spec").child("scopes");
            faults.push(FieldError::invalid(path, scope, "unsupported scope"));
        }
    }
}

/// Rules of limits.
pub static LIMIT_RANGE: Rules = Rules {
    defaults: |range| {
        let spec = child(range, "spec");
        for limit in spec.get_mut("limits").and_then(Value::as_array_mut).into_iter().flatten() {
            limit_defaults(limit);
        }
    },
    validate: validate_range,
    columns: const { &[NAME, column("Created At", "When it was created.")] as &[Column] },
    row: print::name_and_creation,
    create_on_update: true,
    ..PLAIN
};

const PARTS: [&str; 5] = ["max", "min", "default", "defaultRequest", "maxLimitRequestRatio"];

fn limit_defaults(limit: &mut Value) {
    for part in PARTS {
        pod_spec::amounts(limit.get_mut(part));
    }
    if text(limit, &["type"]) != "Container" {
        return;
    }
    let part = |limit: &Value, name: &str| members(limit, &[name]).cloned().unwrap_or_default();
    let (max, min, mut given) = (part(limit, "max"), part(limit, "min"), part(limit, "default"));
    for (name, amount) in max {
        given.entry(name).or_insert(amount);
    }
    let mut asked = part(limit, "defaultRequest");
    for (name, amount) in given.iter().chain(&min) {
        asked.entry(name.clone()).or_insert_with(|| amount.clone());
    }
    let mut set = |name: &str, amounts: Map<String, Value>| {
        if !amounts.is_empty() {
            object(limit).insert(name.to_owned(), amounts.into());
        }
    };
    set("default", given);
    set("defaultRequest", asked);
}

fn validate_range(range: &Value, faults: &mut Faults) {
    let path = FieldPath::new("spec").child("limits");
    let mut seen = Vec::new();
    for (index, limit) in list(range, &["spec", "limits"]).iter().enumerate() {
        let path = path.index(index);
        let kind = check::required(limit, "type", &path, faults);
        if seen.contains(&kind) {
            faults.push(FieldError::duplicate(path.child("type"), kind));
        }
        seen.push(kind);
        if kind == "Pod" {
            for part in ["default", "defaultRequest"] {
                if at(limit, &[part]).is_some() {
                    let detail = "may not be specified when `type` is 'Pod'";
                    faults.push(FieldError::forbidden(path.child(part), detail));
                }
            }
        }
        validate_limit(limit, &path, faults);
    }
}

fn validate_limit(limit: &Value, path: &FieldPath, faults: &mut Faults) {
    let amount = |part: &str, name: &str| check::quantity(limit, &[part, name]);
    // What must not be greater than what, and the words for it.
    let order = [
        ("min", "max", "min value", "max value"),
        ("defaultRequest", "max", "default request value", "max value"),
        ("default", "max", "default value", "max value"),
        ("min", "defaultRequest", "min value", "default request value"),
        ("min", "default", "min value", "default value"),
        ("defaultRequest", "default", "default request value", "default limit value"),
    ];
    for (low, high, low_words, high_words) in order {
        for name in members(limit, &[low]).into_iter().flat_map(Map::keys) {
            if let (Some(small), Some(large)) = (amount(low, name), amount(high, name))
                && small > large
            {
                let shown = text(limit, &[low, name]);
                let detail = format!(
                    "{low_words} {shown} is greater than {high_words} {}",
                    text(limit, &[high, name])
                );
                faults.push(FieldError::invalid(path.child(low).key(name), shown, detail));
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use jiff::Timestamp;

    #[test]
    fn limits_fill_each_other_and_are_in_order() {
        let mut limit = json!({"type": "Container", "max": {"cpu": "1000m"}, "min": {"memory": "64Mi"}});
        limit_defaults(&mut limit);
        assert_eq!(limit["default"], json!({"cpu": "1"}));
        assert_eq!(limit["defaultRequest"], json!({"cpu": "1", "memory": "64Mi"}));
        limit["min"]["cpu"] = json!("2");
        let mut faults = Vec::new();
        validate_limit(&limit, &FieldPath::new("l"), &mut faults);
        assert!(faults[0].to_string().contains("min value 2 is greater than max value 1"), "{faults:?}");
    }

    #[test]
    fn quotas_bound_known_things_by_whole_numbers() {
        let quota =
            json!({"spec": {"hard": {"pods": "1500m", "cpu": "-1", "count/jobs.batch": "3", "odd": "1"}}});
        let mut faults = Vec::new();
        validate_quota(&quota, &mut faults);
        assert_eq!(faults.len(), 3, "{faults:?}");
        let quota = json!({"metadata": {"name": "q"}, "spec": {"hard": {"pods": "5", "limits.cpu": "2"}}, "status": {"used": {"pods": "1"}}});
        let row = (RESOURCE_QUOTA.row)(&quota, Timestamp::UNIX_EPOCH);
        assert_eq!(row[2..], [json!("pods: 1/5"), json!("limits.cpu: 0/2")]);
    }
}
