//! How endpoints are laid into slices: the fewest that hold them, with the fewest writes. Knows what a slice is, and
//! nothing of services or pods.

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;

use serde_json::{Map, Value, json};
use strata_model::meta::OwnerReference;
use strata_model::object::Object;
use strata_model::resource::builtin;

use crate::controller::{Action, Plan, Propagation, Target};

/// Most endpoints that are put into one slice.
pub const MOST: usize = 100;
/// Label with the name of the service that a slice belongs to.
pub const SERVICE: &str = "kubernetes.io/service-name";
/// Label with who writes a slice.
pub const MANAGED_BY: &str = "endpointslice.kubernetes.io/managed-by";

/// Endpoints of one kind of address with the same ports.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Sort {
    /// `IPv4` or `IPv6`.
    pub family: &'static str,
    /// The ports, as JSON text: it orders and compares.
    pub ports: String,
}

impl Sort {
    /// The sort of a family and a list of ports.
    pub fn new(family: &'static str, ports: Vec<Value>) -> Self {
        Self { family, ports: Value::Array(ports).to_string() }
    }

    fn ports(&self) -> Value {
        serde_json::from_str(&self.ports).unwrap_or_default()
    }
}

/// What slices there are to be.
#[derive(Debug)]
pub struct Desired<'a> {
    /// Namespace of the slices.
    pub namespace: &'a str,
    /// What their names begin with.
    pub name: &'a str,
    /// Their owner.
    pub owner: OwnerReference,
    /// All their labels.
    pub labels: BTreeMap<String, String>,
    /// The families of which there is a slice even if it holds nothing.
    pub families: Vec<&'static str>,
    /// The endpoints.
    pub endpoints: BTreeMap<Sort, Vec<Value>>,
}

/// A slice that exists, with what is to be in it.
struct Slice<'a> {
    object: &'a Object,
    value: Value,
    endpoints: Vec<Value>,
    changed: bool,
}

/// What makes an endpoint the same one: its address, and who is there.
fn identity(endpoint: &Value) -> (&Value, &Value) {
    (&endpoint["addresses"], &endpoint["targetRef"]["uid"])
}

fn list(value: &Value) -> Vec<Value> {
    value.as_array().cloned().unwrap_or_default()
}

/// Brings the slices that exist to what is desired.
pub fn reconcile(desired: &Desired<'_>, existing: &[Arc<Object>], plan: &mut Plan) {
    let mut left: Vec<Slice<'_>> = existing
        .iter()
        .filter(|slice| !slice.meta().is_deleting())
        .map(|object| {
            let value = object.to_value().unwrap_or_default();
            Slice { object, endpoints: list(&value["endpoints"]), value, changed: false }
        })
        .collect();
    let mut made: Vec<(Sort, Vec<Value>)> = Vec::new();
    let mut kept: Vec<(Sort, Slice<'_>)> = Vec::new();
    for (sort, endpoints) in &desired.endpoints {
        let ports = sort.ports();
        let (same, others): (Vec<_>, Vec<_>) = left.into_iter().partition(|slice| {
            slice.value["addressType"] == sort.family && list(&slice.value["ports"]) == list(&ports)
        });
        left = others;
        let (slices, fresh) = lay(same, endpoints);
        let (slices, emptied): (Vec<_>, Vec<_>) = slices.into_iter().partition(|s| !s.endpoints.is_empty());
        left.extend(emptied);
        kept.extend(slices.into_iter().map(|slice| (sort.clone(), slice)));
        made.extend(fresh.into_iter().map(|endpoints| (sort.clone(), endpoints)));
    }
    // A family without endpoints has one empty slice, which says that somebody looked.
    for family in &desired.families {
        if desired.endpoints.keys().all(|sort| sort.family != *family) {
            let sort = Sort::new(family, Vec::new());
            match left.iter().position(|slice| slice.value["addressType"] == **family) {
                Some(at) => kept.push((sort, Slice { endpoints: Vec::new(), ..left.remove(at) })),
                None => made.push((sort, Vec::new())),
            }
        }
    }
    // What is too much holds what is missing, where its addresses are of the same family.
    for (sort, endpoints) in made {
        match left.iter().position(|slice| slice.value["addressType"] == sort.family) {
            Some(at) => kept.push((sort, Slice { endpoints, ..left.remove(at) })),
            None => create(desired, &sort, endpoints, plan),
        }
    }
    for (sort, slice) in kept {
        update(desired, &sort, &slice, plan);
    }
    for slice in left {
        let target = Target::of(&builtin::ENDPOINT_SLICE, slice.object);
        plan.actions.push(Action::Delete {
            target,
            propagation: Propagation::Background,
            grace_seconds: None,
        });
    }
}

/// Lays endpoints into the slices of their sort. Those stay where they are that are there; what is new fills slices
/// that change anyway, then the fullest one that takes all of it, and then new ones. Answers what there is to be in
/// those slices (some may be empty then), and in new ones.
fn lay<'a>(slices: Vec<Slice<'a>>, endpoints: &[Value]) -> (Vec<Slice<'a>>, Vec<Vec<Value>>) {
    let mut wanted: BTreeMap<String, &Value> = BTreeMap::new();
    let mut order = Vec::new();
    for endpoint in endpoints {
        let (address, uid) = identity(endpoint);
        let id = format!("{address} {uid}");
        if wanted.insert(id.clone(), endpoint).is_none() {
            order.push(id);
        }
    }
    let mut slices = slices;
    for slice in &mut slices {
        let present = std::mem::take(&mut slice.endpoints);
        for old in present {
            let (address, uid) = identity(&old);
            match wanted.remove(&format!("{address} {uid}")) {
                Some(new) => {
                    slice.changed |= *new != old;
                    slice.endpoints.push(new.clone());
                }
                None => slice.changed = true,
            }
        }
    }
    let mut missing: VecDeque<Value> =
        order.iter().filter_map(|id| wanted.get(id)).map(|endpoint| (*endpoint).clone()).collect();
    slices.sort_by_key(|slice| (!slice.changed, std::cmp::Reverse(slice.endpoints.len())));
    for slice in slices.iter_mut().filter(|slice| slice.changed) {
        while slice.endpoints.len() < MOST && !missing.is_empty() {
            slice.endpoints.extend(missing.pop_front());
        }
    }
    let mut fresh = Vec::new();
    while missing.len() >= MOST {
        fresh.push(missing.drain(..MOST).collect());
    }
    if !missing.is_empty() {
        let fits = slices.iter_mut().find(|slice| slice.endpoints.len() + missing.len() <= MOST);
        match fits {
            Some(slice) => slice.endpoints.extend(missing),
            None => fresh.push(missing.into()),
        }
    }
    (slices, fresh)
}

fn create(desired: &Desired<'_>, sort: &Sort, endpoints: Vec<Value>, plan: &mut Plan) {
    let object = json!({
        "apiVersion": builtin::ENDPOINT_SLICE.api_version(),
        "kind": builtin::ENDPOINT_SLICE.kind,
        "metadata": {
            "generateName": format!("{}-", desired.name),
            "namespace": desired.namespace,
            "labels": desired.labels,
            "ownerReferences": [desired.owner],
        },
        "addressType": sort.family,
        "endpoints": endpoints,
        "ports": sort.ports(),
    });
    plan.actions.push(Action::Create { resource: builtin::ENDPOINT_SLICE.clone(), object });
}

/// Writes what is different about a slice, if anything is.
fn update(desired: &Desired<'_>, sort: &Sort, slice: &Slice<'_>, plan: &mut Plan) {
    let mut patch = Map::new();
    if list(&slice.value["endpoints"]) != slice.endpoints {
        patch.insert("endpoints".to_owned(), json!(slice.endpoints));
    }
    let ports = sort.ports();
    if list(&slice.value["ports"]) != list(&ports) {
        patch.insert("ports".to_owned(), ports);
    }
    if let Some(labels) = labels(slice.object, &desired.labels) {
        patch.insert("metadata".to_owned(), json!({"labels": labels}));
    }
    if !patch.is_empty() {
        let target = Target::of(&builtin::ENDPOINT_SLICE, slice.object);
        plan.actions.push(Action::Patch { target, patch: Value::Object(patch) });
    }
}

/// The patch that makes an object's labels exactly these; `None`: they are.
pub fn labels(object: &Object, wanted: &BTreeMap<String, String>) -> Option<Value> {
    let present = &object.meta().labels;
    if present == wanted {
        return None;
    }
    let gone = present.keys().filter(|name| !wanted.contains_key(*name));
    let mut patch: Map<String, Value> = gone.map(|name| (name.clone(), Value::Null)).collect();
    let new = wanted.iter().filter(|(name, value)| present.get(*name) != Some(value));
    patch.extend(new.map(|(name, value)| (name.clone(), json!(value))));
    Some(Value::Object(patch))
}
