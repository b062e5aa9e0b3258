//! The two sorts of sets: how their bodies say the same things. Decides nothing.

use std::collections::BTreeMap;

use k8s_openapi::api::apps::v1::ReplicaSet;
use k8s_openapi::api::core::v1::{PodTemplateSpec, ReplicationController};
use serde_json::Value;
use strata_model::condition::Condition;
use strata_model::object::{Object, ObjectError};
use strata_model::resource::{ResourceType, builtin};
use strata_model::selector::Selector;

/// Condition of a set whose pods cannot be made or removed.
pub const FAILURE: &str = "ReplicaFailure";

/// A sort of sets.
#[derive(Debug)]
pub struct Sort {
    /// Its type.
    pub resource: &'static ResourceType,
    /// What the body of one says.
    pub read: fn(&Object) -> Result<(Asked, Written), ObjectError>,
}

/// ReplicaSets.
pub static REPLICA_SET: Sort = Sort { resource: &builtin::REPLICA_SET, read: replica_set };
/// ReplicationControllers.
pub static REPLICATION_CONTROLLER: Sort =
    Sort { resource: &builtin::REPLICATION_CONTROLLER, read: replication_controller };

/// What a set asks for.
#[derive(Clone, Debug)]
pub struct Asked {
    /// How many pods there should be.
    pub replicas: usize,
    /// How long a pod must be ready to be available, seconds.
    pub min_ready_seconds: i64,
    /// `None` where it is malformed or empty, and so selects nothing.
    pub selector: Option<Selector>,
    /// Selects pods that have all labels of the template.
    pub labelled: Selector,
}

/// What the status of a set says. Counts that are absent are zero.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Written {
    /// Pods.
    pub replicas: i32,
    /// Those with all labels of the template.
    pub full: i32,
    /// Those that are ready.
    pub ready: i32,
    /// Those that are available.
    pub available: i32,
    /// Of which spec it speaks.
    pub generation: i64,
    /// The condition [`FAILURE`].
    pub failure: Option<Condition>,
    /// All other conditions.
    pub others: Vec<Value>,
}

fn asked(
    replicas: Option<i32>,
    min_ready_seconds: Option<i32>,
    selector: Option<Selector>,
    template: Option<&PodTemplateSpec>,
) -> Asked {
    let labels = template.and_then(|t| t.metadata.as_ref()?.labels.as_ref());
    Asked {
        replicas: usize::try_from(replicas.unwrap_or(1)).unwrap_or(0),
        min_ready_seconds: min_ready_seconds.unwrap_or(0).into(),
        selector: selector.filter(|s| !s.is_everything()),
        labelled: Selector::from_labels(labels.unwrap_or(&BTreeMap::new())),
    }
}

fn written(object: &Object) -> Result<Written, ObjectError> {
    let value = object.to_value()?;
    let status = &value["status"];
    let number = |field: &str| status[field].as_i64().and_then(|n| i32::try_from(n).ok()).unwrap_or(0);
    let conditions = status["conditions"].as_array().cloned().unwrap_or_default();
    let (failure, others): (Vec<Value>, Vec<Value>) =
        conditions.into_iter().partition(|c| c["type"] == FAILURE);
    Ok(Written {
        replicas: number("replicas"),
        full: number("fullyLabeledReplicas"),
        ready: number("readyReplicas"),
        available: number("availableReplicas"),
        generation: status["observedGeneration"].as_i64().unwrap_or(0),
        failure: failure.into_iter().next().and_then(|c| serde_json::from_value(c).ok()),
        others,
    })
}

fn replica_set(object: &Object) -> Result<(Asked, Written), ObjectError> {
    let set = object.typed::<ReplicaSet>()?;
    let spec = set.spec.as_ref();
    let selector = spec.and_then(|s| Selector::from_body(&s.selector).ok());
    let template = spec.and_then(|s| s.template.as_ref());
    let asked =
        asked(spec.and_then(|s| s.replicas), spec.and_then(|s| s.min_ready_seconds), selector, template);
    Ok((asked, written(object)?))
}

fn replication_controller(object: &Object) -> Result<(Asked, Written), ObjectError> {
    let set = object.typed::<ReplicationController>()?;
    let spec = set.spec.as_ref();
    let template = spec.and_then(|s| s.template.as_ref());
    // Where it selects nothing of its own, it means what its template is labelled with.
    let labels = template.and_then(|t| t.metadata.as_ref()?.labels.as_ref());
    let selector = spec.and_then(|s| s.selector.as_ref()).filter(|s| !s.is_empty()).or(labels);
    let selector = selector.map(Selector::from_labels);
    let asked =
        asked(spec.and_then(|s| s.replicas), spec.and_then(|s| s.min_ready_seconds), selector, template);
    Ok((asked, written(object)?))
}
