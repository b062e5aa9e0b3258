//! Many watches on one stream: each runs by itself with its own credit, so that a slow one holds up no other.

use std::collections::HashMap;
use std::pin::Pin;
use std::sync::Arc;

use futures_util::stream::{Stream, StreamExt, unfold};
use strata_model::status::Status as ApiStatus;
use strata_wire::v1::watch_request::Say;
use strata_wire::v1::watch_response::Say as Said;
use strata_wire::v1::{self, EventType, Projection};
use tokio::sync::{mpsc, watch};
use tokio::task::{AbortHandle, JoinSet};
use tonic::{Status, Streaming};

use super::convert::{self, Place, refused};
use super::credit::Credit;
use crate::gate::{Gate, ended};
use crate::paging;
use crate::pipeline::event::{Event, Kind};
use crate::pipeline::request::Caller;
use crate::pipeline::watching::{Observer, Start, Step};
use crate::refusal::{Outcome, Refusal, bad_request, internal, no_such_place, shutting_down};
use crate::telemetry::Held;
use crate::types::catalogue::Served;

/// Most watches on one stream.
const MAX_ON_STREAM: usize = 1_024;
/// Answers that wait for the stream.
const OUTBOX: usize = 64;
/// Orders that wait for one watch.
const INBOX: usize = 16;
/// Most events that are gathered into one answer before it is sent.
const BATCH: usize = 512;
/// Bytes of objects after which an answer is full.
const BATCH_BYTES: usize = 256 * 1024;

/// What the client receives.
pub type WatchStream = Pin<Box<dyn Stream<Item = Result<v1::WatchResponse, Status>> + Send>>;

/// An answer, and which opening of its watch it belongs to.
type Numbered = (u64, v1::WatchResponse);

/// A watch as the stream knows it.
struct Open {
    opening: u64,
    credit: Arc<Credit>,
    ask: mpsc::Sender<()>,
    task: AbortHandle,
}

/// One stream.
struct Session {
    gate: Arc<Gate>,
    caller: Caller,
    said: Streaming<v1::WatchRequest>,
    listening: bool,
    ending: watch::Receiver<bool>,
    outbox: mpsc::Sender<Numbered>,
    ready: mpsc::Receiver<Numbered>,
    open: HashMap<u64, Open>,
    openings: u64,
    tasks: JoinSet<()>,
    finished: bool,
}

/// Serves a stream.
pub fn serve(
    gate: Arc<Gate>,
    caller: Caller,
    said: Streaming<v1::WatchRequest>,
    ending: watch::Receiver<bool>,
) -> WatchStream {
    let (outbox, ready) = mpsc::channel(OUTBOX);
    let session = Session {
        gate,
        caller,
        said,
        listening: true,
        ending,
        outbox,
        ready,
        open: HashMap::new(),
        openings: 0,
        tasks: JoinSet::new(),
        finished: false,
    };
    Box::pin(unfold(session, |mut session| async move {
        let item = session.next().await?;
        Some((item, session))
    }))
}

fn response(watch_id: u64, say: Said) -> v1::WatchResponse {
    v1::WatchResponse { watch_id, say: Some(say) }
}

fn closed(watch_id: u64, refusal: Option<&ApiStatus>) -> v1::WatchResponse {
    let status = refusal.map_or_else(Vec::new, |status| serde_json::to_vec(status).unwrap_or_default());
    response(watch_id, Said::Closed(v1::WatchClosed { status: status.into() }))
}

impl Session {
    async fn next(&mut self) -> Option<Result<v1::WatchResponse, Status>> {
        loop {
            if self.finished {
                return None;
            }
            tokio::select! {
                Some(answer) = self.ready.recv() => {
                    if let Some(answer) = self.pass(answer) {
                        return Some(Ok(answer));
                    }
                }
                said = self.said.next(), if self.listening => match said {
                    Some(Ok(message)) => {
                        if let Some(answer) = self.hear(message).await {
                            return Some(Ok(answer));
                        }
                    }
                    // The client says no more; its watches go on until it hangs up.
                    None => self.listening = false,
                    Some(Err(error)) => {
                        tracing::debug!(%error, "a watch stream broke off");
                        return None;
                    }
                },
                Some(Err(error)) = self.tasks.join_next() => {
                    if !error.is_cancelled() {
                        tracing::error!(%error, "a watch failed");
                        self.finished = true;
                        return Some(Err(refused(internal("a watch failed"))));
                    }
                }
                () = ended(&mut self.ending) => {
                    self.finished = true;
                    return Some(Err(refused(shutting_down())));
                }
            }
        }
    }

    /// Lets an answer of a watch through, unless the watch was cancelled meanwhile.
    fn pass(&mut self, (opening, answer): Numbered) -> Option<v1::WatchResponse> {
        let id = answer.watch_id;
        self.open.get(&id).filter(|open| open.opening == opening)?;
        if matches!(answer.say, Some(Said::Closed(_))) {
            self.open.remove(&id);
        }
        Some(answer)
    }

    /// Acts on what the client says; some things are answered at once.
    async fn hear(&mut self, message: v1::WatchRequest) -> Option<v1::WatchResponse> {
        let id = message.watch_id;
        match message.say {
            Some(Say::Open(open)) => {
                self.begin(id, open).await.err().map(|refusal| closed(id, Some(&refusal)))
            }
            Some(Say::Cancel(_)) => self.open.remove(&id).map(|open| {
                open.task.abort();
                closed(id, None)
            }),
            Some(Say::Credit(credit)) => {
                if let Some(open) = self.open.get(&id) {
                    open.credit.add(credit.events);
                }
                None
            }
            Some(Say::AskProgress(_)) => {
                if let Some(open) = self.open.get(&id)
                    && open.ask.try_send(()).is_err()
                {
                    tracing::debug!(id, "a watch has been asked for progress and will tell it");
                }
                None
            }
            None => Some(closed(id, Some(&bad_request("the message says nothing")))),
        }
    }

    async fn begin(&mut self, id: u64, open: v1::WatchOpen) -> Outcome<()> {
        if self.open.contains_key(&id) {
            return Err(bad_request(format!("watch {id} is open already")));
        }
        if self.open.len() >= MAX_ON_STREAM {
            return Err(bad_request(format!("a stream carries at most {MAX_ON_STREAM} watches")));
        }
        let place =
            Place { resource: open.resource.as_ref(), namespace: &open.namespace, name: "", subresource: "" };
        let target = convert::target(&self.gate.api.catalogue(), place)?;
        let start = match (open.resource_version.as_str(), open.initial_state) {
            (_, true) => Start::Initial,
            ("", false) => Start::Now,
            (version, false) => Start::After(paging::revision(version)?),
        };
        let selectors = (open.label_selector.as_str(), open.field_selector.as_str());
        let observer = self.gate.api.watch(&self.caller, &target, selectors, start).await?;
        let permit = self.gate.enter_watch()?;
        let credit = Arc::new(Credit::new(open.window));
        let (ask, asked) = mpsc::channel(INBOX);
        self.openings += 1;
        let opening = self.openings;
        let running = Running {
            id,
            opening,
            observer,
            served: Arc::clone(&target.served),
            form: convert::projection(open.projection),
            credit: Arc::clone(&credit),
            asked,
            outbox: self.outbox.clone(),
        };
        let held = Held::new(&self.gate.telemetry.watches);
        let task = self.tasks.spawn(async move {
            running.run().await;
            drop((permit, held));
        });
        self.open.insert(id, Open { opening, credit, ask, task });
        Ok(())
    }
}

/// A watch as its own task knows it.
struct Running {
    id: u64,
    opening: u64,
    observer: Observer,
    served: Arc<Served>,
    form: Projection,
    credit: Arc<Credit>,
    asked: mpsc::Receiver<()>,
    outbox: mpsc::Sender<Numbered>,
}

impl Running {
    async fn run(mut self) {
        if let Err(refusal) = self.deliver().await
            && self.outbox.send((self.opening, closed(self.id, Some(&refusal)))).await.is_err()
        {
            tracing::debug!(id = self.id, "nobody hears that a watch ended");
        }
    }

    /// Delivers until the stream is gone or the watch fails.
    async fn deliver(&mut self) -> Result<(), Refusal> {
        loop {
            self.credit.available().await;
            let step = tokio::select! {
                step = self.observer.next() => step?,
                Some(()) = self.asked.recv() => {
                    self.observer.ask_current();
                    continue;
                }
            };
            let mut events = Vec::new();
            let mut after = self.collect(step, &mut events)?;
            let full = |events: &[v1::WatchEvent]| {
                events.len() >= BATCH || events.iter().map(|e| e.object.len()).sum::<usize>() >= BATCH_BYTES
            };
            while after.is_none() && !full(&events) {
                match self.observer.try_next()? {
                    Some(step) => after = self.collect(step, &mut events)?,
                    None => break,
                }
            }
            self.credit.spend(events.len());
            let batch = (!events.is_empty()).then_some(Said::Events(v1::WatchEvents { events }));
            for say in batch.into_iter().chain(after) {
                if self.outbox.send((self.opening, response(self.id, say))).await.is_err() {
                    return Ok(());
                }
            }
        }
    }

    /// Puts the events of a step; anything else is to be said after them.
    fn collect(&self, step: Step, events: &mut Vec<v1::WatchEvent>) -> Outcome<Option<Said>> {
        match step {
            Step::Events(found) => {
                for event in found {
                    events.push(self.event(event)?);
                }
                Ok(None)
            }
            Step::InitialEnd(revision) => Ok(Some(Said::InitialEnd(v1::WatchProgress { revision }))),
            Step::Progress(revision) => Ok(Some(Said::Progress(v1::WatchProgress { revision }))),
            Step::Gone => Err(no_such_place()),
        }
    }

    fn event(&self, event: Event) -> Outcome<v1::WatchEvent> {
        let kind = match event.kind {
            Kind::Added => EventType::Added,
            Kind::Modified => EventType::Modified,
            Kind::Deleted => EventType::Deleted,
        };
        let object = convert::project(&self.served, &event.bytes, self.form)?;
        Ok(v1::WatchEvent { r#type: kind.into(), object, revision: event.revision })
    }
}
