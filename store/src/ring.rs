//! Ring: the newest transactions in memory, read by every watcher through its own cursor.
//! Readers take no lock; the one writer never waits for them. Knows nothing of ranges or disks.

use std::collections::VecDeque;
use std::sync::Arc;

use arc_swap::ArcSwapOption;

use crate::revision::Revision;
use crate::txn::Transaction;

/// A bounded window of the newest transactions; the slot of a transaction is its revision modulo size.
pub struct Ring {
    slots: Box<[ArcSwapOption<Transaction>]>,
}

impl Ring {
    /// A ring of so many slots (at least one).
    #[must_use]
    pub fn new(slots: usize) -> Self {
        Ring { slots: (0..slots.max(1)).map(|_| ArcSwapOption::empty()).collect() }
    }

    /// The transaction of this revision if it is (still) in the window.
    #[must_use]
    pub fn get(&self, revision: Revision) -> Option<Arc<Transaction>> {
        let found = self.slots[self.slot(revision)].load();
        found.as_ref().filter(|transaction| transaction.revision == revision).cloned()
    }

    fn slot(&self, revision: Revision) -> usize {
        (revision.get() % self.slots.len() as u64) as usize
    }
}

/// The one writer of a [`Ring`]: keeps it within its byte limit.
pub struct RingWriter {
    ring: Arc<Ring>,
    window: VecDeque<(Revision, usize)>,
    bytes: usize,
    limit_bytes: usize,
}

impl RingWriter {
    /// A writer of an empty ring.
    #[must_use]
    pub fn new(ring: Arc<Ring>, limit_bytes: usize) -> Self {
        RingWriter { ring, window: VecDeque::new(), bytes: 0, limit_bytes }
    }

    /// Adds the next transaction; the oldest leave as the limits ask. The newest always stays.
    pub fn push(&mut self, transaction: Arc<Transaction>) {
        let (revision, size) = (transaction.revision, transaction.size());
        self.ring.slots[self.ring.slot(revision)].store(Some(transaction));
        self.window.push_back((revision, size));
        self.bytes += size;
        while self.window.len() > self.ring.slots.len()
            || (self.bytes > self.limit_bytes && self.window.len() > 1)
        {
            let Some((old, size)) = self.window.pop_front() else { break };
            self.bytes -= size;
            if self.ring.get(old).is_some() {
                self.ring.slots[self.ring.slot(old)].store(None);
            }
        }
    }
}
