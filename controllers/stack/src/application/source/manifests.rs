//! Text of manifests to objects that know their file and line. Knows neither repositories nor programs.

use std::collections::HashMap;
use std::sync::Arc;

use serde_json::Value;
use strata_client::manifest;
use strata_plan::application::rendered::{Manifest, RenderError};

use super::bounds::MAX_OBJECTS;
use super::tree::broken;

/// A comment anywhere in a file that keeps it from being read as a manifest.
const SKIP: &str = "+argocd:skip-file-rendering";

/// Adds the objects of one file. `file` is the path from the root of the repository, or what printed the text.
pub fn add(file: &str, bytes: &[u8], out: &mut Vec<Manifest>) -> Result<(), RenderError> {
    let text = std::str::from_utf8(bytes).map_err(|error| {
        let line = 1 + bytes[..error.valid_up_to()].iter().filter(|b| **b == b'\n').count();
        broken(format!("{file}:{line}: is not text (UTF-8)"))
    })?;
    if text.contains(SKIP) {
        return Ok(());
    }
    let name: Arc<str> = file.into();
    for document in manifest::parse(file, text).map_err(|error| broken(error.to_string()))? {
        named(&document)?;
        if out.len() >= MAX_OBJECTS {
            return Err(broken(format!(
                "{}: is object {}; a source may have {MAX_OBJECTS}",
                document.place,
                out.len() + 1
            )));
        }
        let line = u32::try_from(document.place.line).unwrap_or(0);
        out.push(Manifest { object: document.value, file: Arc::clone(&name), line });
    }
    Ok(())
}

/// What is applied has a name, or has one generated.
fn named(document: &manifest::Document) -> Result<(), RenderError> {
    let metadata = &document.value["metadata"];
    let said = |field: &str| metadata[field].as_str().is_some_and(|text| !text.is_empty());
    if said("name") || said("generateName") {
        return Ok(());
    }
    let kind = document.value["kind"].as_str().unwrap_or_default();
    Err(broken(format!("{}: metadata.name of this {kind} is not set, or is no text", document.place)))
}

/// No object may be said twice: which of the two counts would be chance.
pub fn no_duplicates<'a>(manifests: impl IntoIterator<Item = &'a Manifest>) -> Result<(), RenderError> {
    let mut seen: HashMap<(&str, &str, &str, &str), &Manifest> = HashMap::new();
    for manifest in manifests {
        let text = |value: &'a Value| value.as_str().unwrap_or_default();
        let metadata = &manifest.object["metadata"];
        let (name, namespace) = (text(&metadata["name"]), text(&metadata["namespace"]));
        let group = text(&manifest.object["apiVersion"]).rsplit_once('/').map_or("", |(group, _)| group);
        let kind = text(&manifest.object["kind"]);
        if name.is_empty() {
            continue;
        }
        if let Some(first) = seen.insert((group, kind, namespace, name), manifest) {
            let place = |m: &Manifest| match m.line {
                0 => m.file.to_string(),
                line => format!("{}:{line}", m.file),
            };
            let wherein =
                if namespace.is_empty() { String::new() } else { format!(" in namespace {namespace}") };
            return Err(broken(format!(
                "{}: {kind} {name}{wherein} is there already, from {}: keep one of the two",
                place(manifest),
                place(first)
            )));
        }
    }
    Ok(())
}
