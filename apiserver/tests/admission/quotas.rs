//! Quotas over HTTP: charged with the write, never overrun, counted anew when they are written.

use serde_json::{Value, json};

use crate::common::rest::Rest;
use crate::common::server::TestServer;

const HERE: &str = "/api/v1/namespaces/default";

fn pod(name: &str, cpu: Option<&str>) -> Value {
    let resources = cpu.map_or(json!({}), |cpu| json!({"requests": {"cpu": cpu}}));
    json!({"metadata": {"name": name}, "spec": {"containers": [{"name": "c", "image": "i:1", "resources": resources}]}})
}

async fn quota(admin: &Rest, name: &str, spec: Value) {
    let body = json!({"metadata": {"name": name}, "spec": spec});
    let made = admin.post(&format!("{HERE}/resourcequotas"), &body).await;
    assert_eq!(made.code, 201, "{}", made.text);
}

async fn used(admin: &Rest, name: &str) -> Value {
    admin.get(&format!("{HERE}/resourcequotas/{name}")).await.json()["status"]["used"].take()
}

async fn create(admin: &Rest, plural: &str, body: &Value) -> (u16, String) {
    let answer = admin.post(&format!("{HERE}/{plural}"), body).await;
    (answer.code, answer.json()["message"].as_str().unwrap_or_default().to_owned())
}

#[tokio::test]
async fn what_a_pod_takes_is_charged_in_its_transaction_and_refused_when_it_is_too_much() {
    let server = TestServer::start().await;
    let admin = Rest::admin(&server);
    assert_eq!(create(&admin, "pods", &pod("before", Some("250m"))).await.0, 201);
    quota(&admin, "compute", json!({"hard": {"requests.cpu": "1", "pods": "3"}})).await;
    assert_eq!(
        used(&admin, "compute").await,
        json!({"pods": "1", "requests.cpu": "250m"}),
        "counted at once"
    );

    let dry = admin.post(&format!("{HERE}/pods?dryRun=All"), &pod("dry", Some("500m"))).await;
    assert_eq!(dry.code, 201);
    assert_eq!(used(&admin, "compute").await["pods"], "1");

    assert_eq!(create(&admin, "pods", &pod("a", Some("500m"))).await.0, 201);
    let quota_now = admin.get(&format!("{HERE}/resourcequotas/compute")).await.json();
    assert_eq!(quota_now["status"]["used"], json!({"pods": "2", "requests.cpu": "750m"}));
    let made = admin.get(&format!("{HERE}/pods/a")).await.json();
    assert_eq!(quota_now["metadata"]["resourceVersion"], made["metadata"]["resourceVersion"]);

    let (code, message) = create(&admin, "pods", &pod("b", Some("500m"))).await;
    assert_eq!(code, 403);
    assert_eq!(
        message,
        "pods \"b\" is forbidden: exceeded quota: compute, requested: requests.cpu=500m, used: requests.cpu=750m, limited: requests.cpu=1"
    );
    let (code, message) = create(&admin, "pods", &pod("b", None)).await;
    assert_eq!(code, 403);
    assert_eq!(message, "pods \"b\" is forbidden: failed quota: compute: must specify requests.cpu for: c");

    // A new bound is counted with the first write that concerns it, and a status that is written is counted anew.
    let more = json!({"spec": {"hard": {"requests.cpu": "2", "pods": "3", "count/pods": "9"}}});
    assert_eq!(admin.merge(&format!("{HERE}/resourcequotas/compute"), &more).await.code, 200);
    admin.delete(&format!("{HERE}/pods/before")).await;
    let wrong = json!({"status": {"used": {"pods": "0", "count/pods": "0", "requests.cpu": "0"}}});
    assert_eq!(admin.merge(&format!("{HERE}/resourcequotas/compute/status"), &wrong).await.code, 200);
    assert_eq!(
        used(&admin, "compute").await,
        json!({"count/pods": "1", "pods": "1", "requests.cpu": "500m"})
    );
    server.stop().await;
}

#[tokio::test]
async fn concurrent_creates_never_overrun_a_quota() {
    let server = TestServer::start().await;
    let admin = Rest::admin(&server);
    quota(&admin, "few", json!({"hard": {"pods": "7", "count/pods": "100"}})).await;
    let mut many = pod("", None);
    many["metadata"] = json!({"generateName": "web-"});
    let creates = (0..40).map(|n| {
        let (admin, body) = (admin.clone(), pod(&format!("p{n}"), None));
        tokio::spawn(async move { admin.post(&format!("{HERE}/pods"), &body).await.code })
    });
    let mut codes = Vec::new();
    for create in creates.collect::<Vec<_>>() {
        codes.push(create.await.unwrap());
    }
    codes.sort_unstable();
    assert_eq!(codes, [vec![201; 7], vec![403; 33]].concat());
    let listed = admin.get(&format!("{HERE}/pods")).await.json();
    assert_eq!(listed["items"].as_array().unwrap().len(), 7);
    assert_eq!(used(&admin, "few").await, json!({"pods": "7", "count/pods": "7"}));
    let (_, message) = create(&admin, "pods", &many).await;
    assert!(
        message.starts_with("pods \"web-\" is forbidden: exceeded quota"),
        "the same each time: {message}"
    );
    server.stop().await;
}

#[tokio::test]
async fn objects_are_counted_by_type_and_what_grows_by_an_update_is_charged() {
    let server = TestServer::start().await;
    let admin = Rest::admin(&server);
    let hard = json!({"count/deployments.apps": "0", "configmaps": "1", "services.nodeports": "1",
        "requests.storage": "3Gi"});
    quota(&admin, "objects", json!({"hard": hard})).await;
    let named = |name: &str| json!({"metadata": {"name": name}});
    assert_eq!(create(&admin, "configmaps", &named("a")).await.0, 201);
    assert_eq!(create(&admin, "configmaps", &named("b")).await.0, 403);
    assert_eq!(create(&admin, "secrets", &named("a")).await.0, 201, "of those nobody speaks");
    let deployment = json!({"metadata": {"name": "d"}, "spec": {"selector": {"matchLabels": {"a": "b"}},
        "template": {"metadata": {"labels": {"a": "b"}}, "spec": {"containers": [{"name": "c", "image": "i"}]}}}});
    let refused = admin.post("/apis/apps/v1/namespaces/default/deployments", &deployment).await;
    assert_eq!(refused.code, 403);
    assert_eq!(
        refused.json()["message"],
        "deployments.apps \"d\" is forbidden: exceeded quota: objects, requested: count/deployments.apps=1, used: count/deployments.apps=0, limited: count/deployments.apps=0"
    );
    let service = json!({"metadata": {"name": "s"}, "spec": {"ports": [{"name": "a", "port": 1}, {"name": "b", "port": 2}]}});
    assert_eq!(create(&admin, "services", &service).await.0, 201);
    let open = admin.merge(&format!("{HERE}/services/s"), &json!({"spec": {"type": "NodePort"}})).await;
    assert_eq!(open.code, 403, "{}", open.text);
    let one = json!({"spec": {"type": "NodePort", "ports": [{"name": "a", "port": 1}]}});
    assert_eq!(admin.merge(&format!("{HERE}/services/s"), &one).await.code, 200);
    assert_eq!(used(&admin, "objects").await["services.nodeports"], "1");
    let back = json!({"spec": {"type": "ClusterIP"}});
    assert_eq!(admin.merge(&format!("{HERE}/services/s"), &back).await.code, 200);
    assert_eq!(used(&admin, "objects").await["services.nodeports"], "0");
    server.stop().await;
}

#[tokio::test]
async fn scopes_choose_what_is_charged() {
    let server = TestServer::start().await;
    let admin = Rest::admin(&server);
    let selector =
        json!({"matchExpressions": [{"scopeName": "PriorityClass", "operator": "In", "values": ["high"]}]});
    quota(&admin, "high", json!({"hard": {"pods": "0"}, "scopeSelector": selector})).await;
    quota(&admin, "short", json!({"hard": {"pods": "1"}, "scopes": ["Terminating"]})).await;
    let class = json!({"metadata": {"name": "high"}, "value": 7});
    assert_eq!(admin.post("/apis/scheduling.k8s.io/v1/priorityclasses", &class).await.code, 201);
    assert_eq!(create(&admin, "pods", &pod("plain", None)).await.0, 201);
    let mut high = pod("high", None);
    high["spec"]["priorityClassName"] = json!("high");
    let (code, message) = create(&admin, "pods", &high).await;
    assert_eq!((code, message.contains("exceeded quota: high, requested: pods=1")), (403, true), "{message}");
    for (name, code) in [("one", 201), ("two", 403)] {
        let mut short = pod(name, None);
        short["spec"]["activeDeadlineSeconds"] = json!(60);
        assert_eq!(create(&admin, "pods", &short).await.0, code, "{name}");
    }
    assert_eq!(used(&admin, "high").await["pods"], "0");
    assert_eq!(used(&admin, "short").await["pods"], "1");
    server.stop().await;
}
