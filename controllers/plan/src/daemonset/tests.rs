//! Scenarios of DaemonSets. Each runs with whole plans and with plans cut after every write.

use serde_json::json;
use strata_model::condition::rfc3339;
use strata_model::object::ObjectKey;
use strata_model::resource::builtin::{DAEMON_SET, NODE, POD};

use super::*;
use crate::testing::{all, at, both_ways, image_of, key, template, value};
use crate::world::World;

fn place(name: &str) -> ObjectKey {
    ObjectKey::new("", name)
}

fn world(more: Value) -> World {
    let mut world = World::new();
    for name in ["a", "b", "c"] {
        world.create(&NODE, json!({"metadata": {"name": name, "labels": {"disk": name}}}), at(0)).unwrap();
    }
    let mut set = json!({"metadata": {"name": "log", "namespace": "n"}, "spec": {
        "selector": {"matchLabels": {"app": "log"}}, "template": template("log", "i:1")}});
    strata_model::merge::apply(&mut set["spec"], &more);
    world.create(&DAEMON_SET, set, at(0)).unwrap();
    world
}

fn change(world: &mut World, spec: Value) {
    world.patch(&DAEMON_SET, &key("log"), &json!({"spec": spec})).unwrap();
}

fn image(world: &mut World, image: &str) {
    change(world, json!({"template": template("log", image)}));
}

fn status(world: &World) -> Value {
    value(world, &DAEMON_SET, &key("log"))["status"].take()
}

/// Node and image of each pod that is not on its way out.
fn seen(world: &World) -> Vec<String> {
    let pods =
        all(world, &POD).into_iter().filter(|o| !o.meta().is_deleting()).map(|o| PodRef::new(o).unwrap());
    let text =
        |p: PodRef| format!("{} {}", observed::target_node(&p).unwrap_or_default(), image_of(p.object()));
    let mut seen: Vec<String> = pods.map(text).collect();
    seen.sort();
    seen
}

fn leaving(world: &World) -> usize {
    all(world, &POD).iter().filter(|p| p.meta().is_deleting()).count()
}

/// Scheduler and nodes: pods are bound where they are for, become ready unless their image is `bad`, and go when told.
fn nodes(world: &mut World, now: Timestamp) -> bool {
    let mut moved = false;
    for object in all(world, &POD) {
        let typed = PodRef::new(object).unwrap();
        let place = typed.object().key();
        let bad = image_of(typed.object()) == "bad";
        if typed.object().meta().is_deleting() {
            world.vanish(&POD, &place);
            moved = true;
        } else if pods::ready_since(&typed).is_none() && !bad && !pods::is_finished(&typed) {
            let node = observed::target_node(&typed).unwrap().to_owned();
            let patch = json!({"spec": {"nodeName": node}, "status": {"phase": "Running", "conditions": [
                {"type": "Ready", "status": "True", "lastTransitionTime": rfc3339(now)}]}});
            world.patch(&POD, &place, &patch).unwrap();
            moved = true;
        }
    }
    moved
}

fn come_to_rest(world: &mut World, now: Timestamp) {
    for _ in 0..100 {
        world.settle(&DaemonSets, now);
        if !nodes(world, now) {
            return;
        }
    }
    panic!("never at rest: {:#?}", all(world, &POD));
}

#[test]
fn every_node_that_suits_has_one() {
    both_ways(
        &DaemonSets,
        at(1),
        || world(json!({})),
        |world| {
            assert_eq!(seen(world), ["a i:1", "b i:1", "c i:1"]);
            let pod = all(world, &POD)[0].to_value().unwrap();
            assert_eq!(pod["metadata"]["labels"][GENERATION], "1");
            assert!(pod["metadata"]["labels"][HASH].is_string());
            assert_eq!(pod["spec"]["tolerations"].as_array().unwrap().len(), 6);
            assert_eq!(status(world)["desiredNumberScheduled"], 3);
        },
    );
    let mut world = world(json!({}));
    come_to_rest(&mut world, at(1));
    assert_eq!(
        status(&world),
        json!({"observedGeneration": 1, "desiredNumberScheduled": 3, "currentNumberScheduled": 3, "numberReady": 3,
            "numberMisscheduled": 0, "updatedNumberScheduled": 3, "numberAvailable": 3})
    );
    world.create(&NODE, json!({"metadata": {"name": "d"}}), at(2)).unwrap();
    come_to_rest(&mut world, at(3));
    assert_eq!(seen(&world).len(), 4);
}

#[test]
fn selectors_and_taints_decide_which_nodes_suit() {
    let only = |spec: Value| {
        let mut t = template("log", "i:1");
        strata_model::merge::apply(&mut t["spec"], &spec);
        json!({"template": t})
    };
    let by_affinity = json!({"affinity": {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": {
        "nodeSelectorTerms": [{"matchExpressions": [{"key": "disk", "operator": "NotIn", "values": ["c"]}]}]}}}});
    let tolerant = json!({"tolerations": [{"key": "k", "operator": "Exists"}]});
    let cases = [
        (json!({"nodeSelector": {"disk": "b"}}), json!([]), vec!["b i:1"]),
        (json!({"nodeName": "c"}), json!([]), vec!["c i:1"]),
        (by_affinity, json!([]), vec!["a i:1", "b i:1"]),
        (json!({}), json!([{"key": "k", "effect": "NoSchedule"}]), vec!["b i:1", "c i:1"]),
        (tolerant, json!([{"key": "k", "effect": "NoExecute"}]), vec!["a i:1", "b i:1", "c i:1"]),
        (
            json!({}),
            json!([{"key": "node.kubernetes.io/unreachable", "effect": "NoExecute"},
            {"key": "node.kubernetes.io/unreachable", "effect": "NoSchedule"}]),
            vec!["a i:1", "b i:1", "c i:1"],
        ),
        (
            json!({}),
            json!([{"key": "node.kubernetes.io/unschedulable", "effect": "NoSchedule"}]),
            vec!["a i:1", "b i:1", "c i:1"],
        ),
    ];
    for (spec, taints, expected) in cases {
        both_ways(
            &DaemonSets,
            at(1),
            || {
                let mut world = world(only(spec.clone()));
                world.patch(&NODE, &place("a"), &json!({"spec": {"taints": taints}})).unwrap();
                world
            },
            |world| assert_eq!(seen(world), expected, "{spec} {taints}"),
        );
    }
}

#[test]
fn a_closed_node_keeps_its_pod_and_one_that_drives_off_does_not() {
    for (effect, left) in [("NoSchedule", 3), ("NoExecute", 2)] {
        let mut world = world(json!({}));
        come_to_rest(&mut world, at(1));
        world
            .patch(&NODE, &place("a"), &json!({"spec": {"taints": [{"key": "k", "effect": effect}]}}))
            .unwrap();
        come_to_rest(&mut world, at(2));
        assert_eq!(seen(&world).len(), left, "{effect}");
        assert_eq!(
            (&status(&world)["numberMisscheduled"], &status(&world)["desiredNumberScheduled"]),
            (&json!(0), &json!(left))
        );
    }
}

#[test]
fn an_update_takes_one_node_after_the_other() {
    let mut world = world(json!({}));
    come_to_rest(&mut world, at(1));
    image(&mut world, "i:2");
    world.settle(&DaemonSets, at(2));
    assert_eq!(leaving(&world), 1);
    come_to_rest(&mut world, at(3));
    assert_eq!(seen(&world), ["a i:2", "b i:2", "c i:2"]);
    change(&mut world, json!({"updateStrategy": {"rollingUpdate": {"maxUnavailable": "50%"}}}));
    image(&mut world, "i:3");
    world.settle(&DaemonSets, at(4));
    assert_eq!(leaving(&world), 2, "half of three, rounded up");
}

#[test]
fn a_broken_update_stops_at_one_node_and_heals() {
    let mut world = world(json!({}));
    come_to_rest(&mut world, at(1));
    image(&mut world, "bad");
    come_to_rest(&mut world, at(2));
    assert_eq!(seen(&world).iter().filter(|s| s.ends_with("bad")).count(), 1);
    assert_eq!(
        (&status(&world)["numberUnavailable"], &status(&world)["updatedNumberScheduled"]),
        (&json!(1), &json!(1))
    );
    image(&mut world, "i:2");
    come_to_rest(&mut world, at(3));
    assert_eq!(seen(&world), ["a i:2", "b i:2", "c i:2"]);
}

#[test]
fn with_a_surge_the_new_one_comes_before_the_old_one_goes() {
    let surge = json!({"updateStrategy": {"type": "RollingUpdate", "rollingUpdate": {"maxSurge": 2, "maxUnavailable": 0}}});
    let mut world = world(surge);
    come_to_rest(&mut world, at(1));
    image(&mut world, "i:2");
    world.settle(&DaemonSets, at(2));
    assert_eq!((leaving(&world), seen(&world).len()), (0, 5));
    nodes(&mut world, at(3));
    world.settle(&DaemonSets, at(3));
    assert_eq!(leaving(&world), 2);
    come_to_rest(&mut world, at(4));
    assert_eq!(seen(&world), ["a i:2", "b i:2", "c i:2"]);
    // A new one that does not become ready leaves the old one in place.
    image(&mut world, "bad");
    come_to_rest(&mut world, at(5));
    assert_eq!(seen(&world).iter().filter(|s| s.ends_with("i:2")).count(), 3);
    image(&mut world, "i:3");
    come_to_rest(&mut world, at(6));
    assert_eq!(seen(&world), ["a i:3", "b i:3", "c i:3"]);
}

#[test]
fn on_delete_outdated_pods_stay() {
    let mut world = world(json!({"updateStrategy": {"type": "OnDelete"}}));
    come_to_rest(&mut world, at(1));
    image(&mut world, "i:2");
    come_to_rest(&mut world, at(2));
    assert_eq!(seen(&world), ["a i:1", "b i:1", "c i:1"]);
    let first = all(&world, &POD)[0].key();
    world.vanish(&POD, &first);
    come_to_rest(&mut world, at(3));
    assert_eq!(seen(&world).iter().filter(|s| s.ends_with("i:2")).count(), 1);
}

#[test]
fn failed_pods_are_made_anew_at_a_pace_and_doubles_go() {
    let mut world = world(json!({}));
    come_to_rest(&mut world, at(100));
    let first = all(&world, &POD)[0].key();
    world.patch(&POD, &first, &json!({"status": {"phase": "Failed"}})).unwrap();
    world.settle(&DaemonSets, at(105));
    assert_eq!((all(&world, &POD).len(), leaving(&world)), (3, 0));
    world.settle(&DaemonSets, at(110));
    assert_eq!(leaving(&world), 1);
    assert!(world.told.iter().any(|t| t.reason == "FailedDaemonPod"));
    come_to_rest(&mut world, at(111));
    let mut double = all(&world, &POD)[0].to_value().unwrap();
    double["metadata"]["name"] = json!("double");
    world.create(&POD, double, at(112)).unwrap();
    come_to_rest(&mut world, at(113));
    assert_eq!(seen(&world), ["a i:1", "b i:1", "c i:1"]);
    assert!(!all(&world, &POD).iter().any(|p| p.meta().name == "double"));
}
