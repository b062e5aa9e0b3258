//! Whatever is killed, the declared state comes back by itself; and a healthy process is not restarted because something
//! above it died. On real processes, with SIGKILL.

#![allow(clippy::unwrap_used, reason = "a test ends at the first surprise")]

use std::collections::BTreeMap;
use std::time::Duration;

use rustix::process::{Pid, Signal, kill_process_group};
use serde_json::Value;
use strata_tests::platform::{Platform, command_line, is_alive, signal, wait_gone};
use strata_tests::wait;

const LIMIT: Duration = Duration::from_secs(60);
const CONTROLLERS: &[&str] =
    &["deployment", "replicaset", "scheduler", "garbage", "namespace", "controllers"];

/// Three pods, each one process that says its pid and then stays.
const MANIFEST: &str = r#"
apiVersion: apps/v1
kind: Deployment
metadata: {name: stay}
spec:
  replicas: 3
  selector: {matchLabels: {app: stay}}
  template:
    metadata: {labels: {app: stay}}
    spec:
      terminationGracePeriodSeconds: 2
      containers:
        - name: stay
          image: host
          command: ["sh", "-c", "echo pid $$$$; exec sleep 86400"]
"#;

fn json(platform: &Platform, args: &[&str]) -> Value {
    serde_json::from_str(&platform.strata(args).ok()).unwrap()
}

/// Pid of the process of each running, ready pod, by pod name.
fn pids(platform: &Platform) -> Result<BTreeMap<String, i32>, String> {
    let said = platform.strata(&["get", "pods", "-l", "app=stay", "-o", "json"]);
    if said.code != Some(0) {
        return Err(said.err);
    }
    let list: Value = serde_json::from_str(&said.out).unwrap();
    let mut found = BTreeMap::new();
    for pod in list["items"].as_array().unwrap() {
        let name = pod["metadata"]["name"].as_str().unwrap();
        let status = &pod["status"]["containerStatuses"][0];
        if !pod["metadata"]["deletionTimestamp"].is_null() || status["ready"] != true {
            return Err(format!("{name} is not ready: {}", pod["status"]));
        }
        let log = platform.strata(&["logs", name]);
        let pid = log.out.lines().rev().find_map(|l| l.strip_prefix("pid ")?.trim().parse().ok());
        let pid =
            pid.filter(|pid| is_alive(*pid)).ok_or_else(|| format!("{name} has no live pid: {log:?}"))?;
        found.insert(name.to_owned(), pid);
    }
    if found.len() == 3 { Ok(found) } else { Err(format!("{found:?}")) }
}

fn settled(platform: &Platform, what: &str) -> BTreeMap<String, i32> {
    wait::until(what, LIMIT, || pids(platform))
}

/// The state is back, and the processes are the very same ones.
fn unchanged(platform: &Platform, before: &BTreeMap<String, i32>, after_what: &str) {
    let after = settled(platform, &format!("the state after {after_what}"));
    assert_eq!(&after, before, "{after_what} restarted healthy processes");
}

/// Kills the one role process whose command line has these words, and waits for another one in its place.
fn kill_role(platform: &Platform, words: &[&str]) {
    let before = platform.role_pids(words);
    assert_eq!(before.len(), 1, "{words:?}: {before:?}");
    signal(before[0], Signal::KILL);
    wait::until(&format!("another {words:?}"), LIMIT, || {
        let now = platform.role_pids(words);
        if now.len() == 1 && now != before { Ok(()) } else { Err(now) }
    });
}

#[test]
fn what_is_killed_comes_back_and_what_is_healthy_stays() {
    let platform = Platform::start(&["--runtime", "process"]);
    let manifest = platform.data_dir().join("stay.yaml");
    std::fs::write(&manifest, MANIFEST).unwrap();
    platform.strata(&["apply", "-f", manifest.to_str().unwrap()]).ok();
    let first = settled(&platform, "three real processes");

    processes(&platform, &first);
    let running = settled(&platform, "three processes before anything above them dies");
    agent(&platform, &running);
    controllers(&platform, &running);
    api_server(&platform, &running);
    let running = supervisor(platform, &running);
    for pid in running.into_values() {
        wait_gone(pid, LIMIT);
    }
}

fn processes(platform: &Platform, first: &BTreeMap<String, i32>) {
    let (name, pid) = first.iter().next().unwrap();
    signal(*pid, Signal::KILL);
    wait_gone(*pid, LIMIT);
    let second = settled(platform, "the killed process to be replaced");
    assert_ne!(second[name], *pid);
    let pod = json(platform, &["get", "pod", name, "-o", "json"]);
    let status = &pod["status"]["containerStatuses"][0];
    assert_eq!(status["restartCount"], 1, "{status}");
    assert_eq!(status["lastState"]["terminated"]["exitCode"], 137, "{status}");

    let (name, pid) = second.iter().nth(1).unwrap();
    kill_process_group(Pid::from_raw(*pid).unwrap(), Signal::KILL).unwrap();
    wait_gone(*pid, LIMIT);
    let third = settled(platform, "the killed group to be replaced");
    assert_ne!(third[name], *pid);
    for other in third.keys().filter(|n| *n != name) {
        assert_eq!(third[other], second[other], "a neighbour was restarted");
    }
}

fn agent(platform: &Platform, running: &BTreeMap<String, i32>) {
    kill_role(platform, &[" node --"]);
    unchanged(platform, running, "the death of the node agent");
}

fn controllers(platform: &Platform, running: &BTreeMap<String, i32>) {
    for name in CONTROLLERS {
        kill_role(platform, &["controller", name]);
    }
    unchanged(platform, running, "the death of every controller");
    // The new controllers do the work of the old ones.
    let victim = running.keys().next().unwrap();
    platform.strata(&["delete", "pod", victim]).ok();
    let healed = settled(platform, "the replacement of a deleted pod");
    assert!(!healed.contains_key(victim), "{healed:?}");
    platform.strata(&["scale", "deployment", "stay", "--replicas=4"]).ok();
    platform.strata(&["scale", "deployment", "stay", "--replicas=3"]).ok();
    settled(platform, "three processes again");
}

fn api_server(platform: &Platform, _: &BTreeMap<String, i32>) {
    let running = settled(platform, "three processes before the API server dies");
    kill_role(platform, &["apiserver"]);
    unchanged(platform, &running, "the death of the API server");
    let victim = running.keys().next_back().unwrap();
    platform.strata(&["delete", "pod", victim]).ok();
    let healed = settled(platform, "the replacement of a pod deleted after the API server's restart");
    assert!(!healed.contains_key(victim), "{healed:?}");
}

fn supervisor(platform: Platform, _: &BTreeMap<String, i32>) -> BTreeMap<String, i32> {
    let running = settled(&platform, "three processes before the supervisor dies");
    let roles = platform.role_pids(&[]);
    assert!(roles.len() > CONTROLLERS.len(), "{roles:?}");
    signal(platform.pid() as i32, Signal::KILL);
    for pid in roles {
        wait::until(&format!("role {pid} to follow its supervisor"), LIMIT, || {
            if is_alive(pid) { Err(command_line(pid)) } else { Ok(()) }
        });
    }
    let again = Platform::start_in(platform.stop(), &["--runtime", "process"]);
    unchanged(&again, &running, "the death of the supervisor and of all its roles");
    drop(again.stop());
    running
}
