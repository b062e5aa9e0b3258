//! The flags of `strata up`, and the plain configuration they mean.

use std::net::IpAddr;
use std::path::PathBuf;
use std::time::Duration;

use clap::Args;
use strata_stack::process::Name;

use crate::roles::apiserver::ServerArgs;
use crate::roles::choice::{self, ChoiceError};
use crate::roles::datadir::{self, DataDirError};
use crate::roles::listen::{self, Listen};
use crate::roles::node::{AgentArgs, RuntimeKind};
use crate::roles::pki::leaf::San;
use crate::roles::telemetry::LogArgs;

/// The flags.
#[derive(Clone, Debug, Args)]
pub struct UpArgs {
    /// Where everything is kept [default: $XDG_DATA_HOME/strata, else ~/.local/share/strata]
    #[arg(long, value_name = "DIR", env = "STRATA_DATA_DIR")]
    pub data_dir: Option<PathBuf>,
    /// Manifests to apply once the platform is ready, and to follow until they are true; a file or a directory, again
    /// for more.
    #[arg(short = 'f', long = "filename", value_name = "FILE|DIR")]
    pub filenames: Vec<PathBuf>,
    /// Address and port of the API server; `:0` takes a free port.
    #[arg(long, value_name = "ADDRESS", default_value = listen::DEFAULT, env = "STRATA_LISTEN")]
    pub listen: Listen,
    /// A further name or address by which clients reach the API server; again for more.
    #[arg(long, value_name = "NAME", env = "STRATA_TLS_SAN", value_delimiter = ',')]
    pub tls_san: Vec<String>,
    /// Controllers to run: names, `*` for all, `-NAME` for all but one.
    #[arg(
        long,
        value_name = "LIST",
        default_value = "*",
        value_delimiter = ',',
        allow_hyphen_values = true,
        env = "STRATA_CONTROLLERS"
    )]
    pub controllers: Vec<String>,
    /// Once all serve, print the administrator's kubeconfig as one line of JSON, and nothing else on standard output.
    #[arg(long)]
    pub print_kubeconfig: bool,
    #[command(flatten)]
    pub agent: AgentArgs,
    #[command(flatten)]
    pub server: ServerArgs,
    /// How long stopping may take before processes are killed.
    #[arg(long, value_name = "SECONDS", default_value_t = 45, env = "STRATA_GRACE_SECONDS")]
    pub grace_seconds: u32,
    #[command(flatten)]
    pub log: LogArgs,
}

/// What `strata up` is to do.
#[derive(Clone, Debug)]
pub struct Config {
    /// The data directory.
    pub data_dir: PathBuf,
    /// Whether that is the one that commands find by themselves.
    pub is_default_dir: bool,
    /// Manifests to apply.
    pub filenames: Vec<PathBuf>,
    /// Where the API server listens.
    pub listen: Listen,
    /// Further names of the API server.
    pub names: Vec<San>,
    /// Controllers to run.
    pub controllers: Vec<Name>,
    /// Whether standard output carries the kubeconfig alone.
    pub print_kubeconfig: bool,
    /// The node agent's settings.
    pub agent: AgentArgs,
    /// The API server's settings.
    pub server: ServerArgs,
    /// How long stopping may take.
    pub grace: Duration,
    /// What is logged, by all.
    pub log: LogArgs,
}

/// Flags that do not go together.
#[derive(Debug, thiserror::Error)]
pub enum ArgsError {
    /// No place for the data.
    #[error(transparent)]
    DataDir(#[from] DataDirError),
    /// `--controllers` makes no sense.
    #[error("--controllers")]
    Controllers(#[from] ChoiceError),
    /// Several nodes were asked for where there is one machine.
    #[error("--nodes {0}: only simulated nodes can be many; add --runtime simulated")]
    Nodes(u32),
}

/// What the flags mean. Pure over the environment.
///
/// # Errors
/// Flags that do not go together.
pub fn config(args: UpArgs, env: impl Fn(&str) -> Option<String>) -> Result<Config, ArgsError> {
    let default = datadir::default_root(env);
    let (data_dir, is_default_dir) = match args.data_dir {
        Some(dir) => {
            let is_default = default.is_ok_and(|default| default == dir);
            (dir, is_default)
        }
        None => (default?, true),
    };
    if args.agent.nodes > 1 && args.agent.runtime == RuntimeKind::Process {
        return Err(ArgsError::Nodes(args.agent.nodes));
    }
    let san = |name: String| name.parse::<IpAddr>().map_or(San::Name(name), San::Address);
    Ok(Config {
        data_dir,
        is_default_dir,
        filenames: args.filenames,
        listen: args.listen,
        names: args.tls_san.into_iter().map(san).collect(),
        controllers: choice::controllers(&args.controllers)?,
        print_kubeconfig: args.print_kubeconfig,
        agent: args.agent,
        server: args.server,
        grace: Duration::from_secs(args.grace_seconds.into()),
        log: args.log,
    })
}
