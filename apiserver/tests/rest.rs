//! The REST facade as clients see it, over a real connection.

#![allow(clippy::unwrap_used, reason = "a test ends at the first surprise")]

mod common;

use common::rest::Rest;
use common::server::{TOKEN, TestServer};
use serde_json::{Value, json};

const MAPS: &str = "/api/v1/namespaces/default/configmaps";
const PODS: &str = "/api/v1/namespaces/default/pods";
const DEPLOYMENTS: &str = "/apis/apps/v1/namespaces/default/deployments";

fn map(name: &str) -> Value {
    json!({"metadata": {"name": name, "labels": {"app": "x"}}, "data": {"k": "v"}})
}

fn deployment(name: &str) -> Value {
    json!({"metadata": {"name": name}, "spec": {"replicas": 2, "selector": {"matchLabels": {"a": "b"}}, "template": {
        "metadata": {"labels": {"a": "b"}}, "spec": {"containers": [{"name": "c", "image": "nginx"}]}}}})
}

fn pod(name: &str) -> Value {
    json!({"metadata": {"name": name}, "spec": {"containers": [{"name": "c", "image": "nginx"}]}})
}

fn revision(object: &Value) -> u64 {
    object["metadata"]["resourceVersion"].as_str().unwrap().parse().unwrap()
}

#[tokio::test(flavor = "multi_thread")]
async fn who_one_is_decides_what_one_may() {
    let server = TestServer::start().await;
    let nobody = Rest::new(&server, None);
    assert_eq!(nobody.get("/readyz").await.text, "ok");
    assert_eq!(nobody.get("/version").await.json()["minor"], "33");
    assert_eq!(nobody.get(MAPS).await.code, 403);
    assert_eq!(nobody.get("/apis").await.code, 403);
    let eve = Rest::with_token(&server, TOKEN);
    let denied = eve.get(MAPS).await.json();
    assert_eq!(
        denied["message"],
        "configmaps is forbidden: User \"eve\" cannot list resource \"configmaps\" in API group \"\" in the namespace \"default\""
    );
    assert_eq!(eve.get("/api/v1").await.code, 200);
    assert_eq!(eve.get("/metrics").await.code, 403);
    let review = json!({"kind": "SelfSubjectReview", "apiVersion": "authentication.k8s.io/v1"});
    let who = eve.post("/apis/authentication.k8s.io/v1/selfsubjectreviews", &review).await;
    assert_eq!(who.json()["status"]["userInfo"]["username"], "eve");
    assert_eq!(Rest::with_token(&server, "wrong").get("/readyz").await.code, 401);
    assert_eq!(Rest::with_token(&server, "boss-token").get(MAPS).await.code, 200);
    let scheduler = Rest::new(&server, Some(("system:controller:scheduler", "system:controllers")));
    assert_eq!(scheduler.get(PODS).await.code, 200);
    assert_eq!(scheduler.post(PODS, &pod("p")).await.code, 403);
    server.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn who_may_acts_as_another_and_nobody_by_accident() {
    let server = TestServer::start().await;
    let (admin, eve) = (Rest::admin(&server), Rest::with_token(&server, TOKEN));
    let scheduler =
        [("Impersonate-User", "system:controller:scheduler"), ("Impersonate-Group", "system:controllers")];
    let as_whom =
        async |rest: &Rest, path: &str, headers: &[(&str, &str)]| rest.send("GET", path, headers, "").await;
    assert_eq!(as_whom(&admin, PODS, &scheduler).await.code, 200);
    assert_eq!(as_whom(&admin, MAPS, &scheduler).await.code, 403);
    let denied = as_whom(&admin, MAPS, &[("Impersonate-User", "dora")]).await.json();
    assert!(denied["message"].as_str().unwrap().contains("User \"dora\" cannot list"), "{denied}");
    let anonymous = [("Impersonate-User", "system:anonymous")];
    assert_eq!(as_whom(&admin, "/apis", &anonymous).await.code, 403);
    assert_eq!(as_whom(&admin, MAPS, &[("Impersonate-Group", "system:masters")]).await.code, 400);
    let raised = [("Impersonate-User", "root"), ("Impersonate-Group", "system:masters")];
    let refused = as_whom(&eve, MAPS, &raised).await.json();
    assert!(
        refused["message"].as_str().unwrap().contains("cannot impersonate resource \"users\""),
        "{refused}"
    );
    server.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_write_that_changes_nothing_writes_nothing() {
    let server = TestServer::start().await;
    let admin = Rest::admin(&server);
    let made = admin.post(MAPS, &map("a")).await;
    assert_eq!(made.code, 201, "{}", made.text);
    let made = made.json();
    let before = server.store.current_revision();
    let path = format!("{MAPS}/a");
    let same = admin.put(&path, &map("a")).await;
    assert_eq!((same.code, revision(&same.json())), (200, revision(&made)));
    assert_eq!(admin.merge(&path, &json!({"data": {"k": "v"}})).await.json(), made);
    assert_eq!(admin.put(&path, &made).await.json(), made);
    assert_eq!(server.store.current_revision(), before);
    server.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn stale_writers_hear_of_it_and_others_are_retried() {
    let server = TestServer::start().await;
    let admin = Rest::admin(&server);
    let first = admin.post(MAPS, &map("a")).await.json();
    let path = format!("{MAPS}/a");
    let writers = (0..16).map(|i| {
        let (admin, path) = (admin.clone(), path.clone());
        tokio::spawn(async move { admin.merge(&path, &json!({"data": {(format!("k{i}")): "v"}})).await.code })
    });
    let mut codes = Vec::new();
    for writer in writers.collect::<Vec<_>>() {
        codes.push(writer.await.unwrap());
    }
    let won = codes.iter().filter(|code| **code == 200).count();
    let data = admin.get(&path).await.json()["data"].as_object().unwrap().len();
    assert_eq!(data, won + 1, "every write that was told done is there: {codes:?}");
    assert!(codes.iter().all(|code| matches!(code, 200 | 409)), "{codes:?}");
    let stale = admin.put(&path, &first).await;
    assert_eq!((stale.code, &stale.json()["reason"]), (409, &json!("Conflict")));
    let named = json!({"metadata": {"resourceVersion": "1"}, "data": {"z": "z"}});
    assert_eq!(admin.merge(&path, &named).await.code, 409);
    server.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn status_and_scale_are_apart_from_spec() {
    let server = TestServer::start().await;
    let admin = Rest::admin(&server);
    let path = format!("{DEPLOYMENTS}/web");
    assert_eq!(admin.post(DEPLOYMENTS, &deployment("web")).await.code, 201);
    let reported = admin
        .merge(&format!("{path}/status"), &json!({"status": {"replicas": 2}, "spec": {"replicas": 9}}))
        .await;
    let reported = reported.json();
    assert_eq!((&reported["status"]["replicas"], &reported["spec"]["replicas"]), (&json!(2), &json!(2)));
    assert_eq!(reported["metadata"]["generation"], 1);
    let scale = admin.get(&format!("{path}/scale")).await.json();
    assert_eq!((&scale["kind"], &scale["status"]["selector"]), (&json!("Scale"), &json!("a=b")));
    let scaled = admin.merge(&format!("{path}/scale"), &json!({"spec": {"replicas": 5}})).await;
    assert_eq!((scaled.code, &scaled.json()["spec"]["replicas"]), (200, &json!(5)));
    let negative = admin.merge(&format!("{path}/scale"), &json!({"spec": {"replicas": -1}})).await;
    assert_eq!((negative.code, &negative.json()["details"]["kind"]), (422, &json!("Scale")));
    let mut whole = scaled.json();
    whole["metadata"]["resourceVersion"] = json!("1");
    assert_eq!(admin.put(&format!("{path}/scale"), &whole).await.code, 409);
    let live = admin.get(&path).await.json();
    assert_eq!((&live["spec"]["replicas"], &live["metadata"]["generation"]), (&json!(5), &json!(2)));
    server.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn strategic_patches_merge_by_key() {
    let server = TestServer::start().await;
    let admin = Rest::admin(&server);
    admin.post(DEPLOYMENTS, &deployment("web")).await;
    let patch = json!({"spec": {"template": {"spec": {"containers": [{"name": "c", "image": "nginx:2"}]}}}});
    let headers = [("content-type", "application/strategic-merge-patch+json")];
    let patched =
        admin.send("PATCH", &format!("{DEPLOYMENTS}/web"), &headers, patch.to_string()).await.json();
    let container = &patched["spec"]["template"]["spec"]["containers"][0];
    assert_eq!(
        (&container["image"], &container["terminationMessagePolicy"]),
        (&json!("nginx:2"), &json!("File"))
    );
    server.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn pods_are_bound_once_and_end_with_grace() {
    let server = TestServer::start().await;
    let admin = Rest::admin(&server);
    let path = format!("{PODS}/p");
    assert_eq!(admin.post(PODS, &pod("p")).await.json()["status"]["phase"], "Pending");
    let binding = |node: &str| json!({"metadata": {"name": "p"}, "target": {"kind": "Node", "name": node}});
    assert_eq!(admin.post(&format!("{path}/binding"), &binding("n1")).await.code, 201);
    let again = admin.post(&format!("{path}/binding"), &binding("n2")).await;
    assert_eq!(again.code, 409);
    assert!(again.text.contains("pod p is already assigned to node \\\"n1\\\""), "{}", again.text);
    let bound = admin.get(&path).await.json();
    assert_eq!(bound["spec"]["nodeName"], "n1");
    assert_eq!(bound["status"]["conditions"][0]["type"], "PodScheduled");
    let marked = admin.delete(&path).await.json();
    assert_eq!(marked["metadata"]["deletionGracePeriodSeconds"], 30);
    assert_eq!(admin.delete(&path).await.json(), marked, "a second delete changes nothing");
    assert_eq!(admin.delete(&format!("{path}?gracePeriodSeconds=0")).await.json()["status"], "Success");
    assert_eq!(admin.get(&path).await.code, 404);
    server.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_namespace_empties_before_it_goes() {
    let server = TestServer::start().await;
    let admin = Rest::admin(&server);
    assert_eq!(admin.post("/api/v1/namespaces", &json!({"metadata": {"name": "team"}})).await.code, 201);
    let inside = "/api/v1/namespaces/team/configmaps";
    assert_eq!(admin.post(inside, &map("a")).await.code, 201);
    let marked = admin.delete("/api/v1/namespaces/team").await.json();
    assert_eq!(marked["status"]["phase"], "Terminating");
    let refused = admin.post(inside, &map("b")).await;
    assert_eq!(refused.code, 403);
    assert_eq!(refused.json()["details"]["causes"][0]["reason"], "NamespaceTerminating");
    assert_eq!(admin.delete(inside).await.json()["items"][0]["metadata"]["name"], "a");
    let mut finalized = marked;
    finalized["spec"] = json!({});
    finalized["metadata"].as_object_mut().unwrap().remove("resourceVersion");
    assert_eq!(admin.put("/api/v1/namespaces/team/finalize", &finalized).await.code, 200);
    assert_eq!(admin.get("/api/v1/namespaces/team").await.code, 404);
    assert_eq!(admin.delete("/api/v1/namespaces/kube-system").await.code, 403);
    server.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_namespace_stays_while_it_holds_what_its_controller_does_not_know_yet() {
    let server = TestServer::start().await;
    let admin = Rest::admin(&server);
    assert_eq!(admin.post("/api/v1/namespaces", &json!({"metadata": {"name": "team"}})).await.code, 201);
    let schema = json!({"openAPIV3Schema": {"type": "object"}});
    let crd = json!({"metadata": {"name": "rings.example.com"}, "spec": {"group": "example.com", "scope": "Namespaced",
        "names": {"plural": "rings", "kind": "Ring"},
        "versions": [{"name": "v1", "served": true, "storage": true, "schema": schema}]}});
    assert_eq!(admin.post("/apis/apiextensions.k8s.io/v1/customresourcedefinitions", &crd).await.code, 201);
    let rings = "/apis/example.com/v1/namespaces/team/rings";
    let ring = json!({"apiVersion": "example.com/v1", "kind": "Ring", "metadata": {"name": "a"}});
    assert_eq!(admin.post(rings, &ring).await.code, 201);
    let mut finalized = admin.delete("/api/v1/namespaces/team").await.json();
    finalized["spec"] = json!({});
    finalized["metadata"].as_object_mut().unwrap().remove("resourceVersion");
    let refused = admin.put("/api/v1/namespaces/team/finalize", &finalized).await.json();
    assert_eq!(refused["code"], 409);
    assert!(refused["message"].as_str().unwrap().contains("still holds rings.example.com"), "{refused}");
    assert_eq!(admin.delete(&format!("{rings}/a")).await.code, 200);
    assert_eq!(admin.put("/api/v1/namespaces/team/finalize", &finalized).await.code, 200);
    assert_eq!(admin.get("/api/v1/namespaces/team").await.code, 404);
    server.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn pages_show_one_state() {
    let server = TestServer::start().await;
    let admin = Rest::admin(&server);
    for i in 0..5 {
        admin.post(MAPS, &map(&format!("m{i}"))).await;
    }
    let first = admin.get(&format!("{MAPS}?limit=2")).await.json();
    assert_eq!(first["metadata"]["remainingItemCount"], 3);
    let token = first["metadata"]["continue"].as_str().unwrap().to_owned();
    admin.delete(&format!("{MAPS}/m3")).await;
    admin.post(MAPS, &map("m9")).await;
    let rest = admin.get(&format!("{MAPS}?limit=10&continue={token}")).await.json();
    let names: Vec<&str> =
        rest["items"].as_array().unwrap().iter().map(|i| i["metadata"]["name"].as_str().unwrap()).collect();
    assert_eq!(names, ["m2", "m3", "m4"], "as it was when the first page was read");
    assert_eq!(rest["metadata"]["resourceVersion"], first["metadata"]["resourceVersion"]);
    let selected = admin
        .get(&format!("{MAPS}?labelSelector=app%3Dx,app!=y&fieldSelector=metadata.name%3Dm9"))
        .await
        .json();
    assert_eq!(selected["items"].as_array().unwrap().len(), 1);
    server.store.compact(server.store.current_revision()).await.unwrap();
    let gone = admin.get(&format!("{MAPS}?limit=10&continue={token}")).await;
    assert_eq!((gone.code, &gone.json()["reason"]), (410, &json!("Expired")));
    let fresh = gone.json()["metadata"]["continue"].as_str().unwrap().to_owned();
    let rest = admin.get(&format!("{MAPS}?continue={fresh}")).await.json();
    assert_eq!(rest["items"].as_array().unwrap().len(), 3, "m2, m4 and m9 are there now");
    server.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn watches_tell_everything_in_order_and_resume() {
    let server = TestServer::start().await;
    let admin = Rest::admin(&server);
    let start = revision(&admin.get(MAPS).await.json());
    let mut live = admin.watch(&format!("{MAPS}?watch=true&resourceVersion={start}")).await;
    admin.post(MAPS, &map("a")).await;
    admin.merge(&format!("{MAPS}/a"), &json!({"data": {"k": "w"}})).await;
    admin.delete(&format!("{MAPS}/a")).await;
    let mut seen = Vec::new();
    for _ in 0..3 {
        seen.push(live.brief().await);
    }
    let kinds: Vec<&str> = seen.iter().map(|(kind, _, _)| kind.as_str()).collect();
    assert_eq!(kinds, ["ADDED", "MODIFIED", "DELETED"]);
    let last = server.store.current_revision().to_string();
    assert_eq!(seen[2].2, last, "a deletion has the revision of the deletion");
    let mut resumed = admin.watch(&format!("{MAPS}?watch=true&resourceVersion={}", seen[0].2)).await;
    assert_eq!(resumed.brief().await, seen[1]);
    assert_eq!(resumed.brief().await, seen[2]);
    server.store.compact(server.store.current_revision()).await.unwrap();
    let mut old = admin.watch(&format!("{MAPS}?watch=true&resourceVersion={start}")).await;
    let event = old.next().await.unwrap();
    assert_eq!((&event["type"], &event["object"]["code"]), (&json!("ERROR"), &json!(410)));
    assert_eq!(old.next().await, None);
    server.stop().await;
    assert_eq!(live.next().await, None, "watches end cleanly with the server");
}

#[tokio::test(flavor = "multi_thread")]
async fn watches_follow_selectors_and_tell_the_initial_state() {
    let server = TestServer::start().await;
    let admin = Rest::admin(&server);
    admin.post(MAPS, &map("a")).await;
    let query =
        "watch=true&sendInitialEvents=true&resourceVersionMatch=NotOlderThan&allowWatchBookmarks=true";
    let mut watch = admin.watch(&format!("{MAPS}?{query}&labelSelector=app%3Dx")).await;
    assert_eq!(watch.brief().await.0, "ADDED");
    let end = watch.next().await.unwrap();
    assert_eq!(end["type"], "BOOKMARK");
    assert_eq!(end["object"]["metadata"]["annotations"]["k8s.io/initial-events-end"], "true");
    admin.merge(&format!("{MAPS}/a"), &json!({"metadata": {"labels": {"app": "y"}}})).await;
    admin.merge(&format!("{MAPS}/a"), &json!({"data": {"unseen": "1"}})).await;
    admin.merge(&format!("{MAPS}/a"), &json!({"metadata": {"labels": {"app": "x"}}})).await;
    let (left, came) = (watch.brief().await, watch.brief().await);
    assert_eq!((left.0.as_str(), came.0.as_str()), ("DELETED", "ADDED"));
    let refused = admin.get(&format!("{MAPS}?watch=true&sendInitialEvents=true")).await;
    assert_eq!(refused.code, 422);
    let ended = admin.watch(&format!("{MAPS}?watch=true&timeoutSeconds=-1")).await.next().await;
    assert_eq!(ended, None);
    server.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn discovery_and_openapi_are_served_once() {
    let server = TestServer::start().await;
    let admin = Rest::admin(&server);
    let accept =
        [("accept", "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList,application/json")];
    let found = admin.send("GET", "/apis", &accept, "").await;
    let media = found.headers["content-type"].to_str().unwrap();
    assert_eq!(media, "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList");
    let tag = found.headers["etag"].to_str().unwrap().to_owned();
    let again = admin.send("GET", "/apis", &[accept[0], ("if-none-match", &tag)], "").await;
    assert_eq!(again.code, 304);
    assert_eq!(admin.get("/apis").await.json()["kind"], "APIGroupList");
    let resources = admin.get("/apis/apps/v1").await.json();
    let names: Vec<&str> =
        resources["resources"].as_array().unwrap().iter().map(|r| r["name"].as_str().unwrap()).collect();
    assert!(names.contains(&"deployments/scale"), "{names:?}");
    let index = admin.get("/openapi/v3").await.json();
    let url = index["paths"]["apis/apps/v1"]["serverRelativeURL"].as_str().unwrap().to_owned();
    let document = admin.get(&url).await;
    assert_eq!(document.headers["cache-control"], "public, immutable");
    assert!(document.json()["components"]["schemas"]["io.k8s.api.apps.v1.Deployment"].is_object());
    server.stop().await;
}

/// Method, path, header, body, and the code it gets.
type Rubbish<'a> = (&'a str, &'a str, (&'a str, &'a str), &'a str, u16);

#[tokio::test(flavor = "multi_thread")]
async fn rubbish_gets_a_proper_status() {
    let server = TestServer::start().await;
    let admin = Rest::admin(&server);
    let json = ("content-type", "application/json");
    let deep = format!("{{\"data\":{}{}}}", "[".repeat(100_000), "]".repeat(100_000));
    let long = "x".repeat(4 << 20);
    let cases: &[Rubbish<'_>] = &[
        ("POST", MAPS, json, "{\"a\":", 400),
        ("POST", MAPS, json, "", 400),
        ("POST", MAPS, json, "[]", 400),
        ("POST", MAPS, json, "null", 400),
        ("POST", MAPS, json, "{\"metadata\":[]}", 400),
        ("POST", MAPS, json, "{\"metadata\":{\"name\":1}}", 400),
        ("POST", MAPS, json, "{\"metadata\":{}}", 422),
        ("POST", MAPS, json, "{\"kind\":\"Secret\",\"metadata\":{\"name\":\"a\"}}", 400),
        ("POST", MAPS, json, "{\"metadata\":{\"name\":\"a\",\"namespace\":\"b\"}}", 400),
        ("POST", MAPS, json, &deep, 400),
        ("POST", MAPS, json, &long, 413),
        ("POST", MAPS, ("content-type", "text/plain"), "x", 415),
        ("POST", MAPS, ("content-type", "application/vnd.kubernetes.protobuf"), "k8s\0\u{7f}\u{7f}", 400),
        ("POST", MAPS, ("content-type", "application/yaml"), "a: [", 400),
        (
            "POST",
            &format!("{MAPS}?fieldValidation=Strict"),
            json,
            "{\"metadata\":{\"name\":\"a\"},\"x\":1}",
            400,
        ),
        ("POST", &format!("{MAPS}?dryRun=Some"), json, "{\"metadata\":{\"name\":\"a\"}}", 422),
        ("POST", "/api/v1/namespaces/nowhere/configmaps", json, "{\"metadata\":{\"name\":\"a\"}}", 404),
        ("POST", "/api/v1/configmaps", json, "{}", 405),
        ("PATCH", &format!("{MAPS}/a"), json, "{}", 415),
        ("PATCH", &format!("{MAPS}/a"), ("content-type", "application/merge-patch+json"), "{}", 404),
        ("PATCH", "/api/v1/namespaces/default", ("content-type", "application/json-patch+json"), "{}", 400),
        ("DELETE", &format!("{MAPS}/a"), json, "{\"propagationPolicy\":\"Sideways\"}", 422),
        ("GET", &format!("{MAPS}?labelSelector=a%20b"), json, "", 400),
        ("GET", &format!("{MAPS}?fieldSelector=data.x%3D1"), json, "", 400),
        ("GET", &format!("{MAPS}?limit=x"), json, "", 400),
        ("GET", &format!("{MAPS}?continue=x"), json, "", 400),
        ("GET", MAPS, ("accept", "application/cbor"), "", 406),
        ("GET", "/apis/apps/v9/deployments", json, "", 404),
        ("GET", &format!("{MAPS}/a/nothing"), json, "", 404),
        ("TRACE", MAPS, json, "", 405),
    ];
    for (method, path, header, body, code) in cases {
        let answer = admin.send(method, path, &[*header], body.to_string()).await;
        let shown = &answer.text[..answer.text.len().min(300)];
        assert_eq!(answer.code, *code, "{method} {path}: {shown}");
        assert_eq!(answer.json()["kind"], "Status", "{method} {path}: {shown}");
        assert!(!answer.json()["message"].as_str().unwrap().is_empty(), "{method} {path}");
    }
    server.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_full_disk_refuses_writes_and_takes_deletes() {
    let server = TestServer::start().await;
    let admin = Rest::admin(&server);
    admin.post(MAPS, &map("a")).await;
    server.memory.set_room(Some(server.memory.used()));
    let mut refused = None;
    for i in 0..64 {
        let mut big = map(&format!("big{i}"));
        big["data"]["pad"] = json!("x".repeat(8 << 10));
        let answer = admin.post(MAPS, &big).await;
        if answer.code != 201 {
            refused = Some(answer);
            break;
        }
    }
    let refused = refused.expect("the disk to fill up");
    assert_eq!((refused.code, &refused.json()["reason"]), (507, &json!("InsufficientStorage")));
    assert_eq!(admin.get(&format!("{MAPS}/a")).await.code, 200);
    assert_eq!(admin.delete(&format!("{MAPS}/a")).await.code, 200);
    server.memory.set_room(None);
    assert_eq!(admin.post(MAPS, &map("b")).await.code, 201);
    server.stop().await;
}
