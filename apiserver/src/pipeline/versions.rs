//! Between the store and the types: stored objects in the version that a request speaks, and back. A type with several
//! forms or versions is stored in one; the others, and custom objects that were stored before the schema changed, are
//! converted here and nowhere else.

use std::sync::Arc;

use bytes::Bytes;
use serde_json::Value;
use strata_store::record::Record;
use strata_store::txn;

use super::api::Api;
use super::conversion_webhook;
use super::create::to_bytes;
use super::event::Event;
use super::request::{Target, Written};
use crate::custom;
use crate::custom::definition::{Conversion, Custom, Webhook};
use crate::refusal::{Outcome, invalid};
use crate::storage;
use crate::strategy;
use crate::types::catalogue::Served;
use crate::value::{object, text};

/// Whether bytes that were stored at a revision are what a type serves, as they are.
fn is_current(served: &Served, revision: u64, bytes: &[u8]) -> bool {
    match (&served.form, &served.custom) {
        (Some(_), _) => false,
        (None, Some(custom)) => {
            revision > custom.definition.since && has_version(&custom.api_version(), bytes)
        }
        (None, None) => true,
    }
}

fn is_current_record(served: &Served, record: &Record) -> bool {
    is_current(served, record.modified.get(), &record.value)
}

/// Brings events of a watch into the version of a type, where nobody else has to be asked.
///
/// # Errors
/// Where an object cannot be read. `Ok(false)`: nothing was done, they wait for [`show_events`].
pub fn show_events_now(served: &Served, events: &mut [Event]) -> Outcome<bool> {
    let stale = stale_events(served, events);
    if stale.is_empty() {
        return Ok(true);
    }
    if webhook(served).is_some() {
        return Ok(false);
    }
    let mut objects = parsed(&stale, events)?;
    finish(served, &mut objects);
    put(&stale, &objects, events)?;
    Ok(true)
}

/// Brings events of a watch into the version of a type.
///
/// # Errors
/// Where a webhook does not convert them.
pub async fn show_events(served: &Served, events: &mut [Event]) -> Outcome<()> {
    let stale = stale_events(served, events);
    if stale.is_empty() {
        return Ok(());
    }
    let objects = convert_all(served, parsed(&stale, events)?).await?;
    put(&stale, &objects, events)
}

fn stale_events(served: &Served, events: &[Event]) -> Vec<usize> {
    let is_stale = |at: &usize| !is_current(served, events[*at].revision, &events[*at].bytes);
    (0..events.len()).filter(is_stale).collect()
}

fn parsed(which: &[usize], events: &[Event]) -> Outcome<Vec<Value>> {
    which.iter().map(|at| storage::parse_bytes(&events[*at].bytes)).collect()
}

fn put(which: &[usize], objects: &[Value], events: &mut [Event]) -> Outcome<()> {
    for (at, object) in which.iter().zip(objects) {
        events[*at].bytes = to_bytes(object)?;
    }
    Ok(())
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
        if is_current_record(served, record) { Ok(object) } else { self.shown(served, object).await }
    }

    /// A record in the version of a type: itself, where it is that already.
    pub async fn load_record(&self, served: &Served, record: &Arc<Record>) -> Outcome<Arc<Record>> {
        if is_current_record(served, record) {
            return Ok(Arc::clone(record));
        }
        in_place(record, &self.load(served, record).await?)
    }

    /// The bytes of a record in the version of a type.
    pub async fn load_bytes(&self, served: &Served, record: &Record) -> Outcome<Bytes> {
        if is_current_record(served, record) {
            return Ok(record.value.clone());
        }
        to_bytes(&self.load(served, record).await?)
    }

    /// Records in the version of a type, all in one conversion.
    pub async fn load_all(&self, served: &Served, records: &mut [Arc<Record>]) -> Outcome<()> {
        let is_stale = |at: &usize| !is_current_record(served, &records[*at]);
        let stale: Vec<usize> = (0..records.len()).filter(is_stale).collect();
        if stale.is_empty() {
            return Ok(());
        }
        let objects = stale.iter().map(|at| storage::parse(&records[*at])).collect::<Outcome<Vec<_>>>()?;
        for (at, object) in stale.into_iter().zip(convert_all(served, objects).await?) {
            records[at] = in_place(&records[at], &object)?;
        }
        Ok(())
    }

    /// A stored object in the version of a type, with the defaults that are valid now.
    pub async fn shown(&self, served: &Served, object: Value) -> Outcome<Value> {
        Ok(convert_all(served, vec![object]).await?.into_iter().next().unwrap_or_default())
    }

    /// What is stored of an object of a type.
    pub async fn save(&self, served: &Served, new: &Value) -> Outcome<txn::Value> {
        let Some(custom) = &served.custom else { return storage::stamped(new) };
        let definition = &custom.definition;
        if custom.index == definition.storage {
            return storage::stamped(new);
        }
        let stored = Custom { definition: Arc::clone(definition), index: definition.storage };
        let mut converted = match &definition.conversion {
            Conversion::None => vec![new.clone()],
            Conversion::Webhook(webhook) => asked(webhook, &stored, vec![new.clone()]).await?,
        };
        settle(&stored, &mut converted);
        storage::stamped(converted.first().unwrap_or(new))
    }
}

impl Target {
    /// The same place, of the type as it is stored. A form of a built-in type is written as what it is stored as, since
    /// its rules and owners are those of the stored type; a custom type is written in the version that is asked for.
    pub fn stored(&self) -> Self {
        Self { served: Arc::clone(self.served.stored()), ..self.clone() }
    }

    /// A body of the target's type in the form in which it is written.
    pub fn store(&self, mut body: Value) -> Outcome<Value> {
        if let Some(form) = &self.served.form {
            strategy::check_type(&self.served, &mut body)?;
            let mut faults = Vec::new();
            (form.conversion.validate)(&body, &mut faults);
            if !faults.is_empty() {
                return Err(invalid(&self.served.resource, text(&body, &["metadata", "name"]), &faults));
            }
            self.served.store(&mut body);
        }
        Ok(body)
    }

    /// What was written, in the form of the target's type.
    pub fn show(&self, bytes: Bytes) -> Outcome<Bytes> {
        if self.served.form.is_none() {
            return Ok(bytes);
        }
        let mut object = storage::parse_bytes(&bytes)?;
        self.served.show(&mut object);
        to_bytes(&object)
    }
}

impl Written {
    /// The same, in the form of the target's type.
    pub fn shown(self, target: &Target) -> Outcome<Self> {
        Ok(Self { bytes: target.show(self.bytes)?, ..self })
    }
}

/// A record with another object in its place.
fn in_place(record: &Record, object: &Value) -> Outcome<Arc<Record>> {
    Ok(Arc::new(Record::new(record.key.clone(), to_bytes(object)?, record.created, record.modified)))
}

/// The webhook that converts objects of a type, where one does.
fn webhook(served: &Served) -> Option<(&Webhook, &Custom)> {
    let custom = served.custom.as_ref()?;
    match &custom.definition.conversion {
        Conversion::None => None,
        Conversion::Webhook(webhook) => Some((webhook.as_ref(), custom)),
    }
}

/// Objects as they are stored, of whatever version each is, in that of a type.
async fn convert_all(served: &Served, objects: Vec<Value>) -> Outcome<Vec<Value>> {
    let mut objects = match webhook(served) {
        Some((webhook, custom)) => asked(webhook, custom, objects).await?,
        None => objects,
    };
    finish(served, &mut objects);
    Ok(objects)
}

/// The part of a conversion that asks nobody.
fn finish(served: &Served, objects: &mut [Value]) {
    objects.iter_mut().for_each(|object| served.show(object));
    if let Some(custom) = &served.custom {
        settle(custom, objects);
    }
}

/// Objects with the name of a version, and what its schema takes away and fills in.
fn settle(custom: &Custom, objects: &mut [Value]) {
    let version = custom.api_version();
    for converted in objects {
        object(converted).insert("apiVersion".to_owned(), version.clone().into());
        custom::prune::prune(custom.schema(), converted);
        custom::default::fill(custom.schema(), converted);
    }
}

/// Objects as a webhook converts those that are of another version.
async fn asked(webhook: &Webhook, custom: &Custom, mut objects: Vec<Value>) -> Outcome<Vec<Value>> {
    let version = custom.api_version();
    let is_foreign = |at: &usize| text(&objects[*at], &["apiVersion"]) != version;
    let foreign: Vec<usize> = (0..objects.len()).filter(is_foreign).collect();
    if !foreign.is_empty() {
        let sent = foreign.iter().map(|at| objects[*at].clone()).collect();
        let answered = conversion_webhook::ask(webhook, &custom.definition, &version, sent).await?;
        for (at, converted) in foreign.into_iter().zip(answered) {
            objects[at] = converted;
        }
    }
    Ok(objects)
}
