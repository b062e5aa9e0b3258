//! What a create, an update and a status write may change of an object: pure functions over values, with time and
//! chance passed in. Knows types only by their rules; knows no store and no requests.

use jiff::Timestamp;
use serde_json::{Map, Value, json};
use strata_model::field::FieldError;
use strata_model::names;
use strata_model::status::Status;

use crate::refusal::{Outcome, about, bad_request, invalid};
use crate::types::catalogue::Served;
use crate::types::meta;
use crate::types::rules::Faults;
use crate::value::{at, child, int, object, put, text};

/// Time and chance of one write.
#[derive(Clone, Debug)]
pub struct Moment {
    /// Now.
    pub now: Timestamp,
    /// The uid of the object if one is made.
    pub uid: String,
    /// Random numbers for a generated name.
    pub random: [u32; names::SUFFIX_LENGTH],
}

/// Which part of an object a write is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Part {
    /// Everything but status.
    Main,
    /// Status, and little of metadata.
    Status,
    /// `spec.finalizers` of a namespace.
    Finalize,
    /// `spec.ephemeralContainers` of a pod.
    Ephemeral,
    /// Conditions of a request for a certificate.
    Approval,
}

/// An instant as metadata has it: whole seconds.
pub fn stamp(now: Timestamp) -> Value {
    json!(now.strftime("%Y-%m-%dT%H:%M:%SZ").to_string())
}

/// Members of metadata that the server owns and no client sets.
const NOT_TAKEN: &[&str] = &["selfLink", "managedFields"];
/// Members of metadata that stay as they are over updates.
const KEPT: &[&str] =
    &["uid", "creationTimestamp", "deletionTimestamp", "deletionGracePeriodSeconds", "resourceVersion"];

/// Checks that the body is of the type it was sent to, and says so in it.
pub fn check_type(served: &Served, body: &mut Value) -> Outcome<()> {
    if !body.is_object() {
        return Err(bad_request("the body is not a JSON object"));
    }
    let resource = &served.resource;
    let (version, kind) = (text(body, &["apiVersion"]), text(body, &["kind"]));
    let expected = resource.api_version();
    if (!kind.is_empty() && kind != resource.kind) || (!version.is_empty() && version != expected) {
        let (given, told) = (
            if kind.is_empty() { "object" } else { kind },
            if version.is_empty() { &expected } else { version },
        );
        return Err(bad_request(format!(
            "{given} in version \"{told}\" cannot be handled as a {}: expected {} in version \"{expected}\"",
            resource.kind, resource.kind
        )));
    }
    let members = object(body);
    members.insert("apiVersion".to_owned(), json!(expected));
    members.insert("kind".to_owned(), json!(resource.kind));
    if !members.get("metadata").is_none_or(|m| m.is_object() || m.is_null()) {
        return Err(bad_request("metadata is not an object"));
    }
    child(body, "metadata");
    Ok(())
}

/// Checks the namespace of a body against that of the request, and fills it in.
pub fn check_namespace(body: &mut Value, namespace: &str) -> Outcome<()> {
    let own = text(body, &["metadata", "namespace"]).to_owned();
    if !own.is_empty() && own != namespace {
        return Err(bad_request(
            "the namespace of the provided object does not match the namespace sent on the request",
        ));
    }
    let value = (!namespace.is_empty()).then(|| json!(namespace));
    put(child(body, "metadata"), "namespace", value);
    Ok(())
}

/// Makes a new object of a body: names it, fills it, checks it.
pub fn create(served: &Served, body: &mut Value, namespace: &str, moment: &Moment) -> Outcome<()> {
    draft(served, body, namespace, moment)?;
    check_new(served, body)
}

/// Names and fills a new object. A second time, with the same moment, changes only what follows from changes meanwhile.
pub fn draft(served: &Served, body: &mut Value, namespace: &str, moment: &Moment) -> Outcome<()> {
    check_type(served, body)?;
    check_namespace(body, namespace)?;
    if !text(body, &["metadata", "resourceVersion"]).is_empty() {
        return Err(bad_request("resourceVersion should not be set on objects to be created"));
    }
    let status = body.get("status").cloned();
    let metadata = child(body, "metadata");
    name(metadata, moment);
    for member in NOT_TAKEN.iter().chain(KEPT) {
        metadata.remove(*member);
    }
    metadata.insert("uid".to_owned(), json!(moment.uid));
    metadata.insert("creationTimestamp".to_owned(), stamp(moment.now));
    if served.resource.counts_generation {
        metadata.insert("generation".to_owned(), json!(1));
    }
    tidy(metadata);
    if served.resource.has_status() && !served.rules.keeps_status {
        object(body).remove("status");
    }
    served.defaults(body);
    (served.rules.create)(body);
    if served.rules.keeps_status
        && let Some(status) = status
    {
        object(body).insert("status".to_owned(), status);
    }
    Ok(())
}

/// Checks a new object.
pub fn check_new(served: &Served, body: &Value) -> Outcome<()> {
    let mut faults = Vec::new();
    check_name(served, body, &mut faults);
    meta::validate(body, &mut faults);
    served.validate(body, None, &mut faults);
    finish(served, body, &faults)
}

fn name(metadata: &mut Map<String, Value>, moment: &Moment) {
    let member = |name: &str| metadata.get(name).and_then(Value::as_str).unwrap_or_default();
    let prefix = member("generateName");
    if member("name").is_empty() && !prefix.is_empty() {
        let mut numbers = moment.random.iter().copied();
        let made = names::generate(prefix, || numbers.next().unwrap_or_default());
        metadata.insert("name".to_owned(), json!(made));
    }
}

/// The name by which a refusal speaks of an object: one that was generated for a new object is nobody's yet, and would
/// make each refusal of the same another one.
pub fn spoken_name(object: &Value) -> &str {
    let (name, prefix) = (text(object, &["metadata", "name"]), text(object, &["metadata", "generateName"]));
    let made = name.strip_prefix(prefix).is_some_and(|rest| rest.len() == names::SUFFIX_LENGTH);
    if !prefix.is_empty() && made { prefix } else { name }
}

/// Drops empty maps and lists from metadata: absent and empty mean the same.
fn tidy(metadata: &mut Map<String, Value>) {
    metadata.retain(|_, member| match member {
        Value::Null => false,
        Value::Object(map) => !map.is_empty(),
        Value::Array(list) => !list.is_empty(),
        Value::String(text) => !text.is_empty(),
        _ => true,
    });
}

fn check_name(served: &Served, body: &Value, faults: &mut Faults) {
    let name = text(body, &["metadata", "name"]);
    if name.is_empty() {
        faults.push(FieldError::required(meta::path().child("name"), "name or generateName is required"));
    } else if let Some(fault) = (served.rules.name)(name) {
        faults.push(FieldError::invalid(meta::path().child("name"), name, fault));
    }
}

fn finish(served: &Served, body: &Value, faults: &[FieldError]) -> Outcome<()> {
    match faults {
        [] => Ok(()),
        faults => Err(invalid(&served.resource, text(body, &["metadata", "name"]), faults)),
    }
}

/// Turns what a client wants an object to be into what it becomes, given what it is.
pub fn update(served: &Served, new: &mut Value, old: &Value, part: Part) -> Outcome<()> {
    redraft(served, new, old, part)?;
    check_changed(served, new, old, part)
}

/// Fills a changed object, and takes of it only what this kind of write may change.
pub fn redraft(served: &Served, new: &mut Value, old: &Value, part: Part) -> Outcome<()> {
    check_type(served, new)?;
    check_identity(served, new, old)?;
    keep_metadata(new, old);
    match part {
        Part::Main => {
            if served.resource.has_status() {
                put(object(new), "status", old.get("status").cloned());
            }
            served.defaults(new);
            (served.rules.update)(new, old);
        }
        Part::Status => {
            status_only(served, new, old);
            if served.custom.is_some() {
                served.defaults(new);
            }
        }
        Part::Ephemeral => {
            let containers = at(new, &["spec", "ephemeralContainers"]).cloned();
            *new = old.clone();
            put(child(new, "spec"), "ephemeralContainers", containers);
            served.defaults(new);
        }
        Part::Approval => {
            let conditions = at(new, &["status", "conditions"]).cloned();
            *new = old.clone();
            put(child(new, "status"), "conditions", conditions);
        }
        Part::Finalize => {
            let finalizers = at(new, &["spec", "finalizers"]).cloned();
            let metadata = new.get("metadata").cloned();
            *new = old.clone();
            put(object(new), "metadata", metadata);
            put(
                child(new, "spec"),
                "finalizers",
                finalizers.filter(|f| f.as_array().is_some_and(|l| !l.is_empty())),
            );
        }
    }
    Ok(())
}

/// Counts the generation of a changed object, and checks it.
pub fn check_changed(served: &Served, new: &mut Value, old: &Value, part: Part) -> Outcome<()> {
    count_generation(served, new, old);
    tidy(child(new, "metadata"));
    let mut faults = Vec::new();
    meta::validate(new, &mut faults);
    meta::validate_update(new, old, &mut faults);
    if part == Part::Main || (part == Part::Status && served.custom.is_some()) {
        served.validate(new, Some(old), &mut faults);
    }
    if part == Part::Ephemeral {
        (served.rules.validate)(new, &mut faults);
        (served.rules.validate_added)(new, old, &mut faults);
    }
    if matches!(part, Part::Status | Part::Approval) {
        (served.rules.validate_status)(new, &mut faults);
    }
    finish(served, new, &faults)
}

fn check_identity(served: &Served, new: &mut Value, old: &Value) -> Outcome<()> {
    let name = text(old, &["metadata", "name"]);
    let given = text(new, &["metadata", "name"]);
    if !given.is_empty() && given != name {
        return Err(bad_request(format!(
            "the name of the object ({given}) does not match the name on the URL ({name})"
        )));
    }
    let (uid, own) = (text(new, &["metadata", "uid"]), text(old, &["metadata", "uid"]));
    if !uid.is_empty() && uid != own {
        let why = format!("Precondition failed: UID in precondition: {uid}, UID in object meta: {own}");
        return Err(Box::new(Status::conflict(about(&served.resource, name), &why)));
    }
    check_namespace(new, text(old, &["metadata", "namespace"]))?;
    child(new, "metadata").insert("name".to_owned(), json!(name));
    Ok(())
}

fn keep_metadata(new: &mut Value, old: &Value) {
    let metadata = child(new, "metadata");
    for member in NOT_TAKEN {
        metadata.remove(*member);
    }
    for member in KEPT {
        let was = at(old, &["metadata", member]).cloned();
        // A deletion mark that a client makes up is a fault, found by validation; one it left out is kept.
        if *member == "deletionTimestamp"
            && was.is_none()
            && metadata.get(*member).is_some_and(|m| !m.is_null())
        {
            continue;
        }
        put(metadata, member, was);
    }
    if let Some(prefix) = at(old, &["metadata", "generateName"]) {
        metadata.insert("generateName".to_owned(), prefix.clone());
    }
}

/// A status write: everything else comes from the old object.
fn status_only(served: &Served, new: &mut Value, old: &Value) {
    let status = new.get("status").cloned();
    let mut metadata = old.get("metadata").cloned().unwrap_or_default();
    let taken: &[&str] = if served.rules.status_alone {
        &[]
    } else if served.rules.status_labels {
        &["labels", "annotations", "finalizers"]
    } else {
        &["annotations", "finalizers"]
    };
    for member in taken {
        put(object(&mut metadata), member, at(new, &["metadata", member]).cloned());
    }
    *new = old.clone();
    put(object(new), "metadata", Some(metadata));
    put(object(new), "status", status);
}

fn count_generation(served: &Served, new: &mut Value, old: &Value) {
    let was = int(old, &["metadata", "generation"]);
    if served.resource.counts_generation {
        let apart = served.resource.has_status() || served.custom.is_none();
        let differs = wanted(new, apart) != wanted(old, apart);
        let count = was.unwrap_or(1) + i64::from(differs);
        child(new, "metadata").insert("generation".to_owned(), json!(count));
    } else {
        put(child(new, "metadata"), "generation", was.map(Value::from));
    }
}

/// The desired state of an object: everything but metadata and, where it is `apart`, status.
fn wanted(object: &Value, apart: bool) -> Vec<(&String, &Value)> {
    let outside = |name: &str| name == "metadata" || (apart && name == "status");
    object.as_object().into_iter().flatten().filter(|(name, _)| !outside(name)).collect()
}

#[cfg(test)]
mod tests;
