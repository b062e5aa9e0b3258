//! Taints that follow from what is known of a node: which there should be, and which drive pods off. Knows no pod but
//! its tolerations.

use jiff::{Timestamp, ToSpan};
use k8s_openapi::api::core::v1::{Node, Taint};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;

use super::health::{self, condition};
use crate::placement::affinity::{NOT_READY, UNREACHABLE, UNSCHEDULABLE, tolerates};
use crate::pods::body::PodSpec;

/// Taint by which a person says that the machine is off and may be written off.
pub const OUT_OF_SERVICE: &str = "node.kubernetes.io/out-of-service";
/// Conditions of a node that keep new pods off while they are true, with their taints.
const PRESSURES: [(&str, &str); 4] = [
    ("MemoryPressure", "node.kubernetes.io/memory-pressure"),
    ("DiskPressure", "node.kubernetes.io/disk-pressure"),
    ("PIDPressure", "node.kubernetes.io/pid-pressure"),
    ("NetworkUnavailable", "node.kubernetes.io/network-unavailable"),
];
/// How long pods stay on a lost node that say nothing about it, in seconds.
pub const DEFAULT_SECONDS: i64 = 300;

/// The word for what a node is, where it is not ready.
pub fn lost_key(node: &Node) -> Option<&'static str> {
    match health::ready_status(node) {
        "True" => None,
        "Unknown" => Some(UNREACHABLE),
        _ => Some(NOT_READY),
    }
}

/// The taints that drive pods off.
pub fn drive_off(node: &Node) -> impl Iterator<Item = &Taint> {
    node.spec.iter().flat_map(|s| s.taints.iter().flatten()).filter(|t| t.effect == "NoExecute")
}

/// Since when a node is given up: the time of its taint.
pub fn given_up_since(node: &Node) -> Option<Timestamp> {
    let lost = drive_off(node).filter(|t| t.key == UNREACHABLE || t.key == NOT_READY);
    lost.filter_map(|t| t.time_added.as_ref()).map(|t| t.0).max()
}

/// The taints that a node should have. `give_up` says whether its pods may be driven off.
pub fn wanted(node: &Node, give_up: bool, now: Timestamp) -> Vec<Taint> {
    let have: Vec<Taint> = node.spec.iter().flat_map(|s| s.taints.iter().flatten()).cloned().collect();
    let mut wanted: Vec<(&str, &str)> = Vec::new();
    if node.spec.as_ref().is_some_and(|s| s.unschedulable == Some(true)) {
        wanted.push((UNSCHEDULABLE, "NoSchedule"));
    }
    for (type_, key) in PRESSURES {
        if condition(node, type_).is_some_and(|c| c.status == "True") {
            wanted.push((key, "NoSchedule"));
        }
    }
    if let Some(key) = lost_key(node) {
        wanted.push((key, "NoSchedule"));
        if give_up {
            wanted.push((key, "NoExecute"));
        }
    }
    let ours = |t: &Taint| match t.effect.as_str() {
        "NoSchedule" => {
            [UNSCHEDULABLE, NOT_READY, UNREACHABLE].contains(&t.key.as_str())
                || PRESSURES.iter().any(|(_, key)| *key == t.key)
        }
        "NoExecute" => t.key == NOT_READY || t.key == UNREACHABLE,
        _ => false,
    };
    let is = |t: &Taint, (key, effect): (&str, &str)| t.key == key && t.effect == effect;
    let mut taints: Vec<Taint> =
        have.into_iter().filter(|t| !ours(t) || wanted.iter().any(|w| is(t, *w))).collect();
    for one in wanted {
        if !taints.iter().any(|t| is(t, one)) {
            let (key, effect) = (one.0.to_owned(), one.1.to_owned());
            taints.push(Taint { key, effect, time_added: Some(Time(whole(now))), value: None });
        }
    }
    // Deadlines count from here, so who drives pods off by hand has the time noted as well.
    for taint in taints.iter_mut().filter(|t| t.effect == "NoExecute" && t.time_added.is_none()) {
        taint.time_added = Some(Time(whole(now)));
    }
    taints
}

fn whole(at: Timestamp) -> Timestamp {
    Timestamp::from_second(at.as_second()).unwrap_or(at)
}

/// How long a pod may stay on a node.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stay {
    /// For as long as the node has these taints.
    Forever,
    /// Until then.
    Until(Timestamp),
}

/// How long a pod may stay under the taints of its node: the first toleration of each taint decides, and the earliest
/// end counts.
pub fn stay(spec: &PodSpec, node: &Node) -> Stay {
    let mut stay = Stay::Forever;
    for taint in drive_off(node) {
        let tolerated = spec.tolerations.iter().flatten().find(|t| tolerates(t, taint));
        let lost = taint.key == NOT_READY || taint.key == UNREACHABLE;
        let seconds = match tolerated {
            Some(toleration) => match toleration.toleration_seconds {
                Some(seconds) => seconds.max(0),
                None => continue,
            },
            None if lost => DEFAULT_SECONDS,
            None => 0,
        };
        let Some(since) = taint.time_added.as_ref() else { continue };
        let end = since.0.checked_add(seconds.seconds()).unwrap_or(Timestamp::MAX);
        stay = match stay {
            Stay::Forever => Stay::Until(end),
            Stay::Until(other) => Stay::Until(other.min(end)),
        };
    }
    stay
}
