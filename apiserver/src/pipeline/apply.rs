//! Server-side apply: the configuration of a request, laid over the object that is there, or made one.

use serde_json::{Value, json};
use strata_model::field::{FieldError, FieldPath};
use strata_model::resource::Verb;
use strata_model::status::{Reason, Status};

use super::api::{Api, MAX_ATTEMPTS};
use super::body::{self, Body, Decoded, Wanted};
use super::ownership::{self, Ownership, wanted};
use super::request::{Caller, Target, WriteOptions, Written};
use super::scale;
use super::update::{How, Rewrite, part_of, stale};
use crate::decode::document::Document;
use crate::decode::text as texts;
use crate::refusal::{Outcome, about, bad_request, invalid_options};
use crate::strategy::Part;
use crate::value::{at, child, object, text};

/// Members of metadata that a status apply may say something of; the rest of its metadata only names the object.
const STATUS_METADATA: &[&str] =
    &["annotations", "finalizers", "labels", "name", "namespace", "resourceVersion", "uid"];

impl Api {
    /// Applies a configuration to an object or one of its subresources. The object is made where it is missing.
    pub async fn apply(
        &self,
        caller: &Caller,
        target: &Target,
        body: &Body,
        options: &WriteOptions,
    ) -> Outcome<Written> {
        target.admit(caller, Verb::Patch)?;
        if options.manager.is_empty() {
            let fault = FieldError::required(FieldPath::new("fieldManager"), "is required for apply patch");
            return Err(invalid_options("PatchOptions", &[fault]));
        }
        if target.subresource == "scale" {
            let scale = configuration(body, target, scale::SCALE, options)?;
            return self.apply_scale(caller, target, &scale.value, options).await;
        }
        let Decoded { value, warnings } = configuration(body, target, wanted(&target.served), options)?;
        let decoded = Decoded { value: target.store(value)?, warnings };
        self.apply_decoded(caller, &target.stored(), decoded, options).await?.shown(target)
    }

    async fn apply_decoded(
        &self,
        caller: &Caller,
        target: &Target,
        mut decoded: Decoded,
        options: &WriteOptions,
    ) -> Outcome<Written> {
        let part = part_of(target);
        restrict(target, part, &mut decoded.value);
        let config = &decoded.value;
        for _ in 0..MAX_ATTEMPTS {
            let rewrite =
                Rewrite { part, verb: "apply", through: &target.subresource, how: How::Apply(config) };
            match self.rewrite(caller, target, rewrite, options).await {
                Err(refusal) if refusal.is(Reason::NotFound) && target.subresource.is_empty() => {}
                Ok(written) => return Ok(told(written, &decoded)),
                Err(refusal) => return Err(refusal),
            }
            match self.apply_new(caller, target, &decoded, options).await {
                // Somebody else made it: apply to what is there now.
                Err(refusal) if refusal.is(Reason::AlreadyExists) => {}
                done => return done,
            }
        }
        Err(stale(target))
    }

    async fn apply_new(
        &self,
        caller: &Caller,
        target: &Target,
        decoded: &Decoded,
        options: &WriteOptions,
    ) -> Outcome<Written> {
        let uid = text(&decoded.value, &["metadata", "uid"]);
        if !uid.is_empty() {
            let why = format!(
                "uid mismatch: the provided object specified uid {uid}, and no existing object was found"
            );
            return Err(Box::new(Status::conflict(about(&target.served.resource, &target.name), &why)));
        }
        let whole = Target { name: String::new(), ..target.clone() };
        whole.admit(caller, Verb::Create)?;
        let now = self.moment().now;
        let ownership = Ownership::of(caller, target, "", options, now);
        let mut config = decoded.value.clone();
        child(&mut config, "metadata").remove("resourceVersion");
        let (value, managed) = ownership.apply_new(target, &config)?;
        let decoded = Decoded { value, warnings: decoded.warnings.clone() };
        self.insert(caller, &whole, decoded, Some(&managed), options).await
    }
}

/// Reads and checks the configuration of a request.
fn configuration(
    body: &Body,
    target: &Target,
    wanted: Wanted<'_>,
    options: &WriteOptions,
) -> Outcome<Decoded> {
    let Document { value: mut config, duplicates } = parse(body)?;
    if !config.is_object() {
        return Err(bad_request("the configuration is not an object"));
    }
    let (version, kind) = (text(&config, &["apiVersion"]), text(&config, &["kind"]));
    if version != wanted.api_version() || kind != wanted.kind {
        let given = version.split_once('/').map_or_else(|| format!("/{version}"), |_| version.to_owned());
        return Err(bad_request(format!("invalid object type: {given}, Kind={kind}")));
    }
    if at(&config, &["metadata", "managedFields"]).is_some_and(|managers| !managers.is_null()) {
        return Err(bad_request("metadata.managedFields must be nil"));
    }
    if !duplicates.is_empty() {
        let told: Vec<String> = duplicates.iter().map(|path| format!("duplicate field \"{path}\"")).collect();
        return Err(bad_request(format!("error decoding YAML: {}", told.join(", "))));
    }
    ownership::check(target, wanted, &config)?;
    let faults = body::check(&mut config, wanted);
    let warnings = body::settle(faults, Vec::new(), options.validation).map_err(bad_request)?;
    let metadata = child(&mut config, "metadata");
    metadata.retain(|_, member| !member.is_null());
    let name = metadata.get("name").and_then(Value::as_str).unwrap_or_default();
    if !name.is_empty() && name != target.name {
        return Err(bad_request(format!(
            "the name of the object ({name}) does not match the name on the URL ({})",
            target.name
        )));
    }
    metadata.insert("name".to_owned(), json!(target.name));
    crate::strategy::check_namespace(&mut config, &target.namespace)?;
    Ok(Decoded { value: config, warnings })
}

/// The document of a body, which is YAML and mostly JSON.
fn parse(body: &Body) -> Outcome<Document> {
    let fault = |error: &dyn std::fmt::Display| bad_request(format!("error decoding YAML: {error}"));
    if body.bytes.first() == Some(&b'{')
        && let Ok(document) = texts::json(&body.bytes)
    {
        return Ok(document);
    }
    let text = std::str::from_utf8(&body.bytes).map_err(|error| fault(&error))?;
    texts::yaml(text).map_err(|error| fault(&error))
}

/// Keeps of a configuration what an apply to this part of the object may say.
fn restrict(target: &Target, part: Part, config: &mut Value) {
    match part {
        Part::Main if target.served.resource.has_status() => drop(object(config).remove("status")),
        Part::Main => {}
        Part::Status => {
            object(config)
                .retain(|name, _| matches!(name.as_str(), "apiVersion" | "kind" | "metadata" | "status"));
            let labels = target.served.rules.status_labels;
            child(config, "metadata")
                .retain(|name, _| STATUS_METADATA.contains(&name.as_str()) && (labels || name != "labels"));
        }
        Part::Approval | Part::Ephemeral => {}
        Part::Finalize => object(config).retain(|name, _| name != "status"),
    }
}

fn told(written: Written, decoded: &Decoded) -> Written {
    let mut warnings = decoded.warnings.clone();
    warnings.extend(written.warnings);
    Written { warnings, ..written }
}
