//! One bidirectional stream for all watches of a process: opens, resumes, grants credit, notices silence, reconnects.
//! The task here only moves data between the stream and the inboxes; it never waits for a reader.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use bytes::Bytes;
use strata_model::resource::ResourceType;
use strata_model::status::Status;
use strata_wire::convert;
use strata_wire::v1::watch_request::Say as Ask;
use strata_wire::v1::watch_response::Say;
use strata_wire::{v1, v1::WatchRequest};
use tokio::sync::{Notify, mpsc};
use tokio::time::Instant;
use tokio_stream::wrappers::ReceiverStream;

use crate::client::{Client, projection};
use crate::connect::CONNECT_TIMEOUT;
use crate::cursor::{self, Cursor, Then};
use crate::error::ClientError;
use crate::event::{Event, Inbox, WatchOptions};

/// How long a stream may be silent.
#[derive(Clone, Copy, Debug)]
pub struct Silence {
    /// After this the server is asked how far it is.
    pub ask_after: Duration,
    /// After this the stream counts as dead.
    pub stalled_after: Duration,
}

impl Default for Silence {
    fn default() -> Self {
        Self { ask_after: Duration::from_secs(15), stalled_after: Duration::from_secs(30) }
    }
}

/// Shortest and longest pause between connections.
const BACKOFF_MIN: Duration = Duration::from_millis(20);
const BACKOFF_MAX: Duration = Duration::from_secs(2);
/// Requests that may wait to be sent.
const REQUESTS: usize = 256;
/// When requests did not fit, how long until they are tried again.
const RETRY_SEND: Duration = Duration::from_millis(10);
/// By how much a batch may exceed the window: a transaction is never split.
const MAX_OVERSHOOT: usize = 65_536;

/// What the users of the stream and its task share.
pub(crate) struct Shared {
    state: Mutex<State>,
    wake: Notify,
}

#[derive(Default)]
struct State {
    closed: bool,
    next_id: u64,
    watches: BTreeMap<u64, Entry>,
    /// Ids on the wire of the open watches.
    wires: BTreeMap<u64, u64>,
    cancels: Vec<u64>,
    ask: bool,
}

struct Entry {
    resource: ResourceType,
    options: WatchOptions,
    window: u32,
    inbox: Arc<Inbox>,
    cursor: Cursor,
    /// Its id on the present stream, if it is open there.
    wire: Option<u64>,
    /// Refusals in a row.
    refused: u32,
    not_before: Option<Instant>,
    told_lost: bool,
}

/// Whether a connection is wanted.
enum Idle {
    Closed,
    NoWatch,
    Busy,
}

/// Why a session ended.
enum End {
    Closed,
    Lost(ClientError),
}

impl Shared {
    pub fn new() -> Self {
        Self { state: Mutex::new(State::default()), wake: Notify::new() }
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn idle(&self) -> Idle {
        let state = self.lock();
        match (state.closed, state.watches.is_empty()) {
            (true, _) => Idle::Closed,
            (false, true) => Idle::NoWatch,
            (false, false) => Idle::Busy,
        }
    }

    /// Has the task look at what is to be sent.
    pub fn wake(&self) {
        self.wake.notify_one();
    }

    pub fn close(&self) {
        self.lock().closed = true;
        self.wake();
    }

    pub fn add(&self, resource: ResourceType, options: WatchOptions, window: u32, inbox: Arc<Inbox>) -> u64 {
        let mut state = self.lock();
        let id = state.take_id();
        let cursor = Cursor::from(options.start);
        let entry = Entry {
            resource,
            options,
            window,
            inbox,
            cursor,
            wire: None,
            refused: 0,
            not_before: None,
            told_lost: false,
        };
        state.watches.insert(id, entry);
        drop(state);
        self.wake();
        id
    }

    pub fn remove(&self, id: u64) {
        let mut state = self.lock();
        if let Some(wire) = state.watches.remove(&id).and_then(|e| e.wire) {
            state.wires.remove(&wire);
            state.cancels.push(wire);
        }
        drop(state);
        self.wake();
    }

    pub fn ask_progress(&self) {
        self.lock().ask = true;
        self.wake();
    }
}

impl State {
    fn take_id(&mut self) -> u64 {
        self.next_id += 1;
        self.next_id
    }

    /// A new stream: nothing is open on it.
    fn begin(&mut self) {
        self.wires.clear();
        self.cancels.clear();
        for entry in self.watches.values_mut() {
            entry.wire = None;
        }
    }

    /// Sends what is to be sent, as far as there is room. Answers when to come back at the latest.
    fn flush(&mut self, to: &mpsc::Sender<WatchRequest>, now: Instant) -> Option<Instant> {
        let mut next: Option<Instant> = None;
        let mut sooner = |at: Instant| next = Some(next.map_or(at, |n| n.min(at)));
        let send = |wire, say| to.try_send(WatchRequest { watch_id: wire, say: Some(say) }).is_ok();
        while let Some(wire) = self.cancels.last() {
            if !send(*wire, Ask::Cancel(v1::WatchCancel {})) {
                sooner(now + RETRY_SEND);
                break;
            }
            self.cancels.pop();
        }
        let ids: Vec<u64> = self.watches.keys().copied().collect();
        for id in ids {
            let fresh = self.take_id();
            let Some(entry) = self.watches.get_mut(&id) else { continue };
            let Some(wire) = entry.wire else {
                match entry.not_before.filter(|at| *at > now) {
                    Some(at) => sooner(at),
                    None if entry.inbox.waiting() > entry.window as usize => {}
                    None if send(fresh, Ask::Open(entry.open())) => {
                        entry.opened(fresh);
                        self.wires.insert(fresh, id);
                    }
                    None => sooner(now + RETRY_SEND),
                }
                continue;
            };
            if !entry.grant(|events| send(wire, Ask::Credit(v1::WatchCredit { events }))) {
                sooner(now + RETRY_SEND);
            }
        }
        if self.ask {
            let sent = self.wires.keys().all(|wire| send(*wire, Ask::AskProgress(v1::WatchAskProgress {})));
            self.ask = !sent;
            if !sent {
                sooner(now + RETRY_SEND);
            }
        }
        next
    }

    fn dispatch(
        &mut self,
        client: &Client,
        response: v1::WatchResponse,
        now: Instant,
    ) -> Result<(), ClientError> {
        let wire = response.watch_id;
        let Some(id) = self.wires.get(&wire).copied() else { return Ok(()) };
        let Some(entry) = self.watches.get_mut(&id) else { return Ok(()) };
        entry.told_lost = false;
        match response.say {
            Some(Say::Events(batch)) => entry.take_events(client, batch)?,
            Some(Say::InitialEnd(at)) => {
                entry.cursor.complete(at.revision);
                entry.refused = 0;
                entry.inbox.put([Event::InitialEnd(at.revision)]);
            }
            Some(Say::Progress(at)) if entry.cursor != Cursor::Nothing => {
                entry.cursor.advance(at.revision);
                entry.inbox.put([Event::Progress(at.revision)]);
            }
            Some(Say::Closed(closed)) => {
                self.wires.remove(&wire);
                entry.wire = None;
                if entry.closed(client, &closed.status, now) {
                    self.watches.remove(&id);
                }
            }
            Some(Say::Progress(_)) | None => {}
        }
        Ok(())
    }

    fn lost(&mut self, error: &Arc<ClientError>) {
        self.begin();
        for entry in self.watches.values_mut() {
            if !std::mem::replace(&mut entry.told_lost, true) {
                entry.inbox.put([Event::Lost(Arc::clone(error))]);
            }
        }
    }
}

impl Entry {
    fn open(&self) -> v1::WatchOpen {
        let (resource_version, initial_state) = match self.cursor {
            Cursor::Nothing => (String::new(), true),
            Cursor::At(revision) => (revision.to_string(), false),
        };
        v1::WatchOpen {
            resource: Some(convert::resource_ref(&self.resource)),
            namespace: self.options.namespace.clone(),
            label_selector: self.options.label_selector.clone(),
            field_selector: self.options.field_selector.clone(),
            resource_version,
            initial_state,
            projection: projection(self.options.projection).into(),
            window: self.window,
        }
    }

    fn opened(&mut self, wire: u64) {
        self.wire = Some(wire);
        self.not_before = None;
        self.inbox.taken.store(0, std::sync::atomic::Ordering::Relaxed);
        if self.cursor == Cursor::Nothing {
            self.inbox.put([Event::Restarted]);
        }
    }

    /// Gives back the credit of what was taken, once it is worth a message. Answers false where it could not be sent.
    fn grant(&self, send: impl FnOnce(u32) -> bool) -> bool {
        use std::sync::atomic::Ordering::Relaxed;
        let taken = self.inbox.taken.load(Relaxed);
        if taken < (self.window / 2).max(1) {
            return true;
        }
        let sent = send(taken);
        if sent {
            self.inbox.taken.fetch_sub(taken, Relaxed);
        }
        sent
    }

    fn take_events(&mut self, client: &Client, batch: v1::WatchEvents) -> Result<(), ClientError> {
        self.refused = 0;
        let last = batch.events.last().map(|e| e.revision);
        let mut events = Vec::with_capacity(batch.events.len());
        for event in batch.events {
            // Copied out, so that one object kept does not keep the whole batch.
            let object = Arc::new(client.object(Bytes::copy_from_slice(&event.object))?);
            events.push(match (event.r#type(), self.cursor) {
                (v1::EventType::Deleted, _) => Event::Deleted(object, event.revision),
                (_, Cursor::Nothing) => Event::Initial(object),
                (_, Cursor::At(_)) => Event::Applied(object, event.revision),
            });
        }
        if let Some(last) = last {
            self.cursor.advance(last);
        }
        let waiting = self.inbox.put(events);
        if waiting > self.window as usize * 3 + MAX_OVERSHOOT {
            return Err(ClientError::Rpc {
                server: client.server().to_owned(),
                code: tonic::Code::ResourceExhausted,
                message: format!("a watch of {} sent more events than were granted", self.resource.id),
            });
        }
        Ok(())
    }

    /// Answers whether the watch is over.
    fn closed(&mut self, client: &Client, status: &[u8], now: Instant) -> bool {
        let status: Status = serde_json::from_slice(status).unwrap_or_else(|_| {
            Status::failure(strata_model::status::Reason::ServiceUnavailable, "the server closed the watch")
        });
        let then = cursor::after(&status);
        match then {
            Then::GiveUp => {
                tracing::warn!(resource = %self.resource.id, %status, "watch refused");
                self.inbox.put([Event::Failed(Arc::new(ClientError::refused(status)))]);
                self.inbox.end();
                return true;
            }
            Then::Restart => self.cursor = Cursor::Nothing,
            Then::Retry => {}
        }
        tracing::debug!(resource = %self.resource.id, %status, server = client.server(), "watch closed");
        if then == Then::Retry || self.refused > 0 {
            self.not_before = Some(now + pause(self.refused));
        }
        self.refused = self.refused.saturating_add(1);
        false
    }
}

/// Between the half and the whole of an exponentially growing pause.
fn pause(attempt: u32) -> Duration {
    let whole = BACKOFF_MIN.saturating_mul(1 << attempt.min(16)).min(BACKOFF_MAX);
    whole.mul_f64(0.5 + rand::random::<f64>() / 2.0)
}

/// Owns the stream until it is closed.
pub(crate) async fn run(client: Client, shared: Arc<Shared>, silence: Silence) {
    let mut attempt = 0;
    loop {
        match shared.idle() {
            Idle::Closed => return,
            Idle::NoWatch => {
                shared.wake.notified().await;
                continue;
            }
            Idle::Busy => {}
        }
        match session(&client, &shared, silence, &mut attempt).await {
            End::Closed => return,
            End::Lost(error) => {
                let error = Arc::new(error);
                if attempt == 0 {
                    tracing::info!(
                        server = client.server(),
                        error = &*error as &dyn std::error::Error,
                        "watches lost; connecting again"
                    );
                }
                shared.lock().lost(&error);
            }
        }
        let until = Instant::now() + pause(attempt);
        attempt = attempt.saturating_add(1);
        while !shared.lock().closed {
            if tokio::time::timeout_at(until, shared.wake.notified()).await.is_err() {
                break;
            }
        }
    }
}

async fn session(client: &Client, shared: &Shared, silence: Silence, attempt: &mut u32) -> End {
    let (to, requests) = mpsc::channel(REQUESTS);
    {
        let mut state = shared.lock();
        state.begin();
        state.flush(&to, Instant::now());
    }
    let mut resources = client.resources();
    let opening = resources.watch(client.open_request(ReceiverStream::new(requests)));
    let mut stream = match tokio::time::timeout(CONNECT_TIMEOUT * 2, opening).await {
        Ok(Ok(response)) => response.into_inner(),
        Ok(Err(error)) => return End::Lost(client.failed(error)),
        Err(_) => {
            return End::Lost(ClientError::Timeout {
                server: client.server().to_owned(),
                what: "watch",
                seconds: (CONNECT_TIMEOUT * 2).as_secs(),
            });
        }
    };
    let (mut heard, mut asked) = (Instant::now(), false);
    loop {
        let now = Instant::now();
        if now.duration_since(heard) >= silence.stalled_after {
            return End::Lost(ClientError::Stalled {
                server: client.server().to_owned(),
                seconds: silence.stalled_after.as_secs(),
            });
        }
        let next = {
            let mut state = shared.lock();
            if state.closed {
                return End::Closed;
            }
            if !asked && now.duration_since(heard) >= silence.ask_after {
                state.ask = true;
                asked = true;
            }
            // Without an open watch nobody can be asked, and silence says nothing.
            if state.wires.is_empty() {
                (heard, asked) = (now, false);
            }
            state.flush(&to, now)
        };
        let look = heard + if asked { silence.stalled_after } else { silence.ask_after };
        let look = next.map_or(look, |n| n.min(look));
        tokio::select! {
            message = stream.message() => match message {
                Ok(Some(response)) => {
                    (heard, asked, *attempt) = (Instant::now(), false, 0);
                    if let Err(error) = shared.lock().dispatch(client, response, heard) {
                        return End::Lost(error);
                    }
                }
                Ok(None) => return End::Lost(client.failed(tonic::Status::unavailable("connection closed"))),
                Err(error) => return End::Lost(client.failed(error)),
            },
            () = shared.wake.notified() => {}
            () = tokio::time::sleep_until(look) => {}
        }
    }
}
