//! `strata`: the one binary. Here is the tree of its commands and nothing else: roles (the processes of the platform)
//! live in `roles`, the commands that talk to a server in `commands`. Knows nothing of what either does.

mod output;

mod manifest;

mod why;

mod commands;

mod roles;

use std::process::ExitCode;

use clap::{CommandFactory as _, Parser, Subcommand};

use crate::commands::connection::ConnectionArgs;

/// A platform that holds the actual world to what was declared, layer by layer.
#[derive(Debug, Parser)]
#[command(name = "strata", version, propagate_version = false, disable_help_subcommand = true)]
struct Cli {
    /// Flags that may stand before the command as well as behind it.
    #[command(flatten)]
    connection: ConnectionArgs,
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
#[allow(clippy::large_enum_variant, reason = "made once a process")]
enum Command {
    #[command(flatten)]
    Role(roles::RoleCommand),
    #[command(flatten)]
    Resource(commands::ResourceCommand),
}

fn main() -> ExitCode {
    let cli = Cli::parse();
    match cli.command {
        Command::Role(role) => roles::run(role),
        Command::Resource(command) => commands::run(cli.connection, command, Cli::command),
    }
}
