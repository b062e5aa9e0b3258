//! Pods: what is checked of them, their priority, and the containers that are added to look at them.

use serde_json::{Value, json};

use crate::case::{Case, run};
use crate::common::rest::Rest;
use crate::common::server::TestServer;

const PODS: &str = "/api/v1/namespaces/default/pods";
const CLASSES: &str = "/apis/scheduling.k8s.io/v1/priorityclasses";

fn spec(spec: Value) -> Value {
    json!({"spec": spec})
}

fn container(more: Value) -> Value {
    let mut container = json!({"name": "c", "image": "i:1"});
    strata_model::merge::apply(&mut container, &more);
    spec(json!({"containers": [container]}))
}

fn minimal() -> Value {
    json!({"metadata": {"name": "a"}, "spec": {"containers": [{"name": "c", "image": "i:1"}]}})
}

fn volumes() -> Vec<(Value, &'static str)> {
    let volume = |source: Value| spec(json!({"volumes": [source]}));
    vec![
        (
            volume(json!({"name": "v", "hostPath": {"path": "/a/../b"}})),
            "spec.volumes[0].hostPath.path: Invalid value: \"/a/../b\": must not contain '..'",
        ),
        (
            volume(json!({"name": "v", "hostPath": {"path": "/a", "type": "Odd"}})),
            "spec.volumes[0].hostPath.type: Unsupported value",
        ),
        (volume(json!({"name": "v", "secret": {}})), "spec.volumes[0].secret.secretName: Required value"),
        (
            volume(json!({"name": "v", "persistentVolumeClaim": {"claimName": ""}})),
            "spec.volumes[0].persistentVolumeClaim.claimName: Required value",
        ),
        (
            volume(json!({"name": "v", "emptyDir": {}, "hostPath": {"path": "/"}})),
            "may not specify more than 1 volume type",
        ),
        (
            volume(json!({"name": "v", "configMap": {"name": "m", "items": [{"key": "k", "path": "/x"}]}})),
            "must be a relative path",
        ),
        (
            volume(json!({"name": "v", "configMap": {"name": "m", "defaultMode": 512}})),
            "must be a number between 0 and 0777 (octal), both inclusive",
        ),
        (volume(json!({"name": "v", "projected": {"sources": [{}]}})), "must specify a projected source"),
    ]
}

fn places() -> Vec<(Value, &'static str)> {
    let node = |term: Value| {
        let required = json!({"nodeSelectorTerms": [{"matchExpressions": [term]}]});
        spec(
            json!({"affinity": {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": required}}}),
        )
    };
    vec![
        (node(json!({"key": "k", "operator": "In"})), "must be specified when `operator` is 'In' or 'NotIn'"),
        (node(json!({"key": "k", "operator": "Odd"})), "not a valid selector operator"),
        (
            spec(
                json!({"affinity": {"podAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [{"topologyKey": ""}]}}}),
            ),
            "can not be empty",
        ),
        (
            spec(
                json!({"topologySpreadConstraints": [{"maxSkew": 0, "topologyKey": "k", "whenUnsatisfiable": "DoNotSchedule"}]}),
            ),
            "must be greater than zero",
        ),
        (
            spec(json!({"tolerations": [{"key": "k", "operator": "Exists", "value": "v"}]})),
            "value must be empty when `operator` is 'Exists'",
        ),
        (
            spec(json!({"tolerations": [{"key": "k", "tolerationSeconds": 5}]})),
            "effect must be 'NoExecute' when `tolerationSeconds` is set",
        ),
        (spec(json!({"hostname": "A"})), "spec.hostname: Invalid value: \"A\""),
        (
            spec(json!({"dnsPolicy": "None"})),
            "must provide at least one DNS nameserver when `dnsPolicy` is None",
        ),
    ]
}

fn pod() -> Case {
    let mut refused = volumes();
    refused.extend(places());
    refused.extend([
        (container(json!({"ports": [{"containerPort": 80, "hostPort": 81}, {"containerPort": 82, "hostPort": 81}]})), "ports[1].hostPort: Duplicate value: \"TCP//81\""),
        (container(json!({"livenessProbe": {"httpGet": {"port": 0}}})), "must be between 1 and 65535, inclusive"),
        (container(json!({"livenessProbe": {"tcpSocket": {"port": 1}, "exec": {"command": ["x"]}}})), "may not specify more than 1 handler type"),
        (container(json!({"env": [{"name": "E", "valueFrom": {}}]})), "must specify one of: `fieldRef`"),
        (container(json!({"restartPolicy": "Always"})), "may not be set for non-init containers"),
        (container(json!({"securityContext": {"runAsUser": -1}})), "must be between 0 and 2147483647, inclusive"),
        (container(json!({"resources": {"requests": {"cpu": "2"}, "limits": {"cpu": "1"}}})), "must be less than or equal to cpu limit of 1"),
        (spec(json!({"initContainers": [{"name": "i", "image": "i", "readinessProbe": {"exec": {"command": ["x"]}}}]})), "may not be set for init containers without restartPolicy=Always"),
        (spec(json!({"ephemeralContainers": [{"name": "e", "image": "i"}]})), "spec.ephemeralContainers: Forbidden: cannot be set on create"),
        (spec(json!({"priorityClassName": "missing"})), "no PriorityClass with name missing was found"),
    ]);
    Case {
        path: PODS,
        minimal: minimal(),
        filled: json!({"spec": {"priority": 0, "preemptionPolicy": "PreemptLowerPriority", "enableServiceLinks": true,
            "restartPolicy": "Always"}, "status": {"phase": "Pending", "qosClass": "BestEffort"}}),
        refused,
        fixed: vec![
            (spec(json!({"nodeName": "n"})), "pod updates may not change fields other than"),
            (spec(json!({"priority": 5})), "pod updates may not change fields other than"),
        ],
        status: Some(json!({"phase": "Running"})),
        cells: json!(["a", "0/1", "Running", "0", "*", "<none>", "<none>", "<none>", "<none>"]),
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn pods_are_filled_and_checked() {
    run(vec![pod()]).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn pods_get_the_priority_of_their_class() {
    let server = TestServer::start().await;
    let admin = Rest::admin(&server);
    let mut critical = minimal();
    critical["spec"]["priorityClassName"] = json!("system-node-critical");
    let made = admin.post(PODS, &critical).await.json();
    assert_eq!(made["spec"]["priority"], 2_000_001_000, "{made}");
    let class =
        json!({"metadata": {"name": "low"}, "value": -5, "globalDefault": true, "preemptionPolicy": "Never"});
    assert_eq!(admin.post(CLASSES, &class).await.code, 201);
    let mut plain = minimal();
    plain["metadata"]["name"] = json!("b");
    let made = admin.post(PODS, &plain).await.json();
    assert_eq!((&made["spec"]["priority"], &made["spec"]["priorityClassName"]), (&json!(-5), &json!("low")));
    assert_eq!(made["spec"]["preemptionPolicy"], "Never");
    plain["metadata"]["name"] = json!("d");
    plain["spec"]["priority"] = json!(7);
    let refused = admin.post(PODS, &plain).await;
    assert!(
        refused.code == 403
            && refused.text.contains("the integer value of priority (7) must not be provided"),
        "{}",
        refused.text
    );
    let kept = admin.delete(&format!("{CLASSES}/system-node-critical")).await;
    assert!(kept.code == 403 && kept.text.contains("this priorityclass may not be deleted"), "{}", kept.text);
    server.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn gates_are_taken_away_and_never_added() {
    let server = TestServer::start().await;
    let admin = Rest::admin(&server);
    let mut gated = minimal();
    gated["spec"]["schedulingGates"] = json!([{"name": "x.io/a"}, {"name": "x.io/b"}]);
    assert_eq!(admin.post(PODS, &gated).await.code, 201);
    let path = format!("{PODS}/a");
    let gates = |names: &[&str]| {
        spec(json!({"schedulingGates": names.iter().map(|n| json!({"name": n})).collect::<Vec<_>>()}))
    };
    assert_eq!(admin.merge(&path, &gates(&["x.io/b"])).await.code, 200);
    assert_eq!(admin.merge(&path, &gates(&["x.io/b", "x.io/c"])).await.code, 422);
    server.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn containers_are_added_to_look_at_a_pod_and_stay() {
    let server = TestServer::start().await;
    let admin = Rest::admin(&server);
    assert_eq!(admin.post(PODS, &minimal()).await.code, 201);
    let path = format!("{PODS}/a/ephemeralcontainers");
    let strategic = ("Content-Type", "application/strategic-merge-patch+json");
    let add = |more: Value| {
        let mut container = json!({"name": "look", "image": "busybox:1", "targetContainerName": "c"});
        strata_model::merge::apply(&mut container, &more);
        json!({"spec": {"ephemeralContainers": [container], "nodeName": "ignored"}}).to_string()
    };
    let refused =
        admin.send("PATCH", &path, &[strategic], add(json!({"ports": [{"containerPort": 1}]}))).await;
    assert!(refused.text.contains("cannot be set for an Ephemeral Container"), "{}", refused.text);
    let refused = admin.send("PATCH", &path, &[strategic], add(json!({"targetContainerName": "x"}))).await;
    assert!(refused.text.contains("targetContainerName: Not found: "), "{}", refused.text);
    let added = admin.send("PATCH", &path, &[strategic], add(json!({}))).await;
    let container = &added.json()["spec"]["ephemeralContainers"][0];
    assert_eq!((added.code, &container["imagePullPolicy"]), (200, &json!("IfNotPresent")), "{}", added.text);
    assert!(added.json()["spec"].get("nodeName").is_none(), "nothing else changes");
    let changed = admin.send("PATCH", &path, &[strategic], add(json!({"image": "other"}))).await;
    assert!(
        changed.text.contains("existing ephemeral containers \\\"look\\\" may not be changed"),
        "{}",
        changed.text
    );
    let whole = admin.merge(&format!("{PODS}/a"), &json!({"spec": {"ephemeralContainers": []}})).await;
    assert!(whole.code == 422 && whole.text.contains("pod updates may not change"), "{}", whole.text);
    server.stop().await;
}
