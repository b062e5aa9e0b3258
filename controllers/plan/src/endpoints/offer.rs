//! What a Service finds in the pods that it selects: their addresses and ports. Writes nothing, and knows neither slices
//! nor Endpoints.

use std::collections::BTreeMap;

use k8s_openapi::api::core::v1::{Service, ServicePort};
use k8s_openapi::apimachinery::pkg::util::intstr::IntOrString;
use serde_json::{Value, json};
use strata_model::object::Object;
use strata_model::resource::builtin;
use strata_model::selector::Selector;

use crate::controller::{Key, ObserveError, View};
use crate::pods::body::{Container, Pod};
use crate::pods::{self, PodRef};
use crate::typed::Typed;

/// Label of what belongs to a service without an address of its own.
pub const HEADLESS: &str = "service.kubernetes.io/headless";

/// A Service, and the pods that it selects.
#[derive(Debug)]
pub struct Observed {
    /// The service.
    pub service: Typed<Service>,
    /// Its pods, by name.
    pub pods: Vec<PodRef>,
}

/// A port as it is reached at an address.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Port {
    /// The service's name for it; empty where it has only one.
    pub name: String,
    /// `TCP`, `UDP`, `SCTP`.
    pub protocol: String,
    /// At the pod.
    pub number: i32,
    /// What is spoken there, if the service says so.
    pub application: Option<String>,
}

impl Port {
    /// As both kinds of objects have it.
    pub fn to_value(&self) -> Value {
        let mut port = json!({"name": self.name, "port": self.number, "protocol": self.protocol});
        if let Some(application) = &self.application {
            port["appProtocol"] = json!(application);
        }
        port
    }
}

/// Whether endpoints of a service are ours to write: it selects pods, and is not just another name.
pub fn is_selecting(service: &Service) -> bool {
    let Some(spec) = &service.spec else { return false };
    spec.type_.as_deref() != Some("ExternalName") && spec.selector.as_ref().is_some_and(|s| !s.is_empty())
}

/// The service of a key and its pods; `None` where there is none, or where its endpoints are not ours.
pub fn observe(view: &dyn View, key: &Key) -> Result<Option<Observed>, ObserveError> {
    let Some(service) = view.get(&builtin::SERVICE.id, &key.object) else { return Ok(None) };
    let service: Typed<Service> = Typed::new(service).map_err(ObserveError::at(key))?;
    if !is_selecting(&service) || service.object().meta().is_deleting() {
        return Ok(None);
    }
    let selector = selector(&service);
    let mut pods = view.list(&builtin::POD.id, &key.object.namespace);
    pods.retain(|pod| selector.matches(&pod.meta().labels));
    let mut pods = Typed::all(pods).map_err(ObserveError::at(key))?;
    pods.retain(|pod: &PodRef| !pods::is_finished(pod));
    Ok(Some(Observed { service, pods }))
}

fn selector(service: &Service) -> Selector {
    let labels = service.spec.as_ref().and_then(|s| s.selector.clone()).unwrap_or_default();
    Selector::from_labels(&labels.into_iter().collect())
}

/// The keys of a pod: every service of its namespace that selects it.
pub fn services_of_pod(view: &dyn View, pod: &Object) -> Vec<Key> {
    let services = view.list(&builtin::SERVICE.id, &pod.meta().namespace);
    let selecting = services
        .into_iter()
        .filter_map(|object| Typed::<Service>::new(object).ok())
        .filter(|service| is_selecting(service) && selector(service).matches(&pod.meta().labels));
    selecting.map(|service| Key::new(&builtin::SERVICE, service.object().key())).collect()
}

impl Observed {
    /// Whether pods are listed as ready that are not.
    pub fn publishes_all(&self) -> bool {
        self.service.spec.as_ref().and_then(|s| s.publish_not_ready_addresses) == Some(true)
    }

    /// Labels of what is made for the service: its own, and whether it is headless.
    pub fn labels(&self) -> BTreeMap<String, String> {
        let mut labels = self.service.object().meta().labels.clone();
        labels.remove(HEADLESS);
        let spec = self.service.spec.as_ref();
        if spec.and_then(|s| s.cluster_ip.as_deref()) == Some("None") {
            labels.insert(HEADLESS.to_owned(), String::new());
        }
        labels
    }

    /// The ports of the service at one of its pods; a named one that the pod does not have is left out.
    pub fn ports(&self, pod: &Pod) -> Vec<Port> {
        let ports = self.service.spec.as_ref().and_then(|s| s.ports.as_deref()).unwrap_or_default();
        ports.iter().filter_map(|port| at_pod(port, pod)).collect()
    }

    /// The name under which a pod is known in the service's domain.
    pub fn hostname<'p>(&self, pod: &'p Pod) -> Option<&'p str> {
        let spec = pod.spec.as_ref()?;
        let here = spec.subdomain.as_deref() == Some(&self.service.object().meta().name);
        spec.hostname.as_deref().filter(|name| here && !name.is_empty())
    }

    /// The families of addresses that the service has, as slices call them.
    pub fn families(&self) -> Vec<&'static str> {
        let families = self.service.spec.as_ref().and_then(|s| s.ip_families.as_deref()).unwrap_or_default();
        let named = families.iter().map(|family| if family == "IPv6" { "IPv6" } else { "IPv4" });
        let named: Vec<_> = named.collect();
        if named.is_empty() { vec!["IPv4"] } else { named }
    }
}

/// The first address of a pod in a family.
pub fn address<'p>(pod: &'p Pod, family: &str) -> Option<&'p str> {
    let addresses = pod.status.as_ref()?.pod_ips.as_deref()?.iter().map(|address| address.ip.as_str());
    addresses.into_iter().find(|address| address.contains(':') == (family == "IPv6"))
}

/// The reference to a pod.
pub fn reference(pod: &Object) -> Value {
    let meta = pod.meta();
    json!({"kind": builtin::POD.kind, "name": meta.name, "namespace": meta.namespace, "uid": meta.uid})
}

fn at_pod(port: &ServicePort, pod: &Pod) -> Option<Port> {
    let protocol = port.protocol.clone().unwrap_or_else(|| "TCP".to_owned());
    let number = match &port.target_port {
        None => port.port,
        Some(IntOrString::Int(0)) => port.port,
        Some(IntOrString::Int(number)) => *number,
        Some(IntOrString::String(name)) if name.is_empty() => port.port,
        Some(IntOrString::String(name)) => named(pod, name, &protocol)?,
    };
    let application = port.app_protocol.clone();
    Some(Port { name: port.name.clone().unwrap_or_default(), protocol, number, application })
}

/// The number of a named port of a pod, its sidecars included.
fn named(pod: &Pod, name: &str, protocol: &str) -> Option<i32> {
    let spec = pod.spec.as_ref()?;
    let stays = |container: &&Container| container.restart_policy.as_deref() == Some("Always");
    let sidecars = spec.init_containers.iter().flatten().filter(stays);
    let ports = spec.containers.iter().chain(sidecars).flat_map(|container| container.ports.iter().flatten());
    let mut found = ports.filter(|port| {
        port.name.as_deref() == Some(name) && port.protocol.as_deref().unwrap_or("TCP") == protocol
    });
    found.next().map(|port| port.container_port)
}
