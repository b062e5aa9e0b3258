//! Webhooks over real HTTPS: asked in order, believed, and missed as they say.

use std::sync::{Arc, Mutex};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Value, json};

use crate::common::rest::Rest;
use crate::common::server::TestServer;
use crate::common::webhook::Webhook;

const MAPS: &str = "/api/v1/namespaces/default/configmaps";
const MUTATING: &str = "/apis/admissionregistration.k8s.io/v1/mutatingwebhookconfigurations";
const VALIDATING: &str = "/apis/admissionregistration.k8s.io/v1/validatingwebhookconfigurations";

/// An address as pods have them: endpoints may name no other of this machine.
const POD_ADDRESS: &str = "127.1.1.1";

type Reviews = Arc<Mutex<Vec<Value>>>;

/// A webhook that keeps what it is asked, and answers by a function of the request.
async fn hook(server: &TestServer, answer: fn(&Value) -> Value) -> (Webhook, Reviews) {
    hook_at(server, "127.0.0.1", answer).await
}

async fn hook_at(server: &TestServer, ip: &str, answer: fn(&Value) -> Value) -> (Webhook, Reviews) {
    let reviews = Reviews::default();
    let kept = Arc::clone(&reviews);
    let hook = Webhook::start(server, ip, move |review| {
        assert_eq!(
            (&review["kind"], &review["apiVersion"]),
            (&json!("AdmissionReview"), &json!("admission.k8s.io/v1"))
        );
        let request = &review["request"];
        kept.lock().unwrap().push(request.clone());
        let mut response = answer(request);
        response["uid"] = request["uid"].clone();
        json!({"apiVersion": review["apiVersion"], "kind": "AdmissionReview", "response": response})
    });
    (hook.await, reviews)
}

fn entry(hook: &Webhook, name: &str, more: Value) -> Value {
    let mut entry = json!({"name": format!("{name}.example.com"), "sideEffects": "None",
        "admissionReviewVersions": ["v1"], "clientConfig": {"url": hook.url(), "caBundle": hook.authority},
        "rules": [{"operations": ["*"], "apiGroups": [""], "apiVersions": ["*"], "resources": ["configmaps"]}]});
    strata_model::merge::apply(&mut entry, &more);
    entry
}

async fn configure(admin: &Rest, path: &str, name: &str, webhooks: Value) {
    let body = json!({"metadata": {"name": name}, "webhooks": webhooks});
    let made = admin.post(path, &body).await;
    assert_eq!(made.code, 201, "{}", made.text);
}

fn map(name: &str, data: Value) -> Value {
    json!({"metadata": {"name": name}, "data": data})
}

fn patch(operations: Value) -> Value {
    json!({"allowed": true, "patchType": "JSONPatch", "patch": STANDARD.encode(operations.to_string())})
}

fn forbid_bad(request: &Value) -> Value {
    if request["object"]["data"]["bad"].is_string()
        || request["oldObject"]["data"]["keep"].is_string() && request["operation"] == "DELETE"
    {
        return json!({"allowed": false, "warnings": ["unheard"], "status": {"code": 403, "reason": "Forbidden", "message": "no bad maps"}});
    }
    json!({"allowed": true, "warnings": ["be careful"]})
}

#[tokio::test]
async fn a_validating_webhook_is_told_all_and_its_word_counts() {
    let server = TestServer::start().await;
    let admin = Rest::admin(&server);
    let (hook, reviews) = hook(&server, forbid_bad).await;
    configure(&admin, VALIDATING, "v", json!([entry(&hook, "check", json!({}))])).await;

    let made = admin.post(MAPS, &map("a", json!({"keep": "x"}))).await;
    assert_eq!(made.code, 201, "{}", made.text);
    assert_eq!(made.headers["warning"], "299 - \"be careful\"");
    let asked = reviews.lock().unwrap().pop().unwrap();
    assert_eq!(asked["operation"], "CREATE");
    assert_eq!(asked["kind"], json!({"group": "", "version": "v1", "kind": "ConfigMap"}));
    assert_eq!(asked["resource"], json!({"group": "", "version": "v1", "resource": "configmaps"}));
    assert_eq!((&asked["name"], &asked["namespace"]), (&json!("a"), &json!("default")));
    assert_eq!(asked["userInfo"]["username"], "admin");
    assert_eq!((&asked["object"]["data"]["keep"], &asked["oldObject"]), (&json!("x"), &Value::Null));
    assert_eq!(asked["dryRun"], false);
    assert_eq!(asked["options"]["kind"], "CreateOptions");

    let bad = admin.merge(&format!("{MAPS}/a"), &json!({"data": {"bad": "y"}})).await;
    assert_eq!(bad.code, 403);
    assert_eq!(
        bad.json()["message"],
        "admission webhook \"check.example.com\" denied the request: no bad maps"
    );
    let asked = reviews.lock().unwrap().pop().unwrap();
    assert_eq!((&asked["operation"], &asked["oldObject"]["data"]["keep"]), (&json!("UPDATE"), &json!("x")));
    assert_eq!(admin.delete(&format!("{MAPS}/a")).await.code, 403);
    let asked = reviews.lock().unwrap().pop().unwrap();
    assert_eq!((&asked["operation"], &asked["object"]), (&json!("DELETE"), &Value::Null));

    let dry = admin.post(&format!("{MAPS}?dryRun=All"), &map("b", json!({}))).await;
    assert_eq!((dry.code, &reviews.lock().unwrap().pop().unwrap()["dryRun"]), (201, &json!(true)));
    assert_eq!(admin.post("/api/v1/namespaces/default/secrets", &map("s", json!({}))).await.code, 201);
    assert!(reviews.lock().unwrap().is_empty(), "of secrets it is not asked");
    assert_eq!(admin.delete(&format!("{VALIDATING}/v")).await.code, 200);
    assert_eq!(admin.delete(&format!("{MAPS}/a")).await.code, 200, "it has no say any more");
    server.stop().await;
}

#[tokio::test]
async fn mutating_webhooks_go_in_order_and_are_asked_again_where_they_want() {
    let server = TestServer::start().await;
    let admin = Rest::admin(&server);
    let (first, asked_first) = hook(&server, |request| {
        let seen = request["object"]["data"]["second"].is_string();
        patch(json!([{"op": "add", "path": "/data/first", "value": if seen { "again" } else { "once" }}]))
    })
    .await;
    let (second, asked_second) = hook(&server, |request| {
        let seen = request["object"]["data"]["first"].clone();
        patch(json!([{"op": "add", "path": "/data/second", "value": seen}]))
    })
    .await;
    configure(&admin, MUTATING, "b", json!([entry(&second, "second", json!({}))])).await;
    configure(
        &admin,
        MUTATING,
        "a",
        json!([entry(&first, "first", json!({"reinvocationPolicy": "IfNeeded"}))]),
    )
    .await;
    let made = admin.post(MAPS, &map("a", json!({}))).await;
    assert_eq!(made.code, 201, "{}", made.text);
    assert_eq!(made.json()["data"], json!({"first": "again", "second": "once"}));
    assert_eq!((asked_first.lock().unwrap().len(), asked_second.lock().unwrap().len()), (2, 1));
    let owned = &made.json()["metadata"]["managedFields"][0]["fieldsV1"]["f:data"];
    assert!(owned["f:first"].is_object(), "the writer owns what was changed on its way: {owned}");

    // What a webhook makes of an object is checked like anything else.
    let (third, _) =
        hook(&server, |_| patch(json!([{"op": "add", "path": "/data/no~1name", "value": "x"}]))).await;
    configure(&admin, MUTATING, "c", json!([entry(&third, "third", json!({}))])).await;
    assert_eq!(admin.post(MAPS, &map("b", json!({}))).await.code, 422);
    server.stop().await;
}

#[tokio::test]
async fn selectors_and_conditions_choose_and_a_webhook_that_is_away_is_missed_by_its_policy() {
    let server = TestServer::start().await;
    let admin = Rest::admin(&server);
    let (hook, _) = hook(&server, |_| json!({"allowed": false})).await;
    let conditions = json!([{"name": "only-bad", "expression": "object.data.exists(k, k == 'bad')"},
        {"name": "not-admins", "expression": "request.operation == 'CREATE'"}]);
    let more = json!({"matchConditions": conditions, "objectSelector": {"matchLabels": {"checked": "yes"}},
        "namespaceSelector": {"matchLabels": {"kubernetes.io/metadata.name": "default"}}});
    configure(&admin, VALIDATING, "v", json!([entry(&hook, "check", more)])).await;
    let create = async |name: &str, data: Value, label: &str| {
        let mut body = map(name, data);
        body["metadata"]["labels"] = json!({"checked": label});
        admin.post(MAPS, &body).await
    };
    assert_eq!(create("a", json!({"bad": "x"}), "no").await.code, 201);
    assert_eq!(create("b", json!({"good": "x"}), "yes").await.code, 201);
    let refused = create("c", json!({"bad": "x"}), "yes").await;
    assert_eq!(refused.code, 400);
    assert_eq!(
        refused.json()["message"],
        "admission webhook \"check.example.com\" denied the request without explanation"
    );
    let failing = create("d", Value::Null, "yes").await;
    assert_eq!(failing.code, 403, "a condition that cannot be told refuses: {}", failing.text);

    let away = json!({"clientConfig": {"url": "https://127.0.0.1:1/x"}, "timeoutSeconds": 1});
    assert_eq!(admin.delete(&format!("{VALIDATING}/v")).await.code, 200);
    configure(&admin, VALIDATING, "w", json!([entry(&hook, "away", away.clone())])).await;
    let refused = admin.post(MAPS, &map("e", json!({}))).await;
    assert_eq!(refused.code, 500);
    let message = refused.json()["message"].as_str().unwrap().to_owned();
    assert!(
        message.contains("failed calling webhook \"away.example.com\": failed to call webhook"),
        "{message}"
    );
    assert_eq!(
        admin.delete(&format!("{VALIDATING}/w")).await.code,
        200,
        "what configures admission is never kept by it"
    );
    let mut lenient = away;
    lenient["failurePolicy"] = json!("Ignore");
    configure(&admin, VALIDATING, "x", json!([entry(&hook, "away", lenient)])).await;
    assert_eq!(admin.post(MAPS, &map("e", json!({}))).await.code, 201);
    server.stop().await;
}

#[tokio::test]
async fn a_webhook_behind_a_service_is_found_by_its_endpoints() {
    let server = TestServer::start().await;
    let admin = Rest::admin(&server);
    let (hook, reviews) = hook_at(&server, POD_ADDRESS, |_| json!({"allowed": true})).await;
    let place = json!({"clientConfig": {"url": null,
        "service": {"namespace": "default", "name": "hook", "path": "/review", "port": 8443}}});
    configure(&admin, VALIDATING, "v", json!([entry(&hook, "check", place)])).await;
    let refused = async |why: &str| {
        let refused = admin.post(MAPS, &map("a", json!({}))).await;
        assert_eq!((refused.code, refused.text.contains(why)), (500, true), "{}", refused.text);
    };
    refused("service \\\"hook\\\" not found").await;
    let service = json!({"metadata": {"name": "hook"},
        "spec": {"ports": [{"port": 8443}]}});
    assert_eq!(admin.post("/api/v1/namespaces/default/services", &service).await.code, 201);
    refused("no endpoints available for service \\\"hook\\\"").await;
    let of = json!({"kind": "Pod", "namespace": "default", "name": "hook-1"});
    let slice = json!({"metadata": {"name": "hook-1", "labels": {"kubernetes.io/service-name": "hook"}},
        "addressType": "IPv4", "ports": [{"name": "", "port": hook.address.port()}],
        "endpoints": [{"addresses": ["127.1.1.2"], "conditions": {"ready": false}, "targetRef": of},
            {"addresses": [POD_ADDRESS], "targetRef": of}]});
    let made = admin.post("/apis/discovery.k8s.io/v1/namespaces/default/endpointslices", &slice).await;
    assert_eq!(made.code, 201, "{}", made.text);
    let made = admin.post(MAPS, &map("a", json!({}))).await;
    assert_eq!(made.code, 201, "{}", made.text);
    assert_eq!(reviews.lock().unwrap().len(), 1);
    server.stop().await;
}

#[tokio::test]
async fn subresources_are_asked_about_in_their_own_kind() {
    let server = TestServer::start().await;
    let admin = Rest::admin(&server);
    let (hook, reviews) =
        hook(&server, |request| json!({"allowed": request["object"]["spec"]["replicas"] != 9})).await;
    let rules = json!({"rules": [{"operations": ["*"], "apiGroups": ["apps", ""], "apiVersions": ["v1"],
        "resources": ["deployments/scale", "pods/binding", "pods/eviction"]}]});
    configure(&admin, VALIDATING, "v", json!([entry(&hook, "check", rules)])).await;
    let deployments = "/apis/apps/v1/namespaces/default/deployments";
    let deployment = json!({"metadata": {"name": "d"}, "spec": {"selector": {"matchLabels": {"a": "b"}},
        "template": {"metadata": {"labels": {"a": "b"}}, "spec": {"containers": [{"name": "c", "image": "i"}]}}}});
    assert_eq!(admin.post(deployments, &deployment).await.code, 201);
    assert!(reviews.lock().unwrap().is_empty());
    let scale = async |replicas: i64| {
        admin.merge(&format!("{deployments}/d/scale"), &json!({"spec": {"replicas": replicas}})).await.code
    };
    assert_eq!((scale(9).await, scale(3).await), (400, 200));
    let asked = reviews.lock().unwrap().pop().unwrap();
    assert_eq!(asked["kind"], json!({"group": "autoscaling", "version": "v1", "kind": "Scale"}));
    assert_eq!((&asked["subResource"], &asked["object"]["kind"]), (&json!("scale"), &json!("Scale")));
    let pods = "/api/v1/namespaces/default/pods";
    let pod = json!({"metadata": {"name": "p"}, "spec": {"containers": [{"name": "c", "image": "i"}]}});
    assert_eq!(admin.post(pods, &pod).await.code, 201);
    let binding = json!({"metadata": {"name": "p"}, "target": {"kind": "Node", "name": "n1"}});
    assert_eq!(admin.post(&format!("{pods}/p/binding"), &binding).await.code, 201);
    assert_eq!(reviews.lock().unwrap().pop().unwrap()["kind"]["kind"], "Binding");
    let eviction = json!({"apiVersion": "policy/v1", "kind": "Eviction", "metadata": {"name": "p"}});
    assert_eq!(admin.post(&format!("{pods}/p/eviction"), &eviction).await.code, 201);
    assert_eq!(reviews.lock().unwrap().pop().unwrap()["kind"]["kind"], "Eviction");
    server.stop().await;
}
