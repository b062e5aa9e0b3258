//! Every namespace gets what it has from the start, and gets it back; one that goes gets nothing.

use serde_json::json;
use strata_model::resource::builtin::{CONFIG_MAP, NAMESPACE, SERVICE_ACCOUNT};

use super::*;
use crate::testing::{all, at, both_ways, value};
use crate::world::World;

fn certificates() -> RootCertificates {
    RootCertificates { authority: "PEM".into() }
}

fn world() -> World {
    let mut world = World::new();
    for name in ["a", "b"] {
        let namespace = json!({"metadata": {"name": name, "finalizers": ["strata.dev/test"]}});
        world.create(&NAMESPACE, namespace, at(0)).unwrap();
    }
    world
}

fn map(namespace: &str) -> ObjectKey {
    ObjectKey::new(namespace, ROOT_CA)
}

#[test]
fn every_namespace_gets_an_account_and_a_certificate() {
    both_ways(&ServiceAccounts, at(1), world, |world| {
        let accounts: Vec<String> =
            all(world, &SERVICE_ACCOUNT).iter().map(|a| a.key().to_string()).collect();
        assert_eq!(accounts, ["a/default", "b/default"]);
    });
    both_ways(&certificates(), at(1), world, |world| {
        for namespace in ["a", "b"] {
            assert_eq!(value(world, &CONFIG_MAP, &map(namespace))["data"], json!({"ca.crt": "PEM"}));
        }
    });
}

#[test]
fn what_is_deleted_or_changed_comes_back() {
    let mut world = world();
    world.settle(&certificates(), at(1));
    world.vanish(&CONFIG_MAP, &map("a")).unwrap();
    let wrong = json!({"data": {"ca.crt": "other", "more": "x"}});
    world.patch(&CONFIG_MAP, &map("b"), &wrong).unwrap();
    world.settle(&certificates(), at(2));
    for namespace in ["a", "b"] {
        assert_eq!(value(&world, &CONFIG_MAP, &map(namespace))["data"], json!({"ca.crt": "PEM"}));
    }
}

#[test]
fn a_namespace_that_goes_gets_nothing() {
    let mut world = world();
    let gone = json!({"metadata": {"deletionTimestamp": "2026-11-30T20:00:00Z"}});
    world.patch(&NAMESPACE, &ObjectKey::new("", "b"), &gone).unwrap();
    world.settle(&ServiceAccounts, at(1));
    world.settle(&certificates(), at(1));
    assert_eq!(all(&world, &SERVICE_ACCOUNT).len(), 1);
    assert_eq!(all(&world, &CONFIG_MAP).len(), 1);
}
