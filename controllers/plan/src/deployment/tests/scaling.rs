//! Deployments that are paused or scaled, at rest and in the middle of a rollout.

use serde_json::json;

use super::*;

#[test]
fn paused_nothing_rolls_but_scaling_works() {
    staged(4, json!({}), |stage| {
        stage.settle().patch(json!({"spec": {"paused": true}}));
        stage.image("i:2").settle();
        assert_eq!(stage.sizes(), sizes(&[("i:1", 4)]));
        assert_eq!(stage.condition("Progressing").0, "Unknown");
        assert_eq!(stage.reason(), "DeploymentPaused");
        stage.patch(json!({"spec": {"replicas": 6}})).settle();
        assert_eq!(stage.sizes(), sizes(&[("i:1", 6)]));
        stage.patch(json!({"spec": {"paused": null}})).settle();
        assert_eq!(stage.sizes(), sizes(&[("i:1", 0), ("i:2", 6)]));
        assert_eq!(stage.reason(), progress::AVAILABLE);
    });
}

#[test]
fn pausing_in_the_middle_holds_and_scaling_keeps_shares() {
    staged(10, json!({}), |stage| {
        stage.settle().image("bad").settle();
        assert_eq!(stage.sizes(), sizes(&[("i:1", 8), ("bad", 5)]));
        stage.patch(json!({"spec": {"paused": true}})).settle();
        assert_eq!(stage.sizes(), sizes(&[("i:1", 8), ("bad", 5)]));
        stage.patch(json!({"spec": {"replicas": 20}})).settle();
        // 25 in all: 8 and 5 of 13 become 15 and 10.
        assert_eq!(stage.sizes(), sizes(&[("i:1", 15), ("bad", 10)]));
        stage.patch(json!({"spec": {"replicas": 0}})).settle();
        assert_eq!(stage.sizes(), sizes(&[("i:1", 0), ("bad", 0)]));
    });
}

#[test]
fn scaling_during_a_rollout_keeps_the_old_available() {
    staged(10, json!({}), |stage| {
        stage.settle().image("bad").settle();
        stage.patch(json!({"spec": {"replicas": 5}})).settle();
        let total: i32 = stage.sizes().iter().map(|(_, n)| n).sum();
        assert!(total <= 7, "{:?}", stage.sizes());
        let old = stage.sizes()[0].1;
        assert!(old >= 4, "{:?}", stage.sizes());
        stage.image("i:3").settle();
        assert_eq!(stage.sizes().last().unwrap(), &("i:3".to_owned(), 5));
    });
}

#[test]
fn scaling_a_settled_deployment_keeps_its_condition() {
    staged(2, json!({}), |stage| {
        stage.settle();
        for replicas in [5, 1, 0, 3] {
            stage.patch(json!({"spec": {"replicas": replicas}})).settle();
            assert_eq!(stage.sizes(), sizes(&[("i:1", replicas)]));
            assert_eq!(stage.reason(), progress::AVAILABLE);
        }
        assert_eq!(stage.sets()[0]["metadata"]["annotations"][DESIRED], "3");
    });
}
