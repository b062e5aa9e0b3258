//! What controllers have to do is shown by one command, and a key that failed for good is retried by hand.

#![allow(clippy::unwrap_used, reason = "a test ends at the first surprise")]

use serde_json::Value;
use strata_tests::platform::Platform;

#[test]
fn queues_are_shown_and_keys_retried() {
    let platform = Platform::start(&["--runtime", "simulated"]);
    let all: Value = serde_json::from_str(&platform.strata(&["queue", "-o", "json"]).ok()).unwrap();
    let names: Vec<&str> =
        all["controllers"].as_array().unwrap().iter().map(|c| c["name"].as_str().unwrap()).collect();
    for name in ["deployment", "replicaset", "scheduler", "garbage", "namespace", "node-agent"] {
        assert!(names.contains(&name), "{name} in {names:?}");
    }
    let table = platform.strata(&["queue"]).ok();
    assert!(table.starts_with("CONTROLLER") && table.lines().count() == names.len() + 1, "{table}");

    platform.strata(&["create", "deployment", "web", "--image", "app"]).ok();
    platform.strata(&["rollout", "status", "deployment/web", "--timeout", "60s"]).ok();
    let said = platform.strata(&["queue", "deployment", "--retry", "deployments.apps/default/web"]).ok();
    assert_eq!(said, "deployments.apps/default/web is reconciled by deployment now\n");
    platform.strata(&["queue", "deployment"]).ok();

    let wrong = platform.strata(&["queue", "deploymnt"]);
    assert_eq!(wrong.code, Some(1));
    assert!(
        wrong.err.contains("no controller \"deploymnt\"") && wrong.err.contains("scheduler"),
        "{}",
        wrong.err
    );
    let wrong = platform.strata(&["queue", "deployment", "--retry", "web"]);
    assert_eq!(wrong.code, Some(1));
    assert!(wrong.err.contains("TYPE/NAMESPACE/NAME"), "{}", wrong.err);
}
