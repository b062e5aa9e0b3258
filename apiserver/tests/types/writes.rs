//! What types share and each has in its own way: fields to select on, scales, updates without a revision, deletions that
//! leave what was owned.

use serde_json::{Value, json};

use crate::common::rest::Rest;
use crate::common::server::TestServer;

const CORE: &str = "/api/v1/namespaces/default";
const JOBS: &str = "/apis/batch/v1/namespaces/default/jobs";
const SETS: &str = "/apis/apps/v1/namespaces/default/statefulsets";
const BUDGETS: &str = "/apis/policy/v1/namespaces/default/poddisruptionbudgets";
const ROLES: &str = "/apis/rbac.authorization.k8s.io/v1/namespaces/default/roles";

fn job() -> Value {
    json!({"metadata": {"name": "a"}, "spec": {"template": {"spec": {"restartPolicy": "Never", "containers": [{"name": "c", "image": "i"}]}}}})
}

async fn found(admin: &Rest, path: &str, selector: &str) -> usize {
    let answer = admin.get(&format!("{path}?fieldSelector={selector}")).await;
    answer.json()["items"].as_array().unwrap_or_else(|| panic!("{}", answer.text)).len()
}

#[tokio::test(flavor = "multi_thread")]
async fn fields_of_each_type_select() {
    let server = TestServer::start().await;
    let admin = Rest::admin(&server);
    let service =
        json!({"metadata": {"name": "a"}, "spec": {"type": "ExternalName", "externalName": "x.io"}});
    let secret = json!({"metadata": {"name": "a"}, "type": "x.io/t"});
    for (path, body) in
        [(JOBS, &job()), (&format!("{CORE}/services"), &service), (&format!("{CORE}/secrets"), &secret)]
    {
        assert_eq!(admin.post(path, body).await.code, 201);
    }
    let done = json!({"status": {"succeeded": 1}});
    assert_eq!(found(&admin, JOBS, "status.successful=0").await, 1);
    assert_eq!(admin.merge(&format!("{JOBS}/a/status"), &done).await.code, 200);
    assert_eq!(
        (found(&admin, JOBS, "status.successful=0").await, found(&admin, JOBS, "status.successful=1").await),
        (0, 1)
    );
    assert_eq!(found(&admin, &format!("{CORE}/services"), "spec.type=ExternalName").await, 1);
    assert_eq!(found(&admin, &format!("{CORE}/secrets"), "type!=x.io/t").await, 0);
    assert_eq!(found(&admin, "/api/v1/namespaces", "status.phase=Active").await, 4);
    let unknown = admin.get(&format!("{JOBS}?fieldSelector=spec.bad=1")).await;
    assert!(
        unknown.code == 400 && unknown.text.contains("field label not supported: spec.bad"),
        "{}",
        unknown.text
    );
    server.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn what_has_replicas_has_a_scale() {
    let server = TestServer::start().await;
    let admin = Rest::admin(&server);
    let template =
        json!({"metadata": {"labels": {"a": "b"}}, "spec": {"containers": [{"name": "c", "image": "i"}]}});
    let set = json!({"metadata": {"name": "a"}, "spec": {"selector": {"matchLabels": {"a": "b"}}, "template": template}});
    let controller = json!({"metadata": {"name": "a"}, "spec": {"template": template}});
    let controllers = format!("{CORE}/replicationcontrollers");
    for (path, body) in [(SETS, &set), (controllers.as_str(), &controller)] {
        assert_eq!(admin.post(path, body).await.code, 201);
        let scale = admin.get(&format!("{path}/a/scale")).await.json();
        assert_eq!(
            (&scale["spec"]["replicas"], &scale["status"]["selector"]),
            (&json!(1), &json!("a=b")),
            "{scale}"
        );
        let scaled = admin.merge(&format!("{path}/a/scale"), &json!({"spec": {"replicas": 3}})).await;
        assert_eq!(scaled.json()["spec"]["replicas"], 3, "{}", scaled.text);
        assert_eq!(admin.get(&format!("{path}/a")).await.json()["metadata"]["generation"], 2);
    }
    server.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn updates_need_a_revision_or_make_the_object_as_the_type_has_it() {
    let server = TestServer::start().await;
    let admin = Rest::admin(&server);
    let budget = json!({"metadata": {"name": "a"}, "spec": {"minAvailable": 1}});
    assert_eq!(admin.put(&format!("{BUDGETS}/a"), &budget).await.code, 404);
    assert_eq!(admin.post(BUDGETS, &budget).await.code, 201);
    let blind = admin.put(&format!("{BUDGETS}/a"), &budget).await;
    assert!(blind.code == 422 && blind.text.contains("must be specified for an update"), "{}", blind.text);
    let role = json!({"metadata": {"name": "system:a"}, "rules": []});
    assert_eq!(admin.put(&format!("{ROLES}/system:a"), &role).await.code, 201);
    assert_eq!(admin.put(&format!("{ROLES}/system:a"), &role).await.code, 200);
    server.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_job_leaves_its_pods_where_nobody_says_otherwise() {
    let server = TestServer::start().await;
    let admin = Rest::admin(&server);
    assert_eq!(admin.post(JOBS, &job()).await.code, 201);
    let marked = admin.delete(&format!("{JOBS}/a")).await.json();
    assert_eq!(marked["metadata"]["finalizers"], json!(["orphan"]), "{marked}");
    let gone = admin.delete(&format!("{JOBS}/a?propagationPolicy=Background")).await.json();
    assert_eq!(gone["status"], "Success", "{gone}");
    server.stop().await;
}
