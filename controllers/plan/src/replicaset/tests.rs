//! Scenarios of ReplicaSets. Each runs with whole plans and with plans cut after every write.

use serde_json::json;
use strata_model::object::ObjectKey;
use strata_model::resource::builtin::{POD, REPLICA_SET, REPLICATION_CONTROLLER};

use super::*;
use crate::testing::{all, at, both_ways, key, make_ready, names, pod, replica_set, value};
use crate::world::World;

fn world(replicas: i32) -> World {
    let mut world = World::new();
    world.create(&REPLICA_SET, replica_set("web", replicas), at(0)).unwrap();
    world
}

fn set_key() -> Key {
    Key::new(&REPLICA_SET, key("web"))
}

fn owned(world: &World) -> Vec<Arc<Object>> {
    let set = view_get(world);
    all(world, &POD).into_iter().filter(|p| ownership::controls(&set, p)).collect()
}

fn view_get(world: &World) -> Arc<Object> {
    View::get(world, &REPLICA_SET.id, &key("web")).unwrap()
}

#[test]
fn pods_are_made_from_the_template_and_told() {
    both_ways(
        &ReplicaSets,
        at(1),
        || world(3),
        |world| {
            let pods = owned(world);
            assert_eq!(pods.len(), 3);
            for pod in &pods {
                assert!(pod.meta().name.starts_with("web-"));
                assert_eq!(pod.meta().label("app"), Some("web"));
                assert_eq!(pod.to_value().unwrap()["spec"]["containers"][0]["image"], "i:1");
                let reference = &pod.meta().owner_references[0];
                assert_eq!((reference.controller, reference.block_owner_deletion), (Some(true), Some(true)));
            }
            let status = value(world, &REPLICA_SET, &key("web"))["status"].take();
            assert_eq!(status, json!({"replicas": 3, "fullyLabeledReplicas": 3, "observedGeneration": 1}));
        },
    );
    let mut world = world(1);
    world.settle(&ReplicaSets, at(1));
    assert_eq!(world.told[0].message, format!("Created pod: {}", names(&world, &POD)[0]));
    assert_eq!(world.told[0].reason, "SuccessfulCreate");
}

#[test]
fn fields_we_do_not_know_reach_the_pod() {
    let mut world = world(1);
    let novel = json!({"spec": {"template": {"metadata": {"annotations": {"a": "b"}, "finalizers": ["x/y"]},
        "spec": {"novel": {"deep": [1]}}}}});
    world.patch(&REPLICA_SET, &key("web"), &novel).unwrap();
    world.settle(&ReplicaSets, at(1));
    let pod = all(&world, &POD)[0].to_value().unwrap();
    assert_eq!(pod["spec"]["novel"]["deep"], json!([1]));
    assert_eq!(pod["metadata"]["annotations"], json!({"a": "b"}));
    assert_eq!(pod["metadata"]["finalizers"], json!(["x/y"]));
}

#[test]
fn creations_of_a_turn_are_bounded() {
    let world = world(1_200);
    let plan = world.plan(&ReplicaSets, &set_key(), at(1));
    let creates = plan.actions.iter().filter(|a| matches!(a, Action::Create { .. })).count();
    assert_eq!(creates, BURST);
    both_ways(&ReplicaSets, at(1), || self::world(130), |world| assert_eq!(owned(world).len(), 130));
}

#[test]
fn finished_and_leaving_pods_are_replaced_and_not_touched() {
    both_ways(
        &ReplicaSets,
        at(60),
        || {
            let mut world = world(3);
            world.settle(&ReplicaSets, at(1));
            let pods: Vec<ObjectKey> = all(&world, &POD).iter().map(|p| p.key()).collect();
            world.patch(&POD, &pods[0], &json!({"status": {"phase": "Failed"}})).unwrap();
            make_ready(&mut world, &pods[1], at(2));
            world.delete(&POD, &pods[1], Some(30), at(3)).unwrap();
            world
        },
        |world| {
            assert_eq!(owned(world).len(), 5);
            let active = all(world, &POD).into_iter().map(PodRef::new).map(Result::unwrap);
            assert_eq!(active.filter(|p| pods::is_active(p.object(), p)).count(), 3);
            assert_eq!(value(world, &REPLICA_SET, &key("web"))["status"]["replicas"], 3);
        },
    );
}

#[test]
fn orphans_that_match_are_adopted_beside_their_other_owners() {
    both_ways(
        &ReplicaSets,
        at(1),
        || {
            let mut world = world(2);
            let other = json!([{"apiVersion": "v1", "kind": "ConfigMap", "name": "c", "uid": "u"}]);
            let mut orphan = pod("mine", json!({"app": "web"}));
            orphan["metadata"]["ownerReferences"] = other;
            world.create(&POD, orphan, at(0)).unwrap();
            world.create(&POD, pod("alien", json!({"app": "db"})), at(0)).unwrap();
            let mut elsewhere = pod("elsewhere", json!({"app": "web"}));
            elsewhere["metadata"]["namespace"] = json!("m");
            world.create(&POD, elsewhere, at(0)).unwrap();
            world
        },
        |world| {
            let pods = owned(world);
            assert_eq!(pods.len(), 2);
            let mine = pods.iter().find(|p| p.meta().name == "mine").unwrap();
            assert_eq!(mine.meta().owner_references.len(), 2);
            assert!(world.told.iter().filter(|t| t.reason == "SuccessfulCreate").count() <= 1);
        },
    );
}

#[test]
fn pods_that_stop_matching_are_released_and_replaced() {
    both_ways(
        &ReplicaSets,
        at(1),
        || {
            let mut world = world(2);
            world.settle(&ReplicaSets, at(1));
            let first = all(&world, &POD)[0].key();
            world.patch(&POD, &first, &json!({"metadata": {"labels": {"app": "debug"}}})).unwrap();
            world
        },
        |world| {
            assert_eq!(owned(world).len(), 2);
            let released: Vec<_> =
                all(world, &POD).into_iter().filter(|p| p.meta().label("app") == Some("debug")).collect();
            assert!(released[0].meta().owner_references.is_empty());
        },
    );
}

#[test]
fn pods_of_others_are_never_touched() {
    // Owners of another kind with this name, of this name with another uid, and of a set whose selector overlaps.
    let references = [
        json!({"apiVersion": "batch/v1", "kind": "Job", "name": "web", "uid": "j", "controller": true}),
        json!({"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": "web", "uid": "old", "controller": true}),
        json!({"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": "web2", "uid": "w", "controller": true}),
    ];
    for reference in references {
        both_ways(
            &ReplicaSets,
            at(1),
            || {
                let mut world = world(0);
                let mut theirs = pod("theirs", json!({"app": "web"}));
                theirs["metadata"]["ownerReferences"] = json!([reference]);
                world.create(&POD, theirs, at(0)).unwrap();
                world
            },
            |world| {
                let theirs = value(world, &POD, &key("theirs"));
                assert_eq!(theirs["metadata"]["ownerReferences"], json!([reference]));
            },
        );
    }
}

#[test]
fn two_sets_with_one_selector_share_orphans_without_a_fight() {
    both_ways(
        &ReplicaSets,
        at(1),
        || {
            let mut world = world(2);
            let mut twin = replica_set("web", 2);
            twin["metadata"]["name"] = json!("twin");
            world.create(&REPLICA_SET, twin, at(0)).unwrap();
            world.create(&POD, pod("a", json!({"app": "web"})), at(0)).unwrap();
            world
        },
        |world| assert_eq!(all(world, &POD).len(), 4),
    );
}

#[test]
fn a_set_being_deleted_only_reports() {
    let build = || {
        let mut world = world(3);
        let held = json!({"metadata": {"finalizers": ["foregroundDeletion"]}});
        world.patch(&REPLICA_SET, &key("web"), &held).unwrap();
        world.create(&POD, pod("orphan", json!({"app": "web"})), at(0)).unwrap();
        world.delete(&REPLICA_SET, &key("web"), None, at(1)).unwrap();
        world
    };
    both_ways(&ReplicaSets, at(2), build, |world| {
        assert!(owned(world).is_empty());
        assert_eq!(value(world, &REPLICA_SET, &key("web"))["status"]["observedGeneration"], 1);
    });
}

#[test]
fn adoption_asks_whether_the_set_still_lives() {
    let mut world = world(1);
    world.create(&POD, pod("orphan", json!({"app": "web"})), at(0)).unwrap();
    let plan = world.plan(&ReplicaSets, &set_key(), at(1));
    // The set was replaced by one of the same name after the plan was made.
    world.vanish(&REPLICA_SET, &key("web"));
    world.create(&REPLICA_SET, replica_set("web", 1), at(1)).unwrap();
    assert!(world.apply(&plan.actions[0], at(1)).is_err());
}

#[test]
fn the_least_useful_pods_go_first() {
    // (node, phase, ready for seconds, cost, restarts): each one goes before all that follow it.
    let order: [(&str, &str, Option<i64>, i32, i32); 8] = [
        ("", "Pending", None, 0, 0),
        ("a", "Pending", None, 0, 0),
        ("a", "Unknown", None, 0, 0),
        ("a", "Running", None, 0, 0),
        ("a", "Running", Some(3_000), -5, 0),
        ("a", "Running", Some(5), 0, 0),
        ("a", "Running", Some(3_000), 0, 4),
        ("b", "Running", Some(5), 0, 0),
    ];
    let build = |world: &mut World| {
        for (i, (node, phase, ready, cost, restarts)) in order.iter().enumerate() {
            // Names run against the order, so that they cannot make it.
            let mut pod = pod(&format!("p{}", 9 - i), json!({"app": "web"}));
            pod["metadata"]["annotations"] = json!({victims::DELETION_COST: cost.to_string()});
            if !node.is_empty() {
                pod["spec"]["nodeName"] = json!(node);
            }
            let mut conditions = Vec::new();
            if let Some(seconds) = ready {
                let since = strata_model::condition::rfc3339(at(10_000 - seconds));
                conditions.push(json!({"type": "Ready", "status": "True", "lastTransitionTime": since}));
            }
            pod["status"] = json!({"phase": phase, "conditions": conditions,
                "containerStatuses": [{"name": "c", "image": "i", "imageID": "", "ready": ready.is_some(),
                    "restartCount": restarts}]});
            world.create(&POD, pod, at(0)).unwrap();
        }
    };
    for keep in 0..=order.len() {
        let mut world = world(i32::try_from(order.len()).unwrap());
        build(&mut world);
        world.settle(&ReplicaSets, at(10_000));
        world.patch(&REPLICA_SET, &key("web"), &json!({"spec": {"replicas": keep}})).unwrap();
        let plan = world.plan(&ReplicaSets, &set_key(), at(10_000));
        let gone: Vec<&str> = plan
            .actions
            .iter()
            .filter_map(|a| match a {
                Action::Delete { target, .. } => Some(target.key.name.as_str()),
                _ => None,
            })
            .collect();
        let expected: Vec<String> = (0..order.len() - keep).map(|i| format!("p{}", 9 - i)).collect();
        assert_eq!(gone, expected, "keeping {keep}");
    }
}

#[test]
fn availability_by_time_is_looked_at_in_time() {
    let build = || {
        let mut world = world(1);
        world.patch(&REPLICA_SET, &key("web"), &json!({"spec": {"minReadySeconds": 10}})).unwrap();
        world.settle(&ReplicaSets, at(0));
        let pod = all(&world, &POD)[0].key();
        make_ready(&mut world, &pod, at(5));
        world
    };
    let mut world = build();
    world.settle(&ReplicaSets, at(6));
    let status = value(&world, &REPLICA_SET, &key("web"))["status"].take();
    assert_eq!((&status["readyReplicas"], &status["availableReplicas"]), (&json!(1), &Value::Null));
    assert_eq!(world.plan(&ReplicaSets, &set_key(), at(6)).next, crate::controller::Next::At(at(15)));
    both_ways(&ReplicaSets, at(15), build, |world| {
        assert_eq!(value(world, &REPLICA_SET, &key("web"))["status"]["availableReplicas"], 1);
    });
}

#[test]
fn a_pod_leads_to_its_set_or_to_those_that_would_take_it() {
    let mut world = world(0);
    let orphan = world.create(&POD, pod("o", json!({"app": "web"})), at(0)).unwrap();
    let alien = world.create(&POD, pod("x", json!({"app": "db"})), at(0)).unwrap();
    assert_eq!(sets_of_pod(&sort::REPLICA_SET, &world, &orphan), vec![set_key()]);
    assert!(sets_of_pod(&sort::REPLICA_SET, &world, &alien).is_empty());
}

#[test]
fn what_the_server_refuses_is_told_until_it_is_made() {
    let mut world = world(2);
    let root = set_key();
    let observed = ReplicaSets.observe(&world, &root).unwrap().unwrap();
    let refusal = Refusal { attempt: Attempt::Create, message: "exceeded quota".to_owned() };
    for action in ReplicaSets.refused(&observed, &refusal, at(1)).actions {
        world.apply(&action, at(1)).unwrap();
    }
    assert_eq!(
        (world.told[0].reason, world.told[0].message.as_str()),
        ("FailedCreate", "Error creating: exceeded quota")
    );
    let condition = &value(&world, &REPLICA_SET, &key("web"))["status"]["conditions"][0];
    assert_eq!(
        (&condition["type"], &condition["status"], &condition["reason"]),
        (&json!("ReplicaFailure"), &json!("True"), &json!("FailedCreate"))
    );
    // Told once: the same again changes nothing.
    let observed = ReplicaSets.observe(&world, &root).unwrap().unwrap();
    assert!(ReplicaSets.refused(&observed, &refusal, at(2)).actions.iter().all(|a| !a.is_write()));
    world.settle(&ReplicaSets, at(3));
    assert!(value(&world, &REPLICA_SET, &key("web"))["status"]["conditions"].is_null());
}

#[test]
fn replication_controllers_are_held_the_same_way() {
    let build = || {
        let mut world = World::new();
        let set = json!({"metadata": {"name": "old", "namespace": "n"}, "spec": {"replicas": 2,
            "selector": {"app": "old"}, "template": crate::testing::template("old", "i:1")}});
        world.create(&REPLICATION_CONTROLLER, set, at(0)).unwrap();
        world.create(&POD, pod("mine", json!({"app": "old"})), at(0)).unwrap();
        world
    };
    both_ways(&ReplicationControllers, at(1), build, |world| {
        let owners: Vec<String> =
            all(world, &POD).iter().map(|p| p.meta().controller().unwrap().kind.clone()).collect();
        assert_eq!(owners, ["ReplicationController", "ReplicationController"]);
        let status = value(world, &REPLICATION_CONTROLLER, &key("old"))["status"].take();
        assert_eq!((&status["replicas"], &status["fullyLabeledReplicas"]), (&json!(2), &json!(2)));
    });
    both_ways(
        &ReplicationControllers,
        at(2),
        || {
            let mut world = build();
            world.settle(&ReplicationControllers, at(1));
            world.patch(&REPLICATION_CONTROLLER, &key("old"), &json!({"spec": {"replicas": 1}})).unwrap();
            world
        },
        |world| assert_eq!(all(world, &POD).len(), 1),
    );
}
