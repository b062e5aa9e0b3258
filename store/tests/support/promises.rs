//! The promises of a watch, each a named check over what one watch yielded. `Seen` is filled from a
//! watch; the checks need the true history where they speak of completeness.

use std::collections::BTreeMap;
use std::sync::Arc;

use strata_store::key::{Key, KeyRange};
use strata_store::record::Record;
use strata_store::revision::Revision;
use strata_store::snapshot::Snapshot;
use strata_store::txn::Transaction;
use strata_store::watch::{Watch, WatchItem};

use super::next;

/// What a watch yielded, from the revision it started after.
pub struct Seen {
    pub range: KeyRange,
    pub after: Revision,
    pub initial: Option<Snapshot>,
    pub transactions: Vec<Arc<Transaction>>,
    pub progress: Vec<(usize, Revision)>,
}

impl Seen {
    pub fn new(range: KeyRange, after: Revision) -> Seen {
        Seen { range, after, initial: None, transactions: Vec::new(), progress: Vec::new() }
    }

    /// Reads until everything up to `revision` was delivered.
    pub async fn read_to(&mut self, watch: &mut Watch, revision: Revision) {
        watch.announce(revision);
        loop {
            match next(watch).await {
                WatchItem::Initial(snapshot) => {
                    self.after = snapshot.revision();
                    self.initial = Some(snapshot);
                }
                WatchItem::Transaction(transaction) => self.transactions.push(transaction),
                WatchItem::Progress(at) => {
                    self.progress.push((self.transactions.len(), at));
                    if at >= revision {
                        return;
                    }
                }
            }
        }
    }

    /// Every check that applies, against the true history.
    pub fn check(&self, history: &[Arc<Transaction>]) {
        ordered(self);
        unique(self);
        complete(self, history);
        atomic(self, history);
        filtered(self);
        progress_true(self, history);
        previous_right(self, history);
    }
}

/// Revisions only rise.
pub fn ordered(seen: &Seen) {
    let revisions: Vec<_> = seen.transactions.iter().map(|t| t.revision).collect();
    assert!(revisions.is_sorted(), "not ordered: {revisions:?}");
    assert!(revisions.first().is_none_or(|first| *first > seen.after), "before the start: {revisions:?}");
}

/// No transaction comes twice.
pub fn unique(seen: &Seen) {
    for pair in seen.transactions.windows(2) {
        assert_ne!(pair[0].revision, pair[1].revision, "twice");
    }
}

fn expected<'a>(seen: &Seen, history: &'a [Arc<Transaction>], to: Revision) -> Vec<&'a Arc<Transaction>> {
    let relevant =
        |t: &&Arc<Transaction>| t.revision > seen.after && t.revision <= to && t.touches(&seen.range);
    history.iter().filter(relevant).collect()
}

/// No transaction of the range is missing up to the last progress.
pub fn complete(seen: &Seen, history: &[Arc<Transaction>]) {
    let to = seen.progress.last().map_or(seen.after, |(_, at)| *at);
    let want: Vec<_> = expected(seen, history, to).iter().map(|t| t.revision).collect();
    let have: Vec<_> = seen.transactions.iter().map(|t| t.revision).filter(|r| *r <= to).collect();
    assert_eq!(have, want, "not complete");
}

/// Each transaction comes whole: with all its changes, its time and its cause.
pub fn atomic(seen: &Seen, history: &[Arc<Transaction>]) {
    for transaction in &seen.transactions {
        let truth = history.iter().find(|t| t.revision == transaction.revision);
        assert_eq!(Some(transaction), truth, "not as it happened");
    }
}

/// Nothing comes that does not touch the range.
pub fn filtered(seen: &Seen) {
    assert!(seen.transactions.iter().all(|t| t.touches(&seen.range)), "outside the range");
}

/// When progress was told, everything up to it had been delivered.
pub fn progress_true(seen: &Seen, history: &[Arc<Transaction>]) {
    for (delivered, at) in &seen.progress {
        assert_eq!(*delivered, expected(seen, history, *at).len(), "progress {at} was not true");
    }
}

/// Each change names the record that was there before it.
pub fn previous_right(seen: &Seen, history: &[Arc<Transaction>]) {
    let mut state: BTreeMap<Key, Arc<Record>> = BTreeMap::new();
    let mut truth = BTreeMap::new();
    for transaction in history {
        for change in &transaction.changes {
            truth.insert((transaction.revision, change.key.clone()), state.get(&change.key).cloned());
            match &change.record {
                Some(record) => state.insert(change.key.clone(), record.clone()),
                None => state.remove(&change.key),
            };
        }
    }
    for transaction in &seen.transactions {
        for change in &transaction.changes {
            let previous = &truth[&(transaction.revision, change.key.clone())];
            assert_eq!(
                &change.previous, previous,
                "wrong previous of {} at {}",
                change.key, transaction.revision
            );
        }
    }
}

/// A watch resumed after any revision of another yields what the other yielded after it.
pub fn resumable(whole: &Seen, resumed: &Seen) {
    let want: Vec<_> = whole.transactions.iter().filter(|t| t.revision > resumed.after).collect();
    assert_eq!(resumed.transactions.iter().collect::<Vec<_>>(), want, "not resumable");
}
