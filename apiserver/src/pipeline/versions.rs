//! Between the store and the types: stored objects in the version that a request speaks, and back. A custom type has one
//! stored version; its other versions, and objects that were stored before the schema changed, are converted here.

use std::sync::Arc;

use bytes::Bytes;
use serde_json::Value;
use strata_store::record::Record;
use strata_store::txn;

use super::api::Api;
use super::conversion_webhook;
use super::create::to_bytes;
use super::event::Event;
use crate::custom;
use crate::custom::definition::{Conversion, Custom};
use crate::refusal::Outcome;
use crate::storage;
use crate::types::catalogue::Served;
use crate::value::{object, text};

/// Whether a record's bytes are what a type serves, as they are.
pub fn is_current(served: &Served, record: &Record) -> bool {
    let Some(custom) = &served.custom else { return true };
    record.modified.get() > custom.definition.since && has_version(&custom.api_version(), &record.value)
}

/// Events of a watch in the version of a type.
///
/// # Errors
/// Where a webhook does not convert them.
pub async fn show_events(served: &Served, events: &mut [Event]) -> Outcome<()> {
    let Some(custom) = &served.custom else { return Ok(()) };
    let stale: Vec<usize> = (0..events.len()).filter(|at| !is_current_event(custom, &events[*at])).collect();
    if stale.is_empty() {
        return Ok(());
    }
    let objects =
        stale.iter().map(|at| storage::parse_bytes(&events[*at].bytes)).collect::<Outcome<Vec<_>>>()?;
    for (at, object) in stale.into_iter().zip(convert_all(custom, objects).await?) {
        events[at].bytes = to_bytes(&object)?;
    }
    Ok(())
}

/// Whether all events are what a type serves, as they are.
pub fn are_current(served: &Served, events: &[Event]) -> bool {
    served.custom.as_ref().is_none_or(|custom| events.iter().all(|event| is_current_event(custom, event)))
}

fn is_current_event(custom: &Custom, event: &Event) -> bool {
    event.revision > custom.definition.since && has_version(&custom.api_version(), &event.bytes)
}

/// Whether a record lies in another version than the one that is stored now.
pub fn is_outdated(served: &Served, record: &Record) -> bool {
    let Some(custom) = &served.custom else { return false };
    let definition = Arc::clone(&custom.definition);
    let stored = Custom { index: definition.storage, definition };
    !has_version(&stored.api_version(), &record.value)
}

/// Whether stored bytes say that they are of a version. Members are in alphabetical order, so it stands first.
fn has_version(version: &str, bytes: &[u8]) -> bool {
    let head = br#"{"apiVersion":""#;
    bytes.strip_prefix(head).is_some_and(|rest| {
        rest.strip_prefix(version.as_bytes()).is_some_and(|rest| rest.first() == Some(&b'"'))
    })
}

impl Api {
    /// The object of a record in the version of a type.
    pub async fn load(&self, served: &Served, record: &Record) -> Outcome<Value> {
        let object = storage::parse(record)?;
        if is_current(served, record) { Ok(object) } else { self.shown(served, object).await }
    }

    /// A record in the version of a type: itself, where it is that already.
    pub async fn load_record(&self, served: &Served, record: &Arc<Record>) -> Outcome<Arc<Record>> {
        if is_current(served, record) {
            return Ok(Arc::clone(record));
        }
        let bytes = to_bytes(&self.load(served, record).await?)?;
        Ok(Arc::new(Record::new(record.key.clone(), bytes, record.created, record.modified)))
    }

    /// The bytes of a record in the version of a type.
    pub async fn load_bytes(&self, served: &Served, record: &Record) -> Outcome<Bytes> {
        if is_current(served, record) {
            return Ok(record.value.clone());
        }
        to_bytes(&self.load(served, record).await?)
    }

    /// Records in the version of a type, all in one conversion.
    pub async fn load_all(&self, served: &Served, records: &mut [Arc<Record>]) -> Outcome<()> {
        let Some(custom) = &served.custom else { return Ok(()) };
        let (version, since) = (custom.api_version(), custom.definition.since);
        let current = |record: &Record| record.modified.get() > since && has_version(&version, &record.value);
        let stale: Vec<usize> = (0..records.len()).filter(|at| !current(&records[*at])).collect();
        if stale.is_empty() {
            return Ok(());
        }
        let objects = stale.iter().map(|at| storage::parse(&records[*at])).collect::<Outcome<Vec<_>>>()?;
        let shown = convert_all(custom, objects).await?;
        for (at, object) in stale.into_iter().zip(shown) {
            let old = &records[at];
            records[at] =
                Arc::new(Record::new(old.key.clone(), to_bytes(&object)?, old.created, old.modified));
        }
        Ok(())
    }

    /// A stored object in the version of a type, with the defaults that are valid now.
    pub async fn shown(&self, served: &Served, object: Value) -> Outcome<Value> {
        match &served.custom {
            None => Ok(object),
            Some(custom) => {
                Ok(convert_all(custom, vec![object]).await?.into_iter().next().unwrap_or_default())
            }
        }
    }

    /// What is stored of an object of a type.
    pub async fn save(&self, served: &Served, new: &Value) -> Outcome<txn::Value> {
        let Some(custom) = &served.custom else { return storage::stamped(new) };
        let definition = &custom.definition;
        if custom.index == definition.storage {
            return storage::stamped(new);
        }
        let stored = Custom { definition: Arc::clone(definition), index: definition.storage };
        let converted = convert_all(&stored, vec![new.clone()]).await?;
        storage::stamped(converted.first().unwrap_or(new))
    }
}

/// Objects, of whatever version each is, in one version.
async fn convert_all(custom: &Custom, mut objects: Vec<Value>) -> Outcome<Vec<Value>> {
    let version = custom.api_version();
    match &custom.definition.conversion {
        Conversion::None => {
            for converted in &mut objects {
                object(converted).insert("apiVersion".to_owned(), version.clone().into());
            }
        }
        Conversion::Webhook(webhook) => {
            let foreign: Vec<usize> =
                (0..objects.len()).filter(|at| text(&objects[*at], &["apiVersion"]) != version).collect();
            if !foreign.is_empty() {
                let asked = foreign.iter().map(|at| objects[*at].clone()).collect();
                let answered = conversion_webhook::ask(webhook, &custom.definition, &version, asked).await?;
                for (at, converted) in foreign.into_iter().zip(answered) {
                    objects[at] = converted;
                }
            }
        }
    }
    for converted in &mut objects {
        custom::prune::prune(custom.schema(), converted);
        custom::default::fill(custom.schema(), converted);
    }
    Ok(objects)
}
