//! Limits of a namespace: what containers get that say nothing, and what is too little or too much. Pure.

use serde_json::{Map, Value, json};
use strata_model::amounts::{self, Amounts, amounts};
use strata_model::quantity::Quantity;

use crate::value::{child, list, list_mut, object, text};

/// Annotation of pods that tells what was filled in.
const TOLD: &str = "kubernetes.io/limit-ranger";
const CONTAINER: &str = "Container";
const POD: &str = "Pod";
const CLAIM: &str = "PersistentVolumeClaim";

/// What one entry of a LimitRange says of one kind of thing.
#[derive(Clone, Debug, Default)]
pub struct Limit {
    kind: String,
    max: Amounts,
    min: Amounts,
    default: Amounts,
    default_request: Amounts,
    ratio: Amounts,
}

impl Limit {
    /// The entries of a LimitRange.
    pub fn all(range: &Value) -> Vec<Self> {
        let read = |limit: &Value| Self {
            kind: text(limit, &["type"]).to_owned(),
            max: amounts(&limit["max"]),
            min: amounts(&limit["min"]),
            default: amounts(&limit["default"]),
            default_request: amounts(&limit["defaultRequest"]),
            ratio: amounts(&limit["maxLimitRequestRatio"]),
        };
        list(range, &["spec", "limits"]).iter().map(read).collect()
    }
}

/// Fills in what the containers of a new pod do not say. Answers whether anything was.
pub fn fill<'l>(limits: impl Iterator<Item = &'l Limit>, pod: &mut Value) -> bool {
    let mut told = Vec::new();
    for limit in limits.filter(|limit| limit.kind == CONTAINER) {
        for (place, word) in [("containers", "container"), ("initContainers", "init container")] {
            for container in list_mut(pod, &["spec", place]).into_iter().flatten() {
                let name = text(container, &["name"]).to_owned();
                let resources = child(container, "resources");
                for (part, what, defaults) in
                    [("requests", "request", &limit.default_request), ("limits", "limit", &limit.default)]
                {
                    let set = complete(resources, part, defaults);
                    if !set.is_empty() {
                        told.push(format!("{} {what} for {word} {name}", set.join(", ")));
                    }
                }
            }
        }
    }
    if told.is_empty() {
        return false;
    }
    let metadata = child(pod, "metadata");
    let annotations = object(metadata.entry("annotations").or_insert(Value::Null));
    annotations.insert(TOLD.to_owned(), json!(format!("LimitRanger plugin set: {}", told.join("; "))));
    true
}

/// Sets what is missing of a part of a container's resources; answers the names.
fn complete(resources: &mut Map<String, Value>, part: &str, defaults: &Amounts) -> Vec<String> {
    let has = |name: &str| resources.get(part).and_then(|p| p.get(name)).is_some();
    let missing: Vec<(String, Quantity)> = defaults
        .iter()
        .filter(|(name, _)| !has(name))
        .map(|(name, amount)| (name.clone(), *amount))
        .collect();
    if missing.is_empty() {
        return Vec::new();
    }
    let own = object(resources.entry(part).or_insert(Value::Null));
    for (name, amount) in &missing {
        own.insert(name.clone(), json!(amount.to_string()));
    }
    missing.into_iter().map(|(name, _)| name).collect()
}

/// What is wrong with a pod by the limits of its namespace, as one text.
pub fn faults_of_pod<'l>(limits: impl Iterator<Item = &'l Limit>, pod: &Value) -> Option<String> {
    let mut faults = Vec::new();
    for limit in limits {
        match limit.kind.as_str() {
            CONTAINER => {
                for place in ["containers", "initContainers"] {
                    for container in list(pod, &["spec", place]) {
                        let part = |part| amounts(&container["resources"][part]);
                        check(limit, &part("requests"), &part("limits"), &mut faults);
                    }
                }
            }
            POD => {
                let part = |part| amounts::of_pod(pod, part);
                check(limit, &part("requests"), &part("limits"), &mut faults);
            }
            _ => {}
        }
    }
    joined(faults)
}

/// What is wrong with a claim by the limits of its namespace, as one text.
pub fn faults_of_claim<'l>(limits: impl Iterator<Item = &'l Limit>, claim: &Value) -> Option<String> {
    let asked = amounts(&claim["spec"]["resources"]["requests"]);
    let mut faults = Vec::new();
    for limit in limits.filter(|limit| limit.kind == CLAIM) {
        for (name, least) in &limit.min {
            at_least(limit, name, *least, (asked.get(name), None), &mut faults);
        }
        for (name, most) in &limit.max {
            let rule = format!("maximum {name} usage per {} is {most}", limit.kind);
            match asked.get(name) {
                None => faults.push(format!("{rule}.  No request is specified")),
                Some(asked) if asked > most => faults.push(format!("{rule}, but request is {asked}")),
                Some(_) => {}
            }
        }
    }
    joined(faults)
}

fn joined(mut faults: Vec<String>) -> Option<String> {
    faults.dedup();
    match faults.as_slice() {
        [] => None,
        [one] => Some(one.clone()),
        many => Some(format!("[{}]", many.join(", "))),
    }
}

fn check(limit: &Limit, requests: &Amounts, limits: &Amounts, faults: &mut Vec<String>) {
    for (name, least) in &limit.min {
        at_least(limit, name, *least, (requests.get(name), limits.get(name)), faults);
    }
    for (name, most) in &limit.max {
        let rule = format!("maximum {name} usage per {} is {most}", limit.kind);
        match (limits.get(name), requests.get(name)) {
            (None, _) => faults.push(format!("{rule}.  No limit is specified")),
            (Some(given), _) if given > most => faults.push(format!("{rule}, but limit is {given}")),
            (_, Some(asked)) if asked > most => faults.push(format!("{rule}, but request is {asked}")),
            _ => {}
        }
    }
    for (name, most) in &limit.ratio {
        let rule = format!("{name} max limit to request ratio per {} is {most}", limit.kind);
        let amount = |of: &Amounts| of.get(name).map(Quantity::milli).filter(|amount| *amount != 0);
        match (amount(requests), amount(limits)) {
            (None, _) => faults.push(format!("{rule}, but no request is specified or request is 0")),
            (_, None) => faults.push(format!("{rule}, but no limit is specified or limit is 0")),
            (Some(asked), Some(given)) if given.saturating_mul(1000) > most.milli().saturating_mul(asked) => {
                faults.push(format!("{rule}, but provided ratio is {:.6}", given as f64 / asked as f64));
            }
            _ => {}
        }
    }
}

fn at_least(
    limit: &Limit,
    name: &str,
    least: Quantity,
    (asked, given): (Option<&Quantity>, Option<&Quantity>),
    faults: &mut Vec<String>,
) {
    let rule = format!("minimum {name} usage per {} is {least}", limit.kind);
    match (asked, given) {
        (None, _) => faults.push(format!("{rule}.  No request is specified")),
        (Some(asked), _) if *asked < least => faults.push(format!("{rule}, but request is {asked}")),
        (_, Some(given)) if *given < least => faults.push(format!("{rule}, but limit is {given}")),
        _ => {}
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn limits(of: Value) -> Vec<Limit> {
        Limit::all(&json!({"spec": {"limits": [of]}}))
    }

    fn pod(resources: Value) -> Value {
        json!({"spec": {"containers": [{"name": "c", "resources": resources}, {"name": "d", "resources": {}}]}})
    }

    #[test]
    fn what_is_not_said_is_filled_in_and_told() {
        let limits = limits(json!({"type": "Container", "default": {"cpu": "1", "memory": "1Gi"},
            "defaultRequest": {"cpu": "100m"}}));
        let mut pod = pod(json!({"limits": {"cpu": "2"}, "requests": {"cpu": "2"}}));
        assert!(fill(limits.iter(), &mut pod));
        assert_eq!(
            pod["spec"]["containers"][0]["resources"],
            json!({"limits": {"cpu": "2", "memory": "1Gi"}, "requests": {"cpu": "2"}})
        );
        assert_eq!(
            pod["spec"]["containers"][1]["resources"],
            json!({"limits": {"cpu": "1", "memory": "1Gi"}, "requests": {"cpu": "100m"}})
        );
        assert_eq!(
            pod["metadata"]["annotations"][TOLD],
            "LimitRanger plugin set: memory limit for container c; cpu request for container d; cpu, memory limit for container d"
        );
        assert!(!fill(limits.iter(), &mut pod), "a second time changes nothing");
    }

    #[test]
    fn too_little_too_much_and_too_far_apart_are_told() {
        let fault = |limit: Value, resources: Value| {
            let mut pod = pod(resources);
            pod["spec"]["containers"].as_array_mut().unwrap().truncate(1);
            faults_of_pod(limits(limit).iter(), &pod).unwrap_or_default()
        };
        let both =
            |request: &str, limit: &str| json!({"requests": {"cpu": request}, "limits": {"cpu": limit}});
        let max = || json!({"type": "Container", "max": {"cpu": "1"}});
        assert_eq!(fault(max(), both("500m", "1")), "");
        assert_eq!(fault(max(), both("500m", "2")), "maximum cpu usage per Container is 1, but limit is 2");
        assert_eq!(fault(max(), json!({})), "maximum cpu usage per Container is 1.  No limit is specified");
        let min = || json!({"type": "Pod", "min": {"cpu": "500m"}});
        assert_eq!(fault(min(), both("100m", "1")), "minimum cpu usage per Pod is 500m, but request is 100m");
        assert_eq!(fault(min(), json!({})), "minimum cpu usage per Pod is 500m.  No request is specified");
        let ratio = || json!({"type": "Container", "maxLimitRequestRatio": {"cpu": "2"}});
        assert_eq!(fault(ratio(), both("500m", "1")), "");
        let wide = fault(ratio(), both("100m", "1"));
        assert_eq!(
            wide,
            "cpu max limit to request ratio per Container is 2, but provided ratio is 10.000000"
        );
    }

    #[test]
    fn claims_have_limits_of_their_own() {
        let limits = limits(
            json!({"type": "PersistentVolumeClaim", "min": {"storage": "1Gi"}, "max": {"storage": "2Gi"}}),
        );
        let claim = |size: &str| json!({"spec": {"resources": {"requests": {"storage": size}}}});
        assert_eq!(faults_of_claim(limits.iter(), &claim("1Gi")), None);
        assert_eq!(
            faults_of_claim(limits.iter(), &claim("3Gi")).unwrap(),
            "maximum storage usage per PersistentVolumeClaim is 2Gi, but request is 3Gi"
        );
        assert_eq!(
            faults_of_claim(limits.iter(), &claim("512Mi")).unwrap(),
            "minimum storage usage per PersistentVolumeClaim is 1Gi, but request is 512Mi"
        );
    }
}
