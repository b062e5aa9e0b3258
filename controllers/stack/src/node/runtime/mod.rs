//! The seam between the agent and whatever runs containers: one trait, two runtimes, one log reader. It must
//! never know the API, nor decide anything: what to start and to stop is the pod plan's business.

pub mod changes;
pub mod logs;
pub mod process;
pub mod simulated;

use std::future::Future;
use std::path::PathBuf;
use std::pin::Pin;
use std::time::Duration;

use jiff::Timestamp;
use strata_model::object::ObjectKey;
use strata_plan::pod::observed::{ContainerKey, Launch, ObservedContainer, StopCause};

use self::changes::Changes;
use super::attempt::AttemptError;

/// A future that borrows nothing but the runtime.
pub type BoxFuture<'a, T> = Pin<Box<dyn Future<Output = T> + Send + 'a>>;

/// Why a runtime could not do what it was asked.
#[derive(Debug, thiserror::Error)]
pub enum RuntimeError {
    /// The attempt's directory failed.
    #[error(transparent)]
    Attempt(#[from] AttemptError),
    /// The supervisor of an attempt could not be started.
    #[error("cannot start the supervisor of {key}")]
    Supervisor {
        /// Which attempt.
        key: ContainerKey,
        /// What the system answered.
        #[source]
        source: std::io::Error,
    },
    /// An order did not reach the supervisor.
    #[error("cannot tell the supervisor of {key} to stop")]
    Stop {
        /// Which attempt.
        key: ContainerKey,
        /// What the system answered.
        #[source]
        source: std::io::Error,
    },
    /// An attempt that still runs cannot be removed.
    #[error("{key} is not over and cannot be removed")]
    NotOver {
        /// Which attempt.
        key: ContainerKey,
    },
    /// The attempt is not known or does not run.
    #[error("{key} does not run")]
    NotRunning {
        /// Which attempt.
        key: ContainerKey,
    },
    /// A command in a container could not be run.
    #[error("cannot run {program:?} in {key}")]
    Exec {
        /// Which attempt.
        key: ContainerKey,
        /// The program asked for.
        program: String,
        /// What the system answered.
        #[source]
        source: std::io::Error,
    },
}

/// How a command in a container ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ExecResult {
    /// Its exit code; `None` when it was ended because its time was over.
    pub code: Option<i32>,
    /// The first bytes of what it printed, both streams.
    pub output: String,
}

/// Where an attempt's log is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum LogSource {
    /// Rotated files in CRI form; the newest has this path.
    Files(PathBuf),
    /// This text is all there is.
    Text(String),
}

/// What a probe found.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ProbeAnswer {
    /// Whether it succeeded.
    pub success: bool,
    /// What to show when it did not.
    pub message: String,
}

/// Something that runs containers.
///
/// All calls are idempotent and may be repeated after any failure or restart. The synchronous ones take
/// milliseconds at most (small files, one process start) and may block: call them off the async threads.
pub trait Runtime: Send + Sync {
    /// The name that container ids begin with, as in `process://…`.
    fn name(&self) -> &'static str;

    /// Whether this runtime can run `image`; the error is what a container's status should say.
    fn accepts_image(&self, image: &str) -> Result<(), String>;

    /// The uids of all pods of which anything is there.
    fn pods(&self) -> Result<Vec<String>, RuntimeError>;

    /// The namespace and name of a pod of which something is there; `None`: nobody wrote them down.
    fn pod_name(&self, pod: &str) -> Result<Option<ObjectKey>, RuntimeError>;

    /// All attempts of one pod, ordered by container and attempt.
    fn containers(&self, pod: &str) -> Result<Vec<ObservedContainer>, RuntimeError>;

    /// Starts an attempt. One that exists already is left as it is.
    fn start(&self, launch: &Launch) -> Result<(), RuntimeError>;

    /// Tells an attempt to stop: SIGTERM, and SIGKILL to all of it after `grace`. Returns at once; a second
    /// call can only shorten the grace. One that is over already counts as stopped.
    fn stop(&self, key: &ContainerKey, grace: Duration, cause: StopCause) -> Result<(), RuntimeError>;

    /// The termination grace that an attempt was started with.
    fn grace(&self, key: &ContainerKey) -> Duration;

    /// Removes an attempt that is over, its log included. Gone already counts as done.
    fn remove(&self, key: &ContainerKey) -> Result<(), RuntimeError>;

    /// Removes what is left of a pod whose attempts are all removed.
    fn remove_pod(&self, pod: &str) -> Result<(), RuntimeError>;

    /// Where the log of an attempt is.
    fn log(&self, key: &ContainerKey) -> LogSource;

    /// Runs a command in a running attempt and waits for its end, at most `limit`.
    fn exec<'a>(
        &'a self,
        key: &'a ContainerKey,
        command: &'a [String],
        limit: Duration,
    ) -> BoxFuture<'a, Result<ExecResult, RuntimeError>>;

    /// The runtime's own answer to any probe of an attempt; `None`: the probe has to be carried out.
    fn answer_probe(&self, key: &ContainerKey) -> Option<ProbeAnswer>;

    /// Tells a runtime without memory of its own what the API remembers as running. Others ignore it.
    fn remember(&self, launch: &Launch, started_at: Timestamp);

    /// Where it is told which pods changed.
    fn changes(&self) -> &Changes;
}
