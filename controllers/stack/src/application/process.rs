//! The process of the outer loop: installs what it needs, runs the layer of renders beside the work queue, and begins anew
//! with the types that are served, remembering what it knew.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::Arc;

use strata_client::client::Client;
use strata_model::resource::Registry;
use strata_runtime::run::{self, Options, RunError};
use tokio::sync::watch;

use super::controller::Applications;
use super::gather::{Types, is_watched};
use super::hooks;
use super::install;
use super::layer::Layer;
use super::memory::Memory;
use super::repositories::Repositories;
use super::sets::ApplicationSets;
use super::source::git::Git;
use crate::types::{Served, every_type};

/// Runs until `shutdown` completes. `cache` is where repositories are kept, `webhooks` where pushes are told.
pub async fn run(
    cache: Option<PathBuf>,
    webhooks: Option<SocketAddr>,
    client: Client,
    options: Options,
    shutdown: impl Future<Output = ()>,
) -> Result<(), RunError> {
    let repositories = Arc::new(Git::new(cache, client.clone()));
    with(repositories, webhooks, client, options, shutdown).await
}

/// The same, with others who read repositories.
pub async fn with<R: Repositories>(
    repositories: Arc<R>,
    webhooks: Option<SocketAddr>,
    client: Client,
    options: Options,
    shutdown: impl Future<Output = ()>,
) -> Result<(), RunError> {
    let mut shutdown = std::pin::pin!(shutdown);
    tokio::select! {
        () = install::until_installed(&client) => {}
        () = &mut shutdown => return Ok(()),
    }
    let layer = Arc::new(Layer::new(repositories));
    let memory = Arc::new(Memory::default());
    let make = |served: &Served| Applications {
        layer: Arc::clone(&layer),
        memory: Arc::clone(&memory),
        types: types(served),
    };
    let (end, ending) = watch::channel(false);
    let sets = Arc::new(ApplicationSets::new(Arc::clone(layer.repositories())));
    let others = Options {
        limits: options.limits,
        identity: options.identity.clone(),
        board: options.board.clone(),
        pool: Arc::clone(&options.pool),
        ready: None,
    };
    let generated = run::reconciler(sets, client.clone(), others, ended(ending.clone()));
    let held = every_type(make, client.clone(), options, ended(ending));
    let both = async { tokio::try_join!(held, generated).map(|((), ())| ()) };
    let mut both = std::pin::pin!(both);
    let hooks = hooks::serve(webhooks, Arc::clone(&layer), client);
    tokio::select! {
        ended = &mut both => return ended,
        () = &mut shutdown => {}
        () = layer.run() => {}
        () = hooks => {}
    }
    end.send_replace(true);
    both.await
}

/// Completes when the process is to end.
async fn ended(mut ending: watch::Receiver<bool>) {
    if let Err(error) = ending.wait_for(|end| *end).await {
        tracing::debug!(%error, "nobody can stop this controller any more");
    }
}

fn types(served: &Served) -> Types {
    let mut all = Registry::default();
    for one in &served.all {
        all.add(one.clone());
    }
    let watched = served.types.iter().filter(|t| is_watched(t)).map(Arc::clone).collect();
    Types { all: Arc::new(all), watched: Arc::new(watched) }
}
