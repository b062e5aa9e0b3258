//! Time travel as clients see it, over both facades: states of then, moments, and what happened to objects.

#![allow(clippy::unwrap_used, reason = "a test ends at the first surprise")]

mod common;

use common::grpc::{admin, channel, resource};
use common::rest::Rest;
use common::server::TestServer;
use serde_json::{Value, json};
use strata_wire::convert::from_rpc;
use strata_wire::v1::history_client::HistoryClient;
use strata_wire::v1::{self, moment_request::Which};
use tonic::Code;
use tonic::transport::Channel;

const MAPS: &str = "/api/v1/namespaces/default/configmaps";

fn history(server: &TestServer, who: Option<(&str, &str)>) -> HistoryClient<Channel> {
    HistoryClient::new(channel(server, who))
}

fn revision(object: &Value) -> u64 {
    object["metadata"]["resourceVersion"].as_str().unwrap().parse().unwrap()
}

fn all_of(name: &str) -> v1::ChangesRequest {
    v1::ChangesRequest {
        resource: resource("", "configmaps"),
        namespace: "default".to_owned(),
        name: name.to_owned(),
        ..Default::default()
    }
}

async fn changes(
    history: &mut HistoryClient<Channel>,
    request: v1::ChangesRequest,
) -> Result<v1::ChangesChunk, tonic::Status> {
    let mut chunks = history.changes(request).await?.into_inner();
    let mut all = chunks.message().await?.unwrap();
    while let Some(chunk) = chunks.message().await? {
        all.changes.extend(chunk.changes);
    }
    Ok(all)
}

/// A config map that was made, patched over REST, applied over gRPC for a reason, and deleted: its revisions.
async fn life(server: &TestServer) -> Vec<u64> {
    let rest = Rest::admin(server);
    let made = rest.post(MAPS, &json!({"metadata": {"name": "a"}, "data": {"k": "1"}})).await.json();
    let body = json!({"data": {"k": "2"}, "metadata": {"labels": {"x": "y"}}});
    let patched = rest.merge(&format!("{MAPS}/a?fieldManager=hand"), &body).await.json();
    let apply = v1::PatchRequest {
        resource: resource("", "configmaps"),
        namespace: "default".to_owned(),
        name: "a".to_owned(),
        r#type: v1::PatchType::Apply.into(),
        patch: json!({"apiVersion": "v1", "kind": "ConfigMap", "data": {"other": "3"}}).to_string().into(),
        options: Some(v1::WriteOptions {
            field_manager: "tool".to_owned(),
            cause: "because".to_owned(),
            ..Default::default()
        }),
        ..Default::default()
    };
    let applied = admin(server).patch(apply).await.unwrap().into_inner();
    let applied: Value = serde_json::from_slice(&applied.object).unwrap();
    assert_eq!(rest.delete(&format!("{MAPS}/a")).await.code, 200);
    vec![revision(&made), revision(&patched), revision(&applied), server.store.current_revision().get()]
}

#[tokio::test(flavor = "multi_thread")]
async fn states_of_then_are_read_over_both_facades() {
    let server = TestServer::start().await;
    let revisions = life(&server).await;
    let (rest, mut grpc) = (Rest::admin(&server), admin(&server));
    for (at, expected) in [(0, Some("1")), (1, Some("2")), (2, Some("2")), (3, None)] {
        let exact = revisions[at].to_string();
        let query = format!("resourceVersion={exact}&resourceVersionMatch=Exact");
        let over_rest = rest.get(&format!("{MAPS}/a?{query}")).await;
        let request = v1::GetRequest {
            resource: resource("", "configmaps"),
            namespace: "default".to_owned(),
            name: "a".to_owned(),
            resource_version: exact.clone(),
            resource_version_match: "Exact".to_owned(),
            ..Default::default()
        };
        let over_grpc = grpc.get(request).await;
        let list = rest.get(&format!("{MAPS}?{query}&fieldSelector=metadata.name%3Da")).await.json();
        match expected {
            Some(value) => {
                assert_eq!(over_rest.json()["data"]["k"], value, "at {exact}");
                assert_eq!(over_grpc.unwrap().into_inner().json, over_rest.text.as_bytes());
                assert_eq!(list["items"][0]["data"]["k"], value);
            }
            None => {
                assert_eq!(over_rest.code, 404, "at {exact}");
                assert_eq!(over_grpc.unwrap_err().code(), Code::NotFound);
                assert_eq!(list["items"], json!([]));
            }
        }
        assert_eq!(list["metadata"]["resourceVersion"], exact);
    }
    server.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn history_tells_who_changed_what_and_why() {
    let server = TestServer::start().await;
    let revisions = life(&server).await;
    let mut history = history(&server, Some(("admin", "system:masters")));
    let told =
        changes(&mut history, v1::ChangesRequest { include_objects: true, ..all_of("a") }).await.unwrap();
    let brief: Vec<_> = told
        .changes
        .iter()
        .map(|c| (c.revision, c.r#type(), c.verb.as_str(), c.manager.as_str(), c.fields.join(" ")))
        .collect();
    use v1::EventType::{Added, Deleted, Modified};
    assert_eq!(
        brief,
        [
            (revisions[0], Added, "create", "unknown", String::new()),
            (revisions[1], Modified, "patch", "hand", ".data.k .metadata.labels.x".to_owned()),
            (revisions[2], Modified, "apply", "tool", ".data.other".to_owned()),
            (revisions[3], Deleted, "delete", "unknown", String::new()),
        ]
        .map(|(revision, kind, verb, manager, fields)| (revision, kind, verb, manager, fields))
    );
    assert!(told.changes.iter().all(|c| c.user == "admin" && !c.request.is_empty() && c.name == "a"));
    assert!(told.changes.windows(2).all(|pair| pair[0].time <= pair[1].time), "times never go back");
    assert_eq!(told.changes[2].cause, "because");
    assert!(told.changes[0].previous.is_empty() && told.changes[3].object.is_empty());
    assert_eq!(told.changes[1].object, told.changes[2].previous);
    // Spans and limits.
    let span =
        v1::ChangesRequest { after_revision: revisions[0], through_revision: revisions[2], ..all_of("a") };
    let some = changes(&mut history, span).await.unwrap();
    assert_eq!(some.changes.iter().map(|c| c.revision).collect::<Vec<_>>(), revisions[1..=2]);
    let newest = changes(&mut history, v1::ChangesRequest { limit: 1, ..all_of("") }).await.unwrap();
    assert!(newest.truncated && newest.changes[0].revision == revisions[3]);
    server.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn history_is_told_in_the_version_that_is_asked_for() {
    let server = TestServer::start().await;
    let (rest, mut history) = (Rest::admin(&server), history(&server, Some(("admin", "system:masters"))));
    let version = |name: &str, storage: bool| {
        json!({"name": name, "served": true, "storage": storage, "schema": {"openAPIV3Schema": {"type": "object",
            "properties": {"spec": {"type": "object", "properties": {"size": {"type": "integer"},
                "since": {"type": "string", "default": name}}}}}}})
    };
    let crd = json!({"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
        "metadata": {"name": "rings.example.com"}, "spec": {"group": "example.com", "scope": "Namespaced",
        "names": {"plural": "rings", "kind": "Ring"}, "versions": [version("v1", true), version("v2", false)]}});
    let made = rest.post("/apis/apiextensions.k8s.io/v1/customresourcedefinitions", &crd).await;
    assert_eq!(made.code, 201, "{}", made.text);
    let rings = "/apis/example.com/v1/namespaces/default/rings";
    let ring = json!({"apiVersion": "example.com/v1", "kind": "Ring", "metadata": {"name": "a"}, "spec": {"size": 1}});
    assert_eq!(rest.post(rings, &ring).await.code, 201);
    assert_eq!(rest.merge(&format!("{rings}/a"), &json!({"spec": {"size": 2}})).await.code, 200);
    for wanted in ["v1", "v2"] {
        let place = v1::ResourceRef {
            group: "example.com".to_owned(),
            version: wanted.to_owned(),
            resource: "rings".to_owned(),
        };
        let request = v1::ChangesRequest { resource: Some(place), include_objects: true, ..all_of("a") };
        let told = changes(&mut history, request).await.unwrap().changes;
        assert_eq!(told.len(), 2, "{told:?}");
        assert_eq!(told[1].fields, [".spec.size"]);
        for bytes in [&told[0].object, &told[1].previous, &told[1].object] {
            let object: Value = serde_json::from_slice(bytes).unwrap();
            assert_eq!(object["apiVersion"], format!("example.com/{wanted}"));
        }
    }
    // A form of a built-in type is told as that form, too.
    let scalers = "/apis/autoscaling/v2/namespaces/default/horizontalpodautoscalers";
    let scaler = json!({"metadata": {"name": "a"}, "spec": {"maxReplicas": 3,
        "scaleTargetRef": {"kind": "Deployment", "name": "a", "apiVersion": "apps/v1"}}});
    assert_eq!(rest.post(scalers, &scaler).await.code, 201);
    let place = resource("autoscaling", "horizontalpodautoscalers");
    let request = v1::ChangesRequest { resource: place, include_objects: true, ..all_of("a") };
    let told = changes(&mut history, request).await.unwrap().changes;
    let object: Value = serde_json::from_slice(&told[0].object).unwrap();
    assert_eq!(
        (&object["apiVersion"], object["spec"]["metrics"].is_null()),
        (&json!("autoscaling/v1"), true)
    );
    assert_eq!(object["spec"]["targetCPUUtilizationPercentage"], 80);
    server.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn moments_are_found_and_lost_ones_say_what_is_kept() {
    let server = TestServer::start().await;
    let revisions = life(&server).await;
    let mut history = history(&server, Some(("admin", "system:masters")));
    let mut at =
        async |which| history.moment(v1::MomentRequest { which }).await.map(tonic::Response::into_inner);
    let patched = at(Some(Which::Revision(revisions[1]))).await.unwrap();
    let by_time = at(Some(Which::Time(patched.time.clone()))).await.unwrap();
    assert!(by_time.revision >= revisions[1] && by_time.time == patched.time, "{by_time:?}");
    assert_eq!(at(None).await.unwrap().revision, revisions[3]);
    assert_eq!(at(Some(Which::MillisecondsAgo(0))).await.unwrap().revision, revisions[3]);
    assert_eq!(at(Some(Which::MillisecondsAgo(u64::MAX))).await.unwrap().revision, 0, "nothing was there");
    assert_eq!(
        at(Some(Which::Time("yesterday".to_owned()))).await.unwrap_err().code(),
        Code::InvalidArgument
    );
    let never = at(Some(Which::Revision(u64::MAX))).await.unwrap_err();
    assert_eq!(never.code(), Code::InvalidArgument);
    assert!(never.message().contains(&format!("the newest is {}", revisions[3])), "{}", never.message());
    server.store.compact(strata_store::revision::Revision::new(revisions[2])).await.unwrap();
    let gone = at(Some(Which::Revision(revisions[0]))).await.unwrap_err();
    assert_eq!((gone.code(), from_rpc(&gone).unwrap().code), (Code::OutOfRange, Some(410)));
    assert!(gone.message().contains(&format!("ask for {} or later", revisions[2])), "{}", gone.message());
    let span = v1::ChangesRequest { after_revision: revisions[0], ..all_of("a") };
    let gone = changes(&mut history.clone(), span).await.unwrap_err();
    assert!(gone.message().contains(&format!("ask for {} or later", revisions[2])), "{}", gone.message());
    let query = format!("resourceVersion={}&resourceVersionMatch=Exact", revisions[0]);
    let over_rest = Rest::admin(&server).get(&format!("{MAPS}/a?{query}")).await;
    assert_eq!(over_rest.code, 410);
    assert!(
        over_rest.text.contains(&format!("the oldest that is kept is {}", revisions[2])),
        "{}",
        over_rest.text
    );
    server.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn the_past_needs_the_rights_of_the_present() {
    let server = TestServer::start().await;
    life(&server).await;
    let mut eve = history(&server, Some(("eve", "people")));
    assert_eq!(changes(&mut eve, all_of("a")).await.unwrap_err().code(), Code::PermissionDenied);
    assert_eq!(changes(&mut eve, all_of("")).await.unwrap_err().code(), Code::PermissionDenied);
    assert!(eve.moment(v1::MomentRequest::default()).await.is_ok(), "a revision is no secret");
    let mut nobody = history(&server, None);
    let refused = nobody.moment(v1::MomentRequest::default()).await.unwrap_err();
    assert_eq!(refused.code(), Code::Unauthenticated);
    server.stop().await;
}
