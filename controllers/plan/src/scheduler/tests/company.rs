//! Scenarios of pods that care where others are.

use strata_model::resource::builtin::{NAMESPACE, NODE, POD};

use super::*;

/// Four nodes in two zones.
fn world() -> World {
    let mut world = World::new();
    for (name, zone) in [("a1", "a"), ("a2", "a"), ("b1", "b"), ("b2", "b")] {
        let mut made = node(name, "4");
        made["metadata"]["labels"] = json!({"zone": zone, "host": name});
        world.create(&NODE, made, at(0)).unwrap();
    }
    world
}

fn with(name: &str, app: &str, spec: Value) -> Value {
    let mut pod = pod(name, json!({"app": app}));
    strata_model::merge::apply(&mut pod["spec"], &spec);
    pod
}

fn term(app: &str, key: &str) -> Value {
    json!({"labelSelector": {"matchLabels": {"app": app}}, "topologyKey": key})
}

fn required(kind: &str, term: Value) -> Value {
    json!({"affinity": {kind: {"requiredDuringSchedulingIgnoredDuringExecution": [term]}}})
}

fn zone(world: &World, name: &str) -> String {
    place_of(world, name).as_str().unwrap_or("-")[..1].to_owned()
}

fn said(world: &World, name: &str) -> String {
    value(world, &POD, &key(name))["status"]["conditions"][0]["message"]
        .as_str()
        .unwrap_or_default()
        .to_owned()
}

fn create(world: &mut World, pod: Value, second: i64) {
    world.create(&POD, pod, at(second)).unwrap();
}

#[test]
fn pods_come_beside_whom_they_must() {
    both_ways(
        &Scheduler,
        at(9),
        || {
            let mut world = world();
            // The one that looks for company comes first, and gets it in the same turn.
            create(&mut world, with("web", "web", required("podAffinity", term("db", "zone"))), 0);
            let pinned = json!({"nodeSelector": {"host": "b2"}});
            create(&mut world, with("db", "db", pinned), 1);
            create(&mut world, with("alone", "web", required("podAffinity", term("nobody", "zone"))), 2);
            // The first of its kind may begin anywhere, and the others follow it.
            for i in 0..3 {
                create(
                    &mut world,
                    with(&format!("flock{i}"), "flock", required("podAffinity", term("flock", "zone"))),
                    3,
                );
            }
            world
        },
        |world| {
            assert_eq!(zone(world, "web"), "b");
            assert_eq!(
                said(world, "alone"),
                "0/4 nodes are available: 4 node(s) didn't match pod affinity rules."
            );
            assert_eq!(zone(world, "flock0"), zone(world, "flock1"));
            assert_eq!(zone(world, "flock0"), zone(world, "flock2"));
        },
    );
}

#[test]
fn pods_stay_apart_from_whom_they_must_and_who_must_from_them() {
    both_ways(
        &Scheduler,
        at(9),
        || {
            let mut world = world();
            for i in 0..3 {
                create(
                    &mut world,
                    with(&format!("db{i}"), "db", required("podAntiAffinity", term("db", "zone"))),
                    i,
                );
            }
            // It says nothing itself, but the others do not want it.
            create(&mut world, with("late", "db", json!({})), 5);
            world
        },
        |world| {
            assert_ne!(zone(world, "db0"), zone(world, "db1"));
            let all = "0/4 nodes are available: 4 node(s) didn't";
            assert_eq!(said(world, "db2"), format!("{all} match pod anti-affinity rules."));
            assert_eq!(said(world, "late"), format!("{all} satisfy existing pods anti-affinity rules."));
        },
    );
    let mut world = world();
    create(&mut world, with("db", "db", json!({"nodeSelector": {"host": "a1"}})), 0);
    create(&mut world, with("shy", "web", required("podAntiAffinity", term("db", "host"))), 1);
    create(
        &mut world,
        with(
            "mute",
            "web",
            json!({"nodeSelector": {"zone": "a"}, "affinity": {"podAntiAffinity":
        {"requiredDuringSchedulingIgnoredDuringExecution": [term("db", "zone")]}}}),
        ),
        2,
    );
    world.settle(&Scheduler, at(3));
    assert_ne!(place_of(&world, "shy"), "a1");
    assert_eq!(
        said(&world, "mute"),
        "0/4 nodes are available: 2 node(s) didn't match Pod's node affinity/selector, 2 node(s) didn't match pod anti-affinity rules."
    );
}

#[test]
fn namespaces_bound_who_counts() {
    let mut world = world();
    world.create(&NAMESPACE, json!({"metadata": {"name": "m", "labels": {"team": "x"}}}), at(0)).unwrap();
    let mut db = with("db", "db", json!({"nodeSelector": {"host": "b1"}}));
    db["metadata"]["namespace"] = json!("m");
    create(&mut world, db, 0);
    let mut named = term("db", "host");
    named["namespaces"] = json!(["m"]);
    let mut selected = term("db", "host");
    selected["namespaceSelector"] = json!({"matchLabels": {"team": "x"}});
    let mut all = term("db", "host");
    all["namespaceSelector"] = json!({});
    for (name, term) in [("own", term("db", "host")), ("named", named), ("selected", selected), ("all", all)]
    {
        create(&mut world, with(name, "web", required("podAffinity", term)), 1);
    }
    world.settle(&Scheduler, at(2));
    assert!(place_of(&world, "own").is_null());
    for name in ["named", "selected", "all"] {
        assert_eq!(place_of(&world, name), "b1", "{name}");
    }
}

fn spread(skew: i64, hard: bool) -> Value {
    let when = if hard { "DoNotSchedule" } else { "ScheduleAnyway" };
    json!({"topologySpreadConstraints": [{"maxSkew": skew, "topologyKey": "zone", "whenUnsatisfiable": when,
        "labelSelector": {"matchLabels": {"app": "web"}}}]})
}

#[test]
fn pods_are_spread_over_zones() {
    for hard in [true, false] {
        both_ways(
            &Scheduler,
            at(9),
            || {
                let mut world = world();
                (0..6).for_each(|i| create(&mut world, with(&format!("p{i}"), "web", spread(1, hard)), i));
                world
            },
            |world| {
                let in_a = (0..6).filter(|i| zone(world, &format!("p{i}")) == "a").count();
                assert_eq!(in_a, 3, "hard: {hard}");
            },
        );
    }
    let mut world = world();
    world.patch(&NODE, &ObjectKey::new("", "b1"), &json!({"spec": {"unschedulable": true}})).unwrap();
    world.patch(&NODE, &ObjectKey::new("", "b2"), &json!({"metadata": {"labels": {"zone": null}}})).unwrap();
    (0..2).for_each(|i| create(&mut world, with(&format!("p{i}"), "web", spread(1, true)), i));
    world.settle(&Scheduler, at(3));
    assert_eq!(zone(&world, "p0"), "a");
    assert_eq!(
        said(&world, "p1"),
        "0/4 nodes are available: 1 node(s) didn't match pod topology spread constraints (missing required label), 1 \
         node(s) were unschedulable, 2 node(s) didn't match pod topology spread constraints."
    );
}

#[test]
fn company_that_is_liked_weighs() {
    let mut world = world();
    create(&mut world, with("db", "db", json!({"nodeSelector": {"host": "b2"}})), 0);
    let wish = |kind: &str| {
        json!({"affinity": {kind: {"preferredDuringSchedulingIgnoredDuringExecution":
        [{"weight": 50, "podAffinityTerm": term("db", "host")}]}}})
    };
    create(&mut world, with("near", "web", wish("podAffinity")), 1);
    create(&mut world, with("far", "web", wish("podAntiAffinity")), 2);
    world.settle(&Scheduler, at(3));
    assert_eq!(place_of(&world, "near"), "b2");
    assert_ne!(place_of(&world, "far"), "b2");
}

#[test]
fn a_pod_for_one_node_is_only_asked_of_that() {
    let mut world = world();
    let term = |name: &str| {
        json!({"affinity": {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": {
        "nodeSelectorTerms": [{"matchFields": [{"key": "metadata.name", "operator": "In", "values": [name]}]}]}}}})
    };
    create(&mut world, with("there", "log", term("b1")), 0);
    create(&mut world, with("gone", "log", term("x")), 0);
    world.settle(&Scheduler, at(1));
    assert_eq!(place_of(&world, "there"), "b1");
    assert_eq!(
        said(&world, "gone"),
        "0/4 nodes are available: 4 node(s) didn't match Pod's node affinity/selector."
    );
}
