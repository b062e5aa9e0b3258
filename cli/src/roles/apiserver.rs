//! Apiserver: the role that serves the API over the store. Turns flags into the server's configuration; knows nothing of
//! how it serves.

use std::io;
use std::net::TcpListener;
use std::os::fd::AsFd;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::Duration;

use clap::Args;
use strata_apiserver::server::config::{Config, Identity, NodeAccess, Pem, ServiceAccounts};
use strata_apiserver::server::run::{Server, StartError};
use strata_model::status::Reason;
use strata_store::config as store;
use strata_store::engine::memory::Memory;
use strata_store::error::{Class, EngineError, OpenError};
use strata_store::store::{EngineChoice, Store};
use tokio::sync::oneshot;

use super::etcd::EtcdArgs;
use super::lifeline::Cause;
use super::listen::{self, Listen};
use super::shell::{self, Failure, Threads};
use super::supervise::child;
use super::telemetry::LogArgs;
use super::{files, notify};

/// The flags of `strata apiserver`.
#[derive(Clone, Debug, Args)]
pub struct ApiserverArgs {
    /// Address and port to listen at; port 0 takes a free one.
    #[arg(long, value_name = "ADDRESS", default_value = listen::DEFAULT, env = "STRATA_LISTEN")]
    pub listen: Listen,
    /// Directory of the data, where that is not in etcd; created where it is missing.
    #[arg(
        long,
        value_name = "DIR",
        env = "STRATA_STORE",
        required_unless_present_any = ["etcd_servers", "in_memory"],
        conflicts_with_all = ["etcd_servers", "in_memory"]
    )]
    pub store: Option<PathBuf>,
    /// Certificate to serve with, PEM.
    #[arg(long, value_name = "FILE", env = "STRATA_TLS_CERT_FILE")]
    pub tls_cert_file: PathBuf,
    /// Its private key, PEM.
    #[arg(long, value_name = "FILE", env = "STRATA_TLS_PRIVATE_KEY_FILE")]
    pub tls_private_key_file: PathBuf,
    /// Authorities whose client certificates are believed, PEM.
    #[arg(long, value_name = "FILE", env = "STRATA_CLIENT_CA_FILE")]
    pub client_ca_file: PathBuf,
    /// Certificate to show to node agents, for logs and commands in pods, PEM.
    #[arg(long, value_name = "FILE", env = "STRATA_KUBELET_CLIENT_CERTIFICATE")]
    pub kubelet_client_certificate: Option<PathBuf>,
    /// Its private key, PEM.
    #[arg(long, value_name = "FILE", env = "STRATA_KUBELET_CLIENT_KEY")]
    pub kubelet_client_key: Option<PathBuf>,
    /// Authority that signed the node agents' certificates, PEM.
    #[arg(long, value_name = "FILE", env = "STRATA_KUBELET_CERTIFICATE_AUTHORITY")]
    pub kubelet_certificate_authority: Option<PathBuf>,
    #[command(flatten)]
    pub accounts: AccountArgs,
    #[command(flatten)]
    pub settings: ServerArgs,
    #[command(flatten)]
    pub log: LogArgs,
}

/// How tokens of service accounts are made and checked.
#[derive(Clone, Debug, Args)]
pub struct AccountArgs {
    /// Key that signs tokens of service accounts, PEM; without it none are made.
    #[arg(long, value_name = "FILE", env = "STRATA_SERVICE_ACCOUNT_SIGNING_KEY_FILE")]
    pub service_account_signing_key_file: Option<PathBuf>,
    /// Keys that check them, public or private, PEM; may be given several times. That of the signing key is known.
    #[arg(long, value_name = "FILE", env = "STRATA_SERVICE_ACCOUNT_KEY_FILE")]
    pub service_account_key_file: Vec<PathBuf>,
    /// The issuer that tokens name, and their audience where none is asked for.
    #[arg(
        long,
        value_name = "URL",
        env = "STRATA_SERVICE_ACCOUNT_ISSUER",
        default_value = strata_apiserver::server::config::DEFAULT_ISSUER
    )]
    pub service_account_issuer: String,
}

/// The settings of an API server that `strata up` takes as well and hands on.
#[derive(Clone, Debug, Args)]
pub struct ServerArgs {
    /// Bearer tokens, one a line: token,user,uid[,"group1,group2"].
    #[arg(long, value_name = "FILE", env = "STRATA_TOKEN_AUTH_FILE")]
    pub token_auth_file: Option<PathBuf>,
    /// How long old revisions can still be watched and read from.
    #[arg(long, value_name = "MINUTES", default_value_t = 5, env = "STRATA_HISTORY_MINUTES")]
    pub history_minutes: u64,
    /// Keep the data in memory only: it ends with the process.
    #[arg(long, conflicts_with = "etcd_servers")]
    pub in_memory: bool,
    #[command(flatten)]
    pub etcd: EtcdArgs,
}

/// Why the API server cannot serve.
#[derive(Debug, thiserror::Error)]
pub enum ApiserverError {
    /// The store cannot be opened.
    #[error("cannot open the store in {place}{}", hint(.source))]
    Open {
        /// Its directory, or etcd's servers.
        place: String,
        /// Why not.
        #[source]
        source: OpenError,
    },
    /// Standard output should be the socket to listen on, and is not.
    #[error("the socket that {} promises cannot be used", child::LISTENER)]
    Inherited(#[source] io::Error),
}

/// What a person can do about it.
fn hint(error: &OpenError) -> &'static str {
    match error {
        OpenError::NewerFormat { .. } => {
            " (it was left as it is; use the version that wrote it or a newer one, or another directory)"
        }
        OpenError::Engine(error) if error.class() == Class::Corrupt => {
            " (it was left as it is: `strata store verify DIRECTORY` tells all that is damaged, and `strata store restore \
              BACKUP --to NEW-DIRECTORY` makes a store of a backup)"
        }
        _ => "",
    }
}

/// Serves until told to stop.
pub fn run(args: ApiserverArgs) -> ExitCode {
    let log = args.log.clone();
    shell::run(&log, Threads::All, move |stop| async move {
        let listener = inherited().map_err(|error| Failure::lasting(ApiserverError::Inherited(error)))?;
        let store = open(args.store.as_deref(), &args.settings).await?;
        let result = serve(config(args), store.clone(), listener, stop).await;
        store.close().await;
        result
    })
}

async fn serve(
    config: Config,
    store: Store,
    listener: Option<TcpListener>,
    stop: oneshot::Receiver<Cause>,
) -> Result<(), Failure> {
    let started = match listener {
        Some(listener) => Server::start_on(config, store, listener).await,
        None => Server::start(config, store).await,
    };
    let server = started.map_err(|error| match error {
        // No start helps until somebody makes room.
        StartError::Prepare(ref status) if status.reason == Some(Reason::InsufficientStorage) => {
            Failure::lasting(error)
        }
        StartError::Site(_) | StartError::Prepare(_) => Failure::passing(error),
        error => Failure::lasting(error),
    })?;
    tracing::info!(address = %server.address(), "serving");
    notify::tell(notify::Message::Ready);
    let stopped = async {
        if let Err(error) = stop.await {
            tracing::debug!(%error, "nobody can stop this process any more");
        }
    };
    server.run(stopped).await.map_err(Failure::passing)
}

/// What the flags mean to the server. Pure.
fn config(args: ApiserverArgs) -> Config {
    let nodes = match (args.kubelet_client_certificate, args.kubelet_client_key) {
        (Some(certificate), Some(key)) => Some(NodeAccess {
            identity: Identity { certificate: certificate.into(), key: key.into() },
            authority: args
                .kubelet_certificate_authority
                .unwrap_or_else(|| args.client_ca_file.clone())
                .into(),
        }),
        _ => None,
    };
    Config {
        listen: args.listen.0,
        identity: Identity { certificate: args.tls_cert_file.into(), key: args.tls_private_key_file.into() },
        client_authority: Some(args.client_ca_file.into()),
        token_file: args.settings.token_auth_file,
        nodes,
        service_accounts: ServiceAccounts {
            issuer: args.accounts.service_account_issuer,
            signing_key: args.accounts.service_account_signing_key_file.map(Pem::from),
            keys: args.accounts.service_account_key_file.into_iter().map(Pem::from).collect(),
        },
    }
}

/// The socket that our supervisor opened for us, where one did.
fn inherited() -> io::Result<Option<TcpListener>> {
    if std::env::var_os(child::LISTENER).is_none() {
        return Ok(None);
    }
    let listener = TcpListener::from(io::stdout().as_fd().try_clone_to_owned()?);
    listener.local_addr()?;
    Ok(Some(listener))
}

/// Opens the store on a thread that may block: recovery reads.
async fn open(directory: Option<&Path>, settings: &ServerArgs) -> Result<Store, Failure> {
    let history = Duration::from_secs(settings.history_minutes.saturating_mul(60));
    let config = store::Config { history, ..store::Config::default() };
    let (engine, place) = match directory {
        Some(path) => {
            files::private_dir(path).map_err(Failure::lasting)?;
            (EngineChoice::Sled { directory: path.to_owned() }, path.display().to_string())
        }
        None if settings.in_memory => (EngineChoice::Memory(Memory::new()), "memory".to_owned()),
        None => {
            let servers = settings.etcd.etcd_servers.clone();
            let place = format!("etcd at {}", servers.join(", "));
            (EngineChoice::Etcd(settings.etcd.access.config(servers).map_err(Failure::lasting)?), place)
        }
    };
    let opened = tokio::task::spawn_blocking(move || Store::open(config, engine)).await;
    opened.map_err(Failure::passing)?.map_err(|source| {
        let hold = match &source {
            OpenError::Locked { .. } => Failure::busy,
            OpenError::NewerFormat { .. } | OpenError::Directory { .. } => Failure::lasting,
            OpenError::Engine(EngineError::Refused { .. }) => Failure::lasting,
            OpenError::Engine(error) if error.class() == Class::Corrupt => Failure::lasting,
            OpenError::Engine(_) | OpenError::Thread(_) => Failure::passing,
        };
        hold(ApiserverError::Open { place, source })
    })
}
