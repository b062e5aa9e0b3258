//! Snapshot: the whole store as it was at one revision, for as long as a reader wants it.
//! Knows nothing of how a revision was found or kept.

use std::fmt;
use std::ops::Bound;
use std::sync::Arc;

use crate::key::{Key, KeyRange};
use crate::record::Record;
use crate::revision::Revision;
use crate::state::Records;

/// The store at one revision. Cheap to take, clone and keep; later transactions do not touch it.
#[derive(Clone)]
pub struct Snapshot {
    revision: Revision,
    records: Records,
}

/// Which revision a snapshot shows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ReadAt {
    /// The newest durable one.
    Latest,
    /// The newest durable one, which must have reached this revision.
    NotOlderThan(Revision),
    /// Exactly this revision, within the history kept.
    Exact(Revision),
}

impl Snapshot {
    /// A snapshot of these records.
    pub(crate) fn new(revision: Revision, records: Records) -> Self {
        Snapshot { revision, records }
    }

    /// The revision that it shows.
    #[must_use]
    pub fn revision(&self) -> Revision {
        self.revision
    }

    /// The record of a key, `None` if the key was absent.
    #[must_use]
    pub fn get(&self, key: &Key) -> Option<Arc<Record>> {
        self.records.get(key).cloned()
    }

    /// The records of a range in key order, from the first key after `start_after` if that is given:
    /// a page is so many items of this, and the next page starts after the last of them.
    pub fn range<'a>(
        &'a self,
        range: &KeyRange,
        start_after: Option<&Key>,
    ) -> impl Iterator<Item = &'a Arc<Record>> + Clone + use<'a> {
        let start = match start_after {
            Some(key) if *key >= range.start => Bound::Excluded(key),
            _ => Bound::Included(&range.start),
        };
        let end = range.end.as_ref().map_or(Bound::Unbounded, Bound::Excluded);
        let past = match (start, end) {
            (Bound::Included(start) | Bound::Excluded(start), Bound::Excluded(end)) => start >= end,
            _ => false,
        };
        let found = (!past).then(|| self.records.range::<_, Key>((start, end)));
        found.into_iter().flatten().map(|(_, record)| record)
    }

    /// How many keys a range holds.
    #[must_use]
    pub fn count(&self, range: &KeyRange) -> usize {
        if *range == KeyRange::all() { self.records.len() } else { self.range(range, None).count() }
    }
}

impl fmt::Debug for Snapshot {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Snapshot")
            .field("revision", &self.revision)
            .field("keys", &self.records.len())
            .finish_non_exhaustive()
    }
}
