//! Deployments and ReplicaSets.

use serde_json::Value;

use super::Subject;
use super::page::{Page, instant, text, text_of};
use super::template;
use crate::commands::logs::selector_text;

/// A count; zero where it is absent.
pub fn count(value: &Value) -> i64 {
    value.as_i64().unwrap_or(0)
}

/// The selector of a workload.
pub fn selector(page: &mut Page, object: &Value) {
    page.field(0, "Selector", &selector_text(object).unwrap_or_default());
}

/// Describes a Deployment.
pub fn deployment(page: &mut Page, subject: &Subject<'_>) {
    let object = subject.object;
    let (spec, status) = (&object["spec"], &object["status"]);
    page.head(object);
    page.field(0, "CreationTimestamp", &instant(&object["metadata"]["creationTimestamp"]));
    page.marks(object);
    page.leaving(object, subject.now);
    selector(page, object);
    page.line(
        0,
        &format!(
            "Replicas:\t{} desired | {} updated | {} total | {} available | {} unavailable",
            spec["replicas"].as_i64().unwrap_or(1),
            count(&status["updatedReplicas"]),
            count(&status["replicas"]),
            count(&status["availableReplicas"]),
            count(&status["unavailableReplicas"])
        ),
    );
    page.field(0, "StrategyType", text(&spec["strategy"], "type"));
    page.line(0, &format!("MinReadySeconds:\t{}", count(&spec["minReadySeconds"])));
    let rolling = &spec["strategy"]["rollingUpdate"];
    if rolling.is_object() {
        let (unavailable, surge) = (text_of(&rolling["maxUnavailable"]), text_of(&rolling["maxSurge"]));
        page.field(0, "RollingUpdateStrategy", &format!("{unavailable} max unavailable, {surge} max surge"));
    }
    template::template(page, &spec["template"]);
    page.conditions(object);
    replica_sets(page, subject);
}

/// The ReplicaSets of the current template and of former ones.
fn replica_sets(page: &mut Page, subject: &Subject<'_>) {
    const REVISION: &str = "deployment.kubernetes.io/revision";
    let current = &subject.object["metadata"]["annotations"][REVISION];
    let shown = |set: &Value| {
        let (name, there) = (text(&set["metadata"], "name"), count(&set["status"]["replicas"]));
        format!("{name} ({there}/{} replicas created)", set["spec"]["replicas"].as_i64().unwrap_or(1))
    };
    let is_new = |set: &&Value| current.is_string() && set["metadata"]["annotations"][REVISION] == *current;
    let (new, old): (Vec<&Value>, Vec<&Value>) = subject.related.iter().partition(is_new);
    let old: Vec<String> = old.into_iter().map(shown).collect();
    page.field(0, "OldReplicaSets", &old.join(", "));
    page.field(0, "NewReplicaSet", &new.into_iter().map(shown).collect::<Vec<_>>().join(", "));
}

/// Describes a ReplicaSet.
pub fn replica_set(page: &mut Page, subject: &Subject<'_>) {
    let object = subject.object;
    page.head(object);
    selector(page, object);
    page.marks(object);
    page.leaving(object, subject.now);
    page.controller(object);
    let (wanted, there) =
        (object["spec"]["replicas"].as_i64().unwrap_or(1), count(&object["status"]["replicas"]));
    page.line(0, &format!("Replicas:\t{there} current / {wanted} desired"));
    pods_status(page, subject);
    template::template(page, &object["spec"]["template"]);
    page.conditions(object);
}

/// How many pods there are of each phase.
pub fn pods_status(page: &mut Page, subject: &Subject<'_>) {
    let phase = |phase: &str| subject.related.iter().filter(|pod| pod["status"]["phase"] == phase).count();
    page.line(
        0,
        &format!(
            "Pods Status:\t{} Running / {} Waiting / {} Succeeded / {} Failed",
            phase("Running"),
            phase("Pending"),
            phase("Succeeded"),
            phase("Failed")
        ),
    );
}
