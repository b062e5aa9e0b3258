//! What matters for one StatefulSet, and how it is gathered. Decides nothing.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use jiff::Timestamp;
use k8s_openapi::api::apps::v1::{StatefulSet, StatefulSetSpec};
use k8s_openapi::apimachinery::pkg::util::intstr::IntOrString;
use serde_json::Value;
use strata_model::object::{Object, ObjectKey};
use strata_model::resource::builtin;
use strata_model::selector::Selector;

use crate::controller::{Key, ObserveError, Target, View};
use crate::ownership::{self, Claim};
use crate::pods::{self, PodRef};
use crate::revisions::History;
use crate::typed::Typed;

/// Label in which a revision has its hash.
const HASH: &str = "controller.kubernetes.io/hash";

/// One StatefulSet with its pods, claims and revisions.
#[derive(Debug)]
pub struct Observed {
    /// The set.
    pub set: Typed<StatefulSet>,
    /// The set as JSON.
    pub value: Value,
    /// Of the body; `None` where it is malformed or empty, and so selects nothing.
    pub selector: Option<Selector>,
    /// Pods that the set controls, by name.
    pub owned: Vec<PodRef>,
    /// Pods that match, are called as ours, and are nobody's.
    pub orphans: Vec<PodRef>,
    /// Ordinals whose name another's pod has.
    pub foreign: BTreeSet<i32>,
    /// Claims that are called as ours, by name.
    pub claims: BTreeMap<String, Arc<Object>>,
    /// Its templates.
    pub history: History,
}

/// Gathers it. `None`: the set is gone.
pub fn observe(view: &dyn View, key: &Key) -> Result<Option<Observed>, ObserveError> {
    let Some(object) = view.get(&builtin::STATEFUL_SET.id, &key.object) else { return Ok(None) };
    let value = object.to_value().map_err(ObserveError::at(key))?;
    let set = Typed::<StatefulSet>::new(Arc::clone(&object)).map_err(ObserveError::at(key))?;
    let selector = selector_of(&set);
    let mut owned = view.owned_by(&builtin::POD.id, &object.meta().uid);
    owned.retain(|p| ownership::controls(&object, p));
    let owned: Vec<PodRef> = Typed::all(owned).map_err(ObserveError::at(key))?;
    let mut orphans = Vec::new();
    if let Some(selector) = selector.as_ref().filter(|_| !object.meta().is_deleting()) {
        orphans = view.orphans(&builtin::POD.id, &key.object.namespace);
        orphans.retain(|p| {
            selector.matches(&p.meta().labels)
                && ordinal_of(&key.object.name, &p.meta().name).is_some()
                && !p.meta().is_deleting()
        });
    }
    let orphans = Typed::all(orphans).map_err(ObserveError::at(key))?;
    let history = History::observe(view, (&builtin::STATEFUL_SET, &object), HASH, selector.as_ref(), key)?;
    let mut observed = Observed {
        set,
        value,
        selector,
        owned,
        orphans,
        foreign: BTreeSet::new(),
        claims: BTreeMap::new(),
        history,
    };
    observed.foreign = foreign(view, &observed);
    observed.claims = claims(view, &observed);
    Ok(Some(observed))
}

fn foreign(view: &dyn View, observed: &Observed) -> BTreeSet<i32> {
    let slots = observed.slots();
    let missing = observed.range().filter(|n| !slots.contains_key(n));
    let place = |n: i32| ObjectKey::new(observed.namespace(), observed.pod_name(n));
    missing.filter(|n| view.get(&builtin::POD.id, &place(*n)).is_some()).collect()
}

fn claims(view: &dyn View, observed: &Observed) -> BTreeMap<String, Arc<Object>> {
    let names = observed.claim_templates();
    if names.is_empty() {
        return BTreeMap::new();
    }
    let ordinals: BTreeSet<i32> = observed.range().chain(observed.slots().into_keys()).collect();
    let all = names.iter().flat_map(|t| ordinals.iter().map(|n| observed.claim_name(t, *n)));
    let found = all.filter_map(|name| {
        let place = ObjectKey::new(observed.namespace(), name.clone());
        Some((name, view.get(&builtin::PERSISTENT_VOLUME_CLAIM.id, &place)?))
    });
    found.collect()
}

/// The selector of a set; `None` where it is malformed or empty.
pub fn selector_of(set: &StatefulSet) -> Option<Selector> {
    let selector = Selector::from_body(&set.spec.as_ref()?.selector).ok()?;
    (!selector.is_everything()).then_some(selector)
}

/// The ordinal in the name of a pod of a set.
pub fn ordinal_of(set: &str, pod: &str) -> Option<i32> {
    let digits = pod.strip_prefix(set)?.strip_prefix('-')?;
    let plain = !digits.is_empty() && digits.bytes().all(|b| b.is_ascii_digit());
    let plain = plain && (digits == "0" || !digits.starts_with('0'));
    digits.parse().ok().filter(|_| plain)
}

impl Observed {
    /// The spec, where there is one.
    pub fn spec(&self) -> Option<&StatefulSetSpec> {
        self.set.spec.as_ref()
    }

    /// Namespace of everything.
    pub fn namespace(&self) -> &str {
        &self.set.object().meta().namespace
    }

    /// The set as a target.
    pub fn target(&self) -> Target {
        Target::of(&builtin::STATEFUL_SET, self.set.object())
    }

    /// The set at work on its pods.
    pub fn claim(&self) -> Claim<'_> {
        Claim { owner_type: &builtin::STATEFUL_SET, owner: self.set.object(), dependents: &builtin::POD }
    }

    /// The first ordinal.
    pub fn start(&self) -> i32 {
        self.spec().and_then(|s| s.ordinals.as_ref()?.start).unwrap_or(0).max(0)
    }

    /// How many pods there should be.
    pub fn replicas(&self) -> i32 {
        self.spec().and_then(|s| s.replicas).unwrap_or(1).max(0)
    }

    /// The ordinals that should have a pod.
    pub fn range(&self) -> std::ops::Range<i32> {
        self.start()..self.start().saturating_add(self.replicas())
    }

    /// Whether pods come and go one after the other.
    pub fn is_ordered(&self) -> bool {
        self.spec().and_then(|s| s.pod_management_policy.as_deref()) != Some("Parallel")
    }

    /// Whether outdated pods are replaced by us.
    pub fn is_rolling(&self) -> bool {
        let strategy = self.spec().and_then(|s| s.update_strategy.as_ref());
        strategy.and_then(|s| s.type_.as_deref()) != Some("OnDelete")
    }

    /// The ordinal from which on pods are updated.
    pub fn partition(&self) -> i32 {
        let strategy = self.spec().and_then(|s| s.update_strategy.as_ref());
        let partition = strategy.and_then(|s| s.rolling_update.as_ref()?.partition).unwrap_or(0);
        self.start().saturating_add(partition.max(0))
    }

    /// How many pods may be unavailable while outdated ones are replaced; at least one.
    pub fn max_unavailable(&self) -> usize {
        let strategy = self.spec().and_then(|s| s.update_strategy.as_ref());
        let bound = strategy.and_then(|s| s.rolling_update.as_ref()?.max_unavailable.as_ref());
        let number = match bound {
            Some(IntOrString::Int(n)) => i64::from(*n),
            Some(IntOrString::String(text)) => {
                let percent = text.strip_suffix('%').and_then(|p| p.parse::<i64>().ok()).unwrap_or(0);
                i64::from(self.replicas()).saturating_mul(percent) / 100
            }
            None => 1,
        };
        usize::try_from(number).unwrap_or(0).max(1)
    }

    /// How long a pod must be ready to be available, seconds.
    pub fn min_ready_seconds(&self) -> i64 {
        self.spec().and_then(|s| s.min_ready_seconds).unwrap_or(0).into()
    }

    /// What the policy for claims says of an occasion, `whenDeleted` or `whenScaled`: whether they go.
    pub fn claims_go(&self, when_deleted: bool) -> bool {
        let policy = self.spec().and_then(|s| s.persistent_volume_claim_retention_policy.as_ref());
        let word = policy
            .and_then(|p| if when_deleted { p.when_deleted.as_deref() } else { p.when_scaled.as_deref() });
        word == Some("Delete")
    }

    /// The name of the pod of an ordinal.
    pub fn pod_name(&self, ordinal: i32) -> String {
        format!("{}-{ordinal}", self.set.object().meta().name)
    }

    /// The name of the claim of a template for an ordinal.
    pub fn claim_name(&self, template: &str, ordinal: i32) -> String {
        format!("{template}-{}", self.pod_name(ordinal))
    }

    /// The names of the claim templates.
    pub fn claim_templates(&self) -> Vec<String> {
        let templates = self.value["spec"]["volumeClaimTemplates"].as_array();
        let names = templates.into_iter().flatten().filter_map(|t| t["metadata"]["name"].as_str());
        names.map(str::to_owned).collect()
    }

    /// Whether the selector still selects a pod.
    pub fn selects(&self, pod: &PodRef) -> bool {
        self.selector.as_ref().is_some_and(|s| s.matches(&pod.object().meta().labels))
    }

    /// The pods of the set, owned or about to be adopted, by ordinal.
    pub fn slots(&self) -> BTreeMap<i32, &PodRef> {
        let name = &self.set.object().meta().name;
        let ours = self.owned.iter().filter(|p| self.selects(p)).chain(&self.orphans);
        ours.filter_map(|p| Some((ordinal_of(name, &p.object().meta().name)?, p))).collect()
    }

    /// Whether a pod does its work.
    pub fn is_ready(pod: &PodRef) -> bool {
        pods::phase(pod) == "Running"
            && pods::ready_since(pod).is_some()
            && !pod.object().meta().is_deleting()
    }

    /// When a pod is or becomes available. `None`: it is not ready.
    pub fn available_at(&self, pod: &PodRef) -> Option<Timestamp> {
        if Self::is_ready(pod) { pods::available_at(pod, self.min_ready_seconds()) } else { None }
    }
}
