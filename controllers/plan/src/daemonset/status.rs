//! What the status of a DaemonSet says: on how many nodes there is what.

use jiff::Timestamp;
use serde_json::json;
use strata_model::resource::builtin;

use super::observed::{HASH, Observed};
use crate::controller::{Action, Plan, Target};
use crate::pods;
use crate::status::{count, difference};

/// Writes what was observed, if it differs from what is written.
pub fn write(observed: &Observed, hash: &str, now: Timestamp, plan: &mut Plan) {
    let (mut desired, mut scheduled, mut misplaced) = (0, 0, 0);
    let (mut ready, mut available, mut updated) = (0, 0, 0);
    for spot in &observed.spots {
        let mut live = observed.pods_on(&spot.node.object().meta().name);
        live.retain(|p| pods::is_active(p.object(), p));
        if !spot.should_run {
            // One that may stay where none would come is no mistake.
            misplaced += i32::from(!live.is_empty() && !spot.may_stay);
            if live.is_empty() || !spot.may_stay {
                continue;
            }
        }
        desired += 1;
        if live.is_empty() {
            continue;
        }
        scheduled += 1;
        // Of two the new one counts, as soon as it is ready.
        live.sort_by_key(|p| {
            (observed.available_at(p).is_none(), p.object().meta().label(HASH) != Some(hash))
        });
        let first = live[0];
        updated += i32::from(live.iter().any(|p| p.object().meta().label(HASH) == Some(hash)));
        let Some(at) = observed.available_at(first) else { continue };
        ready += 1;
        if at <= now {
            available += 1;
        } else {
            plan.next = plan.next.or_at(at);
        }
    }
    let fields = json!({
        "observedGeneration": observed.object().meta().generation, "desiredNumberScheduled": desired,
        "currentNumberScheduled": scheduled, "numberMisscheduled": misplaced, "numberReady": ready,
        "updatedNumberScheduled": count(updated), "numberAvailable": count(available),
        "numberUnavailable": count(desired - available),
    });
    if let Some(status) = difference(observed.object(), fields) {
        plan.actions
            .push(Action::Status { target: Target::of(&builtin::DAEMON_SET, observed.object()), status });
    }
}
