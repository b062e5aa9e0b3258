//! Scenarios of the scheduler, with whole plans and with plans cut after every write.

mod company;
mod preemption;

use serde_json::Value;
use strata_model::resource::builtin::{NODE, POD};

use super::*;
use crate::testing::{all, at, both_ways, key, pod, value};
use crate::world::World;

fn node(name: &str, cpu: &str) -> Value {
    json!({"metadata": {"name": name}, "status": {"allocatable": {"cpu": cpu, "memory": "8Gi", "pods": "110"},
        "conditions": [{"type": "Ready", "status": "True"}]}})
}

fn asking(name: &str, cpu: &str) -> Value {
    let mut pod = pod(name, json!({}));
    pod["spec"]["containers"][0]["resources"] = json!({"requests": {"cpu": cpu}});
    pod
}

fn place_of(world: &World, name: &str) -> Value {
    value(world, &POD, &key(name))["spec"]["nodeName"].take()
}

#[test]
fn pods_get_nodes_and_no_node_too_much() {
    let build = || {
        let mut world = World::new();
        world.create(&NODE, node("a", "2"), at(0)).unwrap();
        world.create(&NODE, node("b", "1"), at(0)).unwrap();
        for i in 0..8 {
            world.create(&POD, asking(&format!("p{i}"), "500m"), at(0)).unwrap();
        }
        world
    };
    both_ways(&Scheduler, at(1), build, |world| {
        let on = |node: &str| (0..8).filter(|i| place_of(world, &format!("p{i}")) == node).count();
        assert_eq!((on("a"), on("b")), (4, 2));
        let left: Vec<_> = (0..8).filter(|i| place_of(world, &format!("p{i}")).is_null()).collect();
        let condition = value(world, &POD, &key(&format!("p{}", left[0])))["status"]["conditions"][0].take();
        assert_eq!(condition["reason"], "Unschedulable");
        assert_eq!(condition["message"], "0/2 nodes are available: 2 Insufficient cpu.");
    });
    let mut world = build();
    world.settle(&Scheduler, at(1));
    let failed = world.told.iter().filter(|t| t.reason == "FailedScheduling").count();
    assert_eq!(failed, 2, "each is told once");
    assert!(world.told.iter().any(|t| t.message == "Successfully assigned n/p0 to a"));
}

#[test]
fn a_place_given_up_is_given_on() {
    both_ways(
        &Scheduler,
        at(5),
        || {
            let mut world = World::new();
            world.create(&NODE, node("a", "1"), at(0)).unwrap();
            world.create(&POD, asking("one", "1"), at(0)).unwrap();
            world.create(&POD, asking("two", "1"), at(1)).unwrap();
            world.settle(&Scheduler, at(2));
            assert_eq!(place_of(&world, "one"), "a");
            assert_eq!(place_of(&world, "two"), Value::Null);
            let done = world.patch(&POD, &key("one"), &json!({"status": {"phase": "Succeeded"}})).unwrap();
            assert_eq!(pod_matters(&world, &done), [queue()]);
            world
        },
        |world| assert_eq!(place_of(world, "two"), "a"),
    );
}

#[test]
fn others_pods_are_left_alone() {
    both_ways(
        &Scheduler,
        at(1),
        || {
            let mut world = World::new();
            world.create(&NODE, node("a", "1"), at(0)).unwrap();
            for (name, patch) in [
                ("other", json!({"spec": {"schedulerName": "mine"}})),
                ("gated", json!({"spec": {"schedulingGates": [{"name": "g"}]}})),
                ("ended", json!({"status": {"phase": "Failed"}})),
                ("leaving", json!({"metadata": {"finalizers": ["x/y"]}})),
            ] {
                world.create(&POD, asking(name, "1m"), at(0)).unwrap();
                world.patch(&POD, &key(name), &patch).unwrap();
            }
            world.delete(&POD, &key("leaving"), None, at(0)).unwrap();
            world
        },
        |world| {
            assert!(all(world, &POD).iter().all(|p| p.to_value().unwrap()["spec"]["nodeName"].is_null()));
            assert!(world.told.is_empty());
        },
    );
}

#[test]
fn important_pods_come_first_and_other_conditions_stay() {
    both_ways(
        &Scheduler,
        at(1),
        || {
            let mut world = World::new();
            world.create(&NODE, node("a", "1"), at(0)).unwrap();
            let mut common = asking("common", "1");
            common["status"] = json!({"conditions": [{"type": "x/y", "status": "True", "novel": 1}]});
            world.create(&POD, common, at(0)).unwrap();
            let mut vital = asking("vital", "1");
            vital["spec"]["priority"] = json!(1000);
            world.create(&POD, vital, at(0)).unwrap();
            world
        },
        |world| {
            assert_eq!(place_of(world, "vital"), "a");
            let conditions = value(world, &POD, &key("common"))["status"]["conditions"].take();
            assert_eq!(conditions[0], json!({"type": "x/y", "status": "True", "novel": 1}));
            assert_eq!(conditions[1]["type"], "PodScheduled");
        },
    );
}

#[test]
fn a_turn_is_bounded_and_pods_of_one_owner_fail_together() {
    let mut world = World::new();
    let mut big = node("a", "64");
    big["status"]["allocatable"]["pods"] = json!("700");
    world.create(&NODE, big, at(0)).unwrap();
    let owner =
        json!([{"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": "r", "uid": "r", "controller": true}]);
    for i in 0..720 {
        let mut pod = asking(&format!("p{i:03}"), "1m");
        pod["metadata"]["ownerReferences"] = owner.clone();
        world.create(&POD, pod, at(0)).unwrap();
    }
    let plan = world.plan(&Scheduler, &queue(), at(1));
    assert_eq!(plan.actions.iter().filter(|a| a.is_write()).count(), BATCH);
    assert_eq!(plan.next, crate::controller::Next::At(at(1)), "the rest follows at once");
    world.settle(&Scheduler, at(1));
    let bound =
        all(&world, &POD).iter().filter(|p| !pods::node_name(p.typed::<Pod>().unwrap()).is_empty()).count();
    assert_eq!(bound, 700);
    let said = value(&world, &POD, &key("p719"))["status"]["conditions"][0]["message"].take();
    assert_eq!(said, "0/1 nodes are available: 1 Too many pods.");
}

#[test]
fn a_running_pod_does_not_wake_the_scheduler() {
    let mut world = World::new();
    world.create(&NODE, node("a", "1"), at(0)).unwrap();
    world.create(&POD, asking("one", "1m"), at(0)).unwrap();
    world.settle(&Scheduler, at(1));
    let running = world.patch(&POD, &key("one"), &json!({"status": {"phase": "Running"}})).unwrap();
    assert!(pod_matters(&world, &running).is_empty());
    let gone = world.vanish(&POD, &key("one")).unwrap();
    assert_eq!(pod_matters(&world, &gone), [queue()]);
}

#[test]
fn a_node_that_comes_later_takes_what_waited() {
    both_ways(
        &Scheduler,
        at(5),
        || {
            let mut world = World::new();
            world.create(&POD, asking("one", "1"), at(0)).unwrap();
            world.settle(&Scheduler, at(1));
            assert_eq!(world.told[0].message, "no nodes available to schedule pods");
            world.create(&NODE, node("a", "1"), at(2)).unwrap();
            world
        },
        |world| {
            assert_eq!(place_of(world, "one"), "a");
            assert_eq!(value(world, &POD, &key("one"))["status"]["conditions"][0]["status"], "True");
        },
    );
}
