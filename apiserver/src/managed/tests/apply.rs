//! Applies: merging, removal by omission, sharing, conflicts, force, and kubectl's way from client-side apply.

use serde_json::{Value, json};

use super::{World, container_names, containers, data};
use crate::managed::apply::{ApplyError, LAST_APPLIED};
use crate::managed::entries::{Managed, Operation, Wish};

#[test]
fn a_repeated_apply_changes_nothing() {
    let mut world = World::config_map();
    world.apply("m", data(json!({"a": "1"}))).unwrap();
    let (object, managed) = (world.object().clone(), world.managed.clone());
    world.apply("m", data(json!({"a": "1"}))).unwrap();
    assert_eq!((world.object(), &world.managed), (&object, &managed), "times included");
    world.apply("m", data(json!({"a": "2"}))).unwrap();
    assert_eq!(world.time("m"), "1970-01-01T00:00:03Z");
}

#[test]
fn omitted_fields_go_unless_somebody_owns_them() {
    let mut world = World::config_map();
    world.apply("one", data(json!({"a": "1", "b": "2", "c": "3"}))).unwrap();
    world.apply("two", data(json!({"b": "2"}))).unwrap();
    assert_eq!(world.applied("two"), json!({"f:data": {"f:b": {}}}), "the same value is shared");
    world.apply("one", data(json!({"c": "3"}))).unwrap();
    assert_eq!(world.object()["data"], json!({"b": "2", "c": "3"}));
    world.apply("two", json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "c"}})).unwrap();
    assert_eq!(world.object()["data"], json!({"c": "3"}));
    assert_eq!(world.applied("two"), Value::Null, "an entry with nothing left goes");
}

#[test]
fn what_nobody_owns_stays_when_an_owner_leaves() {
    let mut world = World::deployment();
    world.apply("one", containers(json!([{"name": "c", "image": "i", "args": ["x"]}]))).unwrap();
    // Defaults come from the server and are nobody's.
    world.object.as_mut().unwrap()["spec"]["template"]["spec"]["containers"][0]["imagePullPolicy"] =
        json!("Always");
    world.object.as_mut().unwrap()["spec"]["replicas"] = json!(1);
    world.apply("one", containers(json!([{"name": "c", "image": "i"}]))).unwrap();
    let container = &world.object()["spec"]["template"]["spec"]["containers"][0];
    assert_eq!(*container, json!({"name": "c", "image": "i", "imagePullPolicy": "Always"}));
    assert_eq!(world.object()["spec"]["replicas"], 1);
}

#[test]
fn a_dropped_struct_takes_its_defaults_along() {
    let mut world = World::deployment();
    let probe = json!({"httpGet": {"port": 80}});
    world.apply("m", containers(json!([{"name": "c", "image": "i", "livenessProbe": probe}]))).unwrap();
    world.object.as_mut().unwrap()["spec"]["template"]["spec"]["containers"][0]["livenessProbe"]["periodSeconds"] =
        json!(10);
    world.apply("m", containers(json!([{"name": "c", "image": "i"}]))).unwrap();
    assert_eq!(
        world.object()["spec"]["template"]["spec"]["containers"],
        json!([{"name": "c", "image": "i"}])
    );
}

#[test]
fn elements_are_matched_by_key() {
    let mut world = World::deployment();
    world
        .apply("one", containers(json!([{"name": "a", "image": "1"}, {"name": "b", "image": "1"}])))
        .unwrap();
    world
        .apply("two", containers(json!([{"name": "c", "image": "1"}, {"name": "b", "args": ["x"]}])))
        .unwrap();
    assert_eq!(container_names(world.object()), ["a", "c", "b"]);
    world.apply("one", containers(json!([{"name": "b", "image": "2"}]))).unwrap();
    let wanted = json!([{"name": "c", "image": "1"}, {"name": "b", "image": "2", "args": ["x"]}]);
    assert_eq!(world.object()["spec"]["template"]["spec"]["containers"], wanted);
    world.apply("one", containers(json!([]))).unwrap();
    let wanted = json!([{"name": "c", "image": "1"}, {"name": "b", "args": ["x"]}]);
    assert_eq!(
        world.object()["spec"]["template"]["spec"]["containers"],
        wanted,
        "the element is shared, its image was not"
    );
}

#[test]
fn elements_follow_the_order_of_the_apply() {
    let names = |list: &[&str]| containers(list.iter().map(|name| json!({"name": name})).collect());
    for (live, config, merged) in [
        (&["a", "b", "c"][..], &["c", "a"][..], &["b", "c", "a"][..]),
        (&["a", "b"], &["x", "b"], &["a", "x", "b"]),
        (&["a", "b", "c"], &["b"], &["a", "b", "c"]),
        (&["a", "b"], &["b", "a"], &["b", "a"]),
        (&[], &["x", "y"], &["x", "y"]),
        (&["a"], &["x"], &["a", "x"]),
    ] {
        let mut world = World::deployment();
        world.update("u", names(live));
        world.force("m", names(config));
        assert_eq!(container_names(world.object()), merged, "{live:?} + {config:?}");
    }
}

#[test]
fn a_port_without_protocol_is_tcp() {
    let ports = |list: Value| containers(json!([{"name": "c", "ports": list}]));
    let mut world = World::deployment();
    world
        .apply("one", ports(json!([{"containerPort": 80}, {"containerPort": 80, "protocol": "UDP"}])))
        .unwrap();
    world.apply("two", ports(json!([{"containerPort": 80, "protocol": "TCP", "name": "http"}]))).unwrap();
    let wanted = json!([{"containerPort": 80, "protocol": "TCP", "name": "http"}, {"containerPort": 80, "protocol": "UDP"}]);
    assert_eq!(world.object()["spec"]["template"]["spec"]["containers"][0]["ports"], wanted);
}

#[test]
fn sets_are_shared_by_element_and_atomics_as_one() {
    let mut world = World::config_map();
    let finalizers = |list: Value| json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "c", "finalizers": list}});
    world.apply("one", finalizers(json!(["x/a", "x/b"]))).unwrap();
    world.apply("two", finalizers(json!(["x/c"]))).unwrap();
    assert_eq!(world.object()["metadata"]["finalizers"], json!(["x/a", "x/b", "x/c"]));
    world.apply("one", finalizers(json!(["x/b"]))).unwrap();
    assert_eq!(world.object()["metadata"]["finalizers"], json!(["x/b", "x/c"]));
    let mut world = World::deployment();
    let args = |list: Value| containers(json!([{"name": "c", "args": list}]));
    world.apply("one", args(json!(["a"]))).unwrap();
    let error = world.apply("two", args(json!(["a", "b"]))).unwrap_err();
    let wanted = "Apply failed with 1 conflict: conflict with \"one\": .spec.template.spec.containers[name=\"c\"].args";
    assert_eq!(error.to_string(), wanted);
}

#[test]
fn conflicts_name_the_owner_and_the_field() {
    let mut world = World::config_map();
    world.apply("m1", data(json!({"a": "1"}))).unwrap();
    let before = (world.object().clone(), world.managed.clone());
    let error = world.apply("m2", data(json!({"a": "2"}))).unwrap_err();
    assert_eq!(error.to_string(), "Apply failed with 1 conflict: conflict with \"m1\": .data.a");
    assert_eq!((world.object(), &world.managed), (&before.0, &before.1), "nothing was done");
    let mut world = World::deployment();
    let mut object = containers(json!([{"name": "c", "image": "1"}]));
    object["spec"]["replicas"] = json!(1);
    world.update("m1", object.clone());
    object["status"] = json!({"replicas": 1});
    world.update_as("m1", "status", object.clone());
    object["spec"]["replicas"] = json!(2);
    object["spec"]["template"]["spec"]["containers"][0]["image"] = json!("2");
    object["status"] = json!({"replicas": 2});
    let error = world.apply("m2", object).unwrap_err();
    let wanted = "Apply failed with 3 conflicts: conflicts with \"m1\" using apps/v1:\n- .spec.replicas\n\
                  - .spec.template.spec.containers[name=\"c\"].image\n\
                  conflicts with \"m1\" with subresource \"status\" using apps/v1:\n- .status.replicas";
    assert_eq!(error.to_string(), wanted);
    let ApplyError::Conflicts(conflicts) = error else { panic!("conflicts") };
    assert_eq!(conflicts[0].field, ".spec.replicas");
}

#[test]
fn force_takes_from_others() {
    let mut world = World::config_map();
    world.apply("m1", data(json!({"a": "1", "b": "1"}))).unwrap();
    world.force("m2", data(json!({"a": "2"})));
    assert_eq!(world.object()["data"], json!({"a": "2", "b": "1"}));
    assert_eq!(world.applied("m1"), json!({"f:data": {"f:b": {}}}));
    let error = world.apply("m1", data(json!({"a": "1", "b": "1"}))).unwrap_err();
    assert_eq!(error.to_string(), "Apply failed with 1 conflict: conflict with \"m2\": .data.a");
    world.apply("m1", data(json!({"a": "2", "b": "1"}))).unwrap();
    assert_eq!(world.applied("m1"), json!({"f:data": {"f:a": {}, "f:b": {}}}));
}

#[test]
fn ones_own_updates_conflict_with_ones_applies() {
    let mut world = World::config_map();
    world.update("m", data(json!({"a": "1"})));
    let error = world.apply("m", data(json!({"a": "2"}))).unwrap_err();
    assert_eq!(error.to_string(), "Apply failed with 1 conflict: conflict with \"m\" using v1: .data.a");
    world.force("m", data(json!({"a": "2"})));
    assert_eq!(world.updated("m"), json!({"f:data": {}}), "the map itself was created by the update");
}

#[test]
fn the_first_apply_finds_an_owner_of_all_that_was_there() {
    let mut world = World::config_map();
    world.object = Some(data(json!({"a": "1", "b": "1"})));
    let error = world.apply("m", data(json!({"a": "2"}))).unwrap_err();
    assert_eq!(
        error.to_string(),
        "Apply failed with 1 conflict: conflict with \"before-first-apply\" using v1: .data.a"
    );
    world.apply("m", data(json!({"a": "1"}))).unwrap();
    let wanted = json!({"f:data": {".": {}, "f:a": {}, "f:b": {}}});
    assert_eq!(world.fields("before-first-apply", Operation::Update), wanted);
}

#[test]
fn who_applies_but_a_name_leaves_no_trace() {
    let mut world = World::config_map();
    world.object =
        Some(json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "c"}, "data": {"a": "1"}}));
    world.apply("m", json!({"metadata": {"name": "c"}})).unwrap();
    assert!(world.managed.is_empty());
}

#[test]
fn a_status_is_applied_apart() {
    let mut world = World::deployment();
    world.apply("m", json!({"metadata": {"name": "d"}, "spec": {"replicas": 3}})).unwrap();
    let status = |n: i32| {
        json!({"metadata": {"name": "d"}, "status": {"replicas": n,
        "conditions": [{"type": "Available", "status": "True"}]}})
    };
    world.apply_as("m", "status", status(1), false).unwrap();
    assert_eq!(world.managed.entries().len(), 2);
    assert_eq!(world.object()["spec"]["replicas"], 3);
    let error = world.apply_as("other", "status", status(2), false).unwrap_err();
    let wanted =
        "Apply failed with 1 conflict: conflict with \"m\" with subresource \"status\": .status.replicas";
    assert_eq!(error.to_string(), wanted);
    world.apply_as("m", "status", json!({"metadata": {"name": "d"}}), false).unwrap();
    assert_eq!(world.object().get("status"), None);
    assert_eq!(world.applied("m"), json!({"f:spec": {"f:replicas": {}}}));
}

#[test]
fn kubectl_takes_over_what_it_applied_from_the_clients_side() {
    let annotated = |a: &str, b: &str| {
        let mut object = data(json!({"a": a, "b": b}));
        object["metadata"]["annotations"] =
            json!({LAST_APPLIED: data(json!({"a": "1", "b": "1"})).to_string()});
        object
    };
    let mut world = World::config_map();
    world.update("kubectl-client-side-apply", annotated("1", "1"));
    world.apply("kubectl", data(json!({"a": "2", "b": "1"}))).unwrap();
    assert_eq!(world.object()["data"], json!({"a": "2", "b": "1"}));
    let annotation = world.object()["metadata"]["annotations"][LAST_APPLIED].as_str().unwrap();
    assert_eq!(serde_json::from_str::<Value>(annotation).unwrap(), data(json!({"a": "2", "b": "1"})));
    // What somebody changed since is theirs; and only kubectl has this right.
    let mut world = World::config_map();
    world.update("kubectl-client-side-apply", annotated("1", "1"));
    world.update("edit", annotated("1", "9"));
    let error = world.apply("kubectl", data(json!({"a": "2", "b": "2"}))).unwrap_err();
    assert_eq!(error.to_string(), "Apply failed with 1 conflict: conflict with \"edit\" using v1: .data.b");
    assert!(world.apply("helm", data(json!({"a": "2"}))).is_err());
}

#[test]
fn what_a_client_side_apply_owned_goes_to_the_applier() {
    use crate::managed::migrate::{CLIENT_SIDE, moved};
    let mut object = data(json!({"a": "1", "b": "1"}));
    object["metadata"]["annotations"] = json!({LAST_APPLIED: data(json!({"a": "1", "b": "1"})).to_string()});
    let mut world = World::config_map();
    world.update(CLIENT_SIDE, object);
    world.apply("strata", data(json!({"a": "2"}))).unwrap();
    assert_eq!(world.object()["data"], json!({"a": "2", "b": "1"}), "b is the client-side applier's still");
    let mut stored = world.object().clone();
    world.managed.clone().put(&mut stored);
    stored["metadata"]["managedFields"] = moved(&stored, &world.writer("strata", "")).unwrap();
    assert_eq!(moved(&stored, &world.writer("strata", "")), None);
    let Wish::Rewrite(managed) = Managed::wish(&mut stored) else { panic!("readable") };
    world.managed = managed;
    assert_eq!(world.managed.entries().len(), 2, "the applier, and the keeper of the annotation");
    world.apply("strata", data(json!({"a": "2"}))).unwrap();
    assert_eq!(world.object()["data"], json!({"a": "2"}));
    let annotation = world.object()["metadata"]["annotations"][LAST_APPLIED].as_str().unwrap();
    assert_eq!(serde_json::from_str::<Value>(annotation).unwrap(), data(json!({"a": "2"})));
}

#[test]
fn objects_of_unknown_types_merge_by_key_and_replace_lists() {
    use crate::managed::apply::{self, Apply};
    use crate::managed::shape::Schema;
    let world = World::config_map();
    let config = json!({"metadata": {"name": "w"}, "spec": {"size": 1, "list": [{"a": 1}]}});
    let of = |config, manager| Apply {
        schema: Schema::UNKNOWN,
        config,
        writer: world.writer(manager, ""),
        force: false,
    };
    let (object, mut managed): (Value, Managed) = apply::create(&of(&config, "one")).unwrap();
    let entry = managed.entries()[0].fields.clone().into_value();
    assert_eq!(entry, json!({"f:spec": {".": {}, "f:list": {}, "f:size": {}}}));
    let more = json!({"metadata": {"name": "w"}, "spec": {"other": true}});
    let object = apply::apply(&of(&more, "two"), &object, &mut managed).unwrap();
    assert_eq!(object["spec"], json!({"size": 1, "list": [{"a": 1}], "other": true}));
}
