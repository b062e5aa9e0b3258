//! The EndpointSlice controller: holds the slices of a Service to the pods that it selects. Knows nothing of Endpoints.

use std::collections::BTreeMap;
use std::sync::Arc;

use jiff::Timestamp;
use serde_json::{Value, json};
use strata_model::object::{Object, ObjectKey};
use strata_model::resource::builtin;

use super::offer::{self, Observed};
use super::slices::{self, Desired, MANAGED_BY, SERVICE, Sort};
use crate::controller::{Controller, Key, MapTo, ObserveError, Plan, View, Watched};
use crate::ownership;
use crate::pods::{self, PodRef};

/// Who the slices say writes them.
const WRITER: &str = "endpointslice-controller.k8s.io";

/// The controller. Has no configuration.
#[derive(Clone, Copy, Debug, Default)]
pub struct EndpointSlices;

/// A service with its pods, and its slices.
#[derive(Debug)]
pub struct Sliced {
    offer: Observed,
    slices: Vec<Arc<Object>>,
}

/// The key of a slice: the service that its label names.
fn service_of_slice(_: &dyn View, slice: &Object) -> Vec<Key> {
    let meta = slice.meta();
    let ours = meta.label(MANAGED_BY) == Some(WRITER);
    let name = meta.label(SERVICE).filter(|_| ours);
    let key = |name: &str| Key::new(&builtin::SERVICE, ObjectKey::new(meta.namespace.clone(), name));
    name.map(key).into_iter().collect()
}

impl Controller for EndpointSlices {
    type Observed = Sliced;

    fn name(&self) -> &'static str {
        "endpointslice"
    }

    fn watches(&self) -> Vec<Watched> {
        vec![
            Watched::all(&builtin::SERVICE, MapTo::Itself),
            Watched::all(&builtin::POD, MapTo::With(offer::services_of_pod)),
            Watched::all(&builtin::ENDPOINT_SLICE, MapTo::With(service_of_slice)),
        ]
    }

    fn observe(&self, view: &dyn View, key: &Key) -> Result<Option<Sliced>, ObserveError> {
        let Some(offer) = offer::observe(view, key)? else { return Ok(None) };
        let service = offer.service.object();
        let mut slices = view.owned_by(&builtin::ENDPOINT_SLICE.id, &service.meta().uid);
        slices.retain(|s| ownership::controls(service, s) && s.meta().label(MANAGED_BY) == Some(WRITER));
        Ok(Some(Sliced { offer, slices }))
    }

    fn plan(&self, observed: &Sliced, _: Timestamp) -> Plan {
        let mut plan = Plan::settled();
        let offer = &observed.offer;
        let service = offer.service.object();
        let mut endpoints: BTreeMap<Sort, Vec<Value>> = BTreeMap::new();
        for family in offer.families() {
            for pod in &offer.pods {
                let Some(address) = offer::address(pod, family) else { continue };
                let ports = offer.ports(pod).iter().map(offer::Port::to_value).collect();
                let sort = Sort::new(family, ports);
                endpoints.entry(sort).or_default().push(endpoint(offer, pod, address));
            }
        }
        let name = service.meta().name.as_str();
        let mut labels = offer.labels();
        labels.insert(SERVICE.to_owned(), name.to_owned());
        labels.insert(MANAGED_BY.to_owned(), WRITER.to_owned());
        let desired = Desired {
            namespace: &service.meta().namespace,
            name,
            owner: ownership::controller_reference(&builtin::SERVICE, service),
            labels,
            families: offer.families(),
            endpoints,
        };
        slices::reconcile(&desired, &observed.slices, &mut plan);
        plan
    }
}

/// What a slice says of a pod: whether it answers, whether it goes, and so whether it should be asked.
fn endpoint(offer: &Observed, pod: &PodRef, address: &str) -> Value {
    let serving = pods::ready_since(pod).is_some();
    let terminating = pod.object().meta().is_deleting();
    let mut endpoint = json!({
        "addresses": [address],
        "conditions": {
            "ready": offer.publishes_all() || (serving && !terminating),
            "serving": serving,
            "terminating": terminating,
        },
        "targetRef": offer::reference(pod.object()),
    });
    if !pods::node_name(pod).is_empty() {
        endpoint["nodeName"] = json!(pods::node_name(pod));
    }
    if let Some(hostname) = offer.hostname(pod) {
        endpoint["hostname"] = json!(hostname);
    }
    endpoint
}
