//! The commands that talk to a server, with kubectl's grammar, output and exit codes. All of them go through
//! `strata-client`; none knows a role.

pub mod connection;

use std::process::ExitCode;

use clap::Subcommand;

use self::connection::ConnectionArgs;

/// The resource commands; `main` flattens them into the top level of the command tree.
#[derive(Debug, Subcommand)]
pub enum ResourceCommand {
    /// Print the version
    Version,
}

/// Runs a command to its end. `before` are the connection flags that stood before the command.
pub fn run(before: ConnectionArgs, command: ResourceCommand) -> ExitCode {
    drop(before);
    match command {
        ResourceCommand::Version => println!("strata {}", env!("CARGO_PKG_VERSION")),
    }
    ExitCode::SUCCESS
}
