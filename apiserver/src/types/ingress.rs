//! Ingresses, their classes, and network policies: how traffic gets in, and which.

use jiff::Timestamp;
use serde_json::{Value, json};
use strata_model::field::{FieldError, FieldPath};
use strata_model::names;
use strata_model::resource::builtin;

use super::rules::{AGE, Around, Column, Faults, NAME, PLAIN, Rules, Unsettled, column};
use super::{check, meta, print};
use crate::value::{at, child, default, int, list, members, object, text};

/// Most hosts that a row shows.
const SHOWN: usize = 3;
/// The older way to name the class of an ingress.
const CLASS: &str = "kubernetes.io/ingress.class";
/// What makes a class that of ingresses which name none.
const DEFAULT_CLASS: &str = "ingressclass.kubernetes.io/is-default-class";
const PATH_TYPES: &[&str] = &["Exact", "ImplementationSpecific", "Prefix"];

/// Rules of ingresses.
pub static INGRESS: Rules = Rules {
    create: |ingress| drop(object(ingress).insert("status".to_owned(), json!({"loadBalancer": {}}))),
    validate: validate_ingress,
    settle: Some(class_of),
    columns: const {
        &[
            NAME,
            column("Class", "The class that serves it."),
            column("Hosts", "The hosts it is for."),
            column("Address", "Where it is reached."),
            column("Ports", "The ports it listens on."),
            AGE,
        ] as &[Column]
    },
    row: ingress_row,
    ..PLAIN
};

/// A new ingress that names no class gets the default one.
fn class_of(ingress: &mut Value, old: Option<&Value>, around: &dyn Around) -> Result<(), Unsettled> {
    let named = at(ingress, &["spec", "ingressClassName"]).is_some()
        || at(ingress, &["metadata", "annotations", CLASS]).is_some();
    if named || old.is_some() {
        return Ok(());
    }
    let classes = around.all(&builtin::INGRESS_CLASS.id);
    if let Some(name) = print::default_of(&classes, DEFAULT_CLASS) {
        child(ingress, "spec").insert("ingressClassName".to_owned(), json!(name));
    }
    Ok(())
}

fn validate_ingress(ingress: &Value, faults: &mut Faults) {
    let (path, spec) = (FieldPath::new("spec"), at(ingress, &["spec"]).unwrap_or(&Value::Null));
    let rules = list(spec, &["rules"]);
    let backend = at(spec, &["defaultBackend"]);
    if rules.is_empty() && backend.is_none() {
        let detail = "either `defaultBackend` or `rules` must be specified";
        faults.push(FieldError::invalid(path.clone(), spec, detail));
    }
    if let Some(found) = backend {
        validate_backend(found, &path.child("defaultBackend"), faults);
    }
    for (index, rule) in rules.iter().enumerate() {
        let path = path.child("rules").index(index);
        let host = text(rule, &["host"]);
        validate_host(host, &path.child("host"), faults);
        let Some(http) = at(rule, &["http"]) else { continue };
        let path = path.child("http").child("paths");
        let paths = list(http, &["paths"]);
        if paths.is_empty() {
            faults.push(FieldError::required(path.clone(), ""));
        }
        for (index, found) in paths.iter().enumerate() {
            validate_path(found, &path.index(index), faults);
        }
    }
    for (index, tls) in list(spec, &["tls"]).iter().enumerate() {
        for (at_host, host) in list(tls, &["hosts"]).iter().filter_map(Value::as_str).enumerate() {
            validate_host(host, &path.child("tls").index(index).child("hosts").index(at_host), faults);
        }
    }
    check::optional_name(spec, "ingressClassName", names::dns_subdomain, &path, faults);
    let old = text(ingress, &["metadata", "annotations", CLASS]);
    let class = text(spec, &["ingressClassName"]);
    if !old.is_empty() && !class.is_empty() && old != class {
        let path = meta::path().child("annotations").child(CLASS);
        let detail = "must match `ingressClassName` when both are specified";
        faults.push(FieldError::invalid(path, old, detail));
    }
}

fn validate_host(host: &str, path: &FieldPath, faults: &mut Faults) {
    if host.is_empty() {
        return;
    }
    if check::is_address(host) {
        faults.push(FieldError::invalid(path.clone(), host, "must be a DNS name, not an IP address"));
    } else if let Some(fault) = names::dns_subdomain(host.strip_prefix("*.").unwrap_or(host)) {
        faults.push(FieldError::invalid(path.clone(), host, fault));
    }
}

fn validate_path(found: &Value, path: &FieldPath, faults: &mut Faults) {
    let (own, kind) = (text(found, &["path"]), text(found, &["pathType"]));
    if kind.is_empty() {
        faults.push(FieldError::required(path.child("pathType"), "pathType must be specified"));
    } else if !PATH_TYPES.contains(&kind) {
        faults.push(FieldError::not_supported(path.child("pathType"), kind, PATH_TYPES));
    }
    if matches!(kind, "Exact" | "Prefix") {
        if !own.starts_with('/') {
            faults.push(FieldError::invalid(path.child("path"), own, "must be an absolute path"));
        } else if let Some(part) =
            ["//", "/./", "/../", "%2f", "%2F"].iter().find(|part| own.contains(**part))
        {
            let detail = format!("must not contain '{part}'");
            faults.push(FieldError::invalid(path.child("path"), own, detail));
        }
    } else if !own.is_empty() && !own.starts_with('/') {
        faults.push(FieldError::invalid(path.child("path"), own, "must be an absolute path"));
    }
    validate_backend(at(found, &["backend"]).unwrap_or(&Value::Null), &path.child("backend"), faults);
}

fn validate_backend(backend: &Value, path: &FieldPath, faults: &mut Faults) {
    let (service, resource) = (at(backend, &["service"]), at(backend, &["resource"]));
    match (service, resource) {
        (Some(_), Some(_)) => {
            let detail = "cannot set both resource and service backends";
            faults.push(FieldError::invalid(path.clone(), "", detail));
        }
        (None, None) => {
            faults.push(FieldError::required(path.clone(), "either service or resource must be specified"))
        }
        (Some(service), None) => {
            let path = path.child("service");
            check::name(service, "name", names::dns_1035_label, &path, faults);
            let (name, number) = (text(service, &["port", "name"]), int(service, &["port", "number"]));
            match (name, number.filter(|n| *n != 0)) {
                ("", None) => {
                    faults.push(FieldError::required(path.clone(), "port name or number is required"))
                }
                ("", Some(number)) => check::port(number, path.child("port").child("number"), faults),
                (_, Some(_)) => {
                    let detail = "cannot set both port name & port number";
                    faults.push(FieldError::invalid(path.clone(), "", detail));
                }
                (name, None) => {
                    if let Some(fault) = check::port_name(name) {
                        faults.push(FieldError::invalid(path.child("port").child("name"), name, fault));
                    }
                }
            }
        }
        (None, Some(resource)) => {
            for field in ["kind", "name"] {
                check::required(resource, field, &path.child("resource"), faults);
            }
        }
    }
}

fn ingress_row(ingress: &Value, now: Timestamp) -> Vec<Value> {
    let hosts: Vec<String> = list(ingress, &["spec", "rules"])
        .iter()
        .map(|rule| text(rule, &["host"]).to_owned())
        .filter(|host| !host.is_empty())
        .collect();
    let class = match text(ingress, &["spec", "ingressClassName"]) {
        "" => text(ingress, &["metadata", "annotations", CLASS]),
        named => named,
    };
    let addresses: Vec<&str> = list(ingress, &["status", "loadBalancer", "ingress"])
        .iter()
        .map(|place| match text(place, &["ip"]) {
            "" => text(place, &["hostname"]),
            ip => ip,
        })
        .collect();
    let secure = !list(ingress, &["spec", "tls"]).is_empty();
    vec![
        print::name(ingress),
        print::or_none(class),
        if hosts.is_empty() { json!("*") } else { json!(print::some(&hosts, SHOWN)) },
        json!(addresses.join(",")),
        json!(if secure { "80, 443" } else { "80" }),
        print::created(ingress, now),
    ]
}

/// Rules of ingress classes.
pub static INGRESS_CLASS: Rules = Rules {
    defaults: |class| {
        if let Some(parameters) = child(class, "spec").get_mut("parameters").and_then(Value::as_object_mut) {
            default(parameters, "scope", "Cluster");
        }
    },
    validate: |class, faults| {
        let path = FieldPath::new("spec");
        let spec = at(class, &["spec"]).unwrap_or(&Value::Null);
        let controller = check::required(spec, "controller", &path, faults);
        if !controller.is_empty() && !controller.contains('/') {
            let detail = "must be a domain-prefixed path (such as \"acme.io/foo\")";
            faults.push(FieldError::invalid(path.child("controller"), controller, detail));
        }
        if let Some(parameters) = at(spec, &["parameters"]) {
            let path = path.child("parameters");
            for field in ["kind", "name"] {
                check::required(parameters, field, &path, faults);
            }
            check::known(parameters, "scope", &["Cluster", "Namespace"], &path, faults);
            let placed = at(parameters, &["namespace"]).is_some();
            match text(parameters, &["scope"]) {
                "Namespace" if !placed => {
                    let detail = "`parameters.scope` is set to 'Namespace'";
                    faults.push(FieldError::required(path.child("namespace"), detail));
                }
                "Cluster" if placed => {
                    let detail = "`parameters.scope` is set to 'Cluster'";
                    faults.push(FieldError::forbidden(path.child("namespace"), detail));
                }
                _ => {}
            }
        }
    },
    validate_update: |new, old, faults| meta::immutable(new, old, &["spec", "controller"], faults),
    columns: const {
        &[
            NAME,
            column("Controller", "What serves ingresses of the class."),
            column("Parameters", "More of what it needs."),
            AGE,
        ] as &[Column]
    },
    row: |class, now| {
        let part = |field: &str| text(class, &["spec", "parameters", field]);
        let parameters = match (part("kind"), part("apiGroup")) {
            ("", _) => "<none>".to_owned(),
            (kind, "") => format!("{kind}/{}", part("name")),
            (kind, group) => format!("{kind}.{group}/{}", part("name")),
        };
        let controller = json!(text(class, &["spec", "controller"]));
        vec![print::name(class), controller, json!(parameters), print::created(class, now)]
    },
    ..PLAIN
};

/// Rules of network policies.
pub static NETWORK_POLICY: Rules = Rules {
    defaults: |policy| {
        let spec = child(policy, "spec");
        default(spec, "podSelector", json!({}));
        let out = spec.get("egress").and_then(Value::as_array).is_some_and(|rules| !rules.is_empty());
        default(spec, "policyTypes", if out { json!(["Ingress", "Egress"]) } else { json!(["Ingress"]) });
        for direction in ["ingress", "egress"] {
            let rules = spec.get_mut(direction).and_then(Value::as_array_mut).into_iter().flatten();
            for port in rules.filter_map(|r| r.get_mut("ports").and_then(Value::as_array_mut)).flatten() {
                default(object(port), "protocol", "TCP");
            }
        }
    },
    validate: validate_policy,
    columns: const { &[NAME, column("Pod-Selector", "Which pods it is for."), AGE] as &[Column] },
    row: |policy, now| {
        let selector = print::selector(at(policy, &["spec", "podSelector"]));
        vec![print::name(policy), selector, print::created(policy, now)]
    },
    ..PLAIN
};

fn validate_policy(policy: &Value, faults: &mut Faults) {
    let (path, spec) = (FieldPath::new("spec"), at(policy, &["spec"]).unwrap_or(&Value::Null));
    check::selector(at(spec, &["podSelector"]), &path.child("podSelector"), faults);
    for (direction, peers) in [("ingress", "from"), ("egress", "to")] {
        for (index, rule) in list(spec, &[direction]).iter().enumerate() {
            let path = path.child(direction).index(index);
            for (index, port) in list(rule, &["ports"]).iter().enumerate() {
                let path = path.child("ports").index(index);
                check::one_of(port, "protocol", &["SCTP", "TCP", "UDP"], &path, faults);
                if let Some(number) = at(port, &["port"]) {
                    check::port_or_name(number, path.child("port"), faults);
                }
            }
            for (index, peer) in list(rule, &[peers]).iter().enumerate() {
                validate_peer(peer, &path.child(peers).index(index), faults);
            }
        }
    }
    let types = list(spec, &["policyTypes"]);
    if types.len() > 2 {
        let detail = "may not specify more than two policyTypes";
        faults.push(FieldError::invalid(path.child("policyTypes"), types, detail));
    }
    for (index, kind) in types.iter().filter_map(Value::as_str).enumerate() {
        if !matches!(kind, "Ingress" | "Egress") {
            let path = path.child("policyTypes").index(index);
            faults.push(FieldError::not_supported(path, kind, &["Egress", "Ingress"]));
        }
    }
}

fn validate_peer(peer: &Value, path: &FieldPath, faults: &mut Faults) {
    let given = members(peer, &[]).map_or(0, serde_json::Map::len);
    for selector in ["podSelector", "namespaceSelector"] {
        check::selector(at(peer, &[selector]), &path.child(selector), faults);
    }
    if given == 0 {
        faults.push(FieldError::required(path.clone(), "must specify a peer"));
    }
    let Some(block) = at(peer, &["ipBlock"]) else { return };
    if given > 1 {
        let detail = "may not specify both ipBlock and another peer";
        faults.push(FieldError::forbidden(path.clone(), detail));
    }
    let path = path.child("ipBlock");
    let range = check::required(block, "cidr", &path, faults);
    if !range.is_empty() && !check::is_cidr(range) {
        faults.push(FieldError::invalid(path.child("cidr"), range, check::NO_CIDR));
    }
    for (index, part) in list(block, &["except"]).iter().filter_map(Value::as_str).enumerate() {
        if !check::is_cidr(part) {
            faults.push(FieldError::invalid(path.child("except").index(index), part, check::NO_CIDR));
        }
    }
}
