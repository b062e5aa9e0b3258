//! Where a pod fits best: nodes with what they hold, refusals in the usual words, and a choice that is the same every
//! time. Pure; knows nothing of binding, queues or conditions.

pub mod amounts;
pub mod affinity;
#[cfg(test)]
mod tests;

use std::collections::{BTreeMap, HashMap, HashSet};

use k8s_openapi::api::core::v1::{Node, PodSpec};

use self::amounts::{Amounts, CPU, MEMORY, PODS};
use crate::typed::Typed;

/// Pods that a node takes where it does not say.
const DEFAULT_PODS: i128 = 110;

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
        Self { node, allocatable, used: Amounts::default(), owners: HashMap::new(), ports: HashSet::new() }
    }

    /// The node's name.
    pub fn name(&self) -> &str {
        &self.node.object().meta().name
    }

    /// Puts a pod on it, whether it fits or not.
    pub fn take(&mut self, spec: &PodSpec, owner: Option<&str>) {
        self.used.add(&amounts::requests(spec));
        self.ports.extend(host_ports(spec));
        if let Some(owner) = owner {
            *self.owners.entry(owner.to_owned()).or_default() += 1;
        }
    }

    /// Why a pod cannot come here; empty where it can. The usual words.
    fn refusals(&self, spec: &PodSpec, asked: &Amounts) -> Vec<String> {
        if affinity::is_closed(spec, &self.node) || self.node.object().meta().is_deleting() {
            return vec!["node(s) were unschedulable".to_owned()];
        }
        if let Some(taint) = affinity::repelled_by(spec, &self.node) {
            let value = taint.value.unwrap_or_default();
            return vec![format!("node(s) had untolerated taint {{{}: {value}}}", taint.key)];
        }
        if !affinity::matches(spec, &self.node) {
            return vec!["node(s) didn't match Pod's node affinity/selector".to_owned()];
        }
        if host_ports(spec).any(|port| self.ports.contains(&port)) {
            return vec!["node(s) didn't have free ports for the requested pod ports".to_owned()];
        }
        let short = asked.iter().filter(|(name, n)| *n > 0 && *n > self.free(name));
        short
            .map(
                |(name, _)| {
                    if name == PODS { "Too many pods".to_owned() } else { format!("Insufficient {name}") }
                },
            )
            .collect()
    }

    fn free(&self, name: &str) -> i128 {
        self.allocatable.get(name) - self.used.get(name)
    }

    /// How much of the cpu and memory would be left with a pod here, 0 to 100.
    fn spare(&self, asked: &Amounts) -> i64 {
        let left = |name: &str| {
            let all = self.allocatable.get(name).max(1);
            (self.free(name) - asked.get(name)).max(0) * 100 / all
        };
        i64::try_from((left(CPU) + left(MEMORY)) / 2).unwrap_or(0)
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

/// The index of the place that suits a pod best, or why there is none. Best is, in points: least used (100 at most),
/// fewest pods of the same controller (200), preferred by the pod (200), each soft taint against it (300); then the
/// one with the fewest pods, then the first by name.
pub fn choose(places: &[Place], spec: &PodSpec, owner: Option<&str>) -> Result<usize, String> {
    let asked = amounts::requests(spec);
    let mut counts: BTreeMap<String, usize> = BTreeMap::new();
    let mut fits = Vec::new();
    for (at, place) in places.iter().enumerate() {
        let refusals = place.refusals(spec, &asked);
        if refusals.is_empty() {
            fits.push(at);
        }
        for reason in refusals {
            *counts.entry(reason).or_default() += 1;
        }
    }
    let siblings = |at: usize| owner.and_then(|o| places[at].owners.get(o)).copied().unwrap_or(0);
    let wish = |at: usize| affinity::preference(spec, &places[at].node);
    let most_siblings = fits.iter().map(|at| siblings(*at)).max().unwrap_or(0).max(1);
    let best_wish = fits.iter().map(|at| wish(*at)).max().unwrap_or(0).max(1);
    let points = |at: usize| {
        places[at].spare(&asked)
            + 200 * (most_siblings - siblings(at)) / most_siblings
            + 200 * wish(at) / best_wish
            - 300 * affinity::soft_taints(spec, &places[at].node)
    };
    let best =
        fits.into_iter().min_by_key(|at| (-points(*at), places[*at].used.get(PODS), places[*at].name()));
    best.ok_or_else(|| refusal(places.len(), &counts))
}

fn refusal(nodes: usize, counts: &BTreeMap<String, usize>) -> String {
    if nodes == 0 {
        return "no nodes available to schedule pods".to_owned();
    }
    let mut reasons: Vec<String> = counts.iter().map(|(reason, n)| format!("{n} {reason}")).collect();
    reasons.sort();
    format!("0/{nodes} nodes are available: {}.", reasons.join(", "))
}
