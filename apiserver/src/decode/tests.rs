//! Tests of decoding: texts, duplicates, limits, and checks against the schema.

use proptest::prelude::*;
use serde_json::{Value, json};

use super::check::{FaultKind, check};
use super::scalar;
use super::text::{self, TextError};
use super::{MAX_DEPTH, depth_of};
use crate::schema::registry;

fn checked(group: &str, kind: &str, mut value: Value) -> (Value, Vec<String>) {
    let definition = registry::definition(group, "v1", kind).expect("a built-in type");
    let faults = check(definition.node(), &mut value);
    (value, faults.iter().map(ToString::to_string).collect())
}

fn from_yaml(text: &str) -> Value {
    text::yaml(text).unwrap_or_else(|error| panic!("{error}")).value
}

#[test]
fn json_tells_duplicates_by_path_and_keeps_the_last() {
    let document = text::json(br#"{"data":{"a":"1","a":"2"},"l":[{"x":1},{"x":1,"x":2,"x":3}]}"#).unwrap();
    assert_eq!(document.value, json!({"data": {"a": "2"}, "l": [{"x": 1}, {"x": 3}]}));
    assert_eq!(document.duplicates, ["data.a", "l[1].x"]);
}

#[test]
fn json_errors_have_a_place() {
    let error = text::json(b"{\n  \"a\": }").unwrap_err();
    assert_eq!(error.to_string(), "expected value at line 2 column 8");
    assert!(text::json(b"{} x").is_err());
    let deep = "[".repeat(MAX_DEPTH + 1) + &"]".repeat(MAX_DEPTH + 1);
    assert!(text::json(deep.as_bytes()).is_err());
}

#[test]
fn yaml_reads_manifests_as_their_writers_expect() {
    let value = from_yaml(
        "a: yes\nb: off\nc: 0644\nd: 0o644\ne: '0644'\nf: 1.5\ng: ~\nh: 12e3\n8080: x\ni: |\n  text\nj: 2026-01-01\nk: 1Gi\n",
    );
    let expected = json!({"a": true, "b": false, "c": 420, "d": 420, "e": "0644", "f": 1.5, "g": null, "h": 12000.0,
        "8080": "x", "i": "text\n", "j": "2026-01-01", "k": "1Gi"});
    assert_eq!(value, expected);
    assert_eq!(from_yaml("base: &b {x: 1}\nuse:\n  <<: *b\n  y: 2\n")["use"], json!({"x": 1, "y": 2}));
    assert_eq!(from_yaml(r#"{"json": ["is", "yaml"]}"#), json!({"json": ["is", "yaml"]}));
}

#[test]
fn yaml_tells_duplicates_and_places() {
    let document = text::yaml("data:\n  a: 1\n  a: 2\n").unwrap();
    assert_eq!((document.value, document.duplicates), (json!({"data": {"a": 2}}), vec!["data.a".to_owned()]));
    let error = text::yaml("a: 1\nb: [1, 2\nc: 3\n").unwrap_err();
    assert!(matches!(error, TextError::Yaml { line: 2..=4, column: 1.., .. }), "{error}");
    let error = text::yaml("a:\n\t- b\n").unwrap_err();
    assert!(matches!(error, TextError::Yaml { line: 2, .. }), "{error}");
}

#[test]
fn yaml_streams_give_all_documents() {
    let documents = text::yaml_documents("a: 1\n---\n# nothing\n---\nb: 2\n").unwrap();
    let values: Vec<Value> = documents.into_iter().map(|document| document.value).collect();
    assert_eq!(values, [json!({"a": 1}), json!({"b": 2})]);
    assert!(text::yaml("a: 1\n---\nb: 2\n").is_err());
}

#[test]
fn yaml_bombs_are_refused() {
    let mut bomb = "a0: &a0 [x,x,x,x,x,x,x,x,x,x]\n".to_owned();
    for level in 1..9 {
        let alias = format!("*a{},", level - 1).repeat(10);
        bomb.push_str(&format!("a{level}: &a{level} [{alias}]\n"));
    }
    assert!(text::yaml(&bomb).is_err());
    let deep = "[".repeat(MAX_DEPTH + 1) + &"]".repeat(MAX_DEPTH + 1);
    assert!(text::yaml(&deep).is_err());
    let nested: String = (0..=MAX_DEPTH).map(|level| format!("{}a:\n", " ".repeat(level))).collect();
    assert!(text::yaml(&nested).is_err());
}

#[test]
fn unknown_fields_are_pruned_and_told() {
    let pod = json!({"metadata": {"name": "p", "foo": 1}, "spec": {"containers": [{"name": "c", "imag": "x"}]}, "Spec": 1});
    let (value, faults) = checked("", "Pod", pod);
    assert_eq!(value, json!({"metadata": {"name": "p"}, "spec": {"containers": [{"name": "c"}]}}));
    let expected = [
        r#"unknown field "Spec""#,
        r#"unknown field "metadata.foo""#,
        r#"unknown field "spec.containers[0].imag""#,
    ];
    assert_eq!(faults, expected);
}

#[test]
fn wrong_types_are_told_with_both_types() {
    let deployment = json!({"spec": {"replicas": "3", "paused": 1, "minReadySeconds": 1e10, "template": [], "selector": {"matchLabels": {"a": 1}}}});
    let (_, faults) = checked("apps", "Deployment", deployment);
    let expected = [
        r#"spec.minReadySeconds: "10000000000.0" is not int32"#,
        "json: cannot unmarshal number into field spec.paused of type bool",
        "json: cannot unmarshal string into field spec.replicas of type int32",
        "json: cannot unmarshal number into field spec.selector.matchLabels.a of type string",
        "json: cannot unmarshal array into field spec.template of type object",
    ];
    assert_eq!(faults, expected);
    assert_eq!(checked("", "Pod", json!([])).1, ["json: cannot unmarshal array into a value of type object"]);
}

#[test]
fn null_counts_as_absent_or_empty() {
    let (value, faults) = checked(
        "",
        "Pod",
        json!({"metadata": {"creationTimestamp": null, "labels": {"a": null}},
        "spec": {"containers": [null, {"name": "c", "resources": null, "args": [null]}]}, "status": null}),
    );
    assert!(faults.is_empty(), "{faults:?}");
    let expected =
        json!({"metadata": {"labels": {"a": ""}}, "spec": {"containers": [{}, {"name": "c", "args": [""]}]}});
    assert_eq!(value, expected);
}

#[test]
fn scalars_come_into_their_stored_form() {
    let pod = json!({"metadata": {"creationTimestamp": "2026-01-02T03:04:05.9+02:00", "generation": 2.0},
        "spec": {"containers": [{"resources": {"limits": {"cpu": 1, "memory": "0.5Gi"}}}]}});
    let (value, faults) = checked("", "Pod", pod);
    assert!(faults.is_empty(), "{faults:?}");
    assert_eq!(value["metadata"], json!({"creationTimestamp": "2026-01-02T01:04:05Z", "generation": 2}));
    let limits = &value["spec"]["containers"][0]["resources"]["limits"];
    assert_eq!(limits, &json!({"cpu": "1", "memory": "512Mi"}));
    let lease = |time: &str| checked("coordination.k8s.io", "Lease", json!({"spec": {"renewTime": time}}));
    assert_eq!(
        lease("2026-01-02T03:04:05.123456+01:00").0["spec"]["renewTime"],
        "2026-01-02T02:04:05.123456Z"
    );
    assert_eq!(lease("2026-01-02T03:04:05Z").1.len(), 1);
    assert_eq!(checked("", "Secret", json!({"data": {"a": "%%"}})).1, [r#"data.a: "%%" is not base64"#]);
    let surge = |value: Value| {
        let strategy = json!({"spec": {"strategy": {"rollingUpdate": {"maxSurge": value}}}});
        checked("apps", "Deployment", strategy).1.len()
    };
    assert_eq!((surge(json!(1)), surge(json!("25%")), surge(json!(true)), surge(json!(1.5))), (0, 0, 1, 1));
}

#[test]
fn quantities_and_times_have_one_grammar() {
    for good in ["1", "+1.5", "-0.1m", ".5", "5.", "1e3", "1E-3", "12Ki", "1Ei", "3E", "100n"] {
        assert!(scalar::is_quantity(good), "{good}");
    }
    for bad in ["", "Ki", "1.2.3", "1kb", "1 Gi", "e3", "1e", "--1", "1K"] {
        assert!(!scalar::is_quantity(bad), "{bad}");
    }
    for bad in [
        "",
        "2026-01-02",
        "2026-01-02 03:04:05Z",
        "2026-01-02T03:04:05",
        "2026-13-02T03:04:05Z",
        "2026-01-02T03:04:05.Z",
    ] {
        assert_eq!(scalar::time(bad), None, "{bad}");
    }
}

fn any_value() -> impl Strategy<Value = Value> {
    let names = prop::sample::select(vec![
        "metadata",
        "spec",
        "name",
        "containers",
        "labels",
        "x",
        "image",
        "limits",
    ]);
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        any::<i16>().prop_map(|eighths| Value::from(f64::from(eighths) / 8.0)),
        ".{0,4}".prop_map(Value::from),
    ];
    leaf.prop_recursive(6, 40, 4, move |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..4).prop_map(Value::from),
            prop::collection::btree_map(names.clone(), inner, 0..4).prop_map(|members| {
                Value::Object(members.into_iter().map(|(name, value)| (name.to_owned(), value)).collect())
            }),
        ]
    })
}

proptest! {
    #[test]
    fn json_text_reads_back(value in any_value()) {
        let document = text::json(value.to_string().as_bytes()).unwrap();
        prop_assert_eq!(&document.value, &value);
        prop_assert!(document.duplicates.is_empty());
        prop_assert!(depth_of(&value) <= MAX_DEPTH);
    }

    #[test]
    fn checking_settles(mut value in any_value()) {
        let definition = registry::definition("", "v1", "Pod").unwrap();
        let first = check(definition.node(), &mut value);
        let once = value.clone();
        let second = check(definition.node(), &mut value);
        prop_assert_eq!(value, once);
        prop_assert!(second.iter().all(|fault| fault.kind != FaultKind::UnknownField && first.contains(fault)));
    }

    #[test]
    fn noise_never_panics(noise in "\\PC{0,60}") {
        let parsed = (text::json(noise.as_bytes()), text::yaml(&noise), text::yaml_documents(&noise));
        prop_assert!(parsed.0.is_err() || parsed.1.is_ok() || parsed.2.is_err());
    }
}
