//! The Endpoints controller: one object a Service, with the addresses of all its pods, for clients that do not know
//! slices. Knows nothing of slices.

use std::collections::BTreeMap;
use std::sync::Arc;

use jiff::Timestamp;
use serde_json::{Map, Value, json};
use strata_model::object::Object;
use strata_model::resource::builtin;

use super::offer::{self, Observed, Port};
use super::slices;
use crate::controller::{
    Action, Controller, Key, MapTo, ObserveError, Plan, Propagation, Target, View, Watched,
};
use crate::pods::{self, PodRef};

/// Most addresses of one object; the rest is in slices alone.
const MOST: usize = 1000;
/// Annotation of an object that does not hold all of them.
const OVER_CAPACITY: &str = "endpoints.kubernetes.io/over-capacity";
/// Label with who writes an object.
const MANAGED_BY: &str = "endpoints.kubernetes.io/managed-by";
/// Who the objects say writes them.
const WRITER: &str = "endpoint-controller";

/// The controller. Has no configuration.
#[derive(Clone, Copy, Debug, Default)]
pub struct EndpointsObjects;

/// A service with its pods, and the object of its name.
#[derive(Debug)]
pub enum Listed {
    /// There is a service whose endpoints are ours.
    Wanted {
        /// The service and its pods.
        offer: Observed,
        /// What is written.
        present: Option<Arc<Object>>,
    },
    /// The service is gone, and what we wrote for it is not.
    Left(Arc<Object>),
}

fn service_of_endpoints(_: &dyn View, endpoints: &Object) -> Vec<Key> {
    vec![Key::new(&builtin::SERVICE, endpoints.key())]
}

impl Controller for EndpointsObjects {
    type Observed = Listed;

    fn name(&self) -> &'static str {
        "endpoints"
    }

    fn watches(&self) -> Vec<Watched> {
        vec![
            Watched::all(&builtin::SERVICE, MapTo::Itself),
            Watched::all(&builtin::POD, MapTo::With(offer::services_of_pod)),
            Watched::all(&builtin::ENDPOINTS, MapTo::With(service_of_endpoints)),
        ]
    }

    fn observe(&self, view: &dyn View, key: &Key) -> Result<Option<Listed>, ObserveError> {
        let present = view.get(&builtin::ENDPOINTS.id, &key.object);
        if let Some(offer) = offer::observe(view, key)? {
            return Ok(Some(Listed::Wanted { offer, present }));
        }
        let gone = view.get(&builtin::SERVICE.id, &key.object).is_none();
        let ours = present.filter(|o| gone && o.meta().label(MANAGED_BY) == Some(WRITER));
        Ok(ours.filter(|o| !o.meta().is_deleting()).map(Listed::Left))
    }

    fn plan(&self, observed: &Listed, _: Timestamp) -> Plan {
        let mut plan = Plan::settled();
        match observed {
            Listed::Left(object) => plan.actions.push(Action::Delete {
                target: Target::of(&builtin::ENDPOINTS, object),
                propagation: Propagation::Background,
                grace_seconds: None,
            }),
            Listed::Wanted { offer, present } => write(offer, present.as_deref(), &mut plan),
        }
        plan
    }
}

/// Addresses with the same ports: those to ask, and those not yet.
#[derive(Debug, Default)]
struct Subset {
    ready: Vec<Value>,
    others: Vec<Value>,
}

fn write(offer: &Observed, present: Option<&Object>, plan: &mut Plan) {
    let (subsets, truncated) = subsets(offer);
    let mut labels = offer.labels();
    labels.insert(MANAGED_BY.to_owned(), WRITER.to_owned());
    let over = truncated.then(|| json!("truncated"));
    let Some(present) = present else {
        let service = offer.service.object().meta();
        let mut metadata = json!({"name": service.name, "namespace": service.namespace, "labels": labels});
        if let Some(over) = over {
            metadata["annotations"] = json!({OVER_CAPACITY: over});
        }
        let mut object = json!({
            "apiVersion": builtin::ENDPOINTS.api_version(), "kind": builtin::ENDPOINTS.kind, "metadata": metadata,
        });
        if !subsets.is_empty() {
            object["subsets"] = json!(subsets);
        }
        plan.actions.push(Action::Create { resource: builtin::ENDPOINTS.clone(), object });
        return;
    };
    if present.meta().is_deleting() {
        return;
    }
    let mut metadata = Map::new();
    if let Some(labels) = slices::labels(present, &labels) {
        metadata.insert("labels".to_owned(), labels);
    }
    if present.meta().annotations.get(OVER_CAPACITY).map(|v| json!(v)) != over {
        metadata.insert("annotations".to_owned(), json!({OVER_CAPACITY: over}));
    }
    let mut patch = Map::new();
    let value = present.to_value().unwrap_or_default();
    if value["subsets"].as_array().map(Vec::as_slice).unwrap_or_default() != subsets.as_slice() {
        let subsets = if subsets.is_empty() { Value::Null } else { json!(subsets) };
        patch.insert("subsets".to_owned(), subsets);
    }
    if !metadata.is_empty() {
        patch.insert("metadata".to_owned(), Value::Object(metadata));
    }
    if !patch.is_empty() {
        let target = Target::of(&builtin::ENDPOINTS, present);
        plan.actions.push(Action::Patch { target, patch: Value::Object(patch) });
    }
}

/// The subsets, ordered by their ports, and whether there was not room for all. Pods that go are in none, unless all
/// are published.
fn subsets(offer: &Observed) -> (Vec<Value>, bool) {
    let family = offer.families().first().copied().unwrap_or("IPv4");
    let mut sets: BTreeMap<Vec<Port>, Subset> = BTreeMap::new();
    let listed = |pod: &&PodRef| offer.publishes_all() || !pod.object().meta().is_deleting();
    let mut found: Vec<(&PodRef, &str)> = offer
        .pods
        .iter()
        .filter(listed)
        .filter_map(|pod| Some((pod, offer::address(pod, family)?)))
        .collect();
    let ready = |pod: &PodRef| offer.publishes_all() || pods::ready_since(pod).is_some();
    // Those that can be asked come first where there is not room for all.
    found.sort_by_key(|(pod, _)| !ready(pod));
    let truncated = found.len() > MOST;
    found.truncate(MOST);
    for (pod, ip) in found {
        let mut ports = offer.ports(pod);
        ports.sort();
        let mut address = json!({"ip": ip, "targetRef": offer::reference(pod.object())});
        if !pods::node_name(pod).is_empty() {
            address["nodeName"] = json!(pods::node_name(pod));
        }
        if let Some(hostname) = offer.hostname(pod) {
            address["hostname"] = json!(hostname);
        }
        let set = sets.entry(ports).or_default();
        if ready(pod) { set.ready.push(address) } else { set.others.push(address) }
    }
    (sets.into_iter().map(|(ports, set)| subset(&ports, set)).collect(), truncated)
}

fn subset(ports: &[Port], mut set: Subset) -> Value {
    let mut value = Map::new();
    for (field, addresses) in [("addresses", &mut set.ready), ("notReadyAddresses", &mut set.others)] {
        addresses.sort_by_key(|address| (address["ip"].to_string(), address["targetRef"]["uid"].to_string()));
        if !addresses.is_empty() {
            value.insert(field.to_owned(), json!(addresses));
        }
    }
    if !ports.is_empty() {
        let ports = ports.iter().map(|port| {
            let mut value = port.to_value();
            // The only port of a service needs no name, and has none here.
            if let Some(members) = value.as_object_mut().filter(|_| port.name.is_empty()) {
                members.remove("name");
            }
            value
        });
        value.insert("ports".to_owned(), ports.collect());
    }
    Value::Object(value)
}
