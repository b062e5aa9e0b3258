//! What a pod names that lies beside it in its namespace: secrets, configuration, claims, its account. Pure.

use serde_json::Value;

use crate::value::{list, text};

/// What a pod may name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Named {
    /// A secret.
    Secret,
    /// A config map.
    ConfigMap,
    /// A claim on a volume.
    Claim,
    /// The account that it runs as.
    ServiceAccount,
}

/// Whether a pod names an object of a kind.
pub fn names(pod: &Value, what: Named, name: &str) -> bool {
    if name.is_empty() {
        return false;
    }
    let spec = pod.get("spec").unwrap_or(&Value::Null);
    match what {
        Named::ServiceAccount => match text(spec, &["serviceAccountName"]) {
            "" => name == "default",
            own => own == name,
        },
        Named::Secret => {
            list(spec, &["imagePullSecrets"]).iter().any(|secret| text(secret, &["name"]) == name)
                || mentions(spec, SECRETS, name)
        }
        Named::ConfigMap => mentions(spec, CONFIG_MAPS, name),
        Named::Claim => {
            let own = |volume: &Value| {
                let volume_name = text(volume, &["name"]);
                volume.get("ephemeral").is_some()
                    && name == format!("{}-{volume_name}", text(pod, &["metadata", "name"]))
            };
            mentions(spec, CLAIMS, name) || list(spec, &["volumes"]).iter().any(own)
        }
    }
}

/// Members that name something, and the member of them that is the name; without one, the member is it.
type Places = &'static [(&'static str, Option<&'static str>)];

const SECRETS: Places = &[
    ("secretKeyRef", Some("name")),
    ("secretRef", Some("name")),
    ("nodePublishSecretRef", Some("name")),
    ("secret", Some("name")),
    ("secret", Some("secretName")),
    ("secretName", None),
];
const CONFIG_MAPS: Places =
    &[("configMapKeyRef", Some("name")), ("configMapRef", Some("name")), ("configMap", Some("name"))];
const CLAIMS: Places = &[("persistentVolumeClaim", Some("claimName"))];

fn mentions(value: &Value, places: Places, name: &str) -> bool {
    match value {
        Value::Array(items) => items.iter().any(|item| mentions(item, places, name)),
        Value::Object(members) => members.iter().any(|(key, member)| {
            let here = places.iter().filter(|(place, _)| place == key).any(|(_, field)| match field {
                Some(field) => text(member, &[field]) == name,
                None => member.as_str() == Some(name),
            });
            here || mentions(member, places, name)
        }),
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn all_that_a_pod_names_is_found_and_nothing_else() {
        let pod = json!({"metadata": {"name": "p", "annotations": {"secretName": "no"}}, "spec": {
            "serviceAccountName": "account",
            "imagePullSecrets": [{"name": "pull"}],
            "containers": [{"env": [{"valueFrom": {"secretKeyRef": {"name": "key", "key": "k"}}},
                {"valueFrom": {"configMapKeyRef": {"name": "map-key", "key": "k"}}}],
                "envFrom": [{"secretRef": {"name": "all"}}, {"configMapRef": {"name": "map-all"}}]}],
            "volumes": [{"name": "a", "secret": {"secretName": "volume"}}, {"name": "b", "configMap": {"name": "map-volume"}},
                {"name": "c", "projected": {"sources": [{"secret": {"name": "projected"}}, {"configMap": {"name": "map-projected"}}]}},
                {"name": "d", "csi": {"nodePublishSecretRef": {"name": "csi"}}},
                {"name": "e", "persistentVolumeClaim": {"claimName": "claim"}}, {"name": "f", "ephemeral": {}}]}});
        for (what, all) in [
            (Named::Secret, &["pull", "key", "all", "volume", "projected", "csi"][..]),
            (Named::ConfigMap, &["map-key", "map-all", "map-volume", "map-projected"]),
            (Named::Claim, &["claim", "p-f"]),
            (Named::ServiceAccount, &["account"]),
        ] {
            for name in all {
                assert!(names(&pod, what, name), "{what:?} {name}");
            }
            for name in ["no", "p-e", "k", "", "default"] {
                assert!(!names(&pod, what, name), "{what:?} {name}");
            }
        }
        assert!(names(&json!({"spec": {}}), Named::ServiceAccount, "default"));
    }
}
