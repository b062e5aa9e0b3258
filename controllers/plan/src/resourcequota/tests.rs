//! Scenarios of quotas. Each runs with whole plans and with plans cut after every write.

use serde_json::json;
use strata_model::resource::builtin::{CONFIG_MAP, POD, RESOURCE_QUOTA};

use super::*;
use crate::controller::Next;
use crate::testing::{at, both_ways, key, pod, value};
use crate::world::World;

fn quotas() -> ResourceQuotas {
    let types = [&RESOURCE_QUOTA, &POD, &CONFIG_MAP, &builtin::SERVICE, &builtin::PERSISTENT_VOLUME_CLAIM];
    ResourceQuotas::new(types.map(|resource| Arc::new(resource.clone())).to_vec())
}

/// A world with two pods of half a core each, and a quota of this spec.
fn world(spec: Value) -> World {
    let mut world = World::new();
    for name in ["a", "b"] {
        let mut pod = pod(name, json!({}));
        pod["spec"]["containers"][0]["resources"] = json!({"requests": {"cpu": "500m"}});
        world.create(&POD, pod, at(0)).unwrap();
    }
    let quota = json!({"metadata": {"name": "q", "namespace": "n"}, "spec": spec});
    world.create(&RESOURCE_QUOTA, quota, at(0)).unwrap();
    world
}

fn status(world: &World) -> Value {
    value(world, &RESOURCE_QUOTA, &key("q"))["status"].take()
}

#[test]
fn what_is_there_is_counted_and_what_goes_or_ends_is_not() {
    let build =
        || world(json!({"hard": {"pods": "4", "count/pods": "9", "requests.cpu": "2", "configmaps": "3"}}));
    both_ways(&quotas(), at(1), build, |world| {
        let used = json!({"pods": "2", "count/pods": "2", "requests.cpu": "1", "configmaps": "0"});
        assert_eq!(status(world)["used"], used);
        assert_eq!(
            status(world)["hard"],
            json!({"pods": "4", "count/pods": "9", "requests.cpu": "2", "configmaps": "3"})
        );
        let mut later = world.clone();
        later.patch(&POD, &key("a"), &json!({"status": {"phase": "Succeeded"}})).unwrap();
        later.settle(&quotas(), at(2));
        let used = json!({"pods": "1", "count/pods": "2", "requests.cpu": "500m", "configmaps": "0"});
        assert_eq!(status(&later)["used"], used);
        later.vanish(&POD, &key("a"));
        later.vanish(&POD, &key("b"));
        later.settle(&quotas(), at(3));
        let used = json!({"pods": "0", "count/pods": "0", "requests.cpu": "0", "configmaps": "0"});
        assert_eq!(status(&later)["used"], used);
    });
}

#[test]
fn bounds_come_and_go_and_what_is_not_known_stays() {
    let build = || {
        let mut world = world(json!({"hard": {"pods": "4", "count/novels.example.com": "2"}}));
        let told = json!({"status": {"used": {"count/novels.example.com": "1", "secrets": "7"}, "hard": {"secrets": "9"}}});
        world.patch(&RESOURCE_QUOTA, &key("q"), &told).unwrap();
        world
    };
    both_ways(&quotas(), at(1), build, |world| {
        assert_eq!(status(world)["used"], json!({"pods": "2", "count/novels.example.com": "1"}));
        assert_eq!(status(world)["hard"], json!({"pods": "4", "count/novels.example.com": "2"}));
    });
}

#[test]
fn scopes_choose_and_a_pod_that_never_goes_stops_counting() {
    let build = || {
        let mut world = world(json!({"hard": {"pods": "4"}, "scopes": ["NotTerminating"]}));
        world.patch(&POD, &key("a"), &json!({"spec": {"activeDeadlineSeconds": 5}})).unwrap();
        world.patch(&POD, &key("b"), &json!({"spec": {"nodeName": "n1"}})).unwrap();
        world.delete(&POD, &key("b"), Some(10), at(0)).unwrap();
        world
    };
    both_ways(&quotas(), at(1), build, |world| {
        assert_eq!(status(world)["used"], json!({"pods": "1"}));
        let quota = Key::new(&RESOURCE_QUOTA, key("q"));
        assert_eq!(world.plan(&quotas(), &quota, at(1)).next, Next::At(at(21)));
        let mut later = world.clone();
        later.settle(&quotas(), at(21));
        assert_eq!(status(&later)["used"], json!({"pods": "0"}));
    });
}

#[test]
fn what_a_namespace_has_leads_to_its_quotas() {
    let world = world(json!({"hard": {"pods": "4"}}));
    let pod = crate::controller::View::get(&world, &POD.id, &key("a")).unwrap();
    assert_eq!(quotas_beside(&world, &pod), [Key::new(&RESOURCE_QUOTA, key("q"))]);
    let controller = quotas();
    let whole: Vec<String> = controller
        .watches()
        .iter()
        .filter(|watched| !watched.metadata_only)
        .map(|watched| watched.resource.id.to_string())
        .collect();
    assert_eq!(whole, ["resourcequotas", "pods", "services", "persistentvolumeclaims"]);
}
