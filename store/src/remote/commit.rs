//! Commit: one transaction on its way through etcd, to a certain end.
//!
//! If a server is lost before it answers, the transaction may have happened, or may still. Then the
//! fence is written: every transaction names the fence's revision that it knows, so what was under way
//! before can no longer happen, and what had happened has come back by the time the fence does.

use std::sync::Arc;

use tokio::sync::oneshot;
use tokio::time::{Instant, timeout_at};

use crate::committer::Outcome;
use crate::engine::etcd::layout::Note;
use crate::engine::etcd::members::{CallError, Rest};
use crate::engine::etcd::wire::{self, TXN, TxnRequest, TxnResponse};
use crate::error::{CommitError, EngineError};
use crate::remote::plan::{self, Plan, Refusal};
use crate::remote::{COMMIT_LIMIT, Remote};
use crate::state::to_microseconds;
use crate::txn::{Committed, Transaction, Txn};

/// How one try ended, where it did not end the transaction.
enum Again {
    /// The state has moved on: plan anew.
    Stale,
    /// It did not happen and will not: send it anew.
    Lost(EngineError),
    /// etcd is full, but the transaction frees space: send it without its note.
    WithoutNote,
}

/// Commits a transaction.
pub async fn commit(remote: &Remote, txn: Txn, size: usize) -> Outcome {
    plan::check_size(&txn)?;
    let deadline = Instant::now() + COMMIT_LIMIT;
    let (mut rest, mut with_note) = (Rest::new(), true);
    loop {
        match attempt(remote, &txn, size, with_note, deadline).await? {
            Ok(committed) => return Ok(committed),
            Err(Again::Stale) if Instant::now() < deadline => {}
            Err(Again::Stale) => {
                let what = "the state did not come to rest".to_owned();
                return Err(EngineError::Unavailable { at: "etcd".to_owned(), what }.into());
            }
            Err(Again::Lost(error)) if Instant::now() >= deadline => return Err(error.into()),
            Err(Again::Lost(_)) => rest.take().await,
            Err(Again::WithoutNote) => with_note = false,
        }
    }
}

/// Sends the transaction once, and finds out what became of it.
async fn attempt(
    remote: &Remote,
    txn: &Txn,
    size: usize,
    with_note: bool,
    deadline: Instant,
) -> Result<Result<Committed, Again>, CommitError> {
    let (number, mut back) = remote.pending.enter();
    let _entry = Entry { remote, number };
    let state = remote.shared.state.load_full();
    let fence = remote.seen.borrow().fence;
    let time = to_microseconds(remote.clock.now()).max(state.time);
    let note = Note { writer: remote.writer, number, time, cause: txn.cause.clone() };
    let note = with_note.then_some(&note);
    let plan = plan::plan(&remote.layout, &remote.line, &state, txn, fence, note);
    let sent_at = Instant::now();
    match remote.members.call::<TxnRequest, TxnResponse>(TXN, plan.request.clone()).await {
        Ok(answer) if answer.succeeded => {
            succeeded(remote, txn, &plan, &answer, &mut back, deadline).await.map(Ok)
        }
        Ok(answer) => refused(remote, txn, &answer, deadline).await.map(Err),
        Err(CallError::Refused { status, .. }) if status.message().contains("database space exceeded") => {
            let freeing = TxnRequest { success: plan.request.success, ..TxnRequest::default() };
            if with_note && plan.changes && plan::only_frees(&without_note(freeing)) {
                return Ok(Err(Again::WithoutNote));
            }
            Err(CommitError::NoSpace { needed: size as u64, missing: None })
        }
        Err(CallError::Refused { status, .. })
            if status.message().contains("too large") || status.message().contains("too many operations") =>
        {
            Err(CommitError::Invalid { reason: format!("etcd refuses it: {}", status.message()) })
        }
        Err(error @ CallError::Refused { .. }) => Err(error.of_read().into()),
        Err(error @ CallError::Lost { .. }) if !plan.changes => Ok(Err(Again::Lost(error.of_read()))),
        Err(CallError::Lost { at, what }) => {
            let uncertain = EngineError::Uncertain { at: at.clone(), what: what.clone() };
            if !plan.has_note {
                return Err(uncertain.into());
            }
            match settle(remote, sent_at, &mut back, deadline).await {
                Some(Some(transaction)) => Ok(Ok(told(txn, &transaction))),
                Some(None) => Ok(Err(Again::Lost(EngineError::Unavailable { at, what }))),
                None => Err(uncertain.into()),
            }
        }
    }
}

/// The request without the put of the note, which is its last operation.
fn without_note(mut request: TxnRequest) -> TxnRequest {
    request.success.pop();
    request
}

/// It happened: waits until readers here see it.
async fn succeeded(
    remote: &Remote,
    txn: &Txn,
    plan: &Plan,
    answer: &TxnResponse,
    back: &mut oneshot::Receiver<Arc<Transaction>>,
    deadline: Instant,
) -> Outcome {
    let lost = |what: &str| {
        CommitError::Engine(EngineError::Uncertain { at: "etcd".to_owned(), what: what.to_owned() })
    };
    if !plan.changes {
        let at = answer.read(0).map_or(remote.line.first, |kv| kv.mod_revision);
        if !remote.wait_seen(at, deadline).await {
            let what = format!("revision {at} did not come in time");
            return Err(EngineError::Unavailable { at: "etcd".to_owned(), what }.into());
        }
        let records = txn.mutations.iter().map(|_| None).collect();
        return Ok(Committed { revision: remote.line.revision(at), records });
    }
    if plan.has_note {
        return match timeout_at(deadline, back).await {
            Ok(Ok(transaction)) => Ok(told(txn, &transaction)),
            Ok(Err(_)) => Err(lost("it happened, but history was given back before it was seen here")),
            Err(_) => Err(lost("it happened, but was not seen here in time")),
        };
    }
    let at = wire::revision(&answer.header);
    if !remote.wait_seen(at, deadline).await {
        return Err(lost("it happened, but was not seen here in time"));
    }
    let records = plan::removed(&remote.line, &remote.layout, txn, answer);
    Ok(Committed { revision: remote.line.revision(at), records })
}

/// It did not happen, because something did not hold.
async fn refused(
    remote: &Remote,
    txn: &Txn,
    answer: &TxnResponse,
    deadline: Instant,
) -> Result<Again, CommitError> {
    let refusal = plan::refusal(&remote.line, txn, answer)?;
    // A writer that is told of a newer record finds it when it reads.
    let is_seen = remote.wait_seen(plan::looked_at(answer), deadline).await;
    match refusal {
        Refusal::Failed(key, condition, actual) => Err(CommitError::Failed { key, condition, actual }),
        Refusal::Stale if is_seen => Ok(Again::Stale),
        Refusal::Stale => {
            let what = "what it wrote did not come in time".to_owned();
            Err(EngineError::Unavailable { at: "etcd".to_owned(), what }.into())
        }
    }
}

/// Finds out what became of a transaction whose server was lost: the transaction, or `None` if it did
/// not happen and never will; nothing if the cluster does not come back in time.
async fn settle(
    remote: &Remote,
    sent_at: Instant,
    back: &mut oneshot::Receiver<Arc<Transaction>>,
    deadline: Instant,
) -> Option<Option<Arc<Transaction>>> {
    let lost_at = Instant::now();
    let fence = fence(remote, lost_at, deadline).await?;
    tracing::debug!(fence, after = ?sent_at.elapsed(), "a transaction's fate was found out");
    if !remote.wait_seen(fence, deadline).await {
        return None;
    }
    match back.try_recv() {
        Ok(transaction) => Some(Some(transaction)),
        Err(oneshot::error::TryRecvError::Empty) => Some(None),
        // History was given back before it was seen.
        Err(oneshot::error::TryRecvError::Closed) => None,
    }
}

/// Writes the fence, unless another transaction did since `lost_at`; gives etcd's revision of that.
async fn fence(remote: &Remote, lost_at: Instant, deadline: Instant) -> Option<i64> {
    let mut fenced = timeout_at(deadline, remote.fenced.lock()).await.ok()?;
    if let Some((began, at)) = *fenced
        && began >= lost_at
    {
        return Some(at);
    }
    let success = vec![wire::put(remote.layout.fence(), remote.writer.to_string())];
    let request = TxnRequest { success, ..TxnRequest::default() };
    let began = Instant::now();
    let answer = remote.members.call_until::<_, TxnResponse>(TXN, request, deadline).await;
    match answer {
        Ok(answer) => {
            let at = wire::revision(&answer.header);
            *fenced = Some((began, at));
            Some(at)
        }
        Err(error) => {
            tracing::warn!(?error, "the fate of a transaction could not be found out");
            None
        }
    }
}

fn told(txn: &Txn, transaction: &Transaction) -> Committed {
    Committed { revision: transaction.revision, records: plan::records(txn, transaction) }
}

/// A number in use.
struct Entry<'a> {
    remote: &'a Remote,
    number: u64,
}

impl Drop for Entry<'_> {
    fn drop(&mut self) {
        self.remote.pending.leave(self.number);
    }
}
