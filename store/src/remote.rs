//! Remote: takes the committer's place where another process owns the line of revisions, which etcd
//! does. One thread holds the connections: it follows what etcd says, which alone moves the state that
//! readers see, and passes transactions on. A writer is answered when its own transaction came back.
//!
//! Several stores may be open on one cluster, so a transaction may fail by what another store did that
//! has not come here yet, and "newest" has to be asked for.

use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use tokio::sync::{mpsc, oneshot, watch};
use tokio::task::JoinSet;
use tokio::time::{Instant, timeout_at};

use crate::committer::{MAX_WAITING, Outcome, Request};
use crate::config::Clock;
use crate::engine::etcd::layout::{Layout, Line};
use crate::engine::etcd::members::Members;
use crate::engine::etcd::wire::{self, RANGE, RangeRequest, RangeResponse};
use crate::error::{CommitError, EngineError};
use crate::revision::Revision;
use crate::shared::Shared;
use crate::txn::Transaction;
use crate::upkeep::{Order, Orders};

mod plan;
mod commit;
mod follow;
pub(crate) mod start;

/// Most time that a transaction may take; then its fate is unknown to its writer.
pub const COMMIT_LIMIT: Duration = Duration::from_secs(30);
/// Most time that a reader of the newest revision waits for it.
pub const READ_LIMIT: Duration = Duration::from_secs(10);

/// How far this store has followed etcd.
#[derive(Clone, Copy, Debug, Default)]
pub struct Seen {
    /// etcd's revision up to which all is applied.
    pub at: i64,
    /// etcd's revision at which the fence was last written, as far as seen.
    pub fence: i64,
}

/// Transactions of this store that etcd has not sent back yet, by their number.
#[derive(Default)]
pub struct Pending {
    waiting: Mutex<HashMap<u64, oneshot::Sender<Arc<Transaction>>>>,
    next: AtomicU64,
}

impl Pending {
    /// A number for a transaction, and what it comes back on.
    pub fn enter(&self) -> (u64, oneshot::Receiver<Arc<Transaction>>) {
        let number = self.next.fetch_add(1, Ordering::Relaxed);
        let (back, wait) = oneshot::channel();
        self.lock().insert(number, back);
        (number, wait)
    }

    /// The transaction of this number will not come, or nobody waits.
    pub fn leave(&self, number: u64) {
        self.lock().remove(&number);
    }

    /// The transaction of this number came.
    pub fn came(&self, number: u64, transaction: &Arc<Transaction>) {
        let waiting = self.lock().remove(&number);
        if waiting.is_some_and(|waiting| waiting.send(transaction.clone()).is_err()) {
            tracing::trace!("a writer left before its transaction came back");
        }
    }

    /// Transactions were jumped over: nobody can say which of these were among them.
    pub fn lost(&self) {
        self.lock().clear();
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, HashMap<u64, oneshot::Sender<Arc<Transaction>>>> {
        self.waiting.lock().unwrap_or_else(std::sync::PoisonError::into_inner)
    }
}

/// What the tasks of an open store share.
pub struct Remote {
    /// The cluster.
    pub members: Arc<Members>,
    /// Where things are there.
    pub layout: Layout,
    /// How revisions map.
    pub line: Line,
    /// Where readers look.
    pub shared: Arc<Shared>,
    /// Time of transactions.
    pub clock: Arc<dyn Clock>,
    /// Tells this store's transactions from those of others.
    pub writer: u64,
    /// Transactions under way.
    pub pending: Pending,
    /// How far etcd was followed.
    pub seen: watch::Receiver<Seen>,
    /// When the fence was last written from here, and etcd's revision of that.
    pub fenced: tokio::sync::Mutex<Option<(Instant, i64)>>,
}

impl Remote {
    /// Waits until all up to a revision of etcd is applied; gives whether it was in time.
    pub async fn wait_seen(&self, at: i64, deadline: Instant) -> bool {
        let mut seen = self.seen.clone();
        let reached = seen.wait_for(|seen| seen.at >= at);
        matches!(timeout_at(deadline, reached).await, Ok(Ok(_)))
    }

    /// The newest revision in the cluster, applied here.
    async fn newest(&self) -> Result<Revision, EngineError> {
        let deadline = Instant::now() + READ_LIMIT;
        let request = RangeRequest { key: self.layout.last(), ..RangeRequest::default() };
        // Taken before asking: while the answer is under way the watch may pass it.
        let seen_before = self.seen.borrow().at;
        let answer: RangeResponse =
            self.members.call_until(RANGE, request, deadline).await.map_err(|error| error.of_read())?;
        let at = answer.kvs.first().map_or(self.line.first, |kv| kv.mod_revision);
        let newest = wire::revision(&answer.header);
        if newest < seen_before {
            let what = format!("its history ends at {newest}, before what was read from it");
            return Err(EngineError::Corrupt { file: "etcd".to_owned(), offset: 0, what });
        }
        if self.wait_seen(at, deadline).await {
            return Ok(self.line.revision(at));
        }
        let what = format!("revision {at} did not come in time");
        Err(EngineError::Unavailable { at: "etcd".to_owned(), what })
    }
}

type Answers = Vec<oneshot::Sender<Result<Revision, EngineError>>>;

/// Serves requests until told to close or until no store handle is left; all that was begun is done then.
pub async fn serve(remote: Arc<Remote>, mut requests: mpsc::Receiver<Request>, orders: Orders) {
    let mut commits = JoinSet::new();
    let mut reads = JoinSet::new();
    let mut asking: Answers = Vec::new();
    let mut closing: Option<oneshot::Sender<()>> = None;
    loop {
        if reads.is_empty() && !asking.is_empty() {
            reads.spawn(answer_newest(remote.clone(), std::mem::take(&mut asking)));
        }
        tokio::select! {
            request = requests.recv(), if commits.len() < MAX_WAITING => match request {
                None if commits.is_empty() && reads.is_empty() => break,
                None => {
                    // Nothing more comes: what is under way is waited for.
                    tokio::select! {
                        Some(_) = commits.join_next() => {}
                        Some(_) = reads.join_next() => {}
                    }
                }
                Some(Request::Commit { answer, .. }) if closing.is_some() => {
                    reply(answer, Err(CommitError::Closed));
                }
                Some(Request::Commit { txn, size, answer }) => {
                    let remote = remote.clone();
                    commits.spawn(async move { reply(answer, commit::commit(&remote, txn, size).await) });
                }
                Some(Request::Newest { answer }) => asking.push(answer),
                Some(Request::Close { answer }) => {
                    requests.close();
                    closing.get_or_insert(answer);
                }
            },
            Some(_) = commits.join_next() => {}
            Some(_) = reads.join_next() => {}
        }
    }
    let order = move || orders.send(Order::Close(closing));
    if !matches!(tokio::task::spawn_blocking(order).await, Ok(true)) {
        tracing::debug!("upkeep has ended before the store was closed");
    }
}

/// One question to the cluster for all who asked before it was put.
async fn answer_newest(remote: Arc<Remote>, answers: Answers) {
    let newest = remote.newest().await;
    for answer in answers {
        if answer.send(newest.clone()).is_err() {
            tracing::trace!("a reader left before its answer");
        }
    }
}

fn reply(answer: oneshot::Sender<Outcome>, outcome: Outcome) {
    if answer.send(outcome).is_err() {
        tracing::trace!("a writer left before its answer");
    }
}
