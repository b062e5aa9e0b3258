//! Roles and bindings decide what users may do, from the answer to their write on; nobody grants what they do not hold.

#![allow(clippy::unwrap_used, reason = "a test ends at the first surprise")]

mod common;

use common::rest::{Answer, Rest};
use common::server::TestServer;
use serde_json::{Value, json};

const RBAC: &str = "/apis/rbac.authorization.k8s.io/v1";
const PODS: &str = "/api/v1/namespaces/default/pods";

fn of_role(kind: &str, name: &str, subjects: Value) -> Value {
    json!({"metadata": {"name": name}, "roleRef": {"kind": kind, "name": name}, "subjects": subjects})
}

fn user(name: &str) -> Value {
    json!([{"kind": "User", "name": name}])
}

fn role(name: &str, groups: &[&str], resources: &[&str], verbs: &[&str]) -> Value {
    json!({"metadata": {"name": name}, "rules": [{"apiGroups": groups, "resources": resources, "verbs": verbs}]})
}

async fn made(admin: &Rest, path: &str, body: &Value) {
    let made = admin.post(path, body).await;
    assert_eq!(made.code, 201, "{path}: {}", made.text);
}

fn message(answer: &Answer) -> String {
    answer.json()["message"].as_str().unwrap_or_default().to_owned()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_role_counts_from_the_answer_to_its_write_until_the_answer_to_its_deletion() {
    let server = TestServer::start().await;
    let admin = Rest::admin(&server);
    let alice = Rest::new(&server, Some(("alice", "people")));
    let refused = alice.get(PODS).await;
    assert_eq!(refused.code, 403);
    assert_eq!(
        message(&refused),
        "pods is forbidden: User \"alice\" cannot list resource \"pods\" in API group \"\" in the namespace \"default\""
    );
    let (roles, bindings) =
        (format!("{RBAC}/namespaces/default/roles"), format!("{RBAC}/namespaces/default/rolebindings"));
    for round in 0..5 {
        made(&admin, &roles, &role("reader", &[""], &["pods"], &["list"])).await;
        made(&admin, &bindings, &of_role("Role", "reader", user("alice"))).await;
        assert_eq!(alice.get(PODS).await.code, 200, "round {round}");
        assert_eq!(alice.get("/api/v1/pods").await.code, 403);
        assert_eq!(alice.get("/api/v1/namespaces/kube-system/pods").await.code, 403);
        let more = json!({"rules": [{"apiGroups": [""], "resources": ["pods", "configmaps"], "verbs": ["list", "create"]}]});
        assert_eq!(admin.merge(&format!("{roles}/reader"), &more).await.code, 200);
        let config = json!({"metadata": {"generateName": "c-"}});
        let config = alice.post("/api/v1/namespaces/default/configmaps", &config).await;
        assert_eq!(config.code, 201, "{}", config.text);
        assert_eq!(admin.delete(&format!("{roles}/reader")).await.code, 200);
        let refused = alice.get(PODS).await;
        assert!(
            message(&refused).ends_with(": RBAC: role.rbac.authorization.k8s.io \"reader\" not found"),
            "{}",
            refused.text
        );
        assert_eq!(admin.delete(&format!("{bindings}/reader")).await.code, 200);
        assert_eq!(alice.get(PODS).await.code, 403);
    }
    server.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn names_subresources_groups_and_accounts_are_told_apart() {
    let server = TestServer::start().await;
    let admin = Rest::admin(&server);
    let roles = format!("{RBAC}/clusterroles");
    let mut named = role("named", &[""], &["configmaps"], &["get", "watch", "list", "delete"]);
    named["rules"][0]["resourceNames"] = json!(["a"]);
    made(&admin, &roles, &named).await;
    made(&admin, &roles, &role("logs", &[""], &["pods/log"], &["get"])).await;
    made(&admin, &roles, &json!({"metadata": {"name": "paths"}, "rules": [{"nonResourceURLs": ["/metrics"], "verbs": ["get"]}]})).await;
    let bindings = format!("{RBAC}/clusterrolebindings");
    made(&admin, &bindings, &of_role("ClusterRole", "named", user("bob"))).await;
    made(&admin, &bindings, &of_role("ClusterRole", "logs", json!([{"kind": "Group", "name": "readers"}])))
        .await;
    made(&admin, &bindings, &of_role("ClusterRole", "paths", json!([{"kind": "ServiceAccount", "name": "s", "namespace": "default"}, {"kind": "Group", "name": "system:serviceaccounts:kube-system"}]))).await;
    let bob = Rest::new(&server, Some(("bob", "people")));
    let maps = "/api/v1/namespaces/default/configmaps";
    for name in ["a", "b"] {
        made(&admin, maps, &json!({"metadata": {"name": name}})).await;
    }
    for (path, code) in [
        (format!("{maps}/a"), 200),
        (format!("{maps}/b"), 403),
        (maps.to_owned(), 403),
        (format!("{maps}?fieldSelector=metadata.name%3Da"), 200),
        (format!("{maps}?fieldSelector=metadata.name%3Db"), 403),
        (format!("{maps}?watch=1&timeoutSeconds=1&fieldSelector=metadata.name%3Da"), 200),
        (format!("{maps}?watch=1&timeoutSeconds=1"), 403),
        ("/metrics".to_owned(), 403),
    ] {
        assert_eq!(bob.get(&path).await.code, code, "{path}");
    }
    let reader = Rest::new(&server, Some(("carl", "readers")));
    assert_eq!(reader.get(&format!("{PODS}/p")).await.code, 403);
    assert_eq!(reader.get(&format!("{PODS}/p/log")).await.code, 404, "it may, and there is none");
    for (account, code) in [("default:s", 200), ("default:t", 403), ("kube-system:t", 200)] {
        let who = format!("system:serviceaccount:{account}");
        let answer = admin.send("GET", "/metrics", &[("Impersonate-User", &who)], "").await;
        assert_eq!(answer.code, code, "{account}: {}", answer.text);
    }
    server.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn nobody_grants_what_they_do_not_hold_but_by_leave() {
    let server = TestServer::start().await;
    let admin = Rest::admin(&server);
    let roles = format!("{RBAC}/namespaces/default/roles");
    let bindings = format!("{RBAC}/namespaces/default/rolebindings");
    made(&admin, &bindings, &json!({"metadata": {"name": "owner"}, "roleRef": {"kind": "ClusterRole", "name": "admin"}, "subjects": user("dora")})).await;
    let dora = Rest::new(&server, Some(("dora", "people")));
    made(&dora, &roles, &role("fine", &["apps"], &["deployments"], &["get", "create"])).await;
    let refused = dora.post(&roles, &role("r", &[""], &["nodes", "secrets"], &["get", "list"])).await;
    assert_eq!(refused.code, 403);
    assert_eq!(
        message(&refused),
        "roles.rbac.authorization.k8s.io \"r\" is forbidden: user \"dora\" (groups=[\"people\" \"system:authenticated\"]) is \
         attempting to grant RBAC permissions not currently held:\n{APIGroups:[\"\"], Resources:[\"nodes\"], Verbs:[\"get\" \"list\"]}"
    );
    let widened = json!({"rules": [{"apiGroups": ["*"], "resources": ["*"], "verbs": ["*"]}]});
    assert_eq!(dora.merge(&format!("{roles}/fine"), &widened).await.code, 403);
    assert_eq!(
        dora.merge(&format!("{roles}/fine"), &json!({"metadata": {"labels": {"a": "b"}}})).await.code,
        200
    );
    let boss = json!({"metadata": {"name": "boss"}, "roleRef": {"kind": "ClusterRole", "name": "cluster-admin"}, "subjects": user("dora")});
    let refused = dora.post(&bindings, &boss).await;
    assert_eq!(refused.code, 403, "{}", refused.text);
    assert!(
        message(&refused).contains("{APIGroups:[\"*\"], Resources:[\"*\"], Verbs:[\"*\"]}"),
        "{}",
        refused.text
    );
    let gone = json!({"metadata": {"name": "gone"}, "roleRef": {"kind": "Role", "name": "nope"}, "subjects": user("x")});
    assert_eq!(dora.post(&bindings, &gone).await.code, 404);
    made(&dora, &bindings, &json!({"metadata": {"name": "v"}, "roleRef": {"kind": "ClusterRole", "name": "view"}, "subjects": user("x")})).await;
    let moved = dora.merge(&format!("{bindings}/v"), &json!({"roleRef": {"name": "edit"}})).await;
    assert_eq!(moved.code, 422, "{}", moved.text);
    assert!(message(&moved).contains("cannot change roleRef"));
    let cluster = format!("{RBAC}/clusterroles");
    let mut leave =
        role("leave", &["rbac.authorization.k8s.io"], &["roles", "clusterroles"], &["escalate", "bind"]);
    leave["rules"][0]["resourceNames"] = json!(["r", "cluster-admin"]);
    made(&admin, &cluster, &leave).await;
    made(&admin, &bindings, &of_role("ClusterRole", "leave", user("dora"))).await;
    made(&dora, &roles, &role("r", &[""], &["nodes"], &["get"])).await;
    made(&dora, &bindings, &boss).await;
    made(&admin, &cluster, &role("clusters", &["rbac.authorization.k8s.io"], &["clusterroles"], &["create"]))
        .await;
    made(&admin, &format!("{RBAC}/clusterrolebindings"), &of_role("ClusterRole", "clusters", user("dora")))
        .await;
    let gathers = json!({"metadata": {"name": "g"}, "aggregationRule": {"clusterRoleSelectors": [{"matchLabels": {"a": "b"}}]}});
    let refused = dora.post(&cluster, &gathers).await;
    assert!(
        message(&refused).ends_with("must have cluster-admin privileges to use the aggregationRule"),
        "{}",
        refused.text
    );
    server.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn the_roles_of_the_start_are_there_gather_others_and_are_left_alone() {
    let server = TestServer::start().await;
    let admin = Rest::admin(&server);
    let roles = format!("{RBAC}/clusterroles");
    let watched = format!("{roles}?watch=1&fieldSelector=metadata.name%3Dview");
    let mut watch = admin.watch(&watched).await;
    let holds = |role: &Value, resource: &str| role["rules"].to_string().contains(&format!("\"{resource}\""));
    while !holds(&watch.next().await.unwrap()["object"], "pods") {}
    let mut odds = role("odds", &["x.io"], &["odds"], &["get"]);
    odds["metadata"]["labels"] = json!({"rbac.authorization.k8s.io/aggregate-to-view": "true"});
    made(&admin, &roles, &odds).await;
    made(&admin, &format!("{RBAC}/clusterrolebindings"), &json!({"metadata": {"name": "e"}, "roleRef": {"kind": "ClusterRole", "name": "admin"}, "subjects": user("ed")})).await;
    let may = json!({"spec": {"user": "ed", "resourceAttributes": {"verb": "get", "group": "x.io", "resource": "odds", "namespace": "a"}}});
    let answer = admin.post("/apis/authorization.k8s.io/v1/subjectaccessreviews", &may).await.json();
    assert_eq!(answer["status"]["allowed"], true, "{answer}");
    while !holds(&watch.next().await.unwrap()["object"], "odds") {}
    assert_eq!(admin.delete(&format!("{roles}/odds")).await.code, 200);
    while holds(&watch.next().await.unwrap()["object"], "odds") {}

    // What somebody changed is mended by the next start, unless they said not to; then nothing is written.
    let off = json!({"metadata": {"annotations": {"rbac.authorization.kubernetes.io/autoupdate": "false"}}, "rules": null});
    assert_eq!(admin.merge(&format!("{roles}/system:monitoring"), &off).await.code, 200);
    assert_eq!(admin.delete(&format!("{roles}/system:discovery")).await.code, 200);
    assert_eq!(
        admin
            .merge(
                &format!("{roles}/system:basic-user"),
                &json!({"rules": [{"apiGroups": ["a"], "resources": ["b"], "verbs": ["c"]}]})
            )
            .await
            .code,
        200
    );
    let second = server.beside().await;
    let again = Rest::admin(&second);
    let rules = async |name: &str| again.get(&format!("{roles}/{name}")).await.json()["rules"].clone();
    assert_eq!(rules("system:monitoring").await, json!([]));
    assert!(rules("system:discovery").await.to_string().contains("/openapi"));
    let basic = rules("system:basic-user").await.to_string();
    assert!(basic.contains("selfsubjectaccessreviews") && basic.contains("\"b\""), "{basic}");
    let before = server.store.current_revision();
    let third = server.beside().await;
    assert_eq!(
        server.store.current_revision(),
        before,
        "a start that finds all as it should be writes nothing"
    );
    for one in [third, second, server] {
        one.stop().await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn strangers_read_health_and_version_and_nothing_else() {
    let server = TestServer::start().await;
    let (stranger, eve) = (Rest::new(&server, None), Rest::new(&server, Some(("eve", "people"))));
    for (path, of_stranger, of_eve) in [
        ("/version", 200, 200),
        ("/healthz", 200, 200),
        ("/livez", 200, 200),
        ("/readyz", 200, 200),
        ("/api", 403, 200),
        ("/apis/apps/v1", 403, 200),
        ("/openapi/v3", 403, 200),
        ("/metrics", 403, 403),
        ("/api/v1/namespaces", 403, 403),
    ] {
        assert_eq!(stranger.get(path).await.code, of_stranger, "{path}");
        assert_eq!(eve.get(path).await.code, of_eve, "{path}");
    }
    let refused = stranger.get("/api/v1/nodes/n").await;
    assert_eq!(
        message(&refused),
        "nodes \"n\" is forbidden: User \"system:anonymous\" cannot get resource \"nodes\" in API group \"\" at the cluster scope"
    );
    server.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn reviews_answer_by_the_same_rules() {
    let server = TestServer::start().await;
    let admin = Rest::admin(&server);
    made(&admin, &format!("{RBAC}/namespaces/default/rolebindings"), &json!({"metadata": {"name": "v"}, "roleRef": {"kind": "ClusterRole", "name": "view"}, "subjects": user("fay")})).await;
    let fay = Rest::new(&server, Some(("fay", "people")));
    let of = |name: &str| format!("/apis/authorization.k8s.io/v1/{name}");
    let about =
        |verb: &str, resource: &str| json!({"verb": verb, "resource": resource, "namespace": "default"});
    for (verb, resource, allowed) in
        [("get", "pods", true), ("delete", "pods", false), ("get", "secrets", false)]
    {
        let mine = json!({"spec": {"resourceAttributes": about(verb, resource)}});
        let answer = fay.post(&of("selfsubjectaccessreviews"), &mine).await.json();
        assert_eq!(answer["status"]["allowed"], allowed, "{answer}");
        let theirs = json!({"spec": {"user": "fay", "resourceAttributes": about(verb, resource)}});
        assert_eq!(fay.post(&of("subjectaccessreviews"), &theirs).await.code, 403);
        let answer = admin.post(&of("subjectaccessreviews"), &theirs).await.json();
        assert_eq!(answer["status"]["allowed"], allowed, "{answer}");
        let local = "/apis/authorization.k8s.io/v1/namespaces/default/localsubjectaccessreviews";
        assert_eq!(admin.post(local, &theirs).await.json()["status"], answer["status"]);
    }
    let reason = json!({"spec": {"user": "fay", "resourceAttributes": about("get", "pods")}});
    let reason = admin.post(&of("subjectaccessreviews"), &reason).await.json();
    assert_eq!(
        reason["status"]["reason"],
        "RBAC: allowed by RoleBinding \"v/default\" of ClusterRole \"view\" to User \"fay\""
    );
    for (path, body, wrong) in [
        (
            of("selfsubjectaccessreviews"),
            json!({"spec": {}}),
            "exactly one of nonResourceAttributes or resourceAttributes",
        ),
        (
            of("subjectaccessreviews"),
            json!({"spec": {"resourceAttributes": about("get", "pods")}}),
            "at least one of user or group must be specified",
        ),
        (
            "/apis/authorization.k8s.io/v1/namespaces/kube-system/localsubjectaccessreviews".to_owned(),
            json!({"spec": {"user": "fay", "resourceAttributes": about("get", "pods")}}),
            "must match metadata.namespace",
        ),
        (
            "/apis/authentication.k8s.io/v1/tokenreviews".to_owned(),
            json!({"spec": {}}),
            "spec.token: Required value",
        ),
    ] {
        let refused = admin.post(&path, &body).await;
        assert_eq!(refused.code, 422, "{path}: {}", refused.text);
        assert!(message(&refused).contains(wrong), "{}", refused.text);
    }
    let paths = json!({"spec": {"nonResourceAttributes": {"path": "/apis/x", "verb": "get"}}});
    assert_eq!(fay.post(&of("selfsubjectaccessreviews"), &paths).await.json()["status"]["allowed"], true);
    let rules =
        fay.post(&of("selfsubjectrulesreviews"), &json!({"spec": {"namespace": "default"}})).await.json();
    let told = rules["status"]["resourceRules"].to_string();
    assert!(told.contains("pods/log") && !told.contains("secrets"), "{told}");
    assert!(rules["status"]["nonResourceRules"].to_string().contains("/openapi/*"));
    let who = fay.post("/apis/authentication.k8s.io/v1/selfsubjectreviews", &json!({})).await.json();
    assert_eq!(
        who["status"]["userInfo"],
        json!({"username": "fay", "groups": ["people", "system:authenticated"]})
    );
    let review = |token: &str| json!({"spec": {"token": token}});
    let boss = admin.post("/apis/authentication.k8s.io/v1/tokenreviews", &review("boss-token")).await.json();
    assert_eq!(
        (&boss["status"]["authenticated"], &boss["status"]["user"]["username"]),
        (&json!(true), &json!("boss"))
    );
    let nobody = admin.post("/apis/authentication.k8s.io/v1/tokenreviews", &review("odd")).await.json();
    assert!(nobody["status"]["authenticated"].is_null() && nobody["status"]["error"].is_string(), "{nobody}");
    server.stop().await;
}
