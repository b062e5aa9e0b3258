//! Templates kept as ControllerRevisions: which one stands for the present template, which ones stood for earlier ones,
//! and which of those may go. Decides nothing about pods.

#[cfg(test)]
mod tests;

use std::sync::Arc;

use k8s_openapi::api::apps::v1::ControllerRevision;
use serde_json::{Value, json};
use strata_model::names;
use strata_model::object::{Object, ObjectKey};
use strata_model::resource::{ResourceType, builtin};
use strata_model::selector::Selector;

use crate::controller::{Action, Key, ObserveError, Plan, Propagation, Target, View};
use crate::ownership::{self, Claim};
use crate::typed::Typed;

/// Annotation that is the owner's alone.
const LAST_APPLIED: &str = "kubectl.kubernetes.io/last-applied-configuration";
/// Revisions that are kept beside those in use, where the owner does not say.
pub const LIMIT: usize = 10;

/// A revision of the cache.
pub type RevisionRef = Typed<ControllerRevision>;

/// The hash of a template. `collisions` is how often a name made from a hash turned out to be taken.
pub fn hash(template: &Value, collisions: i32) -> String {
    let mut text = template.to_string();
    if collisions > 0 {
        text.push_str(&collisions.to_string());
    }
    names::safe_encode(names::fnv32(text.as_bytes()))
}

/// The revisions of one owner.
#[derive(Debug)]
pub struct History {
    /// Type of the owner.
    owner_type: &'static ResourceType,
    owner: Arc<Object>,
    /// The label that a revision has its hash in.
    label: &'static str,
    /// Owned, oldest first.
    all: Vec<RevisionRef>,
    /// Nobody's, and selected.
    orphans: Vec<RevisionRef>,
    /// What a revision of the present template has in it.
    data: Value,
    hash: String,
    /// Whether the name for the present template is another's.
    taken: bool,
    collisions: i32,
}

impl History {
    /// Gathers the revisions of an owner with a template. `label` is where a revision has its hash.
    pub fn observe(
        view: &dyn View,
        (owner_type, owner): (&'static ResourceType, &Arc<Object>),
        label: &'static str,
        selector: Option<&Selector>,
        key: &Key,
    ) -> Result<Self, ObserveError> {
        let revisions = &builtin::CONTROLLER_REVISION.id;
        let value = owner.to_value().map_err(ObserveError::at(key))?;
        let collisions =
            value["status"]["collisionCount"].as_i64().and_then(|n| i32::try_from(n).ok()).unwrap_or(0);
        let mut template = value["spec"]["template"].clone();
        let hash = hash(&template, collisions);
        template["$patch"] = json!("replace");
        let data = json!({"spec": {"template": template}});
        let mut owned = view.owned_by(revisions, &owner.meta().uid);
        owned.retain(|r| ownership::controls(owner, r));
        let mut all: Vec<RevisionRef> = Typed::all(owned).map_err(ObserveError::at(key))?;
        all.sort_by_cached_key(|r| (r.revision, r.object().meta().creation_timestamp, r.object().key()));
        let mut orphans = Vec::new();
        if let Some(selector) = selector.filter(|_| !owner.meta().is_deleting()) {
            orphans = view.orphans(revisions, &owner.meta().namespace);
            orphans.retain(|r| selector.matches(&r.meta().labels) && !r.meta().is_deleting());
        }
        let orphans = Typed::all(orphans).map_err(ObserveError::at(key))?;
        let mut history = Self {
            owner_type,
            owner: Arc::clone(owner),
            label,
            all,
            orphans,
            data,
            hash,
            taken: false,
            collisions,
        };
        let name = ObjectKey::new(owner.meta().namespace.clone(), history.candidate());
        history.taken = history.present().is_none() && view.get(revisions, &name).is_some();
        Ok(history)
    }

    fn candidate(&self) -> String {
        format!("{}-{}", self.owner.meta().name, self.hash)
    }

    /// The revision of the present template, where there is one; the newest of several.
    fn present(&self) -> Option<&RevisionRef> {
        self.all.iter().rev().find(|r| r.data.as_ref().is_some_and(|d| d.0 == self.data))
    }

    /// The revision of a name.
    pub fn find(&self, name: &str) -> Option<&RevisionRef> {
        self.all.iter().find(|r| r.object().meta().name == name)
    }

    /// The hash of a revision.
    pub fn hash_of(&self, revision: &RevisionRef) -> String {
        let label = revision.object().meta().label(self.label);
        label.map_or_else(|| revision.object().meta().name.clone(), str::to_owned)
    }

    /// Makes sure that a revision stands for the present template and is the newest. `None`: that is yet to be seen.
    pub fn hold(&self, plan: &mut Plan) -> Option<&RevisionRef> {
        if !self.orphans.is_empty() {
            let dependents = &builtin::CONTROLLER_REVISION;
            let claim = Claim { owner_type: self.owner_type, owner: &self.owner, dependents };
            claim.adopt(self.orphans.iter().map(|orphan| &**orphan.object()), plan);
            return None;
        }
        let newest = self.all.last().map_or(0, |r| r.revision);
        if let Some(present) = self.present() {
            if self.all.iter().any(|r| r.revision == newest && !is_same(r, present)) {
                let patch = json!({"revision": newest + 1});
                plan.actions.push(Action::Patch { target: target_of(present), patch });
                return None;
            }
            return Some(present);
        }
        if self.taken {
            let status = json!({"collisionCount": self.collisions + 1});
            plan.actions.push(Action::Status { target: Target::of(self.owner_type, &self.owner), status });
        } else {
            let object = self.revision(newest + 1);
            plan.actions.push(Action::Create { resource: builtin::CONTROLLER_REVISION.clone(), object });
        }
        None
    }

    fn revision(&self, number: i64) -> Value {
        let meta = self.owner.meta();
        let mut labels = self.data["spec"]["template"]["metadata"]["labels"].clone();
        labels[self.label] = json!(self.hash);
        let annotations: serde_json::Map<String, Value> = meta
            .annotations
            .iter()
            .filter(|(key, _)| *key != LAST_APPLIED)
            .map(|(key, text)| (key.clone(), json!(text)))
            .collect();
        json!({
            "apiVersion": builtin::CONTROLLER_REVISION.api_version(), "kind": builtin::CONTROLLER_REVISION.kind,
            "metadata": {"name": self.candidate(), "namespace": meta.namespace, "labels": labels,
                "annotations": annotations,
                "ownerReferences": [ownership::controller_reference(self.owner_type, &self.owner)]},
            "data": self.data, "revision": number,
        })
    }

    /// Deletes the oldest revisions that are more than `limit` and not in use.
    pub fn prune(&self, in_use: impl Fn(&RevisionRef) -> bool, limit: usize, plan: &mut Plan) {
        let present = self.present();
        let idle: Vec<&RevisionRef> =
            self.all.iter().filter(|r| !present.is_some_and(|p| is_same(p, r)) && !in_use(r)).collect();
        for revision in idle.iter().take(idle.len().saturating_sub(limit)) {
            if !revision.object().meta().is_deleting() {
                plan.actions.push(Action::Delete {
                    target: target_of(revision).at_any_revision(),
                    propagation: Propagation::Background,
                    grace_seconds: None,
                });
            }
        }
    }
}

fn is_same(one: &RevisionRef, other: &RevisionRef) -> bool {
    one.object().meta().uid == other.object().meta().uid
}

fn target_of(revision: &RevisionRef) -> Target {
    Target::of(&builtin::CONTROLLER_REVISION, revision.object())
}

/// The template that a revision keeps.
pub fn template_of(revision: &RevisionRef) -> Value {
    let mut template = revision.data.as_ref().map(|d| d.0["spec"]["template"].clone()).unwrap_or_default();
    if let Some(members) = template.as_object_mut() {
        members.remove("$patch");
    }
    template
}
