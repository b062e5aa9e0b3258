//! A connection to a server and what it serves, for the length of one command.

use std::sync::Arc;
use std::time::Duration;

use strata_client::client::Client;
use strata_client::config::Identity;
use strata_client::options::List;
use strata_client::options::ListOptions;
use strata_client::watch::Watches;
use strata_model::object::{Object, ObjectKey};
use strata_model::resource::{Lookup, Registry, ResourceType};
use strata_model::status::Reason;
use tokio::sync::OnceCell;

use crate::commands::connection::{ConnectionArgs, Environment};
use crate::commands::error::{CliResult, usage};
use crate::output::stdout;

/// Objects a page of a list holds.
pub const PAGE: u64 = 500;

/// A server, an identity and a namespace.
pub struct Session {
    /// The client.
    pub client: Client,
    /// Where the address came from, for messages.
    pub origin: String,
    /// Whether a namespace was chosen by flag.
    pub namespace_given: bool,
    /// How long one request may take that follows changes, where a flag says so; else it has no end.
    pub follow_limit: Option<Duration>,
    identity: Option<Identity>,
    registry: OnceCell<Registry>,
    watches: std::sync::OnceLock<Watches>,
    verbose: u8,
}

impl Session {
    /// A session by flags. Does not connect yet; must be called within a runtime.
    pub fn open(args: &ConnectionArgs) -> CliResult<Self> {
        let (config, origin) = args.resolve(&Environment::of_process())?;
        let limit =
            args.request_timeout.is_some().then(|| Duration::from_secs(config.request_timeout_seconds));
        let client = Client::new(&config)?;
        let session = Self {
            client,
            origin,
            namespace_given: args.namespace.is_some(),
            follow_limit: limit,
            identity: config.identity,
            registry: OnceCell::new(),
            watches: std::sync::OnceLock::new(),
            verbose: args.verbose,
        };
        session.tell(1, || format!("server {} (from {})", session.client.server(), session.origin));
        Ok(session)
    }

    /// Whether the client certificate's time is over, by the clock of this machine.
    pub fn identity_expired(&self) -> bool {
        let Some(identity) = &self.identity else { return false };
        let parsed = x509_parser::pem::parse_x509_pem(&identity.certificate_pem);
        let end =
            parsed.ok().and_then(|(_, pem)| Some(pem.parse_x509().ok()?.validity().not_after.timestamp()));
        end.is_some_and(|end| end < jiff::Timestamp::now().as_second())
    }

    /// Says what is done, to those who asked for it.
    pub fn tell(&self, level: u8, what: impl FnOnce() -> String) {
        if self.verbose >= level {
            stdout::say(&what());
        }
    }

    /// The namespace of the context or the flag.
    pub fn namespace(&self) -> &str {
        self.client.namespace()
    }

    /// Where objects of a type are looked for: nowhere special for cluster-scoped ones, and with `all` everywhere.
    pub fn namespace_of(&self, resource: &ResourceType, all: bool) -> String {
        if all || !resource.is_namespaced() { String::new() } else { self.namespace().to_owned() }
    }

    /// All types the server serves; asked for once.
    pub async fn registry(&self) -> CliResult<&Registry> {
        let load = async || -> CliResult<Registry> {
            let mut registry = Registry::default();
            for resource in self.client.types().await? {
                registry.add(resource);
            }
            Ok(registry)
        };
        self.registry.get_or_try_init(load).await
    }

    /// The type that people mean by a word.
    pub async fn lookup(&self, word: &str) -> CliResult<Arc<ResourceType>> {
        match self.registry().await?.lookup(word) {
            Lookup::One(resource) => Ok(resource),
            Lookup::None(nearest) => Err(unknown_type(word, &nearest)),
        }
    }

    /// The type of an object's `apiVersion` and `kind`.
    pub async fn type_of(&self, api_version: &str, kind: &str) -> CliResult<Arc<ResourceType>> {
        let registry = self.registry().await?;
        if let Some(resource) = registry.by_api_version(api_version, kind) {
            return Ok(Arc::clone(resource));
        }
        let near = match registry.lookup(kind) {
            Lookup::One(other) => {
                format!("{} is served as apiVersion: {}", other.kind, other.api_version())
            }
            Lookup::None(nearest) if nearest.is_empty() => {
                "`strata api-resources` lists what is served".to_owned()
            }
            Lookup::None(nearest) => format!("the nearest known: {}", nearest.join(", ")),
        };
        Err(usage(format!("no matches for kind \"{kind}\" in version \"{api_version}\"; {near}")))
    }

    /// Says so where the namespace in use does not exist: an empty list of a typing error looks like any other.
    pub async fn tell_missing_namespace(&self) {
        let name = self.namespace();
        let Ok(resource) = self.lookup("namespaces").await else { return };
        if let Err(error) = self.get(&resource, "", name).await
            && error.is(Reason::NotFound)
        {
            stdout::say(&format!(
                "hint: there is no namespace {name}; `strata get namespaces` lists those there are"
            ));
        }
    }

    /// All pages of a list.
    pub async fn list_all(
        &self,
        resource: &ResourceType,
        namespace: &str,
        mut options: ListOptions,
    ) -> CliResult<List> {
        if options.limit == 0 {
            options.limit = PAGE;
        }
        let mut all = List::default();
        loop {
            self.tell(2, || format!("list {} in {namespace:?} {options:?}", resource.id));
            let page = self.client.list(resource, namespace, &options).await?;
            all.items.extend(page.items);
            all.resource_version = page.resource_version;
            if page.continue_token.is_empty() {
                return Ok(all);
            }
            options.continue_token = page.continue_token;
            // The token knows which state it goes on in.
            options.resource_version.clear();
            options.resource_version_match.clear();
        }
    }

    /// One object.
    pub async fn get(&self, resource: &ResourceType, namespace: &str, name: &str) -> CliResult<Object> {
        self.tell(2, || format!("get {} {namespace}/{name}", resource.id));
        let key = ObjectKey::new(namespace, name);
        Ok(self.client.get(resource, &key, &Default::default()).await?)
    }

    /// The process's watches; their task starts with the first use.
    pub fn watches(&self) -> &Watches {
        self.watches.get_or_init(|| Watches::new(self.client.clone()))
    }
}

fn unknown_type(word: &str, nearest: &[String]) -> crate::commands::error::CliError {
    let near = match nearest {
        [] => String::new(),
        names => format!("; did you mean {}?", names.join(" or ")),
    };
    usage(format!(
        "the server doesn't have a resource type \"{word}\"{near} (`strata api-resources` lists all types)"
    ))
}
