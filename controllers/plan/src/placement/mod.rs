//! Where a pod fits best: nodes with what they hold, refusals in the usual words, and a choice that is the same every
//! time. Pure; knows nothing of binding, queues or conditions.

pub mod affinity;
pub mod topology;
pub mod preempt;
#[cfg(test)]
mod tests;

use std::collections::{BTreeMap, HashMap, HashSet};

use k8s_openapi::api::core::v1::{Node, Taint};

use self::topology::{Demand, Topology};
use crate::amounts::{Amounts, CPU, MEMORY, PODS};
use crate::pods::PodRef;
use crate::pods::body::PodSpec;
use crate::typed::Typed;

/// Pods that a node takes where it does not say.
const DEFAULT_PODS: i128 = 110;
/// The least places that fit and are compared, where there are as many.
const ENOUGH: usize = 100;
const NO_MATCH: &str = "node(s) didn't match Pod's node affinity/selector";

/// A node and what it holds.
#[derive(Clone, Debug)]
pub struct Place {
    node: Typed<Node>,
    allocatable: Amounts,
    used: Amounts,
    /// Pods by the uid of their controller.
    owners: HashMap<String, i64>,
    /// Ports of the host in use, with their protocol.
    ports: HashSet<(String, i32)>,
    /// The pods themselves.
    residents: Vec<PodRef>,
    /// Taints that keep pods off.
    taints: Vec<Taint>,
    /// Closed for new pods.
    closed: bool,
    /// On its way out.
    leaving: bool,
}

impl Place {
    /// An empty node.
    pub fn new(node: Typed<Node>) -> Self {
        let status = node.status.as_ref();
        let body = status.and_then(|s| s.allocatable.as_ref().or(s.capacity.as_ref()));
        let mut allocatable = Amounts::of(body);
        if !allocatable.names(PODS) {
            allocatable.add_one(PODS, DEFAULT_PODS * 1000);
        }
        Self {
            allocatable,
            used: Amounts::default(),
            owners: HashMap::new(),
            ports: HashSet::new(),
            residents: Vec::new(),
            taints: affinity::hard_taints(&node),
            closed: affinity::is_closed(&node),
            leaving: node.object().meta().is_deleting(),
            node,
        }
    }

    /// The same node without pods.
    pub fn emptied(&self) -> Self {
        Self {
            used: Amounts::default(),
            owners: HashMap::new(),
            ports: HashSet::new(),
            residents: Vec::new(),
            ..self.clone()
        }
    }

    /// The node's name.
    pub fn name(&self) -> &str {
        &self.node.object().meta().name
    }

    /// The node.
    pub fn node(&self) -> &Node {
        &self.node
    }

    /// A label of the node.
    pub fn label(&self, key: &str) -> Option<&str> {
        self.node.object().meta().label(key)
    }

    /// The pods that it was given as a whole.
    pub fn residents(&self) -> &[PodRef] {
        &self.residents
    }

    /// Puts a pod on it, whether it fits or not.
    pub fn host(&mut self, pod: &PodRef) {
        if let Some(spec) = pod.spec.as_ref() {
            self.take(spec, pod.object().meta().controller().map(|o| o.uid.as_str()));
        }
        self.residents.push(pod.clone());
    }

    /// Counts what a pod takes.
    fn take(&mut self, spec: &PodSpec, owner: Option<&str>) {
        self.used.add(&spec.requests());
        self.ports.extend(host_ports(spec));
        if let Some(owner) = owner {
            *self.owners.entry(owner.to_owned()).or_default() += 1;
        }
    }

    /// Why a pod cannot come here; empty where it can. The usual words.
    fn refusals(&self, request: &Request<'_>) -> Vec<String> {
        if let Some(refusal) = self.unfit(request) {
            return vec![refusal];
        }
        self.shortages(request.spec, &request.asked)
    }

    /// Why a pod cannot come here, whoever went.
    fn unfit(&self, request: &Request<'_>) -> Option<String> {
        let spec = request.spec;
        if self.leaving || (self.closed && !affinity::tolerates_closed(spec)) {
            return Some("node(s) were unschedulable".to_owned());
        }
        if let Some(taint) = self.taints.iter().find(|t| !affinity::is_tolerated(spec, t)) {
            let value = taint.value.as_deref().unwrap_or_default();
            return Some(format!("node(s) had untolerated taint {{{}: {value}}}", taint.key));
        }
        if !affinity::matches(spec, &self.node) {
            return Some(NO_MATCH.to_owned());
        }
        let (topology, demand) = request.company?;
        topology.refusal(demand, self).map(str::to_owned)
    }

    /// What there is too little of.
    fn shortages(&self, spec: &PodSpec, asked: &Amounts) -> Vec<String> {
        if host_ports(spec).any(|port| self.ports.contains(&port)) {
            return vec!["node(s) didn't have free ports for the requested pod ports".to_owned()];
        }
        let said = |name: &str| {
            if name == PODS { "Too many pods".to_owned() } else { format!("Insufficient {name}") }
        };
        asked.beyond(&self.allocatable, &self.used).map(said).collect()
    }

    /// Whether a pod would have room, all other rules aside.
    pub fn has_room_for(&self, spec: &PodSpec, asked: &Amounts) -> bool {
        self.shortages(spec, asked).is_empty()
    }

    /// Whether room is all that a pod would miss here.
    pub fn is_full_for(&self, request: &Request<'_>) -> bool {
        self.unfit(request).is_none() && !self.has_room_for(request.spec, &request.asked)
    }

    fn free(&self, name: &str) -> i128 {
        self.allocatable.get(name) - self.used.get(name)
    }

    /// How much of the cpu and memory would be left with a pod here, 0 to 100.
    fn spare(&self, asked: &Amounts) -> i64 {
        let small = |n: i128| i64::try_from(n).unwrap_or(i64::MAX);
        let left = |name: &str| {
            let hundredth = (small(self.allocatable.get(name)) / 100).max(1);
            (small((self.free(name) - asked.get(name)).max(0)) / hundredth).min(100)
        };
        (left(CPU) + left(MEMORY)) / 2
    }
}

/// Ports of the host that a pod binds. Addresses are not told apart: one port, one pod.
fn host_ports(spec: &PodSpec) -> impl Iterator<Item = (String, i32)> {
    let host_network = spec.host_network == Some(true);
    let ports = spec.containers.iter().flat_map(|c| c.ports.iter().flatten());
    ports.filter_map(move |p| {
        let port = p.host_port.or(host_network.then_some(p.container_port)).filter(|port| *port > 0)?;
        Some((p.protocol.clone().unwrap_or_else(|| "TCP".to_owned()), port))
    })
}

/// What a pod asks of a place.
#[derive(Debug)]
pub struct Request<'a> {
    /// The pod's spec.
    pub spec: &'a PodSpec,
    /// uid of the pod's controller.
    pub owner: Option<&'a str>,
    /// Where other pods are, and what that means to this one; `None`: nothing.
    pub company: Option<(&'a Topology<'a>, &'a Demand)>,
    asked: Amounts,
}

impl<'a> Request<'a> {
    /// The request of a pod that does not care about others.
    pub fn new(spec: &'a PodSpec, owner: Option<&'a str>) -> Self {
        Self { spec, owner, company: None, asked: spec.requests() }
    }

    /// The amounts that it asks for.
    pub fn asked(&self) -> &Amounts {
        &self.asked
    }
}

/// How many places that fit are compared. Of many nodes a part is as good as all: the next pod begins where this one
/// ended, so all have their turn.
fn enough(places: usize) -> usize {
    ENOUGH.max(places / 20)
}

/// The index of the place that suits a pod best, or why there is none. `from` is where the search begins, and is moved
/// on. Best is, in points: least used (100 at most), fewest pods of the same controller (200), preferred by the pod
/// (200), in the company that it likes (200), each soft taint against it (300); then the one with the fewest pods, then
/// the first by name.
pub fn choose(places: &[Place], request: &Request<'_>, from: &mut usize) -> Result<usize, String> {
    let spec = request.spec;
    let mut counts: BTreeMap<String, usize> = BTreeMap::new();
    let mut fits = Vec::new();
    // A pod of a DaemonSet names its node; the others need not be asked.
    let only = affinity::only_node(spec).and_then(|name| {
        places.binary_search_by(|place| place.name().cmp(name)).ok().filter(|at| places[*at].name() == name)
    });
    let order = match only {
        Some(at) => at..at + 1,
        None => *from..*from + places.len(),
    };
    if only.is_some() && places.len() > 1 {
        counts.insert(NO_MATCH.to_owned(), places.len() - 1);
    }
    for at in order {
        let at = at % places.len();
        let refusals = places[at].refusals(request);
        if refusals.is_empty() {
            fits.push(at);
            if fits.len() == enough(places.len()) {
                *from = at + 1;
                break;
            }
        }
        for reason in refusals {
            *counts.entry(reason).or_default() += 1;
        }
    }
    best(places, request, fits).ok_or_else(|| refusal(places.len(), &counts))
}

/// What speaks for a place that fits, beside its room.
struct Merits {
    at: usize,
    siblings: i64,
    wish: i64,
    company: i64,
}

fn best(places: &[Place], request: &Request<'_>, fits: Vec<usize>) -> Option<usize> {
    let (spec, owner) = (request.spec, request.owner);
    let merits = |at: usize| Merits {
        at,
        siblings: owner.and_then(|o| places[at].owners.get(o)).copied().unwrap_or(0),
        wish: affinity::preference(spec, &places[at].node),
        company: request.company.map_or(0, |(t, demand)| t.wish(demand, &places[at])),
    };
    let all: Vec<Merits> = fits.into_iter().map(merits).collect();
    let most_siblings = all.iter().map(|m| m.siblings).max().unwrap_or(0).max(1);
    let best_wish = all.iter().map(|m| m.wish).max().unwrap_or(0).max(1);
    let most_company = all.iter().map(|m| m.company.abs()).max().unwrap_or(0).max(1);
    let points = |m: &Merits| {
        places[m.at].spare(&request.asked)
            + 200 * (most_siblings - m.siblings) / most_siblings
            + 200 * m.wish / best_wish
            + 200 * m.company / most_company
            - 300 * affinity::soft_taints(spec, &places[m.at].node)
    };
    let order = |m: &Merits| (-points(m), places[m.at].used.get(PODS), places[m.at].name());
    all.iter().min_by_key(|m| order(m)).map(|m| m.at)
}

fn refusal(nodes: usize, counts: &BTreeMap<String, usize>) -> String {
    if nodes == 0 {
        return "no nodes available to schedule pods".to_owned();
    }
    let mut reasons: Vec<String> = counts.iter().map(|(reason, n)| format!("{n} {reason}")).collect();
    reasons.sort();
    format!("0/{nodes} nodes are available: {}.", reasons.join(", "))
}
