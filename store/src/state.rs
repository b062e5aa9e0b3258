//! State: what the store holds at one revision, and the pure decisions that lead from one to the next.
//! Knows nothing of threads, disks or watchers; time is passed in.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use bytes::Bytes;
use imbl::OrdMap;

use crate::error::CommitError;
use crate::key::{Key, MAX_KEY_BYTES};
use crate::record::Record;
use crate::revision::Revision;
use crate::txn::{Change, Committed, MAX_TXN_BYTES, MAX_TXN_STEPS, Mutation, Transaction, Txn, Value};

/// The live records of one revision in key order; cloning it costs nothing.
pub type Records = OrdMap<Key, Arc<Record>>;

/// What the store holds at one revision. Cloning it costs nothing.
#[derive(Clone, Debug)]
pub struct State {
    /// Revision of the newest transaction in it.
    pub revision: Revision,
    /// Time of that transaction.
    pub time: SystemTime,
    /// The records.
    pub records: Records,
    /// Bytes of all keys and values.
    pub bytes: u64,
}

impl State {
    /// The state before any transaction.
    #[must_use]
    pub fn empty() -> Self {
        State { revision: Revision::ZERO, time: UNIX_EPOCH, records: Records::new(), bytes: 0 }
    }

    /// Puts one record in place.
    pub fn insert(&mut self, record: Arc<Record>) {
        self.bytes += record.size() as u64;
        if let Some(old) = self.records.insert(record.key.clone(), record) {
            self.bytes -= old.size() as u64;
        }
    }

    /// Takes one record out.
    pub fn remove(&mut self, key: &Key) {
        if let Some(old) = self.records.remove(key) {
            self.bytes -= old.size() as u64;
        }
    }

    /// Moves on by one transaction.
    pub fn apply(&mut self, transaction: &Transaction) {
        for change in &transaction.changes {
            match &change.record {
                Some(record) => self.insert(record.clone()),
                None => self.remove(&change.key),
            }
        }
        self.revision = transaction.revision;
        self.time = transaction.time;
    }

    /// Stores a value in one way down the map. A key that is there stays: all records of it share its bytes.
    fn put(&mut self, key: &Key, value: Bytes, revision: Revision) -> Change {
        if let Some((key, slot)) = self.records.get_key_value_mut(key) {
            let record = Arc::new(Record::new(key.clone(), value, slot.created, revision));
            let previous = std::mem::replace(slot, record.clone());
            self.bytes = self.bytes + record.size() as u64 - previous.size() as u64;
            return Change { key: record.key.clone(), record: Some(record), previous: Some(previous) };
        }
        let record = Arc::new(Record::new(key.clone(), value, revision, revision));
        self.insert(record.clone());
        Change { key: key.clone(), record: Some(record), previous: None }
    }

    /// Takes a record out, if there is one.
    fn delete(&mut self, key: &Key) -> Option<Change> {
        let previous = self.records.get(key)?.clone();
        self.remove(key);
        Some(Change { key: previous.key.clone(), record: None, previous: Some(previous) })
    }

    /// Checks and applies a transaction, all or nothing; gives what history keeps, `None` if nothing
    /// changed, and what the writer is told once that is durable.
    ///
    /// # Errors
    /// `Failed` with the first condition that does not hold; the state is then unchanged.
    pub fn decide(
        &mut self,
        txn: &Txn,
        now: SystemTime,
    ) -> Result<(Option<Arc<Transaction>>, Committed), CommitError> {
        for (key, condition) in &txn.conditions {
            let actual = self.records.get(key);
            if !condition.holds(actual.map(Arc::as_ref)) {
                let actual = actual.cloned();
                return Err(CommitError::Failed { key: key.clone(), condition: *condition, actual });
            }
        }
        let revision = self.revision.next();
        let mut changes = Vec::with_capacity(txn.mutations.len());
        let mut records = Vec::with_capacity(txn.mutations.len());
        for mutation in &txn.mutations {
            let change = match mutation {
                Mutation::Put(key, value) => Some(self.put(key, stamped(value, revision), revision)),
                Mutation::Delete(key) => self.delete(key),
            };
            let told = change.as_ref().and_then(|change| change.record.as_ref().or(change.previous.as_ref()));
            records.push(told.cloned());
            changes.extend(change);
        }
        if changes.is_empty() {
            return Ok((None, Committed { revision: self.revision, records }));
        }
        let time = to_microseconds(now).max(self.time);
        let transaction = Arc::new(Transaction { revision, time, cause: txn.cause.clone(), changes });
        (self.revision, self.time) = (revision, time);
        Ok((Some(transaction), Committed { revision, records }))
    }
}

/// Time cut to whole microseconds, as history keeps it.
pub fn to_microseconds(time: SystemTime) -> SystemTime {
    let micros = time.duration_since(UNIX_EPOCH).unwrap_or_default().as_micros();
    UNIX_EPOCH + Duration::from_micros(u64::try_from(micros).unwrap_or(u64::MAX))
}

/// The final bytes of a value stored at `revision`.
pub fn stamped(value: &Value, revision: Revision) -> Bytes {
    let Some(offset) = value.stamp else {
        return value.bytes.clone();
    };
    let (head, tail) = value.bytes.split_at((offset as usize).min(value.bytes.len()));
    let digits = revision.to_string();
    let mut bytes = Vec::with_capacity(value.bytes.len() + digits.len());
    bytes.extend_from_slice(head);
    bytes.extend_from_slice(digits.as_bytes());
    bytes.extend_from_slice(tail);
    bytes.into()
}

/// Checks what can be checked of a transaction without the state; gives its size in bytes.
///
/// # Errors
/// `Invalid`, with what is wrong.
pub fn validate(txn: &Txn) -> Result<usize, CommitError> {
    let invalid = |reason: String| Err(CommitError::Invalid { reason });
    if txn.conditions.len() > MAX_TXN_STEPS || txn.mutations.len() > MAX_TXN_STEPS {
        return invalid(format!("more than {MAX_TXN_STEPS} conditions or mutations"));
    }
    let mut size = txn.cause.len();
    let mut seen = HashSet::new();
    for (key, _) in &txn.conditions {
        if key.as_bytes().len() > MAX_KEY_BYTES {
            return invalid(format!("a key of more than {MAX_KEY_BYTES} bytes"));
        }
    }
    for mutation in &txn.mutations {
        let key = mutation.key();
        if key.as_bytes().len() > MAX_KEY_BYTES {
            return invalid(format!("a key of more than {MAX_KEY_BYTES} bytes"));
        }
        if txn.mutations.len() > 1 && !seen.insert(key) {
            return invalid(format!("key {key} is mutated twice"));
        }
        size += key.as_bytes().len();
        if let Mutation::Put(_, Value { bytes, stamp }) = mutation {
            size += bytes.len();
            if stamp.is_some_and(|offset| offset as usize > bytes.len()) {
                return invalid(format!("the stamp of key {key} lies outside its value"));
            }
        }
    }
    if size > MAX_TXN_BYTES {
        return invalid(format!("{size} bytes are more than the {MAX_TXN_BYTES} of one transaction"));
    }
    Ok(size)
}

/// Steps a state back in time: feed it all transactions after the wanted revision, oldest first.
#[derive(Debug, Default)]
pub struct Undo {
    before: HashMap<Key, Option<Arc<Record>>>,
}

impl Undo {
    /// Notes what the next later transaction replaced.
    pub fn note(&mut self, transaction: &Transaction) {
        for change in &transaction.changes {
            self.before.entry(change.key.clone()).or_insert_with(|| change.previous.clone());
        }
    }

    /// Takes the noted transactions out of `state`, giving the records before the first of them.
    #[must_use]
    pub fn take_from(self, state: &State) -> Records {
        let mut state = state.clone();
        for (key, previous) in self.before {
            match previous {
                Some(record) => state.insert(record),
                None => state.remove(&key),
            }
        }
        state.records
    }
}
