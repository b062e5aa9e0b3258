//! Upkeep: the thread that does what the commit path must not: checkpoints, giving back old history.
//! Decides how far automatic compaction may go; how space is given back is the engine's matter.

use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, TrySendError, sync_channel};
use std::time::{Duration, Instant, SystemTime};

use tokio::sync::oneshot;

use crate::config::{Clock, Config};
use crate::engine::Pressure;
use crate::error::EngineError;
use crate::revision::Revision;
use crate::shared::Shared;

/// Work orders that may wait; a nudge that finds this many is not needed.
const MAX_ORDERS: usize = 64;
/// How often the thread looks by itself for history that has grown too old.
const LOOK_EVERY: Duration = Duration::from_secs(15);
/// How long the thread rests after work that failed, unless it is asked.
const REST: Duration = Duration::from_secs(5);
/// Slices done at one order before newer orders are looked at.
const MAX_SLICES: usize = 1024;
/// Moments remembered of which revision was current when; neighbours merge beyond that.
const MAX_MARKS: usize = 128;

/// An order to the thread.
pub enum Order {
    /// Look whether there is something to do.
    Look,
    /// Do what there is to do and answer.
    Run(oneshot::Sender<Result<(), EngineError>>),
    /// The disk is full: give back what can be given back, if `Desperate` all history, and answer.
    MakeRoom(Pressure, oneshot::Sender<Result<(), EngineError>>),
    /// Do the last things, let go of the files, answer, end.
    Close(Option<oneshot::Sender<()>>),
}

/// The way to the thread.
#[derive(Clone)]
pub struct Orders(SyncSender<Order>);

impl Orders {
    /// A bounded channel of orders.
    pub fn channel() -> (Orders, Receiver<Order>) {
        let (sender, receiver) = sync_channel(MAX_ORDERS);
        (Orders(sender), receiver)
    }

    /// Asks for a look; a full channel means that looks enough are on their way.
    pub fn look(&self) {
        if let Err(TrySendError::Disconnected(_)) = self.0.try_send(Order::Look) {
            tracing::debug!("upkeep has ended");
        }
    }

    /// Sends an order, waiting for room; gives whether the thread still takes orders.
    pub fn send(&self, order: Order) -> bool {
        self.0.send(order).is_ok()
    }
}

/// How far history may be compacted: which revision was current when.
#[derive(Debug)]
pub struct Retention {
    history: Duration,
    transactions: u64,
    marks: VecDeque<(SystemTime, Revision)>,
    spacing: Duration,
}

impl Retention {
    /// Keeps at least `history` and the `transactions` newest ones.
    #[must_use]
    pub fn new(history: Duration, transactions: u64) -> Self {
        let spacing = history / MAX_MARKS as u32 * 2;
        Retention { history, transactions, marks: VecDeque::new(), spacing }
    }

    /// Notes that `current` is the revision at `now`.
    pub fn mark(&mut self, now: SystemTime, current: Revision) {
        let wanted = match self.marks.back() {
            None => true,
            Some((time, revision)) => *revision != current && *time + self.spacing <= now,
        };
        if wanted {
            if self.marks.len() == MAX_MARKS {
                self.marks.pop_front();
            }
            self.marks.push_back((now, current));
        }
    }

    /// The newest revision below which nothing need be kept at `now`, if there is one.
    pub fn floor(&mut self, now: SystemTime, current: Revision) -> Option<Revision> {
        let old_enough = |time: SystemTime| time + self.history <= now;
        while self.marks.get(1).is_some_and(|(time, _)| old_enough(*time)) {
            self.marks.pop_front();
        }
        let (time, revision) = self.marks.front()?;
        let newest = Revision::new(current.get().saturating_sub(self.transactions));
        old_enough(*time).then(|| (*revision).min(newest))
    }
}

/// The thread's own state.
pub struct Upkeep {
    shared: Arc<Shared>,
    clock: Arc<dyn Clock>,
    retention: Retention,
    rest_until: Option<Instant>,
}

impl Upkeep {
    /// Upkeep of a store as configured.
    pub fn new(shared: Arc<Shared>, config: &Config) -> Self {
        let mut retention = Retention::new(config.history, config.history_transactions);
        let state = shared.state.load();
        // The state is as old as its last transaction, however long ago this process started.
        retention.mark(state.time, state.revision);
        drop(state);
        Upkeep { shared, clock: config.clock.clone(), retention, rest_until: None }
    }

    /// Takes orders until told to close or until nobody is left to give any.
    pub fn run(mut self, orders: &Receiver<Order>) {
        loop {
            match orders.recv_timeout(LOOK_EVERY) {
                Ok(Order::Look) | Err(RecvTimeoutError::Timeout) => self.look(),
                Ok(Order::Run(answer)) => {
                    if answer.send(self.work_asked(Pressure::None)).is_err() {
                        tracing::debug!("nobody waits for the upkeep any more");
                    }
                }
                Ok(Order::MakeRoom(pressure, answer)) => {
                    if pressure == Pressure::Desperate {
                        let floor = self.shared.raise_floor(self.shared.current());
                        tracing::info!(%floor, "history before this revision is given up for the full disk");
                    }
                    if answer.send(self.work_asked(pressure)).is_err() {
                        tracing::debug!("nobody waits for room any more");
                    }
                }
                Ok(Order::Close(answer)) => {
                    self.close();
                    if answer.is_some_and(|answer| answer.send(()).is_err()) {
                        tracing::debug!("nobody waits for the close any more");
                    }
                    return;
                }
                Err(RecvTimeoutError::Disconnected) => return self.close(),
            }
        }
    }

    /// Works if there is something to do; after a failure not again at once.
    fn look(&mut self) {
        if self.rest_until.is_some_and(|until| Instant::now() < until) {
            return;
        }
        self.rest_until = None;
        match self.work(false, Pressure::None) {
            Ok(()) => {}
            Err(error) => {
                match &error {
                    EngineError::NoSpace { .. } => self.tell(&error),
                    _ => {
                        tracing::warn!(error = %Chain(&error), "upkeep of the store failed, it will be tried again");
                    }
                }
                self.rest_until = Some(Instant::now() + REST);
            }
        }
    }

    /// Tells of a full disk, unless that was told.
    fn tell(&self, error: &EngineError) {
        if self.shared.note_full() {
            tracing::warn!(%error, "the disk is full, upkeep does what it can without room");
        }
    }

    /// Works because somebody asked. A full disk is no failure then: what could be given back was.
    fn work_asked(&mut self, pressure: Pressure) -> Result<(), EngineError> {
        match self.work(true, pressure) {
            Err(error @ EngineError::NoSpace { .. }) => {
                if pressure == Pressure::None {
                    self.tell(&error);
                }
                Ok(())
            }
            other => other,
        }
    }

    fn work(&mut self, asked: bool, pressure: Pressure) -> Result<(), EngineError> {
        let (now, current) = (self.clock.now(), self.shared.current());
        self.retention.mark(now, current);
        if let Some(floor) = self.retention.floor(now, current) {
            let held = self.shared.held().filter(|_| pressure == Pressure::None);
            self.shared.raise_floor(held.map_or(floor, |held| held.min(floor)));
        }
        let floor = self.shared.oldest();
        if !asked && !self.shared.archive.upkeep_due(floor) {
            return Ok(());
        }
        for _ in 0..MAX_SLICES {
            let state = self.shared.state.load_full();
            if !self.shared.archive.upkeep(&state, floor, pressure)? {
                break;
            }
        }
        Ok(())
    }

    fn close(&self) {
        self.shared.archive.close(&self.shared.state.load_full(), self.shared.oldest());
    }
}

/// Prints an error with its sources.
struct Chain<'a>(&'a dyn std::error::Error);

impl std::fmt::Display for Chain<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}", self.0)?;
        let mut source = self.0.source();
        while let Some(error) = source {
            write!(f, ": {error}")?;
            source = error.source();
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(seconds: u64) -> SystemTime {
        SystemTime::UNIX_EPOCH + Duration::from_secs(seconds)
    }

    #[test]
    fn retention_keeps_both_the_time_and_the_count() {
        let mut retention = Retention::new(Duration::from_secs(100), 10);
        retention.mark(at(0), Revision::new(50));
        retention.mark(at(60), Revision::new(70));
        assert_eq!(retention.floor(at(99), Revision::new(80)), None);
        assert_eq!(retention.floor(at(100), Revision::new(80)), Some(Revision::new(50)));
        assert_eq!(retention.floor(at(159), Revision::new(80)), Some(Revision::new(50)));
        assert_eq!(retention.floor(at(160), Revision::new(75)), Some(Revision::new(65)));
    }
}
