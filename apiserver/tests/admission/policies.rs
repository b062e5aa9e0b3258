//! Admission policies over HTTP: bound, parametrised, and refused where they are no policies.

use serde_json::{Value, json};

use crate::common::rest::{Answer, Rest};
use crate::common::server::TestServer;

const GROUP: &str = "/apis/admissionregistration.k8s.io/v1";
const MAPS: &str = "/api/v1/namespaces/default/configmaps";

fn policy(name: &str, spec: Value) -> Value {
    let mut policy = json!({"metadata": {"name": name}, "spec": {"matchConstraints": {"resourceRules": [
        {"operations": ["CREATE", "UPDATE"], "apiGroups": [""], "apiVersions": ["v1"], "resources": ["configmaps"]}]}}});
    strata_model::merge::apply(&mut policy["spec"], &spec);
    policy
}

async fn install(admin: &Rest, policy: &Value, binding: Value) {
    let made = admin.post(&format!("{GROUP}/validatingadmissionpolicies"), policy).await;
    assert_eq!(made.code, 201, "{}", made.text);
    bind(admin, "b", policy["metadata"]["name"].as_str().unwrap(), binding).await;
}

async fn bind(admin: &Rest, name: &str, policy: &str, more: Value) {
    let mut binding =
        json!({"metadata": {"name": name}, "spec": {"policyName": policy, "validationActions": ["Deny"]}});
    strata_model::merge::apply(&mut binding["spec"], &more);
    let made = admin.post(&format!("{GROUP}/validatingadmissionpolicybindings"), &binding).await;
    assert_eq!(made.code, 201, "{}", made.text);
}

async fn create(admin: &Rest, name: &str, data: Value) -> Answer {
    admin.post(MAPS, &json!({"metadata": {"name": name}, "data": data})).await
}

fn message(answer: &Answer) -> String {
    answer.json()["message"].as_str().unwrap_or_default().to_owned()
}

#[tokio::test]
async fn a_bound_policy_refuses_in_its_own_words() {
    let server = TestServer::start().await;
    let admin = Rest::admin(&server);
    let spec = json!({
        "variables": [{"name": "size", "expression": "has(object.data) ? size(object.data) : 0"},
            {"name": "twice", "expression": "variables.size * 2"}],
        "matchConditions": [{"name": "not-free", "expression": "object.metadata.name != 'free'"}],
        "validations": [
            {"expression": "variables.twice <= 4", "messageExpression": "'too many entries: ' + string(variables.size)"},
            {"expression": "object.metadata.namespace != 'x' && request.userInfo.username == 'admin'", "reason": "Forbidden"},
            {"expression": "request.operation != 'UPDATE' || oldObject.data == object.data", "message": "data stays", "reason": "Forbidden"},
            {"expression": "namespaceObject.metadata.name == 'default'"}]});
    install(&admin, &policy("small", spec), json!({})).await;
    assert_eq!(create(&admin, "a", json!({"x": "1"})).await.code, 201);
    let refused = create(&admin, "b", json!({"x": "1", "y": "2", "z": "3"})).await;
    assert_eq!(refused.code, 422);
    assert_eq!(
        message(&refused),
        "configmaps \"b\" is forbidden: ValidatingAdmissionPolicy 'small' with binding 'b' denied request: too many entries: 3"
    );
    assert_eq!(refused.json()["reason"], "Invalid");
    let changed = admin.merge(&format!("{MAPS}/a"), &json!({"data": {"x": "2"}})).await;
    assert_eq!((changed.code, message(&changed).ends_with("denied request: data stays")), (403, true));
    assert_eq!(create(&admin, "free", json!({"x": "1", "y": "2", "z": "3"})).await.code, 201);
    assert_eq!(admin.delete(&format!("{MAPS}/a")).await.code, 200, "of deletions it does not speak");
    assert_eq!(admin.delete(&format!("{GROUP}/validatingadmissionpolicybindings/b")).await.code, 200);
    assert_eq!(
        create(&admin, "b", json!({"x": "1", "y": "2", "z": "3"})).await.code,
        201,
        "unbound, it says nothing"
    );
    server.stop().await;
}

#[tokio::test]
async fn bindings_warn_and_select_and_bring_parameters() {
    let server = TestServer::start().await;
    let admin = Rest::admin(&server);
    let spec = json!({"paramKind": {"apiVersion": "v1", "kind": "ConfigMap"},
        "validations": [{"expression": "params == null || size(object.data) <= int(params.data.most)"}]});
    let by_name = json!({"paramRef": {"name": "limits", "namespace": "kube-system", "parameterNotFoundAction": "Deny"}});
    install(&admin, &policy("bounded", spec), by_name).await;
    let missing = create(&admin, "a", json!({"x": "1"})).await;
    assert!(
        message(&missing).contains("no params found for policy binding with `Deny` parameterNotFoundAction"),
        "{}",
        missing.text
    );
    let limits = json!({"metadata": {"name": "limits", "labels": {"kind": "limit"}}, "data": {"most": "1"}});
    let system = "/api/v1/namespaces/kube-system/configmaps";
    // The policy speaks of all ConfigMaps, its own parameters too; so they come before its binding says Deny.
    assert_eq!(admin.delete(&format!("{GROUP}/validatingadmissionpolicybindings/b")).await.code, 200);
    assert_eq!(admin.post(system, &limits).await.code, 201);
    let by_selector = json!({"paramRef": {"namespace": "kube-system", "selector": {"matchLabels": {"kind": "limit"}},
        "parameterNotFoundAction": "Allow"}, "matchResources": {"namespaceSelector":
        {"matchLabels": {"kubernetes.io/metadata.name": "default"}}}});
    bind(&admin, "c", "bounded", by_selector).await;
    assert_eq!(create(&admin, "a", json!({"x": "1"})).await.code, 201);
    let refused = create(&admin, "b", json!({"x": "1", "y": "2"})).await;
    assert!(
        message(&refused).ends_with(
            "denied request: failed expression: params == null || size(object.data) <= int(params.data.most)"
        ),
        "{}",
        refused.text
    );
    let elsewhere = json!({"metadata": {"name": "b"}, "data": {"x": "1", "y": "2"}});
    assert_eq!(admin.post(system, &elsewhere).await.code, 201, "the binding is about another namespace");
    assert_eq!(admin.delete(&format!("{GROUP}/validatingadmissionpolicybindings/c")).await.code, 200);

    let warn = json!({"validationActions": ["Warn", "Audit"], "paramRef": {"name": "limits", "namespace": "kube-system",
        "parameterNotFoundAction": "Allow"}});
    bind(&admin, "d", "bounded", warn).await;
    let warned = create(&admin, "b", json!({"x": "1", "y": "2"})).await;
    assert_eq!(warned.code, 201, "{}", warned.text);
    let header = warned.headers["warning"].to_str().unwrap();
    assert!(
        header.contains("Validation failed for ValidatingAdmissionPolicy 'bounded' with binding 'd'"),
        "{header}"
    );
    server.stop().await;
}

#[tokio::test]
async fn what_cannot_be_told_is_refused_or_let_through_as_the_policy_says() {
    let server = TestServer::start().await;
    let admin = Rest::admin(&server);
    let spec = |failure: &str| json!({"failurePolicy": failure, "validations": [{"expression": "object.data.novel == 'x'"}]});
    install(&admin, &policy("strict", spec("Fail")), json!({})).await;
    let refused = create(&admin, "a", json!({"x": "1"})).await;
    assert!(
        message(&refused)
            .contains("expression 'object.data.novel == 'x'' resulted in error: no such key: novel"),
        "{}",
        refused.text
    );
    let path = format!("{GROUP}/validatingadmissionpolicies/strict");
    assert_eq!(admin.merge(&path, &json!({"spec": {"failurePolicy": "Ignore"}})).await.code, 200);
    assert_eq!(create(&admin, "a", json!({"x": "1"})).await.code, 201);

    let costly = json!({"spec": {"failurePolicy": "Fail", "validations": [{"expression":
        "[0,1,2,3,4,5,6,7,8,9].all(a, [0,1,2,3,4,5,6,7,8,9].all(b, [0,1,2,3,4,5,6,7,8,9].all(c, \
         [0,1,2,3,4,5,6,7,8,9].all(d, [0,1,2,3,4,5,6,7,8,9].all(e, [0,1,2,3,4,5,6,7,8,9].all(f, a + b + c + d + e + f >= 0))))))"}]}});
    assert_eq!(admin.merge(&path, &costly).await.code, 200);
    let refused = create(&admin, "b", json!({})).await;
    assert_eq!(
        (refused.code, message(&refused).contains("resulted in error")),
        (422, true),
        "{}",
        refused.text
    );
    server.stop().await;
}

#[tokio::test]
async fn a_policy_that_is_no_policy_is_refused_by_its_field() {
    let server = TestServer::start().await;
    let admin = Rest::admin(&server);
    for (spec, field) in [
        (json!({"validations": [{"expression": "object.spec ="}]}), "spec.validations[0].expression"),
        (json!({"validations": [{"expression": "novel == 1"}]}), "undeclared reference to 'novel'"),
        (
            json!({"validations": [{"expression": "true", "messageExpression": "1 +"}]}),
            "spec.validations[0].messageExpression",
        ),
        (
            json!({"validations": [{"expression": "true"}], "matchConditions": [{"name": "a", "expression": ")"}]}),
            "spec.matchConditions[0].expression",
        ),
        (
            json!({"validations": [{"expression": "true"}], "variables": [{"name": "a", "expression": ")"}]}),
            "spec.variables[0].expression",
        ),
    ] {
        let refused = admin.post(&format!("{GROUP}/validatingadmissionpolicies"), &policy("p", spec)).await;
        assert_eq!(
            (refused.code, message(&refused).contains(field)),
            (422, true),
            "{field}: {}",
            refused.text
        );
    }
    let hooks = json!({"metadata": {"name": "h"}, "webhooks": [{"name": "h.example.com", "sideEffects": "None",
        "admissionReviewVersions": ["v1"], "clientConfig": {"url": "https://127.0.0.1:1/"},
        "matchConditions": [{"name": "a", "expression": "params == 1"}]}]});
    let refused = admin.post(&format!("{GROUP}/validatingwebhookconfigurations"), &hooks).await;
    assert!(message(&refused).contains("webhooks[0].matchConditions[0].expression"), "{}", refused.text);
    server.stop().await;
}
