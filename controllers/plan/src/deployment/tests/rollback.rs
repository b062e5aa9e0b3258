//! Scenarios of Deployments that go back by themselves, and of pods that cannot be made.

use serde_json::json;
use strata_model::resource::builtin::{DEPLOYMENT, REPLICA_SET};

use super::*;
use crate::deployment::rollback::{ASKED, LEFT};

fn image(stage: &Stage) -> String {
    stage.deployment()["spec"]["template"]["spec"]["containers"][0]["image"].as_str().unwrap().to_owned()
}

fn asking() -> Value {
    json!({"metadata": {"annotations": {ASKED: "true"}}, "spec": {"progressDeadlineSeconds": 30}})
}

#[test]
fn a_rollout_that_misses_its_deadline_goes_back_and_says_so() {
    staged(4, asking(), |stage| {
        stage.settle().image("i:2").settle().image("bad").turns(120);
        stage.settle();
        assert_eq!(image(stage), "i:2");
        assert_eq!(stage.deployment()["metadata"]["annotations"][LEFT], "3");
        assert_eq!(stage.condition("Progressing").1, "NewReplicaSetAvailable");
        assert_eq!(stage.status()["availableReplicas"], 4);
        // What is known of single sets is not handed down.
        let sets = all(&stage.world, &REPLICA_SET);
        assert!(
            sets.iter().all(|s| s.meta().annotation(ASKED).is_none() && s.meta().annotation(LEFT).is_none())
        );
    });
}

#[test]
fn it_is_told_once() {
    let mut stage = Stage::new(usize::MAX, 2, asking());
    stage.settle().image("bad").turns(80);
    let told: Vec<&str> =
        stage.world.told.iter().filter(|t| t.reason == "AutoRollback").map(|t| t.message.as_str()).collect();
    assert_eq!(told.len(), 1);
    assert!(told[0].starts_with("Rolled back to revision 1 (replica set web-"), "{told:?}");
}

#[test]
fn nobody_goes_back_who_did_not_ask_or_has_nowhere_to_go() {
    let cases = [(json!({"spec": {"progressDeadlineSeconds": 30}}), "i:1", "bad"), (asking(), "bad", "bad2")];
    for (more, first, second) in cases {
        staged(2, more, |stage| {
            stage.image(first).turns(60);
            // Nodes of these tests start everything but `bad`, so the second is made to fail by its pods.
            stage.pace = 0;
            stage.image(second).turns(120);
            assert_eq!(image(stage), second);
        });
    }
}

#[test]
fn what_was_good_once_is_not_left() {
    staged(2, asking(), |stage| {
        stage.settle().image("i:2").settle();
        // Back by hand to what was good, but now nothing starts.
        stage.pace = 0;
        stage.image("i:1").turns(120);
        assert_eq!(image(stage), "i:1");
    });
}

#[test]
fn that_pods_cannot_be_made_shows_above() {
    let mut stage = Stage::new(usize::MAX, 2, json!({}));
    stage.settle();
    let set = all(&stage.world, &REPLICA_SET)[0].key();
    let failure = json!([{"type": "ReplicaFailure", "status": "True", "reason": "FailedCreate", "message": "exceeded quota"}]);
    stage.world.patch(&REPLICA_SET, &set, &json!({"status": {"conditions": failure}})).unwrap();
    stage.world.settle(&Deployments, at(100));
    assert_eq!(stage.condition("ReplicaFailure").1, "FailedCreate");
    stage.world.patch(&REPLICA_SET, &set, &json!({"status": {"conditions": null}})).unwrap();
    stage.world.settle(&Deployments, at(101));
    let conditions = value(&stage.world, &DEPLOYMENT, &key("web"))["status"]["conditions"].take();
    assert!(conditions.as_array().unwrap().iter().all(|c| c["type"] != "ReplicaFailure"));
}
