//! From a Deployment's template to the ReplicaSet that stands for it: which one it is, what it is called, what it
//! carries. Decides nothing about sizes.

use std::collections::BTreeMap;

use k8s_openapi::api::apps::v1::ReplicaSet;
use k8s_openapi::api::core::v1::PodTemplateSpec;
use serde_json::{Value, json};
use strata_model::meta::Meta;
use strata_model::object::{Object, ObjectError};
use strata_model::resource::builtin;

use crate::ownership;
use crate::revisions;
use crate::typed::Typed;

/// Label that tells the pods of one template from those of another.
pub const HASH_LABEL: &str = "pod-template-hash";
/// Which rollout a ReplicaSet stands for, counted from 1; on the Deployment, the current one.
pub const REVISION: &str = "deployment.kubernetes.io/revision";
/// The revisions for which a ReplicaSet stood before, separated by commas.
pub const REVISION_HISTORY: &str = "deployment.kubernetes.io/revision-history";
/// `spec.replicas` of the Deployment when the ReplicaSet was sized last.
pub const DESIRED: &str = "deployment.kubernetes.io/desired-replicas";
/// The most replicas of all sets together when the ReplicaSet was sized last.
pub const MAX: &str = "deployment.kubernetes.io/max-replicas";

/// Annotations of a Deployment that its ReplicaSets do not take over.
const OWN_ANNOTATIONS: [&str; 9] = [
    "kubectl.kubernetes.io/last-applied-configuration",
    REVISION,
    REVISION_HISTORY,
    DESIRED,
    MAX,
    "deprecated.deployment.rollback.to",
    "strata.dev/auto-rollback",
    "strata.dev/good",
    "strata.dev/rolled-back-from",
];
/// Longest revision history, in bytes; the oldest revisions are dropped.
const HISTORY_MAX: usize = 2_000;

/// Whether a ReplicaSet was made from this template: equal in all but the hash label.
pub fn is_of(set: &ReplicaSet, template: &PodTemplateSpec) -> bool {
    let Some(theirs) = set.spec.as_ref().and_then(|s| s.template.as_ref()) else { return false };
    let map = |of: Option<&BTreeMap<String, String>>| -> Vec<(String, String)> {
        let pairs = of.into_iter().flatten().filter(|(k, _)| *k != HASH_LABEL);
        pairs.map(|(k, v)| (k.clone(), v.clone())).collect()
    };
    let meta = |t: &PodTemplateSpec| {
        let meta = t.metadata.as_ref();
        let finalizers = meta.and_then(|m| m.finalizers.clone()).unwrap_or_default();
        (
            map(meta.and_then(|m| m.labels.as_ref())),
            map(meta.and_then(|m| m.annotations.as_ref())),
            finalizers,
        )
    };
    theirs.spec == template.spec && meta(theirs) == meta(template)
}

/// What a ReplicaSet would be: its hash, and its name made from it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Candidate {
    /// Hash of the template.
    pub hash: String,
    /// Name of the ReplicaSet.
    pub name: String,
}

/// The ReplicaSet that the Deployment's template asks for.
pub fn candidate(deployment: &Object, collisions: i32) -> Result<Candidate, ObjectError> {
    let hash = revisions::hash(&deployment.to_value()?["spec"]["template"], collisions);
    let name = format!("{}-{hash}", deployment.meta().name);
    Ok(Candidate { hash, name })
}

/// The new ReplicaSet as JSON. The template goes in as it is, unknown fields included.
pub fn replica_set(
    deployment: &Object,
    candidate: &Candidate,
    replicas: i32,
    annotations: &BTreeMap<String, String>,
) -> Result<Value, ObjectError> {
    let mut value = deployment.to_value()?;
    let spec = &mut value["spec"];
    let (mut template, mut selector) = (spec["template"].take(), spec["selector"].take());
    template["metadata"]["labels"][HASH_LABEL] = json!(candidate.hash);
    selector["matchLabels"][HASH_LABEL] = json!(candidate.hash);
    let mut new_spec = json!({"replicas": replicas, "selector": selector, "template": template});
    if let Some(seconds) = spec["minReadySeconds"].as_i64().filter(|s| *s > 0) {
        new_spec["minReadySeconds"] = json!(seconds);
    }
    Ok(json!({
        "apiVersion": builtin::REPLICA_SET.api_version(), "kind": builtin::REPLICA_SET.kind,
        "metadata": {
            "name": candidate.name, "namespace": deployment.meta().namespace,
            "labels": new_spec["template"]["metadata"]["labels"], "annotations": annotations,
            "ownerReferences": [ownership::controller_reference(&builtin::DEPLOYMENT, deployment)],
        },
        "spec": new_spec,
    }))
}

/// The annotations that a Deployment hands down to its current ReplicaSet.
pub fn handed_down(deployment: &Meta) -> BTreeMap<String, String> {
    let pairs = deployment.annotations.iter().filter(|(k, _)| !OWN_ANNOTATIONS.contains(&k.as_str()));
    pairs.map(|(k, v)| (k.clone(), v.clone())).collect()
}

/// The revision of a ReplicaSet; 0 where it has none.
pub fn revision(meta: &Meta) -> i64 {
    meta.annotation(REVISION).and_then(|r| r.parse().ok()).unwrap_or(0)
}

/// The revision that the current ReplicaSet must have: above all others.
pub fn next_revision(old: &[Typed<ReplicaSet>]) -> i64 {
    old.iter().map(|s| revision(s.object().meta())).max().unwrap_or(0).saturating_add(1)
}

/// The history of a ReplicaSet that leaves its revision for a new one.
pub fn history(meta: &Meta) -> Option<String> {
    let left = revision(meta);
    let mut history = meta.annotation(REVISION_HISTORY).unwrap_or_default().to_owned();
    if left > 0 {
        if !history.is_empty() {
            history.push(',');
        }
        history.push_str(&left.to_string());
    }
    while history.len() > HISTORY_MAX {
        history = history.split_once(',').map(|(_, rest)| rest.to_owned()).unwrap_or_default();
    }
    (!history.is_empty()).then_some(history)
}

/// The number in an annotation, if it is there and is one.
pub fn number(meta: &Meta, annotation: &str) -> Option<i32> {
    meta.annotation(annotation)?.parse().ok()
}
