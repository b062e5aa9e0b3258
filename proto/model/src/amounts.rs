//! Amounts of resources by name, and what a pod asks for in all. Pure arithmetic; knows no limits and no quotas.

use std::collections::BTreeMap;

use serde_json::Value;

use crate::quantity::Quantity;

/// Amounts by the name of the resource.
pub type Amounts = BTreeMap<String, Quantity>;

/// The amounts of a map. What cannot be read is left out: validation has refused it before.
pub fn amounts(map: &Value) -> Amounts {
    let all = map.as_object().into_iter().flatten();
    let read = |(name, amount): (&String, &Value)| {
        let text = amount.as_str().map_or_else(|| amount.to_string(), str::to_owned);
        Some((name.clone(), text.parse().ok()?))
    };
    all.filter_map(read).collect()
}

/// Adds amounts to a sum.
pub fn add(sum: &mut Amounts, more: &Amounts) {
    for (name, amount) in more {
        let slot = sum.entry(name.clone()).or_insert(Quantity::ZERO);
        *slot = slot.plus(*amount);
    }
}

/// Takes of each name the larger amount.
fn raise(most: &mut Amounts, other: Amounts) {
    for (name, amount) in other {
        let slot = most.entry(name).or_insert(amount);
        *slot = (*slot).max(amount);
    }
}

fn containers<'p>(pod: &'p Value, list: &str) -> impl Iterator<Item = &'p Value> {
    pod["spec"][list].as_array().into_iter().flatten()
}

/// What a pod has of `requests` or `limits` at a time: its containers together, or the init container that needs more
/// while those before it that go on beside it run.
pub fn of_pod(pod: &Value, part: &str) -> Amounts {
    let mut sum = Amounts::new();
    for container in containers(pod, "containers") {
        add(&mut sum, &amounts(&container["resources"][part]));
    }
    let (mut beside, mut most) = (Amounts::new(), Amounts::new());
    for container in containers(pod, "initContainers") {
        let own = amounts(&container["resources"][part]);
        if container["restartPolicy"] == "Always" {
            add(&mut sum, &own);
            add(&mut beside, &own);
            raise(&mut most, beside.clone());
        } else {
            let mut now = own;
            add(&mut now, &beside);
            raise(&mut most, now);
        }
    }
    raise(&mut sum, most);
    sum
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_pod_asks_for_its_containers_or_for_its_largest_start() {
        let of = |cpu: &str| json!({"resources": {"requests": {"cpu": cpu}}});
        let mut beside = of("100m");
        beside["restartPolicy"] = json!("Always");
        let cpu = |spec: Value| of_pod(&json!({"spec": spec}), "requests")["cpu"].to_string();
        assert_eq!(cpu(json!({"containers": [of("1"), of("500m")]})), "1500m");
        assert_eq!(cpu(json!({"containers": [of("1")], "initContainers": [of("2"), of("1")]})), "2");
        assert_eq!(
            cpu(json!({"containers": [of("1")], "initContainers": [beside.clone(), of("500m")]})),
            "1100m"
        );
        assert_eq!(cpu(json!({"containers": [of("1")], "initContainers": [beside, of("2")]})), "2100m");
        assert!(of_pod(&json!({"spec": {"containers": [{}]}}), "limits").is_empty());
    }
}
