//! Controller: the role that runs one controller by its name. Turns flags into its options; knows no controller.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::process::ExitCode;

use clap::Args;
use clap::builder::PossibleValuesParser;
use strata_client::client::Client;
use strata_runtime::run::{Options, RunError};
use strata_stack::process::{self, Name};
use uuid::Uuid;

use super::shell::{self, Failure, Threads};
use super::telemetry::LogArgs;
use super::{client, notify};

/// The flags of `strata controller`.
#[derive(Clone, Debug, Args)]
pub struct ControllerArgs {
    /// Which controller.
    #[arg(value_parser = PossibleValuesParser::new(Name::ALL.map(Name::as_str)))]
    pub name: String,
    /// The kubeconfig with the server and the controller's identity.
    #[arg(long, value_name = "FILE", env = "KUBECONFIG")]
    pub kubeconfig: PathBuf,
    /// Who holds the leader lease; never that of two processes at a time [default: a new one].
    #[arg(long, value_name = "NAME", env = "STRATA_IDENTITY")]
    pub identity: Option<String>,
    /// Address and port for /livez, /readyz, /metrics and /debug/queue; none if not given.
    #[arg(long, value_name = "ADDRESS", env = "STRATA_ADMIN_LISTEN")]
    pub admin_listen: Option<SocketAddr>,
    #[command(flatten)]
    pub log: LogArgs,
}

/// Reconciles until told to stop.
pub fn run(args: ControllerArgs) -> ExitCode {
    let log = args.log.clone();
    shell::run(&log, Threads::One, move |stop| async move {
        let name: Name = args.name.parse().map_err(Failure::lasting)?;
        let config = client::config(&args.kubeconfig, name.as_str())?;
        let client = Client::new(&config).map_err(Failure::lasting)?;
        let options = Options {
            identity: Some(args.identity.unwrap_or_else(|| Uuid::new_v4().to_string())),
            admin_listen: args.admin_listen,
            ready: Some(Box::new(|| notify::tell(notify::Message::Ready))),
            ..Options::default()
        };
        let stopped = async {
            if let Err(error) = stop.await {
                tracing::debug!(%error, "nobody can stop this process any more");
            }
        };
        Box::pin(process::run(name, client, options, stopped)).await.map_err(failure)
    })
}

fn failure(error: RunError) -> Failure {
    match error {
        RunError::Admin { .. } | RunError::Watches(_) => Failure::lasting(error),
        RunError::LeaseLost(_) | RunError::Ended { .. } => Failure::passing(error),
    }
}
