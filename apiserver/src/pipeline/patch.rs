//! Patch: the object that is there, changed as the patch says, then written like any update.

use std::borrow::Cow;

use serde_json::Value;
use strata_model::field::{FieldError, FieldPath};
use strata_model::resource::Verb;
use strata_model::status::{Details, Reason, Status};

use super::api::Api;
use super::body::{self, Body, Media, Wanted};
use super::ownership::wanted;
use super::request::{Caller, FieldValidation, Target, WriteOptions, Written};
use super::update::{How, Rewrite, part_of};
use crate::decode::text as texts;
use crate::patch::json::JsonPatchError;
use crate::patch::{json::JsonPatch, strategic};
use crate::refusal::{self, Outcome, Refusal, bad_request};
use crate::value::{child, text};
use strata_model::merge;

/// How a patch is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PatchKind {
    /// RFC 7386.
    Merge,
    /// RFC 6902.
    Json,
    /// Kubernetes strategic merge.
    Strategic,
}

/// A patch, parsed once and applied to whatever is there.
pub enum Patch {
    /// RFC 7386.
    Merge(Value),
    /// RFC 6902.
    Json(JsonPatch),
    /// Kubernetes strategic merge.
    Strategic(Value),
}

impl Patch {
    /// Parses a patch.
    pub fn parse(kind: PatchKind, body: &Body) -> Outcome<Self> {
        let fault = |error: &dyn std::fmt::Display| bad_request(format!("the patch cannot be read: {error}"));
        let value = match body.media {
            Media::Yaml => {
                let text = std::str::from_utf8(&body.bytes).map_err(|error| fault(&error))?;
                texts::yaml(text).map_err(|error| fault(&error))?.value
            }
            Media::Json | Media::Protobuf => texts::json(&body.bytes).map_err(|error| fault(&error))?.value,
        };
        match kind {
            PatchKind::Json => JsonPatch::parse(value).map(Self::Json).map_err(|error| of_json(&error)),
            _ if !value.is_object() => Err(bad_request("the patch is not a JSON object")),
            PatchKind::Merge => Ok(Self::Merge(value)),
            PatchKind::Strategic => Ok(Self::Strategic(value)),
        }
    }

    /// The value after the patch, without a revision unless the patch names one.
    pub fn apply(&self, old: &Value, wanted: Wanted<'_>) -> Outcome<Value> {
        let mut base = old.clone();
        let own = text(old, &["metadata", "resourceVersion"]);
        match self {
            Self::Merge(patch) => {
                child(&mut base, "metadata").remove("resourceVersion");
                merge::apply(&mut base, patch);
                Ok(base)
            }
            Self::Strategic(patch) => {
                child(&mut base, "metadata").remove("resourceVersion");
                let definition = match (wanted.custom, wanted.definition()) {
                    (None, Some(definition)) => definition,
                    _ => return Err(unsupported()),
                };
                strategic::apply(base, patch, definition.node())
                    .map_err(|error| bad_request(error.to_string()))
            }
            Self::Json(patch) => {
                let mut new = patch.apply(base).map_err(|error| of_json(&error))?;
                if new.is_object() && text(&new, &["metadata", "resourceVersion"]) == own {
                    child(&mut new, "metadata").remove("resourceVersion");
                }
                Ok(new)
            }
        }
    }
}

fn contains(text: &[u8], word: &[u8]) -> bool {
    text.windows(word.len()).any(|window| window == word)
}

fn of_json(error: &JsonPatchError) -> Refusal {
    let source = std::error::Error::source(error).map(|s| format!(": {s}")).unwrap_or_default();
    let detail = format!("{error}{source}");
    match error {
        JsonPatchError::NotAList | JsonPatchError::BadOperation { .. } => bad_request(detail),
        JsonPatchError::TooManyOperations { .. } => {
            Box::new(Status::failure(Reason::RequestEntityTooLarge, detail))
        }
        JsonPatchError::Rejected { .. } | JsonPatchError::TooLarge { .. } => {
            let message = format!("the server rejected our request due to an error in our request: {detail}");
            Box::new(Status::failure(Reason::Invalid, message).with_details(Details::default()))
        }
    }
}

/// The refusal of a form of patch that a type does not take.
fn unsupported() -> Refusal {
    let message = "the body of the request was in an unknown format - accepted media types include: \
                   application/json-patch+json, application/merge-patch+json, application/apply-patch+yaml";
    Box::new(Status::failure(Reason::UnsupportedMediaType, message))
}

/// Brings a patched value into stored form, and tells what the patch added that no type has.
pub fn settle(
    target: &Target,
    mut value: Value,
    wanted: Wanted<'_>,
    validation: FieldValidation,
) -> Outcome<(Value, Vec<String>)> {
    if !value.is_object() {
        return Err(bad_request("the patched object is not a JSON object"));
    }
    let faults = body::check(&mut value, wanted);
    let told = body::settle(faults, Vec::new(), validation).map_err(|text| {
        let fault = FieldError::invalid(FieldPath::new("patch"), "", text);
        refusal::invalid(&target.served.resource, &target.name, &[fault])
    })?;
    Ok((value, told))
}

impl Api {
    /// Patches an object or one of its subresources.
    pub async fn patch(
        &self,
        caller: &Caller,
        target: &Target,
        kind: PatchKind,
        body: &Body,
        options: &WriteOptions,
    ) -> Outcome<Written> {
        target.admit(caller, Verb::Patch)?;
        let patch = Patch::parse(kind, body)?;
        if target.subresource == "scale" {
            return self.patch_scale(caller, target, &patch, options).await;
        }
        let change = |old: &Value| {
            let wanted = wanted(&target.served);
            let mut shown = Cow::Borrowed(old);
            if target.served.form.is_some() {
                target.served.show(shown.to_mut());
            }
            let (new, told) = settle(target, patch.apply(&shown, wanted)?, wanted, options.validation)?;
            Ok((target.store(new)?, told))
        };
        // Only a patch by place can read the managers that are there.
        let managers = kind == PatchKind::Json && contains(&body.bytes, b"managedFields");
        let how = if managers { How::ChangeManaged(&change) } else { How::Change(&change) };
        let rewrite = Rewrite { part: part_of(target), verb: "patch", through: &target.subresource, how };
        self.rewrite(caller, &target.stored(), rewrite, options).await?.shown(target)
    }
}
