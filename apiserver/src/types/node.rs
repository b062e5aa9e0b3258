//! Nodes: keep the status that their agent sends, and how they are printed.

use jiff::Timestamp;
use serde_json::{Value, json};
use strata_model::field::{FieldError, FieldPath};
use strata_model::names;
use strata_model::quantity::Quantity;

use super::rules::{AGE, Column, Faults, NAME, PLAIN, Rules, column, switch, wide};
use super::{check, print};
use crate::value::{at, child, flag, list, members, text};

const ROLE_PREFIX: &str = "node-role.kubernetes.io/";
const ROLE_LABEL: &str = "kubernetes.io/role";

const COLUMNS: &[Column] = &[
    NAME,
    column("Status", "Whether the node takes and runs pods."),
    column("Roles", "Roles of the node, from its labels."),
    AGE,
    column("Version", "Version of the node's agent."),
    wide("Internal-IP", "Address within the platform."),
    wide("External-IP", "Address from outside."),
    wide("OS-Image", "Operating system."),
    wide("Kernel-Version", "Kernel."),
    wide("Container-Runtime", "What runs the containers."),
];

/// Rules of nodes.
pub static NODE: Rules = Rules {
    defaults: |node| {
        child(node, "spec");
        child(node, "status");
    },
    validate,
    validate_update: |new, old, faults| {
        // What the node was given by others it keeps.
        for field in ["podCIDR", "providerID"] {
            if !text(old, &["spec", field]).is_empty()
                && at(new, &["spec", field]) != at(old, &["spec", field])
            {
                let detail = format!("node updates may not change {field} except from \"\" to valid");
                faults.push(FieldError::forbidden(FieldPath::new("spec").child(field), detail));
            }
        }
    },
    validate_status,
    columns: COLUMNS,
    row,
    fields: &[switch("spec.unschedulable", &["/spec/unschedulable"])],
    keeps_status: true,
    status_labels: true,
    ..PLAIN
};

const EFFECTS: &[&str] = &["NoExecute", "NoSchedule", "PreferNoSchedule"];

fn validate(node: &Value, faults: &mut Faults) {
    let path = FieldPath::new("spec");
    let mut seen = std::collections::BTreeSet::new();
    for (index, taint) in list(node, &["spec", "taints"]).iter().enumerate() {
        let path = path.child("taints").index(index);
        check::name(taint, "key", names::qualified_name, &path, faults);
        check::optional_name(taint, "value", names::label_value, &path, faults);
        check::known(taint, "effect", EFFECTS, &path, faults);
        if !seen.insert((text(taint, &["key"]), text(taint, &["effect"]))) {
            faults.push(FieldError::duplicate(path, taint));
        }
    }
    let ranges = list(node, &["spec", "podCIDRs"]).iter().filter_map(Value::as_str);
    for range in ranges.chain(Some(text(node, &["spec", "podCIDR"])).filter(|range| !range.is_empty())) {
        if !check::is_cidr(range) {
            faults.push(FieldError::invalid(path.child("podCIDRs"), range, check::NO_CIDR));
        }
    }
    validate_status(node, faults);
}

fn validate_status(node: &Value, faults: &mut Faults) {
    for part in ["capacity", "allocatable"] {
        for name in members(node, &["status", part]).into_iter().flat_map(|amounts| amounts.keys()) {
            if check::quantity(node, &["status", part, name]).is_some_and(|amount| amount < Quantity::ZERO) {
                let path = FieldPath::new("status").child(part).key(name);
                let shown = text(node, &["status", part, name]);
                faults.push(FieldError::invalid(path, shown, check::NOT_NEGATIVE));
            }
        }
    }
}

fn status(node: &Value) -> String {
    let ready = list(node, &["status", "conditions"]).iter().find(|c| text(c, &["type"]) == "Ready");
    let mut words = vec![match ready.map(|c| text(c, &["status"])) {
        Some("True") => "Ready",
        Some(_) => "NotReady",
        None => "Unknown",
    }];
    if flag(node, &["spec", "unschedulable"]) {
        words.push("SchedulingDisabled");
    }
    words.join(",")
}

fn roles(node: &Value) -> String {
    let mut roles: Vec<&str> = members(node, &["metadata", "labels"])
        .into_iter()
        .flatten()
        .filter_map(|(key, value)| match key.strip_prefix(ROLE_PREFIX) {
            Some(role) => Some(role),
            None if key == ROLE_LABEL => value.as_str(),
            None => None,
        })
        .filter(|role| !role.is_empty())
        .collect();
    roles.sort_unstable();
    roles.dedup();
    roles.join(",")
}

fn address<'a>(node: &'a Value, kind: &str) -> &'a str {
    let found = list(node, &["status", "addresses"]).iter().find(|a| text(a, &["type"]) == kind);
    found.map_or("", |a| text(a, &["address"]))
}

fn row(node: &Value, now: Timestamp) -> Vec<Value> {
    let info = |field: &str| match text(node, &["status", "nodeInfo", field]) {
        "" => json!("<unknown>"),
        known => json!(known),
    };
    vec![
        print::name(node),
        json!(status(node)),
        print::or_none(&roles(node)),
        print::created(node, now),
        json!(text(node, &["status", "nodeInfo", "kubeletVersion"])),
        print::or_none(address(node, "InternalIP")),
        print::or_none(address(node, "ExternalIP")),
        info("osImage"),
        info("kernelVersion"),
        info("containerRuntimeVersion"),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_nodes_row_tells_whether_it_takes_pods() {
        let node = json!({"metadata": {"name": "n", "labels": {"node-role.kubernetes.io/worker": "", "kubernetes.io/role": "db"}},
            "spec": {"unschedulable": true}, "status": {"conditions": [{"type": "Ready", "status": "True"}],
            "addresses": [{"type": "InternalIP", "address": "127.0.0.1"}]}});
        let row = row(&node, Timestamp::UNIX_EPOCH);
        assert_eq!(row[1], "Ready,SchedulingDisabled");
        assert_eq!(row[2], "db,worker");
        assert_eq!(row[5], "127.0.0.1");
        assert_eq!(status(&json!({})), "Unknown");
    }
}
