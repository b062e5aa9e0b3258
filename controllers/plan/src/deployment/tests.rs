//! Scenarios of Deployments, with the ReplicaSet controller beside and a node that starts what is not called `bad`.
//! All run with whole plans and with plans cut after every write; each turn is checked against the promises.

mod rollback;
mod scaling;

use serde_json::Value;
use strata_model::object::ObjectKey;
use strata_model::resource::builtin::{DEPLOYMENT, POD, REPLICA_SET};

use super::*;
use crate::pods::{self, PodRef};
use crate::replicaset::ReplicaSets;
use crate::testing::{all, at, key, make_ready, template as pod_template, value};
use crate::world::World;

/// A world with its clock, run turn by turn.
struct Stage {
    world: World,
    clock: i64,
    /// Most writes of one plan a turn.
    limit: usize,
    /// Bounds of all turns: least available, most pods asked for.
    bounds: (i32, i32),
    /// How many pods become ready a turn.
    pace: usize,
}

impl Stage {
    fn new(limit: usize, replicas: i32, more: Value) -> Self {
        let mut deployment = json!({"metadata": {"name": "web", "namespace": "n"},
            "spec": {"replicas": replicas, "selector": {"matchLabels": {"app": "web"}},
                "template": pod_template("web", "i:1"), "progressDeadlineSeconds": 600,
                "revisionHistoryLimit": 10, "strategy": {"type": "RollingUpdate",
                    "rollingUpdate": {"maxSurge": "25%", "maxUnavailable": "25%"}}}});
        strata_model::merge::apply(&mut deployment, &more);
        let mut world = World::new();
        world.create(&DEPLOYMENT, deployment, at(0)).unwrap();
        Self { world, clock: 0, limit, bounds: (0, i32::MAX), pace: usize::MAX }
    }

    fn patch(&mut self, patch: Value) -> &mut Self {
        self.world.patch(&DEPLOYMENT, &key("web"), &patch).unwrap();
        self
    }

    fn image(&mut self, image: &str) -> &mut Self {
        self.patch(json!({"spec": {"template": pod_template("web", image)}}))
    }

    /// What a node would do in a turn.
    fn node(&mut self) -> usize {
        let mut moved = 0;
        for object in all(&self.world, &POD) {
            let pod = PodRef::new(object).unwrap();
            let bad = pod.object().to_value().unwrap()["spec"]["containers"][0]["image"] == "bad";
            if pod.object().meta().is_deleting() {
                self.world.vanish(&POD, &pod.object().key());
            } else if pods::ready_since(&pod).is_none() && !bad && moved < self.pace {
                make_ready(&mut self.world, &pod.object().key(), at(self.clock));
            } else {
                continue;
            }
            moved += 1;
        }
        moved
    }

    fn check(&self) {
        let available: i32 = self.sets().iter().map(available_of).sum();
        let asked: i32 = self.sets().iter().map(asked_of).sum();
        assert!(available >= self.bounds.0, "only {available} available: {:#?}", self.sets());
        assert!(asked <= self.bounds.1, "{asked} asked for: {:#?}", self.sets());
    }

    /// One second: every controller and the node take a turn. Answers whether anything moved.
    fn turn(&mut self) -> bool {
        self.clock += 1;
        let told = self.world.told.len();
        let (a, _) = self.world.turn(&Deployments, at(self.clock), self.limit);
        self.check();
        let (b, _) = self.world.turn(&ReplicaSets, at(self.clock), self.limit);
        self.check();
        a + b + self.node() > 0 || self.world.told.len() > told
    }

    fn turns(&mut self, n: usize) {
        for _ in 0..n {
            self.turn();
        }
    }

    fn settle(&mut self) -> &mut Self {
        for _ in 0..400 {
            if !self.turn() {
                return self;
            }
        }
        panic!("does not settle: {:#?}", self.deployment());
    }

    fn deployment(&self) -> Value {
        value(&self.world, &DEPLOYMENT, &key("web"))
    }

    fn status(&self) -> Value {
        let mut status = self.deployment()["status"].take();
        status["conditions"] = Value::Null;
        status
    }

    fn condition(&self, type_: &str) -> (String, String, String) {
        let deployment = self.deployment();
        let list = deployment["status"]["conditions"].as_array().unwrap();
        let found = list.iter().find(|c| c["type"] == type_).unwrap();
        let text = |field: &str| found[field].as_str().unwrap().to_owned();
        (text("status"), text("reason"), text("message"))
    }

    fn reason(&self) -> String {
        self.condition("Progressing").1
    }

    /// All sets as JSON, oldest revision first.
    fn sets(&self) -> Vec<Value> {
        let mut sets: Vec<Value> =
            all(&self.world, &REPLICA_SET).iter().map(|s| s.to_value().unwrap()).collect();
        sets.sort_by_key(|s| {
            s["metadata"]["annotations"][REVISION].as_str().and_then(|r| r.parse::<i64>().ok())
        });
        sets
    }

    /// Image and size of all sets, oldest revision first.
    fn sizes(&self) -> Vec<(String, i32)> {
        let image =
            |s: &Value| s["spec"]["template"]["spec"]["containers"][0]["image"].as_str().unwrap().to_owned();
        self.sets().iter().map(|s| (image(s), asked_of(s))).collect()
    }
}

fn asked_of(set: &Value) -> i32 {
    i32::try_from(set["spec"]["replicas"].as_i64().unwrap()).unwrap()
}

fn available_of(set: &Value) -> i32 {
    i32::try_from(set["status"]["availableReplicas"].as_i64().unwrap_or(0)).unwrap().min(asked_of(set))
}

fn sizes(list: &[(&str, i32)]) -> Vec<(String, i32)> {
    list.iter().map(|(image, n)| ((*image).to_owned(), *n)).collect()
}

/// Runs a scenario with whole plans and with cut ones.
fn staged(replicas: i32, more: Value, scenario: impl Fn(&mut Stage)) {
    for limit in [usize::MAX, 1] {
        scenario(&mut Stage::new(limit, replicas, more.clone()));
    }
}

#[test]
fn a_new_deployment_gets_its_set() {
    staged(3, json!({"metadata": {"annotations": {"kubernetes.io/change-cause": "first"}}}), |stage| {
        stage.settle();
        let set = &stage.sets()[0];
        let hash = set["metadata"]["labels"][template::HASH_LABEL].as_str().unwrap();
        assert_eq!(set["metadata"]["name"], format!("web-{hash}"));
        assert_eq!(set["spec"]["selector"]["matchLabels"], json!({"app": "web", "pod-template-hash": hash}));
        assert_eq!(
            set["spec"]["template"]["metadata"]["labels"],
            json!({"app": "web", "pod-template-hash": hash})
        );
        assert_eq!(
            set["metadata"]["annotations"],
            json!({"kubernetes.io/change-cause": "first",
            REVISION: "1", DESIRED: "3", MAX: "4"})
        );
        assert_eq!(set["metadata"]["ownerReferences"][0]["controller"], true);
        assert_eq!(stage.deployment()["metadata"]["annotations"][REVISION], "1");
        assert_eq!(
            stage.status(),
            json!({"observedGeneration": 1, "replicas": 3, "updatedReplicas": 3,
            "readyReplicas": 3, "availableReplicas": 3, "conditions": null})
        );
        assert_eq!(stage.condition("Available").1, "MinimumReplicasAvailable");
        assert_eq!(stage.condition("Progressing").1, progress::AVAILABLE);
        let name = set["metadata"]["name"].as_str().unwrap();
        assert_eq!(
            stage.condition("Progressing").2,
            format!("ReplicaSet {name:?} has successfully progressed.")
        );
        if stage.limit > 1 {
            let told = stage.world.told.iter().find(|t| t.reason == "ScalingReplicaSet").unwrap();
            assert_eq!(told.message, format!("Scaled up replica set {name} from 0 to 3"));
        }
    });
}

#[test]
fn conditions_tell_the_phases_of_a_rollout() {
    let mut stage = Stage::new(usize::MAX, 2, json!({}));
    stage.pace = 1;
    let mut reasons = Vec::new();
    for _ in 0..30 {
        let moved = stage.turn();
        if stage.deployment()["status"]["conditions"].is_array() && reasons.last() != Some(&stage.reason()) {
            reasons.push(stage.reason());
        }
        if !moved {
            break;
        }
    }
    assert_eq!(reasons, ["NewReplicaSetCreated", "ReplicaSetUpdated", "NewReplicaSetAvailable"]);
}

#[test]
fn a_rolling_update_keeps_its_bounds_and_ends() {
    for (pace, bounds, strategy) in [
        (1, (8, 13), json!({"maxSurge": "25%", "maxUnavailable": "25%"})),
        (usize::MAX, (10, 11), json!({"maxSurge": 1, "maxUnavailable": 0})),
        (2, (7, 10), json!({"maxSurge": 0, "maxUnavailable": 3})),
        (usize::MAX, (0, 20), json!({"maxSurge": "100%", "maxUnavailable": "100%"})),
    ] {
        staged(10, json!({"spec": {"strategy": {"rollingUpdate": strategy}}}), |stage| {
            stage.settle();
            (stage.bounds, stage.pace) = (bounds, pace);
            stage.image("i:2").settle();
            assert_eq!(stage.sizes(), sizes(&[("i:1", 0), ("i:2", 10)]));
            assert_eq!(stage.deployment()["metadata"]["annotations"][REVISION], "2");
            // Turned round half-way, and again.
            stage.image("i:3");
            stage.turns(3);
            stage.image("i:4");
            stage.turns(2);
            stage.image("i:3").settle();
            let active: Vec<_> = stage.sizes().into_iter().filter(|(_, n)| *n > 0).collect();
            assert_eq!(active, sizes(&[("i:3", 10)]));
        });
    }
}

#[test]
fn the_first_step_of_ten_is_three_up_and_two_down() {
    let mut stage = Stage::new(usize::MAX, 10, json!({}));
    stage.settle().image("i:2");
    stage.world.turn(&Deployments, at(100), usize::MAX);
    assert_eq!(stage.sizes(), sizes(&[("i:1", 8), ("i:2", 3)]));
    let told: Vec<&str> = stage.world.told.iter().rev().take(2).map(|t| t.message.as_str()).collect();
    assert!(told[0].ends_with("from 10 to 8") && told[0].starts_with("Scaled down replica set web-"));
    assert!(told[1].ends_with("from 0 to 3") && told[1].starts_with("Scaled up replica set web-"));
}

#[test]
fn a_broken_template_stops_within_bounds_times_out_and_can_be_undone() {
    staged(4, json!({}), |stage| {
        stage.settle();
        stage.bounds = (3, 5);
        stage.image("bad").settle();
        assert_eq!(stage.sizes(), sizes(&[("i:1", 3), ("bad", 2)]));
        assert!(matches!(stage.reason().as_str(), "ReplicaSetUpdated" | "NewReplicaSetCreated"));
        stage.clock += 601;
        stage.settle();
        let bad = stage.sets()[1]["metadata"]["name"].clone();
        let said = stage.condition("Progressing");
        assert_eq!((said.0.as_str(), said.1.as_str()), ("False", progress::TIMED_OUT));
        assert_eq!(said.2, format!("ReplicaSet {bad} has timed out progressing."));
        stage.image("i:1");
        let mut reasons = Vec::new();
        while stage.turn() {
            reasons.push(stage.reason());
        }
        // With plans cut after every write, the rollout may be over before its phases are written.
        assert!(stage.limit == 1 || reasons.iter().any(|r| r == "FoundNewReplicaSet"), "{reasons:?}");
        assert_eq!(stage.sizes(), sizes(&[("bad", 0), ("i:1", 4)]));
        let set = &stage.sets()[1];
        assert_eq!(set["metadata"]["annotations"][REVISION], "3");
        assert_eq!(set["metadata"]["annotations"][REVISION_HISTORY], "1");
        assert_eq!(stage.condition("Progressing").1, progress::AVAILABLE);
    });
}

#[test]
fn the_deadline_is_looked_at_in_time() {
    let mut stage = Stage::new(usize::MAX, 1, json!({"spec": {"template": pod_template("web", "bad")}}));
    stage.settle();
    let plan = stage.world.plan(&Deployments, &Key::new(&DEPLOYMENT, key("web")), at(stage.clock));
    assert!(matches!(plan.next, crate::controller::Next::At(when) if when > at(600) && when < at(610)));
}

#[test]
fn recreate_waits_until_the_last_old_pod_is_gone() {
    let recreate = json!({"spec": {"strategy": {"type": "Recreate", "rollingUpdate": null}}});
    staged(3, recreate, |stage| {
        stage.settle().image("i:2");
        let last = all(&stage.world, &POD)[0].key();
        let held = json!({"metadata": {"finalizers": ["x/hold"]}});
        stage.world.patch(&POD, &last, &held).unwrap();
        for _ in 0..20 {
            stage.clock += 1;
            stage.world.turn(&Deployments, at(stage.clock), stage.limit);
            stage.world.turn(&ReplicaSets, at(stage.clock), stage.limit);
            let others: Vec<ObjectKey> =
                all(&stage.world, &POD).iter().map(|p| p.key()).filter(|k| *k != last).collect();
            others.iter().for_each(|k| drop(stage.world.vanish(&POD, k)));
        }
        assert_eq!(stage.sizes(), sizes(&[("i:1", 0)]), "the held pod is still there");
        let gone = stage.world.vanish(&POD, &last).unwrap();
        assert_eq!(deployment_of_gone_pod(&stage.world, &gone), [Key::new(&DEPLOYMENT, key("web"))]);
        stage.settle();
        assert_eq!(stage.sizes(), sizes(&[("i:1", 0), ("i:2", 3)]));
        stage.image("i:1").settle();
        assert_eq!(stage.sizes(), sizes(&[("i:2", 0), ("i:1", 3)]));
    });
}

#[test]
fn history_is_pruned_when_the_rollout_is_done() {
    staged(1, json!({"spec": {"revisionHistoryLimit": 2}}), |stage| {
        for image in ["i:1", "i:2", "i:3", "i:4", "i:5"] {
            stage.image(image).settle();
        }
        assert_eq!(stage.sizes(), sizes(&[("i:3", 0), ("i:4", 0), ("i:5", 1)]));
        stage.image("bad").settle();
        assert_eq!(stage.sizes().len(), 4, "nothing is pruned before the rollout is done");
    });
}

#[test]
fn annotations_go_down_and_restarts_roll() {
    staged(2, json!({}), |stage| {
        stage.settle();
        stage.patch(json!({"metadata": {"annotations": {"note": "x",
            "kubectl.kubernetes.io/last-applied-configuration": "{}"}}}));
        stage.settle();
        assert_eq!(stage.sets()[0]["metadata"]["annotations"]["note"], "x");
        assert_eq!(
            stage.sets()[0]["metadata"]["annotations"]["kubectl.kubernetes.io/last-applied-configuration"],
            Value::Null
        );
        let restart = json!({"kubectl.kubernetes.io/restartedAt": "2026-11-30T20:00:00Z"});
        stage.patch(json!({"spec": {"template": {"metadata": {"annotations": restart}}}})).settle();
        assert_eq!(stage.sizes(), sizes(&[("i:1", 0), ("i:1", 2)]));
        stage.patch(json!({"spec": {"minReadySeconds": 3}})).settle();
        assert_eq!(stage.sets()[1]["spec"]["minReadySeconds"], 3);
        stage.patch(json!({"spec": {"minReadySeconds": 0}})).settle();
        assert_eq!(stage.sets()[1]["spec"]["minReadySeconds"], Value::Null);
    });
}

#[test]
fn a_taken_name_leads_to_another_hash() {
    staged(1, json!({}), |stage| {
        let plan = stage.world.plan(&Deployments, &Key::new(&DEPLOYMENT, key("web")), at(0));
        let Some(Action::Create { object, .. }) = plan.actions.first() else { panic!("{plan:?}") };
        let mut squatter = crate::testing::replica_set("other", 0);
        squatter["metadata"]["name"] = object["metadata"]["name"].clone();
        stage.world.create(&REPLICA_SET, squatter, at(0)).unwrap();
        stage.settle();
        assert_eq!(stage.deployment()["status"]["collisionCount"], 1);
        let ours = stage.sets().into_iter().filter(|s| s["metadata"]["ownerReferences"].is_array()).count();
        assert_eq!(ours, 1);
    });
}

#[test]
fn sets_are_adopted_by_template_and_released_by_label() {
    staged(2, json!({}), |stage| {
        let mut mine = crate::testing::replica_set("web", 2);
        mine["metadata"] = json!({"name": "by-hand", "namespace": "n", "labels": {"app": "web"}});
        stage.world.create(&REPLICA_SET, mine, at(0)).unwrap();
        stage.settle();
        assert_eq!(stage.sets().len(), 1, "the adopted set has the template already");
        let by_hand = key("by-hand");
        assert_eq!(stage.sets()[0]["metadata"]["annotations"][REVISION], "1");
        stage.world.patch(&REPLICA_SET, &by_hand, &json!({"metadata": {"labels": {"app": "x"}}})).unwrap();
        stage.settle();
        assert_eq!(value(&stage.world, &REPLICA_SET, &by_hand)["metadata"]["ownerReferences"], Value::Null);
        assert_eq!(stage.sets().len(), 2);
    });
}

#[test]
fn sets_of_others_are_never_touched() {
    let references = [
        json!({"apiVersion": "apps/v1", "kind": "Deployment", "name": "web", "uid": "old", "controller": true}),
        json!({"apiVersion": "example.org/v1", "kind": "Deployment", "name": "web", "uid": "x", "controller": true}),
    ];
    for reference in references {
        staged(1, json!({}), |stage| {
            let mut theirs = crate::testing::replica_set("web", 3);
            theirs["metadata"] = json!({"name": "theirs", "namespace": "n", "labels": {"app": "web"},
                "ownerReferences": [reference]});
            let before = stage.world.create(&REPLICA_SET, theirs, at(0)).unwrap();
            stage.settle();
            let after = value(&stage.world, &REPLICA_SET, &key("theirs"));
            assert_eq!(after["spec"], before.to_value().unwrap()["spec"]);
            assert_eq!(after["metadata"]["ownerReferences"], json!([reference]));
        });
    }
}

#[test]
fn a_stale_report_of_a_set_called_back_is_not_counted_on() {
    let mut stage =
        Stage::new(usize::MAX, 4, json!({"spec": {"strategy": {"rollingUpdate": {"maxUnavailable": 0}}}}));
    stage.settle().image("i:2").settle();
    // The old set still reports four available, of pods that are long gone, when it is called back.
    let old = stage.sets()[0]["metadata"]["name"].as_str().unwrap().to_owned();
    stage.world.patch(&REPLICA_SET, &key(&old), &json!({"status": {"availableReplicas": 4}})).unwrap();
    stage.image("i:1");
    for _ in 0..5 {
        stage.world.turn(&Deployments, at(50), usize::MAX);
    }
    let i2 = stage.sizes().into_iter().find(|(image, _)| image == "i:2").unwrap().1;
    assert_eq!(i2, 4, "no pod may go before the called back set has spoken");
}

#[test]
fn a_deleted_deployment_only_reports() {
    let mut stage = Stage::new(usize::MAX, 3, json!({"metadata": {"finalizers": ["foregroundDeletion"]}}));
    stage.world.delete(&DEPLOYMENT, &key("web"), None, at(1)).unwrap();
    stage.settle();
    assert!(stage.sets().is_empty());
    assert_eq!(stage.deployment()["status"]["observedGeneration"], 1);
}

#[test]
fn a_settled_deployment_writes_nothing() {
    let mut stage = Stage::new(usize::MAX, 3, json!({}));
    stage.settle();
    let plan = stage.world.plan(&Deployments, &Key::new(&DEPLOYMENT, key("web")), at(100_000));
    assert_eq!(plan, Plan::settled());
}

#[test]
fn slow_steps_extend_the_deadline() {
    let mut stage = Stage::new(usize::MAX, 6, json!({}));
    stage.pace = 1;
    while stage.turn() {
        for wait in [0, 0, 400] {
            // Each step comes in time, all of them together far beyond the deadline.
            stage.clock += wait;
            stage.world.turn(&ReplicaSets, at(stage.clock), stage.limit);
            stage.world.turn(&Deployments, at(stage.clock), stage.limit);
        }
        let conditions = stage.deployment()["status"]["conditions"].take();
        assert!(!conditions.to_string().contains(progress::TIMED_OUT), "{conditions}");
    }
    assert_eq!(stage.reason(), progress::AVAILABLE);
}

#[test]
fn sets_with_replicas_are_never_pruned() {
    staged(10, json!({"spec": {"revisionHistoryLimit": 0}}), |stage| {
        stage.settle().image("bad").settle();
        stage.patch(json!({"spec": {"paused": true}})).image("i:3").settle();
        assert_eq!(stage.sizes(), sizes(&[("i:1", 8), ("bad", 5)]));
    });
}
