//! The fields of a pod that controllers look at, and no others: a process keeps every pod of the platform, and the whole
//! struct of a small pod takes 12 kB. The node agent, which runs what the others do not look at, reads the whole one.

use std::collections::BTreeMap;

use k8s_openapi::api::core::v1::{
    Affinity, ContainerPort, PodIP, PodSchedulingGate, Toleration, TopologySpreadConstraint,
};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use serde::Deserialize;

use crate::amounts::{Amounts, PODS};

/// A list as it is kept: exactly as long as it is.
pub type List<T> = Option<Box<[T]>>;

/// A pod without its metadata, which its object has. Names and meaning of the fields are those of the API.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(default)]
pub struct Pod {
    /// What is wished.
    pub spec: Option<Box<PodSpec>>,
    /// What is.
    pub status: Option<Box<PodStatus>>,
}

/// Where a pod may run, and what it needs there.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct PodSpec {
    /// Near what it wants to be, and far from what.
    pub affinity: Option<Box<Affinity>>,
    /// Its containers.
    pub containers: Box<[Container]>,
    /// On the network of its host.
    pub host_network: Option<bool>,
    /// Its name among those of its subdomain.
    pub hostname: Option<Box<str>>,
    /// Those that run first.
    pub init_containers: List<Container>,
    /// Its node.
    pub node_name: Option<String>,
    /// Labels that its node must have.
    pub node_selector: Option<BTreeMap<String, String>>,
    /// What it takes beside its containers.
    pub overhead: Option<Box<Amounts>>,
    /// Whether it may drive others off.
    pub preemption_policy: Option<String>,
    /// The higher, the more important.
    pub priority: Option<i32>,
    /// Amounts of the pod as a whole.
    pub resources: Option<Box<Resources>>,
    /// Who gives it a node.
    pub scheduler_name: Option<String>,
    /// What it waits for before it is given one.
    pub scheduling_gates: List<PodSchedulingGate>,
    /// How long it takes to end.
    pub termination_grace_period_seconds: Option<i64>,
    /// The headless service under which its host name is known.
    pub subdomain: Option<Box<str>>,
    /// Taints that it bears.
    pub tolerations: List<Toleration>,
    /// How evenly it is to be spread.
    pub topology_spread_constraints: List<TopologySpreadConstraint>,
}

/// A container.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct Container {
    /// Its name.
    pub name: String,
    /// Its ports.
    pub ports: List<ContainerPort>,
    /// What it takes.
    pub resources: Option<Box<Resources>>,
    /// `Always` makes one that runs first one that stays.
    pub restart_policy: Option<String>,
}

/// What is asked for.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(default)]
pub struct Resources {
    /// At least.
    pub requests: Option<Amounts>,
}

/// What became of a pod.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct PodStatus {
    /// Conditions.
    pub conditions: List<PodCondition>,
    /// What became of its containers.
    pub container_statuses: List<ContainerStatus>,
    /// What became of those that run first.
    pub init_container_statuses: List<ContainerStatus>,
    /// The node that it was promised.
    pub nominated_node_name: Option<String>,
    /// `Pending`, `Running`, `Succeeded`, `Failed`.
    pub phase: Option<String>,
    /// Its addresses.
    #[serde(rename = "podIPs")]
    pub pod_ips: List<PodIP>,
    /// When its node took it.
    pub start_time: Option<Time>,
}

/// A condition.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct PodCondition {
    /// Which.
    #[serde(rename = "type")]
    pub type_: String,
    /// `True`, `False`, `Unknown`.
    pub status: String,
    /// Why, in a word.
    pub reason: Option<String>,
    /// Why, in a sentence.
    pub message: Option<String>,
    /// Since when.
    pub last_transition_time: Option<Time>,
}

/// What became of a container.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct ContainerStatus {
    /// Its name.
    pub name: String,
    /// How often it was started anew.
    pub restart_count: i32,
    /// How it is.
    pub state: Option<ContainerState>,
}

/// How a container is; only its end matters.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(default)]
pub struct ContainerState {
    /// It has ended.
    pub terminated: Option<Box<Terminated>>,
}

/// How a container ended.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct Terminated {
    /// With which code.
    pub exit_code: i32,
    /// When.
    pub finished_at: Option<Time>,
}

impl PodSpec {
    /// What a pod asks of a node: its containers together, or the most that its start needs at once, whichever is more;
    /// amounts of the pod as a whole, where given, instead; and its overhead, and room for one pod.
    pub fn requests(&self) -> Amounts {
        let mut running = Amounts::default();
        for container in &self.containers {
            running.add_all(container.requests());
        }
        // An init container that is restarted always is a sidecar: it stays, beside those that start after it.
        let (mut sidecars, mut starting) = (Amounts::default(), Amounts::default());
        for container in self.init_containers.iter().flatten() {
            if container.restart_policy.as_deref() == Some("Always") {
                sidecars.add_all(container.requests());
                starting.raise(&sidecars);
            } else {
                let mut now = sidecars.clone();
                now.add_all(container.requests());
                starting.raise(&now);
            }
        }
        running.add(&sidecars);
        running.raise(&starting);
        if let Some(whole) = self.resources.as_ref().and_then(|r| r.requests.as_ref()) {
            running.overlay(whole);
        }
        running.add_all(self.overhead.as_deref());
        running.add_one(PODS, 1000);
        running
    }
}

impl Container {
    /// What it asks for.
    pub fn requests(&self) -> Option<&Amounts> {
        self.resources.as_ref()?.requests.as_ref()
    }
}
