//! Scenarios of pods that are more important than others.

use strata_model::resource::builtin::{NODE, POD, POD_DISRUPTION_BUDGET};

use super::*;

fn important(name: &str, cpu: &str, priority: i32) -> Value {
    let mut pod = asking(name, cpu);
    pod["spec"]["priority"] = json!(priority);
    pod["metadata"]["labels"] = json!({"app": name});
    pod
}

fn going(world: &World) -> Vec<String> {
    all(world, &POD).iter().filter(|p| p.meta().is_deleting()).map(|p| p.meta().name.clone()).collect()
}

/// Two full nodes: `a` with a pod of priority 5 and one of 1, `b` with one of 2.
fn full() -> World {
    let mut world = World::new();
    for name in ["a", "b"] {
        world.create(&NODE, node(name, "2"), at(0)).unwrap();
    }
    for (name, cpu, priority, node) in [("five", "1", 5, "a"), ("one", "1", 1, "a"), ("two", "2", 2, "b")] {
        let mut pod = important(name, cpu, priority);
        pod["spec"]["nodeName"] = json!(node);
        world.create(&POD, pod, at(0)).unwrap();
    }
    world
}

#[test]
fn the_least_important_make_room_and_the_place_is_kept() {
    both_ways(
        &Scheduler,
        at(2),
        || {
            let mut world = full();
            world.create(&POD, important("boss", "1", 9), at(1)).unwrap();
            world
        },
        |world| {
            assert_eq!(going(world), ["one"]);
            let why = value(world, &POD, &key("one"))["status"]["conditions"][0].take();
            assert_eq!(
                (&why["type"], &why["reason"]),
                (&json!("DisruptionTarget"), &json!("PreemptionByScheduler"))
            );
            // While it goes nobody less important gets its place, and nobody else has to go.
            let mut world = world.clone();
            if value(&world, &POD, &key("boss"))["status"]["nominatedNodeName"] == "a" {
                world.create(&POD, important("cheap", "1", 0), at(3)).unwrap();
                world.vanish(&POD, &key("one"));
                world.settle(&Scheduler, at(4));
                assert_eq!(place_of(&world, "boss"), "a");
                assert!(place_of(&world, "cheap").is_null() && going(&world).is_empty());
            }
        },
    );
    let mut world = full();
    world.create(&POD, important("boss", "1", 9), at(1)).unwrap();
    world.settle(&Scheduler, at(2));
    assert_eq!(value(&world, &POD, &key("boss"))["status"]["nominatedNodeName"], "a");
    let told = world.told.iter().find(|t| t.reason == "Preempted").unwrap();
    assert!(told.message.starts_with("Preempted by pod uid-") && told.message.ends_with(" on node a"));
}

#[test]
fn who_is_not_more_important_or_does_not_want_to_waits() {
    for (priority, policy) in [(1, json!(null)), (9, json!("Never"))] {
        let mut world = full();
        let mut pod = important("waits", "1", priority);
        pod["spec"]["preemptionPolicy"] = policy;
        world.create(&POD, pod, at(1)).unwrap();
        world.settle(&Scheduler, at(2));
        assert!(going(&world).is_empty(), "{priority}");
        let said = value(&world, &POD, &key("waits"))["status"]["conditions"][0]["message"].take();
        assert_eq!(said, "0/2 nodes are available: 2 Insufficient cpu.");
    }
}

#[test]
fn that_others_go_is_no_help_against_other_rules() {
    let mut world = full();
    let mut pod = important("picky", "1", 9);
    pod["spec"]["nodeSelector"] = json!({"no": "where"});
    world.create(&POD, pod, at(1)).unwrap();
    let mut huge = important("huge", "3", 9);
    huge["metadata"]["name"] = json!("huge");
    world.create(&POD, huge, at(1)).unwrap();
    world.settle(&Scheduler, at(2));
    assert!(going(&world).is_empty());
}

#[test]
fn budgets_are_spared_where_they_can_be() {
    let mut world = full();
    let budget = json!({"metadata": {"name": "keep", "namespace": "n"}, "spec": {"selector": {"matchLabels": {"app": "one"}}},
        "status": {"disruptionsAllowed": 0}});
    world.create(&POD_DISRUPTION_BUDGET, budget, at(0)).unwrap();
    world.create(&POD, important("boss", "1", 9), at(1)).unwrap();
    world.settle(&Scheduler, at(2));
    assert_eq!(going(&world), ["two"], "the other node breaks no budget");
}

#[test]
fn what_is_promised_counts_for_those_who_come_after() {
    let mut world = World::new();
    for name in ["a", "b"] {
        let mut made = node(name, "2");
        made["metadata"]["labels"] = json!({"host": name});
        world.create(&NODE, made, at(0)).unwrap();
        for n in 0..2 {
            let mut pod = important(&format!("low-{name}{n}"), "1", 0);
            pod["spec"]["nodeName"] = json!(name);
            world.create(&POD, pod, at(0)).unwrap();
        }
    }
    for n in 0..2 {
        let mut pod = important(&format!("boss{n}"), "1", 9);
        pod["metadata"]["labels"] = json!({"app": "boss"});
        pod["spec"]["topologySpreadConstraints"] = json!([{"maxSkew": 1, "topologyKey": "host",
            "whenUnsatisfiable": "DoNotSchedule", "labelSelector": {"matchLabels": {"app": "boss"}}}]);
        world.create(&POD, pod, at(1)).unwrap();
    }
    world.settle(&Scheduler, at(2));
    let left: Vec<Value> = going(&world).iter().map(|name| place_of(&world, name)).collect();
    assert_eq!((left.len(), left.contains(&json!("a")), left.contains(&json!("b"))), (2, true, true));
}
