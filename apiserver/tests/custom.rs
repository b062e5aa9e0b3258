//! Custom types over real HTTP and gRPC: definitions, their objects, their end.

#![allow(clippy::unwrap_used, reason = "a test ends at the first surprise")]

mod common;

use common::grpc;
use common::rest::Rest;
use common::server::TestServer;
use common::webhook::Webhook;
use serde_json::{Value, json};
use strata_wire::v1;

const CRDS: &str = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";
const WIDGETS: &str = "/apis/example.com/v1/namespaces/default/widgets";

fn crd(plural: &str, kind: &str) -> Value {
    json!({"metadata": {"name": format!("{plural}.example.com")}, "spec": {
        "group": "example.com", "scope": "Namespaced",
        "names": {"plural": plural, "kind": kind, "shortNames": [&plural[..2]], "categories": ["all"]},
        "versions": [{"name": "v1", "served": true, "storage": true,
            "subresources": {"status": {}, "scale": {"specReplicasPath": ".spec.size",
                "statusReplicasPath": ".status.size", "labelSelectorPath": ".status.selector"}},
            "additionalPrinterColumns": [{"name": "Size", "type": "integer", "jsonPath": ".spec.size"}],
            "selectableFields": [{"jsonPath": ".spec.color"}],
            "schema": {"openAPIV3Schema": {"type": "object", "properties": {
                "spec": {"type": "object", "required": ["size"], "properties": {
                    "size": {"type": "integer", "minimum": 1}, "color": {"type": "string", "default": "red"},
                    "parts": {"type": "array", "x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["name"],
                        "items": {"type": "object", "required": ["name"], "properties": {
                            "name": {"type": "string"}, "n": {"type": "integer"}}}}},
                    "x-kubernetes-validations": [{"rule": "self.size < 100", "message": "too large"}]},
                "status": {"type": "object", "x-kubernetes-preserve-unknown-fields": true}}}}}]}})
}

fn widget(name: &str, spec: Value) -> Value {
    json!({"apiVersion": "example.com/v1", "kind": "Widget", "metadata": {"name": name}, "spec": spec})
}

async fn with_widgets() -> (TestServer, Rest) {
    let server = TestServer::start().await;
    let rest = Rest::admin(&server);
    let made = rest.post(CRDS, &crd("widgets", "Widget")).await;
    assert_eq!(made.code, 201, "{}", made.text);
    (server, rest)
}

#[tokio::test(flavor = "multi_thread")]
async fn a_definition_is_served_when_its_creation_is_answered() {
    let (server, rest) = with_widgets().await;
    let status = rest.get(&format!("{CRDS}/widgets.example.com")).await.json()["status"].clone();
    assert_eq!(status["acceptedNames"]["listKind"], "WidgetList");
    assert_eq!(status["storedVersions"], json!(["v1"]));
    let conditions: Vec<&Value> =
        status["conditions"].as_array().unwrap().iter().map(|c| &c["status"]).collect();
    assert_eq!(conditions, ["True", "True"]);
    let list = rest.get("/apis/example.com/v1").await.json();
    let names: Vec<&str> =
        list["resources"].as_array().unwrap().iter().map(|r| r["name"].as_str().unwrap()).collect();
    assert_eq!(names, ["widgets", "widgets/scale", "widgets/status"]);
    let accept = ("accept", "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList");
    let all = rest.send("GET", "/apis", &[accept], "").await;
    assert!(all.text.contains("\"example.com\""));
    let index = rest.get("/openapi/v3").await.json();
    let url = index["paths"]["apis/example.com/v1"]["serverRelativeURL"].as_str().unwrap().to_owned();
    let document = rest.get(&url).await.json();
    let schema = &document["components"]["schemas"]["com.example.v1.Widget"];
    assert_eq!(schema["properties"]["spec"]["properties"]["size"]["minimum"], 1);
    assert_eq!(schema["x-kubernetes-group-version-kind"][0]["kind"], "Widget");
    assert!(rest.get("/openapi/v2").await.text.contains("com.example.v1.WidgetList"));
    let channel = grpc::channel(&server, Some(("admin", "system:masters")));
    let mut discovery = v1::discovery_client::DiscoveryClient::new(channel);
    let types = discovery.types(v1::TypesRequest {}).await.unwrap().into_inner().types;
    assert!(types.iter().any(|t| t.kind == "Widget" && t.short_names == ["wi"]));
    server.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn objects_are_pruned_filled_and_checked() {
    let (server, rest) = with_widgets().await;
    let made = rest.post(WIDGETS, &widget("a", json!({"size": 2, "sise": 3}))).await;
    assert_eq!(made.code, 201, "{}", made.text);
    assert_eq!(made.headers["warning"], "299 - \"unknown field \\\"spec.sise\\\"\"");
    assert_eq!(made.json()["spec"], json!({"size": 2, "color": "red"}));
    let strict = rest
        .post(&format!("{WIDGETS}?fieldValidation=Strict"), &widget("b", json!({"size": 2, "sise": 3})))
        .await;
    assert_eq!(strict.code, 400);
    for (spec, told) in [
        (json!({}), "spec.size: Required value"),
        (json!({"size": 0}), "should be greater than or equal to 1"),
        (json!({"size": "a"}), "must be of type integer: \"string\""),
        (json!({"size": 100}), "spec: Invalid value: \"object\": too large"),
        (json!({"size": 1, "parts": [{"name": "x"}, {"name": "x"}]}), "spec.parts[1]: Duplicate value"),
    ] {
        let refused = rest.post(WIDGETS, &widget("c", spec)).await;
        assert_eq!(refused.code, 422, "{}", refused.text);
        assert!(refused.json()["message"].as_str().unwrap().contains(told), "{told}: {}", refused.text);
    }
    let strategic = ("content-type", "application/strategic-merge-patch+json");
    assert_eq!(rest.send("PATCH", &format!("{WIDGETS}/a"), &[strategic], "{}").await.code, 415);
    let unnamed = rest.put(&format!("{WIDGETS}/a"), &widget("a", json!({"size": 3}))).await;
    assert!(unnamed.text.contains("must be specified for an update"), "{}", unnamed.text);
    server.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn parts_of_objects_have_their_own_writes() {
    let (server, rest) = with_widgets().await;
    let with_status = json!({"apiVersion": "example.com/v1", "kind": "Widget", "metadata": {"name": "a"},
        "spec": {"size": 2}, "status": {"size": 9}});
    let made = rest.post(WIDGETS, &with_status).await.json();
    assert_eq!(made.get("status"), None);
    let status = rest
        .merge(
            &format!("{WIDGETS}/a/status"),
            &json!({"status": {"size": 1, "selector": "a=b"},
        "spec": {"size": 7}, "metadata": {"labels": {"x": "y"}}}),
        )
        .await
        .json();
    assert_eq!((&status["spec"]["size"], &status["status"]["size"]), (&json!(2), &json!(1)));
    assert_eq!((status["metadata"].get("labels"), &status["metadata"]["generation"]), (None, &json!(1)));
    let scale = rest.get(&format!("{WIDGETS}/a/scale")).await.json();
    assert_eq!(scale["status"], json!({"replicas": 1, "selector": "a=b"}));
    let scaled = rest.merge(&format!("{WIDGETS}/a/scale"), &json!({"spec": {"replicas": 5}})).await.json();
    assert_eq!(scaled["spec"]["replicas"], 5);
    let changed = rest.get(&format!("{WIDGETS}/a")).await.json();
    assert_eq!((&changed["spec"]["size"], &changed["metadata"]["generation"]), (&json!(5), &json!(2)));
    let table = ("accept", "application/json;as=Table;g=meta.k8s.io;v=v1");
    let table = rest.send("GET", WIDGETS, &[table], "").await.json();
    assert_eq!(table["columnDefinitions"][1]["name"], "Size");
    assert_eq!(table["rows"][0]["cells"], json!(["a", 5]));
    let picked = rest.get(&format!("{WIDGETS}?fieldSelector=spec.color%3Dred")).await.json();
    assert_eq!((picked["kind"].as_str(), picked["items"].as_array().unwrap().len()), (Some("WidgetList"), 1));
    assert_eq!(rest.get(&format!("{WIDGETS}?fieldSelector=spec.size%3D5")).await.code, 400);
    server.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn applies_follow_the_schema() {
    let (server, rest) = with_widgets().await;
    let apply = async |manager: &str, parts: Value, more: &str| {
        let path = format!("{WIDGETS}/a?fieldManager={manager}{more}");
        let body = widget("a", json!({"size": 1, "parts": parts}));
        rest.send("PATCH", &path, &[("content-type", "application/apply-patch+yaml")], body.to_string()).await
    };
    assert_eq!(apply("one", json!([{"name": "x", "n": 1}]), "").await.code, 201);
    let both = apply("two", json!([{"name": "y", "n": 2}]), "").await.json();
    assert_eq!(both["spec"]["parts"].as_array().unwrap().len(), 2);
    let again = apply("two", json!([{"name": "y", "n": 2}]), "").await.json();
    assert_eq!(both["metadata"], again["metadata"], "an apply that changes nothing writes nothing");
    let conflict = apply("two", json!([{"name": "x", "n": 5}]), "").await;
    assert_eq!(conflict.code, 409);
    assert!(conflict.text.contains(".spec.parts[name=\\\"x\\\"].n"), "{}", conflict.text);
    let unknown = rest
        .send(
            "PATCH",
            &format!("{WIDGETS}/b?fieldManager=one"),
            &[("content-type", "application/apply-patch+yaml")],
            widget("b", json!({"size": 1, "bogus": 1})).to_string(),
        )
        .await;
    assert_eq!(unknown.code, 500);
    assert!(unknown.text.contains(".spec.bogus: field not declared in schema"), "{}", unknown.text);
    server.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn the_end_of_a_definition_is_the_end_of_its_objects() {
    let (server, rest) = with_widgets().await;
    rest.post(WIDGETS, &widget("free", json!({"size": 1}))).await;
    let mut held = widget("held", json!({"size": 1}));
    held["metadata"]["finalizers"] = json!(["example.com/hold"]);
    rest.post(WIDGETS, &held).await;
    let mut watch = rest.watch(&format!("{WIDGETS}?watch=true")).await;
    let mut crds = rest.watch(&format!("{CRDS}?watch=true")).await;
    assert_eq!(crds.next().await.unwrap()["type"], "ADDED");
    let deleted = rest.delete(&format!("{CRDS}/widgets.example.com")).await;
    assert_eq!(deleted.json()["kind"], "CustomResourceDefinition");
    let terminating = loop {
        let event = crds.next().await.unwrap();
        let conditions = event["object"]["status"]["conditions"].as_array().unwrap().clone();
        if let Some(found) = conditions.iter().find(|c| c["type"] == "Terminating") {
            break found.clone();
        }
    };
    assert_eq!(terminating["reason"], "InstanceDeletionInProgress");
    assert_eq!(rest.post(WIDGETS, &widget("late", json!({"size": 1}))).await.code, 405);
    loop {
        let event = watch.next().await.unwrap();
        if event["type"] == "MODIFIED" && event["object"]["metadata"]["deletionTimestamp"].is_string() {
            break;
        }
    }
    rest.merge(&format!("{WIDGETS}/held"), &json!({"metadata": {"finalizers": null}})).await;
    while let Some(event) = crds.next().await {
        if event["type"] == "DELETED" {
            break;
        }
    }
    while watch.next().await.is_some() {}
    assert_eq!(rest.get("/apis/example.com/v1").await.code, 404);
    assert_eq!(rest.get(WIDGETS).await.code, 404);
    assert_eq!(rest.post(CRDS, &crd("widgets", "Widget")).await.code, 201);
    assert_eq!(rest.get(WIDGETS).await.json()["items"], json!([]));
    server.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_name_that_is_taken_waits_until_it_is_free() {
    let (server, rest) = with_widgets().await;
    assert_eq!(rest.post(CRDS, &crd("wi", "Other")).await.code, 201);
    let path = format!("{CRDS}/wi.example.com");
    let status = rest.get(&path).await.json()["status"].clone();
    assert_eq!(status["conditions"][0]["reason"], "PluralConflict");
    assert_eq!(status["conditions"][1]["reason"], "NotAccepted");
    assert_eq!(rest.get("/apis/example.com/v1/wi").await.code, 404);
    let mut watch =
        rest.watch(&format!("{CRDS}?watch=true&fieldSelector=metadata.name%3Dwi.example.com")).await;
    rest.delete(&format!("{CRDS}/widgets.example.com")).await;
    loop {
        let event = watch.next().await.unwrap();
        if event["object"]["status"]["conditions"][1]["status"] == "True" {
            break;
        }
    }
    assert_eq!(rest.get("/apis/example.com/v1/wi").await.code, 200);
    server.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn grpc_speaks_custom_types_too() {
    let (server, _) = with_widgets().await;
    let mut client = grpc::admin(&server);
    let resource = grpc::resource("example.com", "widgets");
    let create = v1::CreateRequest {
        resource: resource.clone(),
        namespace: "default".to_owned(),
        object: widget("a", json!({"size": 3})).to_string().into(),
        ..v1::CreateRequest::default()
    };
    let made = client.create(create.clone()).await.unwrap().into_inner();
    let object: Value = serde_json::from_slice(&made.object).unwrap();
    assert_eq!(object["spec"], json!({"size": 3, "color": "red"}));
    let refused = client
        .create(v1::CreateRequest { object: widget("b", json!({})).to_string().into(), ..create })
        .await
        .unwrap_err();
    assert_eq!(refused.code(), tonic::Code::InvalidArgument);
    server.stop().await;
}

/// A type in two versions, of which `v2` is stored and names its size `count`.
fn versioned(conversion: Value) -> Value {
    let version = |name: &str, storage: bool, size: &str| {
        json!({"name": name, "served": true, "storage": storage, "deprecated": !storage,
            "schema": {"openAPIV3Schema": {"type": "object", "properties": {"spec": {"type": "object",
                "properties": {size: {"type": "integer", "maximum": 50}, "color": {"type": "string"},
                    "added": {"type": "string", "default": name}}}}}}})
    };
    json!({"metadata": {"name": "gears.example.com"}, "spec": {"group": "example.com", "scope": "Namespaced",
        "names": {"plural": "gears", "kind": "Gear"}, "conversion": conversion,
        "versions": [version("v1", false, "size"), version("v2", true, "count")]}})
}

fn gears(version: &str) -> String {
    format!("/apis/example.com/{version}/namespaces/default/gears")
}

#[tokio::test(flavor = "multi_thread")]
async fn versions_without_conversion_differ_by_name_and_schema() {
    let server = TestServer::start().await;
    let rest = Rest::admin(&server);
    let made = rest.post(CRDS, &versioned(json!({"strategy": "None"}))).await;
    assert_eq!(made.code, 201, "{}", made.text);
    assert_eq!(made.json()["status"]["storedVersions"], json!(["v2"]));
    let gear = json!({"apiVersion": "example.com/v1", "kind": "Gear", "metadata": {"name": "a"}, "spec": {"color": "red"}});
    let made = rest.post(&gears("v1"), &gear).await;
    assert_eq!(made.code, 201, "{}", made.text);
    assert_eq!(made.headers["warning"], "299 - \"example.com/v1 Gear is deprecated\"");
    assert_eq!(
        (&made.json()["apiVersion"], &made.json()["spec"]["added"]),
        (&json!("example.com/v1"), &json!("v1"))
    );
    let shown = rest.get(&format!("{}/a", gears("v2"))).await.json();
    assert_eq!(
        (&shown["apiVersion"], &shown["spec"]),
        (&json!("example.com/v2"), &json!({"color": "red", "added": "v1"}))
    );
    let list = rest.get(&gears("v1")).await;
    assert_eq!(list.headers["warning"], "299 - \"example.com/v1 Gear is deprecated\"");
    assert_eq!(list.json()["items"][0]["apiVersion"], "example.com/v1");
    let mut watch = rest.watch(&format!("{}?watch=true", gears("v1"))).await;
    assert_eq!(watch.next().await.unwrap()["object"]["apiVersion"], "example.com/v1");
    let patched = rest.merge(&format!("{}/a", gears("v1")), &json!({"spec": {"color": "blue"}})).await.json();
    assert_eq!(patched["apiVersion"], "example.com/v1");
    assert_eq!(watch.next().await.unwrap()["object"]["spec"]["color"], "blue");
    // Another version is stored from now on, and an object moves when it is written, even if nothing else changes.
    let path = format!("{CRDS}/gears.example.com");
    let mut crd = rest.get(&path).await.json();
    crd["spec"]["versions"][0]["storage"] = json!(true);
    crd["spec"]["versions"][1]["storage"] = json!(false);
    let changed = rest.put(&path, &crd).await;
    assert_eq!(changed.json()["status"]["storedVersions"], json!(["v2", "v1"]), "{}", changed.text);
    let before = rest.get(&format!("{}/a", gears("v2"))).await.json();
    let moved = rest.put(&format!("{}/a", gears("v2")), &before).await.json();
    assert_ne!(before["metadata"]["resourceVersion"], moved["metadata"]["resourceVersion"]);
    crd = rest.get(&path).await.json();
    crd["spec"]["versions"].as_array_mut().unwrap().remove(1);
    let kept = rest.put(&path, &crd).await;
    assert!(kept.text.contains("status.storedVersions[0]"), "{}", kept.text);
    crd["spec"]["versions"][0]["served"] = json!(false);
    server.stop().await;
}

/// Answers conversion reviews over HTTPS: `size` becomes `count` and back.
fn convert(review: &Value) -> Value {
    let wanted = review["request"]["desiredAPIVersion"].as_str().unwrap();
    let (from, to) = if wanted.ends_with("v2") { ("size", "count") } else { ("count", "size") };
    let mut objects = review["request"]["objects"].clone();
    for object in objects.as_array_mut().unwrap() {
        object["apiVersion"] = json!(wanted);
        if object["spec"]["color"] == "poison" {
            return json!({"response": {"uid": review["request"]["uid"],
                "result": {"status": "Failed", "message": "poison has no form"}}});
        }
        if let Some(size) = object["spec"].as_object_mut().and_then(|spec| spec.remove(from)) {
            object["spec"][to] = size;
        }
    }
    json!({"apiVersion": review["apiVersion"], "kind": "ConversionReview", "response": {
        "uid": review["request"]["uid"], "result": {"status": "Success"}, "convertedObjects": objects}})
}

#[tokio::test(flavor = "multi_thread")]
async fn webhooks_convert_between_versions() {
    let server = TestServer::start().await;
    let rest = Rest::admin(&server);
    let hook = Webhook::start(&server, "127.0.0.1", convert).await;
    let (url, authority) = (hook.url(), hook.authority);
    let conversion = json!({"strategy": "Webhook", "webhook": {"conversionReviewVersions": ["v1"],
        "clientConfig": {"url": url, "caBundle": authority}}});
    let made = rest.post(CRDS, &versioned(conversion)).await;
    assert_eq!(made.code, 201, "{}", made.text);
    let gear = |spec: Value| json!({"apiVersion": "example.com/v1", "kind": "Gear", "metadata": {"name": "a"}, "spec": spec});
    let made = rest.post(&gears("v1"), &gear(json!({"size": 3}))).await;
    assert_eq!(made.json()["spec"], json!({"size": 3, "added": "v1"}), "{}", made.text);
    let stored = rest.get(&format!("{}/a", gears("v2"))).await.json();
    assert_eq!(stored["spec"], json!({"count": 3, "added": "v1"}));
    let list = rest.get(&gears("v1")).await.json();
    assert_eq!(list["items"][0]["spec"]["size"], 3);
    let mut watch = rest.watch(&format!("{}?watch=true", gears("v1"))).await;
    assert_eq!(watch.next().await.unwrap()["object"]["spec"]["size"], 3);
    let patched = rest.merge(&format!("{}/a", gears("v1")), &json!({"spec": {"size": 4}})).await.json();
    assert_eq!(patched["spec"]["size"], 4);
    assert_eq!(watch.next().await.unwrap()["object"]["spec"]["size"], 4);
    let applied = rest
        .send(
            "PATCH",
            &format!("{}/a?fieldManager=me&force=true", gears("v1")),
            &[("content-type", "application/apply-patch+yaml")],
            gear(json!({"size": 5})).to_string(),
        )
        .await;
    assert_eq!(applied.json()["spec"]["size"], 5, "{}", applied.text);
    let refused = rest.merge(&format!("{}/a", gears("v1")), &json!({"spec": {"size": 51}})).await;
    assert!(
        refused.text.contains("spec.size in body should be less than or equal to 50"),
        "{}",
        refused.text
    );
    let failed = rest.merge(&format!("{}/a", gears("v1")), &json!({"spec": {"color": "poison"}})).await;
    assert_eq!(failed.code, 500);
    assert!(failed.text.contains("poison has no form"), "{}", failed.text);
    server.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn every_server_of_a_store_serves_what_is_defined() {
    let (server, rest) = with_widgets().await;
    let second = server.beside().await;
    let other = Rest::admin(&second);
    assert_eq!(other.get(WIDGETS).await.code, 200, "what was defined before it began");
    let mut watch =
        other.watch(&format!("{CRDS}?watch=true&fieldSelector=metadata.name%3Dgears.example.com")).await;
    assert_eq!(rest.post(CRDS, &versioned(json!({"strategy": "None"}))).await.code, 201);
    loop {
        let event = watch.next().await.unwrap();
        let conditions = event["object"]["status"]["conditions"].as_array().unwrap().clone();
        if conditions.iter().any(|c| c["type"] == "Established" && c["status"] == "True") {
            break;
        }
    }
    // Whoever reads that a type is established finds it on the server that decided so; the other follows.
    let mut code = 0;
    for _ in 0..200 {
        code = other.get(&gears("v1")).await.code;
        if code == 200 {
            break;
        }
        tokio::task::yield_now().await;
    }
    assert_eq!(code, 200);
    second.stop().await;
    server.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn objects_have_the_defaults_that_are_valid_now() {
    let (server, rest) = with_widgets().await;
    rest.post(WIDGETS, &widget("old", json!({"size": 1}))).await;
    let path = format!("{CRDS}/widgets.example.com");
    let mut crd = rest.get(&path).await.json();
    let spec =
        &mut crd["spec"]["versions"][0]["schema"]["openAPIV3Schema"]["properties"]["spec"]["properties"];
    spec["shape"] = json!({"type": "string", "default": "round"});
    spec.as_object_mut().unwrap().remove("color");
    crd["spec"]["versions"][0].as_object_mut().unwrap().remove("selectableFields");
    let changed = rest.put(&path, &crd).await;
    assert_eq!(changed.code, 200, "{}", changed.text);
    let wanted = json!({"size": 1, "shape": "round"});
    assert_eq!(rest.get(&format!("{WIDGETS}/old")).await.json()["spec"], wanted);
    assert_eq!(rest.get(WIDGETS).await.json()["items"][0]["spec"], wanted);
    let mut watch = rest.watch(&format!("{WIDGETS}?watch=true")).await;
    assert_eq!(watch.next().await.unwrap()["object"]["spec"], wanted);
    let immutable = {
        let mut crd = rest.get(&path).await.json();
        crd["spec"]["scope"] = json!("Cluster");
        rest.put(&path, &crd).await
    };
    assert!(immutable.text.contains("spec.scope: Invalid value"), "{}", immutable.text);
    server.stop().await;
}
