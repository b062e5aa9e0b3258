//! How many pods a budget is about, and how many of them must be healthy: by its numbers, or by the scale of the owners
//! of its pods.

use std::collections::BTreeSet;
use std::sync::Arc;

use k8s_openapi::api::policy::v1::PodDisruptionBudget;
use k8s_openapi::apimachinery::pkg::util::intstr::IntOrString;
use strata_model::object::{Object, ObjectKey};
use strata_model::resource::{ResourceType, builtin};

use crate::controller::View;
use crate::pods::PodRef;
use crate::rollout::rounded_up;

/// The owners of pods whose scale is known.
pub const OWNERS: &[&ResourceType] =
    &[&builtin::REPLICA_SET, &builtin::DEPLOYMENT, &builtin::STATEFUL_SET, &builtin::REPLICATION_CONTROLLER];

/// What a budget asks for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Expected {
    /// How many pods there should be.
    pub pods: i32,
    /// How many of them must be healthy.
    pub healthy: i32,
}

/// What a budget asks for, given its pods; or why that cannot be told.
pub fn expected(view: &dyn View, budget: &PodDisruptionBudget, pods: &[PodRef]) -> Result<Expected, String> {
    let spec = budget.spec.as_ref();
    if let Some(missing) = spec.and_then(|s| s.max_unavailable.as_ref()) {
        let pods = scale(view, pods)?;
        return Ok(Expected { pods, healthy: (pods - share(missing, pods)).max(0) });
    }
    match spec.and_then(|s| s.min_available.as_ref()) {
        Some(IntOrString::Int(healthy)) => {
            Ok(Expected { pods: i32::try_from(pods.len()).unwrap_or(i32::MAX), healthy: (*healthy).max(0) })
        }
        Some(least) => {
            let pods = scale(view, pods)?;
            Ok(Expected { pods, healthy: share(least, pods) })
        }
        None => Ok(Expected { pods: i32::try_from(pods.len()).unwrap_or(i32::MAX), healthy: 0 }),
    }
}

/// A number, or a percentage of a total rounded up.
fn share(bound: &IntOrString, total: i32) -> i32 {
    let total = usize::try_from(total).unwrap_or(0);
    i32::try_from(rounded_up(Some(bound), total, 0)).unwrap_or(i32::MAX)
}

/// How many pods the owners of these ask for together. Pods without an owner are nobody's, and are not counted.
fn scale(view: &dyn View, pods: &[PodRef]) -> Result<i32, String> {
    let (mut seen, mut sum) = (BTreeSet::new(), 0i32);
    for pod in pods {
        let meta = pod.object().meta();
        let Some(reference) = meta.controller() else { continue };
        let owner =
            owner(view, &meta.namespace, reference.group(), &reference.kind, &reference.name, &reference.uid);
        let top = match owner {
            Some((owner, resource)) => above(view, owner, resource),
            None => {
                return Err(format!(
                    "found no controller with a scale for pod \"{}\": {} \"{}\" is not known; use minAvailable with a \
                     number instead of a percentage or maxUnavailable",
                    meta.name, reference.kind, reference.name
                ));
            }
        };
        if seen.insert(top.meta().uid.clone()) {
            sum = sum.saturating_add(replicas(&top));
        }
    }
    Ok(sum)
}

type Owner = (Arc<Object>, &'static ResourceType);

fn owner(view: &dyn View, namespace: &str, group: &str, kind: &str, name: &str, uid: &str) -> Option<Owner> {
    let resource = OWNERS.iter().find(|o| o.id.group == group && o.kind == kind)?;
    let found = view.get(&resource.id, &ObjectKey::new(namespace, name))?;
    (found.meta().uid == uid).then_some((found, resource))
}

/// A ReplicaSet's Deployment, where one controls it; else the owner itself.
fn above(view: &dyn View, object: Arc<Object>, resource: &ResourceType) -> Arc<Object> {
    if resource.id != builtin::REPLICA_SET.id {
        return object;
    }
    let meta = object.meta();
    let deployment = meta.controller().and_then(|reference| {
        owner(view, &meta.namespace, reference.group(), &reference.kind, &reference.name, &reference.uid)
    });
    match deployment {
        Some((deployment, kind)) if kind.id == builtin::DEPLOYMENT.id => deployment,
        _ => object,
    }
}

fn replicas(owner: &Object) -> i32 {
    let value = owner.to_value().unwrap_or_default();
    value["spec"]["replicas"].as_i64().and_then(|n| i32::try_from(n).ok()).unwrap_or(1)
}
