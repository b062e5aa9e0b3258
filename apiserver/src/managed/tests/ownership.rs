//! Ownership over updates and patches, and what clients may do to it.

use serde_json::{Value, json};

use super::{World, containers, data};
use crate::managed::entries::{ANCIENT, MAX_UPDATERS, Managed, Wish};

#[test]
fn an_update_takes_what_it_changes() {
    let mut world = World::config_map();
    world.apply("m", data(json!({"a": "1", "b": "1"}))).unwrap();
    world.update("u", data(json!({"a": "2", "b": "1", "c": "1"})));
    assert_eq!(world.applied("m"), json!({"f:data": {"f:b": {}}}));
    assert_eq!(world.updated("u"), json!({"f:data": {"f:a": {}, "f:c": {}}}));
    world.update("u", data(json!({"a": "2"})));
    assert_eq!(world.applied("m"), Value::Null, "nobody owns what is gone");
    assert_eq!(world.updated("u"), json!({"f:data": {"f:a": {}}}));
}

#[test]
fn an_update_that_changes_nothing_moves_nothing() {
    let mut world = World::config_map();
    world.update("u", data(json!({"a": "1"})));
    let before = world.managed.clone();
    world.update("v", data(json!({"a": "1"})));
    assert_eq!(world.managed, before);
}

#[test]
fn updates_of_one_manager_add_up_by_subresource() {
    let mut world = World::deployment();
    let mut object = containers(json!([{"name": "c", "image": "1"}]));
    world.update("u", object.clone());
    object["spec"]["replicas"] = json!(2);
    world.update_as("u", "scale", object.clone());
    object["status"] = json!({"replicas": 2, "conditions": [{"type": "Available", "status": "True"}]});
    world.update_as("u", "status", object.clone());
    object["spec"]["paused"] = json!(true);
    world.update("u", object);
    let of = |part: &str| {
        let mut entries = world.managed.entries().iter().filter(|entry| entry.subresource == part);
        entries.next().map(|entry| entry.fields.clone().into_value()).unwrap()
    };
    assert_eq!(of("scale"), json!({"f:spec": {"f:replicas": {}}}));
    assert_eq!(
        of("status"),
        json!({"f:status": {"f:conditions": {".": {}, "k:{\"type\":\"Available\"}": {".": {}, "f:status": {}, "f:type": {}}},
            "f:replicas": {}}})
    );
    assert_eq!(of("")["f:spec"]["f:paused"], json!({}));
    assert_eq!(world.managed.entries().len(), 3);
}

#[test]
fn an_object_that_nobody_manages_stays_so_until_an_apply() {
    let mut world = World::config_map();
    world.object = Some(data(json!({"a": "1"})));
    world.update("u", data(json!({"a": "2"})));
    assert!(world.managed.is_empty());
}

#[test]
fn at_most_ten_updaters_are_kept() {
    let mut world = World::config_map();
    let mut members = json!({});
    for index in 0..15 {
        members[format!("k{index:02}")] = json!("v");
        world.update(&format!("u{index:02}"), data(members.clone()));
    }
    world.apply("applier", data(json!({"k00": "v"}))).unwrap();
    let updaters = world.managed.entries().len() - 1;
    assert_eq!(updaters, MAX_UPDATERS);
    let ancient = world.updated(ANCIENT);
    let wanted = json!({"f:data": {".": {}, "f:k00": {}, "f:k01": {}, "f:k02": {}, "f:k03": {}, "f:k04": {}, "f:k05": {}}});
    assert_eq!(ancient, wanted);
    assert_eq!(world.time(ANCIENT), "1970-01-01T00:00:06Z");
    assert_eq!(world.updated("u06"), json!({"f:data": {"f:k06": {}}}));
}

#[test]
fn clients_may_clear_and_rewrite_the_managers() {
    let with = |entries: Value| json!({"metadata": {"name": "c", "managedFields": entries}});
    let wish = |entries: Value| Managed::wish(&mut with(entries));
    assert_eq!(Managed::wish(&mut json!({"metadata": {}})), Wish::Keep);
    assert_eq!(wish(json!([])), Wish::Rewrite(Managed::default()));
    assert_eq!(wish(json!([{}])), Wish::Rewrite(Managed::default()));
    let entry = |operation: &str, fields: Value| {
        json!({"manager": "m", "operation": operation, "apiVersion": "v1",
        "time": "2026-11-30T20:00:00Z", "fieldsType": "FieldsV1", "fieldsV1": fields})
    };
    for unread in [
        json!([entry("Grow", json!({}))]),
        json!([entry("Apply", json!({"nonsense": {}}))]),
        json!([{"manager": "m", "operation": "Apply"}]),
        json!([entry("Apply", json!({}))]),
        json!(["x", 1]),
        json!("x"),
    ] {
        assert_eq!(wish(unread.clone()), Wish::Keep, "{unread}");
    }
    let two = json!([
        entry("Apply", json!({"f:data": {"f:a": {".": {}}}})),
        entry("Apply", json!({"f:data": {"f:b": {}}}))
    ]);
    let Wish::Rewrite(managed) = wish(two) else { panic!("rewritten") };
    let mut object = json!({"metadata": {"name": "c"}});
    managed.put(&mut object);
    let wanted = json!([entry("Apply", json!({"f:data": {"f:a": {}, "f:b": {}}}))]);
    assert_eq!(object["metadata"]["managedFields"], wanted, "entries of one manager are one");
}

#[test]
fn managers_are_stored_in_order_and_read_back() {
    let mut world = World::config_map();
    world.update("u2", data(json!({"a": "1"})));
    world.update("u1", data(json!({"a": "1", "b": "1"})));
    world.apply("z", data(json!({"c": "1"}))).unwrap();
    world.apply("a", data(json!({"d": "1"}))).unwrap();
    let mut object = world.object().clone();
    world.managed.clone().put(&mut object);
    let listed = object["metadata"]["managedFields"].as_array().unwrap();
    let names: Vec<&str> = listed.iter().map(|entry| entry["manager"].as_str().unwrap()).collect();
    assert_eq!(names, ["z", "a", "u2", "u1"]);
    let again = Managed::take(&mut object);
    assert!(again.owns_same(&world.managed));
    assert_eq!(object["metadata"].get("managedFields"), None);
}

#[test]
fn an_update_may_follow_a_reordered_list_without_owning_it() {
    let mut world = World::deployment();
    world.update("u", containers(json!([{"name": "a"}, {"name": "b"}])));
    let before = world.managed.clone();
    world.update("v", containers(json!([{"name": "b"}, {"name": "a"}])));
    assert_eq!(world.managed, before);
}
