//! What a new pod gets and needs of its namespace: limits, and its service account.

use serde_json::{Value, json};

use crate::common::rest::Rest;
use crate::common::server::TestServer;

fn pod(name: &str, resources: Value) -> Value {
    json!({"metadata": {"name": name}, "spec": {"containers": [{"name": "c", "image": "i:1", "resources": resources}]}})
}

async fn namespace(admin: &Rest, name: &str) -> String {
    assert_eq!(admin.post("/api/v1/namespaces", &json!({"metadata": {"name": name}})).await.code, 201);
    format!("/api/v1/namespaces/{name}")
}

#[tokio::test]
async fn limits_fill_and_bound_pods_and_claims_from_the_moment_that_they_are_answered() {
    let server = TestServer::start().await;
    let admin = Rest::admin(&server);
    let here = namespace(&admin, "limited").await;
    let range = json!({"metadata": {"name": "l"}, "spec": {"limits": [
        {"type": "Container", "default": {"cpu": "500m"}, "defaultRequest": {"cpu": "100m"}, "max": {"cpu": "1"},
            "maxLimitRequestRatio": {"cpu": "5"}},
        {"type": "Pod", "max": {"memory": "1Gi"}},
        {"type": "PersistentVolumeClaim", "max": {"storage": "1Gi"}}]}});
    assert_eq!(admin.post(&format!("{here}/limitranges"), &range).await.code, 201);

    let pods = format!("{here}/pods");
    let memory = json!({"limits": {"memory": "512Mi"}});
    let made = admin.post(&pods, &pod("a", memory)).await;
    assert_eq!(made.code, 201, "{}", made.text);
    let made = made.json();
    let resources = &made["spec"]["containers"][0]["resources"];
    assert_eq!(resources["limits"], json!({"cpu": "500m", "memory": "512Mi"}));
    assert_eq!(resources["requests"], json!({"cpu": "100m", "memory": "512Mi"}));
    assert_eq!(made["status"]["qosClass"], "Burstable", "what was filled in counts");
    let told = &made["metadata"]["annotations"]["kubernetes.io/limit-ranger"];
    assert_eq!(told, "LimitRanger plugin set: cpu request for container c; cpu limit for container c");

    for (resources, why) in [
        (
            json!({"limits": {"cpu": "2", "memory": "1Mi"}}),
            "maximum cpu usage per Container is 1, but limit is 2",
        ),
        (
            json!({"limits": {"cpu": "1", "memory": "1Mi"}, "requests": {"cpu": "100m"}}),
            "but provided ratio is 10.000000",
        ),
        (json!({"limits": {"memory": "2Gi"}}), "maximum memory usage per Pod is 1Gi, but limit is 2Gi"),
    ] {
        let refused = admin.post(&pods, &pod("b", resources)).await;
        let message = refused.json()["message"].as_str().unwrap().to_owned();
        assert_eq!(refused.code, 403, "{message}");
        assert!(message.starts_with("pods \"b\" is forbidden: ") && message.contains(why), "{message}");
    }
    let claims = format!("{here}/persistentvolumeclaims");
    let claim = |name: &str, size: &str| {
        json!({"metadata": {"name": name}, "spec": {"accessModes": ["ReadWriteOnce"],
            "resources": {"requests": {"storage": size}}}})
    };
    assert_eq!(admin.post(&claims, &claim("a", "1Gi")).await.code, 201);
    assert_eq!(admin.post(&claims, &claim("b", "2Gi")).await.code, 403);

    admin.delete(&format!("{here}/limitranges/l")).await;
    let free = admin.post(&pods, &pod("c", json!({"limits": {"memory": "2Gi"}}))).await;
    assert_eq!((free.code, free.json()["metadata"]["annotations"].is_null()), (201, true));
    server.stop().await;
}

#[tokio::test]
async fn a_pod_brings_the_default_account_along_and_waits_for_no_controller() {
    let server = TestServer::start().await;
    let admin = Rest::admin(&server);
    let here = namespace(&admin, "fresh").await;
    let account = format!("{here}/serviceaccounts/default");
    assert_eq!(admin.get(&account).await.code, 404, "no controller runs here");
    assert_eq!(admin.post(&format!("{here}/pods"), &pod("dry", json!({}))).await.code, 201);
    let made = admin.get(&account).await.json();
    let pod_made = admin.get(&format!("{here}/pods/dry")).await.json();
    assert_eq!(
        made["metadata"]["resourceVersion"], pod_made["metadata"]["resourceVersion"],
        "one transaction"
    );
    assert_eq!(pod_made["spec"]["serviceAccountName"], "default");

    let secrets = json!({"imagePullSecrets": [{"name": "s"}]});
    assert_eq!(admin.merge(&account, &secrets).await.code, 200);
    let with = admin.post(&format!("{here}/pods"), &pod("with", json!({}))).await.json();
    assert_eq!(with["spec"]["imagePullSecrets"], json!([{"name": "s"}]));
    server.stop().await;
}

#[tokio::test]
async fn a_pod_of_an_account_that_is_not_there_is_refused() {
    let server = TestServer::start().await;
    let admin = Rest::admin(&server);
    let mut named = pod("a", json!({}));
    named["spec"]["serviceAccountName"] = json!("build");
    let pods = "/api/v1/namespaces/default/pods";
    let refused = admin.post(pods, &named).await;
    assert_eq!(refused.code, 403);
    assert_eq!(
        refused.json()["message"],
        "pods \"a\" is forbidden: error looking up service account default/build: serviceaccount \"build\" not found"
    );
    let account = json!({"metadata": {"name": "build"}});
    assert_eq!(admin.post("/api/v1/namespaces/default/serviceaccounts", &account).await.code, 201);
    assert_eq!(admin.post(pods, &named).await.code, 201);
    server.stop().await;
}
