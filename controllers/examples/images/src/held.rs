//! What the lowest layers decide, all three in the same way: an object wishes that an image is at a place, and one is
//! there or not. Pure: what is there comes in, and what is to be done with files goes out.

use jiff::{SignedDuration, Timestamp};
use serde_json::json;
use strata_model::object::Object;
use strata_model::resource::ResourceType;
use strata_plan::controller::{Action, Next, Target};
use strata_plan::status::difference;

use crate::api::{self, HELD};

/// Between two looks at a place: whoever deletes a file there tells nobody.
pub const EVERY: SignedDuration = SignedDuration::from_secs(1);

/// What to do with files.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Step {
    /// Put the image there.
    Put,
    /// Take it away.
    Remove,
}

/// What to do for one object: first at the server, then with files, then what [`reported`] says.
#[derive(Debug, PartialEq)]
pub struct HeldPlan {
    /// At the server, before any file is touched.
    pub before: Vec<Action>,
    /// With files.
    pub step: Option<Step>,
    /// When to look again.
    pub next: Next,
}

/// Decides. `wanted` is the digest that is to be there (`None`: whatever comes of it), `actual` the one that is.
pub fn plan(
    resource: &ResourceType,
    object: &Object,
    wanted: Option<&str>,
    actual: Option<&str>,
    now: Timestamp,
) -> HeldPlan {
    let meta = object.meta();
    let held = meta.finalizers.iter().any(|finalizer| finalizer == HELD);
    if meta.is_deleting() {
        let step = (held && actual.is_some()).then_some(Step::Remove);
        return HeldPlan { before: Vec::new(), step, next: Next::OnChange };
    }
    if !held {
        // Before anything is there it is certain that it will be taken away.
        let mut finalizers = meta.finalizers.clone();
        finalizers.push(HELD.to_owned());
        let patch = json!({"metadata": {"finalizers": finalizers}});
        let before = vec![Action::Patch { target: Target::of(resource, object), patch }];
        return HeldPlan { before, step: None, next: Next::OnChange };
    }
    let right = actual.is_some() && (wanted.is_none() || wanted == actual);
    HeldPlan { before: Vec::new(), step: (!right).then_some(Step::Put), next: Next::At(now + EVERY) }
}

/// What to tell the server once the step is done, or has failed: what is there now, and where it is to be gone, that it
/// is.
pub fn reported(
    resource: &ResourceType,
    object: &Object,
    there: Result<Option<&str>, &str>,
    now: Timestamp,
) -> Vec<Action> {
    let meta = object.meta();
    let held = meta.finalizers.iter().any(|finalizer| finalizer == HELD);
    let target = Target::of(resource, object);
    if meta.is_deleting() {
        if !held || there != Ok(None) {
            return Vec::new();
        }
        let rest: Vec<&String> = meta.finalizers.iter().filter(|finalizer| *finalizer != HELD).collect();
        return vec![Action::Patch { target, patch: json!({"metadata": {"finalizers": rest}}) }];
    }
    if !held {
        return Vec::new();
    }
    let value = object.to_value().unwrap_or_default();
    let conditions = match there {
        Ok(_) => api::ready(&value, true, "Held", "", now),
        Err(why) => api::ready(&value, false, "Failed", why, now),
    };
    let digest = there.ok().flatten().unwrap_or_default();
    let fields = json!({"digest": digest, "observedGeneration": meta.generation, "conditions": conditions});
    difference(object, fields).map(|status| Action::Status { target, status }).into_iter().collect()
}
