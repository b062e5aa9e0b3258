//! Field sets: their text, their algebra, and those of values.

use serde_json::{Value, json};

use super::{World, containers, data};
use crate::managed::apply::ApplyError;
use crate::managed::fields::{FieldSet, FieldSetError};

fn set(value: Value) -> FieldSet {
    FieldSet::parse(&value).expect("a field set")
}

#[test]
fn text_has_one_form() {
    for (given, canonical) in [
        (json!({"f:a": {".": {}}}), json!({"f:a": {}})),
        (json!({"f:a": {"f:b": {".": {}, "f:c": {}}}}), json!({"f:a": {"f:b": {".": {}, "f:c": {}}}})),
        (json!({"k:{ \"b\":1, \"a\":\"x\" }": {}}), json!({"k:{\"a\":\"x\",\"b\":1}": {}})),
        (json!({"v: \"x\"": {}, "v:\"x\"": {}}), json!({"v:\"x\"": {}})),
        (json!({".": {}, "f:a": {}}), json!({"f:a": {}})),
        (json!({"i:007": {}}), json!({"i:7": {}})),
    ] {
        assert_eq!(set(given.clone()).into_value(), canonical, "{given}");
    }
}

#[test]
fn other_text_is_refused() {
    let refused = |value: Value| FieldSet::parse(&value).unwrap_err();
    assert_eq!(refused(json!([])), FieldSetError::NotATree);
    assert_eq!(refused(json!({"f:a": 1})), FieldSetError::NotATree);
    assert_eq!(refused(json!({"x:a": {}})), FieldSetError::BadStep { step: "x:a".to_owned() });
    for step in ["a", "k:[]", "k:{}", "v:", "i:x", "k:{\"a\":}"] {
        assert!(matches!(refused(json!({ step: {} })), FieldSetError::BadStep { .. }), "{step}");
    }
    let deep = (0..1000).fold(json!({}), |below, _| json!({"f:a": below}));
    assert_eq!(refused(deep), FieldSetError::TooDeep);
}

#[test]
fn sets_add_and_subtract() {
    let mut one = set(json!({"f:a": {}, "f:b": {"f:c": {}}}));
    one.add(&set(json!({"f:a": {"f:x": {}}, "f:b": {}})));
    assert_eq!(one, set(json!({"f:a": {".": {}, "f:x": {}}, "f:b": {".": {}, "f:c": {}}})));
    one.subtract(&set(json!({"f:a": {}, "f:b": {"f:c": {}}})));
    assert_eq!(one, set(json!({"f:a": {"f:x": {}}, "f:b": {}})));
    one.subtract(&set(json!({"f:a": {"f:x": {"f:y": {}}}, "f:b": {"f:c": {}}, "f:z": {}})));
    assert_eq!(one, set(json!({"f:a": {"f:x": {}}, "f:b": {}})), "what is not owned cannot be taken");
    one.subtract(&set(json!({"f:a": {"f:x": {}}, "f:b": {}})));
    assert!(one.is_empty());
}

#[test]
fn paths_read_well() {
    let fields = set(
        json!({"f:spec": {"f:containers": {"k:{\"containerPort\":80,\"protocol\":\"TCP\"}": {".": {}, "f:image": {}}},
        "f:finalizers": {"v:\"x\"": {}}, "i:3": {}}}),
    );
    assert_eq!(
        fields.paths(),
        [
            ".spec.containers[containerPort=80,protocol=\"TCP\"]",
            ".spec.containers[containerPort=80,protocol=\"TCP\"].image",
            ".spec.finalizers[=\"x\"]",
            ".spec[3]",
        ]
    );
}

#[test]
fn a_create_owns_what_it_brings() {
    let mut world = World::deployment();
    let mut object = containers(
        json!([{"name": "c", "image": "i", "resources": {}, "ports": [{"containerPort": 80}],
        "env": [{"name": "E", "valueFrom": {"fieldRef": {"apiVersion": "v1", "fieldPath": "metadata.name"}}}]}]),
    );
    object["metadata"] = json!({"name": "d", "namespace": "n", "uid": "u", "creationTimestamp": "2026-11-30T20:00:00Z",
        "generation": 1, "labels": {"app": "d"},
        "ownerReferences": [{"apiVersion": "v1", "kind": "X", "name": "x", "uid": "1"}]});
    object["spec"]["replicas"] = json!(1);
    object["spec"]["selector"] = json!({"matchLabels": {"app": "d"}});
    object["spec"]["strategy"] = json!({"type": "RollingUpdate", "rollingUpdate": {"maxSurge": "25%"}});
    object["spec"]["template"]["metadata"] = json!({"labels": {"app": "d"}});
    object["spec"]["template"]["spec"]["securityContext"] = json!({});
    object["status"] = json!({});
    world.update("kubectl-create", object);
    assert_eq!(
        world.updated("kubectl-create"),
        json!({
            "f:metadata": {
                "f:labels": {".": {}, "f:app": {}},
                "f:ownerReferences": {".": {}, "k:{\"uid\":\"1\"}": {}}},
            "f:spec": {
                "f:replicas": {}, "f:selector": {},
                "f:strategy": {"f:rollingUpdate": {".": {}, "f:maxSurge": {}}, "f:type": {}},
                "f:template": {
                    "f:metadata": {"f:labels": {".": {}, "f:app": {}}},
                    "f:spec": {
                        "f:containers": {"k:{\"name\":\"c\"}": {".": {},
                            "f:env": {".": {}, "k:{\"name\":\"E\"}": {".": {}, "f:name": {},
                                "f:valueFrom": {".": {}, "f:fieldRef": {}}}},
                            "f:image": {}, "f:name": {},
                            "f:ports": {".": {}, "k:{\"containerPort\":80,\"protocol\":\"TCP\"}": {".": {}, "f:containerPort": {}}},
                            "f:resources": {}}},
                        "f:securityContext": {}}}}
        })
    );
}

#[test]
fn an_apply_claims_what_it_says() {
    let mut world = World::deployment();
    let mut config =
        containers(json!([{"name": "c", "image": "i", "args": ["a"], "ports": [{"containerPort": 80}]}]));
    config["metadata"]["labels"] = json!({"app": "d"});
    config["metadata"]["finalizers"] = json!(["a.b/c"]);
    config["spec"]["selector"] = json!({"matchLabels": {"app": "d"}});
    world.apply("m", config).unwrap();
    assert_eq!(
        world.applied("m"),
        json!({
            "f:metadata": {"f:finalizers": {"v:\"a.b/c\"": {}}, "f:labels": {"f:app": {}}},
            "f:spec": {
                "f:selector": {},
                "f:template": {"f:spec": {"f:containers": {"k:{\"name\":\"c\"}": {".": {},
                    "f:args": {}, "f:image": {}, "f:name": {},
                    "f:ports": {"k:{\"containerPort\":80,\"protocol\":\"TCP\"}": {".": {}, "f:containerPort": {}}}}}}}}
        })
    );
}

#[test]
fn what_does_not_fit_the_type_is_told() {
    let text = |config: Value| World::deployment().apply("m", config).unwrap_err().to_string();
    let mut config = data(json!({}));
    config["bogus"] = json!(1);
    let error = World::config_map().apply("m", config).unwrap_err();
    assert_eq!(error.to_string(), ".bogus: field not declared in schema");
    assert_eq!(
        text(containers(json!([{"name": "c", "imag": "i"}]))),
        ".spec.template.spec.containers[name=\"c\"].imag: field not declared in schema"
    );
    assert_eq!(
        text(containers(json!([{"name": "c"}, {"name": "c"}]))),
        ".spec.template.spec.containers: duplicate entries for key [name=\"c\"]"
    );
    let error =
        World::deployment().apply("m", containers(json!([{"image": "c"}, {"bogus": 1, "name": "x"}])));
    assert!(matches!(error.unwrap_err(), ApplyError::NotTyped(problems) if problems.len() == 2));
}
