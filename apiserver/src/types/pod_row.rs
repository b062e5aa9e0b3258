//! The row of a pod in a Table: one word for the state of all its containers. Pure; knows no other type.

use jiff::Timestamp;
use serde_json::{Value, json};

use super::print;
use super::rules::{AGE, Column, NAME, column, wide};
use crate::value::{at, flag, int, list, text};

/// Columns of pods.
pub const COLUMNS: &[Column] = &[
    NAME,
    column("Ready", "How many of the containers are ready."),
    column("Status", "What the pod does, or why it does not."),
    column("Restarts", "How often containers were started again."),
    AGE,
    wide("IP", "The address of the pod."),
    wide("Node", "The node that the pod is bound to."),
    wide("Nominated Node", "The node that the pod may get next."),
    wide("Readiness Gates", "How many readiness gates are passed."),
];

/// What the containers add up to.
#[derive(Default)]
struct Tally {
    ready: i64,
    restarts: i64,
    last_restart: Option<Timestamp>,
    reason: String,
    initializing: bool,
}

impl Tally {
    fn count_restarts(&mut self, status: &Value) {
        self.restarts += int(status, &["restartCount"]).unwrap_or(0);
        let finished = text(status, &["lastState", "terminated", "finishedAt"]).parse().ok();
        self.last_restart = self.last_restart.max(finished);
    }
}

/// Cells of a pod.
pub fn row(pod: &Value, now: Timestamp) -> Vec<Value> {
    let tally = tally(pod);
    let total = list(pod, &["spec", "containers"]).len()
        + list(pod, &["spec", "initContainers"]).iter().filter(|c| is_sidecar(c)).count();
    let restarts = match tally.last_restart {
        Some(last) if tally.restarts != 0 => {
            format!(
                "{} ({} ago)",
                tally.restarts,
                strata_model::age::human(now.as_second() - last.as_second())
            )
        }
        _ => tally.restarts.to_string(),
    };
    vec![
        print::name(pod),
        json!(format!("{}/{total}", tally.ready)),
        json!(tally.reason),
        json!(restarts),
        print::created(pod, now),
        print::or_none(text(pod, &["status", "podIP"])),
        print::or_none(text(pod, &["spec", "nodeName"])),
        print::or_none(text(pod, &["status", "nominatedNodeName"])),
        gates(pod),
    ]
}

/// Whether the pod has ended, and how; the `Completed` condition of its row.
pub fn ended(pod: &Value) -> Option<(&'static str, &'static str)> {
    match text(pod, &["status", "phase"]) {
        "Succeeded" => Some(("Succeeded", "The pod has completed successfully.")),
        "Failed" => Some(("Failed", "The pod failed.")),
        _ => None,
    }
}

fn is_sidecar(container: &Value) -> bool {
    text(container, &["restartPolicy"]) == "Always"
}

fn gates(pod: &Value) -> Value {
    let gates = list(pod, &["spec", "readinessGates"]);
    if gates.is_empty() {
        return json!("<none>");
    }
    let passed = gates.iter().filter(|g| condition(pod, text(g, &["conditionType"]))).count();
    json!(format!("{passed}/{}", gates.len()))
}

fn condition(pod: &Value, kind: &str) -> bool {
    list(pod, &["status", "conditions"])
        .iter()
        .any(|c| text(c, &["type"]) == kind && text(c, &["status"]) == "True")
}

fn tally(pod: &Value) -> Tally {
    let (phase, why) = (text(pod, &["status", "phase"]), text(pod, &["status", "reason"]));
    let mut tally = Tally { reason: if why.is_empty() { phase } else { why }.to_owned(), ..Tally::default() };
    let gated = list(pod, &["status", "conditions"])
        .iter()
        .any(|c| text(c, &["type"]) == "PodScheduled" && text(c, &["reason"]) == "SchedulingGated");
    if gated {
        tally.reason = "SchedulingGated".to_owned();
    }
    init_containers(pod, &mut tally);
    if !tally.initializing || condition(pod, "Initialized") {
        containers(pod, &mut tally);
    }
    if at(pod, &["metadata", "deletionTimestamp"]).is_some() {
        if why == "NodeLost" {
            tally.reason = "Unknown".to_owned();
        } else if !matches!(phase, "Succeeded" | "Failed") {
            tally.reason = "Terminating".to_owned();
        }
    }
    tally
}

fn init_containers(pod: &Value, tally: &mut Tally) {
    let declared = list(pod, &["spec", "initContainers"]);
    let sidecar = |name: &str| declared.iter().any(|c| text(c, &["name"]) == name && is_sidecar(c));
    let mut sidecar_restarts = 0;
    for (index, status) in list(pod, &["status", "initContainerStatuses"]).iter().enumerate() {
        tally.count_restarts(status);
        let terminated = at(status, &["state", "terminated"]);
        let waiting = text(status, &["state", "waiting", "reason"]);
        if sidecar(text(status, &["name"])) {
            sidecar_restarts += int(status, &["restartCount"]).unwrap_or(0);
        }
        match terminated {
            Some(t) if int(t, &["exitCode"]).unwrap_or(0) == 0 => continue,
            None if sidecar(text(status, &["name"])) && flag(status, &["started"]) => {
                tally.ready += i64::from(flag(status, &["ready"]));
                continue;
            }
            Some(t) => tally.reason = format!("Init:{}", ending(t)),
            None if !waiting.is_empty() && waiting != "PodInitializing" => {
                tally.reason = format!("Init:{waiting}");
            }
            None => tally.reason = format!("Init:{index}/{}", declared.len()),
        }
        tally.initializing = true;
        return;
    }
    tally.restarts = sidecar_restarts;
}

/// The reason of a terminated state, or its signal or exit code.
fn ending(terminated: &Value) -> String {
    let reason = text(terminated, &["reason"]);
    let signal = int(terminated, &["signal"]).unwrap_or(0);
    match (reason, signal) {
        ("", 0) => format!("ExitCode:{}", int(terminated, &["exitCode"]).unwrap_or(0)),
        ("", signal) => format!("Signal:{signal}"),
        (reason, _) => reason.to_owned(),
    }
}

fn containers(pod: &Value, tally: &mut Tally) {
    let mut running = false;
    for status in list(pod, &["status", "containerStatuses"]).iter().rev() {
        tally.count_restarts(status);
        let waiting = text(status, &["state", "waiting", "reason"]);
        if !waiting.is_empty() {
            tally.reason = waiting.to_owned();
        } else if let Some(terminated) = at(status, &["state", "terminated"]) {
            tally.reason = ending(terminated);
        } else if flag(status, &["ready"]) && at(status, &["state", "running"]).is_some() {
            running = true;
            tally.ready += 1;
        }
    }
    if tally.reason == "Completed" && running {
        tally.reason = if condition(pod, "Ready") { "Running" } else { "NotReady" }.to_owned();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn cells(pod: Value) -> (String, String, String) {
        let row = row(&pod, Timestamp::from_second(1000).unwrap());
        let cell = |i: usize| row[i].as_str().unwrap().to_owned();
        (cell(1), cell(2), cell(3))
    }

    fn pod(status: Value) -> Value {
        json!({"metadata": {"name": "p"}, "spec": {"containers": [{"name": "a"}, {"name": "b"}],
            "initContainers": [{"name": "i"}]}, "status": status})
    }

    #[test]
    fn the_status_cell_follows_the_chain_of_reasons() {
        let waiting = |reason: &str| json!({"name": "a", "state": {"waiting": {"reason": reason}}});
        let running = json!({"name": "b", "ready": true, "state": {"running": {}}});
        let of = |status: Value| cells(pod(status)).1;
        assert_eq!(of(json!({"phase": "Pending"})), "Pending");
        assert_eq!(of(json!({"phase": "Failed", "reason": "Evicted"})), "Evicted");
        assert_eq!(
            of(json!({"phase": "Pending", "containerStatuses": [waiting("ContainerCreating")]})),
            "ContainerCreating"
        );
        assert_eq!(
            of(json!({"phase": "Running", "containerStatuses": [waiting("CrashLoopBackOff"), running]})),
            "CrashLoopBackOff"
        );
        assert_eq!(
            of(
                json!({"phase": "Pending", "initContainerStatuses": [{"name": "i", "state": {"running": {}}}]})
            ),
            "Init:0/1"
        );
        assert_eq!(
            of(json!({"phase": "Failed", "containerStatuses": [{"state": {"terminated": {"exitCode": 3}}}]})),
            "ExitCode:3"
        );
        assert_eq!(
            of(
                json!({"phase": "Succeeded", "containerStatuses": [{"state": {"terminated": {"exitCode": 0, "reason": "Completed"}}}]})
            ),
            "Completed"
        );
        let mut leaving = pod(json!({"phase": "Running"}));
        leaving["metadata"]["deletionTimestamp"] = json!("2026-01-01T00:00:00Z");
        assert_eq!(cells(leaving).1, "Terminating");
    }

    #[test]
    fn restarts_tell_when() {
        let found = cells(pod(json!({"phase": "Running", "containerStatuses": [
            {"restartCount": 2, "ready": true, "state": {"running": {}},
             "lastState": {"terminated": {"finishedAt": "1970-01-01T00:16:30Z"}}}]})));
        assert_eq!(found, ("1/2".to_owned(), "Running".to_owned(), "2 (10s ago)".to_owned()));
    }
}
