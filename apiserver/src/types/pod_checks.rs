//! Checks of a pod's spec, shared by pods and templates. Knows no object around the spec.

use std::collections::BTreeSet;

use serde_json::Value;
use strata_model::field::{FieldError, FieldPath};
use strata_model::names;
use strata_model::quantity::Quantity;

use super::check::{at_least, one_of, port as port_number, port_name};
use super::rules::Faults;
use super::{pod_place, pod_volumes};
use crate::value::{at, flag, int, list, members, text};

const RESTART_POLICIES: &[&str] = &["Always", "OnFailure", "Never"];
const DNS_POLICIES: &[&str] = &["ClusterFirstWithHostNet", "ClusterFirst", "Default", "None"];
const PULL_POLICIES: &[&str] = &["Always", "IfNotPresent", "Never"];
const PROTOCOLS: &[&str] = &["SCTP", "TCP", "UDP"];
const HANDLERS: &[&str] = &["exec", "httpGet", "tcpSocket", "grpc"];

/// Checks a pod spec; `claims` are volumes that the pod gets beside its own.
pub fn validate(spec: &Value, path: &FieldPath, claims: &[&str], faults: &mut Faults) {
    let mut volumes = pod_volumes::validate(spec, path, faults);
    volumes.extend(claims);
    let mut names = BTreeSet::new();
    if list(spec, &["containers"]).is_empty() {
        faults.push(FieldError::required(path.child("containers"), ""));
    }
    for lists in ["initContainers", "containers", "ephemeralContainers"] {
        for (index, found) in list(spec, &[lists]).iter().enumerate() {
            let path = path.child(lists).index(index);
            container(found, &path, &volumes, &mut names, faults);
            match lists {
                "initContainers" => init_container(found, &path, faults),
                "containers" if at(found, &["restartPolicy"]).is_some() => {
                    let detail = "may not be set for non-init containers";
                    faults.push(FieldError::forbidden(path.child("restartPolicy"), detail));
                }
                "ephemeralContainers" => ephemeral_container(found, spec, &path, faults),
                _ => {}
            }
        }
    }
    host_ports(spec, path, faults);
    security(at(spec, &["securityContext"]), &path.child("securityContext"), faults);
    if text(spec, &["dnsPolicy"]) == "None" && list(spec, &["dnsConfig", "nameservers"]).is_empty() {
        let detail = "must provide at least one DNS nameserver when `dnsPolicy` is None";
        faults.push(FieldError::required(path.child("dnsConfig").child("nameservers"), detail));
    }
    if flag(spec, &["shareProcessNamespace"]) && flag(spec, &["hostPID"]) {
        let detail = "ShareProcessNamespace and HostPID cannot both be enabled";
        faults.push(FieldError::invalid(path.child("shareProcessNamespace"), true, detail));
    }
    one_of(spec, "restartPolicy", RESTART_POLICIES, path, faults);
    one_of(spec, "dnsPolicy", DNS_POLICIES, path, faults);
    at_least(spec, "terminationGracePeriodSeconds", 0, path, faults);
    at_least(spec, "activeDeadlineSeconds", 1, path, faults);
    for field in ["serviceAccountName", "nodeName"] {
        let name = text(spec, &[field]);
        if !name.is_empty()
            && let Some(fault) = names::dns_subdomain(name)
        {
            faults.push(FieldError::invalid(path.child(field), name, fault));
        }
    }
    pod_place::validate(spec, path, faults);
}

/// What only containers that go on running may have.
fn init_container(container: &Value, path: &FieldPath, faults: &mut Faults) {
    if text(container, &["restartPolicy"]) == "Always" {
        return;
    }
    for field in ["lifecycle", "livenessProbe", "readinessProbe", "startupProbe"] {
        if at(container, &[field]).is_some() {
            let detail = "may not be set for init containers without restartPolicy=Always";
            faults.push(FieldError::forbidden(path.child(field), detail));
        }
    }
}

/// What a container that is added to look at a pod may not have.
const NOT_EPHEMERAL: &[&str] = &[
    "lifecycle",
    "livenessProbe",
    "ports",
    "readinessProbe",
    "resizePolicy",
    "restartPolicy",
    "startupProbe",
];

fn ephemeral_container(container: &Value, spec: &Value, path: &FieldPath, faults: &mut Faults) {
    for field in NOT_EPHEMERAL {
        if at(container, &[field]).is_some() {
            let detail = "cannot be set for an Ephemeral Container";
            faults.push(FieldError::forbidden(path.child(field), detail));
        }
    }
    if members(container, &["resources"]).is_some_and(|resources| !resources.is_empty()) {
        let detail = "cannot be set for an Ephemeral Container";
        faults.push(FieldError::forbidden(path.child("resources"), detail));
    }
    let target = text(container, &["targetContainerName"]);
    let others = list(spec, &["containers"]).iter().chain(list(spec, &["initContainers"]));
    if !target.is_empty() && others.map(|c| text(c, &["name"])).all(|name| name != target) {
        faults.push(FieldError::not_found(path.child("targetContainerName"), target));
    }
}

/// Checks that ports of the node are named once, and are those of the containers where the network is the node's.
fn host_ports(spec: &Value, path: &FieldPath, faults: &mut Faults) {
    let mut seen = BTreeSet::new();
    let shared = flag(spec, &["hostNetwork"]);
    for (index, container) in list(spec, &["containers"]).iter().enumerate() {
        for (at_port, port) in list(container, &["ports"]).iter().enumerate() {
            let path = path.child("containers").index(index).child("ports").index(at_port);
            let Some(number) = int(port, &["hostPort"]).filter(|number| *number != 0) else { continue };
            if shared && int(port, &["containerPort"]) != Some(number) {
                let shown = int(port, &["containerPort"]);
                let detail = "must match `hostPort` when `hostNetwork` is true";
                faults.push(FieldError::invalid(path.child("containerPort"), shown, detail));
            }
            let place = format!("{}/{}/{number}", text(port, &["protocol"]), text(port, &["hostIP"]));
            if seen.contains(&place) {
                faults.push(FieldError::duplicate(path.child("hostPort"), &place));
            }
            seen.insert(place);
        }
    }
}

/// Checks users and groups.
fn security(context: Option<&Value>, path: &FieldPath, faults: &mut Faults) {
    let Some(context) = context else { return };
    for field in ["runAsUser", "runAsGroup", "fsGroup"] {
        if let Some(id) = int(context, &[field]).filter(|id| !(0..=i64::from(i32::MAX)).contains(id)) {
            let detail = "must be between 0 and 2147483647, inclusive";
            faults.push(FieldError::invalid(path.child(field), id, detail));
        }
    }
    let raised = at(context, &["allowPrivilegeEscalation"]).and_then(Value::as_bool);
    if flag(context, &["privileged"]) && raised == Some(false) {
        let detail = "cannot set `allowPrivilegeEscalation` to false and `privileged` to true";
        faults.push(FieldError::invalid(path.clone(), context, detail));
    }
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
    one_of(container, "terminationMessagePolicy", &["FallbackToLogsOnError", "File"], path, faults);
    security(at(container, &["securityContext"]), &path.child("securityContext"), faults);
    for hook in ["postStart", "preStop"] {
        if let Some(handler) = at(container, &["lifecycle", hook]) {
            let actions = ["exec", "httpGet", "sleep", "tcpSocket"];
            one_handler(handler, &actions, &path.child("lifecycle").child(hook), faults);
        }
    }
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
        if let Some(source) = at(variable, &["valueFrom"]) {
            env_source(source, &path.child("valueFrom"), faults);
        }
        if at(variable, &["valueFrom"]).is_some() && !text(variable, &["value"]).is_empty() {
            let detail = "may not be specified when `value` is not empty";
            faults.push(FieldError::invalid(path.child("valueFrom"), "", detail));
        }
    }
}

/// Where the value of a variable may come from.
const ENV_SOURCES: &[&str] = &["configMapKeyRef", "fieldRef", "resourceFieldRef", "secretKeyRef"];

fn env_source(source: &Value, path: &FieldPath, faults: &mut Faults) {
    let given: Vec<&&str> = ENV_SOURCES.iter().filter(|kind| at(source, &[kind]).is_some()).collect();
    match given.as_slice() {
        [] => {
            let detail =
                "must specify one of: `fieldRef`, `resourceFieldRef`, `configMapKeyRef` or `secretKeyRef`";
            faults.push(FieldError::invalid(path.clone(), "", detail));
        }
        [kind] => {
            let required: &[&str] = match **kind {
                "fieldRef" => &["fieldPath"],
                "resourceFieldRef" => &["resource"],
                _ => &["name", "key"],
            };
            for field in required {
                super::check::required(&source[**kind], field, &path.child(kind), faults);
            }
        }
        _ => faults.push(FieldError::invalid(
            path.clone(),
            "",
            "may not have more than one field specified at a time",
        )),
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
        let inner = text(mount, &["subPath"]);
        if inner.starts_with('/') {
            faults.push(FieldError::invalid(path.child("subPath"), inner, "must be a relative path"));
        }
        pod_volumes::no_way_up(inner, &path.child("subPath"), faults);
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

/// Checks that exactly one way to act or to look is given.
fn one_handler(map: &Value, known: &[&str], path: &FieldPath, faults: &mut Faults) {
    let given: Vec<&&str> = known.iter().filter(|handler| at(map, &[handler]).is_some()).collect();
    match given.as_slice() {
        [] => faults.push(FieldError::required(path.clone(), "must specify a handler type")),
        [_] => {}
        [_, second, ..] => {
            let detail = "may not specify more than 1 handler type";
            faults.push(FieldError::forbidden(path.child(second), detail));
        }
    }
    if at(map, &["exec"]).is_some() && list(map, &["exec", "command"]).is_empty() {
        faults.push(FieldError::required(path.child("exec").child("command"), ""));
    }
    for handler in ["httpGet", "tcpSocket", "grpc"] {
        let Some(found) = at(map, &[handler]) else { continue };
        let path = path.child(handler).child("port");
        super::check::port_or_name(at(found, &["port"]).unwrap_or(&Value::Null), path, faults);
    }
}

fn probe(probe: &Value, path: &FieldPath, single_success: bool, faults: &mut Faults) {
    one_handler(probe, HANDLERS, path, faults);
    at_least(probe, "initialDelaySeconds", 0, path, faults);
    for field in ["timeoutSeconds", "periodSeconds", "successThreshold", "failureThreshold"] {
        at_least(probe, field, 0, path, faults);
    }
    if single_success && int(probe, &["successThreshold"]).is_some_and(|n| n != 1) {
        let shown = int(probe, &["successThreshold"]);
        faults.push(FieldError::invalid(path.child("successThreshold"), shown, "must be 1"));
    }
}
