//! The status of a pod as JSON, from the verdicts on its containers and the status so far. It must never
//! decide anything but words: the same verdicts over the same status give the same status again.

use jiff::Timestamp;
use k8s_openapi::api::core::v1::{ContainerStatus, Pod};
use serde_json::{Map, Value, json};
use strata_model::condition::{self, Condition, rfc3339};

use super::observed::{ContainerState, Exit, NodeFacts, address};
use super::restart::RestartPolicy;
use super::verdict::{Ended, Life, Verdict};

/// The phases of a pod.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Phase {
    /// Not all containers were started yet.
    Pending,
    /// At least one runs or will run again.
    Running,
    /// All ended well and stay so.
    Succeeded,
    /// All ended, at least one badly, and stay so.
    Failed,
}

impl Phase {
    /// The phase as the API spells it.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Pending => "Pending",
            Self::Running => "Running",
            Self::Succeeded => "Succeeded",
            Self::Failed => "Failed",
        }
    }

    /// Whether nothing will ever run again.
    pub fn is_final(self) -> bool {
        matches!(self, Self::Succeeded | Self::Failed)
    }
}

/// A reason for the phase of the whole pod, where there is one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PodReason {
    /// One CamelCase word.
    pub reason: &'static str,
    /// A sentence.
    pub message: String,
}

/// The phase that the verdicts on all containers make.
pub fn phase(inits: &[Life<'_>], mains: &[Life<'_>], policy: RestartPolicy) -> Phase {
    let failed_init = |life: &Life<'_>| !life.is_sidecar() && life.over().is_some_and(|exit| exit.code != 0);
    if policy == RestartPolicy::Never && inits.iter().any(failed_init) {
        return Phase::Failed;
    }
    if mains.iter().any(|life| waits_for_first_start(&life.verdict)) {
        return Phase::Pending;
    }
    let ends: Vec<&Exit> = mains.iter().filter_map(Life::over).collect();
    if ends.len() < mains.len() {
        Phase::Running
    } else if ends.iter().all(|exit| exit.code == 0) {
        Phase::Succeeded
    } else {
        Phase::Failed
    }
}

/// Whether a container waits and never ran before.
fn waits_for_first_start(verdict: &Verdict) -> bool {
    match verdict {
        Verdict::Held(_) | Verdict::Starting => true,
        Verdict::Start { after, .. } => after.is_none(),
        _ => false,
    }
}

/// Everything that a status is made of.
pub struct Facts<'a> {
    /// The pod, with its status so far.
    pub pod: &'a Pod,
    /// The same status as JSON.
    pub old: &'a Value,
    /// Where it runs.
    pub node: &'a NodeFacts,
    /// Its init containers in order.
    pub inits: &'a [Life<'a>],
    /// Its containers in order.
    pub mains: &'a [Life<'a>],
    /// The phase.
    pub phase: Phase,
    /// The reason for it.
    pub reason: Option<PodReason>,
    /// The present.
    pub now: Timestamp,
}

/// The whole new status: what is ours replaced, all else as it was.
pub fn build(facts: &Facts<'_>) -> Value {
    let mut status = facts.old.as_object().cloned().unwrap_or_default();
    let mut put = |name: &str, value: Value| status.insert(name.to_owned(), value);
    put("phase", json!(facts.phase.as_str()));
    put("hostIP", json!(facts.node.host_ip));
    put("hostIPs", json!([{"ip": facts.node.host_ip}]));
    let ip = address(facts.pod, &facts.node.host_ip);
    put("podIP", json!(ip));
    put("podIPs", json!([{"ip": ip}]));
    if facts.old["startTime"].is_null() {
        put("startTime", json!(rfc3339(facts.now)));
    }
    if let Some(PodReason { reason, message }) = &facts.reason {
        put("reason", json!(reason));
        put("message", json!(message));
    }
    let of = |lives: &[Life<'_>]| lives.iter().map(|life| container(life, facts)).collect::<Vec<_>>();
    put("containerStatuses", json!(of(facts.mains)));
    if !facts.inits.is_empty() {
        put("initContainerStatuses", json!(of(facts.inits)));
    }
    put("conditions", conditions(facts));
    Value::Object(status)
}

/// The status of one container.
fn container(life: &Life<'_>, facts: &Facts<'_>) -> Value {
    let told = life.told.as_ref();
    let newest = life.newest();
    let image = life.spec.image.clone().unwrap_or_default();
    let restarts = newest.map(|newest| i64::from(newest.key.attempt()));
    let restarts = restarts.unwrap_or_else(|| told.map_or(0, |told| i64::from(told.restart_count)));
    let ran = newest.is_some_and(|_| !matches!(life.verdict, Verdict::Starting));
    let id = newest.filter(|_| ran).map(|newest| newest.id.clone());
    let id = id.or_else(|| told.and_then(|told| told.container_id.clone())).unwrap_or_default();
    let image_id = if id.is_empty() { String::new() } else { format!("{}://{image}", facts.node.runtime) };
    let (started, ready) = match &life.verdict {
        Verdict::Running { started, ready, .. } => (*started, *ready),
        Verdict::Over(ended) => (false, life.init && ended.exit.code == 0),
        _ => (false, false),
    };
    let mut status = json!({
        "name": life.spec.name,
        "state": state(life, facts),
        "lastState": last_state(life),
        "ready": ready,
        "restartCount": restarts,
        "image": image,
        "imageID": image_id,
        "started": started,
    });
    if !id.is_empty() {
        status["containerID"] = json!(id);
    }
    status
}

fn state(life: &Life<'_>, facts: &Facts<'_>) -> Value {
    let waiting = |reason: &str, message: &str| {
        let mut waiting = json!({"reason": reason});
        if !message.is_empty() {
            waiting["message"] = json!(message);
        }
        json!({ "waiting": waiting })
    };
    match &life.verdict {
        Verdict::Held(held) => waiting(held.reason, &held.message),
        Verdict::Start { after: Some(ended), .. } | Verdict::Over(ended) => {
            json!({"terminated": terminated(ended)})
        }
        Verdict::Start { .. } | Verdict::Starting => waiting("ContainerCreating", ""),
        Verdict::Running { started_at, .. } => json!({"running": {"startedAt": rfc3339(*started_at)}}),
        Verdict::BackOff { seconds, .. } => {
            let meta = &facts.pod.metadata;
            let text = |value: &Option<String>| value.clone().unwrap_or_default();
            let pod = format!("{}_{}({})", text(&meta.name), text(&meta.namespace), text(&meta.uid));
            let name = &life.spec.name;
            let message =
                format!("back-off {} restarting failed container={name} pod={pod}", minutes(*seconds));
            waiting("CrashLoopBackOff", &message)
        }
    }
}

/// A back-off as it is commonly printed: `40s`, `1m20s`, `5m0s`.
fn minutes(seconds: u32) -> String {
    match seconds / 60 {
        0 => format!("{seconds}s"),
        minutes => format!("{minutes}m{}s", seconds % 60),
    }
}

/// How the attempt before the one that is the state ended: as seen, else as the status remembers.
fn last_state(life: &Life<'_>) -> Value {
    let is_state = matches!(life.verdict, Verdict::Over(_) | Verdict::Start { after: Some(_), .. });
    let before = life.attempts.iter().rev().skip(usize::from(is_state));
    let mut ends = before.filter_map(|attempt| match &attempt.state {
        ContainerState::Exited(exit) => Some(Ended { exit: exit.clone(), id: attempt.id.clone() }),
        _ => None,
    });
    if let Some(ended) = ends.next() {
        return json!({"terminated": terminated(&ended)});
    }
    let told = life.told.as_ref();
    // What was told as the state of another container than the newest is the last state now.
    let moved_on = |told: &&ContainerStatus| match life.newest() {
        Some(newest) => told.container_id.as_ref() != Some(&newest.id),
        None => matches!(life.verdict, Verdict::Start { .. }),
    };
    let state = told.filter(moved_on).and_then(|told| told.state.as_ref()?.terminated.as_ref());
    let last = told.and_then(|told| told.last_state.as_ref()?.terminated.as_ref());
    match state.or(last) {
        Some(terminated) => json!({ "terminated": terminated }),
        None => json!({}),
    }
}

fn terminated(ended: &Ended) -> Value {
    let Ended { exit, id } = ended;
    let mut state = Map::new();
    state.insert("exitCode".into(), json!(exit.code));
    state.insert("reason".into(), json!(exit.reason.as_str()));
    state.insert("finishedAt".into(), json!(rfc3339(exit.finished_at)));
    state.insert("startedAt".into(), json!(rfc3339(exit.started_at.unwrap_or(exit.finished_at))));
    state.insert("containerID".into(), json!(id));
    if let Some(signal) = exit.signal {
        state.insert("signal".into(), json!(signal));
    }
    if !exit.message.is_empty() {
        state.insert("message".into(), json!(exit.message));
    }
    Value::Object(state)
}

/// The pod's conditions: ours set, those of others kept as they are.
fn conditions(facts: &Facts<'_>) -> Value {
    let old = facts.old["conditions"].as_array().cloned().unwrap_or_default();
    let mut list = old;
    for new in ours(facts) {
        let place = list.iter().position(|value| value["type"] == new.type_.as_str());
        let known = place.and_then(|place| serde_json::from_value::<Condition>(list[place].clone()).ok());
        let mut one: Vec<Condition> = known.into_iter().collect();
        if !condition::set(&mut one, new, facts.now) {
            continue;
        }
        let value = json!(one[0]);
        match place {
            Some(place) => list[place] = value,
            None => list.push(value),
        }
    }
    Value::Array(list)
}

fn ours(facts: &Facts<'_>) -> Vec<Condition> {
    let done = facts.phase == Phase::Succeeded;
    let not = |lives: &[Life<'_>], fits: &dyn Fn(&Life<'_>) -> bool| {
        let names: Vec<&str> =
            lives.iter().filter(|life| !fits(life)).map(|life| life.spec.name.as_str()).collect();
        if names.is_empty() { None } else { Some(format!("[{}]", names.join(" "))) }
    };
    let passed = facts.mains.iter().any(|life| !life.attempts.is_empty());
    let incomplete = if passed { None } else { not(facts.inits, &|life| life.lets_pass()) };
    let serves = |life: &Life<'_>| matches!(life.verdict, Verdict::Running { ready: true, .. });
    let unready = not(facts.mains, &serves);
    let gates = facts.pod.spec.iter().flat_map(|spec| spec.readiness_gates.iter().flatten());
    let closed = gates.map(|gate| gate.condition_type.as_str()).find(|gate| !is_true(facts.old, gate));
    let containers = match &unready {
        Some(_) if done => no("ContainersReady", "PodCompleted", String::new()),
        Some(names) => {
            no("ContainersReady", "ContainersNotReady", format!("containers with unready status: {names}"))
        }
        None => yes("ContainersReady"),
    };
    let ready = match closed {
        Some(gate) if containers.status == "True" => {
            let message = format!(
                "corresponding condition of pod readiness gate {gate:?} does not exist or is not true"
            );
            no("Ready", "ReadinessGatesNotReady", message)
        }
        _ => Condition { type_: "Ready".into(), ..containers.clone() },
    };
    let initialized = match incomplete {
        Some(names) => no(
            "Initialized",
            "ContainersNotInitialized",
            format!("containers with incomplete status: {names}"),
        ),
        None if done => Condition { reason: "PodCompleted".into(), ..yes("Initialized") },
        None => yes("Initialized"),
    };
    vec![initialized, ready, containers, yes("PodScheduled")]
}

fn is_true(status: &Value, type_: &str) -> bool {
    let list = status["conditions"].as_array();
    list.into_iter().flatten().any(|condition| condition["type"] == type_ && condition["status"] == "True")
}

fn yes(type_: &str) -> Condition {
    Condition { type_: type_.into(), status: "True".into(), ..Condition::default() }
}

fn no(type_: &str, reason: &str, message: String) -> Condition {
    Condition {
        type_: type_.into(),
        status: "False".into(),
        reason: reason.into(),
        message,
        ..Condition::default()
    }
}
