//! Past: which revision was the newest at an instant, found among the transactions that history keeps.
//! Knows nothing of keys or of what changed.

use std::sync::Arc;
use std::time::SystemTime;

use crate::engine::HistoryReader;
use crate::error::{EngineError, ReadError};
use crate::revision::Revision;
use crate::shared::Shared;
use crate::txn::Transaction;

/// A revision, and when its transaction was taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Moment {
    /// The revision.
    pub revision: Revision,
    /// When its transaction was taken; `None` where history has only what came after it.
    pub time: Option<SystemTime>,
}

/// Which moment is meant.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Which {
    /// That of a revision.
    At(Revision),
    /// The newest that an instant had seen.
    Before(SystemTime),
    /// The newest there is.
    Now,
}

/// Finds a moment; blocks while it reads history.
pub(crate) fn find(shared: &Shared, which: Which) -> Result<Moment, ReadError> {
    match which {
        Which::At(revision) => at(shared, revision),
        Which::Before(instant) => before(shared, instant),
        Which::Now => at(shared, shared.current()),
    }
}

fn at(shared: &Shared, revision: Revision) -> Result<Moment, ReadError> {
    let (oldest, current) = (shared.oldest(), shared.current());
    if revision > current {
        return Err(ReadError::Future { current });
    }
    if revision < oldest {
        return Err(ReadError::Compacted { oldest });
    }
    let found = newest_at(shared, |transaction| transaction.revision <= revision)?;
    Ok(Moment { revision, time: found.map(|found| found.time) })
}

fn before(shared: &Shared, instant: SystemTime) -> Result<Moment, ReadError> {
    let oldest = shared.oldest();
    match newest_at(shared, |transaction| transaction.time <= instant)? {
        Some(found) => Ok(Moment { revision: found.revision, time: Some(found.time) }),
        // Nothing was there yet.
        None if oldest == Revision::ZERO => Ok(Moment { revision: oldest, time: None }),
        None => Err(ReadError::Compacted { oldest }),
    }
}

/// The last kept transaction for which something holds that holds of all before it. `None` if it holds of none.
fn newest_at(
    shared: &Shared,
    holds: impl Fn(&Transaction) -> bool,
) -> Result<Option<Arc<Transaction>>, EngineError> {
    let current = shared.current();
    let (mut low, mut high) = (in_memory_from(shared), current.get());
    let first = shared.ring.get(Revision::new(low));
    if !first.as_ref().is_some_and(|transaction| holds(transaction)) {
        return among_history(shared, holds);
    }
    // It holds of `low`; of what is above `high` it does not.
    let mut found = first;
    while low < high {
        let middle = low + (high - low).div_ceil(2);
        match shared.ring.get(Revision::new(middle)) {
            Some(transaction) if holds(&transaction) => {
                low = transaction.revision.get().max(middle);
                found = Some(transaction);
            }
            Some(_) => high = middle - 1,
            // The window moved on meanwhile: what is asked for left it.
            None => return among_history(shared, holds),
        }
    }
    Ok(found)
}

/// The lowest revision from which on all transactions are in memory.
fn in_memory_from(shared: &Shared) -> u64 {
    let (mut low, mut high) = (shared.oldest().get(), shared.current().get());
    while low < high {
        let middle = low + (high - low) / 2;
        if shared.ring.get(Revision::new(middle)).is_some() { high = middle } else { low = middle + 1 }
    }
    low
}

fn among_history(
    shared: &Shared,
    holds: impl Fn(&Transaction) -> bool,
) -> Result<Option<Arc<Transaction>>, EngineError> {
    let (oldest, current) = (shared.oldest(), shared.current());
    let mut found = None;
    let mut reader = first_reader(shared, oldest)?;
    while let Some(transaction) = reader.next()? {
        if transaction.revision > current || !holds(&transaction) {
            break;
        }
        found = Some(transaction);
    }
    Ok(found)
}

/// A reader that begins with the transaction of `oldest` itself, where the engine still has it: its time tells from
/// when on that state was the newest.
fn first_reader(shared: &Shared, oldest: Revision) -> Result<Box<dyn HistoryReader>, EngineError> {
    if oldest > Revision::ZERO
        && let Ok(mut reader) = shared.archive.read_after(Revision::new(oldest.get() - 1))
        && reader.next().is_ok_and(|first| first.is_some())
    {
        return shared.archive.read_after(Revision::new(oldest.get() - 1));
    }
    shared.archive.read_after(oldest)
}
