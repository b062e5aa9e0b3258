//! Laws of ownership and apply, for any object.

use proptest::prelude::*;
use serde_json::{Value, json};

use super::{World, containers, data};
use crate::managed::entries::Managed;
use crate::managed::fields::FieldSet;

fn members(keys: &'static str) -> impl Strategy<Value = Value> {
    let entries = proptest::collection::btree_map(keys, "[xyz]", 0..4);
    entries.prop_map(|map| map.into_iter().map(|(key, value)| (key, Value::from(value))).collect())
}

/// A deployment's configuration over few names, so that configurations meet.
fn config() -> impl Strategy<Value = Value> {
    let port = (80..82i64, prop_oneof![Just(None), Just(Some("TCP")), Just(Some("UDP"))]).prop_map(
        |(port, protocol)| {
            let mut value = json!({"containerPort": port});
            if let Some(protocol) = protocol {
                value["protocol"] = json!(protocol);
            }
            value
        },
    );
    let container = (
        "[abc]",
        proptest::option::of("[xy]"),
        proptest::collection::vec("[xy]", 0..3),
        proptest::collection::vec(port, 0..2),
    )
        .prop_map(|(name, image, args, ports)| {
            let mut value = json!({"name": name});
            if let Some(image) = image {
                value["image"] = json!(image);
            }
            if !args.is_empty() {
                value["args"] = json!(args);
            }
            if !ports.is_empty() {
                value["ports"] = json!(ports);
            }
            value
        });
    (proptest::collection::vec(container, 0..3), members("[a-c]"), proptest::option::of(0..3i64)).prop_map(
        |(list, labels, replicas)| {
            let mut value = containers(Value::Array(list));
            value["metadata"]["labels"] = labels;
            if let Some(replicas) = replicas {
                value["spec"]["replicas"] = json!(replicas);
            }
            value
        },
    )
}

fn tree() -> impl Strategy<Value = Value> {
    let step = prop_oneof![
        "f:[a-c]".prop_map(String::from),
        "[a-c]".prop_map(|name| format!("k:{{\"name\":\"{name}\"}}")),
        (0..3u8).prop_map(|n| format!("v:{n}")),
        (0..3u8).prop_map(|n| format!("i:{n}")),
        Just(".".to_owned()),
    ];
    let leaf = Just(json!({}));
    leaf.prop_recursive(4, 32, 4, move |inner| {
        proptest::collection::btree_map(step.clone(), inner, 0..4).prop_map(|map| map.into_iter().collect())
    })
}

fn any_json() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        "[a-z.:{}\"]{0,6}".prop_map(Value::from),
    ];
    let name = prop_oneof![
        Just("metadata"),
        Just("spec"),
        Just("status"),
        Just("template"),
        Just("containers"),
        Just("name"),
        Just("labels"),
        Just("ports"),
        Just("containerPort"),
        Just("finalizers"),
        Just("managedFields"),
        Just("f:x"),
        Just("."),
    ];
    leaf.prop_recursive(6, 48, 5, move |inner| {
        prop_oneof![
            proptest::collection::vec(inner.clone(), 0..4).prop_map(Value::from),
            proptest::collection::btree_map(name.clone().prop_map(String::from), inner, 0..5)
                .prop_map(|map| map.into_iter().collect()),
        ]
    })
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(256) })]

    #[test]
    fn applying_twice_is_applying_once(first in config(), mine in config(), others in config()) {
        let mut world = World::deployment();
        let done = world.apply("other", others).and_then(|()| world.apply("me", first));
        let done = done.and_then(|()| world.apply_as("me", "", mine.clone(), true));
        prop_assume!(done.is_ok());
        let once = (world.object().clone(), world.managed.clone());
        world.apply("me", mine).unwrap();
        prop_assert_eq!((world.object(), &world.managed), (&once.0, &once.1));
    }

    #[test]
    fn applies_of_disjoint_owners_commute(one in members("[a-c]"), two in members("[x-z]"), was in members("[a-cx-z]")) {
        let run = |order: [(&str, &Value); 2]| {
            let mut world = World::config_map();
            world.update("u", data(was.clone()));
            for (manager, members) in order {
                world.force(manager, data(members.clone()));
            }
            let owned = ["one", "two", "u"].map(|manager| (world.applied(manager), world.updated(manager)));
            (world.object().clone(), owned)
        };
        prop_assert_eq!(run([("one", &one), ("two", &two)]), run([("two", &two), ("one", &one)]));
    }

    #[test]
    fn an_applier_owns_and_sees_what_it_said(first in config(), mine in config()) {
        let mut world = World::deployment();
        prop_assume!(world.apply("other", first).is_ok());
        prop_assume!(world.apply_as("me", "", mine.clone(), true).is_ok());
        if let Some(replicas) = mine["spec"].get("replicas") {
            prop_assert_eq!(&world.object()["spec"]["replicas"], replicas);
        }
        for (key, value) in mine["metadata"]["labels"].as_object().unwrap() {
            prop_assert_eq!(&world.object()["metadata"]["labels"][key], value);
        }
        let others = world.applied("other");
        world.apply("me", json!({"metadata": {"name": "d"}})).unwrap();
        prop_assert_eq!(world.applied("me"), Value::Null);
        prop_assert_eq!(world.applied("other"), others, "leaving takes nothing from others");
    }

    #[test]
    fn field_sets_round_trip(value in tree()) {
        let set = FieldSet::parse(&value).unwrap();
        let again = FieldSet::parse(&set.clone().into_value()).unwrap();
        prop_assert_eq!(&again, &set);
        let text = serde_json::to_string(&set.clone().into_value()).unwrap();
        prop_assert_eq!(FieldSet::stored(serde_json::from_str(&text).unwrap()), set);
    }

    #[test]
    fn field_sets_obey_the_algebra(one in tree(), two in tree()) {
        let (one, two) = (FieldSet::parse(&one).unwrap(), FieldSet::parse(&two).unwrap());
        let (mut both, mut back) = (one.clone(), two.clone());
        both.add(&two);
        back.add(&one);
        prop_assert_eq!(&both, &back);
        let mut rest = both.clone();
        rest.subtract(&two);
        prop_assert!(rest.shared(&two).is_empty());
        let mut whole = rest.clone();
        whole.add(&two);
        prop_assert_eq!(whole, both);
    }

    #[test]
    fn ownership_says_exactly_who_wrote_what(steps in proptest::collection::vec((0..3u8, members("[a-d]")), 1..8)) {
        let mut world = World::config_map();
        for (writer, members) in &steps {
            world.update(&format!("u{writer}"), data(members.clone()));
        }
        let mut expected: std::collections::BTreeMap<&String, (u8, &Value)> = std::collections::BTreeMap::new();
        for (writer, members) in &steps {
            let members = members.as_object().unwrap();
            expected.retain(|key, _| members.contains_key(*key));
            for (key, value) in members {
                let slot = expected.entry(key).or_insert((*writer, value));
                if slot.1 != value {
                    *slot = (*writer, value);
                }
            }
        }
        let owns = |writer: u8, key: &str| {
            world.updated(&format!("u{writer}")).pointer(&format!("/f:data/f:{key}")).is_some()
        };
        for (key, (writer, _)) in expected {
            for someone in 0..3 {
                prop_assert_eq!(owns(someone, key), someone == writer, "{} of {}", key, someone);
            }
        }
    }

    #[test]
    fn nothing_panics(live in any_json(), config in any_json(), managers in any_json()) {
        let mut world = World::deployment();
        world.update("u", live.clone());
        let mut with = json!({"metadata": {"managedFields": managers}});
        let stored = Managed::take(&mut with.clone());
        drop(Managed::wish(&mut with));
        world.managed = stored;
        drop(world.apply("m", config.clone()));
        world.update("v", config.clone());
        drop(world.apply_as("m", "", live, true));
        drop(world.apply("kubectl", config));
        if let Some(object) = &mut world.object {
            world.managed.clone().put(object);
        }
    }
}
