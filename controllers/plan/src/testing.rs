//! What scenarios of several controllers share: instants, usual objects, and running one scenario in all ways.

use jiff::{Timestamp, ToSpan};
use serde_json::{Value, json};
use strata_model::object::{Object, ObjectKey};
use strata_model::resource::{ResourceType, builtin};

use crate::controller::Controller;
use crate::world::World;

/// The instant `seconds` after the beginning of all scenarios.
pub fn at(seconds: i64) -> Timestamp {
    "2026-11-30T20:00:00Z".parse::<Timestamp>().unwrap().checked_add(seconds.seconds()).unwrap()
}

/// The key of an object in namespace `n`.
pub fn key(name: &str) -> ObjectKey {
    ObjectKey::new("n", name)
}

/// A pod template with one container of an image, labelled `app`.
pub fn template(app: &str, image: &str) -> Value {
    json!({"metadata": {"labels": {"app": app}}, "spec": {"containers": [{"name": "c", "image": image}]}})
}

/// A ReplicaSet of namespace `n`, selecting its `app` label.
pub fn replica_set(name: &str, replicas: i32) -> Value {
    json!({"metadata": {"name": name, "namespace": "n"}, "spec": {"replicas": replicas,
        "selector": {"matchLabels": {"app": name}}, "template": template(name, "i:1")}})
}

/// A pod of namespace `n` with labels, as a client would create it.
pub fn pod(name: &str, labels: Value) -> Value {
    json!({"metadata": {"name": name, "namespace": "n", "labels": labels},
        "spec": {"containers": [{"name": "c", "image": "i:1"}], "schedulerName": "default-scheduler"}})
}

/// Says of a pod that it runs and is ready since an instant.
pub fn make_ready(world: &mut World, pod: &ObjectKey, since: Timestamp) {
    let since = strata_model::condition::rfc3339(since);
    let patch = json!({"spec": {"nodeName": "n1"}, "status": {"phase": "Running",
        "conditions": [{"type": "Ready", "status": "True", "lastTransitionTime": since}]}});
    world.patch(&builtin::POD, pod, &patch).unwrap();
}

/// The image of a pod's first container.
pub fn image_of(pod: &Object) -> String {
    pod.to_value().unwrap()["spec"]["containers"][0]["image"].as_str().unwrap().to_owned()
}

/// All objects of a type in a world, by key.
pub fn all(world: &World, resource: &ResourceType) -> Vec<std::sync::Arc<Object>> {
    crate::controller::View::list(world, &resource.id, "")
}

/// The names of all objects of a type.
pub fn names(world: &World, resource: &ResourceType) -> Vec<String> {
    all(world, resource).iter().map(|o| o.meta().name.clone()).collect()
}

/// An object as JSON; panics where there is none.
pub fn value(world: &World, resource: &ResourceType, key: &ObjectKey) -> Value {
    crate::controller::View::get(world, &resource.id, key).unwrap().to_value().unwrap()
}

/// Runs one scenario with whole plans, and again with every plan cut after its first write.
pub fn both_ways<C: Controller>(
    controller: &C,
    now: Timestamp,
    build: impl Fn() -> World,
    check: impl Fn(&World),
) {
    let mut whole = build();
    whole.settle(controller, now);
    check(&whole);
    let mut in_part = build();
    in_part.settle_in_part(controller, now);
    check(&in_part);
}
