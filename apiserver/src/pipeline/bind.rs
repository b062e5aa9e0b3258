//! Binding: the one way in which a pod gets its node.

use serde_json::{Value, json};
use strata_model::field::{FieldError, FieldPath};
use strata_model::status::{About, Status};

use super::admit::Step;
use super::api::{Api, MAX_ATTEMPTS, record_of};
use super::body::{self, Body, Wanted};
use super::create::to_bytes;
use super::request::{Caller, Deed, Target, WriteOptions, Written};
use super::riders::Riders;
use super::update::stale;
use crate::admission::operation::Operation;
use crate::refusal::{Outcome, about};
use crate::storage;
use crate::strategy::stamp;
use crate::value::{at, child, list_mut, text};

const BINDING: Wanted<'static> = Wanted::new("", "v1", "Binding");

/// The pod bound to a node, or why it cannot be.
fn bound(pod: &Value, binding: &Value, now: jiff::Timestamp) -> Outcome<Value> {
    let name = text(pod, &["metadata", "name"]);
    let about = About { group: "", resource: "pods/binding", kind: "Binding", name };
    let conflict = |why: String| Err(Box::new(Status::conflict(about, &why)));
    let uid = text(binding, &["metadata", "uid"]);
    if !uid.is_empty() && uid != text(pod, &["metadata", "uid"]) {
        let own = text(pod, &["metadata", "uid"]);
        return conflict(format!(
            "Precondition failed: UID in precondition: {uid}, UID in object meta: {own}"
        ));
    }
    if at(pod, &["metadata", "deletionTimestamp"]).is_some() {
        return conflict(format!("pod {name} is being deleted, cannot be assigned to a host"));
    }
    let taken = text(pod, &["spec", "nodeName"]);
    if !taken.is_empty() {
        return conflict(format!("pod {name} is already assigned to node \"{taken}\""));
    }
    let mut pod = pod.clone();
    child(&mut pod, "spec").insert("nodeName".to_owned(), json!(text(binding, &["target", "name"])));
    if let Some(Value::Object(added)) = at(binding, &["metadata", "annotations"]) {
        let annotations = child(&mut pod, "metadata").entry("annotations").or_insert_with(|| json!({}));
        crate::value::object(annotations).extend(added.clone());
    }
    let condition = json!({"type": "PodScheduled", "status": "True", "lastTransitionTime": stamp(now)});
    child(&mut pod, "status").entry("conditions").or_insert_with(|| json!([]));
    if let Some(conditions) = list_mut(&mut pod, &["status", "conditions"]) {
        conditions.retain(|c| text(c, &["type"]) != "PodScheduled");
        conditions.push(condition);
    }
    Ok(pod)
}

impl Api {
    /// Binds a pod to a node.
    pub async fn bind(
        &self,
        caller: &Caller,
        target: &Target,
        body: &Body,
        options: &WriteOptions,
    ) -> Outcome<Written> {
        let decoded = body::decode(body, BINDING, options.validation)?;
        check(&decoded.value)?;
        let step = Step {
            caller,
            target,
            operation: Operation::Create,
            through: &target.subresource,
            old: None,
            dry_run: options.dry_run,
        };
        let mut warnings = self.judge(step, Some(&decoded.value)).await?;
        warnings.extend(decoded.warnings);
        for _ in 0..MAX_ATTEMPTS {
            let record = record_of(&self.latest().await?, target)?;
            let pod = storage::parse(&record)?;
            let new = bound(&pod, &decoded.value, self.moment().now)?;
            let written = done(target, warnings.clone())?;
            if options.dry_run {
                return Ok(written);
            }
            let deed = Deed::new("create", "binding", options);
            if self.store_change(caller, target, &record, &new, deed, Riders::none()).await?.is_some() {
                return Ok(written);
            }
        }
        Err(stale(target))
    }
}

/// The answer of a subresource that only acts.
pub fn done(target: &Target, warnings: Vec<String>) -> Outcome<Written> {
    let mut success = Status::success(about(&target.served.resource, &target.name), "");
    success.code = Some(201);
    success.details = None;
    let bytes = to_bytes(&serde_json::to_value(&success).unwrap_or_default())?;
    Ok(Written { bytes, changed: true, created: true, warnings })
}

fn check(binding: &Value) -> Outcome<()> {
    let path = FieldPath::new("target");
    let mut faults = Vec::new();
    let kind = text(binding, &["target", "kind"]);
    if !matches!(kind, "" | "Node") {
        faults.push(FieldError::not_supported(path.child("kind"), kind, &["Node", "<empty>"]));
    }
    if text(binding, &["target", "name"]).is_empty() {
        faults.push(FieldError::required(path.child("name"), ""));
    }
    if faults.is_empty() {
        return Ok(());
    }
    let name = text(binding, &["metadata", "name"]);
    let about = About { group: "", resource: "bindings", kind: "Binding", name };
    Err(Box::new(Status::invalid(about, &faults)))
}
