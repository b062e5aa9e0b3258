//! Runs what concerns all types, and begins anew when those change. Knows no controller.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use strata_client::client::Client;
use strata_client::error::ClientError;
use strata_client::event::{Event, WatchOptions};
use strata_client::options::Projection;
use strata_client::watch::Watches;
use strata_model::resource::{ResourceType, builtin};
use strata_runtime::reconcile::Reconcile;
use strata_runtime::run::{self, Options, Ready, RunError};

/// Between looks at the served types without a cause, for the controllers that concern all of them.
const LOOK: Duration = Duration::from_secs(30);
/// After a definition of a type came, changed or went: more often follow at once.
const GATHER: Duration = Duration::from_millis(100);
/// Between attempts to learn them at the start.
const RETRY: Duration = Duration::from_millis(100);

/// The served types.
#[derive(Clone, Debug, PartialEq)]
pub struct Served {
    /// Every version of every type.
    pub all: Vec<ResourceType>,
    /// One version of each, and none that only shows the objects of another one.
    pub types: Vec<Arc<ResourceType>>,
}

/// Runs a controller of all served types. When those change it is stopped in order and begins anew with the new ones:
/// it remembers nothing, so nothing is lost.
pub async fn every_type<R: Reconcile>(
    make: impl Fn(&Served) -> R,
    client: Client,
    mut options: Options,
    shutdown: impl Future<Output = ()>,
) -> Result<(), RunError> {
    let mut shutdown = std::pin::pin!(shutdown);
    let mut types = tokio::select! {
        types = first_types(&client) => types,
        () = &mut shutdown => return Ok(()),
    };
    // Types may change before the first run is ready, and then a later one tells.
    let ready = Arc::new(Mutex::new(options.ready.take()));
    loop {
        let mut changed = None;
        let until = async {
            changed = tokio::select! {
                () = &mut shutdown => None,
                types = other_types(&client, &types) => Some(types),
            };
        };
        let once = Options {
            ready: Some(first_of(&ready)),
            identity: options.identity.clone(),
            board: options.board.clone(),
            pool: Arc::clone(&options.pool),
            ..options
        };
        run::reconciler(Arc::new(make(&types)), client.clone(), once, until).await?;
        match changed {
            Some(changed) => types = changed,
            None => return Ok(()),
        }
    }
}

/// Tells once that the process is ready, whichever run is the first to be so.
fn first_of(ready: &Arc<Mutex<Option<Ready>>>) -> Ready {
    let ready = Arc::clone(ready);
    Box::new(move || {
        let told = ready.lock().unwrap_or_else(PoisonError::into_inner).take();
        if let Some(tell) = told {
            tell();
        }
    })
}

async fn first_types(client: &Client) -> Served {
    loop {
        match served(client).await {
            Ok(types) => return types,
            Err(error) => {
                tracing::debug!(error = &error as &dyn std::error::Error, "types not known yet");
                tokio::time::sleep(RETRY).await;
            }
        }
    }
}

/// The types, once they are others than those that are known. Definitions of types are watched, so that a new type is
/// known as soon as it is served; a look now and then serves where that watch is refused.
async fn other_types(client: &Client, known: &Served) -> Served {
    let watches = Watches::new(client.clone());
    let options = WatchOptions { projection: Projection::Metadata, ..WatchOptions::default() };
    let mut definitions = watches.open(&builtin::CUSTOM_RESOURCE_DEFINITION, options);
    let mut refused = false;
    loop {
        tokio::select! {
            event = definitions.next(), if !refused => match event {
                Some(Event::Failed(_)) | None => {
                    refused = true;
                    continue;
                }
                Some(_) => {
                    while let Ok(Some(_)) = tokio::time::timeout(GATHER, definitions.next()).await {}
                }
            },
            () = tokio::time::sleep(LOOK) => {}
        }
        match served(client).await {
            Ok(types) if types != *known => return types,
            Ok(_) => {}
            Err(error) => {
                tracing::debug!(error = &error as &dyn std::error::Error, "types not asked for");
            }
        }
    }
}

/// What is served now.
async fn served(client: &Client) -> Result<Served, ClientError> {
    let all = client.types().await?;
    let mut types: Vec<Arc<ResourceType>> = Vec::new();
    for one in &all {
        let form = builtin::FORMS.iter().any(|(form, _)| form.id == one.id && form.version == one.version);
        if !form && types.iter().all(|t| t.id != one.id) {
            types.push(Arc::new(one.clone()));
        }
    }
    Ok(Served { all, types })
}
