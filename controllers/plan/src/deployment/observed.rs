//! What matters for one Deployment, and how it is gathered. Decides nothing.

use k8s_openapi::api::apps::v1::{Deployment, DeploymentSpec, ReplicaSet};
use strata_model::resource::builtin;
use strata_model::selector::Selector;

use super::template::{self, Candidate};
use crate::controller::{Key, ObserveError, Target, View};
use crate::ownership;
use crate::rollout::{Limits, Size};
use crate::typed::Typed;

/// A ReplicaSet of the cache.
pub type SetRef = Typed<ReplicaSet>;

/// One Deployment with its ReplicaSets.
#[derive(Debug)]
pub struct Observed {
    /// The Deployment; it has a spec.
    pub deployment: Typed<Deployment>,
    /// Of the body; `None` where it is malformed or empty, and so selects nothing.
    pub selector: Option<Selector>,
    /// Orphans that match.
    pub to_adopt: Vec<SetRef>,
    /// Controlled, but not matching any more.
    pub to_release: Vec<SetRef>,
    /// The ReplicaSet of the present template; the oldest of several.
    pub new: Option<SetRef>,
    /// All others, oldest first.
    pub old: Vec<SetRef>,
    /// Where there is no `new`: what it would be called.
    pub candidate: Option<Candidate>,
    /// Whether another object has that name.
    pub candidate_taken: bool,
    /// Under `Recreate`: whether a pod of an old template is still there, on its way out.
    pub old_pods_leaving: bool,
}

/// Gathers it. `None`: the Deployment is gone.
pub fn observe(view: &dyn View, key: &Key) -> Result<Option<Observed>, ObserveError> {
    let Some(object) = view.get(&builtin::DEPLOYMENT.id, &key.object) else { return Ok(None) };
    let deployment = Typed::<Deployment>::new(object).map_err(ObserveError::at(key))?;
    let Some(spec) = deployment.spec.as_ref() else {
        return Err(ObserveError { key: key.clone(), message: "the deployment has no spec".to_owned() });
    };
    let selector = selector_of(spec);
    let matches = |set: &SetRef| selector.as_ref().is_some_and(|s| s.matches(&set.object().meta().labels));
    let (owned, to_release): (Vec<SetRef>, Vec<SetRef>) =
        owned_sets(view, &deployment, key)?.into_iter().partition(|set| matches(set));
    let mut to_adopt = Vec::new();
    if selector.is_some() && !deployment.object().meta().is_deleting() {
        let orphans = view.orphans(&builtin::REPLICA_SET.id, &key.object.namespace);
        to_adopt = Typed::all(orphans).map_err(ObserveError::at(key))?;
        to_adopt.retain(|set| matches(set) && !set.object().meta().is_deleting());
    }
    let mut old = owned;
    old.sort_by_cached_key(|s| (s.object().meta().creation_timestamp, s.object().meta().name.clone()));
    let at = old.iter().position(|set| template::is_of(set, &spec.template));
    let new = at.map(|at| old.remove(at));
    let mut candidate = None;
    if new.is_none() {
        let collisions = deployment.status.as_ref().and_then(|s| s.collision_count).unwrap_or(0);
        candidate =
            Some(template::candidate(deployment.object(), collisions).map_err(ObserveError::at(key))?);
    }
    let name_taken = |c: &Candidate| {
        let mut place = key.object.clone();
        place.name.clone_from(&c.name);
        view.get(&builtin::REPLICA_SET.id, &place).is_some()
    };
    let candidate_taken = candidate.as_ref().is_some_and(name_taken);
    let old_pods_leaving = is_recreate(spec) && old.iter().any(|set| has_leaving_pods(view, set));
    Ok(Some(Observed {
        deployment,
        selector,
        to_adopt,
        to_release,
        new,
        old,
        candidate,
        candidate_taken,
        old_pods_leaving,
    }))
}

fn owned_sets(
    view: &dyn View,
    deployment: &Typed<Deployment>,
    key: &Key,
) -> Result<Vec<SetRef>, ObserveError> {
    let mut owned = view.owned_by(&builtin::REPLICA_SET.id, &deployment.object().meta().uid);
    owned.retain(|set| ownership::controls(deployment.object(), set));
    Typed::all(owned).map_err(ObserveError::at(key))
}

/// Pods that are replicas no more, but not gone: their successors must wait.
fn has_leaving_pods(view: &dyn View, set: &SetRef) -> bool {
    view.owned_by(&builtin::POD.id, &set.object().meta().uid).iter().any(|pod| pod.meta().is_deleting())
}

/// The selector of a spec; `None` where it is malformed or empty.
pub fn selector_of(spec: &DeploymentSpec) -> Option<Selector> {
    Selector::from_body(&spec.selector).ok().filter(|s| !s.is_everything())
}

fn is_recreate(spec: &DeploymentSpec) -> bool {
    spec.strategy.as_ref().and_then(|s| s.type_.as_deref()) == Some("Recreate")
}

impl Observed {
    /// The spec, which `observe` has made sure of.
    pub fn spec(&self) -> &DeploymentSpec {
        self.deployment.spec.as_ref().expect("a deployment is observed with its spec only")
    }

    /// How many replicas there should be.
    pub fn replicas(&self) -> i32 {
        self.spec().replicas.unwrap_or(1).max(0)
    }

    /// Whether rollouts are stopped.
    pub fn is_paused(&self) -> bool {
        self.spec().paused == Some(true)
    }

    /// Whether all old pods must be gone before new ones come.
    pub fn is_recreate(&self) -> bool {
        is_recreate(self.spec())
    }

    /// How far the sizes may stray.
    pub fn limits(&self) -> Limits {
        if self.is_recreate() {
            return Limits::recreate(self.replicas());
        }
        let rolling = self.spec().strategy.as_ref().and_then(|s| s.rolling_update.as_ref());
        Limits::rolling(
            self.replicas(),
            rolling.and_then(|r| r.max_surge.as_ref()),
            rolling.and_then(|r| r.max_unavailable.as_ref()),
        )
    }

    /// All ReplicaSets, the new one first.
    pub fn sets(&self) -> impl Iterator<Item = &SetRef> {
        self.new.iter().chain(&self.old)
    }

    /// The Deployment as a target.
    pub fn target(&self) -> Target {
        Target::of(&builtin::DEPLOYMENT, self.deployment.object())
    }
}

/// How many replicas a ReplicaSet was asked for.
pub fn asked(set: &SetRef) -> i32 {
    set.spec.as_ref().and_then(|s| s.replicas).unwrap_or(1).max(0)
}

/// Whether a ReplicaSet's status speaks of its present spec.
pub fn is_current(set: &SetRef) -> bool {
    let seen = set.status.as_ref().and_then(|s| s.observed_generation).unwrap_or(0);
    seen >= set.object().meta().generation
}

/// How many replicas a ReplicaSet reports to exist.
pub fn actual(set: &SetRef) -> i32 {
    set.status.as_ref().map_or(0, |s| s.replicas)
}

/// How many it reports as ready.
pub fn ready(set: &SetRef) -> i32 {
    set.status.as_ref().and_then(|s| s.ready_replicas).unwrap_or(0)
}

/// How many it reports as available.
pub fn available(set: &SetRef) -> i32 {
    set.status.as_ref().and_then(|s| s.available_replicas).unwrap_or(0)
}

/// The size of an old set. What it reports of pods that it was told to delete is not counted.
pub fn size(set: &SetRef) -> Size {
    Size::new(asked(set), available(set))
}

/// The size of the new set. A report that does not speak of its present spec counts for nothing: it may be of pods
/// that go away, from before the set was shrunk and called back.
pub fn new_size(set: &SetRef) -> Size {
    Size::new(asked(set), if is_current(set) { available(set) } else { 0 })
}
