//! Feeds the core from the watches of a process: one stream, one small task a type.

use std::sync::Arc;
use std::time::Duration;

use strata_client::event::{Event, WatchOptions};
use strata_client::options::Projection;
use strata_client::watch::Watches;
use strata_model::object::Object;
use strata_plan::controller::Watched;

use crate::pool::Pool;
use crate::reconcile::Shared;

/// How many events of a type may be under way.
const WINDOW: u32 = 256;
/// When a refused watch is tried again: rights may be granted, a type may come to be served.
const REFUSED_RETRY: Duration = Duration::from_secs(5);

/// Two watches of one type that differ in what they see; the cache could not tell them apart.
#[derive(Debug, thiserror::Error)]
#[error("{resource} is watched twice, with field selectors \"{one}\" and \"{other}\"")]
pub struct WatchedTwice {
    /// The type.
    pub resource: String,
    /// One selector.
    pub one: String,
    /// The other.
    pub other: String,
}

/// One watch a type: whole objects where anybody needs them.
pub fn merge(watched: &[Watched]) -> Result<Vec<Watched>, WatchedTwice> {
    let mut merged: Vec<Watched> = Vec::new();
    for one in watched {
        let Some(same) = merged.iter_mut().find(|m| m.resource.id == one.resource.id) else {
            merged.push(one.clone());
            continue;
        };
        if same.field_selector != one.field_selector {
            return Err(WatchedTwice {
                resource: one.resource.id.to_string(),
                one: same.field_selector.clone(),
                other: one.field_selector.clone(),
            });
        }
        same.metadata_only &= one.metadata_only;
    }
    Ok(merged)
}

/// An event whose object is kept without the managers of its fields, which no controller looks at, and once for all
/// caches of the pool.
fn lean(event: Event, watched: &Watched, pool: &Pool) -> Event {
    let lean = |object: Arc<Object>| {
        let object = Arc::new(Arc::unwrap_or_clone(object).without_managers());
        pool.share(&watched.resource.id, watched.metadata_only, object)
    };
    match event {
        Event::Initial(object) => Event::Initial(lean(object)),
        Event::Applied(object, revision) => Event::Applied(lean(object), revision),
        other => other,
    }
}

/// Watches one type for as long as the process lives.
pub async fn run(shared: Arc<Shared>, watches: Watches, watched: Watched, pool: Arc<Pool>) {
    loop {
        let options = WatchOptions {
            field_selector: watched.field_selector.clone(),
            projection: if watched.metadata_only { Projection::Metadata } else { Projection::Object },
            window: WINDOW,
            ..WatchOptions::default()
        };
        let mut watch = watches.open(&watched.resource, options);
        while let Some(event) = watch.next().await {
            if let Event::Failed(error) = &event {
                tracing::warn!(resource = %watched.resource.id, error = &**error as &dyn std::error::Error,
                    "watch refused; trying again in {} s", REFUSED_RETRY.as_secs());
            }
            let now = shared.now();
            if shared.core().apply(&watched.resource.id, lean(event, &watched, &pool), now) {
                tracing::debug!(resource = %watched.resource.id, "cache complete");
            }
            shared.work.notify_one();
        }
        tokio::time::sleep(REFUSED_RETRY).await;
    }
}
