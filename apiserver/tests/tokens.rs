//! Tokens of service accounts: made for an account, held by roles, and worth nothing once what they name is gone.

#![allow(clippy::unwrap_used, reason = "a test ends at the first surprise")]

mod common;

use common::rest::Rest;
use common::server::TestServer;
use serde_json::{Value, json};

const ACCOUNTS: &str = "/api/v1/namespaces/default/serviceaccounts";
const PODS: &str = "/api/v1/namespaces/default/pods";
const REVIEWS: &str = "/apis/authentication.k8s.io/v1/tokenreviews";
const ME: &str = "/apis/authentication.k8s.io/v1/selfsubjectreviews";

async fn token(admin: &Rest, account: &str, spec: Value) -> String {
    let answer = admin.post(&format!("{ACCOUNTS}/{account}/token"), &json!({"spec": spec})).await;
    assert_eq!(answer.code, 201, "{}", answer.text);
    answer.json()["status"]["token"].as_str().unwrap().to_owned()
}

async fn made(admin: &Rest, path: &str, body: &Value) -> Value {
    let made = admin.post(path, body).await;
    assert_eq!(made.code, 201, "{path}: {}", made.text);
    made.json()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_token_speaks_for_its_account_and_roles_hold_it() {
    let server = TestServer::start().await;
    let admin = Rest::admin(&server);
    let account = made(&admin, ACCOUNTS, &json!({"metadata": {"name": "s"}})).await;
    let answer =
        admin.post(&format!("{ACCOUNTS}/s/token"), &json!({"spec": {"expirationSeconds": 600}})).await.json();
    assert_eq!(
        (&answer["kind"], &answer["spec"]["expirationSeconds"]),
        (&json!("TokenRequest"), &json!(600))
    );
    assert!(answer["status"]["expirationTimestamp"].is_string(), "{answer}");
    let client = Rest::with_token(&server, answer["status"]["token"].as_str().unwrap());
    let me = client.post(ME, &json!({})).await.json();
    let info = &me["status"]["userInfo"];
    assert_eq!(info["username"], "system:serviceaccount:default:s");
    assert_eq!(info["uid"], account["metadata"]["uid"]);
    assert_eq!(
        info["groups"],
        json!(["system:serviceaccounts", "system:serviceaccounts:default", "system:authenticated"])
    );
    assert!(
        info["extra"]["authentication.kubernetes.io/credential-id"][0].as_str().unwrap().starts_with("JTI=")
    );
    assert_eq!(client.get(PODS).await.code, 403);
    let binding = json!({"metadata": {"name": "b"}, "roleRef": {"kind": "ClusterRole", "name": "view"}, "subjects": [{"kind": "ServiceAccount", "name": "s", "namespace": "default"}]});
    made(&admin, "/apis/rbac.authorization.k8s.io/v1/namespaces/default/rolebindings", &binding).await;
    assert_eq!(client.get(PODS).await.code, 200);
    assert_eq!(client.get("/api/v1/namespaces/kube-system/pods").await.code, 403);

    // Another server with the same key knows it too; one that was told nothing of the key does not.
    let second = server.beside().await;
    assert_eq!(
        Rest::with_token(&second, answer["status"]["token"].as_str().unwrap()).get(PODS).await.code,
        200
    );
    let reviewed = admin.post(REVIEWS, &json!({"spec": {"token": answer["status"]["token"]}})).await.json();
    assert_eq!(reviewed["status"]["user"], *info);
    assert_eq!(reviewed["status"]["audiences"], json!(["https://kubernetes.default.svc.cluster.local"]));

    // The same name is not the same account.
    assert_eq!(admin.delete(&format!("{ACCOUNTS}/s")).await.code, 200);
    assert_eq!(client.get(PODS).await.code, 401);
    made(&admin, ACCOUNTS, &json!({"metadata": {"name": "s"}})).await;
    assert_eq!(client.get(PODS).await.code, 401);
    second.stop().await;
    server.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_bound_token_ends_with_what_it_is_bound_to() {
    let server = TestServer::start().await;
    let admin = Rest::admin(&server);
    let pod = json!({"metadata": {"name": "p"}, "spec": {"serviceAccountName": "default", "nodeName": "n", "containers": [{"name": "c", "image": "i"}]}});
    let pod = made(&admin, PODS, &pod).await;
    let secret =
        made(&admin, "/api/v1/namespaces/default/secrets", &json!({"metadata": {"name": "x"}})).await;
    let node = made(&admin, "/api/v1/nodes", &json!({"metadata": {"name": "n"}})).await;
    for (kind, object, path) in [
        ("Pod", &pod, format!("{PODS}/p?gracePeriodSeconds=0")),
        ("Secret", &secret, "/api/v1/namespaces/default/secrets/x".to_owned()),
        ("Node", &node, "/api/v1/nodes/n".to_owned()),
    ] {
        let bound = json!({"kind": kind, "apiVersion": "v1", "name": object["metadata"]["name"], "uid": object["metadata"]["uid"]});
        let client =
            Rest::with_token(&server, &token(&admin, "default", json!({"boundObjectRef": bound})).await);
        let me = client.post(ME, &json!({})).await;
        assert_eq!(me.code, 201, "{kind}: {}", me.text);
        if kind == "Pod" {
            let extra = &me.json()["status"]["userInfo"]["extra"];
            assert_eq!(extra["authentication.kubernetes.io/pod-uid"][0], pod["metadata"]["uid"]);
            assert_eq!(extra["authentication.kubernetes.io/node-uid"][0], node["metadata"]["uid"]);
        }
        assert_eq!(admin.delete(&path).await.code, 200);
        assert_eq!(client.post(ME, &json!({})).await.code, 401, "{kind}");
    }
    server.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_token_is_for_its_audiences_alone() {
    let server = TestServer::start().await;
    let admin = Rest::admin(&server);
    let token = token(&admin, "default", json!({"audiences": ["x", "y"]})).await;
    assert_eq!(Rest::with_token(&server, &token).post(ME, &json!({})).await.code, 401);
    let review = async |audiences: Value| {
        let body = json!({"spec": {"token": token, "audiences": audiences}});
        admin.post(REVIEWS, &body).await.json()["status"].clone()
    };
    let known = review(json!(["z", "y"])).await;
    assert_eq!((&known["authenticated"], &known["audiences"]), (&json!(true), &json!(["y"])));
    assert!(review(json!(null)).await["authenticated"].is_null());
    assert!(review(json!(["z"])).await["authenticated"].is_null());
    let altered = format!("{token}x");
    assert_eq!(Rest::with_token(&server, &altered).get("/version").await.code, 401);
    server.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn requests_for_tokens_are_checked() {
    let server = TestServer::start().await;
    let admin = Rest::admin(&server);
    let pod = json!({"metadata": {"name": "p"}, "spec": {"serviceAccountName": "default", "containers": [{"name": "c", "image": "i"}]}});
    made(&admin, PODS, &pod).await;
    made(&admin, ACCOUNTS, &json!({"metadata": {"name": "s"}})).await;
    let bound = |kind: &str, name: &str, uid: &str| json!({"boundObjectRef": {"kind": kind, "apiVersion": "v1", "name": name, "uid": uid}});
    for (account, spec, code, wrong) in [
        (
            "s",
            json!({"expirationSeconds": 60}),
            422,
            "spec.expirationSeconds: Invalid value: 60: may not specify a duration less than 10 minutes",
        ),
        (
            "s",
            json!({"expirationSeconds": 5_000_000_000_i64}),
            422,
            "may not specify a duration larger than 2^32 seconds",
        ),
        ("none", json!({}), 404, "serviceaccounts \"none\" not found"),
        ("s", bound("ConfigMap", "c", ""), 400, "cannot bind token to object of type v1, Kind=ConfigMap"),
        ("s", bound("Secret", "none", ""), 404, "secrets \"none\" not found"),
        ("s", bound("Pod", "p", ""), 400, "running with different serviceaccount name"),
        ("default", bound("Pod", "p", "other"), 409, "does not match the UID in record"),
    ] {
        let refused = admin.post(&format!("{ACCOUNTS}/{account}/token"), &json!({"spec": spec})).await;
        assert_eq!(refused.code, code, "{spec}: {}", refused.text);
        assert!(refused.json()["message"].as_str().unwrap().contains(wrong), "{}", refused.text);
    }
    let eve = Rest::new(&server, Some(("eve", "people")));
    let refused = eve.post(&format!("{ACCOUNTS}/s/token"), &json!({"spec": {}})).await;
    assert_eq!(
        refused.json()["message"],
        "serviceaccounts \"s\" is forbidden: User \"eve\" cannot create resource \"serviceaccounts/token\" in API group \"\" in \
         the namespace \"default\""
    );
    server.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn others_can_learn_how_to_check_tokens() {
    let server = TestServer::start().await;
    let admin = Rest::admin(&server);
    let client = Rest::with_token(&server, &token(&admin, "default", json!({})).await);
    let described = client.get("/.well-known/openid-configuration").await.json();
    assert_eq!(described["issuer"], "https://kubernetes.default.svc.cluster.local");
    assert!(described["jwks_uri"].as_str().unwrap().ends_with("/openid/v1/jwks"));
    let keys = client.get("/openid/v1/jwks").await;
    assert_eq!(keys.headers["content-type"], "application/jwk-set+json");
    assert_eq!(
        (&keys.json()["keys"][0]["kty"], &keys.json()["keys"][0]["alg"]),
        (&json!("EC"), &json!("ES256"))
    );
    assert_eq!(Rest::new(&server, None).get("/openid/v1/jwks").await.code, 403);
    server.stop().await;
}
