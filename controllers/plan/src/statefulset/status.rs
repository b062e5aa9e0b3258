//! What the status of a StatefulSet says: counts, and which revisions its pods have and are to have.

use jiff::Timestamp;
use serde_json::json;

use super::REVISION;
use super::observed::Observed;
use crate::controller::{Action, Plan};
use crate::revisions::RevisionRef;
use crate::status::{count, difference};

/// The revision that all pods had last; the present one where nobody knows.
pub fn current<'a>(observed: &'a Observed, update: &'a RevisionRef) -> &'a RevisionRef {
    let name = observed.set.status.as_ref().and_then(|s| s.current_revision.as_deref());
    name.and_then(|name| observed.history.find(name)).unwrap_or(update)
}

#[derive(Default)]
struct Counts {
    replicas: i32,
    ready: i32,
    available: i32,
    current: i32,
    updated: i32,
}

/// Writes what was observed, if it differs from what is written.
pub fn write(observed: &Observed, update: &RevisionRef, now: Timestamp, plan: &mut Plan) {
    let mut current = current(observed, update).object().meta().name.clone();
    let update = update.object().meta().name.clone();
    let mut counts = Counts::default();
    for pod in observed.slots().values() {
        counts.replicas += 1;
        if let Some(at) = observed.available_at(pod) {
            counts.ready += 1;
            counts.available += i32::from(at <= now);
            if at > now {
                plan.next = plan.next.or_at(at);
            }
        }
        if !pod.object().meta().is_deleting() {
            let label = pod.object().meta().label(REVISION);
            counts.current += i32::from(label == Some(&current));
            counts.updated += i32::from(label == Some(&update));
        }
    }
    let wanted = observed.replicas();
    let through = counts.updated == wanted && counts.ready == wanted && counts.replicas == wanted;
    if observed.is_rolling() && through {
        current.clone_from(&update);
        counts.current = counts.updated;
    }
    let status = difference(
        observed.set.object(),
        json!({
            "observedGeneration": observed.set.object().meta().generation,
            "replicas": counts.replicas, "availableReplicas": counts.available,
            "readyReplicas": count(counts.ready), "currentReplicas": count(counts.current),
            "updatedReplicas": count(counts.updated), "currentRevision": current, "updateRevision": update,
        }),
    );
    if let Some(status) = status {
        plan.actions.push(Action::Status { target: observed.target(), status });
    }
}
