//! Tests of the patches: examples of each rule, and laws that hold for any object.

use std::sync::Arc;

use proptest::prelude::*;
use serde_json::{Value, json};

use super::json::{JsonPatch, JsonPatchError};
use super::strategic::apply;
use super::strategic::{self, StrategicError};
use super::three_way::three_way;
use crate::schema::node::Definition;
use crate::schema::registry;

fn pod() -> Arc<Definition> {
    registry::definition("", "v1", "Pod").expect("Pod")
}

fn deployment() -> Arc<Definition> {
    registry::definition("apps", "v1", "Deployment").expect("Deployment")
}

fn patched(object: Value, patch: Value) -> Value {
    apply(object, &patch, pod().node()).expect("the patch applies")
}

fn json_patched(object: Value, patch: Value) -> Result<Value, JsonPatchError> {
    JsonPatch::parse(patch)?.apply(object)
}

fn containers(names: &[&str]) -> Value {
    let list: Vec<Value> = names.iter().map(|name| json!({"name": name, "image": "i"})).collect();
    json!({"spec": {"containers": list}})
}

fn names(pod: &Value) -> Vec<&str> {
    let list = pod["spec"]["containers"].as_array().expect("a list");
    list.iter().map(|container| container["name"].as_str().expect("a name")).collect()
}

#[test]
fn json_patch_follows_the_standard_and_its_clients() {
    let object = json!({"a": {"b/c": [1, 2]}});
    let patch = json!([
        {"op": "add", "path": "/a/b~1c/-", "value": 3},
        {"op": "remove", "path": "/a/b~1c/0"},
        {"op": "replace", "path": "/a/new", "value": "x"},
        {"op": "test", "path": "/a/absent", "value": null},
        {"op": "copy", "from": "/a/new", "path": "/z"},
    ]);
    assert_eq!(json_patched(object, patch).unwrap(), json!({"a": {"b/c": [2, 3], "new": "x"}, "z": "x"}));
}

#[test]
fn json_patch_tells_what_was_wrong() {
    let one = |operation: Value| json_patched(json!({"a": 1}), json!([operation])).unwrap_err();
    let rejected = |operation| matches!(one(operation), JsonPatchError::Rejected { index: 0, .. });
    assert!(rejected(json!({"op": "test", "path": "/a", "value": 2})));
    assert!(rejected(json!({"op": "remove", "path": "/b"})));
    assert!(rejected(json!({"op": "add", "path": "/b/c", "value": 1})));
    assert!(rejected(json!({"op": "replace", "path": "/b/c", "value": 1})));
    assert!(matches!(
        one(json!({"op": "grow", "path": "/a"})),
        JsonPatchError::BadOperation { index: 0, .. }
    ));
    assert!(matches!(JsonPatch::parse(json!({})), Err(JsonPatchError::NotAList)));
    let many = vec![json!({"op": "test", "path": "/a", "value": 1}); super::json::MAX_OPERATIONS + 1];
    let error = JsonPatch::parse(Value::Array(many)).unwrap_err();
    assert!(matches!(error, JsonPatchError::TooManyOperations { count: 10_001 }));
}

#[test]
fn json_patch_cannot_blow_up_an_object() {
    let doubling: Vec<Value> =
        (0..64).map(|turn| json!({"op": "copy", "from": "/a", "path": format!("/a/{turn}")})).collect();
    let error = json_patched(json!({"a": {"x": "y".repeat(1024)}}), Value::Array(doubling)).unwrap_err();
    assert!(matches!(error, JsonPatchError::TooLarge { .. }), "{error}");
    let deep: Vec<Value> =
        (0..200).map(|depth| json!({"op": "add", "path": "/a".repeat(depth + 1), "value": {}})).collect();
    let error = json_patched(json!({}), Value::Array(deep)).unwrap_err();
    assert!(matches!(error, JsonPatchError::TooLarge { .. }), "{error}");
}

#[test]
fn strategic_lists_merge_by_key_with_new_elements_in_front() {
    let object = containers(&["c1", "c2"]);
    let patch = json!({"spec": {"containers": [{"name": "c3"}, {"name": "c2", "image": "new"}]}});
    let merged = patched(object, patch);
    assert_eq!(names(&merged), ["c3", "c1", "c2"]);
    assert_eq!(merged["spec"]["containers"][2], json!({"name": "c2", "image": "new"}));
}

#[test]
fn strategic_lists_without_a_key_are_replaced() {
    let object =
        json!({"spec": {"tolerations": [{"key": "a"}], "containers": [{"name": "c", "args": ["1", "2"]}]}});
    let patch =
        json!({"spec": {"tolerations": [{"key": "b"}], "containers": [{"name": "c", "args": ["3"]}]}});
    assert_eq!(patched(object, patch.clone()), patch);
}

#[test]
fn strategic_primitive_lists_unite() {
    let object = json!({"metadata": {"finalizers": ["a/1", "b/2"]}});
    let patch = json!({"metadata": {"finalizers": ["c/3", "b/2"]}});
    assert_eq!(patched(object.clone(), patch)["metadata"]["finalizers"], json!(["c/3", "a/1", "b/2"]));
    let patch = json!({"metadata": {"$deleteFromPrimitiveList/finalizers": ["a/1"]}});
    assert_eq!(patched(object.clone(), patch)["metadata"]["finalizers"], json!(["b/2"]));
    let patch = json!({"metadata": {"$setElementOrder/finalizers": ["b/2", "a/1"]}});
    assert_eq!(patched(object, patch)["metadata"]["finalizers"], json!(["b/2", "a/1"]));
}

#[test]
fn strategic_directives_on_elements() {
    let object = containers(&["a", "b", "c"]);
    let delete = json!({"spec": {"containers": [{"name": "b", "$patch": "delete"}]}});
    assert_eq!(names(&patched(object.clone(), delete)), ["a", "c"]);
    let replace = json!({"spec": {"containers": [{"name": "z"}, {"$patch": "replace"}]}});
    assert_eq!(names(&patched(object.clone(), replace)), ["z"]);
    let merge = json!({"spec": {"containers": [{"name": "b", "$patch": "merge", "image": "n"}]}});
    assert_eq!(patched(object.clone(), merge)["spec"]["containers"][1]["image"], "n");
    let order = json!({"spec": {
        "$setElementOrder/containers": [{"name": "c"}, {"name": "a"}],
        "containers": [{"name": "a", "image": "n"}],
    }});
    assert_eq!(names(&patched(object, order)), ["b", "c", "a"]);
}

#[test]
fn strategic_directives_on_structs() {
    let object = json!({"metadata": {"labels": {"a": "1", "b": "2"}}, "spec": {"hostNetwork": true}});
    let replace = json!({"metadata": {"labels": {"$patch": "replace", "c": "3"}}});
    assert_eq!(patched(object.clone(), replace)["metadata"]["labels"], json!({"c": "3"}));
    let delete = json!({"spec": {"$patch": "delete"}});
    assert_eq!(patched(object, delete)["spec"], json!({}));
    let object = json!({"spec": {"strategy": {"type": "RollingUpdate", "rollingUpdate": {"maxSurge": 1}}}});
    let patch = json!({"spec": {"strategy": {"$retainKeys": ["type"], "type": "Recreate"}}});
    let merged = apply(object, &patch, deployment().node()).unwrap();
    assert_eq!(merged, json!({"spec": {"strategy": {"type": "Recreate"}}}));
    let volumes = json!({"spec": {"volumes": [{"name": "v", "emptyDir": {}}]}});
    let patch = json!({"spec": {"volumes": [{"name": "v", "configMap": {"name": "c"}, "$retainKeys": ["name", "configMap"]}]}});
    let merged = patched(volumes, patch);
    assert_eq!(merged["spec"]["volumes"], json!([{"name": "v", "configMap": {"name": "c"}}]));
}

#[test]
fn strategic_null_deletes_and_new_structs_lose_directives() {
    let patch = json!({"spec": {"nodeName": null, "securityContext": {"runAsUser": 1, "fsGroup": null},
        "containers": [{"name": "a", "$patch": "delete"}, {"name": "b", "image": null}]}});
    let merged = patched(json!({"spec": {"nodeName": "n"}}), patch);
    assert_eq!(merged, json!({"spec": {"securityContext": {"runAsUser": 1}, "containers": [{"name": "b"}]}}));
}

#[test]
fn strategic_errors_name_the_place() {
    let fail = |patch: Value| apply(containers(&["a"]), &patch, pod().node()).unwrap_err();
    let error = fail(json!({"spec": {"containers": [{"image": "x"}]}}));
    assert_eq!(error.to_string(), r#"map: {"image":"x"} does not contain declared merge key: name"#);
    let error = fail(json!({"spec": {"$patch": "explode"}}));
    assert_eq!(error.to_string(), r#"unknown patch type "explode" found in "spec""#);
    let error = fail(json!({"spec": {"containers": ["x"]}}));
    assert!(matches!(error, StrategicError::ElementNotAnObject { .. }));
    let error = fail(json!({"spec": {"$retainKeys": ["a"], "nodeName": "n"}}));
    assert!(matches!(error, StrategicError::BadDirective { .. }));
    assert_eq!(strategic::apply(json!([]), &json!({}), pod().node()), Err(StrategicError::NotAnObject));
}

#[test]
fn three_way_is_empty_when_nothing_changes() {
    let wanted = json!({"metadata": {"name": "d", "annotations": {}, "creationTimestamp": null},
        "spec": {"replicas": 2, "strategy": {}, "template": {"spec": {
            "tolerations": [{"key": "k"}],
            "containers": [{"name": "c", "ports": [{"containerPort": 80}], "resources": {}},
                {"name": "q", "resources": {"limits": {"memory": "0.5Gi"}}}]}}},
        "status": {}});
    let live = json!({"metadata": {"name": "d", "uid": "u", "creationTimestamp": "now"},
        "spec": {"replicas": 2, "strategy": {"type": "RollingUpdate"}, "template": {"spec": {
            "tolerations": [{"key": "k", "operator": "Exists"}],
            "containers": [{"name": "c", "ports": [{"containerPort": 80, "protocol": "TCP"}], "image": "i"},
                {"name": "q", "resources": {"limits": {"memory": "512Mi"}}}]}}},
        "status": {"replicas": 2}});
    let deployment = deployment();
    assert_eq!(three_way(Some(&wanted), &wanted, &live, Some(deployment.node())), json!({}));
}

#[test]
fn three_way_deletes_what_was_applied_and_keeps_what_others_set() {
    let last = json!({"metadata": {"labels": {"mine": "1", "gone": "1"}}, "spec": {"containers": [{"name": "a"}, {"name": "b"}]}});
    let wanted =
        json!({"metadata": {"labels": {"mine": "2"}}, "spec": {"containers": [{"name": "a", "image": "n"}]}});
    let live = json!({"metadata": {"labels": {"mine": "1", "gone": "1", "other": "1"}},
        "spec": {"containers": [{"name": "a"}, {"name": "b"}, {"name": "sidecar"}]}});
    let patch = three_way(Some(&last), &wanted, &live, Some(pod().node()));
    let expected = json!({"metadata": {"labels": {"mine": "2", "gone": null}}, "spec": {
        "$setElementOrder/containers": [{"name": "a"}],
        "containers": [{"name": "a", "image": "n"}, {"name": "b", "$patch": "delete"}]}});
    assert_eq!(patch, expected);
    let merged = patched(live, patch);
    assert_eq!(names(&merged), ["a", "sidecar"]);
    assert_eq!(merged["metadata"]["labels"], json!({"mine": "2", "other": "1"}));
}

#[test]
fn three_way_of_ports_with_one_number_replaces_the_list() {
    let port = |protocol: &str| json!({"containerPort": 53, "protocol": protocol});
    let object = |ports: Value| json!({"spec": {"containers": [{"name": "c", "ports": ports}]}});
    let live = object(json!([port("TCP")]));
    let wanted = object(json!([port("TCP"), port("UDP")]));
    let patch = three_way(Some(&live), &wanted, &live, Some(pod().node()));
    let merged = patched(live, patch);
    assert_eq!(merged, wanted);
    assert_eq!(three_way(Some(&wanted), &wanted, &merged, Some(pod().node())), json!({}));
}

/// Any JSON value without `null`.
fn any_value() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        any::<bool>().prop_map(Value::from),
        (0..3).prop_map(Value::from),
        "[ab]".prop_map(Value::from)
    ];
    leaf.prop_recursive(4, 24, 4, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..3).prop_map(Value::from),
            prop::collection::btree_map("[a-d]", inner, 0..4)
                .prop_map(|members| Value::Object(members.into_iter().collect())),
        ]
    })
}

fn any_object() -> impl Strategy<Value = Value> {
    prop::collection::btree_map("[a-d]", any_value(), 0..4)
        .prop_map(|members| Value::Object(members.into_iter().collect()))
}

fn by_key(key: &'static str, element: impl Strategy<Value = Value>) -> impl Strategy<Value = Value> {
    let element = prop::collection::btree_map("[a-d]", element, 0..4).prop_shuffle_values();
    element.prop_map(move |elements| {
        let named = elements.into_iter().map(|(name, mut element)| {
            element[key] = json!(name);
            element
        });
        Value::Array(named.collect())
    })
}

/// Gives the entries of a map in any order.
trait ShuffleValues: Strategy<Value = std::collections::BTreeMap<String, Value>> + Sized {
    fn prop_shuffle_values(self) -> impl Strategy<Value = Vec<(String, Value)>> {
        self.prop_map(|entries| entries.into_iter().collect::<Vec<_>>()).prop_shuffle()
    }
}

impl<S: Strategy<Value = std::collections::BTreeMap<String, Value>>> ShuffleValues for S {}

fn optional(
    name: &'static str,
    value: impl Strategy<Value = Value>,
) -> impl Strategy<Value = Option<(String, Value)>> {
    prop::option::of(value.prop_map(move |value| (name.to_owned(), value)))
}

fn object(fields: Vec<Option<(String, Value)>>) -> Value {
    Value::Object(fields.into_iter().flatten().collect())
}

fn text() -> impl Strategy<Value = Value> {
    "[xy]".prop_map(Value::from)
}

fn any_container() -> impl Strategy<Value = Value> {
    let env = by_key("name", optional("value", text()).prop_map(|value| object(vec![value])));
    let port = optional("protocol", text()).prop_map(|protocol| object(vec![protocol]));
    let ports = prop::collection::vec((80..83, port), 0..3).prop_map(|ports| {
        let numbered = ports.into_iter().map(|(number, mut port)| {
            port["containerPort"] = json!(number);
            port
        });
        Value::Array(numbered.collect())
    });
    let args = prop::collection::vec(text(), 0..3).prop_map(Value::from);
    (optional("image", text()), optional("env", env), optional("ports", ports), optional("args", args))
        .prop_map(|(a, b, c, d)| object(vec![a, b, c, d]))
}

/// Pods that use every merging rule: keyed lists, plain sets, one-of structs, lists that are replaced, maps.
fn any_pod() -> impl Strategy<Value = Value> {
    let volume = prop_oneof![
        Just(json!({"emptyDir": {}})),
        text().prop_map(|name| json!({"configMap": {"name": name}})),
        text().prop_map(|name| json!({"secret": {"secretName": name}})),
    ];
    let finalizers =
        prop::collection::btree_set("[a-d]", 0..4).prop_map(|set| set.into_iter().collect::<Vec<_>>());
    let finalizers = finalizers.prop_shuffle().prop_map(Value::from);
    let labels = prop::collection::btree_map("[a-c]", text(), 0..3)
        .prop_map(|members| Value::Object(members.into_iter().collect()));
    let toleration = optional("key", text()).prop_map(|key| object(vec![key]));
    let tolerations = prop::collection::vec(toleration, 0..3).prop_map(Value::from);
    let metadata = (optional("labels", labels), optional("finalizers", finalizers))
        .prop_map(|(a, b)| object(vec![a, b]));
    let spec = (
        optional("containers", by_key("name", any_container())),
        optional("volumes", by_key("name", volume)),
        optional("tolerations", tolerations),
        optional("nodeName", text()),
    )
        .prop_map(|(a, b, c, d)| object(vec![a, b, c, d]));
    (optional("metadata", metadata), optional("spec", spec)).prop_map(|(a, b)| object(vec![a, b]))
}

proptest! {
    #[test]
    fn applying_any_patch_never_panics(old in any_pod(), patch in any_object(), operations in any_value()) {
        let schema = pod();
        let _: Result<_, _> = apply(old.clone(), &patch, schema.node());
        let _: Result<_, _> = json_patched(old, operations);
    }

    #[test]
    fn strategic_patches_are_idempotent(old in any_pod(), patch in any_pod()) {
        let schema = pod();
        let once = apply(old, &patch, schema.node()).unwrap();
        prop_assert_eq!(apply(once.clone(), &patch, schema.node()).unwrap(), once);
    }

    #[test]
    fn three_way_reaches_what_is_wanted(last in any_pod(), wanted in any_pod(), live in any_pod()) {
        let schema = pod();
        let patch = three_way(Some(&last), &wanted, &live, Some(schema.node()));
        let live = apply(live, &patch, schema.node()).unwrap();
        prop_assert_eq!(three_way(Some(&wanted), &wanted, &live, Some(schema.node())), json!({}), "{}", live);
    }

    #[test]
    fn three_way_from_what_was_applied_gives_what_is_wanted(last in any_pod(), wanted in any_pod()) {
        let schema = pod();
        let patch = three_way(Some(&last), &wanted, &last, Some(schema.node()));
        let live = apply(last, &patch, schema.node()).unwrap();
        prop_assert_eq!(live, wanted);
    }

    #[test]
    fn three_way_without_schema_reaches_what_is_wanted(last in any_object(), wanted in any_object(), live in any_object()) {
        let patch = three_way(Some(&last), &wanted, &live, None);
        let mut live = live;
        strata_model::merge::apply(&mut live, &patch);
        prop_assert_eq!(three_way(Some(&wanted), &wanted, &live, None), json!({}));
    }
}
