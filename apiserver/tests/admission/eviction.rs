//! Evictions over HTTP and gRPC: budgets agree, refuse and pay.

use serde_json::{Value, json};
use strata_wire::v1;

use crate::common::grpc;
use crate::common::rest::Rest;
use crate::common::server::TestServer;

const PODS: &str = "/api/v1/namespaces/default/pods";
const BUDGETS: &str = "/apis/policy/v1/namespaces/default/poddisruptionbudgets";

fn pod(name: &str) -> Value {
    json!({"metadata": {"name": name, "labels": {"app": "web"}},
        "spec": {"nodeName": "n1", "containers": [{"name": "c", "image": "i:1"}]}})
}

fn eviction(name: &str) -> Value {
    json!({"apiVersion": "policy/v1", "kind": "Eviction", "metadata": {"name": name, "namespace": "default"}})
}

async fn running(admin: &Rest, name: &str, ready: &str) {
    assert_eq!(admin.post(PODS, &pod(name)).await.code, 201);
    let status = json!({"status": {"phase": "Running", "conditions": [{"type": "Ready", "status": ready}]}});
    assert_eq!(admin.merge(&format!("{PODS}/{name}/status"), &status).await.code, 200);
}

/// A budget over the pods that allows this many to go.
async fn budget(admin: &Rest, allowed: i64) {
    let body = json!({"metadata": {"name": "b"},
        "spec": {"minAvailable": 1, "selector": {"matchLabels": {"app": "web"}}}});
    assert_eq!(admin.post(BUDGETS, &body).await.code, 201);
    let status = json!({"status": {"observedGeneration": 1, "disruptionsAllowed": allowed, "currentHealthy": 2,
        "desiredHealthy": 1, "expectedPods": 2}});
    let answer = admin.merge(&format!("{BUDGETS}/b/status"), &status).await;
    assert_eq!(answer.code, 200, "{}", answer.text);
}

async fn status(admin: &Rest) -> Value {
    admin.get(&format!("{BUDGETS}/b")).await.json()["status"].take()
}

#[tokio::test]
async fn a_budget_pays_in_the_transaction_of_the_deletion_and_refuses_when_it_is_spent() {
    let server = TestServer::start().await;
    let admin = Rest::admin(&server);
    for name in ["a", "b", "c"] {
        running(&admin, name, "True").await;
    }
    budget(&admin, 1).await;

    let mut dry = eviction("a");
    dry["deleteOptions"] = json!({"dryRun": ["All"]});
    assert_eq!(admin.post(&format!("{PODS}/a/eviction"), &dry).await.code, 201);
    let by_query = format!("{PODS}/a/eviction?dryRun=All");
    assert_eq!(admin.post(&by_query, &eviction("a")).await.code, 201);
    assert_eq!(status(&admin).await["disruptionsAllowed"], 1, "a dry run takes nothing");

    let done = admin.post(&format!("{PODS}/a/eviction"), &eviction("a")).await;
    assert_eq!((done.code, done.json()["status"].as_str()), (201, Some("Success")), "{}", done.text);
    let gone = admin.get(&format!("{PODS}/a")).await.json();
    assert!(gone["metadata"]["deletionTimestamp"].is_string());
    let told =
        gone["status"]["conditions"].as_array().unwrap().iter().find(|c| c["type"] == "DisruptionTarget");
    assert_eq!(told.unwrap()["reason"], "EvictionByEvictionAPI");
    let after = admin.get(&format!("{BUDGETS}/b")).await.json();
    assert_eq!(after["status"]["disruptionsAllowed"], 0);
    assert!(after["status"]["disruptedPods"]["a"].is_string());
    assert_eq!(after["metadata"]["resourceVersion"], gone["metadata"]["resourceVersion"], "one transaction");

    let refused = admin.post(&format!("{PODS}/b/eviction"), &eviction("b")).await;
    assert_eq!(refused.code, 429);
    let refused = refused.json();
    assert_eq!(refused["message"], "Cannot evict pod as it would violate the pod's disruption budget.");
    assert_eq!(refused["details"]["causes"][0]["reason"], "DisruptionBudget");
    let again = admin.post(&format!("{PODS}/a/eviction"), &eviction("a")).await;
    assert_eq!(again.code, 201, "a pod that goes already is nobody's loss: {}", again.text);
    server.stop().await;
}

#[tokio::test]
async fn concurrent_evictions_take_what_is_allowed_and_no_more() {
    let server = TestServer::start().await;
    let admin = Rest::admin(&server);
    let names: Vec<String> = (0..12).map(|n| format!("p{n}")).collect();
    for name in &names {
        running(&admin, name, "True").await;
    }
    budget(&admin, 5).await;
    let evictions = names.iter().map(|name| {
        let (admin, path, body) = (admin.clone(), format!("{PODS}/{name}/eviction"), eviction(name));
        tokio::spawn(async move { admin.post(&path, &body).await.code })
    });
    let mut codes = Vec::new();
    for eviction in evictions.collect::<Vec<_>>() {
        codes.push(eviction.await.unwrap());
    }
    codes.sort_unstable();
    assert_eq!(codes, [vec![201; 5], vec![429; 7]].concat());
    assert_eq!(status(&admin).await["disruptedPods"].as_object().unwrap().len(), 5);
    server.stop().await;
}

#[tokio::test]
async fn pods_that_are_not_ready_go_by_the_policy_and_bad_requests_say_what_is_wrong() {
    let server = TestServer::start().await;
    let admin = Rest::admin(&server);
    running(&admin, "unready", "False").await;
    running(&admin, "ready", "True").await;
    budget(&admin, 0).await;
    let few = json!({"status": {"currentHealthy": 0}});
    admin.merge(&format!("{BUDGETS}/b/status"), &few).await;
    let evict = |name: &str| (format!("{PODS}/{name}/eviction"), eviction(name));
    let (path, body) = evict("unready");
    assert_eq!(admin.post(&path, &body).await.code, 429, "the healthy ones are too few");
    let always = json!({"spec": {"unhealthyPodEvictionPolicy": "AlwaysAllow"}});
    let answer = admin.merge(&format!("{BUDGETS}/b"), &always).await;
    assert_eq!(answer.code, 200, "{}", answer.text);
    let (path, body) = evict("ready");
    let refused = admin.post(&path, &body).await;
    assert_eq!(refused.code, 429);
    assert_eq!(refused.headers["retry-after"], "10", "the new generation is not judged yet");
    let (path, body) = evict("unready");
    assert_eq!(admin.post(&path, &body).await.code, 201);

    let mismatch = admin.post(&format!("{PODS}/ready/eviction"), &eviction("other")).await;
    assert_eq!((mismatch.code, mismatch.text.contains("does not match")), (400, true), "{}", mismatch.text);
    assert_eq!(admin.post(&format!("{PODS}/none/eviction"), &eviction("none")).await.code, 404);
    let mut stale = eviction("ready");
    stale["deleteOptions"] = json!({"preconditions": {"uid": "other"}});
    admin.delete(&format!("{BUDGETS}/b")).await;
    assert_eq!(admin.post(&format!("{PODS}/ready/eviction"), &stale).await.code, 409);
    let nobody = Rest::with_token(&server, crate::common::server::TOKEN);
    assert_eq!(nobody.post(&format!("{PODS}/ready/eviction"), &eviction("ready")).await.code, 403);
    server.stop().await;
}

#[tokio::test]
async fn grpc_evicts_alike_and_discovery_tells_of_it() {
    let server = TestServer::start().await;
    let admin = Rest::admin(&server);
    running(&admin, "a", "True").await;
    budget(&admin, 0).await;
    let request = v1::CreateRequest {
        resource: grpc::resource("", "pods"),
        namespace: "default".to_owned(),
        name: "a".to_owned(),
        subresource: "eviction".to_owned(),
        object: eviction("a").to_string().into_bytes().into(),
        ..v1::CreateRequest::default()
    };
    let mut client = grpc::admin(&server);
    let refused = client.create(request.clone()).await.unwrap_err();
    assert_eq!(refused.code(), tonic::Code::ResourceExhausted, "{refused:?}");
    admin.merge(&format!("{BUDGETS}/b/status"), &json!({"status": {"disruptionsAllowed": 1}})).await;
    client.create(request).await.unwrap();
    let listed = admin.get("/api/v1").await.json();
    let entry =
        listed["resources"].as_array().unwrap().iter().find(|r| r["name"] == "pods/eviction").unwrap();
    assert_eq!(
        (&entry["group"], &entry["version"], &entry["kind"], &entry["verbs"]),
        (&json!("policy"), &json!("v1"), &json!("Eviction"), &json!(["create"]))
    );
    server.stop().await;
}
