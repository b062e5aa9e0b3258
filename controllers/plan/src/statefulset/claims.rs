//! The claims of a StatefulSet's pods: made before their pod, kept or given up as the policy says. Knows no order.

use std::collections::BTreeMap;

use serde_json::{Value, json};
use strata_model::meta::OwnerReference;
use strata_model::object::Object;
use strata_model::resource::{ResourceType, builtin};

use super::observed::Observed;
use crate::controller::{Action, EventType, Plan, Target};
use crate::pods::{self, PodRef};

/// Makes the claims of a number that are missing.
pub fn create(observed: &Observed, ordinal: i32, plan: &mut Plan) {
    let pod = observed.pod_name(ordinal);
    let set = observed.set.object();
    for template in observed.value["spec"]["volumeClaimTemplates"].as_array().into_iter().flatten() {
        let Some(name) = template["metadata"]["name"].as_str() else { continue };
        let claim_name = observed.claim_name(name, ordinal);
        if observed.claims.contains_key(&claim_name) {
            continue;
        }
        let mut labels = template["metadata"]["labels"].as_object().cloned().unwrap_or_default();
        let selected = observed.value["spec"]["selector"]["matchLabels"].as_object();
        labels.extend(selected.cloned().unwrap_or_default());
        let mut metadata = json!({"name": claim_name, "namespace": observed.namespace(), "labels": labels});
        if !template["metadata"]["annotations"].is_null() {
            metadata["annotations"] = template["metadata"]["annotations"].clone();
        }
        if observed.claims_go(true) {
            metadata["ownerReferences"] = json!([reference(&builtin::STATEFUL_SET, set)]);
        }
        let claim = &builtin::PERSISTENT_VOLUME_CLAIM;
        let object = json!({"apiVersion": claim.api_version(), "kind": claim.kind, "metadata": metadata,
            "spec": template["spec"]});
        plan.actions.push(Action::Create { resource: claim.clone(), object });
        let message =
            format!("create Claim {claim_name} Pod {pod} in StatefulSet {} success", set.meta().name);
        plan.event(observed.target(), EventType::Normal, "SuccessfulCreate", message);
    }
}

/// Puts the claims in place of the volumes of the same names.
pub fn mount(observed: &Observed, ordinal: i32, spec: &mut Value) {
    let templates = observed.claim_templates();
    if templates.is_empty() {
        return;
    }
    let mut volumes = spec["volumes"].as_array().cloned().unwrap_or_default();
    volumes.retain(|v| !templates.iter().any(|t| v["name"] == t.as_str()));
    volumes.extend(templates.iter().map(
        |t| json!({"name": t, "persistentVolumeClaim": {"claimName": observed.claim_name(t, ordinal)}}),
    ));
    spec["volumes"] = json!(volumes);
}

/// Makes claims anew that are missing under a pod that has not begun, and says of all whether they go with the set.
pub fn hold(observed: &Observed, slots: &BTreeMap<i32, &PodRef>, plan: &mut Plan) {
    for (ordinal, pod) in slots {
        if !observed.range().contains(ordinal) {
            continue;
        }
        if pods::phase(pod) == "Pending" && !pod.object().meta().is_deleting() {
            create(observed, *ordinal, plan);
        }
        for template in observed.claim_templates() {
            let Some(claim) = observed.claims.get(&observed.claim_name(&template, *ordinal)) else {
                continue;
            };
            let owner =
                observed.claims_go(true).then(|| reference(&builtin::STATEFUL_SET, observed.set.object()));
            own(observed, claim, owner, plan);
        }
    }
}

/// Where claims go with a pod that is too many: gives them to it first. Answers whether that is yet to be seen.
pub fn hand_over(observed: &Observed, pod: &PodRef, plan: &mut Plan) -> bool {
    if !observed.claims_go(false) {
        return false;
    }
    let name = &pod.object().meta().name;
    let suffix = format!("-{name}");
    let mut waits = false;
    for claim in observed.claims.values().filter(|c| c.meta().name.ends_with(&suffix)) {
        waits |= own(observed, claim, Some(reference(&builtin::POD, pod.object())), plan);
    }
    waits
}

/// Makes `owner` the only one of ours who owns a claim. Answers whether that is a write.
fn own(observed: &Observed, claim: &Object, owner: Option<OwnerReference>, plan: &mut Plan) -> bool {
    let set = observed.set.object();
    let ours = |r: &OwnerReference| {
        r.uid == set.meta().uid
            || (r.kind == builtin::POD.kind && claim.meta().name.ends_with(&format!("-{}", r.name)))
    };
    let mut references: Vec<OwnerReference> =
        claim.meta().owner_references.iter().filter(|r| !ours(r)).cloned().collect();
    references.extend(owner);
    let same = |a: &[OwnerReference], b: &[OwnerReference]| {
        a.len() == b.len() && a.iter().all(|r| b.iter().any(|o| o.uid == r.uid))
    };
    if same(&references, &claim.meta().owner_references) || claim.meta().is_deleting() {
        return false;
    }
    let references = if references.is_empty() { Value::Null } else { json!(references) };
    let target = Target::of(&builtin::PERSISTENT_VOLUME_CLAIM, claim);
    plan.actions.push(Action::Patch { target, patch: json!({"metadata": {"ownerReferences": references}}) });
    true
}

/// A reference that makes something the dependent of an owner, without being managed by it.
fn reference(resource: &ResourceType, owner: &Object) -> OwnerReference {
    OwnerReference {
        controller: None,
        block_owner_deletion: Some(true),
        ..crate::ownership::controller_reference(resource, owner)
    }
}
