//! A pod and its containers, down to the process.

use serde_json::Value;

use super::common::{self, SCHEDULER, age, condition, idle_controller, leaving, reason_of, text, warning};
use super::{Line, Reason, View};

/// Who places pods that name nobody else.
const DEFAULT_SCHEDULER: &str = "default-scheduler";

/// Fills in the line of a pod and those of its containers.
pub fn fill(line: &mut Line, pod: &Value, view: &View<'_>) {
    let (spec, status) = (&pod["spec"], &pod["status"]);
    let phase = match text(status, "phase") {
        "" => "Pending",
        phase => phase,
    };
    let restarts = text(spec, "restartPolicy") != "Never";
    let deleting = !pod["metadata"]["deletionTimestamp"].is_null();
    line.children = containers(pod, view);
    line.desired = "running and ready".to_owned();
    let ready = condition(pod, "Ready").is_some_and(|c| c["status"] == "True");
    let place = match text(spec, "nodeName") {
        "" => String::new(),
        node => format!(" on {node}"),
    };
    line.actual = match (phase, ready) {
        ("Running", true) => format!("running and ready{place}"),
        ("Running", false) => format!("running, not ready{place}"),
        ("Succeeded", _) => "completed".to_owned(),
        (phase, _) => format!("{}{place}", phase.to_lowercase()),
    };
    if deleting {
        line.desired = "gone".to_owned();
        line.actual = format!("terminating{place}");
        line.reason = Some(going(pod, view));
        return;
    }
    line.converged = (phase == "Running" && ready)
        || (phase == "Succeeded" && !(restarts && spec["restartPolicy"] == "Always"));
    if !line.converged {
        line.reason = Some(gap(line, pod, phase, view));
    }
}

/// Why a pod that was deleted is still there.
fn going(pod: &Value, view: &View<'_>) -> Reason {
    let node = text(&pod["spec"], "nodeName");
    let left = age(&pod["metadata"]["deletionTimestamp"], view.now).map_or(0, |past| -past);
    let held = leaving(pod, view).filter(|reason| reason.word == "Finalizers");
    held.or_else(|| node_gap(node, view)).unwrap_or_else(|| match left {
        1.. => Reason::new("Terminating", format!("its processes have {left}s left to end by themselves")),
        _ => Reason::new("Terminating", format!("node {node} has not confirmed that its processes ended")),
    })
}

/// Why a pod does not run, or is not ready.
fn gap(line: &Line, pod: &Value, phase: &str, view: &View<'_>) -> Reason {
    let (spec, status) = (&pod["spec"], &pod["status"]);
    if phase == "Failed" || phase == "Succeeded" {
        return match text(status, "reason") {
            "" => container_gap(line).unwrap_or_else(|| Reason::new(phase, "its containers ended")),
            word => Reason::new(word, text(status, "message")),
        };
    }
    let node = text(spec, "nodeName");
    if node.is_empty() {
        return unplaced(pod, view);
    }
    node_gap(node, view)
        .or_else(|| container_gap(line))
        .or_else(|| {
            let untaken = status["containerStatuses"].is_null();
            untaken.then(|| Reason::new("NotTaken", format!("the agent of node {node} has not taken it yet")))
        })
        .or_else(|| warning(pod, view))
        .or_else(|| condition(pod, "Ready").map(reason_of))
        .unwrap_or_else(|| Reason::new(phase, ""))
}

fn unplaced(pod: &Value, view: &View<'_>) -> Reason {
    let scheduled = condition(pod, "PodScheduled").filter(|c| c["status"] == "False");
    if let Some(condition) = scheduled {
        return reason_of(condition);
    }
    match text(&pod["spec"], "schedulerName") {
        "" | DEFAULT_SCHEDULER => idle_controller(SCHEDULER, view)
            .or_else(|| warning(pod, view))
            .unwrap_or_else(|| Reason::new("NotScheduled", "waits for the scheduler to find a node")),
        other => Reason::new("NotScheduled", format!("waits for scheduler {other}, which it asks for")),
    }
}

/// What is wrong with a node.
fn node_gap(name: &str, view: &View<'_>) -> Option<Reason> {
    let nodes = view.facts.nodes.as_ref()?;
    let Some(node) = nodes.iter().find(|node| node["metadata"]["name"] == name) else {
        return Some(Reason::new("NodeLost", format!("there is no node {name}")));
    };
    let ready = condition(node, "Ready").filter(|c| c["status"] != "True")?;
    let said = reason_of(ready);
    Some(Reason::new(
        "NodeNotReady",
        format!("node {name}: {}", if said.message.is_empty() { said.word } else { said.message }),
    ))
}

/// The reason of the first container that has one.
fn container_gap(line: &Line) -> Option<Reason> {
    line.children.iter().find(|c| !c.converged).and_then(|container| {
        let reason = container.reason.clone()?;
        let told = if reason.message.is_empty() { String::new() } else { format!(": {}", reason.message) };
        Some(Reason::new(reason.word, format!("container {}{told}", container.name)))
    })
}

fn containers(pod: &Value, view: &View<'_>) -> Vec<Line> {
    let lists =
        [("initContainers", "initContainerStatuses", true), ("containers", "containerStatuses", false)];
    let mut lines = Vec::new();
    for (list, statuses, init) in lists {
        for container in pod["spec"][list].as_array().into_iter().flatten() {
            let statuses = pod["status"][statuses].as_array();
            let status = statuses.into_iter().flatten().find(|s| s["name"] == container["name"]);
            // An init container that restarts always is a sidecar: it is to run, not to end.
            let ends = init && container["restartPolicy"] != "Always";
            lines.push(container_line(pod, container, status, ends, view));
        }
    }
    lines
}

fn container_line(
    pod: &Value,
    container: &Value,
    status: Option<&Value>,
    ends: bool,
    view: &View<'_>,
) -> Line {
    let mut line = Line {
        kind: if ends { "init container" } else { "container" }.to_owned(),
        name: text(container, "name").to_owned(),
        desired: if ends { "completed" } else { "running and ready" }.to_owned(),
        actual: "not started".to_owned(),
        ..Line::default()
    };
    let Some(status) = status else { return line };
    let state = &status["state"];
    let may_end = ends || text(&pod["spec"], "restartPolicy") != "Always";
    if state["running"].is_object() {
        let since =
            age(&state["running"]["startedAt"], view.now).map(strata_model::age::human).unwrap_or_default();
        let ready = status["ready"] == true;
        line.actual = format!("running for {since}{}", restarts(status));
        line.converged = ready && !ends;
        if !line.converged {
            line.reason = Some(match ends {
                true => Reason::new("PodInitializing", "has not ended yet"),
                false => unready(pod, container, view),
            });
        }
    } else if state["terminated"].is_object() {
        let ended = &state["terminated"];
        let code = ended["exitCode"].as_i64().unwrap_or(0);
        line.actual = format!("ended with exit code {code}{}", restarts(status));
        line.converged = code == 0 && may_end;
        if !line.converged {
            line.reason = Some(ended_reason(ended));
        }
    } else {
        let waiting = &state["waiting"];
        line.actual = format!("waiting{}", restarts(status));
        line.reason = Some(waiting_reason(status, waiting, view));
    }
    line
}

fn restarts(status: &Value) -> String {
    match status["restartCount"].as_i64().unwrap_or(0) {
        0 => String::new(),
        1 => ", restarted once".to_owned(),
        n => format!(", restarted {n} times"),
    }
}

fn ended_reason(ended: &Value) -> Reason {
    let code = ended["exitCode"].as_i64().unwrap_or(0);
    let word = match text(ended, "reason") {
        "" => "Error",
        word => word,
    };
    let message = match text(ended, "message") {
        "" => format!("exit code {code}; `strata logs` shows what it wrote"),
        message => format!("exit code {code}: {message}"),
    };
    Reason::new(word, message)
}

fn waiting_reason(status: &Value, waiting: &Value, view: &View<'_>) -> Reason {
    let word = match text(waiting, "reason") {
        "" => "Waiting",
        word => word,
    };
    let last = &status["lastState"]["terminated"];
    if !last.is_object() {
        return Reason::new(word, text(waiting, "message"));
    }
    let ago = age(&last["finishedAt"], view.now)
        .map(|s| format!(" {} ago", strata_model::age::human(s)))
        .unwrap_or_default();
    // How it ended is the cause; that it is tried again with pauses is in the word.
    Reason::new(word, format!("it ended{ago}: {}", ended_reason(last).message))
}

fn unready(pod: &Value, container: &Value, view: &View<'_>) -> Reason {
    let probe = ["startupProbe", "readinessProbe"].iter().find(|probe| container[**probe].is_object());
    let told = common::warning(pod, view).filter(|reason| reason.word == "Unhealthy");
    match (told, probe) {
        (Some(reason), _) => reason,
        (None, Some(_)) => Reason::new("NotReady", "its probe has not succeeded yet"),
        (None, None) => Reason::new("NotReady", ""),
    }
}
