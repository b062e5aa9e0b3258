//! The scale of a workload: its replicas as an object of their own kind.

use bytes::Bytes;
use serde_json::{Value, json};
use strata_model::field::{FieldError, FieldPath};
use strata_model::status::{About, Status};

use super::api::Api;
use super::body::{self, Body, Wanted};
use super::create::to_bytes;
use super::patch::{Patch, settle};
use super::request::{Caller, Target, WriteOptions, Written};
use super::scaled::{of, wanted_at};
use super::update::{How, Rewrite, check_revision};
use crate::refusal::{Outcome, bad_request};
use crate::storage;
use crate::strategy::Part;
use crate::types::catalogue::Served;
use crate::value::{at, child, int, object, put, text};

/// The type of a scale.
pub const SCALE: Wanted<'static> = Wanted::new("autoscaling", "v1", "Scale");

/// The scale of a workload as JSON.
pub fn bytes(served: &Served, workload: &Value) -> Outcome<Bytes> {
    to_bytes(&of(served, workload))
}

/// Takes the replicas of a scale into a workload.
fn take(target: &Target, workload: &Value, scale: &Value) -> Outcome<Value> {
    let replicas = int(scale, &["spec", "replicas"]).unwrap_or(0);
    check(replicas, &target.name)?;
    let mut workload = workload.clone();
    set(&mut workload, &wanted_at(&target.served), json!(replicas));
    // A revision or uid that the client named is a precondition on the workload.
    let revision = at(scale, &["metadata", "resourceVersion"]).filter(|v| v.as_str() != Some("")).cloned();
    put(child(&mut workload, "metadata"), "resourceVersion", revision);
    if let Some(uid) = at(scale, &["metadata", "uid"]) {
        child(&mut workload, "metadata").insert("uid".to_owned(), uid.clone());
    }
    Ok(workload)
}

/// Sets the value at a path of member names, making what is missing.
fn set(value: &mut Value, path: &[&str], wanted: Value) {
    match path {
        [] => *value = wanted,
        [name, rest @ ..] => set(object(value).entry(*name).or_insert(Value::Null), rest, wanted),
    }
}

fn check(replicas: i64, name: &str) -> Outcome<()> {
    if replicas >= 0 {
        return Ok(());
    }
    let path = FieldPath::new("spec").child("replicas");
    let fault = FieldError::invalid(path, replicas, "must be greater than or equal to 0");
    let about = About { group: "autoscaling", resource: "scales", kind: "Scale", name };
    Err(Box::new(Status::invalid(about, &[fault])))
}

/// The configuration of a workload that an applied scale stands for.
fn configuration(target: &Target, scale: &Value) -> Outcome<Value> {
    let resource = &target.served.resource;
    let mut metadata = at(scale, &["metadata"]).cloned().unwrap_or_default();
    object(&mut metadata)
        .retain(|name, _| matches!(name.as_str(), "name" | "namespace" | "uid" | "resourceVersion"));
    let mut config =
        json!({"apiVersion": resource.api_version(), "kind": resource.kind, "metadata": metadata});
    if let Some(replicas) = int(scale, &["spec", "replicas"]) {
        check(replicas, &target.name)?;
        set(&mut config, &wanted_at(&target.served), json!(replicas));
    }
    Ok(config)
}

impl Api {
    /// Applies a scale.
    pub async fn apply_scale(
        &self,
        caller: &Caller,
        target: &Target,
        scale: &Value,
        options: &WriteOptions,
    ) -> Outcome<Written> {
        let config = configuration(target, scale)?;
        self.rescale(caller, target, "apply", How::Apply(&config), options).await
    }

    /// Replaces a scale.
    pub async fn update_scale(
        &self,
        caller: &Caller,
        target: &Target,
        body: &Body,
        options: &WriteOptions,
    ) -> Outcome<Written> {
        let decoded = body::decode(body, SCALE, options.validation)?;
        let given = text(&decoded.value, &["metadata", "name"]);
        if !given.is_empty() && given != target.name {
            return Err(bad_request(format!(
                "the name of the object ({given}) does not match the name on the URL ({})",
                target.name
            )));
        }
        let change = |old: &Value| Ok((take(target, old, &decoded.value)?, decoded.warnings.clone()));
        self.rescale(caller, target, "update", How::Change(&change), options).await
    }

    /// Patches a scale.
    pub async fn patch_scale(
        &self,
        caller: &Caller,
        target: &Target,
        patch: &Patch,
        options: &WriteOptions,
    ) -> Outcome<Written> {
        let change = |old: &Value| {
            let scale = of(&target.served, old);
            let (patched, told) = settle(target, patch.apply(&scale, SCALE)?, SCALE, options.validation)?;
            check_revision(target, &patched, old)?;
            Ok((take(target, old, &patched)?, told))
        };
        self.rescale(caller, target, "patch", How::Change(&change), options).await
    }

    async fn rescale(
        &self,
        caller: &Caller,
        target: &Target,
        verb: &'static str,
        how: How<'_>,
        options: &WriteOptions,
    ) -> Outcome<Written> {
        let whole = Target { subresource: String::new(), ..target.clone() };
        let rewrite = Rewrite { part: Part::Main, verb, through: &target.subresource, how };
        let written = self.rewrite(caller, &whole, rewrite, options).await?;
        Ok(Written { bytes: bytes(&target.served, &storage::parse_bytes(&written.bytes)?)?, ..written })
    }
}
