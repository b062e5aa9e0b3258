//! The node lifecycle controller: says which nodes are lost, keeps new pods off them, and gives the pods of nodes that
//! stay lost back to those who replace them.
//!
//! Owns, of nodes, the conditions that an agent wrote and does not stand by any more, and the taints that follow from
//! conditions; and the end of pods whose node cannot bring it about. What must always hold:
//! * a node is lost when neither its lease nor its own word is younger than the grace period; a node that comes back is
//!   told so by its agent, and loses the taints;
//! * pods are driven off one node of a zone at a time, more slowly where most of a zone is lost, and not at all where
//!   every node is: then it is we who are cut off;
//! * a pod whose node is there is never removed by force: its processes may run. One whose node's object is gone is,
//!   once it had the time to end by itself.
//!
//! One key looks at all nodes; one key a node that is not well, or gone, looks at the pods bound to it.

mod evict;
mod health;
mod taints;
mod zones;
#[cfg(test)]
mod tests;

use std::time::Duration;

use jiff::Timestamp;
use k8s_openapi::api::coordination::v1::Lease;
use k8s_openapi::api::core::v1::Node;
use strata_model::object::{Object, ObjectKey};
use strata_model::resource::builtin;

use self::evict::Bound;
use self::health::Seen;
use crate::controller::{Controller, Key, MapTo, ObserveError, Plan, View, Watched};
use crate::pods;
use crate::pods::body::Pod;
use crate::typed::Typed;

/// How long a node may be silent before it counts as lost, where nothing else is asked for: four renewals of its lease.
pub const GRACE: Duration = Duration::from_secs(40);
/// Where nodes keep their leases.
const LEASES: &str = "kube-node-lease";
/// Most objects that one turn writes to.
const BATCH: usize = 100;

/// The controller.
#[derive(Clone, Copy, Debug)]
pub struct NodeLifecycle {
    /// How long a node may be silent.
    pub grace: Duration,
    /// Since when anybody could have been heard: silence from before does not count.
    pub since: Timestamp,
}

/// What matters for one key.
#[derive(Debug)]
pub enum Observed {
    /// All nodes with their signs of life.
    Nodes(Vec<Seen>),
    /// The pods of one node.
    Pods(Bound),
}

impl Controller for NodeLifecycle {
    type Observed = Observed;

    fn name(&self) -> &'static str {
        "nodelifecycle"
    }

    fn watches(&self) -> Vec<Watched> {
        let mut leases = Watched::all(&builtin::LEASE, MapTo::With(|_, _| Vec::new()));
        leases.field_selector = format!("metadata.namespace={LEASES}");
        vec![
            Watched::all(&builtin::NODE, MapTo::With(keys_of_node)),
            leases,
            Watched::all(&builtin::POD, MapTo::With(keys_of_pod)),
        ]
    }

    fn observe(&self, view: &dyn View, key: &Key) -> Result<Option<Observed>, ObserveError> {
        if key.object.name.is_empty() {
            let nodes =
                Typed::<Node>::all(view.list(&builtin::NODE.id, "")).map_err(ObserveError::at(key))?;
            let seen = nodes.into_iter().map(|node| {
                let lease =
                    view.get(&builtin::LEASE.id, &ObjectKey::new(LEASES, node.object().meta().name.clone()));
                let lease = lease.map(Typed::<Lease>::new).transpose().map_err(ObserveError::at(key))?;
                Ok(Seen { node, lease })
            });
            return Ok(Some(Observed::Nodes(seen.collect::<Result<_, ObserveError>>()?)));
        }
        let node = view.get(&builtin::NODE.id, &key.object).map(Typed::<Node>::new);
        let node = node.transpose().map_err(ObserveError::at(key))?;
        if node.as_ref().is_some_and(|node| !concerns_pods(node)) {
            return Ok(None);
        }
        let pods = Typed::<Pod>::all(view.list(&builtin::POD.id, "")).map_err(ObserveError::at(key))?;
        let pods = pods.into_iter().filter(|pod| pods::node_name(pod) == key.object.name).collect();
        Ok(Some(Observed::Pods(Bound { name: key.object.name.clone(), node, pods })))
    }

    fn plan(&self, observed: &Observed, now: Timestamp) -> Plan {
        match observed {
            Observed::Nodes(nodes) => health::plan(nodes, self, now),
            Observed::Pods(bound) => evict::plan(bound, now),
        }
    }
}

/// The one key that looks at all nodes. It names no object.
pub fn all_nodes() -> Key {
    Key::new(&builtin::NODE, ObjectKey::default())
}

fn of_node(name: &str) -> Key {
    Key::new(&builtin::NODE, ObjectKey::new("", name))
}

/// Whether the state of a node means something for the pods that it holds.
fn concerns_pods(node: &Node) -> bool {
    !health::is_ready(node) || taints::drive_off(node).next().is_some()
}

fn keys_of_node(view: &dyn View, object: &Object) -> Vec<Key> {
    let mut keys = vec![all_nodes()];
    let gone = view.get(&builtin::NODE.id, &object.key()).is_none();
    if gone || object.typed::<Node>().is_ok_and(concerns_pods) {
        keys.push(of_node(&object.meta().name));
    }
    keys
}

fn keys_of_pod(view: &dyn View, object: &Object) -> Vec<Key> {
    let Ok(pod) = object.typed::<Pod>() else { return Vec::new() };
    let name = pods::node_name(pod);
    if name.is_empty() {
        return Vec::new();
    }
    let node = view.get(&builtin::NODE.id, &ObjectKey::new("", name));
    let matters = node.is_none_or(|node| node.typed::<Node>().is_ok_and(concerns_pods));
    if matters { vec![of_node(name)] } else { Vec::new() }
}
