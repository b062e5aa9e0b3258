//! Two writers that undo each other: the controller says with whom it fights and about what, and pauses, instead of
//! writing as fast as it can for ever.

#![allow(clippy::unwrap_used, reason = "a test ends at the first surprise")]

use std::time::Duration;

use serde_json::Value;
use strata_tests::platform::Platform;
use strata_tests::wait;

const LIMIT: Duration = Duration::from_secs(60);
/// More rounds than it takes to call it a fight.
const ROUNDS: usize = 8;

fn json(platform: &Platform, args: &[&str]) -> Value {
    serde_json::from_str(&platform.strata(args).ok()).unwrap()
}

fn contended(platform: &Platform) -> Option<Value> {
    let deployment = json(platform, &["get", "deployment", "web", "-o", "json"]);
    let conditions = deployment["status"]["conditions"].as_array()?;
    conditions.iter().find(|c| c["type"] == "Contended").cloned()
}

#[test]
fn a_controller_whose_writes_are_undone_names_the_rival_and_pauses() {
    let platform = Platform::start(&["--runtime", "simulated"]);
    platform.strata(&["create", "deployment", "web", "--image", "app", "--replicas", "1"]).ok();
    platform.strata(&["rollout", "status", "deployment/web", "--timeout", "60s"]).ok();
    let sets = json(&platform, &["get", "replicasets", "-o", "json"]);
    let set = sets["items"][0]["metadata"]["name"].as_str().unwrap().to_owned();
    assert_eq!(contended(&platform), None);
    for round in 1..=ROUNDS {
        if contended(&platform).is_some() {
            break;
        }
        let patch = r#"{"spec":{"replicas":2}}"#;
        let rival = ["patch", "replicaset", &set, "--type", "merge", "-p", patch, "--field-manager", "rival"];
        platform.strata(&rival).ok();
        wait::until(&format!("the answer to round {round}"), LIMIT, || {
            let now = json(&platform, &["get", "replicaset", &set, "-o", "json"]);
            if now["spec"]["replicas"] == 1 { Ok(()) } else { Err(now["spec"]["replicas"].clone()) }
        });
    }
    let condition = wait::until("the condition", LIMIT, || contended(&platform).ok_or("none"));
    assert_eq!(condition["status"], "True");
    assert_eq!(condition["reason"], "FightingWriters");
    let message = condition["message"].as_str().unwrap();
    for part in ["deployment", "rival", "spec.replicas", &set] {
        assert!(message.contains(part), "{part} in {message}");
    }
    let events = platform.strata(&["get", "events"]).ok();
    assert!(events.contains("FightingWriters"), "{events}");
}
