//! The watch as its user sees it: events of one type, in order, for as long as wished. Connections come and go below;
//! what a user must know of that is one event, [`Event::Restarted`].

use std::sync::Arc;
use std::sync::atomic::Ordering;

use strata_model::resource::ResourceType;

use crate::client::Client;
use crate::event::{DEFAULT_WINDOW, Event, Inbox, WatchOptions};
use crate::stream::{self, Silence};

/// All watches of a process, on one stream. Clones share it; it ends when the last clone and watch are dropped.
#[derive(Clone)]
pub struct Watches {
    shared: Arc<stream::Shared>,
    _guard: Arc<Guard>,
}

struct Guard {
    shared: Arc<stream::Shared>,
}

impl Drop for Guard {
    fn drop(&mut self) {
        self.shared.close();
    }
}

impl Watches {
    /// Starts the task that owns the stream. Must be called within a tokio runtime.
    pub fn new(client: Client) -> Self {
        Self::with_silence(client, Silence::default())
    }

    /// The same with other bounds on how long the stream may be silent.
    pub fn with_silence(client: Client, silence: Silence) -> Self {
        let shared = Arc::new(stream::Shared::new());
        tokio::spawn(stream::run(client, Arc::clone(&shared), silence));
        Self { _guard: Arc::new(Guard { shared: Arc::clone(&shared) }), shared }
    }

    /// Opens a watch. Its events wait, bounded, until they are taken.
    pub fn open(&self, resource: &ResourceType, options: WatchOptions) -> Watch {
        let inbox = Arc::new(Inbox::default());
        let window = if options.window == 0 { DEFAULT_WINDOW } else { options.window };
        let id = self.shared.add(resource.clone(), options, window, Arc::clone(&inbox));
        Watch { id, inbox, shared: Arc::clone(&self.shared), window, _guard: Arc::clone(&self._guard) }
    }

    /// Asks the server to say how far each watch is, as soon as all events up to now are delivered.
    pub fn ask_progress(&self) {
        self.shared.ask_progress();
    }
}

/// One watch. Dropping it ends it.
pub struct Watch {
    id: u64,
    inbox: Arc<Inbox>,
    shared: Arc<stream::Shared>,
    window: u32,
    _guard: Arc<Guard>,
}

impl Watch {
    /// The next event, waiting for one; `None` after [`Event::Failed`]. Cancel safe.
    pub async fn next(&mut self) -> Option<Event> {
        loop {
            let arrived = self.inbox.arrived.notified();
            if let Some(event) = self.inbox.take() {
                if event.counts() && self.inbox.taken.fetch_add(1, Ordering::Relaxed) + 1 >= self.window / 2 {
                    self.shared.wake();
                }
                return Some(event);
            }
            if self.inbox.is_over() {
                return None;
            }
            arrived.await;
        }
    }
}

impl Drop for Watch {
    fn drop(&mut self) {
        self.shared.remove(self.id);
    }
}
