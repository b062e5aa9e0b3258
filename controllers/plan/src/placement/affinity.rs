//! Whether a node suits a pod by its labels, name and taints. Knows no resources.

use std::collections::BTreeMap;

use k8s_openapi::api::core::v1::{
    Node, NodeAffinity, NodeSelectorRequirement, NodeSelectorTerm, Taint, Toleration,
};

use crate::pods::body::PodSpec;

/// Taint of a node whose agent does not report, or not yet. A node that is not ready counts as tainted so.
pub const NOT_READY: &str = "node.kubernetes.io/not-ready";
/// Taint of a node from which nothing is heard.
pub const UNREACHABLE: &str = "node.kubernetes.io/unreachable";
/// What a node that is closed for new pods counts as tainted with.
pub const UNSCHEDULABLE: &str = "node.kubernetes.io/unschedulable";

/// Whether a node matches a pod's `nodeSelector` and required node affinity.
pub fn matches(spec: &PodSpec, node: &Node) -> bool {
    let empty = BTreeMap::new();
    let labels = node.metadata.labels.as_ref().unwrap_or(&empty);
    let selected = spec.node_selector.iter().flatten().all(|(k, v)| labels.get(k) == Some(v));
    let required =
        affinity(spec).and_then(|a| a.required_during_scheduling_ignored_during_execution.as_ref());
    selected && required.is_none_or(|r| r.node_selector_terms.iter().any(|t| matches_term(t, node)))
}

/// The one node that a pod's required affinity leaves by name, where it is one.
pub fn only_node(spec: &PodSpec) -> Option<&str> {
    let required = affinity(spec)?.required_during_scheduling_ignored_during_execution.as_ref()?;
    let mut names = required.node_selector_terms.iter().map(|term| {
        let fields = term.match_fields.as_deref().unwrap_or_default();
        let named = fields.iter().find(|f| f.key == "metadata.name" && f.operator == "In")?;
        match named.values.as_deref() {
            Some([one]) => Some(one.as_str()),
            _ => None,
        }
    });
    let first = names.next()??;
    names.all(|name| name == Some(first)).then_some(first)
}

/// The weights of the preferred terms that a node matches.
pub fn preference(spec: &PodSpec, node: &Node) -> i64 {
    let preferred =
        affinity(spec).and_then(|a| a.preferred_during_scheduling_ignored_during_execution.as_ref());
    let matching = preferred.into_iter().flatten().filter(|term| matches_term(&term.preference, node));
    matching.map(|term| i64::from(term.weight)).sum()
}

fn affinity(spec: &PodSpec) -> Option<&NodeAffinity> {
    spec.affinity.as_ref()?.node_affinity.as_ref()
}

/// All requirements of a term hold; a term without any matches nothing.
fn matches_term(term: &NodeSelectorTerm, node: &Node) -> bool {
    let empty = BTreeMap::new();
    let labels = node.metadata.labels.as_ref().unwrap_or(&empty);
    let expressions = term.match_expressions.as_deref().unwrap_or_default();
    let fields = term.match_fields.as_deref().unwrap_or_default();
    if expressions.is_empty() && fields.is_empty() {
        return false;
    }
    let name = |field: &str| (field == "metadata.name").then_some(node.metadata.name.as_ref()).flatten();
    expressions.iter().all(|r| holds(r, labels.get(&r.key))) && fields.iter().all(|r| holds(r, name(&r.key)))
}

fn holds(requirement: &NodeSelectorRequirement, value: Option<&String>) -> bool {
    let values = requirement.values.as_deref().unwrap_or_default();
    let among = value.is_some_and(|v| values.contains(v));
    let number = |text: Option<&String>| text.and_then(|t| t.parse::<i64>().ok());
    let (have, bound) = (number(value), number(values.first()));
    match requirement.operator.as_str() {
        "In" => among,
        "NotIn" => !among,
        "Exists" => value.is_some(),
        "DoesNotExist" => value.is_none(),
        "Gt" => have.zip(bound).is_some_and(|(have, bound)| have > bound),
        "Lt" => have.zip(bound).is_some_and(|(have, bound)| have < bound),
        _ => false,
    }
}

/// The taints of a node that keep pods off. A node that is not ready counts as tainted so.
pub fn hard_taints(node: &Node) -> Vec<Taint> {
    let taints = node.spec.iter().flat_map(|s| s.taints.iter().flatten());
    // Whether a node is closed is asked for itself, and has words of its own.
    let written = taints.filter(|t| matches!(t.effect.as_str(), "NoSchedule" | "NoExecute"));
    let written = written.filter(|t| t.key != UNSCHEDULABLE || t.effect != "NoSchedule" || !is_closed(node));
    let mut hard: Vec<Taint> = written.cloned().collect();
    let said = hard.iter().any(|t| t.key == NOT_READY || t.key == UNREACHABLE);
    if !is_ready(node) && !said {
        hard.push(no_schedule(NOT_READY));
    }
    hard
}

/// How many taints ask softly to keep a pod off a node.
pub fn soft_taints(spec: &PodSpec, node: &Node) -> i64 {
    let taints = node.spec.iter().flat_map(|s| s.taints.iter().flatten());
    let soft = taints.filter(|t| t.effect == "PreferNoSchedule" && !is_tolerated(spec, t));
    i64::try_from(soft.count()).unwrap_or(i64::MAX)
}

/// Whether a node is closed for new pods.
pub fn is_closed(node: &Node) -> bool {
    node.spec.as_ref().and_then(|s| s.unschedulable) == Some(true)
}

/// Whether a pod comes to nodes that are closed as well.
pub fn tolerates_closed(spec: &PodSpec) -> bool {
    is_tolerated(spec, &no_schedule(UNSCHEDULABLE))
}

fn no_schedule(key: &str) -> Taint {
    Taint { key: key.to_owned(), effect: "NoSchedule".to_owned(), ..Taint::default() }
}

fn is_ready(node: &Node) -> bool {
    let conditions = node.status.as_ref().and_then(|s| s.conditions.as_ref());
    conditions.into_iter().flatten().any(|c| c.type_ == "Ready" && c.status == "True")
}

/// Whether a pod tolerates a taint.
pub fn is_tolerated(spec: &PodSpec, taint: &Taint) -> bool {
    spec.tolerations.iter().flatten().any(|t| tolerates(t, taint))
}

/// Whether a toleration is of a taint.
pub fn tolerates(toleration: &Toleration, taint: &Taint) -> bool {
    let effect = toleration.effect.as_deref().unwrap_or_default();
    let key = toleration.key.as_deref().unwrap_or_default();
    let exists = toleration.operator.as_deref() == Some("Exists");
    let value = toleration.value.as_deref().unwrap_or_default();
    (effect.is_empty() || effect == taint.effect)
        && (if key.is_empty() { exists } else { key == taint.key })
        && (exists || value == taint.value.as_deref().unwrap_or_default())
}
