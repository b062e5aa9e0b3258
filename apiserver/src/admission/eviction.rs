//! Whether a pod may be evicted: what the disruption budgets that select it allow, and what the eviction takes of them.
//! Pure; knows no store.

use jiff::Timestamp;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::LabelSelector;
use serde_json::{Value, json};
use std::collections::BTreeMap;
use strata_model::resource::builtin;
use strata_model::selector::Selector;
use strata_model::status::{Cause, Details, Reason, Status};

use crate::refusal::{Outcome, Refusal, about, internal};
use crate::strategy::stamp;
use crate::value::{at, child, int, list, list_mut, text};

/// Most pods of a budget that are on their way out and were not seen to go.
const MAX_DISRUPTED: usize = 2000;
/// Seconds after which to try again what a budget did not judge yet.
const UNJUDGED_SECONDS: u32 = 10;
/// The condition of budgets that the controller and evictions write.
pub const ALLOWED: &str = "DisruptionAllowed";
/// The reason of [`ALLOWED`] when nothing more may go.
const INSUFFICIENT: &str = "InsufficientPods";
/// The reason of [`ALLOWED`] when the controller could not judge.
const SYNC_FAILED: &str = "SyncFailed";

/// What an eviction comes to.
#[derive(Debug, PartialEq)]
pub enum Verdict {
    /// No budget has a say.
    Free,
    /// The budget at this place in the list pays for it, and is this afterwards.
    Charged(usize, Value),
}

/// Whether a budget selects a pod with these labels. One without a selector selects none.
pub fn selects(budget: &Value, labels: &BTreeMap<String, String>) -> bool {
    let Some(body) = at(budget, &["spec", "selector"]).filter(|body| !body.is_null()) else { return false };
    let body = serde_json::from_value::<LabelSelector>(body.clone()).ok();
    !labels.is_empty()
        && body.and_then(|b| Selector::from_body(&b).ok()).is_some_and(|selector| selector.matches(labels))
}

/// Whether a pod goes whatever the budgets say: it serves nobody (yet, or any more), or is going already.
pub fn is_free(pod: &Value) -> bool {
    at(pod, &["metadata", "deletionTimestamp"]).is_some()
        || matches!(text(pod, &["status", "phase"]), "Pending" | "Succeeded" | "Failed")
}

fn is_ready(pod: &Value) -> bool {
    let ready = |c: &Value| text(c, &["type"]) == "Ready" && text(c, &["status"]) == "True";
    list(pod, &["status", "conditions"]).iter().any(ready)
}

/// Decides the eviction of a pod beside the budgets that select it.
///
/// # Errors
/// The refusal that the client gets: 429 where a budget has nothing left.
pub fn decide(pod: &Value, budgets: &[Value], now: Timestamp) -> Outcome<Verdict> {
    let budget = match budgets {
        _ if is_free(pod) => return Ok(Verdict::Free),
        [] => return Ok(Verdict::Free),
        [budget] => budget,
        _ => {
            let mut refusal = internal("");
            refusal.message =
                "This pod has more than one PodDisruptionBudget, which the eviction subresource does not support."
                    .to_owned();
            return Err(refusal);
        }
    };
    if !is_ready(pod) && spares_unready(budget) {
        return Ok(Verdict::Free);
    }
    check(budget)?;
    Ok(Verdict::Charged(0, charge(budget, text(pod, &["metadata", "name"]), now)))
}

/// Whether a budget lets pods go that are not ready.
fn spares_unready(budget: &Value) -> bool {
    let count = |name: &str| int(budget, &["status", name]).unwrap_or(0);
    match text(budget, &["spec", "unhealthyPodEvictionPolicy"]) {
        "AlwaysAllow" => true,
        _ => count("desiredHealthy") > 0 && count("currentHealthy") >= count("desiredHealthy"),
    }
}

fn check(budget: &Value) -> Outcome<()> {
    let name = text(budget, &["metadata", "name"]);
    let seen = int(budget, &["status", "observedGeneration"]).unwrap_or(0);
    if seen < int(budget, &["metadata", "generation"]).unwrap_or(0) {
        let why = format!("The disruption budget {name} is still being processed by the server.");
        return Err(too_many(why, UNJUDGED_SECONDS));
    }
    let count = |name: &str| int(budget, &["status", name]).unwrap_or(0);
    let about = about(&builtin::POD_DISRUPTION_BUDGET, name);
    if count("disruptionsAllowed") < 0 {
        return Err(Box::new(Status::forbidden(about, "pdb disruptions allowed is negative")));
    }
    if at(budget, &["status", "disruptedPods"]).and_then(Value::as_object).map_or(0, serde_json::Map::len)
        > MAX_DISRUPTED
    {
        let why = "DisruptedPods map too big - too many evictions not confirmed by PDB controller";
        return Err(Box::new(Status::forbidden(about, why)));
    }
    if count("disruptionsAllowed") > 0 {
        return Ok(());
    }
    let failed = list(budget, &["status", "conditions"]).iter().find(|c| {
        text(c, &["type"]) == ALLOWED
            && text(c, &["status"]) == "False"
            && text(c, &["reason"]) == SYNC_FAILED
    });
    let why = match failed {
        Some(condition) => format!(
            "The disruption budget {name} does not allow evicting pods currently because it failed sync: {}",
            text(condition, &["message"])
        ),
        None => format!(
            "The disruption budget {name} needs {} healthy pods and has {} currently",
            count("desiredHealthy"),
            count("currentHealthy")
        ),
    };
    Err(too_many(why, 0))
}

fn too_many(message: String, retry_after_seconds: u32) -> Refusal {
    let cause = Cause { reason: "DisruptionBudget".to_owned(), message, field: String::new() };
    let details = Details { causes: vec![cause], retry_after_seconds, ..Details::default() };
    let message = "Cannot evict pod as it would violate the pod's disruption budget.";
    Box::new(Status::failure(Reason::TooManyRequests, message).with_details(details))
}

/// The budget after one pod more is on its way out.
fn charge(budget: &Value, pod: &str, now: Timestamp) -> Value {
    let mut budget = budget.clone();
    let left = int(&budget, &["status", "disruptionsAllowed"]).unwrap_or(0) - 1;
    let generation = int(&budget, &["metadata", "generation"]);
    let status = child(&mut budget, "status");
    status.insert("disruptionsAllowed".to_owned(), json!(left));
    let disrupted = status.entry("disruptedPods").or_insert_with(|| json!({}));
    crate::value::object(disrupted).insert(pod.to_owned(), stamp(now));
    if left == 0 {
        let condition = json!({"type": ALLOWED, "status": "False", "reason": INSUFFICIENT, "message": "",
            "lastTransitionTime": stamp(now), "observedGeneration": generation});
        status.entry("conditions").or_insert_with(|| json!([]));
        if let Some(conditions) = list_mut(&mut budget, &["status", "conditions"]) {
            conditions.retain(|c| text(c, &["type"]) != ALLOWED);
            conditions.push(condition);
        }
    }
    budget
}

/// The pod with the condition that tells why it goes.
pub fn marked(pod: &Value, now: Timestamp) -> Value {
    let mut pod = pod.clone();
    let condition = json!({"type": "DisruptionTarget", "status": "True", "reason": "EvictionByEvictionAPI",
        "message": "Eviction API: evicting", "lastTransitionTime": stamp(now)});
    child(&mut pod, "status").entry("conditions").or_insert_with(|| json!([]));
    if let Some(conditions) = list_mut(&mut pod, &["status", "conditions"]) {
        conditions.retain(|c| text(c, &["type"]) != "DisruptionTarget");
        conditions.push(condition);
    }
    pod
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pod(ready: &str) -> Value {
        json!({"metadata": {"name": "p", "labels": {"app": "a"}},
            "status": {"phase": "Running", "conditions": [{"type": "Ready", "status": ready}]}})
    }

    fn budget(allowed: i64) -> Value {
        json!({"metadata": {"name": "b", "generation": 2}, "spec": {"selector": {"matchLabels": {"app": "a"}}},
            "status": {"observedGeneration": 2, "disruptionsAllowed": allowed, "currentHealthy": 2, "desiredHealthy": 3}})
    }

    fn refused(pod: &Value, budget: Value) -> Refusal {
        decide(pod, &[budget], Timestamp::UNIX_EPOCH).unwrap_err()
    }

    #[test]
    fn a_budget_pays_until_it_is_spent() {
        let Verdict::Charged(0, after) = decide(&pod("True"), &[budget(1)], Timestamp::UNIX_EPOCH).unwrap()
        else {
            panic!("not charged")
        };
        assert_eq!(after["status"]["disruptionsAllowed"], 0);
        assert_eq!(after["status"]["disruptedPods"], json!({"p": "1970-01-01T00:00:00Z"}));
        assert_eq!(after["status"]["conditions"][0]["reason"], INSUFFICIENT);
        let refusal = refused(&pod("True"), after);
        assert_eq!((refusal.reason, refusal.code), (Some(Reason::TooManyRequests), Some(429)));
        let cause = &refusal.details.unwrap().causes[0];
        assert_eq!(cause.reason, "DisruptionBudget");
        assert_eq!(cause.message, "The disruption budget b needs 3 healthy pods and has 2 currently");
        let mut newer = budget(1);
        newer["metadata"]["generation"] = json!(3);
        let details = refused(&pod("True"), newer).details.unwrap();
        assert_eq!(details.retry_after_seconds, UNJUDGED_SECONDS);
        assert!(details.causes[0].message.contains("still being processed"));
        assert_eq!(refused(&pod("True"), budget(-1)).reason, Some(Reason::Forbidden));
        let two = decide(&pod("True"), &[budget(1), budget(1)], Timestamp::UNIX_EPOCH).unwrap_err();
        assert_eq!(two.code, Some(500));
    }

    #[test]
    fn what_serves_nobody_goes_and_what_is_unready_goes_where_the_budget_says_so() {
        let free = |pod: &Value, budget: Value| {
            decide(pod, &[budget], Timestamp::UNIX_EPOCH).is_ok_and(|verdict| verdict == Verdict::Free)
        };
        for phase in ["Pending", "Succeeded", "Failed"] {
            let mut pod = pod("False");
            pod["status"]["phase"] = json!(phase);
            assert!(free(&pod, budget(0)), "{phase}");
        }
        let mut going = pod("True");
        going["metadata"]["deletionTimestamp"] = json!("1970-01-01T00:00:00Z");
        assert!(free(&going, budget(0)));
        assert!(!free(&pod("False"), budget(0)), "the others are too few");
        let mut enough = budget(0);
        enough["status"]["currentHealthy"] = json!(3);
        assert!(free(&pod("False"), enough.clone()));
        assert!(!free(&pod("True"), enough));
        let mut always = budget(0);
        always["spec"]["unhealthyPodEvictionPolicy"] = json!("AlwaysAllow");
        assert!(free(&pod("False"), always));
    }

    #[test]
    fn budgets_select_by_labels_and_none_without_a_selector() {
        let labels = BTreeMap::from([("app".to_owned(), "a".to_owned())]);
        assert!(selects(&budget(1), &labels) && !selects(&budget(1), &BTreeMap::new()));
        assert!(selects(&json!({"spec": {"selector": {}}}), &labels));
        assert!(!selects(&json!({"spec": {}}), &labels));
    }
}
