//! Both facades answer the same: one table of requests, sent to one server over REST and to another over gRPC, whose
//! answers, refusals, warnings and events must be equal but for what chance and clocks decide.

#![allow(clippy::unwrap_used, reason = "a test ends at the first surprise")]

mod common;

use common::parity::{Ask, Grpc, How, grpc_events, rest_events, scrub, send_rest};
use common::rest::Rest;
use common::server::TestServer;
use serde_json::{Value, json};

fn map(name: &str) -> Value {
    json!({"metadata": {"name": name, "labels": {"app": "x"}}, "data": {"k": "v"}})
}

fn pod(name: &str) -> Value {
    json!({"metadata": {"name": name, "labels": {"app": "x"}},
        "spec": {"containers": [{"name": "c", "image": "nginx"}]}})
}

fn deployment(name: &str) -> Value {
    json!({"metadata": {"name": name}, "spec": {"replicas": 2, "selector": {"matchLabels": {"a": "b"}},
        "template": {"metadata": {"labels": {"a": "b"}}, "spec": {"containers": [{"name": "c", "image": "nginx"}]}}}})
}

fn applied(name: &str, data: &Value) -> Value {
    json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name}, "data": data})
}

fn maps(how: How, name: &'static str) -> Ask {
    Ask::new(how, ("", "v1", "configmaps"), "default", name)
}

fn pods(how: How, name: &'static str) -> Ask {
    Ask::new(how, ("", "v1", "pods"), "default", name)
}

fn deployments(how: How, name: &'static str) -> Ask {
    Ask::new(how, ("apps", "v1", "deployments"), "default", name)
}

/// Writes of whole objects, and what is wrong with them.
fn writes() -> Vec<Ask> {
    use How::{Apply, Create, Get, Json, Merge, Strategic, Update};
    vec![
        maps(Create, "").body(map("a")),
        maps(Create, "").body(map("a")),
        maps(Create, "").body(map("dry")).query("dryRun", "All"),
        maps(Create, "").body(map("Not A Name")),
        maps(Create, "").body(json!({"metadata": {"name": "b"}, "data": {"k": 1}})),
        maps(Create, "")
            .body(json!({"metadata": {"name": "b"}, "wrong": 1}))
            .query("fieldValidation", "Strict"),
        maps(Create, "").body(json!({"metadata": {"name": "b"}, "wrong": 1})),
        maps(Create, "").body(json!({"metadata": {"name": "c"}})).query("fieldValidation", "Loose"),
        maps(Create, "").body(json!({"metadata": {"name": "c", "namespace": "other"}})),
        maps(Create, "").body(json!({"kind": "Pod", "metadata": {"name": "c"}})),
        maps(Create, "").body(json!("text")),
        maps(Create, "").text("{\"metadata\": {"),
        maps(Create, "").text("{\"metadata\": {\"name\": \"d\", \"name\": \"e\"}}"),
        Ask::new(Create, ("", "v1", "configmaps"), "nowhere", "").body(map("a")),
        Ask::new(Create, ("", "v1", "configmaps"), "", "").body(map("a")),
        Ask::new(Create, ("", "v1", "nothings"), "default", "").body(map("a")),
        Ask::new(Create, ("apps", "v9", "deployments"), "default", "").body(map("a")),
        Ask::new(Create, ("", "v1", "namespaces"), "", "").body(json!({"metadata": {"name": "shop"}})),
        maps(Get, "a"),
        maps(Get, "z"),
        maps(Get, "a").query("resourceVersion", "0"),
        maps(Get, "a").query("resourceVersion", "abc"),
        maps(Get, "a").query("resourceVersionMatch", "Exact"),
        maps(Get, "a").query("resourceVersion", "999999"),
        maps(Update, "a").body(json!({"metadata": {"name": "a"}, "data": {"k": "w"}})),
        maps(Update, "a")
            .body(json!({"metadata": {"name": "a", "resourceVersion": "1"}, "data": {"k": "x"}})),
        maps(Update, "a").body(json!({"metadata": {"name": "b"}, "data": {"k": "x"}})),
        maps(Update, "z").body(map("z")),
        maps(Merge, "a").body(json!({"data": {"k": "v2", "n": null}})),
        maps(Merge, "a").body(json!({"data": {"k": "v2"}})),
        maps(Merge, "a").body(json!([1])),
        maps(Merge, "z").body(json!({"data": {"k": "v2"}})),
        maps(Json, "a").body(json!([{"op": "add", "path": "/data/j", "value": "1"}])),
        maps(Json, "a").body(json!([{"op": "test", "path": "/data/j", "value": "2"}])),
        maps(Json, "a").body(json!([{"op": "fly", "path": "/data/j"}])),
        maps(Strategic, "a").body(json!({"data": {"$patch": "replace", "s": "1"}})),
        maps(Strategic, "a").body(json!({"metadata": {"finalizers": ["example.com/f"]}})),
        maps(Merge, "a").body(json!({"data": {}})).query("force", "true"),
        maps(Apply, "a").body(applied("a", &json!({"s": "2"}))).query("fieldManager", "second"),
        maps(Apply, "a")
            .body(applied("a", &json!({"s": "2"})))
            .query("fieldManager", "second")
            .query("force", "true"),
        maps(Apply, "a").body(applied("a", &json!({"t": "3"}))).query("fieldManager", "second"),
        maps(Apply, "new").body(applied("new", &json!({"t": "3"}))).query("fieldManager", "second"),
        maps(Apply, "a").body(applied("a", &json!({}))).query("fieldManager", ""),
        maps(Apply, "a").body(json!({"kind": "Pod"})).query("fieldManager", "second"),
        maps(Apply, "a")
            .body(json!({"apiVersion": "v1", "kind": "ConfigMap", "spec": 1}))
            .query("fieldManager", "x"),
    ]
}

/// Subresources.
fn parts() -> Vec<Ask> {
    use How::{Create, Get, Merge, Update};
    let binding = json!({"apiVersion": "v1", "kind": "Binding", "metadata": {"name": "p"},
        "target": {"kind": "Node", "name": "n1"}});
    let scale = |n: i64| {
        json!({"apiVersion": "autoscaling/v1", "kind": "Scale", "metadata": {"name": "web", "namespace": "default"},
            "spec": {"replicas": n}})
    };
    let token = json!({"apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest",
        "spec": {"audiences": [], "expirationSeconds": 5}});
    vec![
        deployments(Create, "").body(deployment("web")),
        deployments(Create, "").body(json!({"metadata": {"name": "bad"}, "spec": {"replicas": -1}})),
        deployments(Get, "web").part("scale"),
        deployments(Update, "web").part("scale").body(scale(5)),
        deployments(Update, "web").part("scale").body(scale(-5)),
        deployments(Merge, "web").part("scale").body(json!({"spec": {"replicas": 3}})),
        deployments(Get, "web").part("status"),
        deployments(Merge, "web")
            .part("status")
            .body(json!({"status": {"replicas": 3}, "spec": {"replicas": 9}})),
        deployments(Merge, "web").body(json!({"spec": {"selector": {"matchLabels": {"a": "c"}}}})),
        deployments(Get, "web").part("nothing"),
        pods(Create, "").body(pod("p")),
        pods(Create, "p").part("binding").body(binding.clone()),
        pods(Create, "p").part("binding").body(binding),
        pods(Create, "p").part("binding").body(json!({"apiVersion": "v1", "kind": "Binding", "target": {}})),
        pods(Get, "p").part("binding"),
        pods(Merge, "p").part("status").body(json!({"status": {"phase": "Running"}})),
        pods(Merge, "p").body(json!({"spec": {"nodeName": "n2"}})),
        pods(Get, "p").part("log").query("container", "none"),
        Ask::new(Create, ("", "v1", "serviceaccounts"), "default", "default").part("token").body(token),
        Ask::new(How::Create, ("authorization.k8s.io", "v1", "selfsubjectaccessreviews"), "", "").body(
            json!({
            "apiVersion": "authorization.k8s.io/v1", "kind": "SelfSubjectAccessReview",
            "spec": {"resourceAttributes": {"verb": "get", "resource": "pods"}}}),
        ),
    ]
}

/// Reads of many, and deletions.
fn collections() -> Vec<Ask> {
    use How::{Create, Delete, DeleteMany, Get, List};
    vec![
        maps(Create, "").body(map("l1")),
        maps(Create, "").body(map("l2")),
        maps(List, "").query("labelSelector", "app=x"),
        maps(List, "").query("labelSelector", "app in (x"),
        maps(List, "").query("fieldSelector", "metadata.name=l1"),
        maps(List, "").query("fieldSelector", "data.k=v"),
        maps(List, "").query("limit", "2"),
        maps(List, "").query("continue", "rubbish"),
        maps(List, "").query("resourceVersion", "12").query("resourceVersionMatch", "Exact"),
        maps(List, "").query("resourceVersion", "0").query("resourceVersionMatch", "Exact"),
        maps(List, "").query("resourceVersion", "12").query("resourceVersionMatch", "Sometimes"),
        maps(List, "").query("resourceVersion", "999999"),
        Ask::new(List, ("", "v1", "configmaps"), "", ""),
        Ask::new(List, ("", "v1", "nodes"), "", ""),
        Ask::new(List, ("", "v1", "nothings"), "", ""),
        maps(Delete, "l1").query("preconditions.uid", "another"),
        maps(Delete, "l1").query("preconditions.resourceVersion", "1"),
        maps(Delete, "l1").query("propagationPolicy", "Sometimes"),
        maps(Delete, "l1").query("dryRun", "All"),
        maps(Delete, "l1"),
        maps(Delete, "l1"),
        // Held by a finalizer: marked, then marked already.
        maps(Delete, "a"),
        maps(Delete, "a"),
        pods(Delete, "p").query("gracePeriodSeconds", "5"),
        pods(Delete, "p").query("gracePeriodSeconds", "0"),
        pods(Get, "p"),
        deployments(Delete, "web").query("propagationPolicy", "Foreground"),
        deployments(Get, "web"),
        maps(DeleteMany, "").query("labelSelector", "app=x"),
        Ask::new(DeleteMany, ("", "v1", "configmaps"), "", ""),
        Ask::new(DeleteMany, ("", "v1", "namespaces"), "", ""),
        Ask::new(Delete, ("", "v1", "namespaces"), "", "default"),
    ]
}

#[tokio::test(flavor = "multi_thread")]
async fn the_same_requests_are_answered_the_same() {
    let (over_rest, over_grpc) = (TestServer::start().await, TestServer::start().await);
    let (rest, mut grpc) =
        (Rest::admin(&over_rest), Grpc::new(&over_grpc, Some(("admin", "system:masters"))));
    let mut faults = Vec::new();
    let asks: Vec<Ask> = writes().into_iter().chain(parts()).chain(collections()).collect();
    let mut refused = 0;
    for (number, ask) in asks.iter().enumerate() {
        let (one, other) = tokio::join!(send_rest(&rest, ask), grpc.send(ask));
        refused += usize::from(one.is_refusal());
        let (one, other) = (scrub(one), scrub(other));
        if one != other {
            faults.push(format!("{number} {ask:?}\n  rest: {one:?}\n  grpc: {other:?}"));
        }
    }
    assert!(faults.is_empty(), "{} of {} differ:\n{}", faults.len(), asks.len(), faults.join("\n"));
    assert!(refused > 30 && refused < asks.len() - 30, "{refused} of {} were refused", asks.len());
    let (one, other) = (over_rest.store.current_revision(), over_grpc.store.current_revision());
    assert_eq!(one, other, "both wrote as often");
    // And all that happened is told the same.
    let (one, other) = (rest_events(&rest, one.get()).await, grpc_events(&mut grpc, one.get()).await);
    assert!(one.len() > 10, "{}", one.len());
    assert_eq!(one, other);
    over_rest.stop().await;
    over_grpc.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn strangers_are_refused_the_same() {
    let server = TestServer::start().await;
    let who = Some(("eve", "people"));
    let (rest, mut grpc) = (Rest::new(&server, who), Grpc::new(&server, who));
    for how in
        [How::Get, How::Create, How::Update, How::Merge, How::Apply, How::Delete, How::List, How::DeleteMany]
    {
        let name = if matches!(how, How::Create | How::List | How::DeleteMany) { "" } else { "a" };
        let ask = maps(how, name).body(applied("a", &json!({}))).query("fieldManager", "eve");
        let (one, other) = (send_rest(&rest, &ask).await, grpc.send(&ask).await);
        assert!(one.is_refusal(), "{ask:?}");
        assert_eq!(scrub(one), scrub(other), "{ask:?}");
    }
    server.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_too_large_is_refused_the_same() {
    let server = TestServer::start().await;
    let (rest, mut grpc) = (Rest::admin(&server), Grpc::new(&server, Some(("admin", "system:masters"))));
    let large = json!({"metadata": {"name": "large"}, "data": {"k": "x".repeat(4 << 20)}});
    let ask = maps(How::Create, "").body(large);
    let (one, other) = (send_rest(&rest, &ask).await, grpc.send(&ask).await);
    assert!(one.is_refusal());
    assert_eq!(scrub(one), scrub(other));
    server.stop().await;
}
