//! Stops everything that a runtime runs, for an agent that does not leave it behind. It must never tell the API:
//! the pods are to run again with the next agent.

use std::sync::Arc;
use std::time::Duration;

use strata_plan::pod::observed::{ObservedContainer, StopCause};
use tokio::time::{Instant, timeout_at};
use tracing::{error, info, warn};

use crate::node::runtime::{Runtime, RuntimeError};

/// The longest grace that is granted, whatever pods ask for: somebody waits at a terminal.
const MAX_GRACE: Duration = Duration::from_secs(30);
/// How long after that everything must be over.
const MARGIN: Duration = Duration::from_secs(5);
/// How often to look when nothing is announced.
const LOOK: Duration = Duration::from_millis(500);

/// Stops all containers, each in its grace, and waits until they are over.
pub async fn all(runtime: &Arc<dyn Runtime>) {
    let limit = Instant::now() + MAX_GRACE + MARGIN;
    match live(runtime).await {
        Ok(live) if live.is_empty() => return,
        Ok(live) => {
            info!(containers = live.len(), "stopping what runs");
            tell(runtime, live).await;
        }
        Err(error) => return error!(error = &error as &dyn std::error::Error, "cannot list what runs"),
    }
    loop {
        match live(runtime).await {
            Ok(left) if left.is_empty() => return,
            Ok(left) if Instant::now() >= limit => {
                return warn!(containers = left.len(), "not everything that ran has ended");
            }
            Ok(_) => {}
            Err(error) => return error!(error = &error as &dyn std::error::Error, "cannot list what runs"),
        }
        // Either something changed, or it is time to look anyway.
        let until = limit.min(Instant::now() + LOOK);
        drop(timeout_at(until, runtime.changes().take()).await);
    }
}

async fn tell(runtime: &Arc<dyn Runtime>, live: Vec<ObservedContainer>) {
    let runtime = Arc::clone(runtime);
    let told = tokio::task::spawn_blocking(move || {
        for container in live {
            let grace = runtime.grace(&container.key).min(MAX_GRACE);
            if let Err(error) = runtime.stop(&container.key, grace, StopCause::Shutdown) {
                warn!(key = %container.key, error = &error as &dyn std::error::Error, "cannot stop a container");
            }
        }
    });
    if let Err(error) = told.await {
        error!(%error, "stopping broke off");
    }
}

async fn live(runtime: &Arc<dyn Runtime>) -> Result<Vec<ObservedContainer>, RuntimeError> {
    let runtime = Arc::clone(runtime);
    let listed = tokio::task::spawn_blocking(move || {
        let mut live = Vec::new();
        for pod in runtime.pods()? {
            live.extend(runtime.containers(&pod)?.into_iter().filter(|container| !container.is_over()));
        }
        Ok(live)
    });
    listed.await.unwrap_or_else(|error| {
        error!(%error, "listing broke off");
        Ok(Vec::new())
    })
}
