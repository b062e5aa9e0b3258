//! Which pods of a DaemonSet are replaced for a new template. Knows no templates but their hash.

use super::Turn;
use super::observed::{HASH, Observed};
use crate::pods::{self, PodRef};

/// The pods of a node that take part in an update.
struct Pair<'a> {
    node: String,
    old: Option<&'a PodRef>,
    new: Option<&'a PodRef>,
    /// One is on its way out, or has ended.
    moving: bool,
}

/// The nodes that have pods to look at, or should have one.
fn pairs<'a>(observed: &'a Observed, hash: &str) -> Vec<Pair<'a>> {
    let spots = observed.spots.iter().filter(|spot| spot.may_stay);
    let pairs = spots.filter_map(|spot| {
        let node = spot.node.object().meta().name.clone();
        let all = observed.pods_on(&node);
        if all.is_empty() && !spot.should_run {
            return None;
        }
        let active = |p: &&PodRef| pods::is_active(p.object(), p);
        let is_new = |p: &&PodRef| p.object().meta().label(HASH) == Some(hash);
        let (live, others): (Vec<&PodRef>, Vec<&PodRef>) = all.into_iter().partition(active);
        let (new, old): (Vec<&PodRef>, Vec<&PodRef>) = live.into_iter().partition(is_new);
        // Of several the one to stay is settled by another rule, in this turn; until then nothing is decided.
        let moving = !others.is_empty() || new.len() > 1 || old.len() > 1;
        Some(Pair { node, old: old.first().copied(), new: new.first().copied(), moving })
    });
    pairs.collect()
}

impl Turn<'_> {
    /// Replaces outdated pods: at once where they are not available, of the others as many at a time as may be missing;
    /// or, with a surge, once their successor beside them is available.
    pub(super) fn update(&mut self) {
        if !self.observed.is_rolling() {
            return;
        }
        let pairs = pairs(self.observed, self.hash);
        let (surge, missing) =
            (self.observed.bound(true, pairs.len()), self.observed.bound(false, pairs.len()));
        match surge {
            0 => self.in_place(&pairs, missing.max(1)),
            surge => self.beside(&pairs, surge, missing),
        }
    }

    fn in_place(&mut self, pairs: &[Pair<'_>], missing: usize) {
        let is_there =
            |pair: &&Pair<'_>| [pair.old, pair.new].into_iter().flatten().any(|p| self.is_available(p));
        let mut unavailable = pairs.iter().filter(|pair| !is_there(pair)).count();
        for pair in pairs.iter().filter(|pair| !pair.moving && pair.new.is_none()) {
            let Some(old) = pair.old else { continue };
            if !self.is_available(old) {
                self.delete(old);
            } else if unavailable < missing {
                unavailable += 1;
                self.delete(old);
            } else {
                self.plan
                    .note("RollingUpdate", format!("node {} waits for others to be available", pair.node));
            }
        }
    }

    fn beside(&mut self, pairs: &[Pair<'_>], surge: usize, missing: usize) {
        let mut beside = pairs.iter().filter(|pair| pair.new.is_some() && pair.old.is_some()).count();
        let is_there =
            |pair: &&Pair<'_>| [pair.old, pair.new].into_iter().flatten().any(|p| self.is_available(p));
        let unavailable = pairs.iter().filter(|pair| !is_there(pair)).count();
        for pair in pairs.iter().filter(|pair| !pair.moving) {
            match (pair.old, pair.new) {
                (Some(old), Some(new)) if self.is_available(new) => self.delete(old),
                (Some(old), None) if !self.is_available(old) && unavailable <= missing.max(1) => {
                    self.delete(old)
                }
                (Some(_), None) if beside < surge => {
                    beside += 1;
                    self.create(&pair.node);
                }
                (Some(_), None) => {
                    self.plan.note(
                        "RollingUpdate",
                        format!("node {} waits for others to be available", pair.node),
                    );
                }
                _ => {}
            }
        }
    }

    fn is_available(&self, pod: &PodRef) -> bool {
        self.observed.available_at(pod).is_some_and(|at| at <= self.now)
    }
}
