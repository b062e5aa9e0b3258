//! Custom objects: pruned, filled, checked, printed.

use bytes::Bytes;
use jiff::Timestamp;
use proptest::prelude::*;
use serde_json::{Value, json};
use strata_model::field::FieldError;

use super::cel;
use super::definition::{Custom, Definition};
use super::structural::Structural;
use super::{check, default, names, prune, validate};
use std::sync::Arc;

fn schema() -> Value {
    json!({"type": "object", "properties": {
        "spec": {"type": "object", "required": ["size"], "default": {"size": 1}, "properties": {
            "size": {"type": "integer", "minimum": 1, "default": 3},
            "mode": {"type": "string", "enum": ["fast", "slow"], "default": "fast"},
            "note": {"type": "string", "nullable": true, "maxLength": 5, "pattern": "^[a-z]*$"},
            "port": {"x-kubernetes-int-or-string": true},
            "free": {"type": "object", "x-kubernetes-preserve-unknown-fields": true,
                "properties": {"known": {"type": "integer"}}},
            "tags": {"type": "array", "x-kubernetes-list-type": "set", "items": {"type": "string"}},
            "parts": {"type": "array", "x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["name"],
                "items": {"type": "object", "required": ["name"], "properties": {
                    "name": {"type": "string"}, "n": {"type": "integer", "default": 7, "maximum": 9}}}},
            "env": {"type": "object", "additionalProperties": {"type": "string"}},
            "pod": {"type": "object", "x-kubernetes-embedded-resource": true,
                "x-kubernetes-preserve-unknown-fields": true}
        }, "x-kubernetes-validations": [
            {"rule": "self.size <= 100", "message": "too large"},
            {"rule": "self.size >= oldSelf.size", "messageExpression": "'shrank to %d'.format([self.size])",
                "reason": "FieldValueForbidden", "fieldPath": ".size"}]}}})
}

fn read() -> Structural {
    Structural::read(&schema())
}

fn faults(new: Value, old: Option<Value>) -> Vec<String> {
    let schema = read();
    let mut found: Vec<FieldError> = Vec::new();
    validate::validate(&schema, &new, old.as_ref(), &mut found);
    cel::check::check(&schema, &cel::rules::Rules::compile(&schema), &new, old.as_ref(), &mut found);
    found.iter().map(ToString::to_string).collect()
}

#[test]
fn unknown_members_go_and_are_told() {
    let mut object = json!({"apiVersion": "a/v1", "kind": "W", "metadata": {"name": "x", "bogus": 1}, "more": 1,
        "spec": {"size": 1, "sise": 2, "free": {"any": {"thing": 1}, "known": 1}, "parts": [{"name": "a", "x": 1}],
            "pod": {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "p", "odd": 1}, "spec": {}}}});
    let told: Vec<String> = prune::prune(&read(), &mut object).iter().map(ToString::to_string).collect();
    for path in ["metadata.bogus", "more", "spec.sise", "spec.parts[0].x", "spec.pod.metadata.odd"] {
        assert!(told.contains(&format!("unknown field \"{path}\"")), "{path} in {told:?}");
    }
    assert_eq!(told.len(), 5, "{told:?}");
    assert_eq!(object["spec"]["free"], json!({"any": {"thing": 1}, "known": 1}));
}

#[test]
fn defaults_fill_what_is_missing_or_null() {
    for (given, spec) in [
        (json!({}), json!({"size": 1, "mode": "fast"})),
        (json!({"spec": {}}), json!({"size": 3, "mode": "fast"})),
        (
            json!({"spec": {"size": null, "note": null, "tags": null}}),
            json!({"size": 3, "mode": "fast", "note": null}),
        ),
        (
            json!({"spec": {"size": 1, "parts": [{"name": "a"}, {"name": "b", "n": 1}]}}),
            json!({"size": 1, "mode": "fast", "parts": [{"name": "a", "n": 7}, {"name": "b", "n": 1}]}),
        ),
    ] {
        let mut object = given;
        default::fill(&read(), &mut object);
        assert_eq!(object["spec"], spec);
    }
}

#[test]
fn faults_read_as_kubernetes_tells_them() {
    let spec = |spec: Value| faults(json!({"spec": spec}), None);
    for (given, told) in [
        (
            json!({"size": "a"}),
            "spec.size: Invalid value: \"string\": spec.size in body must be of type integer: \"string\"",
        ),
        (json!({}), "spec.size: Required value"),
        (
            json!({"size": 0}),
            "spec.size: Invalid value: 0: spec.size in body should be greater than or equal to 1",
        ),
        (
            json!({"size": 1, "mode": "x"}),
            "spec.mode: Unsupported value: \"x\": supported values: \"fast\", \"slow\"",
        ),
        (
            json!({"size": 1, "note": "A"}),
            "spec.note: Invalid value: \"A\": spec.note in body should match '^[a-z]*$'",
        ),
        (json!({"size": 1, "note": "aaaaaa"}), "spec.note: Too long: may not be more than 5 bytes"),
        (json!({"size": 1, "tags": ["a", "a"]}), "spec.tags[1]: Duplicate value: \"a\""),
        (
            json!({"size": 1, "parts": [{"name": "a"}, {"name": "a"}]}),
            "spec.parts[1]: Duplicate value: {\"name\":\"a\"}",
        ),
        (
            json!({"size": 1, "env": {"a": 1}}),
            "spec.env.a: Invalid value: \"integer\": spec.env.a in body must be of type string: \"integer\"",
        ),
        (json!({"size": 1, "pod": {}}), "spec.pod.kind: Required value: must not be empty"),
        (json!({"size": 101}), "spec: Invalid value: \"object\": too large"),
    ] {
        let found = spec(given);
        assert!(found.iter().any(|fault| fault == told), "{told}\nin {found:#?}");
    }
    assert_eq!(spec(json!({"size": 1.0, "port": "80", "note": null})), Vec::<String>::new());
    assert_eq!(spec(json!({"size": 1, "port": 80})), Vec::<String>::new());
}

#[test]
fn what_did_not_change_is_tolerated_and_changes_have_rules() {
    let old = json!({"spec": {"size": 50, "note": "BAD", "parts": [{"name": "a", "n": 99}, {"name": "b", "n": 1}]}});
    let mut new = old.clone();
    new["spec"]["size"] = json!(60);
    new["spec"]["parts"][1]["n"] = json!(2);
    assert_eq!(faults(new.clone(), Some(old.clone())), Vec::<String>::new());
    new["spec"]["parts"][0]["n"] = json!(98);
    new["spec"]["size"] = json!(10);
    let found = faults(new, Some(old));
    assert!(found.contains(&"spec.size: Forbidden: shrank to 10".to_owned()), "{found:?}");
    assert!(found.iter().any(|f| f.starts_with("spec.parts[0].n: Invalid value: 98")), "{found:?}");
    assert_eq!(found.len(), 2, "{found:?}");
}

/// A definition of the schema above.
pub fn definition() -> Value {
    json!({"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
        "metadata": {"name": "widgets.example.com", "uid": "u", "generation": 1},
        "spec": {"group": "example.com", "scope": "Namespaced",
            "names": {"plural": "widgets", "kind": "Widget", "shortNames": ["wd"]},
            "versions": [{"name": "v1", "served": true, "storage": true,
                "schema": {"openAPIV3Schema": schema()},
                "additionalPrinterColumns": [{"name": "Size", "type": "integer", "jsonPath": ".spec.size"},
                    {"name": "Age", "type": "date", "jsonPath": ".metadata.creationTimestamp"}],
                "selectableFields": [{"jsonPath": ".spec.mode"}]}]}})
}

fn told(change: impl Fn(&mut Value)) -> Vec<String> {
    let mut object = definition();
    change(&mut object);
    names::fill(&mut object);
    let mut found = Vec::new();
    check::check(&object, &mut found);
    found.iter().map(ToString::to_string).collect()
}

#[test]
#[allow(clippy::too_many_lines, reason = "a table")]
fn definitions_that_cannot_be_are_refused() {
    assert_eq!(told(|_| {}), Vec::<String>::new());
    type Case<'a> = (&'a dyn Fn(&mut Value), &'a str);
    let version = |v: &mut Value, path: &str, value: Value| {
        let at = v.pointer_mut(&format!("/spec/versions/0{path}")).unwrap();
        *at = value;
    };
    let cases: &[Case<'_>] = &[
        (
            &|d| d["metadata"]["name"] = json!("x"),
            "metadata.name: Invalid value: \"x\": must be spec.names.plural+\".\"+spec.group",
        ),
        (&|d| d["spec"]["group"] = json!("com"), "at least one dot"),
        (&|d| d["spec"]["group"] = json!("a.k8s.io"), "approval annotation"),
        (&|d| d["spec"]["scope"] = json!("Global"), "spec.scope: Unsupported value"),
        (&|d| d["spec"]["preserveUnknownFields"] = json!(true), "cannot set to true"),
        (&|d| version(d, "/storage", json!(false)), "exactly one version marked as storage"),
        (&|d| version(d, "/schema", json!({})), "schemas are required"),
        (&|d| version(d, "/schema/openAPIV3Schema/type", json!("string")), "must be object at the root"),
        (
            &|d| version(d, "/schema/openAPIV3Schema/properties/spec/properties/size", json!({})),
            "must not be empty for specified object fields",
        ),
        (
            &|d| version(d, "/schema/openAPIV3Schema/properties/spec/properties/size/default", json!("a")),
            "must be of type integer",
        ),
        (
            &|d| version(d, "/schema/openAPIV3Schema/properties/spec/properties/note/pattern", json!("(")),
            "valid regular expression",
        ),
        (
            &|d| version(d, "/schema/openAPIV3Schema/properties/spec/properties/tags/items", json!([])),
            "not an array",
        ),
        (
            &|d| {
                version(
                    d,
                    "/schema/openAPIV3Schema/properties/spec/x-kubernetes-validations/0/rule",
                    json!("self.size <"),
                )
            },
            "compilation failed",
        ),
        (
            &|d| {
                version(
                    d,
                    "/schema/openAPIV3Schema/properties/spec/x-kubernetes-validations/0/rule",
                    json!("self.sise < 1"),
                )
            },
            "undefined field 'sise'",
        ),
        (
            &|d| {
                version(
                    d,
                    "/schema/openAPIV3Schema/properties/spec/x-kubernetes-validations/0/rule",
                    json!(
                        "!has(self.free.known) || self.free.any.deep == 1 && self.env.anything == 'self.odd' \
                         && self.parts.all(p, p.n < self.gone)"
                    ),
                )
            },
            "undefined field 'gone'",
        ),
        (
            &|d| {
                version(
                    d,
                    "/schema/openAPIV3Schema/properties/spec/x-kubernetes-validations/0/rule",
                    json!("that.size < 1"),
                )
            },
            "undeclared reference to 'that'",
        ),
        (
            &|d| version(d, "/selectableFields/0/jsonPath", json!(".spec.gone")),
            "does not refer to a valid field",
        ),
        (&|d| version(d, "/additionalPrinterColumns/0/type", json!("text")), "must be one of boolean,date"),
        (
            &|d| d["spec"]["conversion"] = json!({"strategy": "Webhook"}),
            "required when strategy is set to Webhook",
        ),
    ];
    for (change, part) in cases {
        let found = told(change);
        assert!(found.iter().any(|fault| fault.contains(part)), "{part}\nin {found:#?}");
    }
}

fn custom(object: &Value, created: u64) -> Custom {
    let bytes = Bytes::from(object.to_string());
    let definition = Definition::read(&bytes, created, created).unwrap();
    Custom { definition: Arc::new(definition), index: 0 }
}

#[test]
fn columns_show_what_they_name() {
    let mut object = definition();
    names::fill(&mut object);
    let custom = custom(&object, 1);
    let now = Timestamp::UNIX_EPOCH;
    let widget =
        json!({"metadata": {"name": "w", "creationTimestamp": "1970-01-01T00:00:00Z"}, "spec": {"size": 5}});
    let cells: Vec<Value> = custom.columns().iter().map(|column| column.cell(&widget, now)).collect();
    assert_eq!(cells, [json!(5), json!("0s")]);
    assert_eq!(custom.columns()[0].cell(&json!({}), now), Value::Null);
    assert_eq!(custom.version().selectable, ["spec.mode"]);
}

#[test]
fn the_older_definition_keeps_a_name() {
    let mut first = definition();
    names::fill(&mut first);
    let mut second = first.clone();
    second["metadata"]["name"] = json!("gadgets.example.com");
    second["metadata"]["uid"] = json!("v");
    second["spec"]["names"] =
        json!({"plural": "gadgets", "singular": "gadget", "kind": "Widget", "listKind": "WidgetList"});
    let both = [custom(&second, 2).definition, custom(&first, 1).definition];
    let verdicts = names::decide(&both);
    assert!(verdicts[1].established && verdicts[1].conflict.is_none());
    assert!(!verdicts[0].established);
    assert_eq!(verdicts[0].conflict.as_ref().unwrap().0, "KindConflict");
    let mut settled = second.clone();
    assert!(names::settle(&mut settled, &verdicts[0], false, "now"));
    assert!(!names::settle(&mut settled, &verdicts[0], false, "later"), "a second time changes nothing");
    assert_eq!(settled["status"]["conditions"][1]["reason"], "NotAccepted");
}

fn any_json() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        (-3i64..120).prop_map(Value::from),
        "[a-zA-Z]{0,6}".prop_map(Value::from),
    ];
    let name = prop_oneof![
        Just("spec"),
        Just("size"),
        Just("mode"),
        Just("note"),
        Just("parts"),
        Just("name"),
        Just("n"),
        Just("tags"),
        Just("env"),
        Just("free"),
        Just("known"),
        Just("other"),
        Just("pod"),
        Just("metadata"),
        Just("kind"),
    ];
    leaf.prop_recursive(5, 40, 5, move |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..4).prop_map(Value::Array),
            prop::collection::btree_map(name.clone(), inner, 0..5)
                .prop_map(|members| members.into_iter().map(|(k, v)| (k.to_owned(), v)).collect::<Value>()),
        ]
    })
}

proptest! {
    #[test]
    fn pruning_and_filling_twice_is_once(given in any_json()) {
        let schema = read();
        let mut once = given;
        prune::prune(&schema, &mut once);
        default::fill(&schema, &mut once);
        let mut twice = once.clone();
        let unknown = prune::prune(&schema, &mut twice).into_iter().filter(|fault| fault.is_unknown_field()).count();
        prop_assert_eq!(unknown, 0);
        default::fill(&schema, &mut twice);
        prop_assert_eq!(&once, &twice);
        // Whatever comes, checking it ends, and an unchanged object has no faults.
        let mut found = Vec::new();
        validate::validate(&schema, &once, Some(&twice), &mut found);
        prop_assert!(found.is_empty());
        validate::validate(&schema, &once, None, &mut found);
    }
}
