//! What `top` shows, drawn into a buffer: no terminal, no server.

use jiff::{Timestamp, ToSpan as _};
use ratatui::Terminal;
use ratatui::backend::TestBackend;
use serde_json::{Value, json};
use strata_model::object::Object;
use strata_model::resource::ResourceType;
use strata_model::resource::builtin::{CONFIG_MAP, DEPLOYMENT, POD, REPLICA_SET};

use super::model::{Model, News, queues};
use super::screen;

fn at(seconds: i64) -> Timestamp {
    "2026-11-30T20:00:00Z".parse::<Timestamp>().unwrap() + seconds.seconds()
}

fn object(resource: &ResourceType, mut value: Value) -> Object {
    value["apiVersion"] = json!(resource.api_version());
    value["kind"] = json!(resource.kind);
    value["metadata"]["namespace"] = json!("n");
    value["metadata"]["creationTimestamp"] = json!("2026-11-30T20:00:00Z");
    Object::from_value(&value).unwrap()
}

fn owner(kind: &str) -> Value {
    json!([{"apiVersion": "apps/v1", "kind": kind, "name": "o", "uid": "u", "controller": true}])
}

fn pod(name: &str, ready: bool) -> Object {
    let ready = json!([{"type": "Ready", "status": if ready { "True" } else { "False" }, "reason": "ContainersNotReady",
        "message": "it starts", "lastTransitionTime": "2026-11-30T20:00:05Z"}]);
    let meta = json!({"name": name, "ownerReferences": owner("ReplicaSet"),
        "managedFields": [{"manager": "old", "time": "2026-11-30T19:00:00Z"}, {"manager": "node", "time": "2026-11-30T20:00:00Z"}]});
    object(&POD, json!({"metadata": meta, "status": {"phase": "Running", "conditions": ready}}))
}

fn model() -> Model {
    let mut model = Model::default();
    let replicas = json!({"replicas": 2, "readyReplicas": 2, "availableReplicas": 2});
    let deployment = json!({"metadata": {"name": "web"}, "spec": {"replicas": 2},
        "status": {"replicas": 2, "readyReplicas": 2, "availableReplicas": 2, "updatedReplicas": 2}});
    let set = json!({"metadata": {"name": "web-1", "ownerReferences": owner("Deployment")}, "spec": {"replicas": 2}, "status": replicas});
    let map = object(&CONFIG_MAP, json!({"metadata": {"name": "m"}}));
    for (resource, object) in [
        (&POD, pod("web-1-a", true)),
        (&POD, pod("web-1-b", false)),
        (&DEPLOYMENT, object(&DEPLOYMENT, deployment)),
        (&REPLICA_SET, object(&REPLICA_SET, set)),
        (&CONFIG_MAP, map),
    ] {
        model.apply(resource, &News::Initial(&object), at(10));
    }
    for resource in [&POD, &DEPLOYMENT, &REPLICA_SET, &CONFIG_MAP] {
        model.apply(resource, &News::Complete, at(10));
    }
    model
}

fn picture(model: &Model, (width, height): (u16, u16), now: Timestamp) -> String {
    let mut terminal = Terminal::new(TestBackend::new(width, height)).unwrap();
    terminal.draw(|frame| screen::draw(frame, model, "https://127.0.0.1:6443", now)).unwrap();
    let buffer = terminal.backend().buffer();
    let lines = buffer.content().chunks(usize::from(width));
    lines.map(|line| line.iter().map(|cell| cell.symbol()).collect::<String>() + "\n").collect()
}

#[test]
fn layers_stand_below_their_owners_and_what_says_nothing_is_no_layer() {
    let layers = model().layers();
    let shown: Vec<_> = layers.iter().map(|l| (l.resource.as_str(), l.depth, l.ready, l.total)).collect();
    assert_eq!(shown, [("deployments.apps", 0, 1, 1), ("replicasets.apps", 1, 1, 1), ("pods", 2, 1, 2)]);
}

#[test]
fn a_gap_is_told_with_its_time_and_cause_until_it_is_closed() {
    let mut model = model();
    let gaps = model.gaps(at(65));
    assert_eq!(gaps.len(), 1);
    assert_eq!((gaps[0].object.as_str(), gaps[0].seconds), ("pods/n/web-1-b", 60));
    assert_eq!(gaps[0].why, "ContainersNotReady: it starts");
    model.apply(&POD, &News::Applied(&pod("web-1-b", true), 7), at(66));
    assert!(model.gaps(at(66)).is_empty());
    let write = model.writes().next().unwrap();
    assert_eq!((write.what, write.by.as_str(), write.revision), ("changed", "node", 7));
    model.apply(&POD, &News::Deleted(&pod("web-1-b", true), 8), at(67));
    assert_eq!(model.writes().next().unwrap().what, "deleted");
    assert_eq!((model.layers()[2].total, model.revision), (1, 8));
}

#[test]
fn a_state_that_is_read_anew_forgets_what_is_gone() {
    let mut model = model();
    model.apply(&POD, &News::Restarted, at(20));
    model.apply(&POD, &News::Initial(&pod("web-1-a", true)), at(20));
    assert_eq!(model.layers()[2].total, 2, "until the new state is complete");
    model.apply(&POD, &News::Complete, at(20));
    assert_eq!(model.layers()[2].total, 1);
}

#[test]
fn what_controllers_say_is_read() {
    let shown = json!({"controllers": [{"name": "deployment", "leads": true, "depth": 3, "running": 1, "delayed": 2,
        "waitingForCache": 4, "oldestSeconds": 1.5, "keys": [{"state": "failed"}, {"state": "ready"}]}]});
    let metrics = "# TYPE x\nstrata_time_to_converge_seconds_sum{name=\"replicaset\"} 9\n\
        strata_time_to_converge_seconds_sum{name=\"deployment\"} 6.0\nstrata_time_to_converge_seconds_count{name=\"deployment\"} 4\n\
        controller_runtime_reconcile_total{controller=\"deployment\",result=\"noop\"} 11\n";
    let queues = queues(&shown, metrics);
    assert_eq!(queues[0].keys, [3, 1, 2, 4]);
    assert_eq!((queues[0].failed, queues[0].noops, queues[0].mean()), (1, 11, Some(1.5)));
    assert!(super::model::queues(&Value::Null, "").is_empty());
}

#[test]
fn a_picture_holds_all_of_it() {
    let mut model = model();
    model.apply(&POD, &News::Applied(&pod("web-1-c", false), 41), at(11));
    let shown =
        json!({"controllers": [{"name": "deployment", "leads": true}, {"name": "garbage", "leads": false}]});
    model.queues = queues(&shown, "");
    let picture = picture(&model, (140, 24), at(12));
    for part in [
        "https://127.0.0.1:6443  revision 41  0.1 writes/s  2 not as wished",
        "deployments.apps",
        "    pods",
        "1/3",
        "garbage (stands by)",
        "pods/n/web-1-b",
        "created pods/n/web-1-c",
        "q quit",
    ] {
        assert!(picture.contains(part), "{part:?} in\n{picture}");
    }
    model.trouble = "connection lost: refused".to_owned();
    assert!(self::picture(&model, (140, 24), at(12)).contains("connection lost: refused"));
}

#[test]
fn no_size_is_too_small() {
    let model = model();
    for width in [1, 5, 40, 300] {
        for height in [1, 2, 5, 60] {
            assert!(!picture(&model, (width, height), at(12)).is_empty());
        }
    }
}
