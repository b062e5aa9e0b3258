//! Lifeline: when a role is to stop. SIGTERM and SIGINT ask for it; so does the end of its standard input where a
//! supervisor holds the other end, which is how children learn that the supervisor was killed. Knows no role.

use std::io;
use std::os::fd::AsFd;
use std::time::Duration;

use tokio::io::AsyncReadExt;
use tokio::net::unix::pipe;
use tokio::signal::unix::{SignalKind, signal};
use tokio::time::Instant;

/// The variable that says: standard input is the supervisor's lifeline.
pub const VARIABLE: &str = "STRATA_SUPERVISED";

/// Signals this close to each other are one request, said twice: `timeout` and some service managers signal a process
/// and then its group, and nobody asks twice so quickly by hand.
const REPEAT: Duration = Duration::from_millis(200);

/// Why a role is to stop.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Cause {
    /// Somebody asked it to.
    Asked,
    /// Its supervisor is gone. What runs below should go on: the next supervisor will find it.
    Orphaned,
}

/// Everything that can ask a role to stop.
pub struct Lifeline {
    terminate: tokio::signal::unix::Signal,
    interrupt: tokio::signal::unix::Signal,
    supervisor: Option<pipe::Receiver>,
    requests: Requests,
}

impl Lifeline {
    /// Listens from now on. Needs a tokio runtime with IO.
    ///
    /// # Errors
    /// Signals or standard input cannot be listened to.
    pub fn attach() -> io::Result<Lifeline> {
        let supervisor = match std::env::var_os(VARIABLE) {
            None => None,
            Some(_) => Some(pipe::Receiver::from_owned_fd(io::stdin().as_fd().try_clone_to_owned()?)?),
        };
        Ok(Lifeline {
            terminate: signal(SignalKind::terminate())?,
            interrupt: signal(SignalKind::interrupt())?,
            supervisor,
            requests: Requests::default(),
        })
    }

    /// Waits until the role is to stop. May be called again: a second cause means that it takes too long.
    pub async fn cut(&mut self) -> Cause {
        loop {
            let orphaned = async {
                match &mut self.supervisor {
                    Some(pipe) => wait_for_end(pipe).await,
                    None => std::future::pending().await,
                }
            };
            tokio::select! {
                _ = self.terminate.recv() => {}
                _ = self.interrupt.recv() => {}
                () = orphaned => {
                    self.supervisor = None;
                    return Cause::Orphaned;
                }
            }
            if self.requests.is_new(Instant::now()) {
                return Cause::Asked;
            }
        }
    }
}

/// The requests to stop so far.
#[derive(Debug, Default)]
struct Requests {
    last: Option<Instant>,
}

impl Requests {
    /// Whether a signal that came at `now` is a request of its own, and not the one before again.
    fn is_new(&mut self, now: Instant) -> bool {
        let last = self.last.replace(now);
        last.is_none_or(|last| now.saturating_duration_since(last) >= REPEAT)
    }
}

/// Nothing is ever written to the lifeline; whatever comes is passed over.
async fn wait_for_end(pipe: &mut pipe::Receiver) {
    let mut buffer = [0; 64];
    loop {
        match pipe.read(&mut buffer).await {
            Ok(0) => return,
            Ok(_) => {}
            Err(error) => {
                tracing::warn!(%error, "the supervisor's lifeline failed");
                return;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_request_that_is_said_twice_at_once_is_one() {
        let (mut requests, now) = (Requests::default(), Instant::now());
        assert!(requests.is_new(now));
        assert!(!requests.is_new(now) && !requests.is_new(now + REPEAT / 2));
        assert!(requests.is_new(now + REPEAT * 2), "asking again later forces it");
    }
}
