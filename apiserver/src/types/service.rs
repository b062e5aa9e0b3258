//! Services: defaults, checks, row.

use std::collections::{BTreeMap, BTreeSet};

use jiff::Timestamp;
use serde_json::{Value, json};
use strata_model::field::{FieldError, FieldPath};
use strata_model::names;

use super::rules::{AGE, Column, Faults, NAME, PLAIN, Rules, column, field, wide};
use super::service_addresses::{self, NONE, has_address, opens_ports, place};
use super::{check, meta, print};
use crate::value::{at, child, default, int, list, list_mut, object, text};

/// Longest affinity of a client, in seconds.
const MAX_AFFINITY: i64 = 86_400;

const TYPES: &[&str] = &["ClusterIP", "ExternalName", "LoadBalancer", "NodePort"];
const PROTOCOLS: &[&str] = &["SCTP", "TCP", "UDP"];

const COLUMNS: &[Column] = &[
    NAME,
    column("Type", "How it is reached."),
    column("Cluster-IP", "Its address within the platform."),
    column("External-IP", "Its addresses from outside."),
    column("Port(s)", "Its ports, and those opened on nodes."),
    AGE,
    wide("Selector", "Which pods answer it."),
];

/// Rules of services.
pub static SERVICE: Rules = Rules {
    name: names::dns_1035_label,
    defaults,
    create: |service| drop(object(service).insert("status".to_owned(), json!({"loadBalancer": {}}))),
    update,
    validate,
    validate_update,
    settle: Some(service_addresses::settle),
    reserves: Some(service_addresses::reserves),
    columns: COLUMNS,
    row,
    fields: const { &[field("spec.clusterIP", &["/spec/clusterIP"]), field("spec.type", &["/spec/type"])] },
    create_on_update: true,
    ..PLAIN
};

fn defaults(service: &mut Value) {
    let spec = child(service, "spec");
    default(spec, "sessionAffinity", NONE);
    default(spec, "type", "ClusterIP");
    if spec["sessionAffinity"] == "ClientIP" {
        let config = object(spec.entry("sessionAffinityConfig").or_insert(Value::Null));
        let client = object(config.entry("clientIP").or_insert(Value::Null));
        default(client, "timeoutSeconds", 10_800);
    }
    for port in spec.get_mut("ports").and_then(Value::as_array_mut).into_iter().flatten() {
        let port = object(port);
        default(port, "protocol", "TCP");
        let number = port.get("port").cloned().unwrap_or_default();
        if port.get("targetPort").is_none_or(|target| *target == 0 || *target == "" || target.is_null()) {
            port.insert("targetPort".to_owned(), number);
        }
    }
    if matches!(spec["type"].as_str(), Some("NodePort" | "LoadBalancer")) {
        default(spec, "externalTrafficPolicy", "Cluster");
    }
    if spec["type"] == "LoadBalancer" {
        default(spec, "allocateLoadBalancerNodePorts", true);
    }
    if spec["type"] != "ExternalName" {
        default(spec, "internalTrafficPolicy", "Cluster");
    }
    default(child(service, "status"), "loadBalancer", json!({}));
}

/// An update that says nothing of what was given keeps it, and gives back what its new type has no use for.
fn update(new: &mut Value, old: &Value) {
    let (needs, had) = (has_address(new), has_address(old));
    let (opens, opened) = (opens_ports(new), opens_ports(old));
    if needs && had {
        for given in ["clusterIP", "clusterIPs", "ipFamilies", "ipFamilyPolicy"] {
            if let Some(was) = at(old, &["spec", given]).cloned() {
                default(child(new, "spec"), given, was);
            }
        }
    }
    if had && !needs {
        for given in ["clusterIP", "clusterIPs", "ipFamilies", "ipFamilyPolicy", "internalTrafficPolicy"] {
            forget(new, old, given);
        }
    }
    if opened && !opens {
        forget(new, old, "externalTrafficPolicy");
    }
    if text(new, &["spec", "type"]) != "LoadBalancer" {
        for given in ["allocateLoadBalancerNodePorts", "loadBalancerClass", "healthCheckNodePort"] {
            forget(new, old, given);
        }
    }
    let was: BTreeMap<(String, i64), Value> = list(old, &["spec", "ports"])
        .iter()
        .filter_map(|port| Some((place(port), port.get("nodePort")?.clone())))
        .collect();
    for port in list_mut(new, &["spec", "ports"]).into_iter().flatten() {
        let given = was.get(&place(port)).cloned();
        let port = object(port);
        match given {
            Some(given) if opens && opened => default(port, "nodePort", given),
            Some(given) if !opens && port.get("nodePort") == Some(&given) => drop(port.remove("nodePort")),
            _ => {}
        }
    }
}

/// Takes a member away that still is what it was.
fn forget(new: &mut Value, old: &Value, member: &str) {
    let was = at(old, &["spec", member]);
    if was.is_some() && at(new, &["spec", member]) == was {
        child(new, "spec").remove(member);
    }
}

fn validate(service: &Value, faults: &mut Faults) {
    let (path, spec) = (FieldPath::new("spec"), at(service, &["spec"]).unwrap_or(&Value::Null));
    let kind = text(spec, &["type"]);
    check::known(spec, "type", TYPES, &path, faults);
    let headless = text(spec, &["clusterIP"]) == NONE;
    if list(spec, &["ports"]).is_empty() && !headless && kind != "ExternalName" {
        faults.push(FieldError::required(path.child("ports"), ""));
    }
    if kind == "ExternalName" {
        external(spec, &path, faults);
    }
    addresses(spec, &path, faults);
    if headless && opens_ports(service) {
        let detail = format!("may not be set to 'None' for {kind} services");
        faults.push(FieldError::invalid(path.child("clusterIPs").index(0), NONE, detail));
    }
    ports(service, &path.child("ports"), faults);
    if let Some(selector) = at(spec, &["selector"]).and_then(Value::as_object) {
        meta::validate_labels(selector, &path.child("selector"), faults);
    }
    affinity(spec, &path, faults);
    traffic(service, &path, faults);
}

fn external(spec: &Value, path: &FieldPath, faults: &mut Faults) {
    for given in ["clusterIPs", "ipFamilies", "ipFamilyPolicy"] {
        let own =
            at(spec, &[given]).is_some() || (given == "clusterIPs" && !text(spec, &["clusterIP"]).is_empty());
        if own {
            faults.push(FieldError::forbidden(path.child(given), "may not be set for ExternalName services"));
        }
    }
    let name = text(spec, &["externalName"]);
    if name.is_empty() {
        faults.push(FieldError::required(path.child("externalName"), ""));
    } else if let Some(fault) = names::dns_subdomain(name.strip_suffix('.').unwrap_or(name)) {
        faults.push(FieldError::invalid(path.child("externalName"), name, fault));
    }
}

fn addresses(spec: &Value, path: &FieldPath, faults: &mut Faults) {
    let (first, all) = (text(spec, &["clusterIP"]), list(spec, &["clusterIPs"]));
    if let Some(head) = all.first()
        && head != first
    {
        let detail = "first value must match `clusterIP`";
        faults.push(FieldError::invalid(path.child("clusterIPs"), all, detail));
    }
    if !matches!(first, "" | NONE) && !check::is_address(first) {
        faults.push(FieldError::invalid(path.child("clusterIPs").index(0), first, check::NO_ADDRESS));
    }
    for (index, address) in list(spec, &["externalIPs"]).iter().enumerate() {
        let address = address.as_str().unwrap_or_default();
        if !check::is_address(address) {
            faults.push(FieldError::invalid(
                path.child("externalIPs").index(index),
                address,
                check::NO_ADDRESS,
            ));
        }
    }
    for (index, range) in list(spec, &["loadBalancerSourceRanges"]).iter().enumerate() {
        let range = range.as_str().unwrap_or_default();
        if !check::is_cidr(range.trim()) {
            let path = path.child("loadBalancerSourceRanges").index(index);
            faults.push(FieldError::invalid(path, range, check::NO_CIDR));
        }
    }
}

fn ports(service: &Value, path: &FieldPath, faults: &mut Faults) {
    let all = list(service, &["spec", "ports"]);
    let (mut names, mut places, mut opened) = (BTreeSet::new(), BTreeSet::new(), BTreeSet::new());
    for (index, port) in all.iter().enumerate() {
        let path = path.index(index);
        let name = text(port, &["name"]);
        if name.is_empty() && all.len() > 1 {
            faults.push(FieldError::required(path.child("name"), ""));
        }
        check::optional_name(port, "name", names::dns_label, &path, faults);
        if !name.is_empty() && !names.insert(name) {
            faults.push(FieldError::duplicate(path.child("name"), name));
        }
        check::port(int(port, &["port"]).unwrap_or(0), path.child("port"), faults);
        check::known(port, "protocol", PROTOCOLS, &path, faults);
        if let Some(target) = at(port, &["targetPort"]) {
            check::port_or_name(target, path.child("targetPort"), faults);
        }
        if let Some(fault) =
            Some(text(port, &["appProtocol"])).filter(|p| !p.is_empty()).and_then(names::qualified_name)
        {
            faults.push(FieldError::invalid(path.child("appProtocol"), text(port, &["appProtocol"]), fault));
        }
        let protocol = text(port, &["protocol"]);
        if !places.insert(place(port)) {
            let shown = json!({"port": int(port, &["port"]), "protocol": protocol});
            faults.push(FieldError::duplicate(path.clone(), shown));
        }
        let Some(number) = int(port, &["nodePort"]).filter(|n| *n != 0) else { continue };
        if !opens_ports(service) {
            let detail = "may not be used when `type` is 'ClusterIP'";
            faults.push(FieldError::forbidden(path.child("nodePort"), detail));
        } else if !opened.insert((protocol, number)) {
            faults.push(FieldError::duplicate(path.child("nodePort"), number));
        }
    }
}

fn affinity(spec: &Value, path: &FieldPath, faults: &mut Faults) {
    check::known(spec, "sessionAffinity", &["ClientIP", NONE], path, faults);
    let path = path.child("sessionAffinityConfig");
    let config = at(spec, &["sessionAffinityConfig"]);
    if text(spec, &["sessionAffinity"]) == NONE {
        if config.is_some() {
            let detail = "must not be set when session affinity is None";
            faults.push(FieldError::forbidden(path, detail));
        }
    } else if let Some(seconds) = config
        .and_then(|c| int(c, &["clientIP", "timeoutSeconds"]))
        .filter(|n| !(1..=MAX_AFFINITY).contains(n))
    {
        let detail = format!("must be greater than 0 and less than {MAX_AFFINITY}");
        faults.push(FieldError::invalid(path.child("clientIP").child("timeoutSeconds"), seconds, detail));
    }
}

fn traffic(service: &Value, path: &FieldPath, faults: &mut Faults) {
    let spec = at(service, &["spec"]).unwrap_or(&Value::Null);
    let policies = &["Cluster", "Local"];
    check::one_of(spec, "internalTrafficPolicy", policies, path, faults);
    check::one_of(spec, "externalTrafficPolicy", policies, path, faults);
    let reached = opens_ports(service) || !list(spec, &["externalIPs"]).is_empty();
    let external = text(spec, &["externalTrafficPolicy"]);
    if !external.is_empty() && !reached {
        let detail = "may only be set for externally-accessible services";
        faults.push(FieldError::invalid(path.child("externalTrafficPolicy"), external, detail));
    }
    if text(spec, &["type"]) != "LoadBalancer" {
        for member in ["allocateLoadBalancerNodePorts", "loadBalancerClass", "loadBalancerSourceRanges"] {
            if at(spec, &[member]).is_some() {
                let detail = "may only be used when `type` is 'LoadBalancer'";
                faults.push(FieldError::forbidden(path.child(member), detail));
            }
        }
    }
    let local = text(spec, &["type"]) == "LoadBalancer" && external == "Local";
    if let Some(port) = int(spec, &["healthCheckNodePort"]).filter(|n| *n != 0 && !local) {
        let detail = "may only be set when `type` is 'LoadBalancer' and `externalTrafficPolicy` is 'Local'";
        faults.push(FieldError::invalid(path.child("healthCheckNodePort"), port, detail));
    }
}

fn validate_update(new: &Value, old: &Value, faults: &mut Faults) {
    if !(has_address(new) && has_address(old)) {
        return;
    }
    let path = FieldPath::new("spec");
    let was = list(old, &["spec", "clusterIPs"]);
    if !was.is_empty() && list(new, &["spec", "clusterIPs"]).first() != was.first() {
        let shown = list(new, &["spec", "clusterIPs"]);
        faults.push(FieldError::invalid(path.child("clusterIPs").index(0), shown, "may not change once set"));
    }
    let was = list(old, &["spec", "ipFamilies"]);
    if !was.is_empty() && list(new, &["spec", "ipFamilies"]).first() != was.first() {
        let shown = list(new, &["spec", "ipFamilies"]);
        faults.push(FieldError::invalid(path.child("ipFamilies").index(0), shown, "may not change once set"));
    }
    if text(old, &["spec", "type"]) == "LoadBalancer" && text(new, &["spec", "type"]) == "LoadBalancer" {
        meta::immutable(new, old, &["spec", "loadBalancerClass"], faults);
    }
}

fn row(service: &Value, now: Timestamp) -> Vec<Value> {
    let ports: Vec<String> = list(service, &["spec", "ports"])
        .iter()
        .map(|port| {
            let (protocol, number) = place(port);
            match int(port, &["nodePort"]).filter(|n| *n != 0) {
                Some(opened) => format!("{number}:{opened}/{protocol}"),
                None => format!("{number}/{protocol}"),
            }
        })
        .collect();
    vec![
        print::name(service),
        json!(text(service, &["spec", "type"])),
        print::or_none(text(service, &["spec", "clusterIP"])),
        json!(outside(service)),
        print::or_none(&ports.join(",")),
        print::created(service, now),
        print::pairs(at(service, &["spec", "selector"])),
    ]
}

/// Addresses from outside, as a row shows them.
fn outside(service: &Value) -> String {
    let own: Vec<&str> = list(service, &["spec", "externalIPs"]).iter().filter_map(Value::as_str).collect();
    match text(service, &["spec", "type"]) {
        "ExternalName" => text(service, &["spec", "externalName"]).to_owned(),
        "LoadBalancer" => {
            let given = list(service, &["status", "loadBalancer", "ingress"]).iter().map(|i| {
                match text(i, &["ip"]) {
                    "" => text(i, &["hostname"]),
                    ip => ip,
                }
            });
            let all: Vec<&str> = given.chain(own).collect();
            if all.is_empty() { "<pending>".to_owned() } else { all.join(",") }
        }
        _ if own.is_empty() => "<none>".to_owned(),
        _ => own.join(","),
    }
}
