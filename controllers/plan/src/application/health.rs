//! How an object is: Argo CD's words, by built-in kind, and by shape (conditions, generations) for all others. Total: what
//! says nothing of itself has no health, and counts as well.

use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::types::GROUP;

/// How something is. In the order in which the worst wins.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub enum HealthWord {
    /// All is well.
    Healthy,
    /// It rests because somebody wished so.
    Suspended,
    /// It is on its way.
    Progressing,
    /// It should be there and is not.
    Missing,
    /// It is not well, and time alone does not help.
    Degraded,
    /// Nobody can tell.
    #[default]
    #[serde(other)]
    Unknown,
}

impl HealthWord {
    /// The word.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Healthy => "Healthy",
            Self::Suspended => "Suspended",
            Self::Progressing => "Progressing",
            Self::Missing => "Missing",
            Self::Degraded => "Degraded",
            Self::Unknown => "Unknown",
        }
    }
}

/// How an object is, and why.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Health {
    /// The word.
    pub status: HealthWord,
    /// Why, for people; empty where there is nothing to say.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub message: String,
}

impl Health {
    /// A word with a reason.
    pub fn new(status: HealthWord, message: impl Into<String>) -> Self {
        Self { status, message: message.into() }
    }

    fn healthy() -> Option<Self> {
        Some(Self::new(HealthWord::Healthy, ""))
    }
}

/// How one kind is assessed.
type Assess = fn(&Value) -> Option<Health>;

/// The kinds with words of their own: group, kind.
const KINDS: &[(&str, &str, Assess)] = &[
    ("apps", "Deployment", deployment),
    ("apps", "ReplicaSet", replica_set),
    ("apps", "StatefulSet", stateful_set),
    ("apps", "DaemonSet", daemon_set),
    ("", "ReplicationController", replica_set),
    ("", "Pod", pod),
    ("", "Service", service),
    ("", "PersistentVolumeClaim", claim),
    ("batch", "Job", job),
    ("batch", "CronJob", cron_job),
    ("networking.k8s.io", "Ingress", ingress),
    ("autoscaling", "HorizontalPodAutoscaler", autoscaler),
    ("apiregistration.k8s.io", "APIService", api_service),
    ("apiextensions.k8s.io", "CustomResourceDefinition", definition),
    (GROUP, "Application", application),
];

/// How an object is; `None`: its kind has nothing that could be unwell.
pub fn health(object: &Value) -> Option<Health> {
    if !object["metadata"]["deletionTimestamp"].is_null() {
        return Some(Health::new(HealthWord::Progressing, "Pending deletion"));
    }
    let api_version = object["apiVersion"].as_str().unwrap_or_default();
    let group = api_version.split_once('/').map_or("", |(group, _)| group);
    let kind = object["kind"].as_str().unwrap_or_default();
    match KINDS.iter().find(|(g, k, _)| *g == group && *k == kind) {
        Some((_, _, assess)) => assess(object),
        None => by_shape(object),
    }
}

/// The worst of many; nothing at all is well.
pub fn worst(words: impl IntoIterator<Item = HealthWord>) -> HealthWord {
    words.into_iter().max().unwrap_or(HealthWord::Healthy)
}

fn progressing(message: impl Into<String>) -> Option<Health> {
    Some(Health::new(HealthWord::Progressing, message))
}

fn degraded(message: impl Into<String>) -> Option<Health> {
    Some(Health::new(HealthWord::Degraded, message))
}

fn count(value: &Value, field: &str) -> i64 {
    value[field].as_i64().unwrap_or(0)
}

fn name(object: &Value) -> &str {
    object["metadata"]["name"].as_str().unwrap_or_default()
}

fn is_behind(object: &Value) -> bool {
    count(&object["status"], "observedGeneration") < count(&object["metadata"], "generation")
}

fn condition<'a>(object: &'a Value, type_: &str) -> Option<&'a Value> {
    object["status"]["conditions"].as_array()?.iter().find(|c| c["type"] == type_)
}

fn says(object: &Value, type_: &str, status: &str) -> Option<String> {
    let found = condition(object, type_).filter(|c| c["status"] == status)?;
    Some(found["message"].as_str().unwrap_or_default().to_owned())
}

fn deployment(object: &Value) -> Option<Health> {
    let (spec, status) = (&object["spec"], &object["status"]);
    if spec["paused"] == true {
        return Some(Health::new(HealthWord::Suspended, "Deployment is paused"));
    }
    if is_behind(object) {
        return progressing(
            "Waiting for rollout to finish: observed deployment generation less than desired generation",
        );
    }
    if condition(object, "Progressing").is_some_and(|c| c["reason"] == "ProgressDeadlineExceeded") {
        return degraded(format!("Deployment {:?} exceeded its progress deadline", name(object)));
    }
    let wanted = spec["replicas"].as_i64().unwrap_or(1);
    let (updated, all) = (count(status, "updatedReplicas"), count(status, "replicas"));
    let available = count(status, "availableReplicas");
    if updated < wanted {
        return progressing(format!(
            "Waiting for rollout to finish: {updated} out of {wanted} new replicas have been updated..."
        ));
    }
    if all > updated {
        return progressing(format!(
            "Waiting for rollout to finish: {} old replicas are pending termination...",
            all - updated
        ));
    }
    if available < updated {
        return progressing(format!(
            "Waiting for rollout to finish: {available} of {updated} updated replicas are available..."
        ));
    }
    Health::healthy()
}

fn replica_set(object: &Value) -> Option<Health> {
    if is_behind(object) {
        return progressing(
            "Waiting for rollout to finish: observed replica set generation less than desired generation",
        );
    }
    if let Some(why) = says(object, "ReplicaFailure", "True") {
        return degraded(why);
    }
    let wanted = object["spec"]["replicas"].as_i64().unwrap_or(1);
    let available = count(&object["status"], "availableReplicas");
    if available < wanted {
        return progressing(format!(
            "Waiting for rollout to finish: {available} out of {wanted} new replicas are available..."
        ));
    }
    Health::healthy()
}

fn stateful_set(object: &Value) -> Option<Health> {
    let (spec, status) = (&object["spec"], &object["status"]);
    if is_behind(object) {
        return progressing("Waiting for statefulset spec update to be observed...");
    }
    let wanted = spec["replicas"].as_i64().unwrap_or(1);
    let ready = count(status, "readyReplicas");
    if ready < wanted {
        return progressing(format!("Waiting for {} pods to be ready...", wanted - ready));
    }
    if spec["updateStrategy"]["type"] == "OnDelete" {
        return Some(Health::new(
            HealthWord::Healthy,
            format!("statefulset has {ready} ready pods, updated as they are deleted"),
        ));
    }
    let partition = count(&spec["updateStrategy"]["rollingUpdate"], "partition");
    let updated = count(status, "updatedReplicas");
    if partition > 0 && updated < wanted - partition {
        return progressing(format!(
            "Waiting for partitioned roll out to finish: {updated} out of {} new pods have been updated...",
            wanted - partition
        ));
    }
    if partition == 0 && status["updateRevision"] != status["currentRevision"] {
        return progressing(format!(
            "waiting for statefulset rolling update to complete {updated} pods at revision {}...",
            status["updateRevision"].as_str().unwrap_or_default()
        ));
    }
    Health::healthy()
}

fn daemon_set(object: &Value) -> Option<Health> {
    let status = &object["status"];
    if is_behind(object) {
        return progressing(
            "Waiting for rollout to finish: observed daemon set generation less than desired generation",
        );
    }
    let wanted = count(status, "desiredNumberScheduled");
    let updated = count(status, "updatedNumberScheduled");
    let on_delete = object["spec"]["updateStrategy"]["type"] == "OnDelete";
    if !on_delete && updated < wanted {
        return progressing(format!(
            "Waiting for daemon set {:?} rollout to finish: {updated} out of {wanted} new pods have been updated...",
            name(object)
        ));
    }
    let available = count(status, "numberAvailable");
    if available < wanted {
        return progressing(format!(
            "Waiting for daemon set {:?} rollout to finish: {available} of {wanted} updated pods are available...",
            name(object)
        ));
    }
    Health::healthy()
}

/// Reasons of waiting containers that do not pass by themselves.
fn is_bad_wait(reason: &str) -> bool {
    reason.starts_with("Err") || reason.ends_with("Error") || reason.ends_with("BackOff")
}

fn pod(object: &Value) -> Option<Health> {
    let status = &object["status"];
    let message = status["message"].as_str().unwrap_or_default();
    let containers = ["initContainerStatuses", "containerStatuses"];
    let all = containers.iter().filter_map(|list| status[*list].as_array()).flatten();
    let always = object["spec"]["restartPolicy"].as_str().unwrap_or("Always") == "Always";
    for container in all {
        let waiting = &container["state"]["waiting"];
        if always && waiting["reason"].as_str().is_some_and(is_bad_wait) {
            let why = waiting["message"].as_str().or(waiting["reason"].as_str()).unwrap_or_default();
            return degraded(why);
        }
    }
    match status["phase"].as_str().unwrap_or_default() {
        "Pending" => progressing(message),
        "Succeeded" => Some(Health::new(HealthWord::Healthy, message)),
        "Failed" if message.is_empty() => {
            degraded(status["reason"].as_str().unwrap_or("a container ended with an error"))
        }
        "Failed" => degraded(message),
        "Running" if !always => progressing(message),
        "Running" if says(object, "Ready", "True").is_some() => {
            Some(Health::new(HealthWord::Healthy, message))
        }
        "Running" => progressing(says(object, "Ready", "False").unwrap_or_default()),
        _ => Some(Health::new(HealthWord::Unknown, message)),
    }
}

fn service(object: &Value) -> Option<Health> {
    if object["spec"]["type"] != "LoadBalancer" {
        return Health::healthy();
    }
    match object["status"]["loadBalancer"]["ingress"].as_array() {
        Some(list) if !list.is_empty() => Health::healthy(),
        _ => progressing("Waiting for a load balancer"),
    }
}

fn ingress(object: &Value) -> Option<Health> {
    match object["status"]["loadBalancer"]["ingress"].as_array() {
        Some(list) if !list.is_empty() => Health::healthy(),
        _ => progressing("Waiting for a load balancer"),
    }
}

fn claim(object: &Value) -> Option<Health> {
    match object["status"]["phase"].as_str() {
        Some("Bound") => Health::healthy(),
        Some("Lost") => degraded("the volume is lost"),
        _ => progressing("Waiting for a volume"),
    }
}

fn job(object: &Value) -> Option<Health> {
    if let Some(why) = says(object, "Failed", "True") {
        return degraded(why);
    }
    if let Some(why) = says(object, "Complete", "True") {
        return Some(Health::new(HealthWord::Healthy, why));
    }
    if object["spec"]["suspend"] == true || says(object, "Suspended", "True").is_some() {
        return Some(Health::new(HealthWord::Suspended, "Job is suspended"));
    }
    progressing("the Job runs")
}

fn cron_job(object: &Value) -> Option<Health> {
    match object["spec"]["suspend"] == true {
        true => Some(Health::new(HealthWord::Suspended, "CronJob is suspended")),
        false => Health::healthy(),
    }
}

fn autoscaler(object: &Value) -> Option<Health> {
    for (type_, is_fault) in [("AbleToScale", true), ("ScalingActive", true)] {
        if let Some(why) = says(object, type_, "False").filter(|_| is_fault) {
            return degraded(why);
        }
    }
    match says(object, "AbleToScale", "True") {
        Some(why) => Some(Health::new(HealthWord::Healthy, why)),
        None => progressing("Waiting to autoscale"),
    }
}

fn api_service(object: &Value) -> Option<Health> {
    match says(object, "Available", "True") {
        Some(why) => Some(Health::new(HealthWord::Healthy, why)),
        None => progressing(says(object, "Available", "False").unwrap_or_default()),
    }
}

fn definition(object: &Value) -> Option<Health> {
    if let Some(why) = says(object, "NamesAccepted", "False") {
        return degraded(why);
    }
    match says(object, "Established", "True") {
        Some(_) => Health::healthy(),
        None => progressing("the type is not served yet"),
    }
}

/// An Application within another one is as it says itself.
fn application(object: &Value) -> Option<Health> {
    let health = &object["status"]["health"];
    match serde_json::from_value::<Health>(health.clone()) {
        Ok(found) if health["status"].is_string() => Some(found),
        _ => progressing("the Application was not looked at yet"),
    }
}

/// Conditions that say that time alone does not help.
const BAD_WHEN_TRUE: [&str; 3] = ["Stalled", "Degraded", "Failed"];
/// Conditions that are True when all is well.
const GOOD_WHEN_TRUE: [&str; 4] = ["Ready", "Available", "Healthy", "Synced"];

/// Custom types, and all others without words of their own.
fn by_shape(object: &Value) -> Option<Health> {
    let status = &object["status"];
    if !status["observedGeneration"].is_null() && is_behind(object) {
        return progressing("its controller has not seen the newest generation");
    }
    status["conditions"].as_array().filter(|list| !list.is_empty())?;
    if let Some(why) = BAD_WHEN_TRUE.iter().find_map(|bad| says(object, bad, "True")) {
        return degraded(why);
    }
    for good in GOOD_WHEN_TRUE {
        match condition(object, good).map(|c| (&c["status"], &c["message"])) {
            Some((status, _)) if status == "True" => {}
            Some((_, message)) => return progressing(message.as_str().unwrap_or_default()),
            None => {}
        }
    }
    Health::healthy()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn word(object: Value) -> Option<HealthWord> {
        health(&object).map(|h| h.status)
    }

    #[test]
    fn each_kind_has_its_words() {
        use HealthWord::{Degraded, Healthy, Missing, Progressing, Suspended};
        let deployment = |status: Value| {
            json!({"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "d", "generation": 2},
                "spec": {"replicas": 2}, "status": status})
        };
        let pod = |status: Value| json!({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "p"}, "spec": {}, "status": status});
        let custom = |status: Value| json!({"apiVersion": "e.io/v1", "kind": "Thing", "metadata": {"generation": 2}, "status": status});
        let cases = [
            (deployment(json!({"observedGeneration": 1})), Some(Progressing)),
            (
                deployment(json!({"observedGeneration": 2, "replicas": 2, "updatedReplicas": 2,
                "availableReplicas": 1})),
                Some(Progressing),
            ),
            (
                deployment(json!({"observedGeneration": 2, "replicas": 2, "updatedReplicas": 2,
                "availableReplicas": 2})),
                Some(Healthy),
            ),
            (
                deployment(json!({"observedGeneration": 2, "conditions": [
                {"type": "Progressing", "status": "False", "reason": "ProgressDeadlineExceeded"}]})),
                Some(Degraded),
            ),
            (
                json!({"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {}, "spec": {"paused": true}}),
                Some(Suspended),
            ),
            (
                pod(json!({"phase": "Running", "conditions": [{"type": "Ready", "status": "True"}]})),
                Some(Healthy),
            ),
            (pod(json!({"phase": "Pending"})), Some(Progressing)),
            (
                pod(json!({"phase": "Running", "containerStatuses": [
                {"state": {"waiting": {"reason": "CrashLoopBackOff"}}}]})),
                Some(Degraded),
            ),
            (json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {}}), None),
            (json!({"apiVersion": "v1", "kind": "Service", "metadata": {}, "spec": {}}), Some(Healthy)),
            (
                json!({"apiVersion": "v1", "kind": "Service", "metadata": {}, "spec": {"type": "LoadBalancer"}}),
                Some(Progressing),
            ),
            (
                json!({"apiVersion": "batch/v1", "kind": "Job", "metadata": {}, "status": {"conditions": [
                {"type": "Failed", "status": "True"}]}}),
                Some(Degraded),
            ),
            (custom(json!({"observedGeneration": 1})), Some(Progressing)),
            (custom(json!({"conditions": [{"type": "Ready", "status": "False"}]})), Some(Progressing)),
            (custom(json!({"conditions": [{"type": "Stalled", "status": "True"}]})), Some(Degraded)),
            (custom(json!({"conditions": [{"type": "Ready", "status": "True"}]})), Some(Healthy)),
            (custom(Value::Null), None),
            (
                json!({"apiVersion": "argoproj.io/v1alpha1", "kind": "Application", "metadata": {},
                "status": {"health": {"status": "Missing"}}}),
                Some(Missing),
            ),
            (
                json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {
                "deletionTimestamp": "2026-11-30T10:00:00Z"}}),
                Some(Progressing),
            ),
        ];
        for (object, expected) in cases {
            assert_eq!(word(object.clone()), expected, "{object}");
        }
    }

    #[test]
    fn the_worst_wins_and_nothing_is_well() {
        use HealthWord::{Degraded, Healthy, Missing, Unknown};
        assert_eq!(worst([]), Healthy);
        assert_eq!(worst([Healthy, Missing, Degraded]), Degraded);
        assert_eq!(worst([Degraded, Unknown]), Unknown);
        assert_eq!(serde_json::from_value::<HealthWord>(json!("Novel")).unwrap(), Unknown);
    }
}
