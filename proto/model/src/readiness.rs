//! Whether an object says of itself that it is as wished: seen by its controller in its newest generation, and ready.
//! Told by shape (generations, counts, conditions, phase), never by kind; what has none of these is ready as it is.

use serde_json::Value;

/// Conditions that are True when all is well, as the API conventions and common types name them.
const GOOD_WHEN_TRUE: [&str; 4] = ["Ready", "Available", "Established", "Healthy"];
/// Conditions that end what an object is there for, well or not.
const ENDS: [&str; 3] = ["Complete", "Failed", "SuccessCriteriaMet"];

/// Whether the object is as wished, by its own account.
pub fn is_ready(object: &Value) -> bool {
    let (metadata, spec, status) = (&object["metadata"], &object["spec"], &object["status"]);
    if !metadata["deletionTimestamp"].is_null() || !is_observed(metadata, status) {
        return false;
    }
    if ENDS.iter().any(|end| condition(status, end) == Some("True")) {
        return true;
    }
    if GOOD_WHEN_TRUE.iter().any(|good| condition(status, good).is_some_and(|value| value != "True")) {
        return false;
    }
    if let Some(phase) = status["phase"].as_str() {
        return matches!(phase, "Running" | "Succeeded" | "Active" | "Bound" | "Available");
    }
    counts_agree(spec, status)
}

/// Whether the controller has seen the newest generation, where it says which one it has seen.
fn is_observed(metadata: &Value, status: &Value) -> bool {
    let generation = metadata["generation"].as_i64().unwrap_or(0);
    match status["observedGeneration"].as_i64() {
        Some(seen) => seen >= generation,
        // What counts replicas tells of them; without a status nobody has looked yet.
        None => status["replicas"].is_null() || generation == 0,
    }
}

fn counts_agree(spec: &Value, status: &Value) -> bool {
    let count = |name: &str| status[name].as_i64().unwrap_or(0);
    if let Some(wanted) = status["desiredNumberScheduled"].as_i64() {
        return count("updatedNumberScheduled") == wanted && count("numberAvailable") == wanted;
    }
    let Some(wanted) = spec["replicas"].as_i64() else { return true };
    let ready = if status["availableReplicas"].is_null() { "readyReplicas" } else { "availableReplicas" };
    // Only what rolls out tells how much of it is new; it leaves a count of zero out.
    let rolls = !spec["strategy"].is_null() || !spec["updateStrategy"].is_null();
    let updated = !rolls || count("updatedReplicas") == wanted;
    count("replicas") == wanted && count(ready) == wanted && updated
}

fn condition<'a>(status: &'a Value, type_: &str) -> Option<&'a str> {
    status["conditions"].as_array()?.iter().find(|c| c["type"] == type_)?["status"].as_str()
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn shapes_tell_whether_an_object_is_as_wished() {
        let deployment = |generation: i64, updated: i64, available: i64| {
            json!({"metadata": {"generation": generation}, "spec": {"replicas": 3, "strategy": {}}, "status":
                {"observedGeneration": 2, "replicas": 3, "updatedReplicas": updated, "availableReplicas": available}})
        };
        let pod = |phase: &str, ready: &str| json!({"metadata": {}, "status": {"phase": phase, "conditions": [{"type": "Ready", "status": ready}]}});
        let cases = [
            (deployment(2, 3, 3), true, "rolled out"),
            (deployment(3, 3, 3), false, "not seen yet"),
            (deployment(2, 2, 3), false, "an old one left"),
            (deployment(2, 3, 2), false, "one not available"),
            (
                json!({"metadata": {"generation": 1}, "spec": {"replicas": 0}, "status": {"replicas": 0, "observedGeneration": 1}}),
                true,
                "none wanted",
            ),
            (
                json!({"metadata": {"generation": 1}, "spec": {"replicas": 1}, "status": {"replicas": 1, "readyReplicas": 1, "observedGeneration": 1}}),
                true,
                "a set",
            ),
            (
                json!({"metadata": {}, "status": {"desiredNumberScheduled": 2, "updatedNumberScheduled": 2, "numberAvailable": 1}}),
                false,
                "one node lacks it",
            ),
            (pod("Running", "True"), true, "runs"),
            (pod("Running", "False"), false, "runs, not ready"),
            (pod("Pending", "True"), false, "waits"),
            (json!({"metadata": {"deletionTimestamp": "2026-11-30T10:00:00Z"}}), false, "goes"),
            (
                json!({"metadata": {}, "spec": {"parallelism": 1}, "status": {"conditions": [{"type": "Failed", "status": "True"}]}}),
                true,
                "ended",
            ),
            (json!({"metadata": {"name": "c"}, "data": {}}), true, "has no status"),
        ];
        for (object, ready, what) in cases {
            assert_eq!(is_ready(&object), ready, "{what}: {object}");
        }
    }
}
