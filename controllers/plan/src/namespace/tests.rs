//! Scenarios of namespaces, with whole plans and with plans cut after every write.

use serde_json::Value;
use strata_model::resource::Registry;
use strata_model::resource::builtin::{CONFIG_MAP, NAMESPACE, POD, REPLICA_SET, SECRET};

use super::*;
use crate::testing::{at, both_ways, key, names, pod, replica_set, value};
use crate::world::World;

fn controller() -> Namespaces {
    Namespaces::new(Registry::builtin().types().iter().cloned())
}

fn named(name: &str) -> ObjectKey {
    ObjectKey::new("", name)
}

/// Namespaces `n` and `m`, each with a few objects.
fn world() -> World {
    let mut world = World::new();
    for name in ["n", "m"] {
        let namespace = json!({"metadata": {"name": name}, "spec": {"finalizers": [FINALIZER]}});
        world.create(&NAMESPACE, namespace, at(0)).unwrap();
        for resource in [&CONFIG_MAP, &SECRET] {
            world.create(resource, json!({"metadata": {"name": "x", "namespace": name}}), at(0)).unwrap();
        }
    }
    world.create(&POD, pod("p", json!({})), at(0)).unwrap();
    world.create(&REPLICA_SET, replica_set("web", 1), at(0)).unwrap();
    world
}

fn condition_of(world: &World, type_: &str) -> Value {
    let namespace = value(world, &NAMESPACE, &named("n"));
    let list = namespace["status"]["conditions"].as_array().unwrap().clone();
    list.into_iter().find(|c| c["type"] == type_).unwrap()
}

#[test]
fn a_deleted_namespace_is_emptied_and_goes_and_others_stay() {
    both_ways(
        &controller(),
        at(2),
        || {
            let mut world = world();
            world.delete(&NAMESPACE, &named("n"), None, at(1)).unwrap();
            world
        },
        |world| {
            assert_eq!(names(world, &NAMESPACE), ["m"]);
            assert_eq!(names(world, &CONFIG_MAP), ["x"]);
            assert_eq!(names(world, &SECRET), ["x"]);
            assert!(names(world, &POD).is_empty() && names(world, &REPLICA_SET).is_empty());
        },
    );
}

#[test]
fn a_living_namespace_is_not_touched() {
    both_ways(&controller(), at(2), world, |world| assert_eq!(world.writes, 0));
}

#[test]
fn what_holds_a_namespace_is_written_down_and_waited_for() {
    let build = || {
        let mut world = world();
        let held = json!({"metadata": {"finalizers": ["x/hold"]}});
        world.patch(&CONFIG_MAP, &key("x"), &held).unwrap();
        world.patch(&POD, &key("p"), &json!({"spec": {"nodeName": "a"}})).unwrap();
        world.delete(&NAMESPACE, &named("n"), None, at(1)).unwrap();
        world
    };
    both_ways(&controller(), at(2), build, |world| {
        assert_eq!(value(world, &NAMESPACE, &named("n"))["spec"]["finalizers"], json!([FINALIZER]));
        let remaining = condition_of(world, "NamespaceContentRemaining");
        assert_eq!(remaining["status"], "True");
        assert_eq!(
            remaining["message"],
            "Some resources are remaining: configmaps. has 1 resource instances, pods. has 1 resource instances"
        );
        assert_eq!(
            condition_of(world, "NamespaceFinalizersRemaining")["message"],
            "Some content in the namespace has finalizers remaining: x/hold in 1 resource instances"
        );
        let mut world = world.clone();
        world.vanish(&POD, &key("p"));
        world.patch(&CONFIG_MAP, &key("x"), &json!({"metadata": {"finalizers": null}})).unwrap();
        world.settle(&controller(), at(60));
        assert_eq!(names(&world, &NAMESPACE), ["m"]);
    });
}

#[test]
fn an_object_that_the_cache_does_not_show_yet_keeps_the_namespace() {
    let mut world = world();
    for resource in [&CONFIG_MAP, &SECRET] {
        world.vanish(resource, &key("x"));
    }
    world.vanish(&POD, &key("p"));
    world.vanish(&REPLICA_SET, &key("web"));
    world.delete(&NAMESPACE, &named("n"), None, at(1)).unwrap();
    let root = Key::new(&NAMESPACE, named("n"));
    let plan = world.plan(&controller(), &root, at(2));
    // The last secret was created just before the deletion; the plan was made from a cache without it.
    world.create(&SECRET, json!({"metadata": {"name": "late", "namespace": "n"}}), at(2)).unwrap();
    let refused = plan.actions.iter().find_map(|a| world.apply(a, at(2)).err());
    assert!(refused.is_some());
    assert_eq!(names(&world, &NAMESPACE), ["m", "n"]);
    world.settle(&controller(), at(3));
    assert_eq!(names(&world, &NAMESPACE), ["m"]);
    assert_eq!(names(&world, &SECRET), ["x"]);
}

#[test]
fn deletions_of_a_turn_are_bounded() {
    let mut world = world();
    for i in 0..600 {
        let map = json!({"metadata": {"name": format!("c{i}"), "namespace": "n"}});
        world.create(&CONFIG_MAP, map, at(0)).unwrap();
    }
    world.delete(&NAMESPACE, &named("n"), None, at(1)).unwrap();
    let plan = world.plan(&controller(), &Key::new(&NAMESPACE, named("n")), at(2));
    assert_eq!((plan.actions.len(), plan.next), (BATCH, crate::controller::Next::At(at(2))));
    world.settle(&controller(), at(2));
    assert_eq!(names(&world, &NAMESPACE), ["m"]);
}

#[test]
fn another_finalizer_of_the_spec_is_left() {
    both_ways(
        &controller(),
        at(2),
        || {
            let mut world = world();
            let mine = json!({"spec": {"finalizers": ["example.org/mine", FINALIZER]}});
            world.patch(&NAMESPACE, &named("n"), &mine).unwrap();
            world.delete(&NAMESPACE, &named("n"), None, at(1)).unwrap();
            world
        },
        |world| {
            let left = value(world, &NAMESPACE, &named("n"))["spec"]["finalizers"].take();
            assert_eq!(left, json!(["example.org/mine"]));
        },
    );
}

#[test]
fn content_leads_to_its_namespace_only_while_that_leaves() {
    let mut world = world();
    let map = View::get(&world, &CONFIG_MAP.id, &key("x")).unwrap();
    assert!(leaving_namespace(&world, &map).is_empty());
    world.delete(&NAMESPACE, &named("n"), None, at(1)).unwrap();
    assert_eq!(leaving_namespace(&world, &map), [Key::new(&NAMESPACE, named("n"))]);
}
