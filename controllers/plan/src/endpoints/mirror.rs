//! The mirroring controller: Endpoints that people write for a Service without a selector, as slices. Knows no pods.

use std::collections::BTreeMap;
use std::sync::Arc;

use jiff::Timestamp;
use k8s_openapi::api::core::v1::{EndpointAddress, EndpointPort, EndpointSubset, Endpoints, Service};
use serde_json::{Value, json};
use strata_model::object::Object;
use strata_model::resource::builtin;

use super::offer::{self, Port};
use super::slices::{self, Desired, MANAGED_BY, SERVICE, Sort};
use crate::controller::{
    Action, Controller, Key, MapTo, ObserveError, Plan, Propagation, Target, View, Watched,
};
use crate::ownership;
use crate::typed::Typed;

/// Who the slices say writes them.
const WRITER: &str = "endpointslicemirroring-controller.k8s.io";
/// Label of endpoints that are not to be mirrored.
const SKIP: &str = "endpointslice.kubernetes.io/skip-mirror";
/// Annotation of endpoints by which somebody elects a leader.
const LEADER: &str = "control-plane.alpha.kubernetes.io/leader";
/// Most addresses of a subset that are mirrored.
const MOST: usize = 1000;

/// The controller. Has no configuration.
#[derive(Clone, Copy, Debug, Default)]
pub struct Mirrors;

/// Endpoints, whether they are to be mirrored, and their slices.
#[derive(Debug)]
pub struct Mirrored {
    endpoints: Typed<Endpoints>,
    wanted: bool,
    slices: Vec<Arc<Object>>,
}

fn endpoints_of_service(_: &dyn View, service: &Object) -> Vec<Key> {
    vec![Key::new(&builtin::ENDPOINTS, service.key())]
}

fn is_wanted(view: &dyn View, endpoints: &Object) -> bool {
    let service = view.get(&builtin::SERVICE.id, &endpoints.key());
    let service = service.and_then(|object| Typed::<Service>::new(object).ok());
    let meta = endpoints.meta();
    service.is_some_and(|service| !offer::is_selecting(&service))
        && meta.label(SKIP) != Some("true")
        && !meta.annotations.contains_key(LEADER)
        && !meta.is_deleting()
}

impl Controller for Mirrors {
    type Observed = Mirrored;

    fn name(&self) -> &'static str {
        "endpointslicemirroring"
    }

    fn watches(&self) -> Vec<Watched> {
        vec![
            Watched::all(&builtin::ENDPOINTS, MapTo::Itself),
            Watched::all(&builtin::SERVICE, MapTo::With(endpoints_of_service)),
            Watched::all(&builtin::ENDPOINT_SLICE, MapTo::Controller(&builtin::ENDPOINTS)),
        ]
    }

    fn observe(&self, view: &dyn View, key: &Key) -> Result<Option<Mirrored>, ObserveError> {
        let Some(endpoints) = view.get(&builtin::ENDPOINTS.id, &key.object) else { return Ok(None) };
        let mut slices = view.owned_by(&builtin::ENDPOINT_SLICE.id, &endpoints.meta().uid);
        slices.retain(|s| ownership::controls(&endpoints, s) && s.meta().label(MANAGED_BY) == Some(WRITER));
        let wanted = is_wanted(view, &endpoints);
        let endpoints = Typed::new(endpoints).map_err(ObserveError::at(key))?;
        Ok(Some(Mirrored { endpoints, wanted, slices }))
    }

    fn plan(&self, observed: &Mirrored, _: Timestamp) -> Plan {
        let mut plan = Plan::settled();
        let object = observed.endpoints.object();
        if !observed.wanted {
            for slice in observed.slices.iter().filter(|slice| !slice.meta().is_deleting()) {
                plan.actions.push(Action::Delete {
                    target: Target::of(&builtin::ENDPOINT_SLICE, slice),
                    propagation: Propagation::Background,
                    grace_seconds: None,
                });
            }
            return plan;
        }
        let mut endpoints: BTreeMap<Sort, Vec<Value>> = BTreeMap::new();
        for subset in observed.endpoints.subsets.iter().flatten() {
            mirror(subset, &mut endpoints);
        }
        let meta = object.meta();
        let mut labels = meta.labels.clone();
        labels.insert(SERVICE.to_owned(), meta.name.clone());
        labels.insert(MANAGED_BY.to_owned(), WRITER.to_owned());
        let desired = Desired {
            namespace: &meta.namespace,
            name: &meta.name,
            owner: ownership::controller_reference(&builtin::ENDPOINTS, object),
            labels,
            families: Vec::new(),
            endpoints,
        };
        slices::reconcile(&desired, &observed.slices, &mut plan);
        plan
    }
}

fn mirror(subset: &EndpointSubset, endpoints: &mut BTreeMap<Sort, Vec<Value>>) {
    let ports: Vec<Value> = subset.ports.iter().flatten().map(|p| port(p).to_value()).collect();
    let ready = subset.addresses.iter().flatten().map(|address| (address, true));
    let others = subset.not_ready_addresses.iter().flatten().map(|address| (address, false));
    for (address, ready) in ready.chain(others).take(MOST) {
        let family = if address.ip.contains(':') { "IPv6" } else { "IPv4" };
        let sort = Sort::new(family, ports.clone());
        endpoints.entry(sort).or_default().push(endpoint(address, ready));
    }
}

fn port(port: &EndpointPort) -> Port {
    Port {
        name: port.name.clone().unwrap_or_default(),
        protocol: port.protocol.clone().unwrap_or_else(|| "TCP".to_owned()),
        number: port.port,
        application: port.app_protocol.clone(),
    }
}

fn endpoint(address: &EndpointAddress, ready: bool) -> Value {
    let mut endpoint = json!({"addresses": [address.ip], "conditions": {"ready": ready}});
    if let Some(hostname) = &address.hostname {
        endpoint["hostname"] = json!(hostname);
    }
    if let Some(node) = &address.node_name {
        endpoint["nodeName"] = json!(node);
    }
    if let Some(target) = &address.target_ref {
        endpoint["targetRef"] = json!(target);
    }
    endpoint
}
