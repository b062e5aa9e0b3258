//! Types that are another form of stored objects: written in one, read and watched in the other.

use serde_json::json;

use crate::common::rest::Rest;
use crate::common::server::TestServer;

const V1: &str = "/apis/autoscaling/v1/namespaces/default/horizontalpodautoscalers";
const V2: &str = "/apis/autoscaling/v2/namespaces/default/horizontalpodautoscalers";
const CORE: &str = "/api/v1/namespaces/default/events";
const EVENTS: &str = "/apis/events.k8s.io/v1/namespaces/default/events";

const TABLE: (&str, &str) = ("Accept", "application/json;as=Table;g=meta.k8s.io;v=v1");
const APPLY: (&str, &str) = ("Content-Type", "application/apply-patch+yaml");

#[tokio::test(flavor = "multi_thread")]
async fn an_autoscaler_is_the_same_in_both_versions() {
    let server = TestServer::start().await;
    let admin = Rest::admin(&server);
    let old = json!({"apiVersion": "autoscaling/v1", "kind": "HorizontalPodAutoscaler", "metadata": {"name": "a"},
        "spec": {"maxReplicas": 5, "targetCPUUtilizationPercentage": 60,
            "scaleTargetRef": {"apiVersion": "apps/v1", "kind": "Deployment", "name": "web"}}});
    let mut lines = admin.watch(&format!("{V1}?watch=true")).await;
    let made = admin.post(V1, &old).await;
    assert_eq!((made.code, &made.json()["spec"]["minReplicas"]), (201, &json!(1)), "{}", made.text);
    assert_eq!(made.json()["apiVersion"], "autoscaling/v1");
    assert_eq!(made.json()["spec"]["targetCPUUtilizationPercentage"], 60);
    let new = admin.get(&format!("{V2}/a")).await.json();
    assert_eq!(new["spec"]["metrics"][0]["resource"]["target"]["averageUtilization"], 60);
    let event = lines.next().await.unwrap();
    assert_eq!((&event["type"], &event["object"]["apiVersion"]), (&json!("ADDED"), &json!("autoscaling/v1")));
    let patched =
        admin.merge(&format!("{V1}/a"), &json!({"spec": {"targetCPUUtilizationPercentage": 70}})).await;
    assert_eq!(patched.json()["spec"]["targetCPUUtilizationPercentage"], 70, "{}", patched.text);
    let listed = admin.get(V1).await.json();
    assert_eq!(
        (&listed["apiVersion"], &listed["items"][0]["spec"]["maxReplicas"]),
        (&json!("autoscaling/v1"), &json!(5))
    );
    let config = "{apiVersion: autoscaling/v1, kind: HorizontalPodAutoscaler, spec: {maxReplicas: 9}}";
    let path = format!("{V1}/a?fieldManager=m&force=true");
    let applied = admin.send("PATCH", &path, &[APPLY], config).await;
    assert_eq!((applied.code, &applied.json()["spec"]["maxReplicas"]), (200, &json!(9)), "{}", applied.text);
    let table = admin.send("GET", V1, &[TABLE], "").await.json();
    let cells = table["rows"][0]["cells"].as_array().unwrap()[1..5].to_vec();
    assert_eq!(json!(cells), json!(["Deployment/web", "cpu: <unknown>/70%", "1", "9"]));
    let refused = admin.merge(&format!("{V1}/a"), &json!({"spec": {"maxReplicas": 0}})).await.json();
    assert!(refused["message"].as_str().unwrap().contains("spec.maxReplicas: Invalid value: 0"), "{refused}");
    assert_eq!(admin.delete(&format!("{V1}/a")).await.json()["status"], "Success");
    assert_eq!(admin.get(&format!("{V2}/a")).await.code, 404);
    server.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_event_is_the_same_in_both_groups() {
    let server = TestServer::start().await;
    let admin = Rest::admin(&server);
    let event = json!({"metadata": {"name": "e"}, "eventTime": "2026-01-01T00:00:00.000000Z", "type": "Normal",
        "reason": "Made", "action": "Make", "note": "It was made.", "reportingController": "x.io/maker",
        "reportingInstance": "m-1", "regarding": {"kind": "Pod", "name": "p", "namespace": "default"}});
    let made = admin.post(EVENTS, &event).await;
    assert_eq!((made.code, &made.json()["regarding"]["name"]), (201, &json!("p")), "{}", made.text);
    let core = admin.get(&format!("{CORE}/e")).await.json();
    assert_eq!((&core["apiVersion"], &core["message"]), (&json!("v1"), &json!("It was made.")));
    assert_eq!(core["involvedObject"]["kind"], "Pod");
    assert_eq!(core["reportingComponent"], "x.io/maker");
    let found = |answer: crate::common::rest::Answer| answer.json()["items"].as_array().unwrap().len();
    assert_eq!(found(admin.get(&format!("{EVENTS}?fieldSelector=regarding.name=p")).await), 1);
    assert_eq!(found(admin.get(&format!("{CORE}?fieldSelector=involvedObject.name=q")).await), 0);
    let table = admin.send("GET", EVENTS, &[TABLE], "").await.json();
    assert_eq!(table["rows"][0]["cells"][3], "pod/p", "{table}");
    let bare = admin.post(EVENTS, &json!({"metadata": {"name": "f"}, "type": "Odd"})).await.json();
    for part in ["eventTime: Required value", "type: Invalid value", "reportingController: Required value"] {
        assert!(bare["message"].as_str().unwrap().contains(part), "{part} in {bare}");
    }
    let versions = admin.get("/apis/autoscaling").await.json();
    assert_eq!(versions["preferredVersion"]["version"], "v2");
    server.stop().await;
}
