//! The order within a plan: which of its actions may be under way at the same time. Pure.
//!
//! Neighbours of one kind about different objects form a stage; a stage begins when the one before it is done. A write
//! to the object of the key itself is a stage of its own: it says that what stands before it is done.

use std::collections::BTreeSet;
use std::mem::discriminant;

use strata_model::object::ObjectKey;
use strata_model::resource::{GroupResource, ResourceType};
use strata_plan::controller::{Action, Key};

use crate::events::Told;

/// One action, and what is told once it is done.
#[derive(Debug)]
pub struct Step {
    /// What is done.
    pub action: Action,
    /// What is told then.
    pub told: Vec<Told>,
}

/// What is done before the next stage begins, in any order; never empty.
pub type Stage = Vec<Step>;

/// The stages of a plan for a key, and what is told before all of them.
pub fn of(actions: Vec<Action>, root: &Key) -> (Vec<Told>, Vec<Stage>) {
    let (mut first, mut stages): (Vec<Told>, Vec<Stage>) = (Vec::new(), Vec::new());
    let root = (root.resource.clone(), root.object.clone());
    // What the actions of the last stage are about.
    let mut about = BTreeSet::new();
    for action in actions {
        if let Action::Event { about, type_, reason, message } = action {
            let told = Told { about, type_, reason, message };
            match stages.last_mut().and_then(|stage| stage.last_mut()) {
                Some(step) => step.told.push(told),
                None => first.push(told),
            }
            continue;
        }
        let subject = subject(&action);
        let is_free = subject.as_ref().is_none_or(|s| *s != root && !about.contains(s));
        let step = Step { action, told: Vec::new() };
        let alike =
            |stage: &Stage| stage.iter().all(|s| discriminant(&s.action) == discriminant(&step.action));
        match stages.last_mut() {
            Some(stage) if is_free && !about.contains(&root) && alike(stage) => stage.push(step),
            _ => {
                about.clear();
                stages.push(vec![step]);
            }
        }
        about.extend(subject);
    }
    (first, stages)
}

/// The object that an action is about; `None` where no other action can be about the same.
fn subject(action: &Action) -> Option<(GroupResource, ObjectKey)> {
    match action {
        Action::Create { resource, object } => {
            let meta = &object["metadata"];
            let namespace = meta["namespace"].as_str().unwrap_or_default();
            let name = meta["name"].as_str()?;
            Some((resource.id.clone(), ObjectKey::new(namespace, name)))
        }
        Action::Patch { target, .. }
        | Action::Status { target, .. }
        | Action::Bind { target, .. }
        | Action::Replace { target, .. }
        | Action::Delete { target, .. }
        | Action::Confirm { target, .. } => Some((target.resource.id.clone(), target.key.clone())),
        Action::ConfirmEmpty { .. } | Action::Event { .. } => None,
    }
}

/// The type that an action writes.
pub fn writes(action: &Action) -> Option<&ResourceType> {
    match action {
        Action::Create { resource, .. } => Some(resource),
        Action::Patch { target, .. }
        | Action::Status { target, .. }
        | Action::Bind { target, .. }
        | Action::Replace { target, .. }
        | Action::Delete { target, .. } => Some(&target.resource),
        Action::Confirm { .. } | Action::ConfirmEmpty { .. } | Action::Event { .. } => None,
    }
}
