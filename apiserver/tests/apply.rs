//! Field ownership and server-side apply as clients see them, over real connections.

#![allow(clippy::unwrap_used, reason = "a test ends at the first surprise")]

mod common;

use common::grpc;
use common::rest::{Answer, Rest};
use common::server::TestServer;
use serde_json::{Value, json};
use strata_wire::v1;

const MAPS: &str = "/api/v1/namespaces/default/configmaps";
const DEPLOYMENTS: &str = "/apis/apps/v1/namespaces/default/deployments";

fn map(data: Value) -> Value {
    json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "m"}, "data": data})
}

fn deployment(replicas: Option<i64>, image: &str) -> Value {
    let mut object = json!({"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "d"}, "spec": {
        "selector": {"matchLabels": {"a": "b"}}, "template": {"metadata": {"labels": {"a": "b"}},
            "spec": {"containers": [{"name": "c", "image": image, "ports": [{"containerPort": 80}]}]}}}});
    if let Some(replicas) = replicas {
        object["spec"]["replicas"] = json!(replicas);
    }
    object
}

/// A client and the path of one object.
struct At<'a>(&'a Rest, String);

impl At<'_> {
    async fn apply_with(&self, query: &str, config: &Value) -> Answer {
        let headers = [("content-type", "application/apply-patch+yaml"), ("user-agent", "prober/1.0")];
        self.0.send("PATCH", &format!("{}?{query}", self.1), &headers, config.to_string()).await
    }

    async fn apply(&self, manager: &str, config: &Value) -> Answer {
        self.apply_with(&format!("fieldManager={manager}"), config).await
    }

    async fn get(&self) -> Value {
        self.0.get(&self.1).await.json()
    }

    /// Entries as (manager, operation, subresource), and their fields.
    async fn owners(&self) -> Vec<(String, Value)> {
        let object = self.get().await;
        let list = object["metadata"]["managedFields"].as_array().cloned().unwrap_or_default();
        let name = |entry: &Value| {
            let part = |name: &str| entry[name].as_str().unwrap_or_default().to_owned();
            format!("{} {} {}", part("manager"), part("operation"), part("subresource")).trim_end().to_owned()
        };
        list.iter().map(|entry| (name(entry), entry["fieldsV1"].clone())).collect()
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn an_apply_makes_an_object_and_then_holds_it() {
    let server = TestServer::start().await;
    let admin = Rest::admin(&server);
    let at = At(&admin, format!("{MAPS}/m"));
    let made = at.apply("one", &map(json!({"a": "1", "b": "1"}))).await;
    assert_eq!(made.code, 201, "{}", made.text);
    let entry = &made.json()["metadata"]["managedFields"][0];
    assert_eq!(entry["fieldsV1"], json!({"f:data": {"f:a": {}, "f:b": {}}}));
    assert_eq!((&entry["operation"], &entry["apiVersion"]), (&json!("Apply"), &json!("v1")));
    let again = at.apply("one", &map(json!({"a": "1", "b": "1"}))).await;
    assert_eq!((again.code, again.json()), (200, made.json()), "revision and time stay");
    let less = at.apply("one", &map(json!({"a": "2"}))).await.json();
    assert_eq!(less["data"], json!({"a": "2"}));
    let dry = at.apply_with("fieldManager=one&dryRun=All", &map(json!({"a": "3"}))).await.json();
    assert_eq!(dry["data"], json!({"a": "3"}));
    assert_eq!(at.get().await, less, "a dry run stores nothing");
    let yaml =
        "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: m, creationTimestamp: null}\ndata:\n  a: '4'\n";
    let headers = [("content-type", "application/apply-patch+yaml")];
    let path = format!("{MAPS}/m?fieldManager=one");
    assert_eq!(admin.send("PATCH", &path, &headers, yaml).await.json()["data"], json!({"a": "4"}));
    server.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn conflicts_are_told_and_force_settles_them() {
    let server = TestServer::start().await;
    let admin = Rest::admin(&server);
    let at = At(&admin, format!("{MAPS}/m"));
    at.apply("one", &map(json!({"a": "1"}))).await;
    let refused = at.apply("two", &map(json!({"a": "2"}))).await.json();
    assert_eq!(refused["message"], "Apply failed with 1 conflict: conflict with \"one\": .data.a");
    assert_eq!((&refused["code"], &refused["reason"]), (&json!(409), &json!("Conflict")));
    let cause =
        json!({"reason": "FieldManagerConflict", "message": "conflict with \"one\"", "field": ".data.a"});
    assert_eq!(refused["details"]["causes"], json!([cause]));
    let forced = at.apply_with("fieldManager=two&force=true", &map(json!({"a": "2"}))).await;
    assert_eq!(forced.json()["data"], json!({"a": "2"}));
    assert_eq!(at.owners().await, [("two Apply".to_owned(), json!({"f:data": {"f:a": {}}}))]);
    // Sharing is no conflict, and ends when one leaves.
    at.apply("three", &map(json!({"a": "2"}))).await;
    at.apply("two", &map(json!({}))).await;
    assert_eq!(at.get().await["data"], json!({"a": "2"}));
    at.admin_put(json!({"a": "9"})).await;
    let refused = at.apply("three", &map(json!({"a": "2"}))).await.json();
    assert_eq!(
        refused["message"],
        "Apply failed with 1 conflict: conflict with \"prober\" using v1: .data.a"
    );
    server.stop().await;
}

impl At<'_> {
    /// Replaces the data of a config map without naming a manager.
    async fn admin_put(&self, data: Value) {
        let headers = [("content-type", "application/json"), ("user-agent", "prober/1.0 (linux)")];
        let answer = self.0.send("PUT", &self.1, &headers, map(data).to_string()).await;
        assert_eq!(answer.code, 200, "{}", answer.text);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn what_cannot_be_applied_is_refused_with_the_usual_words() {
    let server = TestServer::start().await;
    let admin = Rest::admin(&server);
    let at = At(&admin, format!("{MAPS}/m"));
    let told = async |query: &str, config: Value| {
        let answer = at.apply_with(query, &config).await;
        (answer.code, answer.json()["message"].as_str().unwrap_or_default().to_owned())
    };
    let one = "fieldManager=one";
    let (code, text) = told("", map(json!({}))).await;
    assert_eq!(code, 422);
    assert!(text.contains("fieldManager: Required value: is required for apply patch"), "{text}");
    let mut config = map(json!({}));
    config["metadata"]["managedFields"] = json!([]);
    assert_eq!(told(one, config).await, (400, "metadata.managedFields must be nil".to_owned()));
    let untyped = json!({"kind": "ConfigMap", "metadata": {"name": "m"}});
    assert_eq!(told(one, untyped).await, (400, "invalid object type: /, Kind=ConfigMap".to_owned()));
    let mut config = map(json!({}));
    config["bogus"] = json!(1);
    let text = "failed to create typed patch object (default/m; /v1, Kind=ConfigMap): .bogus: field not declared in schema";
    assert_eq!(told(one, config).await, (500, text.to_owned()));
    let mut config = map(json!({}));
    config["metadata"]["name"] = json!("other");
    assert_eq!(told(one, config).await.0, 400);
    let headers = [("content-type", "application/apply-patch+yaml")];
    let path = format!("{MAPS}/m?{one}");
    assert_eq!(admin.send("PATCH", &path, &headers, "a: [").await.code, 400);
    assert_eq!(admin.send("PATCH", &path, &headers, "a: 1\na: 2").await.code, 400);
    let merge = [("content-type", "application/merge-patch+json")];
    assert_eq!(admin.send("PATCH", &format!("{path}&force=true"), &merge, "{}").await.code, 422);
    let mut config = map(json!({"a": "1"}));
    config["metadata"]["uid"] = json!("nobody's");
    assert_eq!(told(one, config.clone()).await.0, 409, "a uid means an object that is there");
    config["metadata"] = json!({"name": "m", "resourceVersion": "1"});
    assert_eq!(told(one, map(json!({"a": "1"}))).await.0, 201);
    assert_eq!(told(one, config).await.0, 409, "a stale revision");
    let eve = Rest::with_token(&server, common::server::TOKEN);
    for (path, config) in [
        (format!("{MAPS}/m"), map(json!({"a": "1"}))),
        (format!("{MAPS}/x"), map(json!({}))),
        (format!("{DEPLOYMENTS}/d/status"), deployment(None, "i")),
        (format!("{DEPLOYMENTS}/d/scale"), json!({})),
    ] {
        assert_eq!(At(&eve, path).apply("one", &config).await.code, 403, "{config}");
    }
    server.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn every_write_moves_ownership() {
    let server = TestServer::start().await;
    let admin = Rest::admin(&server);
    let at = At(&admin, format!("{DEPLOYMENTS}/d"));
    at.apply("gitops", &deployment(Some(2), "i:1")).await;
    let scale = format!("{}/scale?fieldManager=scaler", at.1);
    let scaled = admin.merge(&scale, &json!({"spec": {"replicas": 5}})).await;
    assert_eq!((scaled.code, &scaled.json()["spec"]["replicas"]), (200, &json!(5)));
    let status = json!({"status": {"replicas": 5, "conditions": [{"type": "Available", "status": "True"}]}});
    let written = admin.merge(&format!("{}/status?fieldManager=controller", at.1), &status).await;
    assert_eq!(written.code, 200, "{}", written.text);
    let owners = at.owners().await;
    let names: Vec<&str> = owners.iter().map(|(name, _)| name.as_str()).collect();
    assert_eq!(names.len(), 3, "{names:?}");
    let of = |name: &str| &owners.iter().find(|(known, _)| known == name).unwrap().1;
    assert_eq!(of("gitops Apply")["f:spec"].get("f:replicas"), None);
    assert_eq!(*of("scaler Update scale"), json!({"f:spec": {"f:replicas": {}}}));
    let conditions = json!({".": {}, "k:{\"type\":\"Available\"}": {".": {}, "f:status": {}, "f:type": {}}});
    let wanted = json!({"f:status": {"f:conditions": conditions, "f:replicas": {}}});
    assert_eq!(*of("controller Update status"), wanted);
    // What is the scaler's is left alone by an apply that says nothing of it, and disputed by one that does.
    assert_eq!(at.apply("gitops", &deployment(None, "i:2")).await.json()["spec"]["replicas"], 5);
    let refused = at.apply("gitops", &deployment(Some(2), "i:2")).await.json();
    let wanted = "Apply failed with 1 conflict: conflict with \"scaler\" with subresource \"scale\" using apps/v1: .spec.replicas";
    assert_eq!(refused["message"], wanted);
    server.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn status_and_scale_are_applied_apart() {
    let server = TestServer::start().await;
    let admin = Rest::admin(&server);
    let at = At(&admin, format!("{DEPLOYMENTS}/d"));
    let status = At(&admin, format!("{DEPLOYMENTS}/d/status"));
    let scale = At(&admin, format!("{DEPLOYMENTS}/d/scale"));
    let mut config = deployment(Some(2), "i:1");
    config["status"] = json!({"replicas": 9});
    assert_eq!(status.apply("m", &config).await.code, 404, "only the object itself is made");
    let made = at.apply("m", &config).await.json();
    assert_eq!(made["status"].get("replicas"), None);
    config["spec"]["replicas"] = json!(7);
    let written = status.apply("controller", &config).await.json();
    assert_eq!((&written["status"]["replicas"], &written["spec"]["replicas"]), (&json!(9), &json!(2)));
    let again = status.apply("controller", &config).await.json();
    assert_eq!(again, written);
    let of_scale = |n: i64| json!({"apiVersion": "autoscaling/v1", "kind": "Scale", "metadata": {"name": "d"}, "spec": {"replicas": n}});
    let refused = scale.apply("scaler", &of_scale(3)).await.json();
    assert_eq!(refused["message"], "Apply failed with 1 conflict: conflict with \"m\": .spec.replicas");
    let forced = scale.apply_with("fieldManager=scaler&force=true", &of_scale(3)).await.json();
    assert_eq!((&forced["kind"], &forced["spec"]["replicas"]), (&json!("Scale"), &json!(3)));
    let owners = at.owners().await;
    let of = |name: &str| owners.iter().find(|(known, _)| known == name).map(|(_, fields)| fields.clone());
    assert_eq!(of("scaler Apply scale"), Some(json!({"f:spec": {"f:replicas": {}}})));
    assert_eq!(of("controller Apply status"), Some(json!({"f:status": {"f:replicas": {}}})));
    assert_eq!(scale.apply_with("fieldManager=scaler&force=true", &of_scale(-1)).await.code, 422);
    server.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn clients_may_rewrite_the_managers() {
    let server = TestServer::start().await;
    let admin = Rest::admin(&server);
    let at = At(&admin, format!("{MAPS}/m"));
    at.apply("one", &map(json!({"a": "1"}))).await;
    let before = at.get().await;
    // As kubectl does when it moves an object from client-side to server-side apply.
    let mut entries = before["metadata"]["managedFields"].clone();
    entries[0]["manager"] = json!("two");
    let patch = json!([
        {"op": "replace", "path": "/metadata/managedFields", "value": entries},
        {"op": "replace", "path": "/metadata/resourceVersion", "value": before["metadata"]["resourceVersion"]},
    ]);
    let json_patch = [("content-type", "application/json-patch+json")];
    let answer = admin.send("PATCH", &at.1, &json_patch, patch.to_string()).await;
    assert_eq!(answer.code, 200, "{}", answer.text);
    assert_eq!(at.owners().await, [("two Apply".to_owned(), json!({"f:data": {"f:a": {}}}))]);
    let stale = admin.send("PATCH", &at.1, &json_patch, patch.to_string()).await;
    assert_eq!(stale.code, 409);
    let one = json!([{"op": "replace", "path": "/metadata/managedFields/0/manager", "value": "three"}]);
    assert_eq!(admin.send("PATCH", &at.1, &json_patch, one.to_string()).await.code, 200);
    assert_eq!(at.owners().await[0].0, "three Apply");
    // Nonsense, silence and the same again leave all as it was.
    let before = at.get().await;
    for patch in [
        json!({"metadata": {"managedFields": [{"manager": "x", "operation": "Grow"}]}}),
        json!({"metadata": {"managedFields": null}}),
        json!({"metadata": {"managedFields": before["metadata"]["managedFields"]}}),
    ] {
        assert_eq!(admin.merge(&at.1, &patch).await.json(), before, "{patch}");
    }
    // Cleared, the object is tracked no more, until the next apply.
    let cleared = admin.merge(&at.1, &json!({"metadata": {"managedFields": [{}]}})).await.json();
    assert_eq!(cleared["metadata"].get("managedFields"), None);
    at.admin_put(json!({"a": "2"})).await;
    assert!(at.owners().await.is_empty());
    let refused = at.apply("one", &map(json!({"a": "3"}))).await.json();
    let wanted = "Apply failed with 1 conflict: conflict with \"before-first-apply\" using v1: .data.a";
    assert_eq!(refused["message"], wanted);
    server.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn applies_through_grpc_are_the_same() {
    let server = TestServer::start().await;
    let mut client = grpc::admin(&server);
    let mut send = async |manager: &str, force: bool, dry_run: bool, config: Value| {
        let field_manager = manager.to_owned();
        let request = v1::PatchRequest {
            resource: grpc::resource("", "configmaps"),
            namespace: "default".to_owned(),
            name: "m".to_owned(),
            r#type: v1::PatchType::Apply.into(),
            patch: config.to_string().into(),
            options: Some(v1::WriteOptions { field_manager, dry_run, ..Default::default() }),
            force,
            ..Default::default()
        };
        client.patch(request).await.map(tonic::Response::into_inner)
    };
    let made = send("one", false, false, map(json!({"a": "1"}))).await.unwrap();
    assert!(made.changed);
    let again = send("one", false, false, map(json!({"a": "1"}))).await.unwrap();
    assert!(!again.changed);
    assert_eq!(again.object, made.object);
    let refused = send("two", false, false, map(json!({"a": "2"}))).await.unwrap_err();
    assert_eq!(refused.code(), tonic::Code::Aborted);
    assert_eq!(refused.message(), "Apply failed with 1 conflict: conflict with \"one\": .data.a");
    assert!(send("two", true, true, map(json!({"a": "2"}))).await.unwrap().changed);
    let forced = send("two", true, false, map(json!({"a": "2"}))).await.unwrap();
    let object: Value = serde_json::from_slice(&forced.object).unwrap();
    assert_eq!(object["metadata"]["managedFields"][0]["manager"], "two");
    let rest = Rest::admin(&server).get(&format!("{MAPS}/m")).await.json();
    assert_eq!(rest, object);
    server.stop().await;
}
