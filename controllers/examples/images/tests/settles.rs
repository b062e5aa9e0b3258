//! The decisions of the layers come to rest, without a server and without files: in a small world where builds, publications
//! and deliveries have what they wish for as soon as the test says so.

#![allow(clippy::unwrap_used, reason = "a test ends at the first surprise")]

use std::collections::BTreeMap;

use images::api::{self, HELD};
use images::entitlement::Entitlements;
use images::held::{self, Step};
use images::track::{self, Observed};
use jiff::Timestamp;
use serde_json::{Value, json};
use strata_model::object::ObjectKey;
use strata_model::resource::ResourceType;
use strata_plan::controller::View as _;
use strata_plan::typed::Typed;
use strata_plan::world::World;

fn now() -> Timestamp {
    "2026-11-30T20:00:00Z".parse().unwrap()
}

fn key(name: &str) -> ObjectKey {
    ObjectKey::new("n", name)
}

fn world() -> World {
    let mut world = World::new();
    let track =
        json!({"metadata": {"name": "t", "namespace": "n"}, "spec": {"upstream": "/up", "image": "i"}});
    world.create(&api::tracks(), track, now()).unwrap();
    world
}

/// Plans the track until it has nothing to do, with plans cut after their first write; what upstream has comes in.
fn settle(world: &mut World, upstream: &[(&str, &str)]) {
    let upstream: BTreeMap<String, String> =
        upstream.iter().map(|(version, source)| ((*version).to_owned(), (*source).to_owned())).collect();
    for _ in 0..50 {
        let track = world.get(&api::tracks().id, &key("t")).unwrap();
        let owned = |resource: &ResourceType| world.owned_by(&resource.id, &track.meta().uid);
        let observed = Observed {
            builds: Typed::all(owned(&api::builds())).unwrap(),
            publications: Typed::all(owned(&api::publications())).unwrap(),
            upstream: Ok(upstream.clone()),
            track: Typed::new(track).unwrap(),
        };
        let plan = track::plan(&observed, now());
        match plan.actions.first() {
            Some(action) => world.apply(action, now()).unwrap(),
            None => return,
        }
    }
    panic!("it never comes to rest");
}

fn names(world: &World, resource: &ResourceType) -> Vec<String> {
    world.list(&resource.id, "").iter().map(|object| object.meta().name.clone()).collect()
}

fn status(world: &World, resource: &ResourceType, name: &str) -> Value {
    world.get(&resource.id, &key(name)).unwrap().to_value().unwrap()["status"].take()
}

/// Says that all objects of a type have what they wish for; builds have a digest made of their name.
fn hold(world: &mut World, resource: &ResourceType) {
    for object in world.list(&resource.id, "") {
        let value = object.to_value().unwrap();
        let wanted = value["spec"]["digest"].as_str().map(str::to_owned);
        let digest = wanted.unwrap_or_else(|| format!("sha256:{}", object.meta().name));
        world.patch(resource, &object.key(), &json!({"status": {"digest": digest}})).unwrap();
    }
}

#[test]
fn every_version_is_built_and_then_published() {
    let mut world = world();
    settle(&mut world, &[("1.0", "aaaa"), ("1.1", "bbbb")]);
    assert_eq!(names(&world, &api::builds()), ["t-1.0-aaaa", "t-1.1-bbbb"]);
    assert!(names(&world, &api::publications()).is_empty(), "nothing is published before it is built");
    assert_eq!(status(&world, &api::tracks(), "t")["published"], 0);
    hold(&mut world, &api::builds());
    settle(&mut world, &[("1.0", "aaaa"), ("1.1", "bbbb")]);
    assert_eq!(names(&world, &api::publications()), ["t-1.0", "t-1.1"]);
    hold(&mut world, &api::publications());
    settle(&mut world, &[("1.0", "aaaa"), ("1.1", "bbbb")]);
    let status = status(&world, &api::tracks(), "t");
    assert_eq!((&status["versions"], &status["published"]), (&json!(2), &json!(2)));
    assert_eq!(status["conditions"][0]["status"], "True");
}

#[test]
fn changed_sources_are_built_anew_while_the_old_image_stays_published() {
    let mut world = world();
    settle(&mut world, &[("1.0", "aaaa")]);
    hold(&mut world, &api::builds());
    settle(&mut world, &[("1.0", "aaaa")]);
    hold(&mut world, &api::publications());
    settle(&mut world, &[("1.0", "cccc")]);
    assert_eq!(names(&world, &api::builds()), ["t-1.0-aaaa", "t-1.0-cccc"]);
    assert_eq!(status(&world, &api::publications(), "t-1.0")["digest"], "sha256:t-1.0-aaaa");
    hold(&mut world, &api::builds());
    settle(&mut world, &[("1.0", "cccc")]);
    assert_eq!(names(&world, &api::builds()), ["t-1.0-cccc"]);
    let publication = world.get(&api::publications().id, &key("t-1.0")).unwrap().to_value().unwrap();
    assert_eq!(publication["spec"]["digest"], "sha256:t-1.0-cccc");
    // A version that upstream has no more goes, with all that was made of it.
    settle(&mut world, &[]);
    assert!(names(&world, &api::builds()).is_empty() && names(&world, &api::publications()).is_empty());
}

#[test]
fn what_is_unknown_is_not_gone() {
    let mut world = world();
    settle(&mut world, &[("1.0", "aaaa")]);
    let track = world.get(&api::tracks().id, &key("t")).unwrap();
    let observed = Observed {
        builds: Typed::all(world.owned_by(&api::builds().id, &track.meta().uid)).unwrap(),
        publications: Vec::new(),
        upstream: Err("cannot list /up".to_owned()),
        track: Typed::new(track).unwrap(),
    };
    for action in track::plan(&observed, now()).actions {
        world.apply(&action, now()).unwrap();
    }
    assert_eq!(names(&world, &api::builds()), ["t-1.0-aaaa"]);
    assert_eq!(status(&world, &api::tracks(), "t")["conditions"][0]["reason"], "UpstreamUnknown");
}

#[test]
fn the_entitled_get_what_is_published_and_nothing_else() {
    let mut world = world();
    let entitlement =
        json!({"metadata": {"name": "e", "namespace": "n"}, "spec": {"customer": "c", "track": "t"}});
    world.create(&api::entitlements(), entitlement, now()).unwrap();
    for (version, digest) in [("1.0", "sha256:a"), ("1.1", "")] {
        let publication = json!({"metadata": {"name": format!("t-{version}"), "namespace": "n", "labels": {api::TRACK: "t"}},
            "spec": {"image": "i", "version": version, "digest": "sha256:a"}, "status": {"digest": digest}});
        world.create(&api::publications(), publication, now()).unwrap();
    }
    world.settle_in_part(&Entitlements, now());
    assert_eq!(names(&world, &api::deliveries()), ["e-1.0"]);
    assert_eq!(status(&world, &api::entitlements(), "e")["conditions"][0]["reason"], "Delivering");
    hold(&mut world, &api::deliveries());
    world.settle(&Entitlements, now());
    assert_eq!(status(&world, &api::entitlements(), "e")["delivered"], 1);
    world.vanish(&api::publications(), &key("t-1.0"));
    world.settle(&Entitlements, now());
    assert!(names(&world, &api::deliveries()).is_empty());
}

#[test]
fn an_image_is_put_where_it_is_missing_or_wrong_and_taken_away_at_the_end() {
    let mut world = World::new();
    let resource = api::deliveries();
    let delivery = |finalizers: Value, deleted: bool| {
        let mut object = json!({"metadata": {"name": "d", "namespace": "n", "finalizers": finalizers}});
        if deleted {
            object["metadata"]["deletionTimestamp"] = json!("2026-11-30T20:00:00Z");
        }
        object
    };
    let cases = [
        (json!([]), false, None, None, "before anything is there, that it will be taken away"),
        (json!([HELD]), false, None, Some(Step::Put), "missing"),
        (json!([HELD]), false, Some("b"), Some(Step::Put), "another one"),
        (json!([HELD]), false, Some("a"), None, "there"),
        (json!([HELD]), true, Some("a"), Some(Step::Remove), "to go"),
        (json!([HELD]), true, None, None, "gone"),
    ];
    for (finalizers, deleted, actual, step, what) in cases {
        let object = world.create(&resource, delivery(finalizers.clone(), deleted), now()).unwrap();
        let plan = held::plan(&resource, &object, Some("a"), actual, now());
        assert_eq!(plan.step, step, "{what}");
        assert_eq!(plan.before.len(), usize::from(finalizers == json!([])), "{what}");
        world.vanish(&resource, &key("d"));
    }
}
