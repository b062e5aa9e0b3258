//! What an object uses, by the names that quotas know.

use jiff::{SignedDuration, Timestamp};
use serde_json::Value;

use super::{BY_CLASS, PLAIN, count_name};
use crate::amounts::{self, Amounts, add};
use crate::quantity::Quantity;
use crate::resource::{GroupResource, builtin};

/// What an object of a type uses of everything. Pods that have ended use nothing but their place among objects.
pub fn usage(id: &GroupResource, object: &Value, now: Timestamp) -> Amounts {
    let mut used = Amounts::new();
    let one = Quantity::from_units(1);
    used.insert(count_name(id), one);
    if *id == builtin::POD.id {
        if !has_ended(object, now) {
            used.insert(id.resource.to_string(), one);
            add(&mut used, &of_pod(object));
        }
    } else if *id == builtin::PERSISTENT_VOLUME_CLAIM.id {
        used.insert(id.resource.to_string(), one);
        of_claim(object, &mut used);
    } else {
        if PLAIN.iter().any(|resource| resource.id == *id) {
            used.insert(id.resource.to_string(), one);
        }
        if *id == builtin::SERVICE.id {
            of_service(object, &mut used);
        }
    }
    used
}

fn has_ended(pod: &Value, now: Timestamp) -> bool {
    if matches!(pod["status"]["phase"].as_str(), Some("Succeeded" | "Failed")) {
        return true;
    }
    let meta = &pod["metadata"];
    let gone = meta["deletionTimestamp"].as_str().and_then(|at| at.parse::<Timestamp>().ok());
    let grace = meta["deletionGracePeriodSeconds"].as_i64();
    gone.zip(grace).is_some_and(|(at, grace)| {
        at.saturating_add(SignedDuration::from_secs(grace)).is_ok_and(|end| end < now)
    })
}

fn of_pod(pod: &Value) -> Amounts {
    let mut used = Amounts::new();
    let mut requests = amounts::of_pod(pod, "requests");
    let mut limits = amounts::of_pod(pod, "limits");
    let overhead = amounts::amounts(&pod["spec"]["overhead"]);
    add(&mut requests, &overhead);
    for (name, amount) in &overhead {
        if let Some(limit) = limits.get_mut(name) {
            *limit = limit.plus(*amount);
        }
    }
    for (name, amount) in requests {
        if !name.contains('/') {
            used.insert(name.clone(), amount);
        }
        used.insert(format!("requests.{name}"), amount);
    }
    for (name, amount) in limits {
        used.insert(format!("limits.{name}"), amount);
    }
    used
}

fn of_claim(claim: &Value, used: &mut Amounts) {
    let spec = &claim["spec"];
    let size = amounts::amounts(&spec["resources"]["requests"]).remove("storage");
    let class = spec["storageClassName"].as_str().unwrap_or_default();
    if !class.is_empty() {
        used.insert(format!("{class}{BY_CLASS}persistentvolumeclaims"), Quantity::from_units(1));
    }
    let Some(size) = size else { return };
    used.insert("requests.storage".to_owned(), size);
    if !class.is_empty() {
        used.insert(format!("{class}{BY_CLASS}requests.storage"), size);
    }
}

fn of_service(service: &Value, used: &mut Amounts) {
    let spec = &service["spec"];
    let ports = spec["ports"].as_array().map_or(&[][..], Vec::as_slice);
    let balanced = spec["type"] == "LoadBalancer";
    let given = |port: &&Value| port["nodePort"].as_i64().is_some_and(|port| port != 0);
    let open = match spec["type"].as_str() {
        Some("NodePort") => ports.len(),
        Some("LoadBalancer") if spec["allocateLoadBalancerNodePorts"] == false => {
            ports.iter().filter(given).count()
        }
        Some("LoadBalancer") => ports.len(),
        _ => 0,
    };
    if balanced {
        used.insert("services.loadbalancers".to_owned(), Quantity::from_units(1));
    }
    if open > 0 {
        used.insert(
            "services.nodeports".to_owned(),
            Quantity::from_units(i64::try_from(open).unwrap_or(i64::MAX)),
        );
    }
}
