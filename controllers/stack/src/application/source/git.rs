//! Repositories as the loop asks for them: credentials come from the platform's own Secrets, everything else from
//! `render`. Decides nothing.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, Instant};

use serde_json::Value;
use strata_client::client::Client;
use strata_client::options::ListOptions;
use strata_model::resource::{ResourceType, builtin};
use strata_plan::application::rendered::{Fault, RenderError, Rendered};
use strata_plan::application::types::NAMESPACE;
use tokio::sync::Mutex;

use super::access::{Access, SECRET_TYPE};
use super::cache::Newness;
use super::listing::{self, Listing};
use super::program::Programs;
use super::render::{Sources, Task};
use crate::application::repositories::{Ask, Fresh, Listed, Repositories};

/// How long credentials that were read are good for.
const ACCESS_HOLDS: Duration = Duration::from_secs(10);
/// Most Secrets and ConfigMaps that are looked at.
const MAX_OBJECTS: u64 = 500;

/// Reads git repositories, with credentials from the namespace of Applications.
pub struct Git {
    sources: Result<Sources, String>,
    client: Client,
    access: Mutex<Option<(Instant, Arc<Access>)>>,
}

impl Git {
    /// Copies of repositories are kept in `cache`; in a folder for temporary files where there is none.
    pub fn new(cache: Option<PathBuf>, client: Client) -> Self {
        let folder =
            cache.unwrap_or_else(|| std::env::temp_dir().join(format!("strata-git-{}", std::process::id())));
        let sources = Sources::new(folder.clone(), Programs::from_path())
            .map_err(|error| format!("{} cannot be made: {error}", folder.display()));
        if let Err(error) = &sources {
            tracing::error!(%error, "there is no place for copies of repositories");
        }
        Self { sources, client, access: Mutex::default() }
    }

    /// Where repositories are read; an error where there is no place for them.
    pub fn sources(&self) -> Result<&Sources, RenderError> {
        self.sources.as_ref().map_err(|error| RenderError::new(Fault::Program, error.clone()))
    }

    /// Folders and chosen files of the commit that a target revision is, for generators of Applications.
    pub async fn list(
        &self,
        (url, target): (&str, &str),
        fresh: Fresh,
        chosen: impl Fn(&str) -> bool + Send + 'static,
    ) -> Result<Listing, RenderError> {
        let access = self.access(fresh == Fresh::Hard).await?;
        let repositories = self.sources()?.repositories();
        listing::list(repositories, (url, target), &access, newness(fresh), chosen).await
    }

    /// The credentials, as they are now or were a moment ago.
    pub async fn access(&self, again: bool) -> Result<Arc<Access>, RenderError> {
        let mut known = self.access.lock().await;
        if let Some((at, access)) = known.as_ref()
            && !again
            && at.elapsed() < ACCESS_HOLDS
        {
            return Ok(Arc::clone(access));
        }
        let selector = ListOptions { label_selector: SECRET_TYPE.to_owned(), ..ListOptions::default() };
        let secrets = self.objects(&builtin::SECRET, selector).await?;
        let config_maps = self.objects(&builtin::CONFIG_MAP, ListOptions::default()).await?;
        let (access, faults) = Access::from_objects(&secrets, &config_maps);
        for fault in faults {
            tracing::warn!(%fault, "credentials of a repository cannot be used");
        }
        let access = Arc::new(access);
        *known = Some((Instant::now(), Arc::clone(&access)));
        Ok(access)
    }

    async fn objects(
        &self,
        resource: &ResourceType,
        options: ListOptions,
    ) -> Result<Vec<Value>, RenderError> {
        let unread = |error: &dyn std::fmt::Display| {
            let message = format!("credentials of repositories cannot be read: {error}");
            RenderError::new(Fault::Unreachable, message)
        };
        let options = ListOptions { limit: MAX_OBJECTS, ..options };
        let list = self.client.list(resource, NAMESPACE, &options).await.map_err(|error| unread(&error))?;
        let read = |bytes: &[u8]| serde_json::from_slice::<Value>(bytes).map_err(|error| unread(&error));
        list.items.iter().map(|object| read(object.bytes())).collect()
    }
}

fn newness(fresh: Fresh) -> Newness {
    match fresh {
        Fresh::Known => Newness::default(),
        Fresh::Now => Newness::now(),
        Fresh::Hard => Newness { again: true, ..Newness::now() },
    }
}

impl Repositories for Git {
    async fn render(&self, ask: &Ask, fresh: Fresh) -> Result<Vec<Rendered>, RenderError> {
        let access = self.access(fresh == Fresh::Hard).await?;
        let task = Task {
            name: ask.app.name.clone(),
            namespace: ask.namespace.clone(),
            sources: ask.sources.clone(),
            anew: fresh == Fresh::Hard,
        };
        self.sources()?.render(&task, &access, newness(fresh)).await
    }

    async fn list(
        &self,
        url: &str,
        revision: &str,
        fresh: Fresh,
        chosen: impl Fn(&str) -> bool + Send + 'static,
    ) -> Result<Listed, RenderError> {
        let listing = Git::list(self, (url, revision), fresh, chosen).await?;
        Ok((listing.folders, listing.files))
    }
}
