//! Amounts of resources: what a node has, what a pod asks for. Exact integers in thousandths of each resource's unit.

use std::collections::BTreeMap;

use k8s_openapi::api::core::v1::{Container, PodSpec};
use k8s_openapi::apimachinery::pkg::api::resource::Quantity as Text;
use strata_model::quantity::Quantity;

/// Resource names that every node has.
pub const CPU: &str = "cpu";
/// Bytes of memory.
pub const MEMORY: &str = "memory";
/// How many pods fit.
pub const PODS: &str = "pods";

/// By resource name, in thousandths. An absent one is zero.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Amounts(BTreeMap<String, i128>);

impl Amounts {
    /// What a body says. Amounts that do not parse count as nothing; the API server admits none.
    pub fn of(body: Option<&BTreeMap<String, Text>>) -> Self {
        let mut amounts = Self::default();
        for (name, text) in body.into_iter().flatten() {
            let milli = text.0.parse::<Quantity>().map_or(0, |q| q.milli());
            amounts.0.insert(name.clone(), milli);
        }
        amounts
    }

    /// One amount.
    pub fn get(&self, name: &str) -> i128 {
        self.0.get(name).copied().unwrap_or(0)
    }

    /// Whether the resource is named at all.
    pub fn names(&self, name: &str) -> bool {
        self.0.contains_key(name)
    }

    /// All amounts by name.
    pub fn iter(&self) -> impl Iterator<Item = (&str, i128)> {
        self.0.iter().map(|(name, n)| (name.as_str(), *n))
    }

    /// Adds other amounts.
    pub fn add(&mut self, other: &Self) {
        for (name, n) in &other.0 {
            match self.0.get_mut(name) {
                Some(sum) => *sum = sum.saturating_add(*n),
                None => drop(self.0.insert(name.clone(), *n)),
            }
        }
    }

    /// Raises each amount to at least the other's.
    pub fn raise(&mut self, other: &Self) {
        for (name, n) in &other.0 {
            if *n > self.get(name) || !self.names(name) {
                self.0.insert(name.clone(), *n);
            }
        }
    }

    /// Replaces the amounts that the other names.
    fn overlay(&mut self, other: &Self) {
        self.0.extend(other.0.iter().map(|(k, v)| (k.clone(), *v)));
    }

    /// Adds thousandths of one resource.
    pub fn add_one(&mut self, name: &str, milli: i128) {
        *self.0.entry(name.to_owned()).or_default() += milli;
    }
}

/// What a pod asks of a node: its containers together, or the most that its start needs at once, whichever is more;
/// amounts of the pod as a whole, where given, instead; and its overhead, and room for one pod.
pub fn requests(spec: &PodSpec) -> Amounts {
    let mut running = Amounts::default();
    for container in &spec.containers {
        running.add(&asked(container));
    }
    // An init container that is restarted always is a sidecar: it stays, beside those that start after it.
    let (mut sidecars, mut starting) = (Amounts::default(), Amounts::default());
    for container in spec.init_containers.iter().flatten() {
        let mut now = asked(container);
        if container.restart_policy.as_deref() == Some("Always") {
            sidecars.add(&now);
            starting.raise(&sidecars);
        } else {
            now.add(&sidecars);
            starting.raise(&now);
        }
    }
    running.add(&sidecars);
    running.raise(&starting);
    if let Some(whole) = spec.resources.as_ref() {
        running.overlay(&Amounts::of(whole.requests.as_ref()));
    }
    running.add(&Amounts::of(spec.overhead.as_ref()));
    running.add_one(PODS, 1000);
    running
}

fn asked(container: &Container) -> Amounts {
    Amounts::of(container.resources.as_ref().and_then(|r| r.requests.as_ref()))
}
