//! The commands that talk to a server, with kubectl's grammar, output and exit codes. All of them go through
//! `strata-client`; none knows a role.

pub mod error;

pub mod connection;

pub mod session;

pub mod target;

pub mod printing;

mod get;

use std::process::ExitCode;

use clap::{Args, Subcommand};

use self::connection::ConnectionArgs;
use self::error::CliResult;
use self::session::Session;
use crate::output::stdout;

/// A command's arguments and the connection flags behind them.
#[derive(Debug, Args)]
pub struct With<A: Args> {
    #[command(flatten)]
    args: A,
    #[command(flatten)]
    connection: ConnectionArgs,
}

/// The resource commands; `main` flattens them into the top level of the command tree.
#[derive(Debug, Subcommand)]
#[allow(clippy::large_enum_variant, reason = "made once a process")]
pub enum ResourceCommand {
    /// Print objects, as a table or in any form
    #[command(visible_alias = "list", after_help = get::EXAMPLES)]
    Get(With<get::GetArgs>),
    /// Print objects, and then every change, until Ctrl-C
    #[command(after_help = get::EXAMPLES)]
    Watch(With<get::WatchArgs>),
}

/// Runs a command to its end. `before` are the connection flags that stood before the command.
pub fn run(before: ConnectionArgs, command: ResourceCommand) -> ExitCode {
    let runtime = match tokio::runtime::Builder::new_current_thread().enable_all().build() {
        Ok(runtime) => runtime,
        Err(error) => {
            stdout::say(&format!("error: cannot start: {error}"));
            return ExitCode::FAILURE;
        }
    };
    runtime.block_on(dispatch(before, command))
}

async fn dispatch(before: ConnectionArgs, command: ResourceCommand) -> ExitCode {
    match command {
        ResourceCommand::Get(with) => online(before, with, get::get).await,
        ResourceCommand::Watch(with) => online(before, with, get::watch).await,
    }
}

/// Runs a command that needs a server.
async fn online<A: Args>(
    before: ConnectionArgs,
    with: With<A>,
    run: impl AsyncFnOnce(&Session, A) -> CliResult,
) -> ExitCode {
    let session = match Session::open(&with.connection.or(before)) {
        Ok(session) => session,
        Err(error) => return finish("", Err(error)),
    };
    let outcome = run(&session, with.args).await;
    finish(&session.origin, outcome)
}

fn finish(origin: &str, outcome: CliResult) -> ExitCode {
    match outcome {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            for line in error.lines(origin) {
                stdout::say(&line);
            }
            error.code()
        }
    }
}
