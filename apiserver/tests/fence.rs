//! A writer that lost its lease is refused, over REST and over gRPC, and nothing of it is stored.

#![allow(clippy::unwrap_used, reason = "a test ends at the first surprise")]

mod common;

use common::grpc::{admin, resource};
use common::rest::{Answer, Rest};
use common::server::TestServer;
use serde_json::{Value, json};
use strata_wire::{FENCE_HEADER, v1};
use tonic::{Code, Request};

const MAPS: &str = "/api/v1/namespaces/default/configmaps";
const LEASES: &str = "/apis/coordination.k8s.io/v1/namespaces/kube-system/leases";
const FIRST: &str = "2026-11-30T10:00:00.000000Z";
const SECOND: &str = "2026-11-30T10:00:30.000000Z";

fn term(acquired: &str, holder: &str) -> String {
    format!("kube-system/painter {acquired} {holder}")
}

fn lease(acquired: &str, holder: &str) -> Value {
    json!({"metadata": {"name": "painter"}, "spec": {"holderIdentity": holder, "acquireTime": acquired}})
}

async fn fenced(rest: &Rest, method: &str, path: &str, fence: &str, body: &str) -> Answer {
    let kind = if method == "PATCH" { "application/merge-patch+json" } else { "application/json" };
    rest.send(method, path, &[("content-type", kind), (FENCE_HEADER, fence)], body.to_owned()).await
}

#[tokio::test(flavor = "multi_thread")]
async fn a_writer_is_let_in_for_its_term_and_no_longer() {
    let server = TestServer::start().await;
    let rest = Rest::admin(&server);
    let map = |name: &str| json!({"metadata": {"name": name}}).to_string();
    let one = format!("{MAPS}/one");

    let early = fenced(&rest, "POST", MAPS, &term(FIRST, "a"), &map("early")).await;
    assert_eq!(early.code, 409, "{}", early.text);
    assert_eq!(rest.post(LEASES, &lease(FIRST, "a")).await.code, 201);
    assert_eq!(fenced(&rest, "POST", MAPS, &term(FIRST, "a"), &map("one")).await.code, 201);
    let patched = fenced(&rest, "PATCH", &one, &term(FIRST, "a"), r#"{"data":{"k":"1"}}"#).await;
    assert_eq!(patched.code, 200, "{}", patched.text);

    // A renewal does not end the term; another holder does.
    let renewed = json!({"spec": {"renewTime": SECOND}});
    assert_eq!(rest.merge(&format!("{LEASES}/painter"), &renewed).await.code, 200);
    assert_eq!(fenced(&rest, "PATCH", &one, &term(FIRST, "a"), r#"{"data":{"k":"2"}}"#).await.code, 200);
    let taken = json!({"spec": {"holderIdentity": "b", "acquireTime": SECOND}});
    assert_eq!(rest.merge(&format!("{LEASES}/painter"), &taken).await.code, 200);
    for (method, path, body) in [
        ("POST", MAPS, map("late")),
        ("PATCH", one.as_str(), r#"{"data":{"k":"late"}}"#.to_owned()),
        ("DELETE", one.as_str(), String::new()),
    ] {
        let refused = fenced(&rest, method, path, &term(FIRST, "a"), &body).await;
        assert_eq!(refused.code, 409, "{method}: {}", refused.text);
        let status = refused.json();
        assert_eq!(status["reason"], "Conflict");
        assert!(status["message"].as_str().unwrap().contains("b holds it"), "{status}");
    }
    assert_eq!(rest.get(&format!("{MAPS}/late")).await.code, 404);
    assert_eq!(rest.get(&one).await.json()["data"]["k"], "2");
    assert_eq!(fenced(&rest, "DELETE", &one, &term(SECOND, "b"), "").await.code, 200);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_process_that_takes_its_own_lease_back_ends_the_term_of_the_one_before_it() {
    let server = TestServer::start().await;
    let (rest, mut grpc) = (Rest::admin(&server), admin(&server));
    assert_eq!(rest.post(LEASES, &lease(SECOND, "a")).await.code, 201);
    let create = |name: &str, acquired: &str| {
        let message = v1::CreateRequest {
            resource: resource("", "configmaps"),
            namespace: "default".to_owned(),
            object: json!({"metadata": {"name": name}}).to_string().into_bytes().into(),
            ..Default::default()
        };
        let mut request = Request::new(message);
        request.metadata_mut().insert(FENCE_HEADER, term(acquired, "a").parse().unwrap());
        request
    };
    let refused = grpc.create(create("old", FIRST)).await.unwrap_err();
    assert_eq!(refused.code(), Code::Aborted, "{refused:?}");
    assert!(refused.message().contains("taken it anew"), "{refused:?}");
    assert!(grpc.create(create("new", SECOND)).await.unwrap().into_inner().changed);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_fence_that_names_no_term_is_refused_before_anything_else() {
    let server = TestServer::start().await;
    let rest = Rest::admin(&server);
    let refused = fenced(&rest, "POST", MAPS, "painter", r#"{"metadata":{"name":"x"}}"#).await;
    assert_eq!(refused.code, 400, "{}", refused.text);
    assert!(refused.text.contains("NAMESPACE/NAME ACQUIRE-TIME HOLDER-IDENTITY"), "{}", refused.text);
    assert_eq!(rest.get(&format!("{MAPS}/x")).await.code, 404);
}
