//! Which pods of a StatefulSet are replaced for a new template, and in which order. Knows no claims.

use super::observed::Observed;
use super::{REVISION, Turn};
use crate::pods::PodRef;

impl Turn<'_> {
    /// Replaces outdated pods, highest first. One that is not ready costs nothing; of the others as many at a time as
    /// may be unavailable. With `broken_only` a pod that is not ready holds everything else up.
    pub(super) fn update(&mut self, broken_only: bool) {
        if !self.observed.is_rolling() {
            return;
        }
        let from = self.observed.partition().max(self.observed.start());
        let range = self.observed.range();
        let moving = |pod: &&PodRef| pod.object().meta().is_deleting();
        if self.observed.is_ordered() && range.clone().any(|n| self.slots.get(&n).is_some_and(moving)) {
            return;
        }
        let mut unavailable = range.clone().filter(|n| !self.is_available(*n)).count();
        for ordinal in (from..range.end).rev() {
            if self.left == 0 {
                self.plan.next = self.plan.next.or_at(self.now);
                return;
            }
            let Some(pod) = self.slots.get(&ordinal).copied() else { continue };
            let name = &pod.object().meta().name;
            let is_new = pod.object().meta().label(REVISION) == Some(&self.update.object().meta().name);
            if is_new || pod.object().meta().is_deleting() || self.is_finished_this_turn(pod) {
                continue;
            }
            if !Observed::is_ready(pod) {
                self.delete(pod);
                if self.observed.is_ordered() {
                    return;
                }
            } else if !broken_only && unavailable < self.observed.max_unavailable() {
                unavailable += 1;
                self.delete(pod);
            } else {
                self.plan.note("RollingUpdate", format!("pod {name} waits for others to be available"));
                return;
            }
        }
    }

    fn is_available(&self, ordinal: i32) -> bool {
        let at = self.slots.get(&ordinal).and_then(|pod| self.observed.available_at(pod));
        at.is_some_and(|at| at <= self.now)
    }

    /// Pods that ended are deleted by another rule, in the same turn.
    fn is_finished_this_turn(&self, pod: &PodRef) -> bool {
        crate::pods::is_finished(pod)
    }
}
