//! A whole controller process, from the first connection to the drained queue.

use std::sync::Arc;

use strata_client::client::Client;
use strata_client::watch::Watches;
use strata_plan::controller::Controller;
use tokio::sync::watch;
use tokio::task::{JoinError, JoinSet};
use tokio::time::Instant;

use crate::admin::board::{Board, Entry};
use crate::core::Core;
use crate::events::Recorder;
use crate::informer::{self, WatchedTwice};
use crate::lease::{Lease, LeaseLost};
use crate::planned::Planned;
use crate::pool::Pool;
use crate::reconcile::{Context, Reconcile, Shared};
use crate::telemetry::Metrics;
use crate::worker::{self, Limits, Signals};

/// Told once, when the cache is complete: the process can work, or take over.
pub type Ready = Box<dyn FnOnce() + Send>;

/// How a process runs.
#[derive(Default)]
pub struct Options {
    /// Bounds on the work.
    pub limits: Limits,
    /// Identity in the leader lease; `None`: no lease, for what runs once by nature (a node's agent). An identity that
    /// stays the same over restarts takes its own lease back at once, and must never run twice at the same time.
    pub identity: Option<String>,
    /// Where the controller shows itself; `None`: nowhere.
    pub board: Option<Arc<Board>>,
    /// Where objects are kept that other controllers of the process watch too; all of them must read a type as the same
    /// struct. The default is a pool of its own.
    pub pool: Arc<Pool>,
    /// Who is told when the process is ready.
    pub ready: Option<Ready>,
}

/// Why a process ended.
#[derive(Debug, thiserror::Error)]
pub enum RunError {
    /// The lease is lost: another works now.
    #[error(transparent)]
    LeaseLost(#[from] LeaseLost),
    /// The controller's watches contradict each other.
    #[error(transparent)]
    Watches(#[from] WatchedTwice),
    /// A part of the process ended by itself: a fault of ours.
    #[error("the {part} of {name} ended: {why}")]
    Ended {
        /// The controller.
        name: &'static str,
        /// Which part.
        part: &'static str,
        /// How.
        why: String,
    },
}

/// Runs a controller until `shutdown` completes. See [`reconciler`].
pub async fn controller<C: Controller>(
    controller: C,
    client: Client,
    options: Options,
    shutdown: impl Future<Output = ()>,
) -> Result<(), RunError> {
    reconciler(Arc::new(Planned(controller)), client, options, shutdown).await
}

/// The deadline outside of a reconcile.
const FAR: std::time::Duration = std::time::Duration::from_secs(365 * 24 * 3600);

/// What a core task ended with.
type Part = (&'static str, Result<(), RunError>);

/// Runs a reconciler until `shutdown` completes; then stops taking keys, lets what runs finish, gives the lease back.
/// Ends by itself only where it must: the lease is lost, or a part of it failed.
pub async fn reconciler<R: Reconcile>(
    reconciler: Arc<R>,
    client: Client,
    mut options: Options,
    shutdown: impl Future<Output = ()>,
) -> Result<(), RunError> {
    let name = reconciler.name();
    let watched = reconciler.watches();
    let merged = informer::merge(&watched)?;
    let shared = Arc::new(Shared::new(Core::new(watched)));
    let metrics = Arc::new(Metrics::new(name));
    let watches = Watches::new(client.clone());
    let (recorder, telling) = Recorder::new(client.clone(), name);
    let deadline = Instant::now() + FAR;
    let (fenced, fence) = client.fenced();
    let context = Context { client: fenced, recorder, shared: Arc::clone(&shared), deadline };
    let (stop, stopping) = watch::channel(false);
    let (leading, leads) = watch::channel(options.identity.is_none());

    let mut parts: JoinSet<Part> = JoinSet::new();
    for one in merged {
        let part = informer::run(Arc::clone(&shared), watches.clone(), one, Arc::clone(&options.pool));
        parts.spawn(endless("watch", part));
    }
    parts.spawn(endless("recorder", telling));
    if let Some(board) = &options.board {
        let (shared, metrics, leads) = (Arc::clone(&shared), Arc::clone(&metrics), leads.clone());
        board.enter(name, Entry { shared, metrics, leads });
    }
    // Without a lease the sender is kept here, so that the workers do not take its end for theirs.
    let always = match &options.identity {
        Some(identity) => {
            let lease = Lease::new(client.clone(), Arc::clone(&shared), name, identity, fence);
            let part = lease.run(leading, stopping.clone());
            parts.spawn(async move { ("lease", part.await.map_err(RunError::from)) });
            None
        }
        None => Some(leading),
    };
    let signals = Signals { ready: options.ready.take(), leads: leads.clone(), stop: stopping };
    let work = worker::run(reconciler, context, watches, metrics, options.limits, signals);
    let mut work = std::pin::pin!(work);
    let ended = tokio::select! {
        () = shutdown => None,
        () = &mut work => Some(match lost(&leads, &mut parts).await {
            Some(part) => why(name, part),
            None => ended(name, "workers", "without a reason"),
        }),
        Some(part) = parts.join_next() => Some(why(name, part)),
    };
    let led = *leads.borrow();
    stop.send_replace(true);
    if let Some(error) = ended {
        return Err(error);
    }
    work.await;
    parts.shutdown().await;
    drop(always);
    if let Some(identity) = options.identity.filter(|_| led) {
        Lease::release(&client, name, &identity).await;
    }
    Ok(())
}

/// Workers end as soon as their process does not lead any more, which may be before the lease has said why: its end is
/// waited for then.
async fn lost(leads: &watch::Receiver<bool>, parts: &mut JoinSet<Part>) -> Option<Result<Part, JoinError>> {
    if *leads.borrow() { None } else { parts.join_next().await }
}

async fn endless(name: &'static str, part: impl Future<Output = ()>) -> Part {
    part.await;
    (name, Ok(()))
}

fn why(name: &'static str, part: Result<Part, JoinError>) -> RunError {
    match part {
        Ok((_, Err(error))) => error,
        Ok((part, Ok(()))) => ended(name, part, "without a reason"),
        Err(error) => ended(name, "task", &error.to_string()),
    }
}

fn ended(name: &'static str, part: &'static str, why: &str) -> RunError {
    RunError::Ended { name, part, why: why.to_owned() }
}
