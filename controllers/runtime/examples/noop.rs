//! Measures what a key costs that is as it should be: the CPU time of observing and planning each one of a converged
//! world (200 Deployments of 50 pods), cold (nothing is parsed yet) and again.
//!
//! `cargo run --release -p strata-runtime --example noop`

use std::sync::Arc;

use jiff::Timestamp;
use serde_json::{Value, json};
use strata_client::event::Event;
use strata_model::object::{Object, ObjectKey};
use strata_model::resource::{ResourceType, builtin};
use strata_plan::controller::{Controller, Key};
use strata_plan::deployment::Deployments;
use strata_plan::replicaset::ReplicaSets;
use strata_runtime::cache::Cache;

const DEPLOYMENTS: usize = 200;
const PODS: usize = 50;
const ROUNDS: u32 = 50;

type Failure = Box<dyn std::error::Error>;

fn main() -> Result<(), Failure> {
    let mut cache = Cache::new([
        builtin::DEPLOYMENT.id.clone(),
        builtin::REPLICA_SET.id.clone(),
        builtin::POD.id.clone(),
    ]);
    for n in 0..DEPLOYMENTS {
        let (name, set) = (format!("web-{n:03}"), format!("web-{n:03}-5d4f8"));
        put(&mut cache, &builtin::DEPLOYMENT, &deployment(&name))?;
        put(&mut cache, &builtin::REPLICA_SET, &replica_set(&name, &set))?;
        for p in 0..PODS {
            put(&mut cache, &builtin::POD, &pod(&set, p))?;
        }
    }
    let names = |suffix: &str| -> Vec<ObjectKey> {
        (0..DEPLOYMENTS).map(|n| ObjectKey::new("default", format!("web-{n:03}{suffix}"))).collect()
    };
    measure(&Deployments, &cache, &builtin::DEPLOYMENT, names(""))?;
    measure(&ReplicaSets, &cache, &builtin::REPLICA_SET, names("-5d4f8"))
}

fn measure<C: Controller>(
    controller: &C,
    cache: &Cache,
    resource: &ResourceType,
    objects: Vec<ObjectKey>,
) -> Result<(), Failure> {
    let keys: Vec<Key> = objects.into_iter().map(|object| Key::new(resource, object)).collect();
    let now = Timestamp::now();
    let round = || -> Result<f64, Failure> {
        let before = cpu_nanos()?;
        for key in &keys {
            let observed = controller.observe(cache, key)?.ok_or("the key is gone")?;
            let plan = controller.plan(&observed, now);
            if !plan.actions.is_empty() {
                return Err(format!("{key} is not converged: {:#?}", plan.actions).into());
            }
        }
        Ok((cpu_nanos()? - before) / 1000.0 / keys.len() as f64)
    };
    let cold = round()?;
    let mut warm = Vec::new();
    for _ in 0..ROUNDS {
        warm.push(round()?);
    }
    warm.sort_by(f64::total_cmp);
    println!("{:<12} cold {cold:7.1} us/key   again {:6.2} us/key", controller.name(), warm[warm.len() / 2]);
    Ok(())
}

/// CPU time of this thread.
fn cpu_nanos() -> Result<f64, Failure> {
    let text = std::fs::read_to_string("/proc/thread-self/schedstat")?;
    Ok(text.split_whitespace().next().ok_or("no time")?.parse()?)
}

fn put(cache: &mut Cache, resource: &ResourceType, value: &Value) -> Result<(), Failure> {
    let object = Object::from_bytes(serde_json::to_vec(value)?)?;
    cache.apply(&resource.id, Event::Applied(Arc::new(object), 1));
    Ok(())
}

fn meta(name: &str, owner: Option<(&str, &str)>) -> Value {
    let mut meta = json!({
        "name": name, "namespace": "default", "uid": format!("uid-{name}"), "resourceVersion": "1", "generation": 1,
        "creationTimestamp": "2026-11-30T20:00:00Z", "labels": {"app": "web"},
        "annotations": {"deployment.kubernetes.io/revision": "1"},
    });
    if let Some((kind, owner)) = owner {
        meta["labels"]["pod-template-hash"] = json!("5d4f8");
        meta["ownerReferences"] = json!([{"apiVersion": "apps/v1", "kind": kind, "name": owner,
            "uid": format!("uid-{owner}"), "controller": true, "blockOwnerDeletion": true}]);
    }
    meta
}

fn containers() -> Value {
    json!([{"name": "web", "image": "host", "command": ["serve", "--port=80"], "imagePullPolicy": "IfNotPresent",
        "env": [{"name": "A", "value": "1"}, {"name": "B", "value": "2"}], "ports": [{"containerPort": 80, "protocol": "TCP"}],
        "resources": {"requests": {"cpu": "10m", "memory": "16Mi"}},
        "terminationMessagePath": "/dev/termination-log", "terminationMessagePolicy": "File"}])
}

fn template(labels: &Value) -> Value {
    json!({"metadata": {"labels": labels}, "spec": {"containers": containers(), "restartPolicy": "Always",
        "dnsPolicy": "ClusterFirst", "schedulerName": "default-scheduler", "securityContext": {},
        "terminationGracePeriodSeconds": 30}})
}

fn deployment(name: &str) -> Value {
    let labels = json!({"app": "web"});
    json!({"apiVersion": "apps/v1", "kind": "Deployment", "metadata": meta(name, None),
    "spec": {"replicas": PODS, "selector": {"matchLabels": labels}, "template": template(&labels),
        "revisionHistoryLimit": 10, "progressDeadlineSeconds": 600,
        "strategy": {"type": "RollingUpdate", "rollingUpdate": {"maxSurge": "25%", "maxUnavailable": "25%"}}},
    "status": {"observedGeneration": 1, "replicas": PODS, "updatedReplicas": PODS, "readyReplicas": PODS,
        "availableReplicas": PODS, "conditions": [
            condition("Available", "MinimumReplicasAvailable", "Deployment has minimum availability."),
            condition("Progressing", "NewReplicaSetAvailable",
                &format!("ReplicaSet \"{name}-5d4f8\" has successfully progressed.")),
        ]}})
}

fn condition(type_: &str, reason: &str, message: &str) -> Value {
    json!({"type": type_, "status": "True", "reason": reason, "message": message,
        "lastTransitionTime": "2026-11-30T20:00:00Z", "lastUpdateTime": "2026-11-30T20:00:00Z"})
}

fn replica_set(deployment: &str, name: &str) -> Value {
    let labels = json!({"app": "web", "pod-template-hash": "5d4f8"});
    let mut meta = meta(name, Some(("Deployment", deployment)));
    meta["annotations"]["deployment.kubernetes.io/desired-replicas"] = json!(PODS.to_string());
    meta["annotations"]["deployment.kubernetes.io/max-replicas"] =
        json!((PODS + PODS.div_ceil(4)).to_string());
    json!({"apiVersion": "apps/v1", "kind": "ReplicaSet", "metadata": meta,
        "spec": {"replicas": PODS, "selector": {"matchLabels": labels}, "template": template(&labels)},
        "status": {"observedGeneration": 1, "replicas": PODS, "fullyLabeledReplicas": PODS, "readyReplicas": PODS,
            "availableReplicas": PODS}})
}

fn pod(set: &str, n: usize) -> Value {
    let since = "2026-11-30T20:00:01Z";
    let ready = json!({"type": "Ready", "status": "True", "lastTransitionTime": since});
    json!({"apiVersion": "v1", "kind": "Pod", "metadata": meta(&format!("{set}-{n:05}"), Some(("ReplicaSet", set))),
        "spec": {"containers": containers(), "restartPolicy": "Always", "nodeName": "node-1"},
        "status": {"phase": "Running", "conditions": [ready], "startTime": since,
            "containerStatuses": [{"name": "web", "ready": true, "restartCount": 0, "image": "host", "imageID": "",
                "state": {"running": {"startedAt": since}}}]}})
}
