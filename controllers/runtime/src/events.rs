//! Tells people: core/v1 Events. Best effort and apart from the work: a full queue drops, an error is logged, and
//! nothing waits for it.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use jiff::Timestamp;
use serde_json::{Value, json};
use strata_client::client::Client;
use strata_client::error::{Class, ClientError};
use strata_client::options::{Patch, WriteOptions};
use strata_model::condition::rfc3339;
use strata_model::names::fnv32;
use strata_model::object::ObjectKey;
use strata_model::resource::builtin;
use strata_plan::controller::{EventType, Target};
use tokio::sync::mpsc;
use tokio::time::Instant;

use crate::correlator::{Correlator, Same, Tell};

/// Events that may wait to be sent.
const QUEUE: usize = 128;
/// Longest message, bytes, as the API allows.
const MAX_MESSAGE: usize = 1024;

/// One thing to be told.
#[derive(Clone, Debug)]
pub struct Told {
    /// About which object.
    pub about: Target,
    /// Normal or warning.
    pub type_: EventType,
    /// One CamelCase word.
    pub reason: &'static str,
    /// A sentence.
    pub message: String,
}

/// Takes what is to be told. Cheap to clone.
#[derive(Clone)]
pub struct Recorder {
    to: mpsc::Sender<Told>,
    dropped: Arc<AtomicU64>,
}

impl Recorder {
    /// A recorder that speaks as `component`, and the work behind it: run it on a task; it ends with the last recorder.
    pub fn new(client: Client, component: &'static str) -> (Self, impl Future<Output = ()> + Send) {
        let (to, from) = mpsc::channel(QUEUE);
        (Self { to, dropped: Arc::default() }, work(client, component, from))
    }

    /// Tells. Does not wait.
    pub fn tell(&self, told: Told) {
        if let Err(error) = self.to.try_send(told) {
            self.dropped.fetch_add(1, Ordering::Relaxed);
            tracing::debug!(%error, "event dropped");
        }
    }

    /// How many were dropped because too many waited.
    pub fn dropped(&self) -> u64 {
        self.dropped.load(Ordering::Relaxed)
    }
}

async fn work(client: Client, component: &'static str, mut from: mpsc::Receiver<Told>) {
    let mut correlator = Correlator::default();
    let start = Instant::now();
    while let Some(told) = from.recv().await {
        let same = Same {
            uid: told.about.uid.clone(),
            warning: told.type_ == EventType::Warning,
            reason: told.reason.to_owned(),
            message: told.message.clone(),
        };
        let outcome = match correlator.tell(&same, start.elapsed()) {
            Tell::Nothing => continue,
            Tell::New => create(&client, component, &told, same, &mut correlator).await,
            Tell::Again { name, count } => match raise(&client, component, &told, &name, count).await {
                Err(error) if error.class() == Class::NotFound => {
                    correlator.forget(&same);
                    create(&client, component, &told, same, &mut correlator).await
                }
                other => other,
            },
        };
        if let Err(error) = outcome {
            tracing::debug!(error = &error as &dyn std::error::Error, about = %told.about.key, "event not stored");
        }
    }
}

/// Events about cluster-scoped objects live in `default`.
fn namespace(told: &Told) -> &str {
    match told.about.key.namespace.as_str() {
        "" => "default",
        namespace => namespace,
    }
}

async fn create(
    client: &Client,
    component: &'static str,
    told: &Told,
    same: Same,
    correlator: &mut Correlator,
) -> Result<(), ClientError> {
    let now = Timestamp::now();
    let name = name(told, now);
    let event = event(told, component, &name, now);
    let options = WriteOptions { field_manager: component.to_owned(), ..WriteOptions::default() };
    client.create(&builtin::EVENT, namespace(told), event.to_string(), &options).await?;
    correlator.told(same, name);
    Ok(())
}

async fn raise(
    client: &Client,
    component: &'static str,
    told: &Told,
    name: &str,
    count: u32,
) -> Result<(), ClientError> {
    let patch = json!({"count": count, "lastTimestamp": rfc3339(Timestamp::now())});
    let key = ObjectKey::new(namespace(told), name);
    let options = WriteOptions { field_manager: component.to_owned(), ..WriteOptions::default() };
    client.patch(&builtin::EVENT, &key, "", &Patch::Merge(patch), &options).await.map(|_| ())
}

/// `<object>.<hash>`: the same at the same instant only for the same event.
fn name(told: &Told, now: Timestamp) -> String {
    let words = format!("{} {} {}", told.about.uid, told.reason, told.message);
    let hash = u64::from(fnv32(words.as_bytes())) << 32 | u64::from(fnv32(now.to_string().as_bytes()));
    // Names are at most 253 bytes, of ASCII.
    let object: String = told.about.key.name.chars().take(236).collect();
    format!("{object}.{hash:016x}")
}

fn event(told: &Told, component: &str, name: &str, now: Timestamp) -> Value {
    let about = &told.about;
    let type_ = if told.type_ == EventType::Warning { "Warning" } else { "Normal" };
    let mut message = told.message.clone();
    while message.len() > MAX_MESSAGE {
        message.pop();
    }
    let at = rfc3339(now);
    let mut involved = json!({
        "apiVersion": about.resource.api_version(), "kind": about.resource.kind,
        "name": about.key.name, "uid": about.uid,
    });
    if !about.key.namespace.is_empty() {
        involved["namespace"] = json!(about.key.namespace);
    }
    if let Some(version) = &about.resource_version {
        involved["resourceVersion"] = json!(version);
    }
    json!({
        "apiVersion": "v1", "kind": "Event",
        "metadata": {"name": name, "namespace": namespace(told)},
        "involvedObject": involved,
        "type": type_, "reason": told.reason, "message": message, "count": 1,
        "firstTimestamp": at, "lastTimestamp": at,
        "source": {"component": component}, "reportingComponent": component, "reportingInstance": component,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_event_says_who_what_and_about_which_object() {
        let about = Target {
            resource: builtin::DEPLOYMENT.clone(),
            key: ObjectKey::new("n", "web"),
            uid: "u".into(),
            resource_version: Some("7".into()),
        };
        let told = Told { about, type_: EventType::Normal, reason: "Scaled", message: "x".repeat(3000) };
        let now = Timestamp::UNIX_EPOCH;
        let event = event(&told, "deployment-controller", &name(&told, now), now);
        assert_eq!(event["involvedObject"]["apiVersion"], "apps/v1");
        assert_eq!(event["metadata"]["namespace"], "n");
        assert_eq!(event["message"].as_str().map(str::len), Some(1024));
        assert!(event["metadata"]["name"].as_str().is_some_and(|n| n.starts_with("web.") && n.len() == 20));
    }
}
