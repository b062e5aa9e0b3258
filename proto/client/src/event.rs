//! What a watch tells its user, and the bounded queue in which that waits. Knows no connection.

use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};

use strata_model::object::Object;
use tokio::sync::Notify;

use crate::cursor::Start;
use crate::error::ClientError;
use crate::options::Projection;

/// How many events may be under way, if nobody says otherwise.
pub const DEFAULT_WINDOW: u32 = 512;

/// What is watched.
#[derive(Clone, Debug, Default)]
pub struct WatchOptions {
    /// Empty: all namespaces.
    pub namespace: String,
    /// Empty matches all.
    pub label_selector: String,
    /// Empty matches all.
    pub field_selector: String,
    /// Form of the objects.
    pub projection: Projection,
    /// From where.
    pub start: Start,
    /// How many events may be under way, unread; 0 is [`DEFAULT_WINDOW`].
    pub window: u32,
}

/// What happened. Revisions never fall within a watch, but after [`Event::Restarted`] following a restore of the server.
#[derive(Clone, Debug)]
pub enum Event {
    /// What follows is the whole state: `Initial` for each object, then `InitialEnd`. Whatever is not among them is
    /// gone. Comes at the start, and where the connection was lost for longer than the server keeps history.
    Restarted,
    /// An object of the initial state.
    Initial(Arc<Object>),
    /// The initial state is complete; it is that of this revision.
    InitialEnd(u64),
    /// An object was created or changed, at this revision.
    Applied(Arc<Object>, u64),
    /// An object was deleted at this revision (or no longer matches); its last state.
    Deleted(Arc<Object>, u64),
    /// Nothing up to this revision is outstanding.
    Progress(u64),
    /// The connection is lost, and is being tried again: for people, nothing must be done. Once an outage.
    Lost(Arc<ClientError>),
    /// The server refused the watch: it is over. Comes last.
    Failed(Arc<ClientError>),
}

impl Event {
    /// Whether the server counts it against the window.
    pub(crate) fn counts(&self) -> bool {
        matches!(self, Self::Initial(_) | Self::Applied(..) | Self::Deleted(..))
    }
}

/// Events of one watch that are not yet taken. Bounded by the window, as the server sends no more than was granted.
#[derive(Default)]
pub(crate) struct Inbox {
    events: Mutex<VecDeque<Event>>,
    /// Rung when something came.
    pub arrived: Notify,
    /// Taken since credit was last given.
    pub taken: AtomicU32,
    over: AtomicBool,
}

impl Inbox {
    /// The oldest.
    pub fn take(&self) -> Option<Event> {
        self.lock().pop_front()
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, VecDeque<Event>> {
        self.events.lock().unwrap_or_else(std::sync::PoisonError::into_inner)
    }

    /// Adds events; of several progress notices in a row the last stays. Answers how many wait.
    pub fn put(&self, events: impl IntoIterator<Item = Event>) -> usize {
        let mut queue = self.lock();
        for event in events {
            match (&event, queue.back_mut()) {
                (Event::Progress(at), Some(Event::Progress(last))) => *last = *at,
                (Event::Lost(_), Some(Event::Lost(_))) | (Event::Restarted, Some(Event::Restarted)) => {}
                _ => queue.push_back(event),
            }
        }
        let waiting = queue.len();
        drop(queue);
        self.arrived.notify_one();
        waiting
    }

    /// How many wait.
    pub fn waiting(&self) -> usize {
        self.lock().len()
    }

    /// Whether no more will come.
    pub fn is_over(&self) -> bool {
        self.over.load(Ordering::Acquire)
    }

    /// No more will come.
    pub fn end(&self) {
        self.over.store(true, Ordering::Release);
        self.arrived.notify_one();
    }
}
