//! Follow: applies the manifests of `-f` through the same code as `strata apply`, and shows the tree below each object
//! until all is as declared. Looks again whenever something changes; nothing is polled but to repair a lost change.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use jiff::Timestamp;
use strata_client::error::Class;
use strata_client::event::WatchOptions;
use strata_model::resource::ResourceType;
use strata_model::status::Reason;
use tokio::sync::Notify;
use tokio::task::JoinSet;
use tokio::time::Instant;

use super::screen::Screen;
use crate::commands::apply;
use crate::commands::connection::ConnectionArgs;
use crate::commands::error::{CliError, CliResult};
use crate::commands::session::Session;
use crate::commands::target::{Declared, value_of};
use crate::why::{Line, gather};

/// Changes that come within this time are shown together.
const GATHER: Duration = Duration::from_millis(50);
/// Looked at again after this time even if no change was heard of.
const LOOK: Duration = Duration::from_secs(5);

/// Applies `filenames` to the platform of `kubeconfig` and follows them to their convergence. Gives back the lines of
/// what went wrong.
pub async fn run(
    kubeconfig: &Path,
    filenames: &[PathBuf],
    screen: &RefCell<Screen>,
) -> Result<Duration, Vec<String>> {
    let began = Instant::now();
    let connection = ConnectionArgs { kubeconfig: Some(kubeconfig.to_owned()), ..ConnectionArgs::default() };
    let followed = async {
        let session = Session::open(&connection)?;
        let filenames = filenames.iter().map(|name| name.to_string_lossy().into_owned()).collect();
        let objects = apply::manifests(&session, filenames).await?;
        follow(&session, &objects, screen).await
    };
    let origin = kubeconfig.display().to_string();
    followed.await.map(|()| began.elapsed()).map_err(|error: CliError| error.lines(&origin))
}

async fn follow(session: &Session, objects: &[Declared], screen: &RefCell<Screen>) -> CliResult {
    let changed = Arc::new(Notify::new());
    let _watches = watch(session, objects, &changed).await?;
    loop {
        match look(session, objects).await {
            Ok(lines) => {
                screen.borrow_mut().show(&lines)?;
                if lines.iter().all(Line::settled) {
                    return Ok(());
                }
            }
            // The API server is being started again: its watches tell when it is back.
            Err(CliError::Client(error)) if error.class() == Class::Transient => {
                tracing::info!(%error, "cannot look for now");
            }
            Err(error) => return Err(error),
        }
        if tokio::time::timeout(LOOK, changed.notified()).await.is_err() {
            tracing::debug!("no change for a while; looking again");
        }
        tokio::time::sleep(GATHER).await;
    }
}

/// The tree below each object, as things are now; one that is gone again is left out.
async fn look(session: &Session, objects: &[Declared]) -> CliResult<Vec<Line>> {
    let registry = session.registry().await?;
    let mut lines = Vec::new();
    for object in objects {
        let key = object.target().key();
        match session.get(&object.resource, &key.namespace, &key.name).await {
            Ok(found) => {
                let root = value_of(&object.resource, &found)?;
                lines.push(gather::tree(&session.client, registry, &root, Timestamp::now()).await?);
            }
            Err(error) if error.is(Reason::NotFound) => {}
            Err(error) => return Err(error),
        }
    }
    Ok(lines)
}

/// Watches everything that the trees are made of, and tells of any change. The tasks end with what is given back.
async fn watch(session: &Session, objects: &[Declared], changed: &Arc<Notify>) -> CliResult<JoinSet<()>> {
    let registry = session.registry().await?;
    let mut wanted: BTreeMap<(String, String), Arc<ResourceType>> = BTreeMap::new();
    for object in objects {
        let mut add = |resource: &Arc<ResourceType>| {
            wanted.insert((resource.id.to_string(), object.namespace.clone()), Arc::clone(resource));
        };
        add(&object.resource);
        if object.resource.is_namespaced() {
            registry.types().iter().filter(|part| part.is_namespaced() && part.has_status()).for_each(add);
        }
    }
    let mut tasks = JoinSet::new();
    for ((_, namespace), resource) in wanted {
        let options = WatchOptions { namespace, ..WatchOptions::default() };
        let mut watch = session.watches().open(&resource, options);
        let changed = Arc::clone(changed);
        tasks.spawn(async move {
            while watch.next().await.is_some() {
                changed.notify_one();
            }
        });
    }
    Ok(tasks)
}
