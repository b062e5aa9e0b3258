//! Scenarios of disruption budgets. Each runs with whole plans and with plans cut after every write.

use serde_json::json;
use strata_model::resource::builtin::{DEPLOYMENT, JOB, POD, POD_DISRUPTION_BUDGET, REPLICA_SET};

use super::*;
use crate::testing::{at, both_ways, key, make_ready, pod, replica_set, value};
use crate::world::World;

/// A world of a ReplicaSet `web` of some replicas with that many pods, as many of them ready, and a budget of this spec.
fn world(replicas: i32, ready: usize, spec: Value) -> World {
    let mut world = World::new();
    let set = world.create(&REPLICA_SET, replica_set("web", replicas), at(0)).unwrap();
    for n in 0..replicas {
        let mut pod = pod(&format!("web-{n}"), json!({"app": "web"}));
        pod["metadata"]["ownerReferences"] = owned_by("apps/v1", "ReplicaSet", &set);
        world.create(&POD, pod, at(0)).unwrap();
    }
    for n in 0..ready {
        make_ready(&mut world, &key(&format!("web-{n}")), at(0));
    }
    let mut budget = json!({"metadata": {"name": "b", "namespace": "n"},
        "spec": {"selector": {"matchLabels": {"app": "web"}}}});
    strata_model::merge::apply(&mut budget["spec"], &spec);
    world.create(&POD_DISRUPTION_BUDGET, budget, at(0)).unwrap();
    world
}

fn owned_by(version: &str, kind: &str, owner: &Object) -> Value {
    json!([{"apiVersion": version, "kind": kind, "name": owner.meta().name, "uid": owner.meta().uid,
        "controller": true}])
}

fn status(world: &World) -> Value {
    value(world, &POD_DISRUPTION_BUDGET, &key("b"))["status"].take()
}

/// Healthy now, to be healthy, expected, allowed.
fn counts(world: &World) -> [i64; 4] {
    let status = status(world);
    ["currentHealthy", "desiredHealthy", "expectedPods", "disruptionsAllowed"]
        .map(|name| status[name].as_i64().unwrap_or(-1))
}

#[test]
fn numbers_and_percentages_are_of_the_owners_scale() {
    let cases = [
        // (replicas, ready, spec) → healthy, desired, expected, allowed
        (3, 3, json!({"minAvailable": 2}), [3, 2, 3, 1]),
        (3, 2, json!({"minAvailable": 2}), [2, 2, 3, 0]),
        (3, 1, json!({"minAvailable": 2}), [1, 2, 3, 0]),
        (5, 5, json!({"minAvailable": "50%"}), [5, 3, 5, 2]),
        (5, 5, json!({"maxUnavailable": 1}), [5, 4, 5, 1]),
        (5, 4, json!({"maxUnavailable": 1}), [4, 4, 5, 0]),
        (5, 5, json!({"maxUnavailable": "30%"}), [5, 3, 5, 2]),
        (2, 2, json!({"maxUnavailable": "100%"}), [2, 0, 2, 2]),
        (0, 0, json!({"maxUnavailable": 1}), [0, 0, 0, 0]),
        (2, 2, json!({"minAvailable": 5}), [2, 5, 2, 0]),
    ];
    for (replicas, ready, spec, expected) in cases {
        both_ways(
            &Disruptions,
            at(1),
            || world(replicas, ready, spec.clone()),
            |world| {
                assert_eq!(counts(world), expected, "{replicas} {ready} {spec}");
                let status = status(world);
                let condition = &status["conditions"][0];
                let allowed = if expected[3] > 0 { "True" } else { "False" };
                assert_eq!(
                    (condition["type"].as_str(), &condition["status"]),
                    (Some(ALLOWED), &json!(allowed))
                );
                assert_eq!(status["observedGeneration"], 1);
            },
        );
    }
}

#[test]
fn sets_of_one_deployment_are_scaled_as_one() {
    let build = || {
        let mut world = world(3, 3, json!({"maxUnavailable": 1}));
        let deployment = world
            .create(
                &DEPLOYMENT,
                json!({"metadata": {"name": "d", "namespace": "n"}, "spec": {"replicas": 4}}),
                at(0),
            )
            .unwrap();
        let owner = json!({"metadata": {"ownerReferences": owned_by("apps/v1", "Deployment", &deployment)}});
        world.patch(&REPLICA_SET, &key("web"), &owner).unwrap();
        world
    };
    both_ways(&Disruptions, at(1), build, |world| assert_eq!(counts(world), [3, 3, 4, 0]));
}

#[test]
fn pods_on_their_way_out_do_not_count_and_are_forgotten_when_they_stay() {
    let build = || {
        let mut world = world(3, 3, json!({"minAvailable": 1}));
        let told = json!({"status": {"disruptedPods": {"web-0": rfc3339(at(0)), "gone": rfc3339(at(0))}}});
        world.patch(&POD_DISRUPTION_BUDGET, &key("b"), &told).unwrap();
        world
    };
    both_ways(&Disruptions, at(1), build, |world| {
        assert_eq!(counts(world), [2, 1, 3, 1]);
        assert_eq!(status(world)["disruptedPods"], json!({"web-0": rfc3339(at(0))}));
        let budget = Key::new(&POD_DISRUPTION_BUDGET, key("b"));
        let late = at(0).checked_add(TO_GO).unwrap();
        assert_eq!(world.plan(&Disruptions, &budget, at(2)).next, Next::At(late));
        let mut later = world.clone();
        later.settle(&Disruptions, late);
        assert_eq!(counts(&later), [3, 1, 3, 2]);
        assert_eq!(status(&later)["disruptedPods"], Value::Null);
        let mut going = world.clone();
        going.delete(&POD, &key("web-0"), None, at(3)).unwrap();
        going.settle(&Disruptions, at(3));
        assert_eq!(counts(&going), [2, 1, 3, 1]);
        assert_eq!(status(&going)["disruptedPods"], Value::Null);
    });
}

#[test]
fn what_cannot_be_judged_allows_nothing_and_says_why() {
    let build = || {
        let mut world = world(1, 1, json!({"maxUnavailable": 1}));
        let job = world
            .create(&JOB, json!({"metadata": {"name": "j", "namespace": "n"}, "spec": {}}), at(0))
            .unwrap();
        let owner = json!({"metadata": {"ownerReferences": owned_by("batch/v1", "Job", &job)}});
        world.patch(&POD, &key("web-0"), &owner).unwrap();
        world
    };
    both_ways(&Disruptions, at(1), build, |world| {
        let status = status(world);
        assert_eq!(
            (&status["disruptionsAllowed"], &status["conditions"][0]["reason"]),
            (&json!(0), &json!("SyncFailed"))
        );
        assert!(status["conditions"][0]["message"].as_str().unwrap().contains("Job \"j\""));
        let mut mended = world.clone();
        let number = json!({"spec": {"maxUnavailable": null, "minAvailable": 1}});
        mended.patch(&POD_DISRUPTION_BUDGET, &key("b"), &number).unwrap();
        mended.settle(&Disruptions, at(2));
        assert_eq!(counts(&mended), [1, 1, 1, 0]);
        assert_eq!(super::tests::status(&mended)["conditions"][0]["reason"], "InsufficientPods");
    });
}

#[test]
fn a_pod_and_an_owner_lead_to_the_budgets_they_concern() {
    let world = world(1, 1, json!({"minAvailable": 1}));
    let get = |resource: &strata_model::resource::ResourceType, name: &str| {
        crate::controller::View::get(&world, &resource.id, &key(name)).unwrap()
    };
    assert_eq!(budgets_of_pod(&world, &get(&POD, "web-0")).len(), 1);
    assert_eq!(budgets_beside(&world, &get(&REPLICA_SET, "web")).len(), 1);
    let mut world = world.clone();
    let other = world.create(&POD, pod("other", json!({"app": "other"})), at(0)).unwrap();
    assert!(budgets_of_pod(&world, &other).is_empty());
}
