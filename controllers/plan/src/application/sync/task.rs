//! The tasks of a sync, and where each of them stands: told from what is live and what the operation has written down.

use std::sync::Arc;

use jiff::Timestamp;
use serde_json::json;
use strata_model::object::{Object, ObjectKey};
use strata_model::resource::ResourceType;

use super::super::compare::Item;
use super::super::desired::{DeletePolicy, Desired, Phase, hash};
use super::super::difference::Verdict;
use super::super::health::{self, Health, HealthWord};
use super::super::identity::{ObjectId, tracking_id};
use super::super::operation::SyncOperation;
use super::super::order::{Stage, applied, pruned};
use super::super::status::{OperationPhase, OperationState, ResourceResult};
use super::super::types::TRACKING_ID;

/// Words of [`ResourceResult::status`].
pub const SYNCED: &str = "Synced";
/// The server refused it.
pub const FAILED: &str = "SyncFailed";
/// It is gone.
pub const PRUNED: &str = "Pruned";
/// It is in the source no longer, and stays.
pub const PRUNE_SKIPPED: &str = "PruneSkipped";

/// How much of a commit a generated name has.
const SHORT: usize = 7;

/// One thing that a sync does.
#[derive(Clone, Debug)]
pub struct Task {
    /// When.
    pub stage: Stage,
    /// The object as it stands.
    pub item: Item,
    /// It is a hook.
    pub is_hook: bool,
}

/// Where a task stands.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Standing {
    /// It is to be done.
    Due,
    /// A hook of an earlier sync goes first.
    InTheWay,
    /// It waits for this.
    Waits(String),
    /// It is as it should be, without anything to be done.
    AsItIs,
    /// It is done, and well.
    Done,
    /// It is not well.
    Failed(String),
}

/// All tasks of a sync, in order. `live` finds hooks that get a name only now.
pub fn tasks(
    app: &ObjectKey,
    items: &[Item],
    sync: &SyncOperation,
    state: &OperationState,
    live: &dyn Fn(&ResourceType, &ObjectKey) -> Option<Arc<Object>>,
) -> Vec<Task> {
    let hooks = sync.sync_strategy.as_ref().is_none_or(|s| s.apply.is_none());
    let runs_hooks = hooks && sync.resources.is_empty() && !sync.dry_run;
    let mut tasks = Vec::new();
    for item in items.iter().filter(|i| i.is_scaffold() || is_selected(&i.id, sync)) {
        match &item.desired {
            Some(desired) if desired.is_hook() && !runs_hooks => {}
            Some(desired) if desired.is_hook() => {
                tasks.extend(desired.hooks.iter().map(|phase| hook(app, item, desired, *phase, state, live)));
            }
            Some(desired) => {
                let phase = if desired.is_scaffold { Phase::PreSync } else { Phase::Sync };
                let stage = applied(desired, phase);
                tasks.push(Task { stage, item: item.clone(), is_hook: false });
            }
            None if item.is_extra() => {
                let stage = pruned(&item.id, item.wave());
                tasks.push(Task { stage, item: item.clone(), is_hook: false });
            }
            None => {}
        }
    }
    tasks.sort_by_key(|t| t.stage);
    tasks
}

fn is_selected(id: &ObjectId, sync: &SyncOperation) -> bool {
    sync.resources.is_empty()
        || sync.resources.iter().any(|r| {
            r.group == id.group
                && r.kind == id.kind
                && r.name == id.name
                && (r.namespace.is_empty() || r.namespace == id.namespace)
        })
}

fn hook(
    app: &ObjectKey,
    item: &Item,
    desired: &Arc<Desired>,
    phase: Phase,
    state: &OperationState,
    live: &dyn Fn(&ResourceType, &ObjectKey) -> Option<Arc<Object>>,
) -> Task {
    let stage = applied(desired, phase);
    let mut item = item.clone();
    if desired.id.name.is_empty() {
        let named = Arc::new(named(app, desired, phase, state));
        item.id = named.id.clone();
        item.live = named.resource.as_ref().and_then(|r| live(r, &named.id.key()));
        item.desired = Some(named);
    }
    if let Some(found) = &item.live {
        item.seen.health = found.to_value().ok().and_then(|value| health::health(&value));
    }
    Task { stage, item, is_hook: true }
}

/// A hook that generates its name, with one that is the same for the whole operation.
fn named(app: &ObjectKey, desired: &Desired, phase: Phase, state: &OperationState) -> Desired {
    let mut desired = desired.clone();
    let revision = state.sync_result.as_ref().map(|r| r.revision.as_str()).unwrap_or_default();
    let short = revision.get(..SHORT).unwrap_or(revision);
    let began = state.started_at.parse::<Timestamp>().map_or(0, |at| at.as_second());
    let prefix = desired.object["metadata"]["generateName"].as_str().unwrap_or_default();
    let name = format!("{prefix}{short}-{}-{began}", phase.as_str().to_lowercase());
    if let Some(meta) = desired.object["metadata"].as_object_mut() {
        meta.remove("generateName");
    }
    desired.object["metadata"]["name"] = json!(name);
    desired.id.name = name;
    desired.object["metadata"]["annotations"][TRACKING_ID] = json!(tracking_id(app, &desired.id));
    desired.hash = hash(&desired.object);
    desired
}

impl Task {
    /// What is written down of it.
    pub fn result(&self) -> ResourceResult {
        let ObjectId { group, kind, namespace, name } = self.item.id.clone();
        let version = self.item.desired.as_ref().map(|d| d.version.clone()).unwrap_or_default();
        let phase = self.stage.phase.as_str().to_owned();
        ResourceResult {
            group,
            version,
            kind,
            namespace,
            name,
            hook_type: if self.is_hook { phase.clone() } else { String::new() },
            sync_phase: phase,
            ..ResourceResult::default()
        }
    }

    /// What was written down of it.
    pub fn found<'a>(&self, state: &'a OperationState) -> Option<&'a ResourceResult> {
        let results = &state.sync_result.as_ref()?.resources;
        let mine = self.result();
        results.iter().find(|r| is_same(r, &mine))
    }

    /// Where it stands. `must_be_well`: what comes after waits for its health.
    pub fn standing(&self, state: &OperationState, must_be_well: bool, prune: bool) -> Standing {
        let found = self.found(state);
        if self.stage.prunes {
            return self.prune_standing(found, prune);
        }
        match found {
            Some(r) if r.status == FAILED => Standing::Failed(r.message.clone()),
            Some(r) if self.is_hook => self.hook_standing(r),
            Some(_) if self.item.live.is_none() => Standing::Due,
            Some(_) if must_be_well => self.well(),
            Some(_) => Standing::Done,
            None if self.is_hook => self.hook_begins(),
            None => match (&self.item.live, &self.item.verdict) {
                (Some(live), _) if live.meta().is_deleting() => {
                    Standing::Waits(format!("{} is being deleted", self.item.id))
                }
                (Some(_), Some(Verdict::Same)) if self.item.holder.is_none() => Standing::AsItIs,
                _ => Standing::Due,
            },
        }
    }

    fn prune_standing(&self, found: Option<&ResourceResult>, prune: bool) -> Standing {
        let wanted = prune && !self.item.has("Prune=false");
        match (found, &self.item.live) {
            (Some(r), _) if r.status == FAILED => Standing::Failed(r.message.clone()),
            (Some(r), _) if r.status == PRUNE_SKIPPED => Standing::Done,
            (_, None) => Standing::Done,
            (Some(_), Some(_)) => Standing::Done,
            (None, Some(live)) if live.meta().is_deleting() => Standing::Done,
            (None, Some(_)) if wanted => Standing::Due,
            (None, Some(_)) => Standing::AsItIs,
        }
    }

    fn hook_begins(&self) -> Standing {
        let Some(live) = &self.item.live else { return Standing::Due };
        if live.meta().is_deleting() {
            return Standing::Waits(format!("the {} of an earlier sync goes", self.item.id));
        }
        let policies = self.item.desired.as_ref().map_or(&[][..], |d| &d.policies);
        match policies.contains(&DeletePolicy::BeforeHookCreation) {
            true => Standing::InTheWay,
            false => Standing::Due,
        }
    }

    fn hook_standing(&self, result: &ResourceResult) -> Standing {
        if result.hook_phase == OperationPhase::Succeeded.as_str() {
            return Standing::Done;
        }
        if result.hook_phase == OperationPhase::Failed.as_str() {
            return Standing::Failed(result.message.clone());
        }
        match &self.item.live {
            None => Standing::Failed(format!("the hook {} was deleted while it ran", self.item.id)),
            Some(_) => self.well(),
        }
    }

    fn well(&self) -> Standing {
        match &self.item.seen.health {
            None => Standing::Done,
            Some(Health { status: HealthWord::Healthy | HealthWord::Suspended, .. }) => Standing::Done,
            Some(Health { status: HealthWord::Degraded, message }) => {
                Standing::Failed(format!("{} is Degraded: {message}", self.item.id))
            }
            Some(Health { message, .. }) => {
                Standing::Waits(format!("waits for {} to be healthy: {message}", self.item.id))
            }
        }
    }
}

/// Whether two results are about the same object in the same phase.
pub fn is_same(a: &ResourceResult, b: &ResourceResult) -> bool {
    (&a.group, &a.kind, &a.namespace, &a.name, &a.hook_type)
        == (&b.group, &b.kind, &b.namespace, &b.name, &b.hook_type)
}
