//! Watches: the transactions of a range as events of the objects that are selected. Knows no frames.

use std::sync::Arc;
use std::time::Duration;

use strata_model::resource::Verb;
use strata_store::error::WatchError;
use strata_store::key::KeyRange;
use strata_store::record::Record;
use strata_store::revision::Revision;
use strata_store::store::Store;
use strata_store::txn::{Change, Transaction};
use strata_store::watch::{From, Watch, WatchItem};
use tokio::sync::watch;

use super::api::Api;
use super::event::{Event, Kind};
use super::read::range_of;
use super::request::{Caller, Target, single_name};
use super::versions;
use crate::refusal::{self, Outcome};
use crate::selection::Selection;
use crate::storage;

/// Most objects of the initial state in one step.
const INITIAL_CHUNK: usize = 512;
/// Bytes of the initial state after which a step is full.
const INITIAL_BYTES: usize = 256 * 1024;
/// How long a watch waits for a revision that has not come yet.
const FUTURE_WAIT: Duration = Duration::from_secs(3600);

/// What a watch yields next.
#[derive(Clone, Debug)]
pub enum Step {
    /// Events, never part of a transaction.
    Events(Vec<Event>),
    /// All of the initial state was yielded; it is that of this revision.
    InitialEnd(u64),
    /// Everything up to this revision was yielded.
    Progress(u64),
    /// The type is served no more; nothing follows.
    Gone,
}

/// From where a watch goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Start {
    /// What comes from now on.
    Now,
    /// What came after a revision; one in the future is waited for.
    After(u64),
    /// Everything there is, then what comes.
    Initial,
}

enum State {
    /// The revision to start after has not come yet.
    Ahead(u64),
    Running(Box<Watch>),
}

/// A running watch.
pub struct Observer {
    store: Store,
    target: Target,
    selection: Selection,
    range: KeyRange,
    state: State,
    initial: Option<(std::vec::IntoIter<Arc<Record>>, u64)>,
    asked: Option<u64>,
    /// Events that wait for a webhook to convert them.
    raw: Option<Vec<Event>>,
    /// Turns true when the type is gone.
    retired: Option<watch::Receiver<bool>>,
}

impl Api {
    /// Starts a watch.
    pub async fn watch(
        &self,
        caller: &Caller,
        target: &Target,
        selectors: (&str, &str),
        start: Start,
    ) -> Outcome<Observer> {
        target.admit_selected(caller, Verb::Watch, selectors.1)?;
        self.admit_node(caller, target, Verb::Watch.as_str(), &single_name(selectors.1)).await?;
        let selection = Selection::parse(&target.served, selectors.0, selectors.1)?;
        let range = range_of(&target.stored(), &selection);
        let (from, asked) = match start {
            Start::Now => (From::Now, 0),
            Start::After(revision) => (From::After(Revision::new(revision)), revision),
            Start::Initial => (From::WithInitial, 0),
        };
        let state = match self.store.watch(range.clone(), from) {
            Ok(watch) => State::Running(Box::new(watch)),
            Err(WatchError::Future { .. }) => State::Ahead(asked),
            Err(error) => return Err(refusal::of_watch(&error, asked)),
        };
        Ok(Observer {
            store: self.store.clone(),
            target: target.clone(),
            selection,
            range,
            state,
            initial: None,
            asked: None,
            raw: None,
            retired: target.served.custom.as_ref().map(|custom| custom.definition.retired()),
        })
    }
}

impl Observer {
    /// What is watched.
    pub fn target(&self) -> &Target {
        &self.target
    }

    /// Asks for one `Progress` as soon as everything up to a revision was yielded.
    pub fn ask_progress(&mut self, revision: u64) {
        match &mut self.state {
            State::Running(watch) if self.initial.is_none() => watch.announce(Revision::new(revision)),
            _ => self.asked = Some(revision),
        }
    }

    /// Asks for one `Progress` as soon as everything up to now was yielded.
    pub fn ask_current(&mut self) {
        self.ask_progress(self.store.current_revision().get());
    }

    /// The next step; waits for one. Dropping the future loses nothing.
    pub async fn next(&mut self) -> Outcome<Step> {
        loop {
            if let Some(raw) = &self.raw {
                let mut events = raw.clone();
                versions::show_events(&self.target.served, &mut events).await?;
                self.raw = None;
                return Ok(Step::Events(events));
            }
            if let Some(step) = self.try_next()? {
                return Ok(step);
            }
            if self.raw.is_some() {
                continue;
            }
            if self.is_retired() {
                return Ok(Step::Gone);
            }
            let item = match &mut self.state {
                State::Ahead(revision) => {
                    let revision = *revision;
                    self.arrive(revision).await?;
                    continue;
                }
                State::Running(watch) => tokio::select! {
                    item = watch.next() => {
                        item.map_err(|error| refusal::of_watch(&error, watch.progress().get()))?
                    }
                    // What came before the end is taken first, above.
                    () = retirement(&mut self.retired) => continue,
                },
            };
            if let Some(step) = self.take(item)
                && let Some(step) = self.shown(step).await?
            {
                return Ok(step);
            }
        }
    }

    fn is_retired(&self) -> bool {
        self.retired.as_ref().is_some_and(|retired| *retired.borrow())
    }

    /// A step in the form of the type that is watched. `None`: it waits for a webhook.
    fn shown_now(&mut self, step: Step) -> Outcome<Option<Step>> {
        let Step::Events(mut events) = step else { return Ok(Some(step)) };
        if versions::show_events_now(&self.target.served, &mut events)? {
            return Ok(Some(Step::Events(events)));
        }
        self.raw = Some(events);
        Ok(None)
    }

    async fn shown(&mut self, step: Step) -> Outcome<Option<Step>> {
        if let Some(step) = self.shown_now(step)? {
            return Ok(Some(step));
        }
        let Some(raw) = &self.raw else { return Ok(None) };
        let mut events = raw.clone();
        versions::show_events(&self.target.served, &mut events).await?;
        self.raw = None;
        Ok(Some(Step::Events(events)))
    }

    /// The next step if one is at hand.
    pub fn try_next(&mut self) -> Outcome<Option<Step>> {
        loop {
            if self.raw.is_some() {
                return Ok(None);
            }
            let step = match self.next_initial() {
                Some(step) => Some(step),
                None => {
                    let State::Running(watch) = &mut self.state else { return Ok(None) };
                    let item = watch
                        .try_next()
                        .map_err(|error| refusal::of_watch(&error, watch.progress().get()))?;
                    let Some(item) = item else { return Ok(None) };
                    self.take(item)
                }
            };
            if let Some(step) = step {
                return self.shown_now(step);
            }
        }
    }

    async fn arrive(&mut self, revision: u64) -> Outcome<()> {
        let deadline = tokio::time::Instant::now() + FUTURE_WAIT;
        self.store
            .wait_for(Revision::new(revision), deadline)
            .await
            .map_err(|error| refusal::of_read(&error))?;
        let from = From::After(Revision::new(revision));
        let watch = self.store.watch(self.range.clone(), from);
        self.state = State::Running(Box::new(watch.map_err(|error| refusal::of_watch(&error, revision))?));
        if let Some(asked) = self.asked.take() {
            self.ask_progress(asked);
        }
        Ok(())
    }

    fn next_initial(&mut self) -> Option<Step> {
        let (records, revision) = self.initial.as_mut()?;
        let (mut events, mut size) = (Vec::new(), 0);
        while events.len() < INITIAL_CHUNK && size < INITIAL_BYTES {
            let Some(record) = records.next() else { break };
            size += record.value.len();
            events.push(Event {
                kind: Kind::Added,
                bytes: record.value.clone(),
                revision: record.modified.get(),
            });
        }
        if !events.is_empty() {
            return Some(Step::Events(events));
        }
        let revision = *revision;
        self.initial = None;
        if let Some(asked) = self.asked.take() {
            self.ask_progress(asked);
        }
        Some(Step::InitialEnd(revision))
    }

    fn take(&mut self, item: WatchItem) -> Option<Step> {
        match item {
            WatchItem::Initial(snapshot) => {
                let records: Vec<Arc<Record>> = snapshot
                    .range(&self.range, None)
                    .filter(|r| self.selection.matches(r))
                    .cloned()
                    .collect();
                self.initial = Some((records.into_iter(), snapshot.revision().get()));
                self.next_initial()
            }
            WatchItem::Progress(revision) => Some(Step::Progress(revision.get())),
            WatchItem::Transaction(transaction) => {
                let events = self.events(&transaction);
                (!events.is_empty()).then_some(Step::Events(events))
            }
        }
    }

    fn events(&self, transaction: &Transaction) -> Vec<Event> {
        let revision = transaction.revision.get();
        transaction.changes_in(&self.range).filter_map(|change| self.event(change, revision)).collect()
    }

    fn event(&self, change: &Change, revision: u64) -> Option<Event> {
        let selected =
            |record: &Option<Arc<Record>>| record.as_ref().filter(|r| self.selection.matches(r)).cloned();
        let (now, was) = (selected(&change.record), selected(&change.previous));
        let event = |kind, bytes| Some(Event { kind, bytes, revision });
        match (now, was) {
            (Some(now), Some(_)) => event(Kind::Modified, now.value.clone()),
            (Some(now), None) => event(Kind::Added, now.value.clone()),
            (None, Some(was)) => {
                // It went, or it is no longer selected: in both cases its last selected state, at this revision.
                event(
                    Kind::Deleted,
                    storage::with_revision(&was, self.target.served.stored().rules, revision),
                )
            }
            (None, None) => None,
        }
    }
}

/// Done when a type is gone; never, where it cannot go.
async fn retirement(retired: &mut Option<watch::Receiver<bool>>) {
    let gone = match retired {
        Some(retired) => retired.wait_for(|retired| *retired).await.is_ok(),
        None => false,
    };
    if !gone {
        std::future::pending::<()>().await;
    }
}
