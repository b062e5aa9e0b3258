//! Nodes and namespaces, and what holds settings: ConfigMaps and Secrets.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;

use super::Subject;
use super::page::{NONE, Page, age, instant, text, text_of};

/// Labels that make a node's role.
const ROLE: &str = "node-role.kubernetes.io/";

/// Describes a node.
pub fn node(page: &mut Page, subject: &Subject<'_>) {
    let object = subject.object;
    let (spec, status) = (&object["spec"], &object["status"]);
    page.head(object);
    let labels = object["metadata"]["labels"].as_object();
    let roles: Vec<&str> =
        labels.into_iter().flatten().filter_map(|(key, _)| key.strip_prefix(ROLE)).collect();
    page.field(0, "Roles", &roles.join(","));
    page.marks(object);
    page.field(0, "CreationTimestamp", &instant(&object["metadata"]["creationTimestamp"]));
    let taints: Vec<String> = spec["taints"]
        .as_array()
        .into_iter()
        .flatten()
        .map(|t| match text(t, "value") {
            "" => format!("{}:{}", text(t, "key"), text(t, "effect")),
            value => format!("{}={value}:{}", text(t, "key"), text(t, "effect")),
        })
        .collect();
    page.fields(0, "Taints", &taints);
    page.field(0, "Unschedulable", if spec["unschedulable"] == true { "true" } else { "false" });
    page.conditions(object);
    page.line(0, "Addresses:");
    for address in status["addresses"].as_array().into_iter().flatten() {
        page.field(1, text(address, "type"), text(address, "address"));
    }
    for (field, title) in [("capacity", "Capacity"), ("allocatable", "Allocatable")] {
        page.line(0, &format!("{title}:"));
        for (name, amount) in status[field].as_object().into_iter().flatten() {
            page.field(1, name, &text_of(amount));
        }
    }
    page.line(0, "System Info:");
    for (name, value) in status["nodeInfo"].as_object().into_iter().flatten() {
        page.field(1, &super::generic::title(name), &text_of(value));
    }
    pods_on(page, subject);
}

fn pods_on(page: &mut Page, subject: &Subject<'_>) {
    let ended = |phase: &str| phase == "Succeeded" || phase == "Failed";
    let pods: Vec<_> = subject.related.iter().filter(|pod| !ended(text(&pod["status"], "phase"))).collect();
    page.line(0, &format!("Non-terminated Pods:\t({} in total)", pods.len()));
    page.line(1, "Namespace\tName\tStatus\tAge");
    page.line(1, "---------\t----\t------\t---");
    for pod in pods {
        let since = age(&pod["metadata"]["creationTimestamp"], subject.now)
            .map(strata_model::age::human)
            .unwrap_or_default();
        let (namespace, name) = (text(&pod["metadata"], "namespace"), text(&pod["metadata"], "name"));
        page.line(1, &format!("{namespace}\t{name}\t{}\t{since}", text(&pod["status"], "phase")));
    }
}

/// Describes a namespace.
pub fn namespace(page: &mut Page, subject: &Subject<'_>) {
    page.head(subject.object);
    page.marks(subject.object);
    page.field(0, "Status", text(&subject.object["status"], "phase"));
    page.conditions(subject.object);
}

/// Describes a ConfigMap.
pub fn config_map(page: &mut Page, subject: &Subject<'_>) {
    page.head(subject.object);
    page.marks(subject.object);
    page.line(0, "\nData\n====");
    for (key, value) in subject.object["data"].as_object().into_iter().flatten() {
        page.line(0, &format!("{key}:\n----\n{}\n", text_of(value)));
    }
    page.line(0, "\nBinaryData\n====");
    for (key, value) in subject.object["binaryData"].as_object().into_iter().flatten() {
        page.line(0, &format!("{key}: {} bytes", bytes(value.as_str())));
    }
}

/// Describes a Secret: sizes, never values.
pub fn secret(page: &mut Page, subject: &Subject<'_>) {
    page.head(subject.object);
    page.marks(subject.object);
    page.line(0, &format!("\nType:\t{}\n", text(subject.object, "type")));
    page.line(0, "Data\n====");
    let data = subject.object["data"].as_object();
    if data.is_none_or(|data| data.is_empty()) {
        page.line(0, NONE);
    }
    for (key, value) in data.into_iter().flatten() {
        page.line(0, &format!("{key}:\t{} bytes", bytes(value.as_str())));
    }
}

fn bytes(encoded: Option<&str>) -> usize {
    encoded.and_then(|text| STANDARD.decode(text).ok()).map_or(0, |bytes| bytes.len())
}
