//! `strata`: the one binary. Here is the tree of its commands and nothing else: roles (the processes of the platform)
//! live in `roles`, the commands that talk to a server in `commands`. Knows nothing of what either does.

mod output;

mod manifest;

mod why;

mod commands;

mod roles;

mod help;

mod mistakes;

use std::process::ExitCode;

use clap::{CommandFactory as _, FromArgMatches as _, Parser, Subcommand};

use crate::commands::connection::ConnectionArgs;
use crate::output::stdout;

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
    let tree = help::grouped(commands::reach_down(Cli::command()));
    let cli = match tree.try_get_matches().and_then(|matches| Cli::from_arg_matches(&matches)) {
        Ok(cli) => cli,
        Err(error) => return refused(&error),
    };
    match cli.command {
        Command::Role(role) => roles::run(cli.connection, role),
        Command::Resource(command) => commands::run(cli.connection, command, Cli::command),
    }
}

/// Help is data and a success; a command that makes no sense is said on stderr, and ends with 1 as in kubectl.
fn refused(error: &clap::Error) -> ExitCode {
    if error.use_stderr() {
        let text = mistakes::explained(error).unwrap_or_else(|| error.render().to_string());
        stdout::say(text.trim_end());
        return ExitCode::FAILURE;
    }
    match stdout::data(&error.render().to_string()) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            stdout::say(&format!("error: {error}"));
            ExitCode::FAILURE
        }
    }
}
