//! How much of each zone is lost, and how fast its nodes may be given up. Counts alone.

use std::collections::BTreeMap;
use std::time::Duration;

use k8s_openapi::api::core::v1::Node;

/// Between two nodes of a zone that are given up.
const PACE: Duration = Duration::from_secs(10);
/// The same, where most of a large zone is lost.
const SLOW_PACE: Duration = Duration::from_secs(100);
/// From which part of a zone on most of it is lost, in percent.
const MOST: usize = 55;
/// Up to how many lost nodes a zone counts as well, whatever their part.
const FEW: usize = 2;
/// Up to how many nodes a zone is small: there nothing is given up while most is lost.
const SMALL: usize = 50;

/// Nodes of one zone.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Count {
    /// Nodes that are ready.
    pub ready: usize,
    /// Nodes that are not.
    pub lost: usize,
}

/// The zone of a node; nodes that do not say are of one zone.
pub fn of(node: &Node) -> (String, String) {
    let label =
        |key: &str| node.metadata.labels.as_ref().and_then(|l| l.get(key)).cloned().unwrap_or_default();
    (label("topology.kubernetes.io/region"), label("topology.kubernetes.io/zone"))
}

/// How long to wait in each zone between two nodes that are given up; a zone that is not there waits. Nothing is given
/// up anywhere while no node is ready: then it is more likely that nobody hears them.
pub fn paces<Z: Ord + Clone>(zones: &BTreeMap<Z, Count>) -> BTreeMap<Z, Duration> {
    if zones.values().all(|zone| zone.ready == 0) {
        return BTreeMap::new();
    }
    let pace = |zone: &Count| match zone.ready + zone.lost {
        _ if zone.ready == 0 => Some(PACE),
        all if zone.lost > FEW && zone.lost * 100 >= all * MOST => (all > SMALL).then_some(SLOW_PACE),
        _ => Some(PACE),
    };
    zones.iter().filter_map(|(name, zone)| Some((name.clone(), pace(zone)?))).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_more_is_lost_the_slower_until_nothing_moves() {
        let pace = |ready, lost, others: usize| {
            let zones =
                BTreeMap::from([("a", Count { ready, lost }), ("b", Count { ready: others, lost: 0 })]);
            paces(&zones).get("a").map(Duration::as_secs)
        };
        let cases = [
            ((2, 1, 1), Some(10)),
            ((1, 2, 0), Some(10)),
            ((2, 3, 1), None),
            ((20, 40, 1), Some(100)),
            ((0, 5, 1), Some(10)),
            ((0, 5, 0), None),
            ((0, 1, 0), None),
        ];
        for ((ready, lost, others), expected) in cases {
            assert_eq!(pace(ready, lost, others), expected, "{ready} ready, {lost} lost, {others} elsewhere");
        }
    }
}
