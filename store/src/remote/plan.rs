//! Plan: a transaction of the store as one of etcd's, and what etcd's answer to it means. Pure.

use std::sync::Arc;

use crate::engine::etcd::events::record;
use crate::engine::etcd::layout::{Layout, Line, Note, put_value};
use crate::engine::etcd::wire::{self, Compare, RequestOp, TxnRequest, TxnResponse, result};
use crate::error::{CommitError, EngineError};
use crate::key::Key;
use crate::record::Record;
use crate::state::State;
use crate::txn::{Condition, Mutation, Transaction, Txn};

/// Most conditions, and most mutations, of one transaction: etcd takes 128 operations unless it is told
/// otherwise, and some are ours.
pub const MAX_STEPS: usize = 120;
/// Operations in front of those of the conditions where a transaction of etcd's failed.
const OWN_READS: usize = 2;

/// A transaction, ready to be sent.
#[derive(Debug)]
pub struct Plan {
    /// etcd's form of it.
    pub request: TxnRequest,
    /// Whether it changes anything if it happens.
    pub changes: bool,
    /// Whether a note comes with it.
    pub has_note: bool,
}

/// What etcd's refusal of a transaction means.
#[derive(Debug)]
pub enum Refusal {
    /// A condition does not hold.
    Failed(Key, Condition, Option<Arc<Record>>),
    /// The conditions hold, but the plan was made from a state that is too old.
    Stale,
}

/// Whether etcd can take a transaction of this size at all.
pub fn check_size(txn: &Txn) -> Result<(), CommitError> {
    if txn.conditions.len() > MAX_STEPS || txn.mutations.len() > MAX_STEPS {
        let reason = format!("over etcd a transaction has at most {MAX_STEPS} conditions and mutations");
        return Err(CommitError::Invalid { reason });
    }
    Ok(())
}

/// etcd's form of a transaction, right for as long as the fence is as told and the keys that it deletes
/// are there or not as in `state`. Without a note etcd keeps no time and cause, but a full one takes it
/// if it only deletes.
pub fn plan(layout: &Layout, line: &Line, state: &State, txn: &Txn, fence: i64, note: Option<&Note>) -> Plan {
    let mut compare = Vec::with_capacity(txn.conditions.len() + txn.mutations.len() + 1);
    for (key, condition) in &txn.conditions {
        compare.extend(compares(layout, line, state, key, *condition));
    }
    let mut success = Vec::with_capacity(txn.mutations.len() + 1);
    for mutation in &txn.mutations {
        let (key, at) = (mutation.key(), layout.data(mutation.key()));
        let before = state.records.get(key);
        match mutation {
            Mutation::Put(_, value) => {
                // etcd does not know when an imported key was created.
                let created = before.map(|record| record.created);
                let created = created.filter(|created| line.etcd(*created) <= line.first);
                success.push(wire::put(at, put_value(value, created, None)));
            }
            Mutation::Delete(_) if before.is_some() => {
                compare.push(wire::present(at.clone()));
                success.push(wire::delete(at));
            }
            Mutation::Delete(_) => compare.push(wire::absent(at)),
        }
    }
    let changes = !success.is_empty();
    if changes {
        compare.push(wire::modified(layout.fence(), result::EQUAL, fence));
        success.extend(note.map(|note| wire::put(layout.last(), note.put())));
    } else {
        success.push(wire::get(layout.last()));
    }
    let mut failure = vec![wire::get(layout.last()), wire::get(layout.fence())];
    failure.extend(txn.conditions.iter().map(|(key, _)| wire::get(layout.data(key))));
    let request = TxnRequest { compare, success, failure };
    Plan { request, changes, has_note: note.is_some() }
}

fn compares(
    layout: &Layout,
    line: &Line,
    state: &State,
    key: &Key,
    condition: Condition,
) -> impl Iterator<Item = Compare> + use<> {
    let at = layout.data(key);
    let (first, second) = match condition {
        Condition::Absent => (wire::absent(at), None),
        Condition::Present => (wire::present(at), None),
        Condition::At(revision) if line.etcd(revision) <= line.first => {
            // Imported, or older than the line: the key has this revision if it is as it was imported
            // and had it then. What has another one by now never has this one again.
            let is_it = state.records.get(key).is_some_and(|record| record.modified == revision);
            let before = if is_it { line.first } else { 0 };
            let untouched = wire::modified(at.clone(), result::LESS, before);
            (wire::present(at), Some(untouched))
        }
        Condition::At(revision) => (wire::modified(at, result::EQUAL, line.etcd(revision)), None),
    };
    std::iter::once(first).chain(second)
}

/// The newest revision of etcd that a refusal has looked at.
pub fn looked_at(answer: &TxnResponse) -> i64 {
    let read = (0..answer.responses.len()).filter_map(|index| answer.read(index));
    read.map(|kv| kv.mod_revision).max().unwrap_or_default()
}

/// What a refusal means.
pub fn refusal(line: &Line, txn: &Txn, answer: &TxnResponse) -> Result<Refusal, EngineError> {
    for (index, (key, condition)) in txn.conditions.iter().enumerate() {
        let kv = answer.read(OWN_READS + index);
        let actual = kv.map(|kv| record(line, key, kv)).transpose()?;
        if !condition.holds(actual.as_deref()) {
            return Ok(Refusal::Failed(key.clone(), *condition, actual));
        }
    }
    Ok(Refusal::Stale)
}

/// What a writer is told, out of the transaction as it came back.
pub fn records(txn: &Txn, transaction: &Transaction) -> Vec<Option<Arc<Record>>> {
    let of = |key: &Key| transaction.changes.iter().find(|change| change.key == *key);
    let told = |mutation: &Mutation| {
        let change = of(mutation.key())?;
        change.record.clone().or_else(|| change.previous.clone())
    };
    txn.mutations.iter().map(told).collect()
}

/// What a writer is told of deletes that came without a note.
pub fn removed(line: &Line, layout: &Layout, txn: &Txn, answer: &TxnResponse) -> Vec<Option<Arc<Record>>> {
    let gone = answer.responses.iter().filter_map(|response| response.delete.as_ref());
    let gone: Vec<_> = gone.flat_map(|delete| &delete.prev_kvs).collect();
    let told = |mutation: &Mutation| {
        let at = layout.data(mutation.key());
        let kv = gone.iter().find(|kv| kv.key == at)?;
        record(line, mutation.key(), kv).ok()
    };
    txn.mutations.iter().map(told).collect()
}

/// Whether a request only deletes, so that a full etcd takes it.
pub fn only_frees(request: &TxnRequest) -> bool {
    let frees = |op: &RequestOp| matches!(op.op, Some(wire::Op::Delete(_)));
    request.success.iter().all(frees)
}
