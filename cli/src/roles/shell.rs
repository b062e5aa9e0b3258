//! Shell: what every role's process does around its work: logs, a runtime, stopping when asked, and an exit code that
//! tells its supervisor whether trying again helps. Knows no role.

use std::error::Error;
use std::fmt;
use std::io::{self, IsTerminal};
use std::process::ExitCode;
use std::time::Duration;

use tokio::runtime::{Builder, Runtime};
use tokio::sync::oneshot;

use super::exit::Exit;
use super::lifeline::{Cause, Lifeline};
use super::telemetry::{self, LogArgs};

/// How long a role whose supervisor is gone may take to end; it is nobody's child any more, so it must not linger.
const ORPHAN_LIMIT: Duration = Duration::from_secs(30);
/// How long blocking work may hold the end of a process up.
const RUNTIME_LIMIT: Duration = Duration::from_secs(1);
/// Stack of a worker thread: the work is in futures, on the heap.
const STACK_BYTES: usize = 1024 * 1024;
/// Threads for blocking work (files, name look-ups).
const BLOCKING_THREADS: usize = 16;

/// Why a role ended that should not have, and what its supervisor is to make of it.
#[derive(Debug)]
pub struct Failure {
    /// What the process ends with.
    pub exit: Exit,
    error: Box<dyn Error + Send + Sync>,
}

impl Failure {
    /// A failure that another start may not meet again.
    pub fn passing(error: impl Into<Box<dyn Error + Send + Sync>>) -> Failure {
        Failure { exit: Exit::Failed, error: error.into() }
    }

    /// Somebody else holds what is needed.
    pub fn busy(error: impl Into<Box<dyn Error + Send + Sync>>) -> Failure {
        Failure { exit: Exit::Busy, error: error.into() }
    }

    /// A failure that every start will meet until something is changed.
    pub fn lasting(error: impl Into<Box<dyn Error + Send + Sync>>) -> Failure {
        Failure { exit: Exit::CannotStart, error: error.into() }
    }

    /// It was stopped, though not in order.
    pub fn forced(error: impl Into<Box<dyn Error + Send + Sync>>) -> Failure {
        Failure { exit: Exit::Forced, error: error.into() }
    }
}

/// The whole chain on one line.
impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.error.fmt(f)?;
        let mut source = self.error.source();
        while let Some(inner) = source {
            write!(f, ": {inner}")?;
            source = inner.source();
        }
        Ok(())
    }
}

/// How many threads a role works with.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Threads {
    /// One: enough for what mostly waits, and the least memory.
    One,
    /// One for each processor.
    All,
}

/// A runtime for a role.
///
/// # Errors
/// The system gives no threads or no event queue.
pub fn runtime(threads: Threads) -> io::Result<Runtime> {
    let mut builder = match threads {
        Threads::One => Builder::new_current_thread(),
        Threads::All => Builder::new_multi_thread(),
    };
    builder.enable_all().thread_stack_size(STACK_BYTES).max_blocking_threads(BLOCKING_THREADS).build()
}

/// Runs a role until it ends or is told to. `role` gets the message to stop, once, with its cause.
pub fn run<F>(log: &LogArgs, threads: Threads, role: impl FnOnce(oneshot::Receiver<Cause>) -> F) -> ExitCode
where
    F: Future<Output = Result<(), Failure>>,
{
    finish(start(log).and_then(|()| {
        let runtime = runtime(threads).map_err(Failure::passing)?;
        let (stop, stopped) = oneshot::channel();
        let result = runtime.block_on(async {
            let lifeline = Lifeline::attach().map_err(Failure::passing)?;
            supervise(lifeline, stop, role(stopped)).await
        });
        runtime.shutdown_timeout(RUNTIME_LIMIT);
        result
    }))
}

/// Sets logging up.
///
/// # Errors
/// A level that makes no sense.
pub fn start(log: &LogArgs) -> Result<(), Failure> {
    telemetry::start(log, io::stderr().is_terminal()).map_err(Failure::lasting)
}

/// Says what went wrong, in one line on standard error, and picks the exit code.
pub fn finish(result: Result<(), Failure>) -> ExitCode {
    match result {
        Ok(()) => Exit::Stopped.into(),
        Err(failure) => {
            super::supervise::output::print(&format!("error: {failure}"));
            failure.exit.into()
        }
    }
}

/// Told to stop while it was stopping.
#[derive(Debug, thiserror::Error)]
#[error("stopped without tidying, as it was told to twice")]
struct Forced;

/// The supervisor is gone, and the role did not end by itself.
#[derive(Debug, thiserror::Error)]
#[error("did not end within {} seconds after its supervisor", ORPHAN_LIMIT.as_secs())]
struct Lingering;

async fn supervise(
    mut lifeline: Lifeline,
    stop: oneshot::Sender<Cause>,
    role: impl Future<Output = Result<(), Failure>>,
) -> Result<(), Failure> {
    let mut role = Box::pin(role);
    let cause = tokio::select! {
        result = &mut role => return result,
        cause = lifeline.cut() => cause,
    };
    tracing::info!(?cause, "stopping");
    if stop.send(cause).is_err() {
        tracing::debug!("the role is ending already");
    }
    let limit = async {
        let mut orphaned = cause == Cause::Orphaned;
        while !orphaned {
            match lifeline.cut().await {
                Cause::Asked => return Failure::forced(Forced),
                Cause::Orphaned => orphaned = true,
            }
        }
        tokio::time::sleep(ORPHAN_LIMIT).await;
        Failure::passing(Lingering)
    };
    tokio::select! {
        result = &mut role => result,
        failure = limit => Err(failure),
    }
}
