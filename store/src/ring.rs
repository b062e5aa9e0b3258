//! Ring: the newest transactions in memory, read by every watcher through its own cursor.
//! Readers take no lock; the one writer never waits for them. Knows nothing of ranges or disks.

use std::collections::VecDeque;
use std::sync::Arc;

use arc_swap::ArcSwapOption;

use crate::revision::Revision;
use crate::txn::Transaction;

/// A bounded window of the newest transactions; the slot of a transaction is its revision modulo size.
/// Where revisions are skipped, their slots hold the transaction that follows.
pub struct Ring {
    slots: Box<[ArcSwapOption<Transaction>]>,
}

impl Ring {
    /// A ring of so many slots (at least one).
    #[must_use]
    pub fn new(slots: usize) -> Self {
        Ring { slots: (0..slots.max(1)).map(|_| ArcSwapOption::empty()).collect() }
    }

    /// The transaction of this revision, or the first after it if nothing happened at it, if that is
    /// (still) in the window.
    #[must_use]
    pub fn get(&self, revision: Revision) -> Option<Arc<Transaction>> {
        let found = self.slots[self.slot(revision)].load();
        // A transaction in the slot of another revision is there for that one alone.
        let size = self.slots.len() as u64;
        let is_meant = |at: Revision| at >= revision && at.get() - revision.get() < size;
        found.as_ref().filter(|transaction| is_meant(transaction.revision)).cloned()
    }

    fn slot(&self, revision: Revision) -> usize {
        (revision.get() % self.slots.len() as u64) as usize
    }
}

/// The one writer of a [`Ring`]: keeps it within its byte limit.
pub struct RingWriter {
    ring: Arc<Ring>,
    window: VecDeque<Entry>,
    /// Up to which revision nothing is missing between the transactions that were added.
    through: Option<Revision>,
    bytes: usize,
    limit_bytes: usize,
}

/// A transaction in the window: the revisions whose slots hold it, and its size.
struct Entry {
    first: u64,
    revision: Revision,
    size: usize,
}

impl RingWriter {
    /// A writer of an empty ring.
    #[must_use]
    pub fn new(ring: Arc<Ring>, limit_bytes: usize) -> Self {
        RingWriter { ring, window: VecDeque::new(), through: None, bytes: 0, limit_bytes }
    }

    /// Forgets where the line stood: transactions are missing in front of the next one.
    #[cfg(any(feature = "etcd", test))]
    pub fn skip(&mut self) {
        self.through = None;
    }

    /// Says that nothing is missing after `through` but what is added next.
    #[cfg(any(feature = "etcd", test))]
    pub fn follow(&mut self, through: Revision) {
        self.through = Some(through);
    }

    /// Adds the next transaction; the oldest leave as the limits ask. The newest always stays. What leaves is given
    /// back, so that it is let go when there is time.
    pub fn push(&mut self, transaction: Arc<Transaction>, left: &mut Vec<Arc<Transaction>>) {
        let (revision, size) = (transaction.revision, transaction.size());
        let slots = self.ring.slots.len() as u64;
        let first = self.through.map_or(revision, |through| through.next()).get();
        let first = first.max((revision.get() + 1).saturating_sub(slots));
        for at in first..=revision.get() {
            left.extend(self.ring.slots[self.ring.slot(Revision::new(at))].swap(Some(transaction.clone())));
        }
        self.through = Some(revision);
        self.window.push_back(Entry { first, revision, size });
        self.bytes += size;
        while self.window.front().is_some_and(|oldest| oldest.revision.get() + slots <= revision.get())
            || (self.bytes > self.limit_bytes && self.window.len() > 1)
        {
            let Some(old) = self.window.pop_front() else { break };
            self.bytes -= old.size;
            for at in (old.first..=old.revision.get()).map(Revision::new) {
                if self.ring.get(at).is_some_and(|kept| kept.revision == old.revision) {
                    left.extend(self.ring.slots[self.ring.slot(at)].swap(None));
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::time::UNIX_EPOCH;

    use bytes::Bytes;

    use super::*;

    fn transaction(revision: u64) -> Arc<Transaction> {
        let cause = Bytes::from_static(b"ten bytes.");
        let revision = Revision::new(revision);
        Arc::new(Transaction { revision, time: UNIX_EPOCH, cause, changes: Vec::new() })
    }

    fn found(ring: &Ring, range: std::ops::RangeInclusive<u64>) -> Vec<u64> {
        let at = |revision| ring.get(Revision::new(revision)).map_or(0, |found| found.revision.get());
        range.map(at).collect()
    }

    #[test]
    fn the_next_transaction_is_found_over_gaps() {
        let ring = Arc::new(Ring::new(4));
        let mut writer = RingWriter::new(ring.clone(), 1 << 20);
        writer.push(transaction(3), &mut Vec::new());
        writer.push(transaction(5), &mut Vec::new());
        assert_eq!(found(&ring, 1..=7), [0, 0, 3, 5, 5, 0, 0]);
        writer.push(transaction(8), &mut Vec::new());
        assert_eq!(found(&ring, 3..=9), [0, 0, 5, 8, 8, 8, 0]);
        writer.push(transaction(30), &mut Vec::new());
        assert_eq!(found(&ring, 5..=9), [0; 5]);
        assert_eq!(found(&ring, 26..=31), [0, 30, 30, 30, 30, 0]);
        writer.skip();
        writer.push(transaction(32), &mut Vec::new());
        assert_eq!(found(&ring, 29..=33), [30, 30, 0, 32, 0]);
    }

    #[test]
    fn bytes_are_limited() {
        let ring = Arc::new(Ring::new(8));
        let mut writer = RingWriter::new(ring.clone(), 20);
        writer.follow(Revision::new(2));
        (4..=7).for_each(|revision| writer.push(transaction(revision), &mut Vec::new()));
        assert_eq!(found(&ring, 3..=7), [0, 0, 0, 6, 7]);
    }
}
