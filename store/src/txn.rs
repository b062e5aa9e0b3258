//! Txn: what a writer asks for, and what it is told; and Transaction: what history keeps of it.
//! Knows nothing of how a transaction is decided or made durable.

use std::sync::Arc;
use std::time::SystemTime;

use bytes::Bytes;

use crate::key::{Key, KeyRange};
use crate::record::Record;
use crate::revision::Revision;

/// Most conditions and mutations, each, that one transaction may carry.
pub const MAX_TXN_STEPS: usize = 4096;

/// Most bytes of keys, values and cause that one transaction may carry.
pub const MAX_TXN_BYTES: usize = 8 << 20;

/// A value to store.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Value {
    /// The bytes. They are kept as they are: copy them out of a larger buffer first, or it is pinned.
    pub bytes: Bytes,
    /// Byte offset at which the decimal digits of the transaction's revision are spliced in.
    pub stamp: Option<u32>,
}

impl Value {
    /// A value stored as it is.
    #[must_use]
    pub fn plain(bytes: impl Into<Bytes>) -> Self {
        Value { bytes: bytes.into(), stamp: None }
    }

    /// A value with the revision's digits spliced in at byte `offset`.
    #[must_use]
    pub fn stamped(bytes: impl Into<Bytes>, offset: u32) -> Self {
        Value { bytes: bytes.into(), stamp: Some(offset) }
    }
}

/// What must hold of a key for a transaction to happen.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Condition {
    /// The key is not there.
    Absent,
    /// The key is there and was last modified at exactly this revision.
    At(Revision),
    /// The key is there.
    Present,
}

impl Condition {
    /// Whether the condition holds of a key whose record is `actual`.
    #[must_use]
    pub fn holds(&self, actual: Option<&Record>) -> bool {
        match self {
            Condition::Absent => actual.is_none(),
            Condition::At(revision) => actual.is_some_and(|record| record.modified == *revision),
            Condition::Present => actual.is_some(),
        }
    }
}

/// One change that a transaction asks for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Mutation {
    /// Store the value under the key, whether or not the key is there.
    Put(Key, Value),
    /// Remove the key; nothing happens if it is not there.
    Delete(Key),
}

impl Mutation {
    /// The key that is changed.
    #[must_use]
    pub fn key(&self) -> &Key {
        match self {
            Mutation::Put(key, _) | Mutation::Delete(key) => key,
        }
    }
}

/// A transaction to commit: all conditions hold and all mutations happen, or nothing does.
///
/// A key may be mutated once only. A transaction that changes nothing takes no revision.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Txn {
    /// What must hold, checked in order against the state right before the transaction.
    pub conditions: Vec<(Key, Condition)>,
    /// What happens.
    pub mutations: Vec<Mutation>,
    /// Who asked, through what, and why: opaque to the store, kept in history.
    pub cause: Bytes,
}

impl Txn {
    /// A transaction that does nothing yet.
    #[must_use]
    pub fn new() -> Self {
        Txn::default()
    }

    /// Adds a condition.
    #[must_use]
    pub fn when(mut self, key: impl Into<Key>, condition: Condition) -> Self {
        self.conditions.push((key.into(), condition));
        self
    }

    /// Adds a put.
    #[must_use]
    pub fn put(mut self, key: impl Into<Key>, value: Value) -> Self {
        self.mutations.push(Mutation::Put(key.into(), value));
        self
    }

    /// Adds a delete.
    #[must_use]
    pub fn delete(mut self, key: impl Into<Key>) -> Self {
        self.mutations.push(Mutation::Delete(key.into()));
        self
    }

    /// Sets the cause.
    #[must_use]
    pub fn cause(mut self, cause: impl Into<Bytes>) -> Self {
        self.cause = cause.into();
        self
    }

    /// Whether every mutation is a delete: such a transaction only frees space.
    #[must_use]
    pub fn only_deletes(&self) -> bool {
        self.mutations.iter().all(|mutation| matches!(mutation, Mutation::Delete(_)))
    }
}

/// What a writer is told of a transaction that is durable.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Committed {
    /// The transaction's revision; for one that changed nothing, the revision it was checked against.
    pub revision: Revision,
    /// For each mutation in order: the record as stored, with its final bytes; for a delete the record
    /// that was removed, or `None` if there was none.
    pub records: Vec<Option<Arc<Record>>>,
}

/// One key's change within a transaction.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Change {
    /// The key.
    pub key: Key,
    /// The record after the transaction; `None` if the key was deleted.
    pub record: Option<Arc<Record>>,
    /// The record before the transaction; `None` if the key was created.
    pub previous: Option<Arc<Record>>,
}

/// A transaction as history keeps it: it happened, whole, and is durable.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Transaction {
    /// Its revision.
    pub revision: Revision,
    /// When the committer took it, to the microsecond; never before the transaction in front of it. Over
    /// etcd: when it was sent, by its writer's clock.
    pub time: SystemTime,
    /// The cause that its writer gave.
    pub cause: Bytes,
    /// What changed, in the writer's order, each key once; never empty.
    pub changes: Vec<Change>,
}

impl Transaction {
    /// Whether any change lies in `range`.
    #[must_use]
    pub fn touches(&self, range: &KeyRange) -> bool {
        self.changes.iter().any(|change| range.contains(&change.key))
    }

    /// The changes that lie in `range`, in order.
    pub fn changes_in<'a>(&'a self, range: &'a KeyRange) -> impl Iterator<Item = &'a Change> {
        self.changes.iter().filter(|change| range.contains(&change.key))
    }

    /// Bytes that keeping this transaction costs, about: cause, keys, and values before and after.
    #[must_use]
    pub fn size(&self) -> usize {
        let sides = |change: &Change| {
            change.record.as_ref().map_or(0, |r| r.size()) + change.previous.as_ref().map_or(0, |r| r.size())
        };
        self.cause.len() + self.changes.iter().map(sides).sum::<usize>()
    }
}
