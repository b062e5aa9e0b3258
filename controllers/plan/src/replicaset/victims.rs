//! Which pods go first when a ReplicaSet has too many: those whose loss costs least. Knows pods alone.

use std::cmp::Reverse;
use std::collections::HashMap;

use jiff::Timestamp;

use crate::pods::{self, PodRef};

/// Annotation by which people say which pods to keep: the lower, the sooner it goes. An absent one is zero.
pub const DELETION_COST: &str = "controller.kubernetes.io/pod-deletion-cost";

/// Orders pods, first to go first: unassigned, then Pending before Unknown before Running, not ready, cheap by
/// annotation, beside many siblings on its node, ready for a short time, restarted often, young. Times are compared by
/// order of magnitude, so that not always the youngest goes; the uid decides between equals.
pub fn rank(candidates: &mut [&PodRef], related: &[PodRef], now: Timestamp) {
    let mut siblings: HashMap<&str, usize> = HashMap::new();
    for pod in related {
        *siblings.entry(pods::node_name(pod)).or_default() += 1;
    }
    candidates.sort_by_cached_key(|pod| {
        let meta = pod.object().meta();
        let node = pods::node_name(pod);
        let ready = pods::ready_since(pod);
        (
            !node.is_empty(),
            phase_order(pods::phase(pod)),
            ready.is_some(),
            deletion_cost(pod),
            Reverse(siblings.get(node).copied().unwrap_or(0)),
            ready.map(|since| magnitude(now, since)),
            Reverse(pods::restarts(pod)),
            meta.creation_timestamp.map(|at| magnitude(now, at)),
            meta.uid.clone(),
        )
    });
}

fn phase_order(phase: &str) -> u8 {
    match phase {
        "Pending" => 0,
        "Unknown" => 1,
        _ => 2,
    }
}

fn deletion_cost(pod: &PodRef) -> i32 {
    pod.object().meta().annotation(DELETION_COST).and_then(|c| c.parse().ok()).unwrap_or(0)
}

/// The power of two of an age in seconds.
fn magnitude(now: Timestamp, since: Timestamp) -> u32 {
    let seconds = now.as_second().saturating_sub(since.as_second());
    u64::try_from(seconds).ok().and_then(u64::checked_ilog2).map_or(0, |power| power + 1)
}
