//! StatefulSets and DaemonSets.

use super::Subject;
use super::page::{Page, instant, text, text_of};
use super::template;
use super::workload::{count, pods_status, selector};

/// Describes a StatefulSet.
pub fn stateful(page: &mut Page, subject: &Subject<'_>) {
    let object = subject.object;
    let (spec, status) = (&object["spec"], &object["status"]);
    page.head(object);
    page.field(0, "CreationTimestamp", &instant(&object["metadata"]["creationTimestamp"]));
    selector(page, object);
    page.marks(object);
    page.leaving(object, subject.now);
    let wanted = spec["replicas"].as_i64().unwrap_or(1);
    page.line(0, &format!("Replicas:\t{wanted} desired | {} total", count(&status["replicas"])));
    page.field(0, "Update Strategy", text(&spec["updateStrategy"], "type"));
    let partition = &spec["updateStrategy"]["rollingUpdate"]["partition"];
    if !partition.is_null() {
        page.field(1, "Partition", &text_of(partition));
    }
    pods_status(page, subject);
    template::template(page, &spec["template"]);
    let claims: Vec<&str> = spec["volumeClaimTemplates"]
        .as_array()
        .into_iter()
        .flatten()
        .map(|c| text(&c["metadata"], "name"))
        .collect();
    page.field(0, "Volume Claims", &claims.join(", "));
    page.conditions(object);
}

/// Describes a DaemonSet.
pub fn daemon(page: &mut Page, subject: &Subject<'_>) {
    let object = subject.object;
    let (spec, status) = (&object["spec"], &object["status"]);
    page.head(object);
    selector(page, object);
    let nodes = spec["template"]["spec"]["nodeSelector"].as_object();
    let nodes: Vec<String> =
        nodes.into_iter().flatten().map(|(key, value)| format!("{key}={}", text_of(value))).collect();
    page.field(0, "Node-Selector", &nodes.join(","));
    page.marks(object);
    page.leaving(object, subject.now);
    for (label, field) in [
        ("Desired Number of Nodes Scheduled", "desiredNumberScheduled"),
        ("Current Number of Nodes Scheduled", "currentNumberScheduled"),
        ("Number of Nodes Scheduled with Up-to-date Pods", "updatedNumberScheduled"),
        ("Number of Nodes Scheduled with Available Pods", "numberAvailable"),
        ("Number of Nodes Misscheduled", "numberMisscheduled"),
    ] {
        page.line(0, &format!("{label}: {}", count(&status[field])));
    }
    pods_status(page, subject);
    template::template(page, &spec["template"]);
    page.conditions(object);
}
