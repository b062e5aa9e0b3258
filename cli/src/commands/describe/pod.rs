//! A pod.

use super::Subject;
use super::page::{NONE, Page, instant, text};
use super::template;

/// Describes a pod.
pub fn describe(page: &mut Page, subject: &Subject<'_>) {
    let pod = subject.object;
    let (spec, status) = (&pod["spec"], &pod["status"]);
    page.head(pod);
    page.line(0, &format!("Priority:\t{}", spec["priority"].as_i64().unwrap_or(0)));
    page.field(0, "Service Account", text(spec, "serviceAccountName"));
    let node = match (text(spec, "nodeName"), text(status, "hostIP")) {
        ("", _) => NONE.to_owned(),
        (node, ip) => format!("{node}/{ip}"),
    };
    page.field(0, "Node", &node);
    if status["startTime"].is_string() {
        page.field(0, "Start Time", &instant(&status["startTime"]));
    }
    page.marks(pod);
    if pod["metadata"]["deletionTimestamp"].is_string() {
        page.leaving(pod, subject.now);
        let grace = pod["metadata"]["deletionGracePeriodSeconds"].as_i64().unwrap_or(0);
        page.field(0, "Termination Grace Period", &format!("{grace}s"));
    } else {
        page.field(0, "Status", text(status, "phase"));
    }
    for (field, title) in [("reason", "Reason"), ("message", "Message")] {
        if !text(status, field).is_empty() {
            page.field(0, title, text(status, field));
        }
    }
    page.line(0, &format!("IP:\t{}", text(status, "podIP")));
    page.controller(pod);
    template::containers(page, 0, spec, status, Some(subject.now));
    page.conditions(pod);
    template::volumes(page, 0, spec);
    page.field(0, "QoS Class", text(status, "qosClass"));
    template::placement(page, 0, spec);
}
