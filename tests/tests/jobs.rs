//! A job counts each of its pods once and runs each piece of work once, whatever happens to its controller meanwhile. On
//! real processes, with SIGKILL.

#![allow(clippy::unwrap_used, reason = "a test ends at the first surprise")]

use std::time::Duration;

use rustix::process::Signal;
use serde_json::Value;
use strata_tests::platform::{Platform, signal};
use strata_tests::wait;

const LIMIT: Duration = Duration::from_secs(120);
const COMPLETIONS: u64 = 50;

fn status(platform: &Platform) -> Value {
    let job = platform.strata(&["get", "job", "count", "-o", "json"]).ok();
    serde_json::from_str::<Value>(&job).unwrap()["status"].take()
}

fn succeeded(platform: &Platform) -> u64 {
    status(platform)["succeeded"].as_u64().unwrap_or(0)
}

#[test]
fn fifty_pieces_of_work_are_done_once_each_while_their_controller_is_killed() {
    let platform = Platform::start(&[]);
    let marks = tempfile::NamedTempFile::new().unwrap();
    let manifest = tempfile::Builder::new().suffix(".yaml").tempfile().unwrap();
    let job = format!(
        r#"
apiVersion: batch/v1
kind: Job
metadata: {{name: count}}
spec:
  completions: {COMPLETIONS}
  parallelism: 8
  template:
    spec:
      restartPolicy: Never
      containers:
        - {{name: c, image: host, command: ["sh", "-c", "echo done >> {}"]}}
"#,
        marks.path().display()
    );
    std::fs::write(manifest.path(), job).unwrap();
    platform.strata(&["apply", "-f", &manifest.path().to_string_lossy()]).ok();
    for part in 1..=3 {
        let so_far = part * COMPLETIONS / 5;
        wait::until(&format!("{so_far} pods to be counted"), LIMIT, || {
            let now = succeeded(&platform);
            if now >= so_far { Ok(()) } else { Err(now) }
        });
        let controller = platform.role_pids(&["controller", "cronjob"]);
        assert_eq!(controller.len(), 1, "{controller:?}");
        signal(controller[0], Signal::KILL);
        wait::until("the controller to come back", LIMIT, || {
            let now = platform.role_pids(&["controller", "cronjob"]);
            if now.len() == 1 && now != controller { Ok(()) } else { Err(now) }
        });
    }
    platform.strata(&["wait", "--for=condition=complete", "job/count", "--timeout", "60s"]).ok();
    platform.strata(&["wait", "--converged", "job/count", "--timeout", "60s"]).ok();
    let end = status(&platform);
    assert_eq!((&end["succeeded"], &end["failed"]), (&COMPLETIONS.into(), &Value::Null), "{end}");
    let marks = std::fs::read_to_string(marks.path()).unwrap();
    assert_eq!(marks.lines().count() as u64, COMPLETIONS, "work was done twice, or not at all");
    let pods = platform.strata(&["get", "pods", "-o", "name"]).ok();
    assert_eq!(pods.lines().count() as u64, COMPLETIONS, "{pods}");
}
