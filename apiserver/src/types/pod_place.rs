//! Checks of where a pod may run: affinities, spreading, tolerations, host names. Knows no object around the spec.

use serde_json::Value;
use strata_model::field::{FieldError, FieldPath};
use strata_model::names;

use super::check;
use super::rules::Faults;
use crate::value::{at, int, list, members, text};

const EFFECTS: &[&str] = &["NoExecute", "NoSchedule", "PreferNoSchedule"];
const OPERATORS: &[&str] = &["DoesNotExist", "Exists", "Gt", "In", "Lt", "NotIn"];

/// Checks where a pod may run.
pub fn validate(spec: &Value, path: &FieldPath, faults: &mut Faults) {
    if let Some(selector) = members(spec, &["nodeSelector"]) {
        super::meta::validate_labels(selector, &path.child("nodeSelector"), faults);
    }
    tolerations(spec, path, faults);
    for field in ["hostname", "subdomain"] {
        check::optional_name(spec, field, names::dns_label, path, faults);
    }
    if let Some(affinity) = at(spec, &["affinity"]) {
        let path = path.child("affinity");
        if let Some(node) = at(affinity, &["nodeAffinity"]) {
            node_affinity(node, &path.child("nodeAffinity"), faults);
        }
        for kind in ["podAffinity", "podAntiAffinity"] {
            if let Some(pods) = at(affinity, &[kind]) {
                pod_affinity(pods, &path.child(kind), faults);
            }
        }
    }
    for (index, spread) in list(spec, &["topologySpreadConstraints"]).iter().enumerate() {
        let path = path.child("topologySpreadConstraints").index(index);
        let skew = int(spread, &["maxSkew"]).unwrap_or(0);
        if skew <= 0 {
            faults.push(FieldError::invalid(path.child("maxSkew"), skew, "must be greater than zero"));
        }
        topology(spread, &path, faults);
        let actions = &["DoNotSchedule", "ScheduleAnyway"];
        check::known(spread, "whenUnsatisfiable", actions, &path, faults);
        check::selector(at(spread, &["labelSelector"]), &path.child("labelSelector"), faults);
    }
    for (index, gate) in list(spec, &["schedulingGates"]).iter().enumerate() {
        let path = path.child("schedulingGates").index(index);
        check::name(gate, "name", names::qualified_name, &path, faults);
    }
}

const REQUIRED: &str = "requiredDuringSchedulingIgnoredDuringExecution";
const PREFERRED: &str = "preferredDuringSchedulingIgnoredDuringExecution";

fn node_affinity(affinity: &Value, path: &FieldPath, faults: &mut Faults) {
    if let Some(required) = at(affinity, &[REQUIRED]) {
        let path = path.child(REQUIRED).child("nodeSelectorTerms");
        let terms = list(required, &["nodeSelectorTerms"]);
        if terms.is_empty() {
            faults.push(FieldError::required(path.clone(), "must have at least one node selector term"));
        }
        for (index, term) in terms.iter().enumerate() {
            node_term(term, &path.index(index), faults);
        }
    }
    for (index, term) in list(affinity, &[PREFERRED]).iter().enumerate() {
        let path = path.child(PREFERRED).index(index);
        weight(term, &path, faults);
        node_term(at(term, &["preference"]).unwrap_or(&Value::Null), &path.child("preference"), faults);
    }
}

fn weight(term: &Value, path: &FieldPath, faults: &mut Faults) {
    let weight = int(term, &["weight"]).unwrap_or(0);
    if !(1..=100).contains(&weight) {
        faults.push(FieldError::invalid(path.child("weight"), weight, "must be in the range 1-100"));
    }
}

fn node_term(term: &Value, path: &FieldPath, faults: &mut Faults) {
    for kind in ["matchExpressions", "matchFields"] {
        for (index, wish) in list(term, &[kind]).iter().enumerate() {
            let path = path.child(kind).index(index);
            let values = list(wish, &["values"]).len();
            let detail = match text(wish, &["operator"]) {
                "In" | "NotIn" if values == 0 => Some("must be specified when `operator` is 'In' or 'NotIn'"),
                "Exists" | "DoesNotExist" if values > 0 => {
                    let detail = "may not be specified when `operator` is 'Exists' or 'DoesNotExist'";
                    faults.push(FieldError::forbidden(path.child("values"), detail));
                    None
                }
                "Gt" | "Lt" if values != 1 => {
                    Some("must be specified single value when `operator` is 'Lt' or 'Gt'")
                }
                operator if !OPERATORS.contains(&operator) => {
                    let detail = "not a valid selector operator";
                    faults.push(FieldError::invalid(path.child("operator"), operator, detail));
                    None
                }
                _ => None,
            };
            if let Some(detail) = detail {
                faults.push(FieldError::required(path.child("values"), detail));
            }
            if kind == "matchExpressions" {
                check::name(wish, "key", names::qualified_name, &path, faults);
            }
        }
    }
}

fn pod_affinity(affinity: &Value, path: &FieldPath, faults: &mut Faults) {
    for (index, term) in list(affinity, &[REQUIRED]).iter().enumerate() {
        pod_term(term, &path.child(REQUIRED).index(index), faults);
    }
    for (index, term) in list(affinity, &[PREFERRED]).iter().enumerate() {
        let path = path.child(PREFERRED).index(index);
        weight(term, &path, faults);
        let term = at(term, &["podAffinityTerm"]).unwrap_or(&Value::Null);
        pod_term(term, &path.child("podAffinityTerm"), faults);
    }
}

fn pod_term(term: &Value, path: &FieldPath, faults: &mut Faults) {
    for selector in ["labelSelector", "namespaceSelector"] {
        check::selector(at(term, &[selector]), &path.child(selector), faults);
    }
    topology(term, path, faults);
}

fn topology(map: &Value, path: &FieldPath, faults: &mut Faults) {
    if text(map, &["topologyKey"]).is_empty() {
        faults.push(FieldError::required(path.child("topologyKey"), "can not be empty"));
    } else {
        check::optional_name(map, "topologyKey", names::qualified_name, path, faults);
    }
}

fn tolerations(spec: &Value, path: &FieldPath, faults: &mut Faults) {
    for (index, toleration) in list(spec, &["tolerations"]).iter().enumerate() {
        let path = path.child("tolerations").index(index);
        check::one_of(toleration, "effect", EFFECTS, &path, faults);
        check::one_of(toleration, "operator", &["Equal", "Exists"], &path, faults);
        check::optional_name(toleration, "key", names::qualified_name, &path, faults);
        let (key, operator) = (text(toleration, &["key"]), text(toleration, &["operator"]));
        if key.is_empty() && operator != "Exists" {
            let detail =
                "operator must be Exists when `key` is empty, which means \"match all values and all keys\"";
            faults.push(FieldError::invalid(path.child("operator"), operator, detail));
        }
        if operator == "Exists" && !text(toleration, &["value"]).is_empty() {
            let detail = "value must be empty when `operator` is 'Exists'";
            faults.push(FieldError::invalid(path.child("operator"), toleration, detail));
        }
        if at(toleration, &["tolerationSeconds"]).is_some() && text(toleration, &["effect"]) != "NoExecute" {
            let detail = "effect must be 'NoExecute' when `tolerationSeconds` is set";
            faults.push(FieldError::invalid(path.child("effect"), text(toleration, &["effect"]), detail));
        }
    }
}
