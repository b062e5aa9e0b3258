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
