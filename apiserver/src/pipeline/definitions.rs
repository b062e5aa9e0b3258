//! Follows the definitions of custom types: each server holds the catalogue of what is served to what the definitions
//! say, writes what was decided into their status, and cleans up after those that are deleted.
//!
//! Every server decides by itself and alike, from the definitions alone: the catalogue changes first, then the status
//! says so. Whoever reads `Established` finds the type served.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use strata_model::resource::builtin;
use strata_store::record::Record;
use strata_store::revision::Revision;
use strata_store::txn::{Condition, Transaction, Txn};
use strata_store::watch::{From, WatchItem};

use super::api::Api;
use super::leaving::Leaving;
use super::read::ListOptions;
use super::request::{Caller, Deed, Target};
use super::roles;
use crate::custom::definition::{CLEANUP, Custom, Definition, Names};
use crate::custom::names::{self, Verdict};
use crate::deletion::Options;
use crate::refusal::{self, Outcome};
use crate::storage;
use crate::strategy::stamp;
use crate::types::catalogue::Served;
use crate::value::{list_mut, members_mut};

/// How long a write of a definition waits until this server serves what it says.
const FOLLOW_WAIT: Duration = Duration::from_secs(2);
/// How often the objects of a definition that is being deleted are looked for again.
const CLEANUP_EVERY: Duration = Duration::from_millis(500);
/// How long to wait after a failure.
const RETRY_AFTER: Duration = Duration::from_secs(1);

/// A definition with what was decided of it.
struct Known {
    definition: Arc<Definition>,
    served: Vec<Arc<Served>>,
    accepted: Names,
}

/// What one follower knows.
#[derive(Default)]
struct Followed {
    known: BTreeMap<String, Known>,
}

impl Api {
    /// Follows the definitions for as long as the server runs.
    pub async fn follow_definitions(&self) {
        let mut followed = Followed::default();
        loop {
            if let Err(refusal) = self.follow(&mut followed).await {
                tracing::warn!(reason = %refusal.message, "definitions cannot be followed; trying again");
            }
            tokio::time::sleep(RETRY_AFTER).await;
        }
    }

    async fn follow(&self, followed: &mut Followed) -> Outcome<()> {
        let range = storage::range(&builtin::CUSTOM_RESOURCE_DEFINITION.id, "");
        let mut watch = self
            .store
            .watch(range.clone(), From::WithInitial)
            .map_err(|error| refusal::of_watch(&error, 0))?;
        loop {
            let item = watch.next().await.map_err(|error| refusal::of_watch(&error, 0))?;
            let revision = match &item {
                WatchItem::Initial(snapshot) => {
                    let records: Vec<&Arc<Record>> = snapshot.range(&range, None).collect();
                    followed.keep(&records);
                    records.into_iter().for_each(|record| followed.put(record));
                    Some(snapshot.revision())
                }
                WatchItem::Transaction(transaction) => {
                    followed.apply(transaction);
                    transaction.changes_in(&range).next().map(|_| transaction.revision)
                }
                WatchItem::Progress(revision) => {
                    self.note_followed(*revision);
                    None
                }
            };
            if let Some(revision) = revision {
                let verdicts = self.serve(followed);
                self.settle(followed, &verdicts).await?;
                self.note_followed(revision);
            }
        }
    }

    /// Puts a new catalogue in place.
    fn serve(&self, followed: &mut Followed) -> Vec<Verdict> {
        let definitions: Vec<Arc<Definition>> =
            followed.known.values().map(|known| Arc::clone(&known.definition)).collect();
        let verdicts = names::decide(&definitions);
        for (known, verdict) in followed.known.values_mut().zip(&verdicts) {
            known.serve(verdict);
        }
        let served: Vec<Arc<Served>> = followed
            .known
            .values()
            .flat_map(|known| known.served.iter().filter(|s| is_served(s)).cloned())
            .collect();
        self.replace_catalogue(served);
        let leaving = followed.known.values().filter(|known| known.definition.deleting);
        self.leaving.send_replace(leaving.map(Known::leaving).collect());
        verdicts
    }

    /// Writes into the definitions' status what was decided, where it does not say so yet.
    async fn settle(&self, followed: &Followed, verdicts: &[Verdict]) -> Outcome<()> {
        for (known, verdict) in followed.known.values().zip(verdicts) {
            let definition = &known.definition;
            let agrees = definition.accepted == verdict.accepted
                && definition.established == verdict.established
                && definition.conflict == verdict.conflict.is_some()
                && definition.settled;
            if !agrees {
                self.write_status(definition, verdict).await?;
            }
        }
        Ok(())
    }

    async fn write_status(&self, definition: &Definition, verdict: &Verdict) -> Outcome<()> {
        let key = storage::key(&builtin::CUSTOM_RESOURCE_DEFINITION.id, "", &definition.name);
        let Some(record) = self.latest().await?.get(&key) else { return Ok(()) };
        let mut object = storage::parse(&record)?;
        let now = stamp(self.moment().now);
        if !names::settle(&mut object, verdict, definition.deleting, now.as_str().unwrap_or_default()) {
            return Ok(());
        }
        let deed = Deed { verb: "update", subresource: "status", ..Deed::default() };
        let txn = Txn::new()
            .when(key.clone(), Condition::At(record.modified))
            .put(key, storage::stamped(&object)?)
            .cause(deed.cause(&Caller::server("definitions")));
        // Lost to another server or to a user: the watch brings what is there now.
        if self.commit(txn).await?.is_err() {
            tracing::debug!(name = definition.name, "the definition changed meanwhile");
        }
        Ok(())
    }

    /// Cleans up after definitions that are being deleted, for as long as the server runs.
    pub async fn clean_up_definitions(&self) {
        let mut changed = self.leaving.subscribe();
        loop {
            let leaving: Vec<Leaving> = changed.borrow_and_update().clone();
            let mut waiting = false;
            for one in &leaving {
                match self.clean_up(one).await {
                    Ok(done) => waiting |= !done,
                    Err(refusal) => {
                        let name = one.definition.name.as_str();
                        tracing::warn!(name, reason = %refusal.message, "objects of a definition cannot be deleted");
                        waiting = true;
                    }
                }
            }
            let again = async {
                if waiting {
                    tokio::time::sleep(CLEANUP_EVERY).await;
                } else {
                    std::future::pending::<()>().await;
                }
            };
            tokio::select! {
                changed = changed.changed() => {
                    if changed.is_err() {
                        return;
                    }
                }
                () = again => {}
            }
        }
    }

    /// Deletes the objects of a definition, and lets go of it when none is left. True when it was let go.
    async fn clean_up(&self, leaving: &Leaving) -> Outcome<bool> {
        let definition = &leaving.definition;
        let range = storage::range(&definition.id(), "");
        // A definition whose names were never accepted has no objects: those that are there are of another one.
        if let Some(served) = &leaving.stored {
            if self.latest().await?.range(&range, None).next().is_some() {
                let target = Target {
                    served: Arc::clone(served),
                    namespace: String::new(),
                    name: String::new(),
                    subresource: String::new(),
                };
                let cause = format!("its definition {} is deleted", definition.name);
                let options = Options { cause, ..Options::default() };
                let caller = Caller::server("definitions");
                self.delete_collection(&caller, &target, &ListOptions::default(), &options).await?;
            }
            if self.latest().await?.range(&range, None).next().is_some() {
                return Ok(false);
            }
        }
        self.let_go(definition).await?;
        Ok(true)
    }

    /// Takes the finalizer of a definition away; it goes if no other holds it.
    async fn let_go(&self, definition: &Definition) -> Outcome<()> {
        let key = storage::key(&builtin::CUSTOM_RESOURCE_DEFINITION.id, "", &definition.name);
        let Some(record) = self.latest().await?.get(&key) else { return Ok(()) };
        let mut object = storage::parse(&record)?;
        let Some(finalizers) = list_mut(&mut object, &["metadata", "finalizers"]) else { return Ok(()) };
        let before = finalizers.len();
        finalizers.retain(|finalizer| finalizer.as_str() != Some(CLEANUP));
        if finalizers.len() == before {
            return Ok(());
        }
        let last = finalizers.is_empty();
        if last && let Some(metadata) = members_mut(&mut object, &["metadata"]) {
            metadata.remove("finalizers");
        }
        let deed = Deed { verb: "update", subresource: "finalize", ..Deed::default() };
        let txn = Txn::new().when(key.clone(), Condition::At(record.modified));
        let txn = if last { txn.delete(key) } else { txn.put(key, storage::stamped(&object)?) };
        if self.commit(txn.cause(deed.cause(&Caller::server("definitions")))).await?.is_err() {
            tracing::debug!(name = definition.name, "the definition changed meanwhile");
        }
        Ok(())
    }

    /// Waits until this server serves what was defined when it began, so that no first request misses it.
    pub async fn all_followed(&self) {
        let mut seen = self.followed_revision();
        let begun = seen.wait_for(|seen| *seen > Revision::ZERO);
        if tokio::time::timeout(FOLLOW_WAIT, begun).await.is_err() {
            tracing::warn!("custom types are not served yet");
        }
    }

    /// Waits until this server goes by what was just written: serves what a definition says, decides by a role, and
    /// admits by what configures admission; for all other types, not at all.
    pub async fn followed(&self, target: &Target, revision: Revision) {
        let id = &target.served.resource.id;
        self.admission.reached(id, revision).await;
        if roles::concerns(id) {
            return self.access.reached(revision).await;
        }
        if *id != builtin::CUSTOM_RESOURCE_DEFINITION.id {
            return;
        }
        let mut seen = self.followed_revision();
        let reached = seen.wait_for(|seen| *seen >= revision);
        if tokio::time::timeout(FOLLOW_WAIT, reached).await.is_err() {
            tracing::warn!(%revision, "a definition is stored, and not served yet");
        }
    }
}

/// Whether clients may ask for a version.
fn is_served(served: &Served) -> bool {
    served.custom.as_ref().is_none_or(|custom| custom.version().served)
}

impl Followed {
    /// Forgets what is not among these records.
    fn keep(&mut self, records: &[&Arc<Record>]) {
        let there: BTreeSet<&str> = records.iter().map(|record| storage::name_of(record)).collect();
        let gone: Vec<String> =
            self.known.keys().filter(|name| !there.contains(name.as_str())).cloned().collect();
        gone.iter().for_each(|name| self.remove(name));
    }

    fn apply(&mut self, transaction: &Transaction) {
        let range = storage::range(&builtin::CUSTOM_RESOURCE_DEFINITION.id, "");
        for change in transaction.changes_in(&range) {
            match (&change.record, &change.previous) {
                (Some(record), _) => self.put(record),
                (None, Some(previous)) => self.remove(storage::name_of(previous)),
                (None, None) => {}
            }
        }
    }

    fn put(&mut self, record: &Arc<Record>) {
        let name = storage::name_of(record).to_owned();
        let read = Definition::read(&record.value, record.created.get(), record.modified.get());
        let Some(mut definition) = read else {
            tracing::warn!(name, "a stored definition cannot be read; its type is not served");
            return self.remove(&name);
        };
        match self.known.get(&name).map(|known| &known.definition) {
            Some(earlier) if earlier.uid == definition.uid => definition.inherit(earlier),
            Some(earlier) => earlier.retire(),
            None => {}
        }
        let known =
            Known { definition: Arc::new(definition), served: Vec::new(), accepted: Names::default() };
        self.known.insert(name, known);
    }

    fn remove(&mut self, name: &str) {
        if let Some(known) = self.known.remove(name) {
            known.definition.retire();
        }
    }
}

impl Known {
    fn leaving(&self) -> Leaving {
        Leaving {
            definition: Arc::clone(&self.definition),
            stored: self.served.get(self.definition.storage).cloned(),
        }
    }

    /// Takes a verdict: served under the accepted names, or not at all.
    fn serve(&mut self, verdict: &Verdict) {
        if !verdict.established {
            self.served.clear();
        } else if self.served.is_empty() || self.accepted != verdict.accepted {
            let versions = 0..self.definition.versions.len();
            let custom = |index| Custom { definition: Arc::clone(&self.definition), index };
            self.served =
                versions.map(|index| Arc::new(Served::of_custom(custom(index), &verdict.accepted))).collect();
        }
        self.accepted.clone_from(&verdict.accepted);
    }
}
