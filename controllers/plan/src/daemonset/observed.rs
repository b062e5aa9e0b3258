//! What matters for one DaemonSet: its pods, and every node with whether it suits. Decides nothing about pods.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use jiff::Timestamp;
use k8s_openapi::api::apps::v1::{DaemonSet, DaemonSetSpec};
use k8s_openapi::api::core::v1::{Node, Taint};
use serde_json::{Value, json};
use strata_model::object::Object;
use strata_model::resource::builtin;
use strata_model::selector::Selector;

use crate::controller::{Key, ObserveError, View};
use crate::ownership::{self, Claim};
use crate::placement::affinity;
use crate::pods::body::{Pod, PodSpec};
use crate::pods::{self, PodRef};
use crate::revisions::History;
use crate::typed::Typed;

/// Label in which pods and revisions have the hash of their template.
pub const HASH: &str = "controller-revision-hash";
/// Taints that the pods of a DaemonSet bear: they are there to make nodes well, and are for this node or for none.
const BORNE: [(&str, &str); 6] = [
    ("node.kubernetes.io/not-ready", "NoExecute"),
    ("node.kubernetes.io/unreachable", "NoExecute"),
    ("node.kubernetes.io/disk-pressure", "NoSchedule"),
    ("node.kubernetes.io/memory-pressure", "NoSchedule"),
    ("node.kubernetes.io/pid-pressure", "NoSchedule"),
    ("node.kubernetes.io/unschedulable", "NoSchedule"),
];
/// The same, for pods on the network of their host.
const NETWORK: (&str, &str) = ("node.kubernetes.io/network-unavailable", "NoSchedule");

/// A node, and what it means to the set.
#[derive(Debug)]
pub struct Spot {
    /// The node.
    pub node: Typed<Node>,
    /// A pod should come.
    pub should_run: bool,
    /// A pod that is there may stay.
    pub may_stay: bool,
}

/// One DaemonSet with its pods and all nodes.
#[derive(Debug)]
pub struct Observed {
    /// The set.
    pub set: Typed<DaemonSet>,
    /// The set as JSON.
    pub value: Value,
    /// Of the body; `None` where it is malformed or empty, and so selects nothing.
    pub selector: Option<Selector>,
    /// Pods that the set controls, by name.
    pub owned: Vec<PodRef>,
    /// Active pods that match and that nobody controls, by name.
    pub orphans: Vec<PodRef>,
    /// All nodes by name.
    pub spots: Vec<Spot>,
    /// Indexes of owned pods, then of orphans, by the node they are for.
    by_node: HashMap<String, Vec<usize>>,
    /// Its templates.
    pub history: History,
}

/// Gathers it. `None`: the set is gone.
pub fn observe(view: &dyn View, key: &Key) -> Result<Option<Observed>, ObserveError> {
    let Some(object) = view.get(&builtin::DAEMON_SET.id, &key.object) else { return Ok(None) };
    let value = object.to_value().map_err(ObserveError::at(key))?;
    let set = Typed::<DaemonSet>::new(Arc::clone(&object)).map_err(ObserveError::at(key))?;
    let selector = selector_of(&set);
    let mut owned = view.owned_by(&builtin::POD.id, &object.meta().uid);
    owned.retain(|p| ownership::controls(&object, p));
    let owned: Vec<PodRef> = Typed::all(owned).map_err(ObserveError::at(key))?;
    let orphans = match selector.as_ref().filter(|_| !object.meta().is_deleting()) {
        Some(selector) => orphans(view, key, selector)?,
        None => Vec::new(),
    };
    let nodes = Typed::<Node>::all(view.list(&builtin::NODE.id, "")).map_err(ObserveError::at(key))?;
    let template: PodSpec =
        serde_json::from_value(value["spec"]["template"]["spec"].clone()).unwrap_or_default();
    let spots = nodes.into_iter().map(|node| spot(&template, node)).collect();
    let history = History::observe(view, (&builtin::DAEMON_SET, &object), HASH, selector.as_ref(), key)?;
    let mut by_node: HashMap<String, Vec<usize>> = HashMap::new();
    for (at, pod) in owned.iter().chain(&orphans).enumerate() {
        if let Some(node) = target_node(pod) {
            by_node.entry(node.to_owned()).or_default().push(at);
        }
    }
    Ok(Some(Observed { set, value, selector, owned, orphans, spots, by_node, history }))
}

fn orphans(view: &dyn View, key: &Key, selector: &Selector) -> Result<Vec<PodRef>, ObserveError> {
    let mut orphans = view.orphans(&builtin::POD.id, &key.object.namespace);
    orphans.retain(|p| selector.matches(&p.meta().labels));
    let mut orphans: Vec<PodRef> = Typed::all(orphans).map_err(ObserveError::at(key))?;
    orphans.retain(|p| pods::is_active(p.object(), p));
    Ok(orphans)
}

/// The selector of a set; `None` where it is malformed or empty.
pub fn selector_of(set: &DaemonSet) -> Option<Selector> {
    let selector = Selector::from_body(&set.spec.as_ref()?.selector).ok()?;
    (!selector.is_everything()).then_some(selector)
}

/// The node that a pod is bound to, or made for.
pub fn target_node(pod: &Pod) -> Option<&str> {
    let spec = pod.spec.as_ref()?;
    if let Some(node) = spec.node_name.as_deref().filter(|n| !n.is_empty()) {
        return Some(node);
    }
    affinity::only_node(spec)
}

fn spot(template: &PodSpec, node: Typed<Node>) -> Spot {
    let name = &node.object().meta().name;
    let asked = template.node_name.as_deref().filter(|n| !n.is_empty());
    let suits = asked.is_none_or(|asked| asked == name) && affinity::matches(template, &node);
    let borne = |t: &Taint| {
        let network = template.host_network == Some(true) && (t.key.as_str(), t.effect.as_str()) == NETWORK;
        network
            || BORNE.contains(&(t.key.as_str(), t.effect.as_str()))
            || (t.effect == "NoSchedule" && BORNE[..2].iter().any(|(key, _)| *key == t.key))
    };
    let taints = node.spec.iter().flat_map(|s| s.taints.iter().flatten());
    let against: Vec<&str> = taints
        .filter(|t| !borne(t) && !affinity::is_tolerated(template, t))
        .map(|t| t.effect.as_str())
        .collect();
    let driven_off = against.contains(&"NoExecute");
    let should_run =
        suits && !driven_off && !against.contains(&"NoSchedule") && !node.object().meta().is_deleting();
    Spot { should_run, may_stay: suits && !driven_off, node }
}

/// The spec of a pod for one node: node affinity names it in place of whatever fields it named, and the taints of nodes
/// that are not well are borne.
pub fn for_node(spec: &Value, node: &str) -> Value {
    let mut spec = spec.clone();
    let field = json!({"key": "metadata.name", "operator": "In", "values": [node]});
    let required = &mut spec["affinity"]["nodeAffinity"]["requiredDuringSchedulingIgnoredDuringExecution"];
    match required["nodeSelectorTerms"].as_array_mut().filter(|terms| !terms.is_empty()) {
        Some(terms) => terms.iter_mut().for_each(|term| term["matchFields"] = json!([field])),
        None => *required = json!({"nodeSelectorTerms": [{"matchFields": [field]}]}),
    }
    let network = (spec["hostNetwork"] == true).then_some(NETWORK);
    let mut tolerations = spec["tolerations"].as_array().cloned().unwrap_or_default();
    for (key, effect) in BORNE.into_iter().chain(network) {
        let toleration = json!({"key": key, "operator": "Exists", "effect": effect});
        if !tolerations.contains(&toleration) {
            tolerations.push(toleration);
        }
    }
    spec["tolerations"] = json!(tolerations);
    spec
}

impl Observed {
    /// The set at work on its pods.
    pub fn claim(&self) -> Claim<'_> {
        Claim { owner_type: &builtin::DAEMON_SET, owner: self.set.object(), dependents: &builtin::POD }
    }

    /// The spec, where there is one.
    pub fn spec(&self) -> Option<&DaemonSetSpec> {
        self.set.spec.as_ref()
    }

    /// Whether the selector still selects a pod.
    pub fn selects(&self, pod: &PodRef) -> bool {
        self.selector.as_ref().is_some_and(|s| s.matches(&pod.object().meta().labels))
    }

    /// The pods of the set for a node, owned or about to be adopted.
    pub fn pods_on(&self, node: &str) -> Vec<&PodRef> {
        let indexes = self.by_node.get(node).into_iter().flatten();
        let pod = |at: usize| self.owned.get(at).or_else(|| self.orphans.get(at - self.owned.len()));
        indexes.filter_map(|at| pod(*at)).filter(|p| self.selects(p)).collect()
    }

    /// Pods that are for no node that there is: whoever removes nodes removes those that are bound.
    pub fn elsewhere(&self) -> Vec<&PodRef> {
        let nodes: HashSet<&str> = self.spots.iter().map(|s| s.node.object().meta().name.as_str()).collect();
        let unbound = self.owned.iter().filter(|p| pods::node_name(p).is_empty());
        unbound.filter(|p| target_node(p).is_none_or(|node| !nodes.contains(node))).collect()
    }

    /// When a pod is or becomes available. `None`: it is not ready.
    pub fn available_at(&self, pod: &PodRef) -> Option<Timestamp> {
        let seconds = self.spec().and_then(|s| s.min_ready_seconds).unwrap_or(0);
        if pod.object().meta().is_deleting() { None } else { pods::available_at(pod, seconds.into()) }
    }

    /// A bound of the rolling update, of so many nodes; percentages round up.
    pub fn bound(&self, surge: bool, nodes: usize) -> usize {
        let rolling = self.spec().and_then(|s| s.update_strategy.as_ref()?.rolling_update.as_ref());
        let bound =
            rolling.and_then(|r| if surge { r.max_surge.as_ref() } else { r.max_unavailable.as_ref() });
        crate::rollout::rounded_up(bound, nodes, usize::from(!surge))
    }

    /// Whether outdated pods are replaced by us.
    pub fn is_rolling(&self) -> bool {
        let strategy = self.spec().and_then(|s| s.update_strategy.as_ref());
        strategy.and_then(|s| s.type_.as_deref()) != Some("OnDelete")
    }

    /// The set as an object.
    pub fn object(&self) -> &Arc<Object> {
        self.set.object()
    }
}
