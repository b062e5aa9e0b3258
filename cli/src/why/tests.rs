//! A table of worlds, each with the reason a person should read first; and the tree as it is drawn.

use serde_json::json;

use super::*;
use crate::output::style::Painter;

const NOW: &str = "2026-01-01T01:00:00Z";

fn deployment(status: Value) -> Value {
    json!({"apiVersion": "apps/v1", "kind": "Deployment",
        "metadata": {"name": "web", "namespace": "d", "uid": "dep", "generation": 2},
        "spec": {"replicas": 1, "strategy": {}, "template": {}}, "status": status})
}

fn replica_set(status: Value) -> Value {
    json!({"apiVersion": "apps/v1", "kind": "ReplicaSet",
        "metadata": {"name": "web-1", "namespace": "d", "uid": "rs", "generation": 1, "ownerReferences": [{"uid": "dep"}]},
        "spec": {"replicas": 1, "template": {}}, "status": status})
}

fn pod(node: &str, status: Value) -> Value {
    json!({"apiVersion": "v1", "kind": "Pod",
        "metadata": {"name": "web-1-a", "namespace": "d", "uid": "pod", "ownerReferences": [{"uid": "rs"}]},
        "spec": {"nodeName": node, "restartPolicy": "Always", "containers": [{"name": "main", "readinessProbe": {}}]},
        "status": status})
}

fn node(ready: &str) -> Value {
    json!({"metadata": {"name": "n1"}, "status": {"conditions": [{"type": "Ready", "status": ready,
        "reason": "NodeStatusUnknown", "message": "the agent is silent"}]}})
}

fn lease(name: &str, renewed: &str) -> Value {
    json!({"metadata": {"name": name}, "spec": {"holderIdentity": "x", "renewTime": renewed, "leaseDurationSeconds": 15}})
}

fn leases() -> Vec<Value> {
    ["deployment", "replicaset", "scheduler", "garbage", "namespace"]
        .map(|name| lease(name, "2026-01-01T00:59:55Z"))
        .into()
}

const GOING: &str = r#"{"observedGeneration": 2, "replicas": 1, "updatedReplicas": 1}"#;

fn going() -> Value {
    serde_json::from_str(GOING).unwrap()
}

fn running(ready: bool) -> Value {
    json!({"phase": "Running", "conditions": [{"type": "Ready", "status": if ready { "True" } else { "False" }}],
        "containerStatuses": [{"name": "main", "ready": ready, "restartCount": 0,
            "state": {"running": {"startedAt": "2026-01-01T00:58:00Z"}}}]})
}

fn waiting(reason: &str, last: Value) -> Value {
    json!({"phase": "Running", "containerStatuses": [{"name": "main", "ready": false, "restartCount": 3,
        "state": {"waiting": {"reason": reason}}, "lastState": last}]})
}

fn explained(root: &Value, facts: &Facts) -> Line {
    explain(root, facts, NOW.parse().unwrap())
}

fn facts(objects: Vec<Value>) -> Facts {
    Facts { objects, events: Vec::new(), nodes: Some(vec![node("True")]), leases: Some(leases()) }
}

#[test]
fn a_converged_tree_has_no_reason() {
    let status =
        json!({"observedGeneration": 2, "replicas": 1, "updatedReplicas": 1, "availableReplicas": 1});
    let set = replica_set(json!({"observedGeneration": 1, "replicas": 1, "availableReplicas": 1}));
    let mut retired = replica_set(json!({"observedGeneration": 1}));
    retired["metadata"]["uid"] = json!("old");
    retired["spec"]["replicas"] = json!(0);
    let line = explained(&deployment(status), &facts(vec![set, retired, pod("n1", running(true))]));
    assert!(line.settled(), "{line:#?}");
    assert_eq!(line.first_reason(), None);
    assert_eq!(line.children.len(), 1);
    assert_eq!(
        render::tree(&[line], Painter::PLAIN, None),
        "  OBJECT                    WANTED              ACTUAL\n\
         ✓ Deployment/web            1 pod               1 pod, 1 available\n\
         └─ ✓ ReplicaSet/web-1       1 pod               1 pod, 1 available\n\
         \x20  └─ ✓ Pod/web-1-a         running and ready   running and ready on n1\n\
         \x20     └─ ✓ container main   running and ready   running for 2m\n"
    );
}

#[test]
fn pods_say_what_they_wait_for() {
    let ended =
        json!({"terminated": {"exitCode": 7, "reason": "Error", "finishedAt": "2026-01-01T00:59:30Z"}});
    let unschedulable = json!({"phase": "Pending", "conditions": [{"type": "PodScheduled", "status": "False",
        "reason": "Unschedulable", "message": "0/1 nodes are available"}]});
    for (case, pod, nodes, reason) in [
        ("unschedulable", pod("", unschedulable), "True", "Unschedulable: 0/1 nodes are available"),
        (
            "not yet scheduled",
            pod("", json!({})),
            "True",
            "NotScheduled: waits for the scheduler to find a node",
        ),
        (
            "node silent",
            pod("n1", json!({"phase": "Pending"})),
            "Unknown",
            "NodeNotReady: node n1: the agent is silent",
        ),
        ("no such node", pod("n2", json!({})), "True", "NodeLost: there is no node n2"),
        (
            "not taken",
            pod("n1", json!({"phase": "Pending"})),
            "True",
            "NotTaken: the agent of node n1 has not taken it yet",
        ),
        (
            "crashing",
            pod("n1", waiting("CrashLoopBackOff", ended)),
            "True",
            "CrashLoopBackOff: container main: it ended 30s ago: exit code 7; `strata logs` shows what it wrote",
        ),
        ("image", pod("n1", waiting("ErrImagePull", json!({}))), "True", "ErrImagePull: container main"),
        (
            "unready",
            pod("n1", running(false)),
            "True",
            "NotReady: container main: its probe has not succeeded yet",
        ),
    ] {
        let facts = Facts { nodes: Some(vec![node(nodes)]), ..facts(vec![]) };
        let line = explained(&pod, &facts);
        assert!(!line.settled(), "{case}");
        assert_eq!(line.reason.map(|r| r.to_string()).as_deref(), Some(reason), "{case}");
    }
}

#[test]
fn a_deployment_names_the_nearest_cause() {
    let set = || replica_set(json!({"observedGeneration": 1, "replicas": 1}));
    let behind = json!({"observedGeneration": 1, "replicas": 1});
    let failure = json!({"observedGeneration": 2, "conditions": [{"type": "ReplicaFailure", "status": "True",
        "reason": "FailedCreate", "message": "quota"}]});
    for (case, root, objects, reason) in [
        (
            "from a pod below",
            deployment(going()),
            vec![set(), pod("n1", waiting("ErrImagePull", json!({})))],
            "ErrImagePull: Pod web-1-a: container main",
        ),
        (
            "not seen",
            deployment(behind),
            vec![],
            "NotObserved: its controller has not seen generation 2 (it saw generation 1)",
        ),
        ("cannot create", deployment(failure), vec![], "FailedCreate: quota"),
        (
            "under way",
            deployment(json!({"observedGeneration": 2})),
            vec![],
            "Progressing: 0 of 1 pods are there",
        ),
    ] {
        let line = explained(&root, &facts(objects));
        assert!(!line.converged, "{case}");
        assert_eq!(line.reason.map(|r| r.to_string()).as_deref(), Some(reason), "{case}");
    }
}

#[test]
fn a_controller_that_does_not_run_is_the_reason() {
    let stale = Facts { leases: Some(vec![lease("deployment", "2026-01-01T00:58:00Z")]), ..facts(vec![]) };
    let line = explained(&deployment(json!({"observedGeneration": 1})), &stale);
    let reason = line.reason.unwrap();
    assert_eq!(reason.word, "ControllerNotRunning");
    assert!(reason.message.contains("last renewed its lease 2m ago"), "{reason}");
    let none = Facts { leases: Some(vec![]), ..facts(vec![]) };
    let reason = explained(&pod("", json!({})), &none).reason.unwrap();
    assert!(reason.message.contains("`strata controller scheduler`"), "{reason}");
    let unknown = Facts { leases: None, ..facts(vec![]) };
    assert_eq!(explained(&pod("", json!({})), &unknown).reason.unwrap().word, "NotScheduled");
}

#[test]
fn what_is_on_its_way_out_says_what_holds_it() {
    let mut config =
        json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a", "namespace": "d"}});
    assert!(explained(&config, &facts(vec![])).settled());
    config["metadata"]["deletionTimestamp"] = json!("2026-01-01T00:50:00Z");
    config["metadata"]["finalizers"] = json!(["example.com/hold"]);
    let line = explained(&config, &facts(vec![]));
    assert_eq!((line.desired.as_str(), line.actual.as_str()), ("gone", "Terminating"));
    assert_eq!(
        line.reason.unwrap().to_string(),
        "Finalizers: deleted 10m ago; waits for its finalizers: example.com/hold"
    );
    let mut ending = pod("n1", running(true));
    ending["metadata"]["deletionTimestamp"] = json!("2026-01-01T01:00:20Z");
    let reason = explained(&ending, &facts(vec![])).reason.unwrap().to_string();
    assert_eq!(reason, "Terminating: its processes have 20s left to end by themselves");
}

#[test]
fn many_children_are_counted() {
    let mut objects = vec![];
    for n in 0..40 {
        let mut one = pod("n1", running(n != 39));
        one["metadata"]["name"] = json!(format!("p{n:02}"));
        objects.push(one);
    }
    let text = render::tree(
        &[explained(&replica_set(json!({"observedGeneration": 1})), &facts(objects))],
        Painter::PLAIN,
        None,
    );
    assert!(text.contains("Pod/p39"), "{text}");
    assert!(text.contains("└─ and 34 more, all as wanted"), "{text}");
}

/// A deployment whose pod's image cannot be had, as a tree.
fn stuck() -> Line {
    let said = "image \"x\" cannot be run here: use \"host\", or start the node with `--runtime simulated`";
    let line = |kind: &str, name: &str, message: String, children: Vec<Line>| Line {
        kind: kind.to_owned(),
        name: name.to_owned(),
        desired: "1 pod".to_owned(),
        actual: "no pods".to_owned(),
        reason: Some(Reason::new("ErrImagePull", message)),
        children,
        ..Line::default()
    };
    let container = line("container", "x", said.to_owned(), vec![]);
    let pod = line("Pod", "web-1-a", format!("container x: {said}"), vec![container]);
    line("ReplicaSet", "web-1", format!("Pod web-1-a: container x: {said}"), vec![pod])
}

#[test]
fn a_cause_is_told_once_and_above_it_which_way_it_lies() {
    let text = render::tree(&[stuck()], Painter::PLAIN, None);
    let why: Vec<&str> =
        text.lines().filter_map(|l| l.split_once("ErrImagePull")).map(|(_, why)| why).collect();
    assert_eq!(why[..2], [": Pod web-1-a", ": container x"], "{text}");
    assert!(why[2].starts_with(": image") && why[2].ends_with("`--runtime simulated`"), "{text}");
    assert_eq!(text.lines().count(), 4, "{text}");
}

#[test]
fn reasons_are_folded_into_what_room_there_is() {
    for width in [50, 72, 100, 120] {
        let text = render::tree(&[stuck()], Painter::PLAIN, Some(width));
        let widest = text.lines().map(|l| l.chars().count()).max().unwrap_or(0);
        assert!(widest <= width.max(60), "{width}: {widest}\n{text}");
        let words: Vec<&str> = text.split_whitespace().collect();
        assert!(words.join(" ").contains("`--runtime simulated`"), "{width}\n{text}");
        assert!(words.contains(&"ErrImagePull:"), "{text}");
        assert_eq!(words.contains(&"WHY"), width >= 100, "{width}\n{text}");
    }
}

#[test]
fn work_is_as_wished_when_it_is_done_or_rests_as_told() {
    let job = |spec: Value, status: Value| {
        let mut job = json!({"apiVersion": "batch/v1", "kind": "Job",
            "metadata": {"name": "w", "namespace": "d", "uid": "job", "generation": 1},
            "spec": {"parallelism": 2, "completions": 3, "template": {}}, "status": status});
        strata_model::merge::apply(&mut job["spec"], &spec);
        job
    };
    let end = |type_: &str| json!([{"type": type_, "status": "True", "reason": "BackoffLimitExceeded", "message": "too many failed"}]);
    let mut failed = pod("n1", json!({"phase": "Failed"}));
    failed["metadata"]["ownerReferences"] = json!([{"uid": "job"}]);
    failed["spec"]["restartPolicy"] = json!("Never");
    let mut facts = facts(vec![failed]);
    facts.leases.as_mut().unwrap().push(lease("job", "2026-01-01T00:59:55Z"));
    let explain = |job: &Value| explained(job, &facts);

    let done = explain(&job(
        json!({}),
        json!({"succeeded": 3, "failed": 1, "ready": 0, "conditions": end("Complete")}),
    ));
    assert!(done.settled(), "{done:#?}");
    assert_eq!((done.desired.as_str(), done.actual.as_str()), ("3 succeeded", "3 succeeded, 1 failed"));
    assert!(explain(&job(json!({"suspend": true}), json!({"ready": 0}))).converged);

    let word = |line: &Line| line.reason.as_ref().map(|r| r.word.clone()).unwrap_or_default();
    let lost = explain(&job(json!({}), json!({"failed": 7, "ready": 0, "conditions": end("Failed")})));
    assert_eq!((lost.converged, word(&lost).as_str()), (false, "BackoffLimitExceeded"));
    let empty = Facts { objects: Vec::new(), ..facts.clone() };
    let runs = explained(&job(json!({}), json!({"succeeded": 1, "active": 2, "ready": 2})), &empty);
    assert_eq!((runs.converged, word(&runs).as_str()), (false, "Progressing"));
    assert_eq!(word(&explained(&job(json!({}), json!({})), &empty)), "NotObserved");
}
