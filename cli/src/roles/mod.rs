//! The processes of the platform, one subcommand each. Every role builds its own runtime and owns all of its flags: the
//! connection flags of the resource commands are not among them, so any name and letter is free here. Knows nothing of
//! the resource commands.

use std::process::ExitCode;

use clap::Subcommand;

/// The roles; `main` flattens them into the top level of the command tree.
#[derive(Debug, Subcommand)]
pub enum RoleCommand {}

/// Runs a role to its end. The code is that of the process.
pub fn run(role: RoleCommand) -> ExitCode {
    match role {}
}
