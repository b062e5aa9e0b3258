//! Commands and variables, from specs in JSON.

use std::collections::BTreeMap;

use k8s_openapi::api::core::v1::Pod;
use serde_json::{Value, json};

use super::{Held, Launch, SourceRef, Sources, expand, launch, sources_of};
use crate::pod::observed::{ContainerKey, NodeFacts};

fn node() -> NodeFacts {
    NodeFacts {
        runtime: "process".into(),
        host_ip: "127.0.0.1".into(),
        user: Some(0),
        mounts: false,
        hooks: false,
        needs_command: true,
    }
}

fn start(container: Value, sources: &Sources) -> Result<Launch, Held> {
    let pod: Pod = serde_json::from_value(json!({
        "metadata": {"name": "web-0", "namespace": "shop", "uid": "u1", "labels": {"app": "web", "tier": "x"}},
        "spec": {"nodeName": "n1", "terminationGracePeriodSeconds": 5, "containers": [container]}
    }))
    .unwrap();
    let container = &pod.spec.as_ref().unwrap().containers[0];
    launch(&pod, container, ContainerKey::new("u1", "c", 0).unwrap(), &node(), sources)
}

fn env(container: Value, sources: &Sources) -> Vec<String> {
    let launch = start(container, sources).unwrap();
    launch.env.into_iter().map(|(name, value)| format!("{name}={value}")).collect()
}

#[test]
fn references_are_expanded_and_the_rest_is_left() {
    let known = BTreeMap::from([("A", "1"), ("B", "$(A)")]);
    for (text, want) in [
        ("x$(A)y", "x1y"),
        ("$(B)", "$(A)"),
        ("$$(A)", "$(A)"),
        ("$$$(A)", "$1"),
        ("$(NO)", "$(NO)"),
        ("$A $( $(A", "$A $( $(A"),
        ("5$", "5$"),
    ] {
        assert_eq!(expand(text, &known), want, "{text}");
    }
}

#[test]
fn command_and_args_are_one_command_with_variables_put_in() {
    let container = json!({"name": "c", "image": "host", "command": ["sh", "-c"], "args": ["echo $(WHO)"],
        "env": [{"name": "WHO", "value": "me"}]});
    let launch = start(container, &Sources::new()).unwrap();
    assert_eq!(launch.command, ["sh", "-c", "echo me"]);
    assert_eq!((launch.grace_seconds, launch.namespace.as_str()), (5, "shop"));
    let held = start(json!({"name": "c", "image": "host"}), &Sources::new()).unwrap_err();
    assert_eq!(held.reason, "CreateContainerConfigError");
    assert!(held.message.starts_with("no command specified"), "{}", held.message);
}

#[test]
fn the_downward_api_gives_what_is_known_of_the_pod() {
    let field = |path: &str| json!({"name": "X", "valueFrom": {"fieldRef": {"fieldPath": path}}});
    for (path, want) in [
        ("metadata.name", "web-0"),
        ("metadata.namespace", "shop"),
        ("metadata.uid", "u1"),
        ("metadata.labels['app']", "web"),
        ("metadata.labels['none']", ""),
        ("metadata.labels", "app=\"web\"\ntier=\"x\""),
        ("spec.nodeName", "n1"),
        ("status.podIP", &strata_model::addresses::of_pod("u1").to_string()),
        ("status.hostIP", "127.0.0.1"),
    ] {
        let container = json!({"name": "c", "command": ["x"], "env": [field(path)]});
        assert_eq!(env(container, &Sources::new()), [format!("X={want}")]);
    }
    let container = json!({"name": "c", "command": ["x"], "env": [field("spec.hostname")]});
    assert!(start(container, &Sources::new()).unwrap_err().message.contains("spec.hostname"));
}

#[test]
fn config_maps_and_secrets_fill_variables_and_the_missing_are_named() {
    let container = json!({"name": "c", "command": ["x"],
        "envFrom": [{"prefix": "P_", "configMapRef": {"name": "all"}},
            {"secretRef": {"name": "maybe", "optional": true}}],
        "env": [{"name": "P_B", "value": "own $(P_A)"},
            {"name": "T", "valueFrom": {"secretKeyRef": {"name": "s", "key": "token"}}},
            {"name": "O", "valueFrom": {"configMapKeyRef": {"name": "all", "key": "no", "optional": true}}}]});
    let pod: Pod = serde_json::from_value(json!({"spec": {"containers": [container]}})).unwrap();
    let wanted = sources_of(&pod.spec.as_ref().unwrap().containers[0]);
    let of = |name: &str| SourceRef::ConfigMap(name.into());
    let secret = |name: &str| SourceRef::Secret(name.into());
    assert_eq!(wanted.into_iter().collect::<Vec<_>>(), [of("all"), secret("maybe"), secret("s")]);
    let data = |pairs: &[(&str, &str)]| {
        Some(pairs.iter().map(|(key, value)| ((*key).to_owned(), (*value).to_owned())).collect())
    };
    let mut sources = Sources::from([(of("all"), data(&[("A", "1"), ("B", "2")])), (secret("maybe"), None)]);
    assert_eq!(start(container.clone(), &sources).unwrap_err().message, "secret \"s\" not found");
    sources.insert(secret("s"), data(&[("other", "x")]));
    assert_eq!(
        start(container.clone(), &sources).unwrap_err().message,
        "couldn't find key token in secret s"
    );
    sources.insert(secret("s"), data(&[("token", "t")]));
    assert_eq!(env(container, &sources), ["P_A=1", "P_B=2", "P_B=own 1", "T=t"]);
}

#[test]
fn what_the_runtime_cannot_give_is_said() {
    for (addition, want) in [
        (json!({"securityContext": {"runAsUser": 1000}}), "runAsUser 1000 is not possible"),
        (json!({"securityContext": {"runAsNonRoot": true}}), "runAsNonRoot"),
        (json!({"lifecycle": {"preStop": {"sleep": {"seconds": 1}}}}), "lifecycle hooks"),
        (json!({"volumeMounts": [{"name": "data", "mountPath": "/data"}]}), "volumeMounts \"data\" at /data"),
    ] {
        let mut container = json!({"name": "c", "command": ["x"]});
        container.as_object_mut().unwrap().extend(addition.as_object().unwrap().clone());
        let held = start(container, &Sources::new()).unwrap_err();
        assert!(held.message.contains(want), "{}", held.message);
    }
    let container = json!({"name": "c", "command": ["x"], "securityContext": {"runAsUser": 0},
        "volumeMounts": [{"name": "t", "mountPath": "/var/run/secrets/kubernetes.io/serviceaccount"}]});
    assert!(start(container, &Sources::new()).is_ok());
}
