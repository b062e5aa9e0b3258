//! What a quota says to a write, and what it is after it. Pure; which objects there are is told to it.

use std::collections::BTreeMap;

use serde_json::{Value, json};
use strata_model::amounts::{Amounts, add};
use strata_model::quantity::Quantity;
use strata_model::quota::Quota;
use strata_model::resource::{GroupResource, builtin};

use crate::value::{at, child, list, object, text};

/// What every container must say where a quota bounds it.
const COMPUTE: [&str; 6] =
    ["cpu", "limits.cpu", "limits.memory", "memory", "requests.cpu", "requests.memory"];

/// What containers of a pod do not say though a quota bounds it, as upstream tells it.
pub fn unsaid(quota: &Quota, pod: &Value) -> Option<String> {
    let mut missing: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
    for bound in quota.hard.keys().filter(|name| COMPUTE.contains(&name.as_str())) {
        let (part, name) = bound.split_once('.').unwrap_or(("requests", bound));
        for place in ["containers", "initContainers"] {
            for container in list(pod, &["spec", place]) {
                if at(container, &["resources", part, name]).is_none() {
                    missing.entry(bound).or_default().push(text(container, &["name"]));
                }
            }
        }
    }
    if missing.is_empty() {
        return None;
    }
    let told: Vec<String> = missing
        .into_iter()
        .map(|(bound, mut names)| {
            names.sort_unstable();
            format!("{bound} for: {}", names.join(","))
        })
        .collect();
    Some(format!("failed quota: {}: must specify {}", quota.name, told.join("; ")))
}

/// How much more a write takes: less than nothing where it gives back. What stays as it was is left out.
pub fn difference(new: &Amounts, old: &Amounts) -> Amounts {
    let mut more = new.clone();
    for (name, amount) in old {
        let slot = more.entry(name.clone()).or_insert(Quantity::ZERO);
        *slot = slot.minus(*amount);
    }
    more.retain(|_, amount| *amount != Quantity::ZERO);
    more
}

/// What is used once a write took this much more; or the words in which it is refused.
///
/// # Errors
/// That a bound would be exceeded, and by what.
pub fn charge(quota: &Quota, used: &Amounts, more: &Amounts) -> Result<Amounts, String> {
    let mut after = used.clone();
    add(&mut after, more);
    let over: Vec<&str> = more
        .iter()
        .filter(|(name, amount)| **amount > Quantity::ZERO && after.get(*name) > quota.hard.get(*name))
        .map(|(name, _)| name.as_str())
        .collect();
    if over.is_empty() {
        return Ok(after);
    }
    let shown = |of: &Amounts| {
        let amount = |name: &&str| format!("{name}={}", of.get(*name).copied().unwrap_or(Quantity::ZERO));
        over.iter().map(amount).collect::<Vec<_>>().join(",")
    };
    Err(format!(
        "exceeded quota: {}, requested: {}, used: {}, limited: {}",
        quota.name,
        shown(more),
        shown(used),
        shown(&quota.hard)
    ))
}

/// A quota's object with what is used of some resources. Answers `None` where it says so already.
pub fn told(quota: &Value, used: &Amounts) -> Option<Value> {
    let mut after = quota.clone();
    for (name, amount) in used {
        let hard = at(quota, &["spec", "hard", name]).cloned();
        let status = child(&mut after, "status");
        let slot = object(status.entry("used").or_insert(Value::Null));
        slot.insert(name.clone(), json!(amount.to_string()));
        let slot = object(status.entry("hard").or_insert(Value::Null));
        crate::value::put(slot, name, hard);
    }
    (after != *quota).then_some(after)
}

/// Raises what a status says is used to what is, where it says less.
pub fn raise(quota: &mut Value, used: &Amounts) {
    let written = strata_model::amounts::amounts(&quota["status"]["used"]);
    for (name, amount) in used {
        if written.get(name).is_none_or(|written| written < amount) {
            let slot = object(child(quota, "status").entry("used").or_insert(Value::Null));
            slot.insert(name.clone(), json!(amount.to_string()));
        }
    }
}

/// What all objects that there are take of a quota, over all that it bounds; `all` gives the objects of a type.
pub fn count(quota: &Quota, now: jiff::Timestamp, all: impl Fn(&GroupResource) -> Vec<Value>) -> Amounts {
    let mut used: Amounts = quota.hard.keys().map(|name| (name.clone(), Quantity::ZERO)).collect();
    let mut seen = Vec::new();
    for name in quota.hard.keys() {
        let Some(id) = strata_model::quota::counted(name).filter(|id| !seen.contains(id)) else { continue };
        for object in all(&id) {
            add(&mut used, &quota.taken(&id, &object, now));
        }
        seen.push(id);
    }
    used
}

/// Whether an update of an object of a type can take more than the object did.
pub fn grows(id: &GroupResource) -> bool {
    *id == builtin::SERVICE.id || *id == builtin::PERSISTENT_VOLUME_CLAIM.id
}

#[cfg(test)]
mod tests {
    use super::*;

    fn quota(hard: Value, used: Value) -> (Value, Quota) {
        let object = json!({"metadata": {"name": "q"}, "spec": {"hard": hard}, "status": {"used": used}});
        let quota = Quota::read(&object);
        (object, quota)
    }

    fn amounts(of: Value) -> Amounts {
        strata_model::amounts::amounts(&of)
    }

    #[test]
    fn a_bound_is_reached_and_not_passed() {
        let (object, quota) =
            quota(json!({"pods": "2", "requests.cpu": "1"}), json!({"pods": "1", "requests.cpu": "500m"}));
        let after =
            charge(&quota, &quota.used, &amounts(json!({"pods": "1", "requests.cpu": "500m"}))).unwrap();
        let told = told(&object, &after).unwrap();
        assert_eq!(told["status"]["used"], json!({"pods": "2", "requests.cpu": "1"}));
        assert_eq!(told["status"]["hard"], json!({"pods": "2", "requests.cpu": "1"}));
        assert_eq!(super::told(&told, &after), None);
        let refused =
            charge(&quota, &after, &amounts(json!({"pods": "1", "requests.cpu": "1m"}))).unwrap_err();
        assert_eq!(
            refused,
            "exceeded quota: q, requested: pods=1,requests.cpu=1m, used: pods=2,requests.cpu=1, limited: pods=2,requests.cpu=1"
        );
        let less = difference(&amounts(json!({"pods": "1"})), &amounts(json!({"pods": "3"})));
        assert!(
            charge(&quota, &amounts(json!({"pods": "9"})), &less).is_ok(),
            "what gives back is not refused"
        );
    }

    #[test]
    fn containers_must_say_what_is_bounded() {
        let (_, quota) = quota(json!({"limits.cpu": "2", "memory": "1Gi", "pods": "3"}), json!({}));
        let pod = json!({"spec": {"containers": [{"name": "b", "resources": {"limits": {"cpu": "1"}}}, {"name": "a"}]}});
        assert_eq!(
            unsaid(&quota, &pod).unwrap(),
            "failed quota: q: must specify limits.cpu for: a; memory for: a,b"
        );
    }
}
