//! What a pod's status says to those who manage pods: active, ready, available, and since when. Decides nothing.

pub mod body;

use jiff::{Timestamp, ToSpan};
use serde_json::{Value, json};
use strata_model::object::Object;

use self::body::Pod;
use crate::typed::Typed;

/// A pod of the cache.
pub type PodRef = Typed<Pod>;

/// The phase; `Pending` where nobody wrote one.
pub fn phase(pod: &Pod) -> &str {
    pod.status.as_ref().and_then(|s| s.phase.as_deref()).unwrap_or("Pending")
}

/// The node it is bound to; empty where none.
pub fn node_name(pod: &Pod) -> &str {
    pod.spec.as_ref().and_then(|s| s.node_name.as_deref()).unwrap_or_default()
}

/// Whether it came to its end, well or badly.
pub fn is_finished(pod: &Pod) -> bool {
    matches!(phase(pod), "Succeeded" | "Failed")
}

/// Whether it counts as a replica: not finished, and nobody asked for its deletion.
pub fn is_active(object: &Object, pod: &Pod) -> bool {
    !object.meta().is_deleting() && !is_finished(pod)
}

/// Since when it is ready; `None` where it is not. A ready pod that does not say since when is so since ever.
pub fn ready_since(pod: &Pod) -> Option<Timestamp> {
    let conditions = pod.status.as_ref()?.conditions.as_ref()?;
    let ready = conditions.iter().find(|c| c.type_ == "Ready" && c.status == "True")?;
    Some(ready.last_transition_time.as_ref().map_or(Timestamp::MIN, |t| t.0))
}

/// When a ready pod is or becomes available: once it has been ready for `min_ready_seconds`. `None`: it is not ready.
pub fn available_at(pod: &Pod, min_ready_seconds: i64) -> Option<Timestamp> {
    let since = ready_since(pod)?;
    Some(since.checked_add(min_ready_seconds.max(0).seconds()).unwrap_or(Timestamp::MAX))
}

/// Whether a condition of a pod is true.
pub fn is_true(pod: &Pod, condition: &str) -> bool {
    let conditions = pod.status.as_ref().and_then(|s| s.conditions.as_ref());
    conditions.into_iter().flatten().any(|c| c.type_ == condition && c.status == "True")
}

/// Condition of a pod that goes for no fault of its own.
pub const DISRUPTED: &str = "DisruptionTarget";

/// The patch of a pod's status that sets one condition and keeps the others as they are.
pub fn with_condition(pod: &PodRef, condition: Value) -> Value {
    let mut value = pod.object().to_value().unwrap_or_default();
    let mut list = match value["status"]["conditions"].take() {
        Value::Array(list) => list,
        _ => Vec::new(),
    };
    list.retain(|c| c["type"] != condition["type"]);
    list.push(condition);
    json!({"conditions": list})
}

/// The most restarts of one of its containers.
pub fn restarts(pod: &Pod) -> i32 {
    let statuses = pod.status.as_ref().and_then(|s| s.container_statuses.as_ref());
    statuses.into_iter().flatten().map(|c| c.restart_count).max().unwrap_or(0)
}
