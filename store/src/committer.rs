//! Committer: the one thread that owns history. It gathers what waits, decides it in order against
//! memory, makes the group durable with one sync, publishes it, answers. The next group gathers
//! meanwhile. Nothing is answered, readable or watchable before its sync returned.

use std::sync::Arc;
use std::thread;

use tokio::sync::{mpsc, oneshot, watch};

use crate::config::Clock;
use crate::engine::{Engine, Group, Pressure};
use crate::error::{Class, CommitError, EngineError};
use crate::revision::Revision;
use crate::ring::RingWriter;
use crate::shared::Shared;
use crate::state::State;
use crate::txn::{Committed, Transaction, Txn};
use crate::upkeep::{Order, Orders};

/// Transactions that may wait for the committer; more wait in their callers.
pub const MAX_WAITING: usize = 1024;
/// Most bytes of transactions made durable by one sync, counted before the last of them.
pub const MAX_GROUP_BYTES: usize = 2 << 20;
/// How often the thread steps aside for callers on their way while none comes, before it commits what is there.
const MAX_YIELDS: usize = 4;
/// Callers in the group before, from which on more are worth stepping aside for.
const MANY: usize = 8;
/// Callers in a group that is not worth waiting for more.
const ENOUGH: usize = 64;

/// What a writer waits for.
pub type Outcome = Result<Committed, CommitError>;

/// A request to the committer.
pub enum Request {
    /// Commit a transaction of about so many bytes.
    Commit {
        /// The validated transaction.
        txn: Txn,
        /// Its size in bytes.
        size: usize,
        /// Where the outcome goes.
        answer: oneshot::Sender<Outcome>,
    },
    /// Tell the newest revision that anybody was answered for, once readers here see it.
    Newest {
        /// Where it goes.
        answer: oneshot::Sender<Result<Revision, EngineError>>,
    },
    /// End after what came before; what comes after is refused.
    Close {
        /// Told when all is done and the files are let go.
        answer: oneshot::Sender<()>,
    },
}

struct Waiting {
    txn: Txn,
    size: usize,
    answer: oneshot::Sender<Outcome>,
}

/// The thread's own state.
pub struct Committer {
    /// The writing half of the engine.
    pub engine: Box<dyn Engine>,
    /// The newest durable state.
    pub state: State,
    /// Where readers look.
    pub shared: Arc<Shared>,
    /// Where recent transactions go.
    pub ring: RingWriter,
    /// Wakes watchers; closes with this thread.
    pub published: watch::Sender<Revision>,
    /// The upkeep thread.
    pub orders: Orders,
    /// Time of transactions.
    pub clock: Arc<dyn Clock>,
    /// Why no more is committed, once that is so.
    pub stopped: Option<EngineError>,
    /// How many asked in the group before.
    pub asked: usize,
}

impl Committer {
    /// Serves requests until told to close or until no store handle is left.
    pub fn run(mut self, mut requests: mpsc::Receiver<Request>) {
        let mut batch = Vec::with_capacity(MAX_WAITING);
        let mut closing = None;
        while requests.blocking_recv_many(&mut batch, MAX_WAITING) > 0 {
            self.gather(&mut requests, &mut batch);
            let mut group = Vec::with_capacity(batch.len());
            let mut bytes = 0;
            for request in batch.drain(..) {
                match request {
                    Request::Commit { answer, .. } if closing.is_some() => {
                        reply(answer, Err(CommitError::Closed))
                    }
                    Request::Commit { txn, size, answer } => {
                        group.push(Waiting { txn, size, answer });
                        bytes += size;
                        if bytes >= MAX_GROUP_BYTES {
                            self.commit(std::mem::take(&mut group));
                            bytes = 0;
                        }
                    }
                    Request::Newest { answer } => {
                        if answer.send(Ok(self.state.revision)).is_err() {
                            tracing::trace!("a reader left before its answer");
                        }
                    }
                    Request::Close { answer } => {
                        requests.close();
                        closing.get_or_insert(answer);
                    }
                }
            }
            if !group.is_empty() {
                self.commit(group);
            }
        }
        drop(self.engine);
        if !self.orders.send(Order::Close(closing)) {
            tracing::debug!("upkeep has ended before the store was closed");
        }
    }

    /// Callers that were just answered ask again within moments. The first of them alone would have all others wait for
    /// its sync, so the thread lets them run while they come. It never waits: with nobody on the way, stepping aside a few
    /// times takes some microseconds.
    fn gather(&mut self, requests: &mut mpsc::Receiver<Request>, batch: &mut Vec<Request>) {
        let mut idle = 0;
        while self.asked >= MANY && batch.len() < self.asked.min(ENOUGH) && idle < MAX_YIELDS {
            thread::yield_now();
            let before = batch.len();
            while batch.len() < MAX_WAITING
                && let Ok(request) = requests.try_recv()
            {
                batch.push(request);
            }
            idle = if batch.len() > before { 0 } else { idle + 1 };
        }
        self.asked = batch.len();
    }

    fn commit(&mut self, group: Vec<Waiting>) {
        if let Some(error) = &self.stopped {
            let error = CommitError::Engine(EngineError::Stopped { reason: error.to_string() });
            return group.into_iter().for_each(|waiting| reply(waiting.answer, Err(error.clone())));
        }
        let mut plan = Plan::new(&self.state);
        group.iter().for_each(|waiting| plan.decide(&waiting.txn, self.clock.as_ref()));
        let mut durable = self.make_durable(&plan, Pressure::None);
        if matches!(durable, Err(EngineError::NoSpace { .. })) && self.make_room(Pressure::Full) {
            durable = self.make_durable(&plan, Pressure::None);
        }
        match durable {
            Ok(()) => {
                if !plan.transactions.is_empty() && self.shared.note_room() {
                    tracing::warn!("the disk has room again, everything is committed");
                }
                self.publish(plan, group);
            }
            Err(EngineError::NoSpace { at, missing, .. }) => {
                if self.shared.note_full() {
                    tracing::warn!(
                        at,
                        missing,
                        "the disk is full, only deletes are committed until it has room"
                    );
                }
                self.commit_deletes(group, missing);
            }
            Err(error) => self.refuse(group, error),
        }
    }

    /// On a full disk: commits what only frees space, refuses the rest.
    fn commit_deletes(&mut self, group: Vec<Waiting>, missing: Option<u64>) {
        let (deletes, puts): (Vec<_>, Vec<_>) =
            group.into_iter().partition(|waiting| waiting.txn.only_deletes());
        for waiting in puts {
            let needed = waiting.size as u64;
            reply(waiting.answer, Err(CommitError::NoSpace { needed, missing }));
        }
        let mut plan = Plan::new(&self.state);
        deletes.iter().for_each(|waiting| plan.decide(&waiting.txn, self.clock.as_ref()));
        let mut durable = self.make_durable(&plan, Pressure::Full);
        if matches!(durable, Err(EngineError::NoSpace { .. })) && self.make_room(Pressure::Desperate) {
            durable = self.make_durable(&plan, Pressure::Desperate);
        }
        match durable {
            Ok(()) => self.publish(plan, deletes),
            Err(error) => self.refuse(deletes, error),
        }
    }

    /// Has space given back and waits for that. Gives whether it is worth another try.
    fn make_room(&self, pressure: Pressure) -> bool {
        let (answer, done) = oneshot::channel();
        if !self.orders.send(Order::MakeRoom(pressure, answer)) {
            return false;
        }
        match done.blocking_recv() {
            Ok(Ok(())) => true,
            Ok(Err(error)) => {
                tracing::debug!(%error, "no room could be made on the full disk");
                false
            }
            Err(_) => false,
        }
    }

    fn make_durable(&mut self, plan: &Plan, pressure: Pressure) -> Result<(), EngineError> {
        if plan.transactions.is_empty() {
            return Ok(());
        }
        let group = Group { before: &self.state, transactions: &plan.transactions, pressure };
        self.engine.append(&group)
    }

    fn publish(&mut self, plan: Plan, group: Vec<Waiting>) {
        // What the group replaced is freed when it is answered: that touches as much memory as making it did.
        let (mut left, mut shown) = (Vec::new(), None);
        if !plan.transactions.is_empty() {
            self.state = plan.state;
            for transaction in plan.transactions {
                self.ring.push(transaction, &mut left);
            }
            shown = Some(self.shared.state.swap(Arc::new(self.state.clone())));
            self.published.send_replace(self.state.revision);
        }
        for (waiting, outcome) in group.into_iter().zip(plan.outcomes) {
            reply(waiting.answer, outcome);
        }
        drop((left, shown));
        if self.shared.archive.upkeep_due(self.shared.oldest()) {
            self.orders.look();
        }
    }

    fn refuse(&mut self, group: Vec<Waiting>, error: EngineError) {
        if error.class() != Class::Transient {
            tracing::error!(%error, "the store takes no more transactions until it is opened again");
            self.stopped = Some(error.clone());
        }
        for waiting in group {
            reply(waiting.answer, Err(error.clone().into()));
        }
    }
}

/// A group as decided, before it is durable.
struct Plan {
    state: State,
    transactions: Vec<Arc<Transaction>>,
    outcomes: Vec<Outcome>,
}

impl Plan {
    fn new(state: &State) -> Self {
        Plan { state: state.clone(), transactions: Vec::new(), outcomes: Vec::new() }
    }

    fn decide(&mut self, txn: &Txn, clock: &dyn Clock) {
        let outcome = self.state.decide(txn, clock.now()).map(|(transaction, committed)| {
            self.transactions.extend(transaction);
            committed
        });
        self.outcomes.push(outcome);
    }
}

fn reply(answer: oneshot::Sender<Outcome>, outcome: Outcome) {
    if answer.send(outcome).is_err() {
        tracing::trace!("a writer left before its answer");
    }
}
