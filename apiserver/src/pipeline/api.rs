//! The server's state that all verbs share, and the few steps that many of them take.

use std::sync::Arc;
use std::time::Duration;

use arc_swap::ArcSwap;
use jiff::Timestamp;
use rand::RngExt;
use strata_model::resource::builtin;
use strata_model::status::{Cause, Details, Status};
use strata_store::error::{CommitError, ReadError};
use strata_store::key::Key;
use strata_store::record::Record;
use strata_store::revision::Revision;
use strata_store::snapshot::{ReadAt, Snapshot};
use strata_store::store::Store;
use strata_store::txn::{Committed, Condition, Txn};
use tokio::sync::watch;

use super::access::Access;
use super::followed::Followed;
use super::leaving::Leaving;
use super::nodes::Nodes;
use super::request::{Caller, Target};
use super::turns::Turns;
use crate::authn::Tokens;
use crate::jwt::claims::Issuer;
use crate::refusal::{self, Outcome, about};
use crate::storage;
use crate::strategy::Moment;
use crate::types::catalogue::{Catalogue, Served};
use crate::types::namespace;

/// How long a read waits for a revision that has not come yet.
pub const FUTURE_WAIT: Duration = Duration::from_secs(3);
/// How often a write is decided anew when another one came between.
pub const MAX_ATTEMPTS: usize = 5;

/// By what users are known, beside their certificates.
pub struct Known {
    /// Bearer tokens that are told by a file.
    pub tokens: Tokens,
    /// Who makes and checks tokens of service accounts.
    pub issuer: Issuer,
}

/// The server behind its facades.
pub struct Api {
    /// The store.
    pub store: Store,
    /// What is served. A request takes it once.
    catalogue: ArcSwap<Catalogue>,
    /// Up to which revision definitions of custom types are in it.
    followed: watch::Sender<Revision>,
    /// Definitions that are being deleted, with what is left of them.
    pub leaving: watch::Sender<Vec<Leaving>>,
    /// How nodes are reached.
    pub nodes: Nodes,
    /// What configures admission.
    pub admission: Followed,
    /// Where writes wait that change the same record.
    pub turns: Turns,
    /// Who may do what.
    pub access: Access,
    /// Bearer tokens that are told by a file.
    pub tokens: Tokens,
    /// Who makes and checks tokens of service accounts.
    pub issuer: Issuer,
}

impl Api {
    /// A server that serves the built-in types.
    pub fn new(store: Store, catalogue: Catalogue, nodes: Nodes, known: Known) -> Self {
        let Known { tokens, issuer } = known;
        let catalogue = ArcSwap::from_pointee(catalogue);
        let (followed, leaving) = (watch::Sender::new(Revision::ZERO), watch::Sender::new(Vec::new()));
        Self {
            store,
            catalogue,
            followed,
            leaving,
            nodes,
            admission: Followed::default(),
            turns: Turns::default(),
            access: Access::default(),
            tokens,
            issuer,
        }
    }

    /// What is served now.
    pub fn catalogue(&self) -> Arc<Catalogue> {
        self.catalogue.load_full()
    }

    /// Puts these custom types in the place of those that are served.
    pub fn replace_catalogue(&self, custom: Vec<Arc<Served>>) {
        let old = self.catalogue();
        let new = old.with_custom(custom);
        new.kept.inherit(&old.kept);
        self.catalogue.store(Arc::new(new));
    }

    /// Notes that the definitions up to a revision are in the catalogue.
    pub fn note_followed(&self, revision: Revision) {
        self.followed.send_if_modified(|seen| {
            let later = revision > *seen;
            if later {
                *seen = revision;
            }
            later
        });
    }

    /// Up to which revision definitions are in the catalogue.
    pub fn followed_revision(&self) -> watch::Receiver<Revision> {
        self.followed.subscribe()
    }

    /// The newest state.
    pub async fn latest(&self) -> Outcome<Snapshot> {
        self.store.snapshot(ReadAt::Latest).await.map_err(|error| refusal::of_read(&error))
    }

    /// The newest state, once it has reached a revision; waits for it a little.
    pub async fn not_older(&self, revision: u64) -> Outcome<Snapshot> {
        let deadline = tokio::time::Instant::now() + FUTURE_WAIT;
        match self.store.wait_for(Revision::new(revision), deadline).await {
            Ok(_) => self.latest().await,
            Err(ReadError::Future { current }) => Err(refusal::too_new(revision, current.get())),
            Err(error) => Err(refusal::of_read(&error)),
        }
    }

    /// Time and chance for one write.
    pub fn moment(&self) -> Moment {
        let mut random = rand::rng();
        Moment {
            now: Timestamp::now(),
            uid: uuid::Uuid::new_v4().to_string(),
            random: std::array::from_fn(|_| random.random()),
        }
    }

    /// Commits, with the failures that no retry mends as refusals.
    pub async fn commit(&self, txn: Txn) -> Outcome<Result<Committed, Lost>> {
        match self.store.commit(txn).await {
            Ok(committed) => Ok(Ok(committed)),
            Err(CommitError::Failed { key, condition, .. }) => Ok(Err(Lost { key, condition })),
            Err(error) => {
                match &error {
                    // The store tells of a full disk once, and not for every write.
                    CommitError::NoSpace { .. } => tracing::debug!(%error, "a write found no room"),
                    _ => tracing::warn!(%error, "a write failed"),
                }
                Err(refusal::of_commit(&error))
            }
        }
    }

    /// Commits what a caller writes, under its fence if it has one.
    pub async fn commit_for(&self, caller: &Caller, txn: Txn) -> Outcome<Result<Committed, Lost>> {
        let Some(fence) = &caller.fence else { return self.commit(txn).await };
        let key = fence.key();
        let itself = txn.conditions.iter().any(|(own, _)| *own == key);
        for _ in 0..MAX_ATTEMPTS {
            let condition = fence.holds(&self.latest().await?)?;
            match self.commit(txn.clone().when(key.clone(), condition)).await? {
                // Renewed meanwhile, or taken: look again.
                Err(lost) if lost.key == key && !itself => {}
                decided => return Ok(decided),
            }
        }
        Err(refusal::timeout("the lease that fences this write changed again and again; try again"))
    }

    /// The condition that lets an object come into a namespace: it is there, not about to go, and stays so until the
    /// transaction is decided. `None` for what is in no namespace.
    pub fn namespace_open(
        &self,
        snapshot: &Snapshot,
        target: &Target,
        name: &str,
    ) -> Outcome<Option<(Key, Condition)>> {
        if !target.served.resource.is_namespaced() {
            return Ok(None);
        }
        let key = storage::key(&builtin::NAMESPACE.id, "", &target.namespace);
        let Some(record) = snapshot.get(&key) else {
            return Err(refusal::not_found(&builtin::NAMESPACE, &target.namespace));
        };
        if storage::head(&record, &namespace::NAMESPACE).deleting {
            return Err(terminating(target, name));
        }
        Ok(Some((key, Condition::At(record.modified))))
    }
}

/// A condition that did not hold: another write came first.
#[derive(Debug)]
pub struct Lost {
    /// The key it was about.
    pub key: Key,
    /// The condition.
    pub condition: Condition,
}

fn terminating(target: &Target, name: &str) -> refusal::Refusal {
    let why = format!(
        "unable to create new content in namespace {} because it is being terminated",
        target.namespace
    );
    let mut status = Status::forbidden(about(&target.served.resource, name), &why);
    let cause = Cause {
        reason: "NamespaceTerminating".to_owned(),
        message: format!("namespace {} is being terminated", target.namespace),
        field: "metadata.namespace".to_owned(),
    };
    let details = status.details.take().unwrap_or_default();
    status.details = Some(Box::new(Details { causes: vec![cause], ..*details }));
    Box::new(status)
}

/// The record of a target in a snapshot, or that there is none.
pub fn record_of(snapshot: &Snapshot, target: &Target) -> Outcome<Arc<Record>> {
    let key = storage::key(&target.served.resource.id, &target.namespace, &target.name);
    snapshot.get(&key).ok_or_else(|| refusal::not_found(&target.served.resource, &target.name))
}
