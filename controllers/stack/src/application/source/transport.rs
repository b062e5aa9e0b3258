//! One conversation with a host: what is needed for it, its limits, and the fault that ended it. Knows no protocol.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use strata_plan::application::rendered::{Fault, RenderError};
use tokio::runtime::Handle;

use super::access::Credential;
use super::address::{Address, without_password};
use super::bounds::{FETCH_LIMIT, LIST_LIMIT, MAX_FETCH_BYTES};

/// With what a repository is reached.
#[derive(Clone, Debug)]
pub struct Means {
    /// The URL as it may be shown.
    pub url: String,
    /// Where it is.
    pub address: Address,
    /// Who we are.
    pub credential: Credential,
    /// Keys of hosts for ssh; empty for ssh's own files.
    pub known_hosts: String,
    /// Authorities for this host in PEM, beside those of the system.
    pub certificates: Option<String>,
    /// Who does the waiting on sockets.
    pub runtime: Handle,
}

impl Means {
    /// The URL without user and password, for libraries.
    pub fn plain_url(&self) -> String {
        match &self.address {
            Address::Http(web) => web.url(),
            Address::Ssh(_) | Address::File(_) => without_password(&self.url),
        }
    }
}

/// Limits of a conversation, and what ended it. Clones are the same.
#[derive(Clone, Debug)]
pub struct Line {
    deadline: Instant,
    limit: Duration,
    state: Arc<Mutex<State>>,
}

#[derive(Debug, Default)]
struct State {
    bytes: u64,
    fault: Option<RenderError>,
}

impl Line {
    /// For asking what there is.
    pub fn list(now: Instant) -> Self {
        Self::new(now, LIST_LIMIT)
    }

    /// For fetching.
    pub fn fetch(now: Instant) -> Self {
        Self::new(now, FETCH_LIMIT)
    }

    fn new(now: Instant, limit: Duration) -> Self {
        Self { deadline: now + limit, limit, state: Arc::default() }
    }

    /// When it must be over.
    pub fn deadline(&self) -> Instant {
        self.deadline
    }

    /// How long it may take in all.
    pub fn limit(&self) -> Duration {
        self.limit
    }

    /// Notes why it ended; the first cause counts.
    pub fn fail(&self, fault: Fault, message: String) {
        self.lock().fault.get_or_insert_with(|| RenderError::new(fault, message));
    }

    /// Why it ended, if anybody said.
    pub fn fault(&self) -> Option<RenderError> {
        self.lock().fault.clone()
    }

    /// Counts what was received.
    pub fn received(&self, bytes: usize) -> std::io::Result<()> {
        let mut state = self.lock();
        state.bytes += bytes as u64;
        if state.bytes <= MAX_FETCH_BYTES {
            return Ok(());
        }
        let message = format!("the commit needs more than {MAX_FETCH_BYTES} bytes to be fetched");
        state.fault.get_or_insert_with(|| RenderError::new(Fault::Broken, message));
        Err(std::io::Error::other("too much was sent"))
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
