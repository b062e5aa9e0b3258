//! Scenarios of StatefulSets. Each runs with whole plans and with plans cut after every write.

use serde_json::json;
use strata_model::resource::builtin::{PERSISTENT_VOLUME_CLAIM, POD, STATEFUL_SET};

use super::*;
use crate::testing::{all, at, both_ways, image_of, key, make_ready, names, pod, template, value};
use crate::world::World;

fn world(replicas: i32, more: Value) -> World {
    let mut world = World::new();
    let mut set = json!({"metadata": {"name": "web", "namespace": "n"}, "spec": {"replicas": replicas,
        "serviceName": "svc", "selector": {"matchLabels": {"app": "web"}}, "template": template("web", "i:1")}});
    strata_model::merge::apply(&mut set["spec"], &more);
    world.create(&STATEFUL_SET, set, at(0)).unwrap();
    world
}

fn change(world: &mut World, spec: Value) {
    world.patch(&STATEFUL_SET, &key("web"), &json!({"spec": spec})).unwrap();
}

fn image(world: &mut World, image: &str) {
    change(world, json!({"template": template("web", image)}));
}

fn status(world: &World) -> Value {
    value(world, &STATEFUL_SET, &key("web"))["status"].take()
}

/// Image of each pod, by name.
fn images(world: &World) -> Vec<(String, String)> {
    let image =
        |o: &Object| o.to_value().unwrap()["spec"]["containers"][0]["image"].as_str().unwrap().to_owned();
    all(world, &POD).iter().map(|o| (o.meta().name.clone(), image(o))).collect()
}

/// Nodes that make pods ready whose image does not end in `bad`, and let go those on their way out. Answers whether
/// anything moved.
fn nodes(world: &mut World, now: Timestamp) -> bool {
    let mut moved = false;
    for object in all(world, &POD) {
        let typed = PodRef::new(object).unwrap();
        let place = typed.object().key();
        if typed.object().meta().is_deleting() {
            world.vanish(&POD, &place);
            moved = true;
        } else if !Observed::is_ready(&typed) && !image_of(typed.object()).ends_with("bad") {
            make_ready(world, &place, now);
            moved = true;
        }
    }
    moved
}

/// Lets controller and nodes work until neither has anything to do.
fn come_to_rest(world: &mut World, now: Timestamp) {
    for _ in 0..100 {
        world.settle(&StatefulSets, now);
        if !nodes(world, now) {
            return;
        }
    }
    panic!("never at rest: {:#?}", all(world, &POD));
}

#[test]
fn pods_come_in_order_with_names_of_their_own() {
    both_ways(
        &StatefulSets,
        at(1),
        || world(3, json!({"ordinals": {"start": 4}})),
        |world| {
            assert_eq!(names(world, &POD), ["web-4"]);
            let pod = value(world, &POD, &key("web-4"));
            let labels = &pod["metadata"]["labels"];
            assert_eq!(
                (&labels[POD_NAME], &labels[POD_INDEX], &labels["app"]),
                (&json!("web-4"), &json!("4"), &json!("web"))
            );
            assert_eq!(
                (&pod["spec"]["hostname"], &pod["spec"]["subdomain"]),
                (&json!("web-4"), &json!("svc"))
            );
            assert_eq!(labels[REVISION], status(world)["updateRevision"]);
        },
    );
    let mut world = world(3, json!({}));
    world.settle(&StatefulSets, at(1));
    assert_eq!(world.told[0].message, "create Pod web-0 in StatefulSet web successful");
    come_to_rest(&mut world, at(2));
    assert_eq!(names(&world, &POD), ["web-0", "web-1", "web-2"]);
    let revision = status(&world)["updateRevision"].clone();
    assert_eq!(
        status(&world),
        json!({"observedGeneration": 1, "replicas": 3, "readyReplicas": 3, "availableReplicas": 3, "currentReplicas": 3,
            "updatedReplicas": 3, "currentRevision": revision, "updateRevision": revision})
    );
}

#[test]
fn in_parallel_nobody_waits() {
    let parallel = json!({"podManagementPolicy": "Parallel"});
    both_ways(&StatefulSets, at(1), || world(3, parallel.clone()), |w| assert_eq!(names(w, &POD).len(), 3));
    both_ways(
        &StatefulSets,
        at(1),
        || {
            let mut world = world(3, parallel.clone());
            come_to_rest(&mut world, at(1));
            change(&mut world, json!({"replicas": 1}));
            world
        },
        |world| {
            let leaving: Vec<bool> = all(world, &POD).iter().map(|p| p.meta().is_deleting()).collect();
            assert_eq!(leaving, [false, true, true]);
        },
    );
}

#[test]
fn the_highest_goes_first_and_alone() {
    both_ways(
        &StatefulSets,
        at(2),
        || {
            let mut world = world(3, json!({}));
            come_to_rest(&mut world, at(1));
            change(&mut world, json!({"replicas": 1}));
            world
        },
        |world| {
            let leaving: Vec<bool> = all(world, &POD).iter().map(|p| p.meta().is_deleting()).collect();
            assert_eq!(leaving, [false, false, true]);
        },
    );
}

#[test]
fn a_pod_must_be_ready_for_long_enough() {
    let mut world = world(2, json!({"minReadySeconds": 10}));
    world.settle(&StatefulSets, at(1));
    make_ready(&mut world, &key("web-0"), at(2));
    world.settle(&StatefulSets, at(11));
    assert_eq!(
        (names(&world, &POD), status(&world)["readyReplicas"].clone()),
        (vec!["web-0".to_owned()], json!(1))
    );
    let plan = world.plan(&StatefulSets, &Key::new(&STATEFUL_SET, key("web")), at(11));
    assert_eq!(plan.next, crate::controller::Next::At(at(12)));
    world.settle(&StatefulSets, at(12));
    assert_eq!(names(&world, &POD), ["web-0", "web-1"]);
}

#[test]
fn an_update_goes_from_the_top_one_at_a_time_down_to_the_partition() {
    let mut world =
        world(4, json!({"updateStrategy": {"type": "RollingUpdate", "rollingUpdate": {"partition": 2}}}));
    come_to_rest(&mut world, at(1));
    let first = status(&world)["currentRevision"].clone();
    image(&mut world, "i:2");
    world.settle(&StatefulSets, at(2));
    let leaving: Vec<bool> = all(&world, &POD).iter().map(|p| p.meta().is_deleting()).collect();
    assert_eq!(leaving, [false, false, false, true]);
    come_to_rest(&mut world, at(3));
    let seen: Vec<String> = images(&world).into_iter().map(|(_, image)| image).collect();
    assert_eq!(seen, ["i:1", "i:1", "i:2", "i:2"]);
    let now = status(&world);
    assert_eq!(
        (&now["currentRevision"], &now["currentReplicas"], &now["updatedReplicas"]),
        (&first, &json!(2), &json!(2))
    );
    // Below the partition a pod that dies comes back as it was.
    world.vanish(&POD, &key("web-0"));
    come_to_rest(&mut world, at(4));
    assert_eq!(images(&world)[0].1, "i:1");
    change(&mut world, json!({"updateStrategy": {"rollingUpdate": {"partition": 0}}}));
    come_to_rest(&mut world, at(5));
    assert!(images(&world).iter().all(|(_, image)| image == "i:2"));
    assert_ne!(status(&world)["currentRevision"], first);
    assert_eq!(status(&world)["currentRevision"], status(&world)["updateRevision"]);
}

#[test]
fn as_many_as_may_be_unavailable_are_replaced_at_once() {
    let mut world = world(
        4,
        json!({"podManagementPolicy": "Parallel", "updateStrategy": {"rollingUpdate": {"maxUnavailable": 2}}}),
    );
    come_to_rest(&mut world, at(1));
    image(&mut world, "i:2");
    world.settle(&StatefulSets, at(2));
    assert_eq!(all(&world, &POD).iter().filter(|p| p.meta().is_deleting()).count(), 2);
    come_to_rest(&mut world, at(3));
    assert!(images(&world).iter().all(|(_, image)| image == "i:2"));
}

#[test]
fn a_rollout_that_a_bad_template_broke_heals_by_a_good_one() {
    for policy in ["OrderedReady", "Parallel"] {
        let mut world = world(3, json!({"podManagementPolicy": policy}));
        come_to_rest(&mut world, at(1));
        image(&mut world, "i:bad");
        come_to_rest(&mut world, at(2));
        let bad = images(&world).iter().filter(|(_, image)| image == "i:bad").count();
        assert_eq!(bad, 1, "{policy}: one pod is broken, the others are kept");
        image(&mut world, "i:2");
        come_to_rest(&mut world, at(3));
        assert!(images(&world).iter().all(|(_, image)| image == "i:2"), "{policy}: {:?}", images(&world));
    }
    // The same where it was broken from the start, and by going back.
    let mut world = world(2, json!({}));
    image(&mut world, "i:bad");
    come_to_rest(&mut world, at(1));
    assert_eq!(names(&world, &POD), ["web-0"]);
    image(&mut world, "i:1");
    come_to_rest(&mut world, at(2));
    assert_eq!(images(&world).iter().filter(|(_, image)| image == "i:1").count(), 2);
}

#[test]
fn on_delete_pods_are_replaced_by_those_who_delete_them() {
    let mut world = world(2, json!({"updateStrategy": {"type": "OnDelete"}}));
    come_to_rest(&mut world, at(1));
    image(&mut world, "i:2");
    come_to_rest(&mut world, at(2));
    assert!(images(&world).iter().all(|(_, image)| image == "i:1"));
    world.vanish(&POD, &key("web-0"));
    come_to_rest(&mut world, at(3));
    assert_eq!(images(&world)[0].1, "i:2");
}

#[test]
fn ended_pods_are_made_anew() {
    both_ways(
        &StatefulSets,
        at(5),
        || {
            let mut world = world(1, json!({}));
            come_to_rest(&mut world, at(1));
            world
                .patch(
                    &POD,
                    &key("web-0"),
                    &json!({"spec": {"nodeName": null}, "status": {"phase": "Failed"}}),
                )
                .unwrap();
            world
        },
        |world| assert_ne!(value(world, &POD, &key("web-0"))["status"]["phase"], "Failed"),
    );
}

#[test]
fn whose_pod_has_the_name_decides() {
    both_ways(
        &StatefulSets,
        at(1),
        || {
            let mut world = world(2, json!({"podManagementPolicy": "Parallel"}));
            world.create(&POD, pod("web-0", json!({"app": "web"})), at(0)).unwrap();
            world.create(&POD, pod("web-1", json!({"app": "other"})), at(0)).unwrap();
            world.create(&POD, pod("web-x", json!({"app": "web"})), at(0)).unwrap();
            world
        },
        |world| {
            let owned: Vec<bool> = all(world, &POD).iter().map(|p| p.meta().controller().is_some()).collect();
            assert_eq!(owned, [true, false, false]);
            assert_eq!(value(world, &POD, &key("web-0"))["metadata"]["labels"][POD_NAME], "web-0");
        },
    );
}

fn with_claims(policy: Value) -> Value {
    json!({"persistentVolumeClaimRetentionPolicy": policy, "volumeClaimTemplates": [
        {"metadata": {"name": "data", "labels": {"mine": "yes"}}, "spec": {"resources": {"requests": {"storage": "1Gi"}}}}]})
}

#[test]
fn claims_are_made_before_their_pod_and_stay() {
    let mut world = world(2, with_claims(json!(null)));
    come_to_rest(&mut world, at(1));
    assert_eq!(names(&world, &PERSISTENT_VOLUME_CLAIM), ["data-web-0", "data-web-1"]);
    let claim = value(&world, &PERSISTENT_VOLUME_CLAIM, &key("data-web-0"));
    assert_eq!(claim["metadata"]["labels"], json!({"app": "web", "mine": "yes"}));
    assert!(claim["metadata"]["ownerReferences"].is_null());
    let volumes = value(&world, &POD, &key("web-0"))["spec"]["volumes"].take();
    assert_eq!(volumes, json!([{"name": "data", "persistentVolumeClaim": {"claimName": "data-web-0"}}]));
    change(&mut world, json!({"replicas": 1}));
    come_to_rest(&mut world, at(2));
    assert_eq!((names(&world, &POD).len(), names(&world, &PERSISTENT_VOLUME_CLAIM).len()), (1, 2));
}

#[test]
fn claims_go_with_their_pod_or_the_set_where_the_policy_says_so() {
    both_ways(
        &StatefulSets,
        at(3),
        || {
            let mut world = world(2, with_claims(json!({"whenDeleted": "Delete", "whenScaled": "Delete"})));
            come_to_rest(&mut world, at(1));
            change(&mut world, json!({"replicas": 1}));
            world
        },
        |world| {
            let owner = |name: &str| {
                let references =
                    value(world, &PERSISTENT_VOLUME_CLAIM, &key(name))["metadata"]["ownerReferences"].take();
                (references.as_array().unwrap().len(), references[0]["kind"].as_str().unwrap().to_owned())
            };
            assert_eq!(owner("data-web-0"), (1, "StatefulSet".to_owned()));
            assert_eq!(owner("data-web-1"), (1, "Pod".to_owned()));
            assert!(View::get(world, &POD.id, &key("web-1")).unwrap().meta().is_deleting());
        },
    );
}
