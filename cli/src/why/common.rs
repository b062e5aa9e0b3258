//! What is true of objects of every type: deletion, generations, conditions, events, and who should be at work.

use jiff::Timestamp;
use serde_json::Value;

use super::{Line, Reason, View};

/// Which controller holds which type: group, kind, and the name of its lease.
const CONTROLLERS: [(&str, &str, &str); 12] = [
    ("apps", "Deployment", "deployment"),
    ("apps", "ReplicaSet", "replicaset"),
    ("apps", "StatefulSet", "statefulset"),
    ("apps", "DaemonSet", "daemonset"),
    ("", "ReplicationController", "replicationcontroller"),
    ("batch", "Job", "job"),
    ("batch", "CronJob", "cronjob"),
    ("policy", "PodDisruptionBudget", "disruption"),
    ("", "ResourceQuota", "resourcequota"),
    ("certificates.k8s.io", "CertificateSigningRequest", "certificatesigning"),
    ("", "Namespace", "namespace"),
    ("argoproj.io", "Application", "application"),
];

/// The controller that places pods.
pub const SCHEDULER: &str = "scheduler";
/// The controller that removes what nobody owns.
pub const GARBAGE: &str = "garbage";

/// Conditions that are True when all is well.
const GOOD_WHEN_TRUE: [&str; 5] = ["Ready", "Available", "Established", "Complete", "Healthy"];

/// A text at a field, empty where there is none.
pub fn text<'a>(value: &'a Value, field: &str) -> &'a str {
    value[field].as_str().unwrap_or_default()
}

/// Seconds since an instant, if it is one.
pub fn age(at: &Value, now: Timestamp) -> Option<i64> {
    let at: Timestamp = at.as_str()?.parse().ok()?;
    Some(now.as_second() - at.as_second())
}

/// A condition of an object.
pub fn condition<'a>(object: &'a Value, type_: &str) -> Option<&'a Value> {
    object["status"]["conditions"].as_array()?.iter().find(|c| c["type"] == type_)
}

/// What a condition gives as its reason.
pub fn reason_of(condition: &Value) -> Reason {
    let word = match text(condition, "reason") {
        "" => format!("{}={}", text(condition, "type"), text(condition, "status")),
        word => word.to_owned(),
    };
    Reason::new(word, text(condition, "message"))
}

/// The newest warning about an object.
pub fn warning(object: &Value, view: &View<'_>) -> Option<Reason> {
    let uid = &object["metadata"]["uid"];
    let when = |event: &Value| {
        ["lastTimestamp", "eventTime", "firstTimestamp"]
            .iter()
            .find_map(|f| event[*f].as_str())
            .unwrap_or_default()
            .to_owned()
    };
    let about =
        view.facts.events.iter().filter(|e| e["type"] == "Warning" && e["involvedObject"]["uid"] == *uid);
    let newest = about.max_by_key(|event| when(event))?;
    Some(Reason::new(text(newest, "reason"), text(newest, "message")))
}

/// Whether a controller is at work, as far as its lease tells; the reason says that it is not.
pub fn idle_controller(name: &str, view: &View<'_>) -> Option<Reason> {
    let leases = view.facts.leases.as_ref()?;
    let start = format!("start it with `strata controller {name}`, or see what `strata up` says of it");
    let Some(lease) = leases.iter().find(|lease| lease["metadata"]["name"] == name) else {
        return Some(Reason::new(
            "ControllerNotRunning",
            format!("the {name} controller has no lease; {start}"),
        ));
    };
    let holder = text(&lease["spec"], "holderIdentity");
    let since = age(&lease["spec"]["renewTime"], view.now)?;
    let allowed = lease["spec"]["leaseDurationSeconds"].as_i64().unwrap_or(15);
    if !holder.is_empty() && since <= allowed {
        return None;
    }
    let ago = strata_model::age::human(since);
    Some(Reason::new(
        "ControllerNotRunning",
        format!("the {name} controller last renewed its lease {ago} ago; {start}"),
    ))
}

/// The controller that should be at work on an object, if it is not.
pub fn idle_owner(object: &Value, view: &View<'_>) -> Option<Reason> {
    let group = text(object, "apiVersion").split_once('/').map_or("", |(group, _)| group);
    let held = |(g, kind, _): &&(&str, &str, &str)| *g == group && *kind == text(object, "kind");
    let (_, _, controller) = CONTROLLERS.iter().find(held)?;
    idle_controller(controller, view)
}

/// Why it is on its way out and still there.
pub fn leaving(object: &Value, view: &View<'_>) -> Option<Reason> {
    let metadata = &object["metadata"];
    let since = age(&metadata["deletionTimestamp"], view.now)?;
    let finalizers: Vec<&str> =
        metadata["finalizers"].as_array().into_iter().flatten().filter_map(Value::as_str).collect();
    let ago = if since > 0 {
        format!("deleted {} ago", strata_model::age::human(since))
    } else {
        "being deleted".to_owned()
    };
    if finalizers.is_empty() {
        return Some(Reason::new("Terminating", ago));
    }
    let dependents = finalizers.contains(&"foregroundDeletion");
    if let (true, Some(idle)) = (dependents || finalizers.contains(&"orphan"), idle_controller(GARBAGE, view))
    {
        return Some(idle);
    }
    let waits = match dependents {
        true => "the objects it owns go first".to_owned(),
        false => format!("waits for its finalizers: {}", finalizers.join(", ")),
    };
    Some(Reason::new("Finalizers", format!("{ago}; {waits}")))
}

/// Whether its controller has seen the newest wish; the reason says that it has not.
pub fn unseen(object: &Value, view: &View<'_>) -> Option<Reason> {
    let generation = object["metadata"]["generation"].as_i64()?;
    let observed = match &object["status"]["observedGeneration"] {
        Value::Null if object["spec"]["template"].is_null() => return None,
        observed => observed.as_i64().unwrap_or(0),
    };
    if observed >= generation {
        return None;
    }
    let seen = if observed == 0 { "none yet".to_owned() } else { format!("generation {observed}") };
    let message = format!("its controller has not seen generation {generation} (it saw {seen})");
    Some(idle_owner(object, view).unwrap_or_else(|| Reason::new("NotObserved", message)))
}

/// An object of no special shape: its phase and conditions speak.
pub fn fill(line: &mut Line, object: &Value, view: &View<'_>) {
    let status = &object["status"];
    let ready = GOOD_WHEN_TRUE.iter().find_map(|type_| condition(object, type_));
    let phase = text(status, "phase");
    line.desired = "as declared".to_owned();
    line.actual = match (phase, ready) {
        ("", Some(c)) if c["status"] == "True" => text(c, "type").to_owned(),
        ("", Some(c)) => format!("{} is {}", text(c, "type"), text(c, "status")),
        ("", None) => "there".to_owned(),
        (phase, _) => phase.to_owned(),
    };
    let remaining = ["NamespaceContentRemaining", "NamespaceFinalizersRemaining"];
    let held =
        remaining.iter().filter_map(|t| condition(object, t)).find(|c| c["status"] == "True").map(reason_of);
    line.reason = match leaving(object, view) {
        Some(reason) => Some(held.or_else(|| idle_owner(object, view)).unwrap_or(reason)),
        None => unseen(object, view).or_else(|| {
            let fault = ready.filter(|c| c["status"] != "True").map(reason_of);
            fault.or_else(|| phase.eq("Failed").then(|| reason_of(status)))
        }),
    };
    if line.reason.is_some() && !object["metadata"]["deletionTimestamp"].is_null() {
        line.desired = "gone".to_owned();
        line.actual = "Terminating".to_owned();
    }
    line.converged = line.reason.is_none();
}
