//! Start and end of a server.

use std::future::Future;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::Arc;

use strata_model::resource::Registry;
use strata_model::status::Status;
use strata_store::store::Store;
use tokio::net::TcpListener;
use tokio::sync::watch;
use tokio_rustls::TlsAcceptor;

use super::config::{Config, Pem, ServiceAccounts};
use super::connections;
use super::dispatch::{Site, SiteError};
use super::tls::{self, TlsError};
use crate::authn::{TokenFileError, Tokens};
use crate::gate::Gate;
use crate::jwt::claims::Issuer;
use crate::jwt::keys::{self, KeyError, SigningKey};
use crate::pipeline::api::{Api, Known};
use crate::pipeline::nodes::Nodes;
use crate::pipeline::upkeep::SWEEP_EVERY;
use crate::types::catalogue::Catalogue;

/// Why a server did not start.
#[derive(Debug, thiserror::Error)]
pub enum StartError {
    /// The address cannot be listened on.
    #[error("cannot listen on {address}; choose another address or port with --listen")]
    Listen {
        /// The address.
        address: SocketAddr,
        /// Why.
        #[source]
        source: std::io::Error,
    },
    /// Certificates or keys cannot be used.
    #[error(transparent)]
    Tls(#[from] TlsError),
    /// The token file cannot be read.
    #[error("cannot read the token file {path}")]
    TokenFile {
        /// The file.
        path: PathBuf,
        /// Why.
        #[source]
        source: std::io::Error,
    },
    /// The token file has a faulty line.
    #[error(transparent)]
    Tokens(#[from] TokenFileError),
    /// A key of service accounts cannot be read.
    #[error("cannot read the key of service accounts {path}")]
    KeyFile {
        /// The file.
        path: PathBuf,
        /// Why.
        #[source]
        source: std::io::Error,
    },
    /// A key of service accounts cannot be used.
    #[error("the key of service accounts {path} cannot be used")]
    Key {
        /// The file.
        path: String,
        /// Why.
        #[source]
        source: KeyError,
    },
    /// The gRPC services cannot be made.
    #[error(transparent)]
    Site(#[from] SiteError),
    /// The store does not take the first objects.
    #[error("the first objects cannot be stored: {}", .0.message)]
    Prepare(Box<Status>),
}

/// Why a server ended by itself.
#[derive(Debug, thiserror::Error)]
pub enum RunError {
    /// A task that must not end did.
    #[error("the server's upkeep failed")]
    Upkeep(#[source] tokio::task::JoinError),
}

/// A server that listens, and serves once it is run.
pub struct Server {
    address: SocketAddr,
    listener: TcpListener,
    tls: TlsAcceptor,
    gate: Arc<Gate>,
    site: Arc<Site>,
    end: watch::Sender<bool>,
}

impl Server {
    /// Reads what the configuration names, listens, and makes what is always there. Clients that connect now are
    /// answered once the server runs.
    pub async fn start(config: Config, store: Store) -> Result<Self, StartError> {
        let address = config.listen;
        let listener =
            TcpListener::bind(address).await.map_err(|source| StartError::Listen { address, source })?;
        Self::prepare(config, store, listener).await
    }

    /// The same on a socket that somebody else bound, and keeps bound when this process ends.
    pub async fn start_on(
        config: Config,
        store: Store,
        socket: std::net::TcpListener,
    ) -> Result<Self, StartError> {
        let failed = |source| StartError::Listen { address: config.listen, source };
        socket.set_nonblocking(true).map_err(failed)?;
        let listener = TcpListener::from_std(socket).map_err(failed)?;
        Self::prepare(config, store, listener).await
    }

    async fn prepare(config: Config, store: Store, listener: TcpListener) -> Result<Self, StartError> {
        let address =
            listener.local_addr().map_err(|source| StartError::Listen { address: config.listen, source })?;
        let tls = TlsAcceptor::from(tls::server(&config)?);
        let nodes = Nodes { tls: config.nodes.as_ref().map(tls::client).transpose()? };
        let tokens = match &config.token_file {
            Some(path) => {
                let text = std::fs::read_to_string(path);
                let text = text.map_err(|source| StartError::TokenFile { path: path.clone(), source })?;
                Tokens::parse(&text)?
            }
            None => Tokens::default(),
        };
        let known = Known { tokens, issuer: issuer(&config.service_accounts)? };
        let api = Api::new(store, Catalogue::new(&Registry::builtin()), nodes, known);
        api.prepare().await.map_err(StartError::Prepare)?;
        let gate = Arc::new(Gate::new(Arc::new(api)));
        let (end, ending) = watch::channel(false);
        let site = Arc::new(Site::new(Arc::clone(&gate), ending).await?);
        Ok(Self { address, listener, tls, gate, site, end })
    }

    /// Where it listens: the real port where 0 was asked for.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Serves until `shutdown` is done, then ends: no new connections, watches end cleanly, requests under way are
    /// answered. The store stays open; it is the caller's to close.
    pub async fn run(self, shutdown: impl Future<Output = ()>) -> Result<(), RunError> {
        let Self { listener, tls, gate, site, end, .. } = self;
        let mut upkeep = tokio::task::JoinSet::new();
        upkeep.spawn(sweep(Arc::clone(&gate.api)));
        let api = Arc::clone(&gate.api);
        upkeep.spawn(async move { api.follow_definitions().await });
        let api = Arc::clone(&gate.api);
        upkeep.spawn(async move { api.clean_up_definitions().await });
        let api = Arc::clone(&gate.api);
        upkeep.spawn(async move { api.admission.follow(&api.store).await });
        let api = Arc::clone(&gate.api);
        upkeep.spawn(async move { api.follow_roles().await });
        gate.api.all_followed().await;
        gate.api.admission.begun().await;
        gate.api.roles_followed().await;
        let serving = connections::serve(listener, tls, site, &gate.telemetry, end.subscribe());
        tokio::pin!(serving, shutdown);
        let outcome = tokio::select! {
            // It ends only when it is told to, below.
            () = &mut serving => return Ok(()),
            () = &mut shutdown => Ok(()),
            Some(Err(error)) = upkeep.join_next() => Err(RunError::Upkeep(error)),
        };
        end.send_replace(true);
        serving.await;
        upkeep.shutdown().await;
        outcome
    }
}

/// Reads the keys of service accounts.
fn issuer(config: &ServiceAccounts) -> Result<Issuer, StartError> {
    let signing = config.signing_key.as_ref().map(|pem| key(pem, SigningKey::read)).transpose()?;
    let mut keys = Vec::new();
    for pem in &config.keys {
        keys.extend(key(pem, keys::read_public)?);
    }
    Ok(Issuer::new(config.issuer.clone(), signing, keys))
}

fn key<T>(pem: &Pem, read: fn(&str) -> Result<T, KeyError>) -> Result<T, StartError> {
    let (path, text) = match pem {
        Pem::Text(text) => ("(text)".to_owned(), text.clone()),
        Pem::File(path) => {
            let failed = |source| StartError::KeyFile { path: path.clone(), source };
            (path.display().to_string(), std::fs::read_to_string(path).map_err(failed)?)
        }
    };
    read(&text).map_err(|source| StartError::Key { path, source })
}

async fn sweep(api: Arc<Api>) {
    let mut every = tokio::time::interval(SWEEP_EVERY);
    every.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
    loop {
        every.tick().await;
        match api.sweep().await {
            Ok(0) => {}
            Ok(gone) => tracing::debug!(gone, "expired objects went"),
            Err(refusal) => tracing::warn!(reason = %refusal.message, "expired objects could not be removed"),
        }
    }
}
