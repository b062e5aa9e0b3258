//! Stir: tells that something in a namespace changed, so that a whole picture of it is looked at anew. Says nothing of
//! what changed: the picture is read again.

use std::sync::Arc;
use std::time::Duration;

use strata_client::event::{Event, WatchOptions};
use strata_client::options::Projection;
use strata_model::resource::ResourceType;
use tokio::sync::mpsc;
use tokio::task::JoinSet;

use crate::commands::session::Session;

/// Changes that come this close after another are one.
const TOGETHER: Duration = Duration::from_millis(50);
/// Without a change the picture is looked at anew after this time: some of it is age.
const ANYHOW: Duration = Duration::from_secs(1);

/// Watches of many types, for the mere fact that something changed.
pub struct Stir {
    changes: mpsc::Receiver<()>,
    _watches: JoinSet<()>,
}

impl Stir {
    /// Watches these types in a namespace; an empty one means all.
    pub fn of(session: &Session, types: &[Arc<ResourceType>], namespace: &str) -> Self {
        let (tell, changes) = mpsc::channel(1);
        let mut watches = JoinSet::new();
        for resource in types {
            let namespace = if resource.is_namespaced() { namespace.to_owned() } else { String::new() };
            let options =
                WatchOptions { namespace, projection: Projection::Metadata, ..WatchOptions::default() };
            let mut watch = session.watches().open(resource, options);
            let tell = tell.clone();
            watches.spawn(async move {
                while let Some(event) = watch.next().await {
                    if matches!(event, Event::Progress(_) | Event::InitialEnd(_)) {
                        continue;
                    }
                    // Full: it is told already.
                    if let Err(mpsc::error::TrySendError::Closed(())) = tell.try_send(()) {
                        return;
                    }
                }
            });
        }
        Self { changes, _watches: watches }
    }

    /// Waits until the picture is worth another look.
    pub async fn next(&mut self) {
        tokio::select! {
            change = self.changes.recv() => {
                if change.is_none() {
                    return tokio::time::sleep(ANYHOW).await;
                }
                tokio::time::sleep(TOGETHER).await;
                while self.changes.try_recv().is_ok() {}
            }
            () = tokio::time::sleep(ANYHOW) => {}
        }
    }
}
