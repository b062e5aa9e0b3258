//! Going back by itself: a Deployment that asks for it returns to its last good template when a rollout misses its
//! deadline. Decides about no sizes: it changes the template, and the rollout back is one like any other.

use serde_json::{Value, json};
use strata_model::merge;

use super::observed::{Observed, SetRef, available};
use super::progress;
use super::template::{self, HASH_LABEL};
use crate::controller::{Action, EventType, Plan};

/// Annotation by which a Deployment asks for it, with the value `true`.
pub const ASKED: &str = "strata.dev/auto-rollback";
/// Annotation of a ReplicaSet whose rollout was through once.
pub const GOOD: &str = "strata.dev/good";
/// Annotation of a Deployment that went back: which revision it left.
pub const LEFT: &str = "strata.dev/rolled-back-from";

/// Whether the Deployment asks for it.
pub fn is_asked(observed: &Observed) -> bool {
    observed.deployment.object().meta().annotation(ASKED) == Some("true")
}

/// Goes back, if the present rollout has missed its deadline. Answers whether it does. A template that was good once is
/// never left: that it does not work now has another reason.
pub fn plan(observed: &Observed, plan: &mut Plan) -> bool {
    let Some(bad) = observed.new.as_ref().filter(|_| is_asked(observed) && !observed.is_paused()) else {
        return false;
    };
    if is_good(bad) || !progress::is_timed_out_as_written(observed, &bad.object().meta().name) {
        return false;
    }
    let Some(good) = last_good(observed) else {
        plan.note(
            "NoGoodRevision",
            "the rollout missed its deadline, and no earlier revision is known to work",
        );
        return false;
    };
    let (from, to) = (template::revision(bad.object().meta()), template::revision(good.object().meta()));
    let Some(patch) = patch(observed, good, from) else { return false };
    plan.actions.push(Action::Patch { target: observed.target(), patch });
    let message = format!(
        "Rolled back to revision {to} (replica set {}): revision {from} (replica set {}) missed its progress deadline",
        good.object().meta().name,
        bad.object().meta().name
    );
    plan.event(observed.target(), EventType::Warning, "AutoRollback", message);
    true
}

fn is_good(set: &SetRef) -> bool {
    set.object().meta().annotation(GOOD) == Some("true")
}

/// The newest revision that was through once; where none is known, the newest that does some work now.
fn last_good(observed: &Observed) -> Option<&SetRef> {
    let newest = |sets: Vec<&SetRef>| -> Option<&SetRef> {
        let at = sets.iter().enumerate().max_by_key(|(_, s)| template::revision(s.object().meta()))?.0;
        observed.old.iter().find(|s| s.object().meta().uid == sets[at].object().meta().uid)
    };
    newest(observed.old.iter().filter(|s| is_good(s)).collect())
        .or_else(|| newest(observed.old.iter().filter(|s| available(s) > 0).collect()))
}

/// The patch of the Deployment that makes the template of a set its own.
fn patch(observed: &Observed, good: &SetRef, from: i64) -> Option<Value> {
    let present = observed.deployment.object().to_value().ok()?["spec"]["template"].take();
    let mut wanted = good.object().to_value().ok()?["spec"]["template"].take();
    if let Some(labels) = wanted["metadata"]["labels"].as_object_mut() {
        labels.remove(HASH_LABEL);
    }
    let difference = merge::diff(&present, &wanted)?;
    Some(json!({"metadata": {"annotations": {LEFT: from.to_string()}}, "spec": {"template": difference}}))
}
