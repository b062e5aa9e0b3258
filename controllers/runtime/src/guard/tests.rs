//! Fights are told from work, and end.

use serde_json::json;
use strata_model::object::ObjectKey;
use strata_model::resource::builtin;

use super::contest::contest;
use super::*;

const S: Duration = Duration::from_secs(1);

fn patch(replicas: i64) -> Action {
    let target = Target {
        resource: builtin::REPLICA_SET.clone(),
        key: ObjectKey::new("default", "web-1"),
        uid: "u1".to_owned(),
        resource_version: Some("7".to_owned()),
    };
    Action::Patch { target, patch: json!({"spec": {"replicas": replicas}}) }
}

fn key() -> Key {
    Key::new(&builtin::DEPLOYMENT, ObjectKey::new("default", "web"))
}

#[test]
fn the_same_write_counts_up_and_others_do_not() {
    let mut guard = Guard::default();
    let (three, _) = print(&patch(3)).expect("a print");
    let (four, _) = print(&patch(4)).expect("a print");
    assert_ne!(three, four);
    let times: Vec<u32> = (0..4).map(|n| guard.wrote(three, S * n)).collect();
    assert_eq!(times, [1, 2, 3, 4]);
    assert_eq!(guard.wrote(four, S * 5), 1);
    // Remembered for a window at least, for two at most.
    assert_eq!(guard.wrote(three, S * 61), 5);
    assert_eq!(guard.wrote(three, S * 300), 1);
}

#[test]
fn what_is_remembered_is_bounded() {
    let mut guard = Guard::default();
    for n in 0..3 * MAX_WRITES as i64 {
        let (print, _) = print(&patch(n)).expect("a print");
        guard.wrote(print, S);
    }
    assert!(guard.young.len() <= MAX_WRITES && guard.old.len() <= MAX_WRITES);
}

#[test]
fn a_fight_pauses_longer_each_round_and_ends_after_peace() {
    let mut guard = Guard::default();
    assert_eq!(guard.contested(&key(), FIGHT - 1, S), None);
    assert_eq!(guard.settled(&key(), S), None);
    let pauses: Vec<Truce> = (0..8).filter_map(|n| guard.contested(&key(), FIGHT + n, S * 10)).collect();
    assert!(pauses[0].first && !pauses[1].first);
    let seconds: Vec<u64> = pauses.iter().map(|t| t.pause.as_secs()).collect();
    assert_eq!(seconds, [1, 2, 4, 8, 16, 32, 60, 60]);
    // Once it is a fight, each further round is one, however the writes are counted.
    assert!(guard.contested(&key(), 1, S * 20).is_some());
    assert_eq!(guard.settled(&key(), S * 21), Some(Some(S * 20 + PEACE)));
    assert_eq!(guard.settled(&key(), S * 20 + PEACE), Some(None));
    assert_eq!(guard.settled(&key(), S * 21 + PEACE), None);
}

#[test]
fn a_contest_names_the_rival_and_the_field_that_it_changed() {
    let before = json!({
        "metadata": {"managedFields": [
            {"manager": "deployment", "fieldsV1": {"f:spec": {"f:paused": {}, "f:template": {"f:metadata": {}}}}},
            {"manager": "kubectl-scale", "fieldsV1": {"f:spec": {"f:replicas": {}}}},
            {"manager": "labeller", "fieldsV1": {"f:metadata": {"f:labels": {"f:a": {}}}}},
        ]},
        "spec": {"replicas": 5, "paused": false},
    });
    let found =
        contest(&before, "deployment", &json!({"spec": {"replicas": 3, "paused": true}})).expect("a contest");
    assert_eq!(found.rivals.into_iter().collect::<Vec<_>>(), ["kubectl-scale"]);
    assert_eq!(found.fields.into_iter().collect::<Vec<_>>(), ["spec.replicas"]);
    // What is as wished is not taken, and one's own fields are nobody else's.
    assert_eq!(contest(&before, "deployment", &json!({"spec": {"replicas": 5}})), None);
    assert_eq!(contest(&before, "kubectl-scale", &json!({"spec": {"replicas": 3}})), None);
}

#[test]
fn two_rivals_of_one_field_are_both_named_and_lists_by_key_are_shared_by_design() {
    let owner = |name: &str| json!({"manager": name, "fieldsV1": {"f:spec": {"f:replicas": {}}}});
    let before = json!({"metadata": {"managedFields": [owner("a"), owner("b")]}, "spec": {"replicas": 5}});
    let found = contest(&before, "me", &json!({"spec": {"replicas": 3}})).expect("a contest");
    assert_eq!(found.rivals.into_iter().collect::<Vec<_>>(), ["a", "b"]);
    let conditions = json!({
        "metadata": {"managedFields": [{"manager": "a", "fieldsV1":
            {"f:status": {"f:conditions": {"k:{\"type\":\"Ready\"}": {}}}}}]},
        "status": {"conditions": [{"type": "Ready"}]},
    });
    assert_eq!(contest(&conditions, "me", &json!({"status": {"conditions": []}})), None);
}
