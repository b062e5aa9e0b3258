//! The node agent: the process that registers a node, watches the pods bound to it and holds its runtime to
//! them. It must never decide: what to do is planned in `strata_plan::pod` and `strata_plan::node`.

pub mod machine;
pub mod index;
mod trusting;
mod ask;
pub mod prober;
mod sources;
mod lease;
pub mod serve;
mod holder;
mod stop;

use std::fs::File;
use std::io;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use strata_client::client::Client;
use strata_client::config::ClientConfig;
use strata_client::connect::SetupError;
use strata_plan::pod::observed::NodeFacts;
use strata_runtime::admin::board::Board;
use strata_runtime::admin::listen::{AdminError, Listeners, Places};
use strata_runtime::run::{self, Options, RunError};
use tokio::sync::Notify;

use self::holder::Holder;
use self::serve::{LogServer, Tls};
use super::attempt::{self, AttemptError};
use super::runtime::process::{self, ProcessRuntime};
use super::runtime::simulated::SimulatedRuntime;
use super::runtime::{Runtime, RuntimeError};

/// The agent's name: of its field manager, its events and its metrics.
pub const NAME: &str = "node-agent";

/// What runs the containers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RuntimeKind {
    /// Processes of this machine.
    Process,
    /// Nothing; time passes.
    Simulated,
}

/// How an agent is set up.
#[derive(Clone)]
pub struct Config {
    /// The node's name; of several, what their names begin with.
    pub name: String,
    /// How many nodes to be; more than one only with the simulated runtime.
    pub nodes: u32,
    /// What runs containers.
    pub runtime: RuntimeKind,
    /// The directory of all state.
    pub root: PathBuf,
    /// How long a simulated container takes to start.
    pub simulated_start: Duration,
    /// The API server and the node's identity.
    pub client: ClientConfig,
    /// How the log server shows itself and whom it believes.
    pub tls: Tls,
    /// Where the log server listens; port 0 picks one.
    pub listen: SocketAddr,
    /// Where the admin port is.
    pub admin: Places,
}

/// How an agent is to end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stop {
    /// What runs goes on; the next agent adopts it.
    LeavePods,
    /// Everything that runs is stopped first, in its grace.
    StopPods,
}

/// Why an agent ended or could not begin.
#[derive(Debug, thiserror::Error)]
pub enum NodeError {
    /// More than one node of real processes.
    #[error("{0} nodes are only possible with `--runtime simulated`: one machine is one node")]
    ManyNodes(u32),
    /// Another agent has the directory.
    #[error("another node agent uses {}; stop it, or give this one another root directory", root.display())]
    Busy {
        /// Which directory.
        root: PathBuf,
    },
    /// The directory cannot be used.
    #[error("cannot use the node's root directory")]
    Root(#[source] AttemptError),
    /// The runtime cannot be opened.
    #[error("cannot open the runtime")]
    Runtime(#[source] RuntimeError),
    /// The client cannot be set up.
    #[error("cannot set up the connection to the API server")]
    Client(#[source] SetupError),
    /// The log server's port cannot be had.
    #[error("cannot listen on {address} for logs")]
    Listen {
        /// Where.
        address: SocketAddr,
        /// What the system answered.
        #[source]
        source: io::Error,
    },
    /// The log server failed.
    #[error("the log server ended")]
    Logs(#[source] tonic::transport::Error),
    /// The admin port cannot be had.
    #[error(transparent)]
    Admin(#[from] AdminError),
    /// The controller part failed.
    #[error(transparent)]
    Run(#[from] RunError),
}

impl NodeError {
    /// Whether another process holds what is needed.
    pub fn is_busy(&self) -> bool {
        matches!(self, Self::Busy { .. })
    }

    /// Whether another start would meet the same.
    pub fn is_lasting(&self) -> bool {
        match self {
            Self::ManyNodes(_)
            | Self::Root(_)
            | Self::Runtime(_)
            | Self::Client(_)
            | Self::Listen { .. }
            | Self::Admin(_) => true,
            Self::Busy { .. } | Self::Logs(_) | Self::Run(_) => false,
        }
    }
}

/// The names of the nodes that a configuration makes.
pub fn node_names(name: &str, nodes: u32) -> Vec<String> {
    match nodes {
        0 | 1 => vec![name.to_owned()],
        _ => (0..nodes).map(|number| format!("{name}-{number}")).collect(),
    }
}

/// Runs an agent until `shutdown` says how it is to end. `ready` is called once, when its nodes are registered
/// and the pods bound to them are known.
pub async fn run(
    config: Config,
    ready: impl FnOnce() + Send,
    shutdown: impl Future<Output = Stop> + Send,
) -> Result<(), NodeError> {
    if config.nodes > 1 && config.runtime == RuntimeKind::Process {
        return Err(NodeError::ManyNodes(config.nodes));
    }
    attempt::create_private_dir(&config.root).map_err(NodeError::Root)?;
    let _lock = lock(&config.root)?;
    let (runtime, facts) = open_runtime(&config)?;
    let client = Client::new(&config.client).map_err(NodeError::Client)?;
    let (listener, address) = serve::bind(config.listen)
        .await
        .map_err(|source| NodeError::Listen { address: config.listen, source })?;
    let names = node_names(&config.name, config.nodes);
    let simulated = config.runtime == RuntimeKind::Simulated;
    let describe = |name: &String| machine::describe(name, runtime.name(), simulated, address.port());
    let holder = Arc::new(Holder::new(Arc::clone(&runtime), facts, names.iter().map(describe).collect()));

    let ended = Arc::new(Notify::new());
    let logs = LogServer::new(Arc::clone(&runtime), holder.index());
    let logs = logs.serve(listener, config.tls, wait(Arc::clone(&ended)));
    let leases = lease::renew(client.clone(), names);
    let mut how = Stop::LeavePods;
    let told = async { how = shutdown.await };
    let board = Arc::new(Board::default());
    let admin = Listeners::bind(&config.admin).await?.serve(Arc::clone(&board));
    let options = Options { board: Some(board), ..Options::default() };
    let controller = run::reconciler(Arc::clone(&holder), client, options, told);
    let result = tokio::select! {
        result = controller => result.map_err(NodeError::from),
        result = logs => result.map_err(NodeError::Logs),
        () = admin => Ok(()),
        () = holder.forward_changes() => Ok(()),
        () = leases => Ok(()),
        () = tell_ready(&holder, ready) => Ok(()),
    };
    ended.notify_waiters();
    if how == Stop::StopPods {
        stop::all(&runtime).await;
    }
    result
}

async fn wait(ended: Arc<Notify>) {
    ended.notified().await;
}

async fn tell_ready(holder: &Holder, ready: impl FnOnce()) {
    holder.registered().await;
    ready();
    std::future::pending().await
}

fn open_runtime(config: &Config) -> Result<(Arc<dyn Runtime>, NodeFacts), NodeError> {
    let facts = |runtime: &dyn Runtime, user: Option<i64>, real: bool| NodeFacts {
        runtime: runtime.name().to_owned(),
        host_ip: machine::ADDRESS.to_owned(),
        user,
        mounts: !real,
        hooks: !real,
        needs_command: real,
    };
    match config.runtime {
        RuntimeKind::Process => {
            let runtime = ProcessRuntime::open(process::Config::new(config.root.clone()));
            let runtime = Arc::new(runtime.map_err(NodeError::Runtime)?);
            let user = i64::from(rustix::process::getuid().as_raw());
            let facts = facts(&*runtime, Some(user), true);
            Ok((runtime, facts))
        }
        RuntimeKind::Simulated => {
            let runtime = Arc::new(SimulatedRuntime::new(config.simulated_start));
            let facts = facts(&*runtime, None, false);
            Ok((runtime, facts))
        }
    }
}

/// Takes the directory for this process alone.
fn lock(root: &Path) -> Result<File, NodeError> {
    let path = root.join("agent.lock");
    let file = File::options().create(true).truncate(false).write(true).open(&path);
    let file = file.map_err(|source| NodeError::Root(attempt::io_error("open", &path)(source)))?;
    match file.try_lock() {
        Ok(()) => Ok(file),
        Err(std::fs::TryLockError::WouldBlock) => Err(NodeError::Busy { root: root.to_owned() }),
        Err(std::fs::TryLockError::Error(source)) => {
            Err(NodeError::Root(attempt::io_error("lock", &path)(source)))
        }
    }
}
