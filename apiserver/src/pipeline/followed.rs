//! The tables of admission, held to what is stored: one watch follows everything that configures admission, and swaps the
//! tables as a whole. Requests take what is there; who writes such an object is answered when this server goes by it.

use std::sync::Arc;
use std::time::Duration;

use arc_swap::ArcSwap;
use strata_model::resource::GroupResource;
use strata_store::key::KeyRange;
use strata_store::revision::Revision;
use strata_store::store::Store;
use strata_store::txn::Change;
use strata_store::watch::{From, WatchItem};
use tokio::sync::watch;

use crate::admission::table::Tables;
use crate::refusal::{self, Outcome};
use crate::storage;

/// How long to wait after the watch broke off.
const RETRY_AFTER: Duration = Duration::from_secs(1);
/// How long a writer waits for this server to go by what it wrote.
const FOLLOW_WAIT: Duration = Duration::from_secs(5);

/// What configures admission, as this server knows it.
pub struct Followed {
    tables: ArcSwap<Tables>,
    seen: watch::Sender<Revision>,
}

impl Default for Followed {
    fn default() -> Self {
        Self { tables: ArcSwap::default(), seen: watch::Sender::new(Revision::ZERO) }
    }
}

impl Followed {
    /// What is known now.
    pub fn tables(&self) -> Arc<Tables> {
        self.tables.load_full()
    }

    /// Follows what is stored for as long as the server runs.
    pub async fn follow(&self, store: &Store) {
        loop {
            if let Err(refusal) = self.once(store).await {
                tracing::warn!(reason = %refusal.message, "what configures admission cannot be followed; trying again");
            }
            tokio::time::sleep(RETRY_AFTER).await;
        }
    }

    async fn once(&self, store: &Store) -> Outcome<()> {
        let ranges = Tables::types().map(|id| (id, storage::range(id, "")));
        let mut watch =
            store.watch(KeyRange::all(), From::WithInitial).map_err(|error| refusal::of_watch(&error, 0))?;
        let mut tables = Tables::default();
        loop {
            match watch.next().await.map_err(|error| refusal::of_watch(&error, 0))? {
                WatchItem::Initial(snapshot) => {
                    for (id, range) in &ranges {
                        for record in snapshot.range(range, None) {
                            tables.put(id, record);
                        }
                    }
                    self.show(&tables, snapshot.revision());
                }
                WatchItem::Transaction(transaction) => {
                    let mut touched = false;
                    for change in &transaction.changes {
                        if let Some((id, _)) = ranges.iter().find(|(_, range)| range.contains(&change.key)) {
                            apply(&mut tables, id, change);
                            touched = true;
                        }
                    }
                    if touched {
                        self.show(&tables, transaction.revision);
                    }
                }
                WatchItem::Progress(_) => {}
            }
        }
    }

    fn show(&self, tables: &Tables, revision: Revision) {
        self.tables.store(Arc::new(tables.clone()));
        self.seen.send_if_modified(|seen| {
            let later = revision > *seen;
            *seen = revision.max(*seen);
            later
        });
    }

    /// Waits until this server goes by an object that was just written; for types that configure nothing, not at all.
    pub async fn reached(&self, id: &GroupResource, revision: Revision) {
        if !Tables::types().contains(&id) {
            return;
        }
        self.wait(revision).await;
    }

    /// Waits until this server goes by what was stored when it began.
    pub async fn begun(&self) {
        self.wait(Revision::new(1)).await;
    }

    async fn wait(&self, revision: Revision) {
        let mut seen = self.seen.subscribe();
        let reached = seen.wait_for(|seen| *seen >= revision);
        if tokio::time::timeout(FOLLOW_WAIT, reached).await.is_err() {
            tracing::warn!(%revision, "this server does not go by a stored configuration of admission yet");
        }
    }
}

fn apply(tables: &mut Tables, id: &GroupResource, change: &Change) {
    match (&change.record, &change.previous) {
        (Some(record), _) => tables.put(id, record),
        (None, Some(previous)) => {
            tables.remove(id, storage::namespace_of(previous), storage::name_of(previous));
        }
        (None, None) => {}
    }
}
