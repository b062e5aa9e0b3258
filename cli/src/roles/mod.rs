//! The processes of the platform, one subcommand each. Every role builds its own runtime and owns all of its flags: the
//! connection flags of the resource commands are not among them, so any name and letter is free here; only work on a
//! store may be work with its server, and takes them. Knows nothing of the resource commands.

mod exit;

mod files;

mod datadir;

mod pki;

mod listen;

mod choice;

mod identities;

mod telemetry;

mod notify;

mod lifeline;

mod supervise;

mod shell;

mod client;

mod etcd;

mod apiserver;

mod store;

mod controller;

mod node;

mod serve_http;

mod up;

use std::ffi::OsString;
use std::process::ExitCode;

use clap::{Args, Subcommand};

use crate::commands::connection::ConnectionArgs;

/// The roles; `main` flattens them into the top level of the command tree.
#[derive(Debug, Subcommand)]
pub enum RoleCommand {
    /// Bring up a whole platform on this machine, and keep it up
    Up(up::args::UpArgs),
    /// Run the API server alone
    Apiserver(apiserver::ApiserverArgs),
    /// Run one controller alone
    Controller(controller::ControllerArgs),
    /// Run the node agent alone
    Node(node::NodeArgs),
    /// Back up, restore, verify, compact and measure the data behind an API server
    Store(store::StoreArgs),
    /// Supervise one container; the node agent starts it
    #[command(hide = true)]
    Shim(ShimArgs),
    /// Serve a small page that says hello, for examples
    #[command(hide = true, name = "serve-http")]
    ServeHttp(serve_http::ServeHttpArgs),
}

/// What the node agent says to a shim; it alone knows the words.
#[derive(Debug, Args)]
pub struct ShimArgs {
    #[arg(trailing_var_arg = true, allow_hyphen_values = true, value_name = "ARG")]
    words: Vec<OsString>,
}

/// Runs a role to its end. The code is that of the process. `before` are the connection flags that stood before the
/// command; only work on a server's store has any use for them.
pub fn run(before: ConnectionArgs, role: RoleCommand) -> ExitCode {
    match role {
        RoleCommand::Up(args) => up::run(args),
        RoleCommand::Apiserver(args) => apiserver::run(args),
        RoleCommand::Controller(args) => controller::run(args),
        RoleCommand::Node(args) => node::run(args),
        RoleCommand::Store(args) => store::run(before, args),
        RoleCommand::Shim(args) => strata_stack::node::shim::main(args.words),
        RoleCommand::ServeHttp(args) => serve_http::run(args),
    }
}
