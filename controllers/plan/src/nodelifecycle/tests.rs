//! Scenarios of nodes that fall silent, come back, or go. Each runs with whole plans and with plans cut after every
//! write.

use serde_json::{Value, json};
use strata_model::condition::rfc3339;
use strata_model::resource::builtin::{LEASE, NODE, POD};

use super::*;
use crate::testing::{all, at, both_ways, key, make_ready, names, pod, value};
use crate::world::World;

fn lifecycle() -> NodeLifecycle {
    NodeLifecycle { grace: GRACE, since: at(-1000) }
}

fn place(name: &str) -> ObjectKey {
    ObjectKey::new("", name)
}

/// A ready node of a zone whose lease was renewed at some second.
fn node(world: &mut World, name: &str, zone: &str, renewed: i64) {
    let node = json!({"metadata": {"name": name, "labels": {"topology.kubernetes.io/zone": zone}},
        "status": {"conditions": [{"type": "Ready", "status": "True", "reason": "KubeletReady",
            "lastTransitionTime": rfc3339(at(-100))}]}});
    world.create(&NODE, node, at(-100)).unwrap();
    let lease = json!({"metadata": {"name": name, "namespace": LEASES},
        "spec": {"holderIdentity": name, "renewTime": rfc3339(at(renewed))}});
    world.create(&LEASE, lease, at(-100)).unwrap();
}

fn renew(world: &mut World, name: &str, second: i64) {
    let patch = json!({"spec": {"renewTime": rfc3339(at(second))}});
    world.patch(&LEASE, &ObjectKey::new(LEASES, name), &patch).unwrap();
}

fn bound(world: &mut World, name: &str, node: &str, more: Value) {
    let mut made = pod(name, json!({"app": "web"}));
    made["spec"]["nodeName"] = json!(node);
    strata_model::merge::apply(&mut made, &more);
    world.create(&POD, made, at(-50)).unwrap();
}

fn ready(world: &World, name: &str) -> String {
    let node = value(world, &NODE, &place(name));
    let conditions = node["status"]["conditions"].as_array().unwrap().clone();
    conditions.iter().find(|c| c["type"] == "Ready").unwrap()["status"].as_str().unwrap().to_owned()
}

fn taints(world: &World, name: &str) -> Vec<String> {
    let node = value(world, &NODE, &place(name));
    let taints = node["spec"]["taints"].as_array().cloned().unwrap_or_default();
    let text = |v: &Value| v.as_str().unwrap().trim_start_matches("node.kubernetes.io/").to_owned();
    taints.iter().map(|t| format!("{}:{}", text(&t["key"]), text(&t["effect"]))).collect()
}

fn two_nodes() -> World {
    let mut world = World::new();
    node(&mut world, "a", "z", 0);
    node(&mut world, "b", "z", 35);
    world
}

#[test]
fn silence_makes_a_node_unknown_and_tainted() {
    both_ways(&lifecycle(), at(40), two_nodes, |world| {
        assert_eq!((ready(world, "a").as_str(), ready(world, "b").as_str()), ("Unknown", "True"));
        assert_eq!(taints(world, "a"), ["unreachable:NoSchedule", "unreachable:NoExecute"]);
        assert!(taints(world, "b").is_empty());
        let node = value(world, &NODE, &place("a"));
        let pressure = node["status"]["conditions"].as_array().unwrap().iter();
        assert_eq!(pressure.filter(|c| c["status"] == "Unknown").count(), 4);
        assert!(world.told.iter().filter(|t| t.reason == "NodeNotReady").count() <= 1);
    });
    let mut told = two_nodes();
    told.settle(&lifecycle(), at(40));
    assert_eq!((told.told.len(), told.told[0].reason), (1, "NodeNotReady"));
    let mut early = two_nodes();
    let plan = early.plan(&lifecycle(), &all_nodes(), at(39));
    assert!(plan.is_settled());
    assert_eq!(plan.next, crate::controller::Next::At(at(40)));
    // What was before anybody listened is no silence.
    let late = NodeLifecycle { grace: GRACE, since: at(35) };
    assert!(early.plan(&late, &all_nodes(), at(60)).is_settled());
    // A node whose agent speaks without a lease is heard too, and one without any word is given as long.
    early.vanish(&LEASE, &ObjectKey::new(LEASES, "a"));
    let spoke = json!({"status": {"conditions": [{"type": "Ready", "status": "True", "lastTransitionTime": rfc3339(at(30))}]}});
    early.patch(&NODE, &place("a"), &spoke).unwrap();
    assert!(early.plan(&lifecycle(), &all_nodes(), at(60)).is_settled());
    early.create(&NODE, json!({"metadata": {"name": "c"}}), at(61)).unwrap();
    renew(&mut early, "b", 100);
    early.settle(&lifecycle(), at(69));
    assert_eq!(taints(&early, "c"), ["not-ready:NoSchedule", "not-ready:NoExecute"]);
    early.settle(&lifecycle(), at(101));
    assert_eq!(ready(&early, "c"), "Unknown");
}

#[test]
fn a_node_that_comes_back_heals() {
    both_ways(
        &lifecycle(),
        at(60),
        || {
            let mut world = two_nodes();
            world
                .patch(
                    &NODE,
                    &place("a"),
                    &json!({"spec": {"taints": [{"key": "mine", "effect": "NoSchedule"}]}}),
                )
                .unwrap();
            world.settle(&lifecycle(), at(41));
            assert_eq!(taints(&world, "a").len(), 3);
            renew(&mut world, "a", 60);
            renew(&mut world, "b", 60);
            let back = json!({"status": {"conditions": [{"type": "Ready", "status": "True", "lastTransitionTime": rfc3339(at(60))}]}});
            world.patch(&NODE, &place("a"), &back).unwrap();
            world
        },
        |world| assert_eq!(taints(world, "a"), ["mine:NoSchedule"]),
    );
}

#[test]
fn conditions_and_cordons_become_taints() {
    both_ways(
        &lifecycle(),
        at(10),
        || {
            let mut world = two_nodes();
            let patch = json!({"spec": {"unschedulable": true}, "status": {"conditions": [
                {"type": "DiskPressure", "status": "True"}, {"type": "Ready", "status": "True"}]}});
            world.patch(&NODE, &place("a"), &patch).unwrap();
            let driven = json!({"spec": {"taints": [{"key": "mine", "effect": "NoExecute"}]}});
            world.patch(&NODE, &place("b"), &driven).unwrap();
            world
        },
        |world| {
            assert_eq!(taints(world, "a"), ["unschedulable:NoSchedule", "disk-pressure:NoSchedule"]);
            assert_eq!(value(world, &NODE, &place("b"))["spec"]["taints"][0]["timeAdded"], rfc3339(at(10)));
        },
    );
}

#[test]
fn nodes_of_a_zone_are_given_up_one_after_the_other_and_not_at_all_when_all_are_silent() {
    let mut world = World::new();
    for name in ["a", "b", "c", "d", "e"] {
        node(&mut world, name, "z", if name < "c" { 0 } else { 100 });
    }
    let given_up = |world: &World| {
        let all = ["a", "b", "c", "d", "e"];
        all.iter().filter(|n| taints(world, n).iter().any(|t| t.ends_with("NoExecute"))).count()
    };
    world.settle(&lifecycle(), at(41));
    assert_eq!(given_up(&world), 1);
    let plan = world.plan(&lifecycle(), &all_nodes(), at(45));
    assert_eq!(plan.next, crate::controller::Next::At(at(51)));
    world.settle(&lifecycle(), at(51));
    assert_eq!(given_up(&world), 2);
    // All are silent: it is we who are cut off, and what was given up is taken back.
    world.settle(&lifecycle(), at(141));
    assert_eq!(["a", "c", "e"].map(|n| ready(&world, n)), ["Unknown", "Unknown", "Unknown"]);
    assert_eq!(given_up(&world), 0);
    world.settle(&lifecycle(), at(400));
    assert_eq!(given_up(&world), 0);
}

fn lost_world(tolerate: Value) -> World {
    let mut world = two_nodes();
    bound(&mut world, "web", "a", json!({"spec": {"tolerations": tolerate}}));
    make_ready_on(&mut world, "web", "a");
    world.settle(&lifecycle(), at(40));
    world
}

fn make_ready_on(world: &mut World, name: &str, node: &str) {
    make_ready(world, &key(name), at(-40));
    world.patch(&POD, &key(name), &json!({"spec": {"nodeName": node}})).unwrap();
}

#[test]
fn pods_of_lost_nodes_are_not_ready_and_go_when_their_patience_ends() {
    let unreachable = |more: Value| {
        let mut t =
            json!({"key": "node.kubernetes.io/unreachable", "operator": "Exists", "effect": "NoExecute"});
        strata_model::merge::apply(&mut t, &more);
        json!([t])
    };
    let cases = [
        (json!(null), Some(300)),
        (unreachable(json!({"tolerationSeconds": 5})), Some(5)),
        (unreachable(json!({"tolerationSeconds": 0})), Some(0)),
        (unreachable(json!({})), None),
    ];
    for (tolerations, seconds) in cases {
        let mut world = lost_world(tolerations.clone());
        renew(&mut world, "b", 10_000);
        let gone = |w: &World| value(w, &POD, &key("web"))["metadata"]["deletionTimestamp"].is_string();
        if let Some(seconds) = seconds {
            if seconds > 0 {
                let pod = value(&world, &POD, &key("web"));
                let ready = pod["status"]["conditions"]
                    .as_array()
                    .unwrap()
                    .iter()
                    .find(|c| c["type"] == "Ready")
                    .unwrap()
                    .clone();
                assert_eq!(ready["status"], "False", "{tolerations}");
                world.settle(&lifecycle(), at(40 + seconds - 1));
                assert!(!gone(&world), "{tolerations}");
            }
            world.settle(&lifecycle(), at(40 + seconds));
            assert!(gone(&world), "{tolerations}");
            let pod = value(&world, &POD, &key("web"));
            let why = pod["status"]["conditions"]
                .as_array()
                .unwrap()
                .iter()
                .find(|c| c["type"] == "DisruptionTarget")
                .unwrap()
                .clone();
            assert_eq!(why["reason"], "DeletionByTaintManager");
            // Its processes may run: it is not removed by force.
            world.settle(&lifecycle(), at(9_000));
            assert_eq!(names(&world, &POD), ["web"]);
        } else {
            world.settle(&lifecycle(), at(9_000));
            assert!(!gone(&world));
        }
    }
}

#[test]
fn a_taint_of_a_person_drives_off_whom_it_must() {
    both_ways(
        &lifecycle(),
        at(10),
        || {
            let mut world = two_nodes();
            bound(&mut world, "goes", "a", json!({}));
            bound(&mut world, "done", "a", json!({"status": {"phase": "Succeeded"}}));
            bound(&mut world, "stays", "a", json!({"spec": {"tolerations": [{"operator": "Exists"}]}}));
            bound(&mut world, "elsewhere", "b", json!({}));
            let taint = json!({"spec": {"taints": [{"key": "mine", "effect": "NoExecute"}]}});
            world.patch(&NODE, &place("a"), &taint).unwrap();
            world
        },
        |world| {
            let leaving: Vec<String> = all(world, &POD)
                .iter()
                .filter(|p| p.meta().is_deleting())
                .map(|p| p.meta().name.clone())
                .collect();
            assert_eq!(leaving, ["goes"]);
        },
    );
}

#[test]
fn pods_of_nodes_that_are_gone_end_by_force_once_they_had_their_time() {
    let build = || {
        let mut world = two_nodes();
        bound(&mut world, "runs", "a", json!({}));
        bound(&mut world, "leaves", "a", json!({"metadata": {"finalizers": ["x/y"]}}));
        bound(&mut world, "done", "a", json!({"status": {"phase": "Succeeded"}}));
        world.delete(&POD, &key("leaves"), Some(30), at(0)).unwrap();
        world.vanish(&NODE, &place("a"));
        world.settle(&lifecycle(), at(5));
        assert_eq!(names(&world, &POD), ["leaves", "runs"]);
        world
    };
    both_ways(&lifecycle(), at(34), build, |world| {
        // The one held by a finalizer has failed, for whoever holds it to count.
        assert_eq!(value(world, &POD, &key("leaves"))["status"]["phase"], "Failed");
        assert_eq!(names(world, &POD), ["leaves", "runs"]);
    });
    both_ways(&lifecycle(), at(35), build, |world| assert_eq!(names(world, &POD), ["leaves"]));
    // A person says that the machine is off.
    both_ways(
        &lifecycle(),
        at(60),
        || {
            let mut world = lost_world(json!(null));
            world.delete(&POD, &key("web"), None, at(50)).unwrap();
            world.settle(&lifecycle(), at(59));
            assert_eq!(names(&world, &POD), ["web"]);
            let mut taints = value(&world, &NODE, &place("a"))["spec"]["taints"].as_array().unwrap().clone();
            taints.push(json!({"key": OUT, "effect": "NoExecute", "value": "nodeshutdown"}));
            world.patch(&NODE, &place("a"), &json!({"spec": {"taints": taints}})).unwrap();
            world
        },
        |world| assert!(names(world, &POD).is_empty()),
    );
}

const OUT: &str = super::taints::OUT_OF_SERVICE;

#[test]
fn a_grace_shorter_than_the_rhythm_of_signs_gives_nobody_up_between_two_of_them() {
    let hasty = NodeLifecycle { grace: std::time::Duration::from_secs(2), since: at(-1000) };
    let mut world = World::new();
    node(&mut world, "a", "z", 0);
    let lease = ObjectKey::new(LEASES, "a");
    world.patch(&LEASE, &lease, &json!({"spec": {"leaseDurationSeconds": 40}})).unwrap();
    for second in 0..=60 {
        if second % 10 == 0 {
            renew(&mut world, "a", second);
        }
        assert!(world.plan(&hasty, &all_nodes(), at(second)).is_settled(), "at {second}");
    }
    world.settle(&hasty, at(75));
    assert_eq!(ready(&world, "a"), "Unknown");
}
