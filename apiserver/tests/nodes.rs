//! A node's identity reaches no further than its own node, lease and pods.

#![allow(clippy::unwrap_used, reason = "a test ends at the first surprise")]

mod common;

use common::rest::Rest;
use common::server::TestServer;
use serde_json::json;

const PODS: &str = "/api/v1/namespaces/default/pods";
const LEASES: &str = "/apis/coordination.k8s.io/v1/namespaces/kube-node-lease/leases";

#[tokio::test(flavor = "multi_thread")]
async fn a_node_changes_what_is_its_own_and_nothing_of_others() {
    let server = TestServer::start().await;
    let admin = Rest::admin(&server);
    let node = Rest::new(&server, Some(("system:node:n1", "system:nodes")));
    for (pod, on) in [("mine", "n1"), ("theirs", "n2")] {
        let body = json!({"metadata": {"name": pod}, "spec": {"nodeName": on, "containers": [{"name": "c", "image": "i"}]}});
        assert_eq!(admin.post(PODS, &body).await.code, 201);
    }
    let running = json!({"status": {"phase": "Running"}});
    for (pod, code) in [("mine", 200), ("theirs", 403)] {
        let patched = node.merge(&format!("{PODS}/{pod}/status"), &running).await;
        assert_eq!(patched.code, code, "{pod}: {}", patched.text);
        let deleted = node.send("DELETE", &format!("{PODS}/{pod}?gracePeriodSeconds=0"), &[], "").await;
        assert_eq!(deleted.code, code, "{pod}: {}", deleted.text);
    }
    let theirs = admin.get(&format!("{PODS}/theirs")).await.json();
    assert!(
        theirs["metadata"]["deletionTimestamp"].is_null() && theirs["status"]["phase"] != "Running",
        "{theirs}"
    );
    for (name, code) in [("n1", 201), ("n1-7", 201), ("n2", 403)] {
        let body = json!({"metadata": {"name": name}});
        let made = node.post("/api/v1/nodes", &body).await;
        assert_eq!(made.code, code, "{name}: {}", made.text);
        let made = node.post(LEASES, &body).await;
        assert_eq!(made.code, code, "{name}: {}", made.text);
    }
    let refused = node.send("DELETE", &format!("{PODS}/theirs"), &[], "").await.json();
    let message = refused["message"].as_str().unwrap();
    assert!(
        message.contains("node \"n1\" can only delete pods with spec.nodeName set to itself"),
        "{message}"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn a_node_reads_what_its_pods_name_for_as_long_as_they_are_there() {
    let server = TestServer::start().await;
    let admin = Rest::admin(&server);
    let node = Rest::new(&server, Some(("system:node:n1", "system:nodes")));
    let base = "/api/v1/namespaces/default";
    for (kind, name) in [
        ("secrets", "mine"),
        ("secrets", "theirs"),
        ("configmaps", "mine"),
        ("configmaps", "theirs"),
        ("serviceaccounts", "theirs"),
    ] {
        let made = admin.post(&format!("{base}/{kind}"), &json!({"metadata": {"name": name}})).await;
        assert_eq!(made.code, 201, "{}", made.text);
    }
    let pod = |name: &str, account: &str| {
        json!({"metadata": {"name": name}, "spec": {"serviceAccountName": account, "containers": [{"name": "c", "image": "i",
            "envFrom": [{"secretRef": {"name": name}}, {"configMapRef": {"name": name}}]}]}})
    };
    let mine = admin.post(PODS, &pod("mine", "default")).await.json();
    assert_eq!(node.get(&format!("{base}/secrets/mine")).await.code, 403, "no pod of the node names it yet");
    for (name, on) in [("mine", "n1"), ("theirs", "n2")] {
        if name == "theirs" {
            assert_eq!(admin.post(PODS, &pod(name, name)).await.code, 201);
        }
        let binding = json!({"metadata": {"name": name}, "target": {"kind": "Node", "name": on}});
        assert_eq!(admin.post(&format!("{PODS}/{name}/binding"), &binding).await.code, 201);
    }
    for kind in ["secrets", "configmaps"] {
        let refused = node.get(&format!("{base}/{kind}/theirs")).await;
        assert_eq!(refused.code, 403, "{kind}");
        let message = refused.json()["message"].as_str().unwrap().to_owned();
        assert!(message.ends_with("no relationship found between node 'n1' and this object"), "{message}");
        for (path, code) in [
            (format!("{kind}/mine"), 200),
            (kind.to_owned(), 403),
            (format!("{kind}?fieldSelector=metadata.name%3Dmine"), 200),
            (format!("{kind}?fieldSelector=metadata.name%3Dtheirs"), 403),
            (format!("{kind}?watch=1&timeoutSeconds=1&fieldSelector=metadata.name%3Dmine"), 200),
            (format!("{kind}?watch=1&timeoutSeconds=1&fieldSelector=metadata.name%3Dtheirs"), 403),
            (format!("{kind}?watch=1&timeoutSeconds=1"), 403),
        ] {
            assert_eq!(node.get(&format!("{base}/{path}")).await.code, code, "{path}");
        }
        assert_eq!(node.get(&format!("/api/v1/{kind}")).await.code, 403);
    }
    let accounts = format!("{base}/serviceaccounts");
    assert_eq!(node.get(&format!("{accounts}/default")).await.code, 200);
    assert_eq!(node.get(&format!("{accounts}/theirs")).await.code, 403);
    let bound = json!({"spec": {"boundObjectRef": {"kind": "Pod", "apiVersion": "v1", "name": "mine", "uid": mine["metadata"]["uid"]}}});
    let token = node.post(&format!("{accounts}/default/token"), &bound).await;
    assert_eq!(token.code, 201, "{}", token.text);
    assert_eq!(node.post(&format!("{accounts}/default/token"), &json!({"spec": {}})).await.code, 403);
    assert_eq!(node.post(&format!("{accounts}/theirs/token"), &json!({"spec": {}})).await.code, 403);
    assert_eq!(admin.delete(&format!("{PODS}/mine?gracePeriodSeconds=0")).await.code, 200);
    assert_eq!(node.get(&format!("{base}/secrets/mine")).await.code, 403, "the pod is gone");
    server.stop().await;
}
