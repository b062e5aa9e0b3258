//! A truthful API server inside a test: the whole API over a store in memory, on a free port of loopback, with the
//! controllers that a client expects of any cluster (garbage collection, the deletion of namespaces, what every namespace
//! has) running beside it. It is there in some milliseconds, and gone with its value.
//!
//! ```
//! use strata_client::options::WriteOptions;
//! use strata_model::resource::builtin;
//! use strata_testing::TestServer;
//!
//! # tokio::runtime::Builder::new_multi_thread().enable_all().build().unwrap().block_on(async {
//! let server = TestServer::start().await?;
//! let map = r#"{"metadata": {"name": "settings"}, "data": {"colour": "green"}}"#;
//! server.client().create(&builtin::CONFIG_MAP, "default", map, &WriteOptions::default()).await?;
//! // Any other client: `kube::Config::from_custom_kubeconfig`, kubectl, client-go …
//! assert!(server.kubeconfig().contains(server.url()));
//! server.stop().await?;
//! # Ok::<(), Box<dyn std::error::Error>>(()) }).unwrap();
//! ```
//!
//! Workloads do not run: a pod stays Pending unless [`TestServer::start_with`] names the controllers it needs and the
//! test plays the node. For whole platforms, and for other languages, there is
//! `strata up --in-memory --listen 127.0.0.1:0 --print-kubeconfig`.

mod authority;

use std::time::Duration;

use strata_apiserver::server::run::{RunError, StartError as ServerError};
use strata_apiserver::server::{Config, Pem, Server};
use strata_client::client::Client;
use strata_client::connect::SetupError;
use strata_client::kubeconfig::{ConfigError, Kubeconfig};
use strata_runtime::run::{Options, RunError as ControllerError};
use strata_stack::process::{self, Name, Settings};
use strata_store::engine::memory::Memory;
use strata_store::error::OpenError;
use strata_store::store::{EngineChoice, Store};
use tokio::sync::watch;
use tokio::task::{JoinError, JoinHandle, JoinSet};

use self::authority::Authority;

/// The controllers of a server that is started without saying which.
pub const CONTROLLERS: [Name; 4] =
    [Name::Garbage, Name::Namespace, Name::ServiceAccount, Name::RootCertificates];
/// How long controllers get to finish.
const STOP_LIMIT: Duration = Duration::from_secs(10);

/// Why there is no server.
#[derive(Debug, thiserror::Error)]
pub enum StartError {
    /// No certificates.
    #[error("cannot make certificates")]
    Certificates(#[from] rcgen::Error),
    /// No store.
    #[error("cannot open a store in memory")]
    Store(#[from] OpenError),
    /// The server did not start.
    #[error(transparent)]
    Server(#[from] ServerError),
    /// Our own kubeconfig cannot be read: a fault of ours.
    #[error(transparent)]
    Kubeconfig(#[from] ConfigError),
    /// The client cannot be made of it.
    #[error(transparent)]
    Client(#[from] SetupError),
}

/// How a server ended that should not have.
#[derive(Debug, thiserror::Error)]
pub enum StopError {
    /// The server ended by itself.
    #[error("the server ended by itself")]
    Server(#[from] RunError),
    /// A controller ended by itself.
    #[error("a controller ended by itself")]
    Controller(#[from] ControllerError),
    /// A task panicked.
    #[error("a task of the server failed")]
    Task(#[from] JoinError),
    /// Controllers did not end.
    #[error("controllers did not end within {} s", STOP_LIMIT.as_secs())]
    Late,
}

/// A running server.
pub struct TestServer {
    url: String,
    kubeconfig: String,
    client: Client,
    store: Store,
    end: watch::Sender<bool>,
    server: JoinHandle<Result<(), RunError>>,
    controllers: JoinSet<Result<(), ControllerError>>,
}

impl TestServer {
    /// Starts a server with [`CONTROLLERS`]. Needs a tokio runtime with IO and time.
    ///
    /// # Errors
    /// See [`StartError`]; on a machine with a loopback interface none is to be expected.
    pub async fn start() -> Result<Self, StartError> {
        Self::start_with(&CONTROLLERS).await
    }

    /// Starts a server with these controllers.
    ///
    /// # Errors
    /// As [`TestServer::start`].
    pub async fn start_with(controllers: &[Name]) -> Result<Self, StartError> {
        let authority = Authority::new()?;
        let config = Config {
            listen: ([127, 0, 0, 1], 0).into(),
            identity: authority.server()?,
            client_authority: Some(Pem::Text(authority.pem())),
            token_file: None,
            nodes: None,
            service_accounts: Default::default(),
        };
        let store =
            Store::open(strata_store::config::Config::default(), EngineChoice::Memory(Memory::new()))?;
        let server = Server::start(config, store.clone()).await?;
        let url = format!("https://{}", server.address());
        let kubeconfig = authority.kubeconfig(&url)?;
        let mut read = Kubeconfig::default();
        read.add("kubeconfig".as_ref(), &kubeconfig)?;
        let client = Client::new(&read.client_config(None)?)?;
        let (end, ending) = watch::channel(false);
        let server = tokio::spawn(server.run(ended(ending.clone())));
        let mut tasks = JoinSet::new();
        let settings = Settings { root_ca: Some(authority.pem().into()), ..Settings::default() };
        for name in controllers {
            let stop = ended(ending.clone());
            tasks.spawn(process::run(*name, settings.clone(), client.clone(), Options::default(), stop));
        }
        Ok(Self { url, kubeconfig, client, store, end, server, controllers: tasks })
    }

    /// Where it serves, as `https://127.0.0.1:PORT`.
    pub fn url(&self) -> &str {
        &self.url
    }

    /// A kubeconfig, as JSON (which every reader of kubeconfigs takes), of somebody who may do everything.
    pub fn kubeconfig(&self) -> &str {
        &self.kubeconfig
    }

    /// A client of somebody who may do everything.
    pub fn client(&self) -> &Client {
        &self.client
    }

    /// Ends everything in order: controllers, server, store. Dropping the value ends it as well, without waiting.
    ///
    /// # Errors
    /// See [`StopError`]: what went wrong meanwhile.
    pub async fn stop(self) -> Result<(), StopError> {
        let Self { end, server, mut controllers, store, .. } = self;
        end.send_replace(true);
        let all = async {
            while let Some(controller) = controllers.join_next().await {
                controller??;
            }
            Ok(())
        };
        tokio::time::timeout(STOP_LIMIT, all).await.unwrap_or(Err(StopError::Late))?;
        server.await??;
        store.close().await;
        Ok(())
    }
}

/// Completes when the server is to end, or its value is gone.
async fn ended(mut ending: watch::Receiver<bool>) {
    if let Err(error) = ending.wait_for(|end| *end).await {
        tracing::debug!(%error, "the test server was dropped");
    }
}
