//! Bodies of requests, in any of their forms, as checked values.

use std::sync::Arc;

use bytes::Bytes;
use serde_json::Value;

use super::request::FieldValidation;
use crate::custom::definition::Custom;
use crate::custom::prune;
use crate::decode::check::{self, Fault};
use crate::decode::document::Document;
use crate::decode::text as texts;
use crate::protobuf::decode::{self as protobuf, Expected};
use crate::refusal::{Outcome, bad_request};
use crate::schema::node::Definition;
use crate::schema::registry;
use crate::value::text;

/// The form of a body.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Media {
    /// JSON.
    Json,
    /// YAML.
    Yaml,
    /// Kubernetes protobuf.
    Protobuf,
}

/// A body as it came.
#[derive(Clone, Debug)]
pub struct Body {
    /// Its form.
    pub media: Media,
    /// Its bytes.
    pub bytes: Bytes,
}

impl Body {
    /// A body in JSON.
    pub fn json(bytes: impl Into<Bytes>) -> Self {
        Self { media: Media::Json, bytes: bytes.into() }
    }
}

/// A body as a value.
#[derive(Clone, Debug)]
pub struct Decoded {
    /// The value, without unknown fields and nulls.
    pub value: Value,
    /// What was dropped, for the user.
    pub warnings: Vec<String>,
}

/// The type that a body should be of.
#[derive(Clone, Copy, Debug)]
pub struct Wanted<'a> {
    /// Group.
    pub group: &'a str,
    /// Version.
    pub version: &'a str,
    /// Kind.
    pub kind: &'a str,
    /// What is known of the type, where it is a custom one.
    pub custom: Option<&'a Custom>,
}

impl<'a> Wanted<'a> {
    /// A built-in type.
    pub const fn new(group: &'a str, version: &'a str, kind: &'a str) -> Self {
        Self { group, version, kind, custom: None }
    }

    /// The schema of the type as patches and owners read it.
    pub fn definition(&self) -> Option<Arc<Definition>> {
        match self.custom {
            Some(custom) => Some(Arc::clone(custom.nodes())),
            None => registry::definition(self.group, self.version, self.kind),
        }
    }

    /// `group/version`, or the version alone for the core group.
    pub fn api_version(&self) -> String {
        if self.group.is_empty() {
            self.version.to_owned()
        } else {
            format!("{}/{}", self.group, self.version)
        }
    }
}

/// Parses a body and checks it against the schema of its type.
pub fn decode(body: &Body, wanted: Wanted<'_>, validation: FieldValidation) -> Outcome<Decoded> {
    let document = parse(body, wanted)?;
    let kind = text(&document.value, &["kind"]);
    if !kind.is_empty() && kind != wanted.kind {
        let version = text(&document.value, &["apiVersion"]);
        return Err(bad_request(format!(
            "{kind} in version \"{version}\" cannot be handled as a {}: the body must be of kind {}",
            wanted.kind, wanted.kind
        )));
    }
    let mut value = document.value;
    let faults = check(&mut value, wanted);
    let told = settle(faults, document.duplicates, validation).map_err(bad_request)?;
    Ok(Decoded { value, warnings: told })
}

/// Checks a value against the schema of its type, and takes unknown fields and nulls out of it.
pub fn check(value: &mut Value, wanted: Wanted<'_>) -> Vec<Fault> {
    if let Some(custom) = wanted.custom {
        return prune::prune(custom.schema(), value);
    }
    match wanted.definition() {
        Some(definition) => check::check(definition.node(), value),
        None => Vec::new(),
    }
}

/// Sorts faults into what is refused (the error) and what is only told.
pub fn settle(
    faults: Vec<Fault>,
    duplicates: Vec<String>,
    validation: FieldValidation,
) -> Result<Vec<String>, String> {
    let (unknown, wrong): (Vec<Fault>, Vec<Fault>) = faults.into_iter().partition(Fault::is_unknown_field);
    if !wrong.is_empty() {
        let all: Vec<String> = wrong.iter().map(ToString::to_string).collect();
        return Err(all.join(", "));
    }
    let told: Vec<String> = unknown
        .iter()
        .map(ToString::to_string)
        .chain(duplicates.iter().map(|path| format!("duplicate field \"{path}\"")))
        .collect();
    match validation {
        FieldValidation::Ignore => Ok(Vec::new()),
        FieldValidation::Strict if !told.is_empty() => {
            Err(format!("strict decoding error: {}", told.join(", ")))
        }
        FieldValidation::Warn | FieldValidation::Strict => Ok(told),
    }
}

fn parse(body: &Body, wanted: Wanted<'_>) -> Outcome<Document> {
    let fault = |error: &dyn std::fmt::Display| {
        bad_request(format!("the body of the request cannot be read as a {}: {error}", wanted.kind))
    };
    match body.media {
        Media::Json => texts::json(&body.bytes).map_err(|error| fault(&error)),
        Media::Yaml => {
            let text = std::str::from_utf8(&body.bytes).map_err(|error| fault(&error))?;
            texts::yaml(text).map_err(|error| fault(&error))
        }
        Media::Protobuf => {
            let api_version = wanted.api_version();
            let expected = Expected { api_version: &api_version, kind: wanted.kind };
            let value = protobuf::decode(&body.bytes, Some(expected)).map_err(|error| fault(&error))?;
            Ok(Document { value, duplicates: Vec::new() })
        }
    }
}
