//! Tests of the protobuf decoder: bodies as kubectl 1.33 (and, byte for byte, 1.32) sends them, beside the JSON that the
//! same command prints with `--dry-run=client -o json`; bodies made by hand; and noise.

use proptest::prelude::*;
use serde_json::{Value, json};

use super::decode::{Expected, MAGIC, decode};
use super::error::ProtobufError;
use super::table::{Form, Place, table};
use super::writer::Writer;
use crate::decode::MAX_DEPTH;

macro_rules! recorded {
    ($($name:literal),* $(,)?) => {
        [$(($name, include_bytes!(concat!("fixtures/", $name, ".bin")).as_slice(), include_str!(concat!("fixtures/", $name, ".json")))),*]
    };
}

fn fixtures() -> Vec<(&'static str, &'static [u8], &'static str)> {
    recorded!(
        "deployment",
        "deployment-zero",
        "configmap",
        "secret",
        "namespace",
        "serviceaccount",
        "job",
        "cronjob",
        "service",
        "ingress",
        "pdb",
        "pdb-zero",
        "quota",
        "rolebinding",
    )
    .to_vec()
}

/// What the client prints, without its unset times, empty structs and the status it does not send.
fn meant(printed: Value) -> Option<Value> {
    match printed {
        Value::Null => None,
        Value::Object(members) => {
            let kept: serde_json::Map<_, _> = members
                .into_iter()
                .filter(|(name, _)| name != "status")
                .filter_map(|(name, member)| Some((name, meant(member)?)))
                .collect();
            (!kept.is_empty()).then_some(Value::Object(kept))
        }
        Value::Array(items) => Some(Value::Array(items.into_iter().filter_map(meant).collect())),
        other => Some(other),
    }
}

fn message() -> Writer {
    Writer::new()
}

/// A body around a message, as clients write it.
trait Body {
    fn body(&self, api_version: &str, kind: &str) -> Vec<u8>;
}

impl<T: AsRef<[u8]>> Body for T {
    fn body(&self, api_version: &str, kind: &str) -> Vec<u8> {
        let meta = message().block(1, api_version).block(2, kind);
        let envelope = message().block(1, meta).block(2, self).block(3, "").block(4, "");
        [MAGIC.as_slice(), envelope.as_ref()].concat()
    }
}

#[test]
fn bodies_of_kubectl_decode_to_what_it_prints() {
    for (name, body, printed) in fixtures() {
        let decoded = decode(body, None).unwrap_or_else(|error| panic!("{name}: {error}"));
        let printed: Value = serde_json::from_str(printed).expect("the fixture is JSON");
        assert_eq!(decoded, meant(printed).expect("an object"), "{name}");
    }
}

#[test]
fn requests_of_kubectl_to_token_and_access_reviews_decode() {
    let token = decode(include_bytes!("fixtures/token.bin"), None).unwrap();
    assert_eq!(token["kind"], "TokenRequest");
    assert_eq!(token["spec"], json!({"audiences": ["a"], "expirationSeconds": 3600}));
    let access = decode(include_bytes!("fixtures/access.bin"), None).unwrap();
    assert_eq!(access["apiVersion"], "authorization.k8s.io/v1");
    let wanted = json!({"namespace": "default", "resource": "pods", "verb": "get"});
    let attributes = access["spec"]["resourceAttributes"].as_object().unwrap();
    for (name, value) in wanted.as_object().unwrap() {
        assert_eq!(attributes.get(name), Some(value), "{name}");
    }
}

#[test]
fn zero_is_absent_unless_it_was_set_through_a_pointer() {
    let spec = message().varint(1, 0).varint(5, 0).varint(6, 0).varint(7, 0);
    let body = message().block(2, spec).body("apps/v1", "Deployment");
    assert_eq!(decode(&body, None).unwrap()["spec"], json!({"replicas": 0, "revisionHistoryLimit": 0}));
    let volume = message().block(1, "v").block(2, message().block(2, message().block(1, "")));
    let pod = message().block(2, message().block(1, volume)).body("v1", "Pod");
    assert_eq!(decode(&pod, None).unwrap()["spec"]["volumes"], json!([{"name": "v", "emptyDir": {}}]));
}

#[test]
fn special_messages_have_their_json_form() {
    let time = message().varint(1, 1_700_000_000).varint(2, 0);
    let micro = message().varint(1, 1_700_000_000).varint(2, 120_000_000);
    let fields = message().block(1, r#"{"f:a":{}}"#);
    let managed = message().block(1, "m").block(4, &time).block(7, fields);
    let meta = message().block(1, "l").block(8, &time).block(17, managed);
    let spec = message().block(1, "h").block(3, micro);
    let lease = message().block(1, meta).block(2, spec).body("coordination.k8s.io/v1", "Lease");
    let decoded = decode(&lease, None).unwrap();
    assert_eq!(decoded["metadata"]["creationTimestamp"], "2023-11-14T22:13:20Z");
    assert_eq!(decoded["metadata"]["managedFields"][0]["fieldsV1"], json!({"f:a": {}}));
    assert_eq!(decoded["spec"], json!({"holderIdentity": "h", "acquireTime": "2023-11-14T22:13:20.120000Z"}));

    let entry = message().block(1, "k").block(2, [0_u8, 255]);
    let secret = message().block(2, entry).block(2, message().block(1, "empty")).body("v1", "Secret");
    assert_eq!(decode(&secret, None).unwrap()["data"], json!({"k": "AP8=", "empty": ""}));

    let revision = message().block(2, message().block(1, r#"{"spec":{"a":1}}"#)).varint(3, 7);
    let decoded = decode(&revision.body("apps/v1", "ControllerRevision"), None).unwrap();
    assert_eq!((&decoded["data"], &decoded["revision"]), (&json!({"spec": {"a": 1}}), &json!(7)));

    let extra = message().block(1, "scopes").block(2, message().block(1, "a").block(1, "b"));
    let review =
        message().block(2, message().block(5, extra)).body("authorization.k8s.io/v1", "SubjectAccessReview");
    assert_eq!(decode(&review, None).unwrap()["spec"]["extra"], json!({"scopes": ["a", "b"]}));
}

#[test]
fn json_schemas_in_definitions_decode() {
    let text = message().block(5, "string");
    let items = message().block(1, &text);
    let list = message().block(5, "array").block(24, items);
    let open = message().block(5, "object").block(30, message().varint(1, 1));
    let property = |name: &str, schema: &Writer| message().block(1, name).block(2, schema);
    let minimum = message().block(5, "integer").double(11, 1.0);
    let root = message()
        .block(5, "object")
        .block(29, property("list", &list))
        .block(29, property("open", &open))
        .block(29, property("min", &minimum));
    let version = message().block(1, "v1").varint(2, 1).varint(3, 0).block(4, message().block(1, root));
    let spec = message().block(1, "g.io").block(7, version);
    let body = message().block(2, spec).body("apiextensions.k8s.io/v1", "CustomResourceDefinition");
    let decoded = decode(&body, None).unwrap();
    let version = &decoded["spec"]["versions"][0];
    assert_eq!(version["served"], true);
    let properties = &version["schema"]["openAPIV3Schema"]["properties"];
    let expected = json!({
        "list": {"type": "array", "items": {"type": "string"}},
        "open": {"type": "object", "additionalProperties": true},
        "min": {"type": "integer", "minimum": 1},
    });
    assert_eq!(properties, &expected);
}

#[test]
fn delete_options_come_in_the_version_of_any_group() {
    let preconditions = message().block(1, "u");
    let options = message().varint(1, 0).block(2, preconditions).block(4, "Background").block(5, "All");
    for version in ["v1", "apps/v1", "batch/v1"] {
        let decoded = decode(&options.body(version, "DeleteOptions"), None).unwrap();
        let expected = json!({"apiVersion": version, "kind": "DeleteOptions", "gracePeriodSeconds": 0,
            "preconditions": {"uid": "u"}, "propagationPolicy": "Background", "dryRun": ["All"]});
        assert_eq!(decoded, expected);
    }
}

#[test]
fn the_expected_type_stands_in_where_the_envelope_names_none() {
    let body = message().block(1, message().block(1, "n")).body("", "");
    let expected = Expected { api_version: "v1", kind: "Namespace" };
    let decoded = decode(&body, Some(expected)).unwrap();
    assert_eq!(decoded, json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "n"}}));
    assert!(matches!(decode(&body, None), Err(ProtobufError::UnknownType { .. })));
}

#[test]
fn unknown_fields_are_passed_over_and_numbers_may_be_packed() {
    let spec = message().varint(1, 3).varint(999, 7).block(998, "x");
    let body = message().block(2, spec).body("apps/v1", "ReplicaSet");
    assert_eq!(decode(&body, None).unwrap()["spec"], json!({"replicas": 3}));
    let context = message().block(4, [1_u8, 2]).varint(4, 3);
    let pod = message().block(2, message().block(14, context)).body("v1", "Pod");
    assert_eq!(
        decode(&pod, None).unwrap()["spec"]["securityContext"]["supplementalGroups"],
        json!([1, 2, 3])
    );
}

#[test]
fn broken_bodies_are_told_with_the_place() {
    assert_eq!(decode(b"{}", None), Err(ProtobufError::NotMarked));
    let body = message().block(1, message().block(1, [0xff_u8])).body("v1", "Namespace");
    let offset = body.iter().position(|byte| *byte == 0xff).unwrap();
    let problem = "text is not UTF-8";
    assert_eq!(decode(&body, None), Err(ProtobufError::Malformed { offset, problem }));
    let cut = &body[..body.len() - 6];
    assert!(matches!(decode(cut, None), Err(ProtobufError::Malformed { .. })));
    let wrong = message().varint(1, 1).body("v1", "Namespace");
    assert!(matches!(decode(&wrong, None), Err(ProtobufError::Malformed { .. })));
}

#[test]
fn depth_is_bounded() {
    let mut schema = message().block(5, "object");
    for _ in 0..MAX_DEPTH {
        schema = message().block(28, schema);
    }
    let version = message().block(4, message().block(1, schema));
    let body = message()
        .block(2, message().block(7, version))
        .body("apiextensions.k8s.io/v1", "CustomResourceDefinition");
    let error = decode(&body, None).unwrap_err();
    assert!(matches!(error, ProtobufError::Malformed { problem: "nested too deep", .. }), "{error}");
}

#[test]
fn the_table_is_whole() {
    let table = table();
    let mut fields = 0;
    for name in
        ["core.v1.Pod", "apps.v1.Deployment", "batch.v1.Job", "meta.v1.DeleteOptions", "events.v1.Event"]
    {
        let message = table.message(table.find(name).unwrap_or_else(|| panic!("no {name}")));
        assert_eq!(message.name, name);
        fields += message.fields().len();
        let metadata = message.fields().iter().find(|field| field.json == "metadata");
        assert!(
            metadata
                .is_none_or(|field| field.place == Place::Plain && matches!(field.form, Form::Message(_)))
        );
    }
    assert!(fields > 20);
    let lines = include_str!("fields.tsv").lines().filter(|line| line.starts_with('\t')).count();
    let names = include_str!("fields.tsv").lines().filter(|line| !line.starts_with(['\t', '#']));
    let read: usize = names.map(|name| table.message(table.find(name).unwrap()).fields().len()).sum();
    assert_eq!(read, lines, "a line of the table was not understood");
}

proptest! {
    #[test]
    fn noise_never_panics(noise in prop::collection::vec(any::<u8>(), 0..200)) {
        for (api_version, kind) in [("v1", "Pod"), ("apps/v1", "Deployment"), ("apiextensions.k8s.io/v1", "CustomResourceDefinition")] {
            let body = noise.body(api_version, kind);
            prop_assert!(decode(&body, None).is_ok_and(|value| value.is_object()) || decode(&body, None).is_err());
        }
        let marked = [MAGIC.as_slice(), &noise].concat();
        prop_assert!(decode(&marked, None).map_or(true, |value| value.is_object()));
    }

    #[test]
    fn damaged_bodies_never_panic(which in 0..14_usize, at in any::<prop::sample::Index>(), with in any::<u8>(), cut in any::<prop::sample::Index>()) {
        let mut body = fixtures()[which].1.to_vec();
        let place = at.index(body.len());
        body[place] = with;
        let whole = decode(&body, None);
        prop_assert!(whole.map_or(true, |value| value.is_object()));
        let cut = decode(&body[..cut.index(body.len())], None);
        prop_assert!(cut.map_or(true, |value| value.is_object()));
    }
}

#[test]
fn every_built_in_type_has_a_message_and_a_schema() {
    for resource in strata_model::resource::builtin::ALL {
        let version = resource.api_version();
        let (group, short) = (&*resource.id.group, &*resource.version);
        for kind in [resource.kind.to_string(), format!("{}List", resource.kind)] {
            assert!(table().find_type(&version, &kind).is_some(), "{version} {kind} has no message");
            let found = crate::schema::registry::find(group, short, &kind);
            assert!(found.is_some(), "{version} {kind} has no schema");
        }
    }
}
