//! Events: etcd's changes of keys as the store's transactions. Pure.

use std::sync::Arc;
use std::time::{SystemTime, UNIX_EPOCH};

use bytes::Bytes;

use crate::engine::etcd::layout::{self, Layout, Line, Note};
use crate::engine::etcd::wire::{DELETE, Event, KeyValue};
use crate::error::EngineError;
use crate::key::Key;
use crate::record::Record;
use crate::revision::Revision;
use crate::txn::{Change, Transaction};

/// What happened at one revision of etcd.
#[derive(Debug)]
pub struct Step {
    /// etcd's revision.
    pub at: i64,
    /// Changes of records: the key, and what is stored of it before and after.
    changes: Vec<(Key, Event)>,
    /// What the writer said, if it was a store.
    pub note: Option<Note>,
    /// Whether the fence was written.
    pub is_fence: bool,
}

/// Time of a transaction whose writer did not say it.
pub const UNKNOWN_TIME: SystemTime = UNIX_EPOCH;

/// Sorts a response's events into steps, oldest first. etcd never splits a revision between responses.
pub fn steps(layout: &Layout, events: Vec<Event>) -> Result<Vec<Step>, EngineError> {
    let (last, fence) = (layout.last(), layout.fence());
    let mut steps: Vec<Step> = Vec::new();
    for event in events {
        let Some(kv) = &event.kv else { continue };
        if steps.last().is_none_or(|step| step.at != kv.mod_revision) {
            steps.push(Step { at: kv.mod_revision, changes: Vec::new(), note: None, is_fence: false });
        }
        let Some(step) = steps.last_mut() else { continue };
        if kv.key == last && event.kind != DELETE {
            step.note = Some(Note::read(&kv.value).map_err(|what| damaged(&kv.key, kv, what))?);
        } else if kv.key == fence {
            step.is_fence = true;
        } else if let Some(key) = layout.key(&kv.key) {
            step.changes.push((key, event));
        }
    }
    Ok(steps)
}

/// Stored bytes that cannot be read.
pub fn damaged(key: &Bytes, kv: &KeyValue, what: &str) -> EngineError {
    let file = format!("etcd key {} at revision {}", key.escape_ascii(), kv.mod_revision);
    EngineError::Corrupt { file, offset: 0, what: what.to_owned() }
}

/// The record that etcd keeps in `kv` for `key`.
pub fn record(line: &Line, key: &Key, kv: &KeyValue) -> Result<Arc<Record>, EngineError> {
    layout::record(key.clone(), kv, line).map(Arc::new).map_err(|what| damaged(&kv.key, kv, what))
}

impl Step {
    /// The step as a transaction, `None` if no record changed; `previous` gives what was there before a
    /// change.
    pub fn transaction(
        &self,
        line: &Line,
        mut previous: impl FnMut(&Key, &Event) -> Result<Option<Arc<Record>>, EngineError>,
    ) -> Result<Option<Arc<Transaction>>, EngineError> {
        let mut changes = Vec::with_capacity(self.changes.len());
        for (key, event) in &self.changes {
            let record = match &event.kv {
                Some(kv) if event.kind != DELETE => Some(record(line, key, kv)?),
                _ => None,
            };
            let previous = previous(key, event)?;
            if record.is_some() || previous.is_some() {
                changes.push(Change { key: key.clone(), record, previous });
            }
        }
        if changes.is_empty() {
            return Ok(None);
        }
        let time = self.note.as_ref().map_or(UNKNOWN_TIME, |note| note.time);
        let cause = self.note.as_ref().map_or_else(Bytes::new, |note| note.cause.clone());
        Ok(Some(Arc::new(Transaction { revision: line.revision(self.at), time, cause, changes })))
    }

    /// The step as a transaction out of what etcd says of the past by itself.
    pub fn transaction_of_history(&self, line: &Line) -> Result<Option<Arc<Transaction>>, EngineError> {
        self.transaction(line, |key, event| {
            let before = event.prev_kv.as_ref().map(|kv| record(line, key, kv)).transpose()?;
            // etcd leaves out what was compacted while it read.
            let is_first = event.kind != DELETE && event.kv.as_ref().is_some_and(|kv| kv.version == 1);
            if before.is_none() && !is_first {
                return Err(EngineError::Compacted { oldest: self.revision(line) });
            }
            Ok(before)
        })
    }

    /// The store's revision.
    #[must_use]
    pub fn revision(&self, line: &Line) -> Revision {
        line.revision(self.at)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::engine::etcd::layout::put_value;
    use crate::txn::Value;

    fn event(key: Bytes, at: i64, version: i64, value: Option<Vec<u8>>) -> Event {
        let kind = if value.is_none() { DELETE } else { 0 };
        let (create_revision, value) = (at, value.unwrap_or_default().into());
        let kv = KeyValue { key, create_revision, mod_revision: at, version, value };
        Event { kind, kv: Some(kv), prev_kv: None }
    }

    #[test]
    fn a_revision_is_a_transaction() {
        let layout = Layout::new("/s");
        let line = Line::new(1, None);
        let note = Note { writer: 1, number: 2, time: UNIX_EPOCH, cause: "why".into() };
        let value = |text: &str| Some(put_value(&Value::plain(text.to_owned()), None, None));
        let events = vec![
            event(layout.data(&"a".into()), 5, 1, value("1")),
            event(layout.data(&"b".into()), 5, 1, value("2")),
            event(layout.last(), 5, 1, Some(note.put())),
            event(layout.fence(), 6, 1, Some(Vec::new())),
            event(layout.data(&"a".into()), 9, 0, None),
        ];
        let steps = steps(&layout, events).unwrap();
        assert_eq!(steps.iter().map(|step| step.at).collect::<Vec<_>>(), [5, 6, 9]);
        let first = steps[0].transaction_of_history(&line).unwrap().unwrap();
        assert_eq!((first.changes.len(), first.cause.clone()), (2, "why".into()));
        assert_eq!((steps[0].note.clone(), steps[0].is_fence), (Some(note), false));
        assert!(steps[1].is_fence && steps[1].transaction_of_history(&line).unwrap().is_none());
        let gone = steps[2].transaction_of_history(&line);
        assert!(matches!(gone, Err(EngineError::Compacted { .. })), "what was deleted is not known");
        let before = first.changes[0].record.clone();
        let last = steps[2].transaction(&line, |_, _| Ok(before.clone())).unwrap().unwrap();
        assert_eq!((last.changes[0].previous.clone(), last.time), (before, UNKNOWN_TIME));
    }
}
