//! All layers of the pipeline in one process, each with a queue of its own; builds few at a time.

use std::sync::Arc;

use serde_json::json;
use strata_client::client::Client;
use strata_client::error::ClientError;
use strata_client::options::{Patch, WriteOptions};
use strata_model::object::ObjectKey;
use strata_model::resource::builtin;
use strata_runtime::run::{self, Options, RunError};
use strata_runtime::worker::Limits;
use tokio::sync::watch;
use tokio::task::JoinSet;

use crate::api;
use crate::entitlement::Entitlements;
use crate::place::{Build, Holder, Layer, Site, Tracks};

/// Builds that run at the same time.
pub const BUILDS: usize = 2;
/// Most time a build may take.
const BUILD_LIMIT: std::time::Duration = std::time::Duration::from_secs(600);

/// Makes the types known to the server, or brings them up to date.
pub async fn define(client: &Client) -> Result<(), ClientError> {
    for definition in api::definitions() {
        let name = definition.metadata.name.clone().unwrap_or_default();
        let mut object = json!(definition);
        object["metadata"] = json!({"name": name});
        let patch = Patch::Apply { object: object.to_string().into(), force: true };
        let options = WriteOptions { field_manager: "images".to_owned(), ..WriteOptions::default() };
        let key = ObjectKey::new("", name);
        client.patch(&builtin::CUSTOM_RESOURCE_DEFINITION, &key, "", &patch, &options).await?;
    }
    Ok(())
}

/// Runs all layers until `stop` turns true. With an identity they elect leaders.
pub async fn layers(
    client: Client,
    site: Arc<Site>,
    build: Build,
    identity: Option<String>,
    stop: watch::Receiver<bool>,
) -> Result<(), RunError> {
    let mut layers: JoinSet<Result<(), RunError>> = JoinSet::new();
    let options = || Options { identity: identity.clone(), ..Options::default() };
    let stopped = || {
        let mut stop = stop.clone();
        // That nobody can say so any more means the same.
        async move { drop(stop.wait_for(|stop| *stop).await) }
    };
    layers.spawn(run::controller(Entitlements, client.clone(), options(), stopped()));
    layers.spawn(run::reconciler(Arc::new(Tracks), client.clone(), options(), stopped()));
    for layer in [Layer::Builds(build), Layer::Publications, Layer::Deliveries] {
        let mut options = options();
        if matches!(layer, Layer::Builds(_)) {
            options.limits = Limits { concurrency: BUILDS, timeout: BUILD_LIMIT };
        }
        let holder = Arc::new(Holder { layer, site: Arc::clone(&site) });
        layers.spawn(run::reconciler(holder, client.clone(), options, stopped()));
    }
    while let Some(ended) = layers.join_next().await {
        match ended {
            Ok(result) => result?,
            Err(error) if error.is_panic() => std::panic::resume_unwind(error.into_panic()),
            Err(_) => {}
        }
    }
    Ok(())
}
