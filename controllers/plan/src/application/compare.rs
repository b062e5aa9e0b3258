//! What an Application comes to, object by object and in all: wished and live side by side. Asks nobody: verdicts come in.

use std::collections::BTreeSet;
use std::sync::Arc;

use serde_json::Value;
use strata_model::object::{Object, ObjectKey};
use strata_model::resource::ResourceType;

use super::desired::Desired;
use super::difference::Verdict;
use super::health::{Health, HealthWord, worst};
use super::identity::ObjectId;
use super::status::{ResourceStatus, SyncWord};
use super::types::{COMPARE_OPTIONS, HOOK, SYNC_OPTIONS, SYNC_WAVE};

/// What is read of a live object once for each of its states.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Seen {
    /// Of what a wish can change in it.
    pub fingerprint: u64,
    /// How it is.
    pub health: Option<Health>,
    /// Images that it runs.
    pub images: Vec<String>,
}

impl Seen {
    /// Reads an object.
    pub fn of(object: Value) -> Self {
        let health = super::health::health(&object);
        let images = images(&object);
        Self { fingerprint: super::difference::fingerprint(object), health, images }
    }
}

/// Images of the containers of a pod, or of a template of pods.
fn images(object: &Value) -> Vec<String> {
    let spec = &object["spec"];
    let pods = [spec, &spec["template"]["spec"], &spec["jobTemplate"]["spec"]["template"]["spec"]];
    let lists = pods.iter().flat_map(|pod| [&pod["containers"], &pod["initContainers"]]);
    let containers = lists.filter_map(Value::as_array).flatten();
    containers.filter_map(|c| c["image"].as_str().map(str::to_owned)).collect()
}

/// One object of an Application: wished, live, or both.
#[derive(Clone, Debug, Default)]
pub struct Item {
    /// Which one.
    pub id: ObjectId,
    /// As it is wished; `None`: it is in the source no longer.
    pub desired: Option<Arc<Desired>>,
    /// The type under which it is watched; `None`: it is not served.
    pub resource: Option<Arc<ResourceType>>,
    /// As it is; `None`: it is missing.
    pub live: Option<Arc<Object>>,
    /// What was read of it.
    pub seen: Seen,
    /// What applying would do; `None` where it is missing, or not known yet.
    pub verdict: Option<Verdict>,
    /// Another Application that holds it.
    pub holder: Option<ObjectKey>,
}

impl Item {
    /// Whether it is live and in the source no longer, and may count as such: hooks come and go by themselves.
    pub fn is_extra(&self) -> bool {
        let live = self.live.as_ref();
        self.desired.is_none() && live.is_some_and(|o| o.meta().annotation(HOOK).is_none())
    }

    /// Whether it is held to its wish: hooks are not, nor is what belongs to nobody.
    pub fn is_held(&self) -> bool {
        self.desired.as_ref().is_some_and(|d| !d.is_hook() && !d.is_scaffold)
    }

    /// Whether it is the destination's namespace.
    pub fn is_scaffold(&self) -> bool {
        self.desired.as_ref().is_some_and(|d| d.is_scaffold)
    }

    /// An option of the object's sync, by its wish or, where it has none, by its live state.
    pub fn has(&self, option: &str) -> bool {
        match (&self.desired, &self.live) {
            (Some(desired), _) => desired.has(option),
            (None, Some(live)) => annotated(live, SYNC_OPTIONS, option),
            (None, None) => false,
        }
    }

    /// Its wave.
    pub fn wave(&self) -> i64 {
        match (&self.desired, &self.live) {
            (Some(desired), _) => desired.wave,
            (None, Some(live)) => {
                live.meta().annotation(SYNC_WAVE).and_then(|w| w.trim().parse().ok()).unwrap_or(0)
            }
            (None, None) => 0,
        }
    }

    /// Whether it is as it is wished.
    pub fn sync(&self) -> SyncWord {
        match (&self.desired, &self.live, &self.verdict) {
            (Some(_), Some(_), Some(Verdict::Same)) if self.holder.is_none() => SyncWord::Synced,
            (None, Some(live), _) if annotated(live, COMPARE_OPTIONS, "IgnoreExtraneous") => SyncWord::Synced,
            _ => SyncWord::OutOfSync,
        }
    }

    fn health(&self) -> Option<Health> {
        match self.live {
            Some(_) => self.seen.health.clone(),
            None => Some(Health::new(HealthWord::Missing, "")),
        }
    }

    fn counts_for_health(&self) -> bool {
        let ignores = |live: &Arc<Object>| {
            live.meta().annotation("argocd.argoproj.io/ignore-healthcheck") == Some("true")
        };
        self.is_held() && !self.live.as_ref().is_some_and(ignores)
    }
}

fn annotated(live: &Object, annotation: &str, word: &str) -> bool {
    live.meta().annotation(annotation).is_some_and(|list| list.split(',').any(|w| w.trim() == word))
}

/// What an Application comes to.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Comparison {
    /// Every object of it.
    pub resources: Vec<ResourceStatus>,
    /// In all.
    pub sync: SyncWord,
    /// In all.
    pub health: HealthWord,
    /// Images that its objects run.
    pub images: Vec<String>,
}

/// Compares all objects of an Application.
pub fn compare(items: &[Item]) -> Comparison {
    let counted: Vec<&Item> = items.iter().filter(|i| i.is_held() || i.is_extra()).collect();
    let mut resources: Vec<ResourceStatus> = counted.iter().map(|item| status(item)).collect();
    resources.sort_by(|a, b| key(a).cmp(&key(b)));
    let out = resources.iter().any(|r| r.status == SyncWord::OutOfSync);
    let health = counted.iter().filter(|i| i.counts_for_health()).filter_map(|i| i.health());
    let images: BTreeSet<&String> = counted.iter().flat_map(|i| &i.seen.images).collect();
    Comparison {
        sync: if out { SyncWord::OutOfSync } else { SyncWord::Synced },
        health: worst(health.map(|h| h.status)),
        images: images.into_iter().cloned().collect(),
        resources,
    }
}

fn key(status: &ResourceStatus) -> (&str, &str, &str, &str) {
    (&status.group, &status.kind, &status.namespace, &status.name)
}

fn status(item: &Item) -> ResourceStatus {
    let version = match (&item.desired, &item.live) {
        (Some(desired), _) => desired.version.clone(),
        (None, Some(live)) => {
            let api = live.api_version();
            api.rsplit_once('/').map_or(api, |(_, version)| version).to_owned()
        }
        (None, None) => String::new(),
    };
    let ObjectId { group, kind, namespace, name } = item.id.clone();
    ResourceStatus {
        group,
        version,
        kind,
        namespace,
        name,
        status: item.sync(),
        health: item.health(),
        hook: false,
        requires_pruning: item.is_extra(),
        sync_wave: item.wave(),
    }
}
