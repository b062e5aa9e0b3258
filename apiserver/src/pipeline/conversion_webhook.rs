//! Conversion webhooks: objects sent to another process, and taken back in another version.

use std::time::Duration;

use serde_json::{Value, json};

use crate::custom::definition::{Definition, Webhook};
use crate::refusal::{Outcome, Refusal, internal};
use crate::value::{list, object, put, text};
use crate::webhook::{self, Endpoint};

/// How long one conversion may take.
const TIMEOUT: Duration = Duration::from_secs(10);
/// Most objects of one call.
const BATCH: usize = 500;
/// Members of metadata that a conversion may change.
const CHANGEABLE: &[&str] = &["annotations", "labels"];

/// Asks a webhook for objects in a version.
///
/// # Errors
/// Where it cannot be reached, takes too long, fails, or answers something else than it was asked for.
pub async fn ask(
    webhook: &Webhook,
    definition: &Definition,
    version: &str,
    objects: Vec<Value>,
) -> Outcome<Vec<Value>> {
    let mut converted = Vec::with_capacity(objects.len());
    for batch in objects.chunks(BATCH) {
        let uid = uuid::Uuid::new_v4().to_string();
        let refused = |why: &str| failed(definition, batch, why);
        let answer = match endpoint(webhook) {
            Ok(endpoint) => webhook::call(endpoint, &review(webhook, &uid, version, batch), TIMEOUT).await,
            Err(why) => return Err(refused(why)),
        };
        let answer = answer.map_err(|error| refused(&told(&error)))?;
        converted.extend(take(&answer, &uid, version, batch).map_err(|why| refused(&why))?);
    }
    Ok(converted)
}

fn endpoint(webhook: &Webhook) -> Result<Endpoint<'_>, &'static str> {
    if webhook.url.is_empty() {
        return Err("services are not reached by this server: name the webhook by its url");
    }
    Ok(Endpoint { url: &webhook.url, address: "", authority: &webhook.authority })
}

fn review(webhook: &Webhook, uid: &str, version: &str, objects: &[Value]) -> Value {
    let understood = webhook.reviews.iter().find(|version| matches!(version.as_str(), "v1" | "v1beta1"));
    let review = understood.map_or("v1", String::as_str);
    json!({"apiVersion": format!("apiextensions.k8s.io/{review}"), "kind": "ConversionReview",
        "request": {"uid": uid, "desiredAPIVersion": version, "objects": objects}})
}

/// An error with all that is below it.
fn told(error: &webhook::WebhookError) -> String {
    let mut text = error.to_string();
    let mut below = std::error::Error::source(error);
    while let Some(source) = below {
        text.push_str(": ");
        text.push_str(&source.to_string());
        below = source.source();
    }
    text
}

fn failed(definition: &Definition, objects: &[Value], why: &str) -> Refusal {
    let version = objects.first().map_or("", |object| text(object, &["apiVersion"]));
    let mut status = internal("");
    status.message =
        format!("conversion webhook for {version}, Kind={} failed: {why}", definition.names.kind);
    status
}

/// Takes the converted objects out of an answer. A conversion changes what an object is, never which one it is.
fn take(answer: &Value, uid: &str, version: &str, asked: &[Value]) -> Result<Vec<Value>, String> {
    let response = answer.get("response").ok_or("the answer has no response")?;
    if text(response, &["uid"]) != uid {
        return Err("the answer is to another request".to_owned());
    }
    if text(response, &["result", "status"]) != "Success" {
        let message = text(response, &["result", "message"]);
        return Err(if message.is_empty() {
            "it says so, and not why".to_owned()
        } else {
            message.to_owned()
        });
    }
    let given = list(response, &["convertedObjects"]);
    if given.len() != asked.len() {
        return Err(format!("it was asked for {} objects and gave {}", asked.len(), given.len()));
    }
    asked.iter().zip(given).map(|(old, new)| check(old, new.clone(), version)).collect()
}

fn check(old: &Value, mut new: Value, version: &str) -> Result<Value, String> {
    let name = text(old, &["metadata", "name"]);
    if text(&new, &["apiVersion"]) != version || text(&new, &["kind"]) != text(old, &["kind"]) {
        return Err(format!("it gave {name} as another type than {version}"));
    }
    for member in ["name", "namespace", "uid"] {
        if text(&new, &["metadata", member]) != text(old, &["metadata", member]) {
            return Err(format!("it changed metadata.{member} of {name}"));
        }
    }
    let mut metadata = old.get("metadata").cloned().unwrap_or_default();
    for member in CHANGEABLE {
        let changed = new.pointer(&format!("/metadata/{member}")).filter(|value| !value.is_null()).cloned();
        put(object(&mut metadata), member, changed);
    }
    put(object(&mut new), "metadata", Some(metadata));
    Ok(new)
}
