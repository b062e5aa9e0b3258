//! What one transaction did to one object, and the window of the newest such changes that an answer holds.

use std::collections::{BTreeSet, VecDeque};
use std::sync::Arc;
use std::time::SystemTime;

use serde_json::Value;
use strata_store::record::Record;
use strata_store::txn::{Change, Transaction};

use super::cause::Cause;
use crate::managed::compare;
use crate::managed::shape::Schema;
use crate::refusal::Outcome;
use crate::storage;

/// Most changes that one answer holds.
pub const MAX_CHANGES: usize = 10_000;
/// How many changes an answer holds where the request does not say.
pub const DEFAULT_CHANGES: usize = 1_000;
/// Most bytes of objects, before and after, that are held for one answer.
pub const MAX_CHANGES_BYTES: usize = 32 << 20;
/// Most fields that are named of one change.
pub const MAX_FIELDS: usize = 256;

/// A change of one object.
#[derive(Clone, Debug)]
pub struct Happened {
    /// The revision of its transaction.
    pub revision: u64,
    /// When.
    pub time: SystemTime,
    /// Who, how and why.
    pub cause: Cause,
    /// The record after it; `None` where the object was deleted.
    pub record: Option<Arc<Record>>,
    /// The record before it; `None` where the object was created.
    pub previous: Option<Arc<Record>>,
}

impl Happened {
    /// A change within a transaction.
    pub fn new(transaction: &Transaction, change: &Change) -> Self {
        Self {
            revision: transaction.revision.get(),
            time: transaction.time,
            cause: Cause::read(&transaction.cause),
            record: change.record.clone(),
            previous: change.previous.clone(),
        }
    }

    /// The object after it, or as it was when it was deleted.
    pub fn last(&self) -> Option<&Arc<Record>> {
        self.record.as_ref().or(self.previous.as_ref())
    }

    fn size(&self) -> usize {
        [&self.record, &self.previous].into_iter().flatten().map(|record| record.size()).sum()
    }

    /// The fields that got another value or went, for people, such as `.spec.replicas`; none of a creation or deletion.
    /// The flag tells whether there were more than are named.
    pub fn fields(&self, schema: Schema<'_>) -> Outcome<(Vec<String>, bool)> {
        let (Some(before), Some(after)) = (&self.previous, &self.record) else {
            return Ok((Vec::new(), false));
        };
        let (old, new) = (storage::parse(before)?, storage::parse(after)?);
        let mut fields = changed(schema, &old, &new);
        let more = fields.len() > MAX_FIELDS;
        fields.truncate(MAX_FIELDS);
        Ok((fields, more))
    }
}

/// The fields in which two versions of an object differ, in order. What the server counts itself does not matter.
pub fn changed(schema: Schema<'_>, old: &Value, new: &Value) -> Vec<String> {
    let changes = compare::objects(schema, Some(old), new);
    let mut fields = changes.set.paths();
    fields.extend(changes.removed.paths());
    let marks = ["deletionTimestamp", "deletionGracePeriodSeconds"];
    let marked = marks.iter().filter(|mark| old["metadata"][**mark] != new["metadata"][**mark]);
    fields.extend(marked.map(|mark| format!(".metadata.{mark}")));
    if fields.is_empty() && old["metadata"]["managedFields"] != new["metadata"]["managedFields"] {
        fields.push(".metadata.managedFields".to_owned());
    }
    let fields: BTreeSet<String> = fields.into_iter().collect();
    // A struct or map that came or went is told by what is in it.
    let begins =
        |start: String| fields.range(start.clone()..).next().is_some_and(|next| next.starts_with(&start));
    let is_told = |field: &&String| begins(format!("{field}.")) || begins(format!("{field}["));
    fields.iter().filter(|field| !is_told(field)).cloned().collect()
}

/// The newest changes that are wanted, oldest first.
#[derive(Debug)]
pub struct Window {
    changes: VecDeque<Happened>,
    limit: usize,
    bytes: usize,
    cut: bool,
}

impl Window {
    /// Of at most so many changes; 0 is the default.
    pub fn new(limit: u64) -> Self {
        let limit = match usize::try_from(limit) {
            Ok(0) => DEFAULT_CHANGES,
            Ok(limit) => limit.min(MAX_CHANGES),
            Err(_) => MAX_CHANGES,
        };
        Self { changes: VecDeque::new(), limit, bytes: 0, cut: false }
    }

    /// Adds the next newer change; the oldest leave as the limits ask.
    pub fn push(&mut self, change: Happened) {
        self.bytes += change.size();
        self.changes.push_back(change);
        while self.changes.len() > self.limit || (self.bytes > MAX_CHANGES_BYTES && self.changes.len() > 1) {
            let Some(oldest) = self.changes.pop_front() else { break };
            self.bytes -= oldest.size();
            self.cut = true;
        }
    }

    /// Whether older ones were left out.
    pub fn is_cut(&self) -> bool {
        self.cut
    }

    /// The changes, oldest first.
    pub fn into_changes(self) -> VecDeque<Happened> {
        self.changes
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;
    use strata_store::revision::Revision;

    fn change(revision: u64, bytes: usize) -> Happened {
        let at = Revision::new(revision);
        let record = Arc::new(Record::new("k".into(), vec![b'x'; bytes].into(), at, at));
        let (time, cause) = (SystemTime::UNIX_EPOCH, Cause::default());
        Happened { revision, time, cause, record: Some(record), previous: None }
    }

    #[test]
    fn the_newest_are_kept_within_count_and_bytes() {
        let mut window = Window::new(3);
        (1..=3).for_each(|revision| window.push(change(revision, 1)));
        assert!(!window.is_cut());
        window.push(change(4, 1));
        assert!(window.is_cut());
        let kept = window.into_changes();
        assert_eq!(kept.iter().map(|c| c.revision).collect::<Vec<_>>(), [2, 3, 4]);
        let mut window = Window::new(0);
        (1..=3).for_each(|revision| window.push(change(revision, MAX_CHANGES_BYTES / 2)));
        assert_eq!(window.into_changes().len(), 1, "bytes are bounded, and the newest stays");
    }

    #[test]
    fn fields_are_named_and_the_servers_own_are_not() {
        let old = json!({"metadata": {"name": "a", "resourceVersion": "1", "labels": {"x": "1"},
            "managedFields": [1]}, "spec": {"replicas": 1, "gone": true}});
        let mut new = old.clone();
        new["metadata"]["resourceVersion"] = json!("2");
        new["metadata"]["managedFields"] = json!([2]);
        assert_eq!(changed(Schema::UNKNOWN, &old, &new), [".metadata.managedFields"]);
        new["metadata"]["labels"]["x"] = json!("2");
        new["metadata"]["deletionTimestamp"] = json!("now");
        new["metadata"]["annotations"] = json!({"a": "b"});
        new["spec"] = json!({"replicas": 2});
        assert_eq!(
            changed(Schema::UNKNOWN, &old, &new),
            [
                ".metadata.annotations.a",
                ".metadata.deletionTimestamp",
                ".metadata.labels.x",
                ".spec.gone",
                ".spec.replicas"
            ]
        );
    }
}
