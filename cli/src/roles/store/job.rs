//! Job: what all work on a store has around it: a thread that may block, a stop that is heard while it does, and errors
//! that say what to do. Knows no command.

use std::error::Error;
use std::io::{self, Read, Write};
use std::process::ExitCode;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use clap::Args;
use strata_store::error::OpenError;
use strata_store::store::EngineChoice;
use tokio::runtime::Handle;

use super::super::etcd::EtcdAccess;
use super::super::exit::Exit;
use super::super::lifeline::Lifeline;
use super::super::shell::{self, Threads};
use super::super::telemetry::LogArgs;
use super::place::Place;
use crate::commands::connection::ConnectionArgs;
use crate::commands::error::{CliError, CliResult, usage};
use crate::commands::{self, session::Session};

/// Where the data is: behind a server, or at a place.
#[derive(Clone, Debug, Args)]
pub struct Where {
    /// Work on the data at this place instead of asking a server: a directory (that of the store, or the data directory
    /// of `strata up`), or etcd:URL[,URL...][/PREFIX]
    #[arg(long, value_name = "PLACE")]
    pub store: Option<Place>,
    #[command(flatten)]
    pub access: EtcdAccess,
    #[command(flatten)]
    pub connection: ConnectionArgs,
}

impl Where {
    /// The log lines that are wanted.
    pub fn log(&self) -> LogArgs {
        LogArgs { verbose: self.connection.verbose, ..LogArgs::default() }
    }

    /// A session with the server. `before` are the connection flags that stood before the command.
    pub fn session(self, before: ConnectionArgs, at: &Handle) -> CliResult<Session> {
        let _within = at.enter();
        Session::open(&self.connection.or(before))
    }

    /// The engine at the place, if one was named.
    pub fn engine(&self) -> CliResult<Option<EngineChoice>> {
        self.store.as_ref().map(|place| place.existing(&self.access)).transpose().map_err(local)
    }
}

/// Says when to stop.
#[derive(Clone, Default)]
pub struct Stop(Arc<AtomicBool>);

impl Stop {
    fn check(&self) -> io::Result<()> {
        if self.0.load(Ordering::Relaxed) { Err(io::Error::other("stopped, as was asked")) } else { Ok(()) }
    }
}

/// A stream that fails once the work is to stop.
pub struct Stopping<S> {
    /// The stream.
    pub stream: S,
    /// When.
    pub stop: Stop,
}

impl<R: Read> Read for Stopping<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        self.stop.check()?;
        self.stream.read(buffer)
    }
}

impl<W: Write> Write for Stopping<W> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.stop.check()?;
        self.stream.write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.stream.flush()
    }
}

/// Runs work that blocks, on a thread of its own; the handle is for what must be awaited. Told to stop, the work ends
/// where it hears of it; told twice, the process ends where it is.
pub fn run(log: &LogArgs, work: impl FnOnce(&Handle, Stop) -> CliResult + Send + 'static) -> ExitCode {
    if let Err(failure) = shell::start(log) {
        return shell::finish(Err(failure));
    }
    let started = shell::runtime(Threads::One).and_then(|runtime| {
        let lifeline = runtime.block_on(async { Lifeline::attach() })?;
        Ok((runtime, lifeline))
    });
    let (runtime, mut lifeline) = match started {
        Ok(started) => started,
        Err(error) => return commands::finish("", Err(error.into())),
    };
    let (stop, handle) = (Stop::default(), runtime.handle().clone());
    let (theirs, at) = (stop.clone(), handle.clone());
    let code = runtime.block_on(async move {
        let mut working = handle.spawn_blocking(move || work(&at, theirs));
        loop {
            tokio::select! {
                done = &mut working => {
                    let outcome = done.unwrap_or_else(|error| Err(local(error)));
                    return commands::finish("", outcome);
                }
                _ = lifeline.cut() => {
                    if stop.0.swap(true, Ordering::Relaxed) {
                        return Exit::Forced.into();
                    }
                }
            }
        }
    });
    // Work that was left alone must not hold the process up.
    runtime.shutdown_background();
    code
}

/// An error of this machine, told with its causes.
pub fn local(error: impl Into<Box<dyn Error + Send + Sync>>) -> CliError {
    CliError::Local(error.into())
}

/// What to do about a place that cannot be opened, behind the error itself.
pub fn hinted(error: impl Error + Send + Sync + 'static) -> CliError {
    let mut at: Option<&(dyn Error + 'static)> = Some(&error);
    let mut hint = None;
    while let (Some(cause), None) = (at, hint) {
        hint = cause.downcast_ref::<OpenError>().and_then(hint_of);
        at = cause.source();
    }
    match hint {
        Some(hint) => usage(format!("{}; {hint}", commands::error::chain(&local(error)))),
        None => local(error),
    }
}

fn hint_of(error: &OpenError) -> Option<&'static str> {
    match error {
        OpenError::Locked { .. } => {
            Some("a server uses it: leave --store away to ask the server, or stop the server first")
        }
        OpenError::NewerFormat { .. } => {
            Some("it was left as it is; use the version that wrote it or a newer one")
        }
        OpenError::Directory { .. } | OpenError::Engine(_) | OpenError::Thread(_) => None,
    }
}
