//! Defaults of a pod's spec, shared by pods and by the templates of everything that makes pods. Knows no object
//! around the spec.

use serde_json::{Map, Value, json};
use strata_model::quantity::Quantity;

use crate::value::{default, members_mut, object};

/// The lists of containers in a spec.
pub const CONTAINER_LISTS: [&str; 3] = ["initContainers", "containers", "ephemeralContainers"];

/// Mode of files of a volume without one.
const FILE_MODE: i64 = 0o644;

/// Fills a pod spec.
pub fn defaults(spec: &mut Map<String, Value>) {
    default(spec, "restartPolicy", "Always");
    default(spec, "terminationGracePeriodSeconds", 30);
    default(spec, "dnsPolicy", "ClusterFirst");
    default(spec, "schedulerName", "default-scheduler");
    default(spec, "securityContext", json!({}));
    if let Some(account) =
        spec.get("serviceAccountName").cloned().or_else(|| spec.get("serviceAccount").cloned())
    {
        default(spec, "serviceAccountName", account.clone());
        spec.insert("serviceAccount".to_owned(), account);
    }
    for name in CONTAINER_LISTS {
        for item in each(spec, name) {
            container(object(item));
        }
    }
    if spec.get("hostNetwork") == Some(&Value::Bool(true)) {
        for name in CONTAINER_LISTS {
            for item in each(spec, name) {
                for port in each(object(item), "ports") {
                    let own = port.get("containerPort").cloned().unwrap_or_default();
                    default(object(port), "hostPort", own);
                }
            }
        }
    }
    for volume in each(spec, "volumes") {
        self::volume(object(volume));
    }
}

fn each<'a>(map: &'a mut Map<String, Value>, name: &str) -> impl Iterator<Item = &'a mut Value> {
    map.get_mut(name).and_then(Value::as_array_mut).into_iter().flatten()
}

fn container(container: &mut Map<String, Value>) {
    let image = container.get("image").and_then(Value::as_str).unwrap_or_default();
    let policy = if is_latest(image) { "Always" } else { "IfNotPresent" };
    default(container, "imagePullPolicy", policy);
    default(container, "resources", json!({}));
    default(container, "terminationMessagePath", "/dev/termination-log");
    default(container, "terminationMessagePolicy", "File");
    for port in each(container, "ports") {
        default(object(port), "protocol", "TCP");
    }
    for env in each(container, "env") {
        if let Some(reference) = members_mut(env, &["valueFrom", "fieldRef"]) {
            default(reference, "apiVersion", "v1");
        }
    }
    for name in ["livenessProbe", "readinessProbe", "startupProbe"] {
        if let Some(found) = container.get_mut(name).and_then(Value::as_object_mut) {
            probe(found);
        }
    }
    for hook in ["postStart", "preStop"] {
        let get =
            container.get_mut("lifecycle").and_then(|l| l.get_mut(hook)).and_then(|h| h.get_mut("httpGet"));
        if let Some(get) = get.and_then(Value::as_object_mut) {
            http_get(get);
        }
    }
    if let Some(resources) = container.get_mut("resources") {
        self::resources(resources);
    }
}

fn probe(probe: &mut Map<String, Value>) {
    default(probe, "timeoutSeconds", 1);
    default(probe, "periodSeconds", 10);
    default(probe, "successThreshold", 1);
    default(probe, "failureThreshold", 3);
    if let Some(get) = probe.get_mut("httpGet").and_then(Value::as_object_mut) {
        http_get(get);
    }
    if let Some(grpc) = probe.get_mut("grpc").and_then(Value::as_object_mut) {
        default(grpc, "service", "");
    }
}

fn http_get(get: &mut Map<String, Value>) {
    default(get, "path", "/");
    default(get, "scheme", "HTTP");
}

fn resources(resources: &mut Value) {
    for part in ["limits", "requests"] {
        amounts(resources.get_mut(part));
    }
}

/// Writes every quantity of a map in its canonical form.
pub fn amounts(amounts: Option<&mut Value>) {
    for amount in amounts.and_then(Value::as_object_mut).into_iter().flat_map(|map| map.values_mut()) {
        let text = amount.as_str().map_or_else(|| amount.to_string(), str::to_owned);
        if let Ok(quantity) = text.parse::<Quantity>() {
            *amount = json!(quantity.to_string());
        }
    }
}

/// Limits without a request are requests too: what a pod has, and a template has not.
pub fn limits_into_requests(spec: &mut Map<String, Value>) {
    for name in CONTAINER_LISTS {
        for item in each(spec, name) {
            let Some(resources) = members_mut(item, &["resources"]) else { continue };
            let Some(limits) = resources.get("limits").and_then(Value::as_object).cloned() else { continue };
            let requests = object(resources.entry("requests").or_insert(Value::Null));
            for (resource, amount) in limits {
                default(requests, &resource, amount);
            }
        }
    }
}

fn volume(volume: &mut Map<String, Value>) {
    if !volume.keys().any(|key| key != "name") {
        volume.insert("emptyDir".to_owned(), json!({}));
    }
    for source in ["configMap", "secret", "projected", "downwardAPI"] {
        if let Some(found) = volume.get_mut(source).and_then(Value::as_object_mut) {
            default(found, "defaultMode", FILE_MODE);
        }
    }
    if let Some(path) = volume.get_mut("hostPath").and_then(Value::as_object_mut) {
        default(path, "type", "");
    }
}

/// Whether an image without a digest has the tag `latest` or none.
fn is_latest(image: &str) -> bool {
    if image.contains('@') {
        return false;
    }
    let last = image.rsplit('/').next().unwrap_or_default();
    last.split_once(':').is_none_or(|(_, tag)| tag == "latest")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_minimal_spec_is_filled_and_stays() {
        let mut spec = json!({"containers": [{"name": "c", "image": "nginx", "ports": [{"containerPort": 80}],
            "livenessProbe": {"httpGet": {"port": 80}}, "resources": {"limits": {"memory": "0.5Gi"}}}],
            "volumes": [{"name": "v"}, {"name": "w", "configMap": {"name": "x"}}]});
        defaults(object(&mut spec));
        let container = &spec["containers"][0];
        assert_eq!(container["imagePullPolicy"], "Always");
        assert_eq!(container["ports"][0]["protocol"], "TCP");
        assert_eq!(container["livenessProbe"]["httpGet"]["path"], "/");
        assert_eq!(container["resources"]["limits"]["memory"], "512Mi");
        assert_eq!(spec["volumes"][0]["emptyDir"], json!({}));
        assert_eq!(spec["volumes"][1]["configMap"]["defaultMode"], 420);
        let once = spec.clone();
        defaults(object(&mut spec));
        assert_eq!(spec, once);
    }

    #[test]
    fn the_tag_decides_how_images_are_pulled() {
        for (image, latest) in [
            ("nginx", true),
            ("nginx:latest", true),
            ("nginx:1", false),
            ("reg:5000/nginx", true),
            ("reg:5000/nginx:1", false),
            ("nginx@sha256:0", false),
        ] {
            assert_eq!(is_latest(image), latest, "{image}");
        }
    }
}
