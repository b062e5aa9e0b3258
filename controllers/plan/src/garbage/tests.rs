//! Scenarios of the garbage collector, with whole plans and with plans cut after every write. Objects are told apart
//! by name: `d` owns `r`, which owns `p`.

use strata_model::resource::Registry;
use strata_model::resource::builtin::{CONFIG_MAP, DEPLOYMENT, NAMESPACE, NODE, POD, REPLICA_SET, SECRET};

use super::*;
use crate::testing::{at, both_ways, key, value};
use crate::world::World;

fn controller() -> Garbage {
    Garbage::new(Registry::builtin().types().iter().cloned())
}

/// Creates an object owned by others; `!` before a name means that the owner does not wait for it.
fn owned(world: &mut World, resource: &ResourceType, name: &str, owners: &[(&ResourceType, &str)]) {
    let mut references = Vec::new();
    for (owner, name) in owners {
        let (name, blocks) = name.strip_prefix('!').map_or((*name, true), |n| (n, false));
        let uid = View::get(world, &owner.id, &key(name)).map(|o| o.meta().uid.clone());
        references.push(json!({"apiVersion": owner.api_version(), "kind": owner.kind, "name": name,
            "uid": uid.unwrap_or_else(|| "gone".to_owned()), "blockOwnerDeletion": blocks}));
    }
    let object = json!({"metadata": {"name": name, "namespace": "n", "ownerReferences": references}});
    world.create(resource, object, at(0)).unwrap();
}

fn chain() -> World {
    let mut world = World::new();
    owned(&mut world, &DEPLOYMENT, "d", &[]);
    owned(&mut world, &REPLICA_SET, "r", &[(&DEPLOYMENT, "d")]);
    owned(&mut world, &POD, "p", &[(&REPLICA_SET, "r")]);
    world
}

fn delete(world: &mut World, resource: &ResourceType, name: &str, propagation: Propagation) {
    let object = View::get(world, &resource.id, &key(name)).unwrap();
    let action = Action::Delete { target: Target::of(resource, &object), propagation, grace_seconds: None };
    world.apply(&action, at(1)).unwrap();
}

fn exists(world: &World, resource: &ResourceType, name: &str) -> bool {
    View::get(world, &resource.id, &key(name)).is_some()
}

fn owners(world: &World, resource: &ResourceType, name: &str) -> Vec<String> {
    let object = View::get(world, &resource.id, &key(name)).unwrap();
    object.meta().owner_references.iter().map(|r| r.name.clone()).collect()
}

#[test]
fn a_deletion_goes_down_the_chain_either_way() {
    for propagation in [Propagation::Background, Propagation::Foreground] {
        both_ways(
            &controller(),
            at(2),
            || {
                let mut world = chain();
                delete(&mut world, &DEPLOYMENT, "d", propagation);
                world
            },
            |world| {
                assert!(!exists(world, &DEPLOYMENT, "d"), "{propagation:?}");
                assert!(!exists(world, &REPLICA_SET, "r") && !exists(world, &POD, "p"), "{propagation:?}");
            },
        );
    }
}

#[test]
fn in_the_foreground_owners_go_after_their_dependents() {
    let mut world = chain();
    world.patch(&POD, &key("p"), &json!({"spec": {"nodeName": "a"}})).unwrap();
    delete(&mut world, &DEPLOYMENT, "d", Propagation::Foreground);
    world.settle(&controller(), at(2));
    // The pod runs out its grace period; everything above waits for it.
    assert!(value(&world, &POD, &key("p"))["metadata"]["deletionTimestamp"].is_string());
    assert!(exists(&world, &DEPLOYMENT, "d") && exists(&world, &REPLICA_SET, "r"));
    let plan = world.plan(&controller(), &Key::new(&DEPLOYMENT, key("d")), at(2));
    assert_eq!(plan.notes[0].reason, "WaitingForDependents");
    world.vanish(&POD, &key("p"));
    world.settle(&controller(), at(40));
    assert!(!exists(&world, &DEPLOYMENT, "d") && !exists(&world, &REPLICA_SET, "r"));
}

#[test]
fn a_dependent_that_does_not_block_is_deleted_but_not_waited_for() {
    both_ways(
        &controller(),
        at(2),
        || {
            let mut world = World::new();
            owned(&mut world, &DEPLOYMENT, "d", &[]);
            owned(&mut world, &CONFIG_MAP, "c", &[(&DEPLOYMENT, "!d")]);
            world.patch(&CONFIG_MAP, &key("c"), &json!({"metadata": {"finalizers": ["x/hold"]}})).unwrap();
            delete(&mut world, &DEPLOYMENT, "d", Propagation::Foreground);
            world
        },
        |world| {
            assert!(!exists(world, &DEPLOYMENT, "d"));
            assert!(value(world, &CONFIG_MAP, &key("c"))["metadata"]["deletionTimestamp"].is_string());
        },
    );
}

#[test]
fn orphaned_dependents_forget_their_owner_and_stay() {
    both_ways(
        &controller(),
        at(2),
        || {
            let mut world = chain();
            owned(&mut world, &CONFIG_MAP, "c", &[]);
            owned(&mut world, &REPLICA_SET, "s", &[(&CONFIG_MAP, "c"), (&DEPLOYMENT, "d")]);
            delete(&mut world, &DEPLOYMENT, "d", Propagation::Orphan);
            world
        },
        |world| {
            assert!(!exists(world, &DEPLOYMENT, "d"));
            assert!(owners(world, &REPLICA_SET, "r").is_empty());
            assert_eq!(owners(world, &REPLICA_SET, "s"), ["c"]);
            assert_eq!(owners(world, &POD, "p"), ["r"]);
        },
    );
}

#[test]
fn orphaning_many_takes_several_turns() {
    let mut world = World::new();
    owned(&mut world, &DEPLOYMENT, "d", &[]);
    for i in 0..BATCH + 10 {
        owned(&mut world, &CONFIG_MAP, &format!("c{i}"), &[(&DEPLOYMENT, "d")]);
    }
    delete(&mut world, &DEPLOYMENT, "d", Propagation::Orphan);
    let plan = world.plan(&controller(), &Key::new(&DEPLOYMENT, key("d")), at(2));
    assert_eq!((plan.actions.len(), plan.next), (BATCH, crate::controller::Next::At(at(2))));
    world.settle(&controller(), at(2));
    assert!(!exists(&world, &DEPLOYMENT, "d"));
    assert!((0..BATCH + 10).all(|i| owners(&world, &CONFIG_MAP, &format!("c{i}")).is_empty()));
}

#[test]
fn one_living_owner_is_enough() {
    for propagation in [Propagation::Background, Propagation::Foreground] {
        both_ways(
            &controller(),
            at(2),
            || {
                let mut world = World::new();
                owned(&mut world, &DEPLOYMENT, "d", &[]);
                owned(&mut world, &DEPLOYMENT, "e", &[]);
                owned(&mut world, &CONFIG_MAP, "c", &[(&DEPLOYMENT, "d"), (&DEPLOYMENT, "e")]);
                delete(&mut world, &DEPLOYMENT, "d", propagation);
                world
            },
            |world| {
                assert!(!exists(world, &DEPLOYMENT, "d"), "{propagation:?}");
                assert_eq!(owners(world, &CONFIG_MAP, "c"), ["e"], "{propagation:?}");
            },
        );
    }
}

#[test]
fn an_owner_is_who_has_the_uid() {
    // (owner as it is named, whether the dependent stays)
    let cases: [(Value, bool); 7] = [
        // Gone, and another one took its name.
        (json!({"apiVersion": "apps/v1", "kind": "Deployment", "name": "d", "uid": "old"}), false),
        // Another kind of that name, another group of that kind.
        (json!({"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": "d", "uid": "D"}), false),
        (json!({"apiVersion": "example.org/v1", "kind": "Deployment", "name": "d", "uid": "x"}), true),
        // Another version of a known kind is the same type.
        (json!({"apiVersion": "apps/v1beta9", "kind": "Deployment", "name": "d", "uid": "D"}), true),
        // In another namespace.
        (json!({"apiVersion": "apps/v1", "kind": "Deployment", "name": "far", "uid": "F"}), false),
        // Beside all namespaces.
        (json!({"apiVersion": "v1", "kind": "Node", "name": "node", "uid": "N"}), true),
        (json!({"apiVersion": "v1", "kind": "Node", "name": "node", "uid": "old"}), false),
    ];
    for (reference, stays) in cases {
        both_ways(
            &controller(),
            at(2),
            || {
                let mut world = World::new();
                owned(&mut world, &DEPLOYMENT, "d", &[]);
                let far = json!({"metadata": {"name": "far", "namespace": "m"}});
                let far = world.create(&DEPLOYMENT, far, at(0)).unwrap();
                let node = world.create(&NODE, json!({"metadata": {"name": "node"}}), at(0)).unwrap();
                let near = View::get(&world, &DEPLOYMENT.id, &key("d")).unwrap();
                let mut reference = reference.clone();
                for (short, object) in [("D", near), ("F", far), ("N", node)] {
                    if reference["uid"] == short {
                        reference["uid"] = json!(object.meta().uid);
                    }
                }
                let child =
                    json!({"metadata": {"name": "c", "namespace": "n", "ownerReferences": [reference]}});
                world.create(&CONFIG_MAP, child, at(0)).unwrap();
                world
            },
            |world| assert_eq!(exists(world, &CONFIG_MAP, "c"), stays, "{reference}"),
        );
    }
}

#[test]
fn what_cannot_be_judged_is_left_alone() {
    both_ways(
        &controller(),
        at(2),
        || {
            let mut world = World::new();
            let reference =
                json!([{"apiVersion": "apps/v1", "kind": "Deployment", "name": "d", "uid": "gone"}]);
            let outside = json!({"metadata": {"name": "m", "ownerReferences": reference}});
            world.create(&NAMESPACE, outside, at(0)).unwrap();
            let mixed = json!([{"apiVersion": "apps/v1", "kind": "Deployment", "name": "d", "uid": "gone"},
                {"apiVersion": "example.org/v1", "kind": "Widget", "name": "w", "uid": "w"}]);
            let map = json!({"metadata": {"name": "c", "namespace": "n", "ownerReferences": mixed}});
            world.create(&CONFIG_MAP, map, at(0)).unwrap();
            world
        },
        |world| assert_eq!(world.writes, 0),
    );
}

#[test]
fn an_owner_that_only_the_cache_misses_saves_its_dependents() {
    let mut world = World::new();
    owned(&mut world, &DEPLOYMENT, "d", &[]);
    owned(&mut world, &CONFIG_MAP, "c", &[(&DEPLOYMENT, "d")]);
    let mut late = world.clone();
    late.vanish(&DEPLOYMENT, &key("d"));
    let plan = late.plan(&controller(), &Key::new(&CONFIG_MAP, key("c")), at(2));
    assert!(plan.actions.iter().any(|a| matches!(a, Action::Delete { .. })));
    assert!(world.apply(&plan.actions[0], at(2)).is_err(), "the server knows the owner");
}

#[test]
fn an_owner_added_meanwhile_saves_the_dependent() {
    let mut world = World::new();
    owned(&mut world, &DEPLOYMENT, "d", &[]);
    owned(&mut world, &CONFIG_MAP, "c", &[(&DEPLOYMENT, "other")]);
    let plan = world.plan(&controller(), &Key::new(&CONFIG_MAP, key("c")), at(2));
    let owner = View::get(&world, &DEPLOYMENT.id, &key("d")).unwrap();
    let reference =
        json!([{"apiVersion": "apps/v1", "kind": "Deployment", "name": "d", "uid": owner.meta().uid}]);
    world.patch(&CONFIG_MAP, &key("c"), &json!({"metadata": {"ownerReferences": reference}})).unwrap();
    let refused = plan.actions.iter().find_map(|a| world.apply(a, at(2)).err());
    assert!(refused.is_some() && exists(&world, &CONFIG_MAP, "c"));
}

#[test]
fn a_policy_changed_meanwhile_saves_the_dependents() {
    let mut world = World::new();
    owned(&mut world, &DEPLOYMENT, "d", &[]);
    owned(&mut world, &CONFIG_MAP, "c", &[(&DEPLOYMENT, "d")]);
    world.patch(&DEPLOYMENT, &key("d"), &json!({"metadata": {"finalizers": ["x/hold"]}})).unwrap();
    delete(&mut world, &DEPLOYMENT, "d", Propagation::Foreground);
    let plan = world.plan(&controller(), &Key::new(&CONFIG_MAP, key("c")), at(2));
    delete(&mut world, &DEPLOYMENT, "d", Propagation::Orphan);
    assert!(world.apply(&plan.actions[0], at(2)).is_err());
    world.settle(&controller(), at(3));
    assert!(owners(&world, &CONFIG_MAP, "c").is_empty());
}

#[test]
fn circles_go_whole() {
    for length in [1, 2, 3] {
        both_ways(
            &controller(),
            at(2),
            || {
                let names = ["a", "b", "c"];
                let mut world = World::new();
                (0..length).for_each(|i| owned(&mut world, &CONFIG_MAP, names[i], &[]));
                for i in 0..length {
                    let owner = View::get(&world, &CONFIG_MAP.id, &key(names[(i + 1) % length])).unwrap();
                    let reference = json!([{"apiVersion": "v1", "kind": "ConfigMap", "name": owner.meta().name,
                        "uid": owner.meta().uid, "blockOwnerDeletion": true}]);
                    let patch = json!({"metadata": {"ownerReferences": reference}});
                    world.patch(&CONFIG_MAP, &key(names[i]), &patch).unwrap();
                }
                delete(&mut world, &CONFIG_MAP, "a", Propagation::Foreground);
                world
            },
            |world| assert_eq!(crate::testing::names(world, &CONFIG_MAP), Vec::<String>::new(), "{length}"),
        );
    }
}

#[test]
fn changes_lead_to_all_who_must_look() {
    let mut world = chain();
    let mapping = |resource: &ResourceType| controller().types.mapping(&Arc::new(resource.clone()));
    let d = View::get(&world, &DEPLOYMENT.id, &key("d")).unwrap();
    let p = View::get(&world, &POD.id, &key("p")).unwrap();
    assert!(mapping(&DEPLOYMENT)(&world, &d).is_empty(), "a living owner wakes nobody");
    assert_eq!(mapping(&POD)(&world, &p), [Key::new(&POD, key("p"))]);
    let gone = world.vanish(&DEPLOYMENT, &key("d")).unwrap();
    assert_eq!(mapping(&DEPLOYMENT)(&world, &gone), [Key::new(&REPLICA_SET, key("r"))]);
    delete(&mut world, &REPLICA_SET, "r", Propagation::Foreground);
    let r = View::get(&world, &REPLICA_SET.id, &key("r")).unwrap();
    assert_eq!(
        mapping(&REPLICA_SET)(&world, &r),
        [Key::new(&REPLICA_SET, key("r")), Key::new(&POD, key("p"))]
    );
    let gone = world.vanish(&POD, &key("p")).unwrap();
    assert_eq!(mapping(&POD)(&world, &gone), [Key::new(&REPLICA_SET, key("r"))]);
}

#[test]
fn objects_without_owners_are_nobodys_business() {
    both_ways(
        &controller(),
        at(2),
        || {
            let mut world = World::new();
            owned(&mut world, &CONFIG_MAP, "c", &[]);
            owned(&mut world, &SECRET, "s", &[]);
            world.patch(&SECRET, &key("s"), &json!({"metadata": {"finalizers": ["x/hold"]}})).unwrap();
            delete(&mut world, &SECRET, "s", Propagation::Background);
            world
        },
        |world| assert!(exists(world, &CONFIG_MAP, "c") && exists(world, &SECRET, "s")),
    );
}
