//! Checks of a pod's spec, shared by pods and templates. Knows no object around the spec.

use std::collections::BTreeSet;

use serde_json::Value;
use strata_model::field::{FieldError, FieldPath};
use strata_model::names;
use strata_model::quantity::Quantity;

use super::check::{at_least, one_of, port as port_number, port_name};
use super::rules::Faults;
use crate::value::{at, int, list, members, text};

const RESTART_POLICIES: &[&str] = &["Always", "OnFailure", "Never"];
const DNS_POLICIES: &[&str] = &["ClusterFirstWithHostNet", "ClusterFirst", "Default", "None"];
const PULL_POLICIES: &[&str] = &["Always", "IfNotPresent", "Never"];
const PROTOCOLS: &[&str] = &["SCTP", "TCP", "UDP"];
const HANDLERS: &[&str] = &["exec", "httpGet", "tcpSocket", "grpc"];

/// Checks a pod spec; `claims` are volumes that the pod gets beside its own.
pub fn validate(spec: &Value, path: &FieldPath, claims: &[&str], faults: &mut Faults) {
    let mut volumes = volumes(spec, path, faults);
    volumes.extend(claims);
    let mut names = BTreeSet::new();
    if list(spec, &["containers"]).is_empty() {
        faults.push(FieldError::required(path.child("containers"), ""));
    }
    for lists in ["initContainers", "containers"] {
        for (index, found) in list(spec, &[lists]).iter().enumerate() {
            container(found, &path.child(lists).index(index), &volumes, &mut names, faults);
        }
    }
    one_of(spec, "restartPolicy", RESTART_POLICIES, path, faults);
    one_of(spec, "dnsPolicy", DNS_POLICIES, path, faults);
    at_least(spec, "terminationGracePeriodSeconds", 0, path, faults);
    at_least(spec, "activeDeadlineSeconds", 1, path, faults);
    if let Some(selector) = members(spec, &["nodeSelector"]) {
        super::meta::validate_labels(selector, &path.child("nodeSelector"), faults);
    }
    for field in ["serviceAccountName", "nodeName"] {
        let name = text(spec, &[field]);
        if !name.is_empty()
            && let Some(fault) = names::dns_subdomain(name)
        {
            faults.push(FieldError::invalid(path.child(field), name, fault));
        }
    }
    tolerations(spec, path, faults);
}

fn volumes<'a>(spec: &'a Value, path: &FieldPath, faults: &mut Faults) -> BTreeSet<&'a str> {
    let path = path.child("volumes");
    let mut seen = BTreeSet::new();
    for (index, volume) in list(spec, &["volumes"]).iter().enumerate() {
        let name = text(volume, &["name"]);
        check_name(name, &path.index(index).child("name"), faults);
        if !name.is_empty() && !seen.insert(name) {
            faults.push(FieldError::duplicate(path.index(index).child("name"), name));
        }
        let sources = members(volume, &[]).map_or(0, |m| m.keys().filter(|k| *k != "name").count());
        if sources > 1 {
            faults.push(FieldError::forbidden(path.index(index), "may not specify more than 1 volume type"));
        }
    }
    seen
}

fn check_name(name: &str, path: &FieldPath, faults: &mut Faults) {
    if name.is_empty() {
        faults.push(FieldError::required(path.clone(), ""));
    } else if let Some(fault) = names::dns_label(name) {
        faults.push(FieldError::invalid(path.clone(), name, fault));
    }
}

fn container<'a>(
    container: &'a Value,
    path: &FieldPath,
    volumes: &BTreeSet<&str>,
    names: &mut BTreeSet<&'a str>,
    faults: &mut Faults,
) {
    let name = text(container, &["name"]);
    check_name(name, &path.child("name"), faults);
    if !name.is_empty() && !names.insert(name) {
        faults.push(FieldError::duplicate(path.child("name"), name));
    }
    let image = text(container, &["image"]);
    if image.is_empty() {
        faults.push(FieldError::required(path.child("image"), ""));
    } else if image != image.trim() {
        let detail = "must not have leading or trailing whitespace";
        faults.push(FieldError::invalid(path.child("image"), image, detail));
    }
    one_of(container, "imagePullPolicy", PULL_POLICIES, path, faults);
    ports(container, path, faults);
    env(container, path, faults);
    mounts(container, path, volumes, faults);
    resources(container, path, faults);
    for name in ["livenessProbe", "readinessProbe", "startupProbe"] {
        if let Some(found) = at(container, &[name]) {
            probe(found, &path.child(name), name != "readinessProbe", faults);
        }
    }
}

fn ports(container: &Value, path: &FieldPath, faults: &mut Faults) {
    let mut names = BTreeSet::new();
    for (index, port) in list(container, &["ports"]).iter().enumerate() {
        let path = path.child("ports").index(index);
        let name = text(port, &["name"]);
        if !name.is_empty() {
            if let Some(fault) = port_name(name) {
                faults.push(FieldError::invalid(path.child("name"), name, fault));
            } else if !names.insert(name) {
                faults.push(FieldError::duplicate(path.child("name"), name));
            }
        }
        match int(port, &["containerPort"]) {
            None | Some(0) => faults.push(FieldError::required(path.child("containerPort"), "")),
            Some(number) => port_number(number, path.child("containerPort"), faults),
        }
        if let Some(number) = int(port, &["hostPort"]).filter(|n| *n != 0) {
            port_number(number, path.child("hostPort"), faults);
        }
        one_of(port, "protocol", PROTOCOLS, &path, faults);
    }
}

fn env(container: &Value, path: &FieldPath, faults: &mut Faults) {
    for (index, variable) in list(container, &["env"]).iter().enumerate() {
        let path = path.child("env").index(index);
        let name = text(variable, &["name"]);
        if name.is_empty() {
            faults.push(FieldError::required(path.child("name"), ""));
        } else if name.contains('=') || !name.bytes().all(|b| b.is_ascii_graphic() || b == b' ') {
            let detail = "must consist of printable ASCII characters other than '='";
            faults.push(FieldError::invalid(path.child("name"), name, detail));
        }
        if at(variable, &["valueFrom"]).is_some() && !text(variable, &["value"]).is_empty() {
            let detail = "may not be specified when `value` is not empty";
            faults.push(FieldError::invalid(path.child("valueFrom"), "", detail));
        }
    }
}

fn mounts(container: &Value, path: &FieldPath, volumes: &BTreeSet<&str>, faults: &mut Faults) {
    let mut seen = BTreeSet::new();
    for (index, mount) in list(container, &["volumeMounts"]).iter().enumerate() {
        let path = path.child("volumeMounts").index(index);
        let (name, place) = (text(mount, &["name"]), text(mount, &["mountPath"]));
        if name.is_empty() {
            faults.push(FieldError::required(path.child("name"), ""));
        } else if !volumes.contains(name) {
            faults.push(FieldError::not_found(path.child("name"), name));
        }
        if place.is_empty() {
            faults.push(FieldError::required(path.child("mountPath"), ""));
        } else if !seen.insert(place) {
            faults.push(FieldError::invalid(path.child("mountPath"), place, "must be unique"));
        }
    }
}

fn resources(container: &Value, path: &FieldPath, faults: &mut Faults) {
    let path = path.child("resources");
    let amount = |part: &str, name: &str| -> Option<Quantity> {
        at(container, &["resources", part, name]).and_then(Value::as_str).and_then(|t| t.parse().ok())
    };
    for part in ["limits", "requests"] {
        for name in members(container, &["resources", part]).into_iter().flat_map(|m| m.keys()) {
            let found = amount(part, name);
            if found.is_some_and(|q| q < Quantity::ZERO) {
                let shown = text(container, &["resources", part, name]);
                let detail = "must be greater than or equal to 0";
                faults.push(FieldError::invalid(path.child(part).key(name), shown, detail));
            }
            if part == "requests"
                && let (Some(request), Some(limit)) = (found, amount("limits", name))
                && request > limit
            {
                let shown = text(container, &["resources", part, name]);
                let detail = format!("must be less than or equal to {name} limit of {limit}");
                faults.push(FieldError::invalid(path.child(part), shown, detail));
            }
        }
    }
}

fn probe(probe: &Value, path: &FieldPath, single_success: bool, faults: &mut Faults) {
    let handlers: Vec<&&str> = HANDLERS.iter().filter(|h| at(probe, &[h]).is_some()).collect();
    match handlers.as_slice() {
        [] => faults.push(FieldError::required(path.clone(), "must specify a handler type")),
        [_] => {}
        [_, second, ..] => {
            let detail = "may not specify more than 1 handler type";
            faults.push(FieldError::forbidden(path.child(second), detail));
        }
    }
    at_least(probe, "initialDelaySeconds", 0, path, faults);
    for field in ["timeoutSeconds", "periodSeconds", "successThreshold", "failureThreshold"] {
        at_least(probe, field, 0, path, faults);
    }
    if single_success && int(probe, &["successThreshold"]).is_some_and(|n| n != 1) {
        let shown = int(probe, &["successThreshold"]);
        faults.push(FieldError::invalid(path.child("successThreshold"), shown, "must be 1"));
    }
    if at(probe, &["exec"]).is_some() && list(probe, &["exec", "command"]).is_empty() {
        faults.push(FieldError::required(path.child("exec").child("command"), ""));
    }
}

fn tolerations(spec: &Value, path: &FieldPath, faults: &mut Faults) {
    for (index, toleration) in list(spec, &["tolerations"]).iter().enumerate() {
        let path = path.child("tolerations").index(index);
        one_of(toleration, "effect", &["NoSchedule", "PreferNoSchedule", "NoExecute"], &path, faults);
        one_of(toleration, "operator", &["Equal", "Exists"], &path, faults);
        let key = text(toleration, &["key"]);
        if key.is_empty() && text(toleration, &["operator"]) != "Exists" {
            let detail =
                "operator must be Exists when `key` is empty, which means \"match all values and all keys\"";
            faults.push(FieldError::invalid(path.child("operator"), text(toleration, &["operator"]), detail));
        }
    }
}
