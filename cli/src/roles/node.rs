//! Node: the role that holds processes to the pods bound to a machine. Turns flags into the agent's configuration.

use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::Duration;

use clap::{Args, ValueEnum};
use strata_runtime::admin::listen::Places;
use strata_stack::node::agent::serve::Tls;
use strata_stack::node::agent::{self, Config, NodeError, Stop};

use super::files::FileError;
use super::lifeline::Cause;
use super::shell::{self, Failure, Threads};
use super::telemetry::LogArgs;
use super::{client, notify};

/// How long a simulated container takes to start: long enough to be seen starting.
const SIMULATED_START: Duration = Duration::from_millis(20);

/// What runs the containers of pods.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub enum RuntimeKind {
    /// Real processes of this machine, for containers whose image is `host`.
    #[default]
    Process,
    /// Nothing runs; pods look as if it did.
    Simulated,
}

impl RuntimeKind {
    /// As it is written in a flag.
    pub fn as_str(self) -> &'static str {
        match self {
            RuntimeKind::Process => "process",
            RuntimeKind::Simulated => "simulated",
        }
    }
}

/// The settings of a node agent that `strata up` takes as well and hands on.
#[derive(Clone, Debug, Args)]
pub struct AgentArgs {
    /// What runs containers: real processes, or nothing at all.
    #[arg(long, value_enum, default_value_t, env = "STRATA_RUNTIME")]
    pub runtime: RuntimeKind,
    /// How many nodes to simulate [with --runtime simulated]
    #[arg(long, value_name = "N", default_value_t = 1, env = "STRATA_NODES",
          value_parser = clap::value_parser!(u32).range(1..=10_000))]
    pub nodes: u32,
    /// Leave the pods' processes running when the agent is stopped; its next start finds them again.
    #[arg(long, env = "STRATA_KEEP_WORKLOADS")]
    pub keep_workloads: bool,
}

/// The flags of `strata node`.
#[derive(Clone, Debug, Args)]
pub struct NodeArgs {
    /// The kubeconfig with the server and the node's identity.
    #[arg(long, value_name = "FILE", env = "KUBECONFIG")]
    pub kubeconfig: PathBuf,
    /// Directory of what runs and of its logs; created where it is missing.
    #[arg(long, value_name = "DIR", env = "STRATA_NODE_ROOT")]
    pub root: PathBuf,
    /// The node's name, or what the simulated ones' begin with; default the machine's.
    #[arg(long, value_name = "NAME", env = "STRATA_NODE_NAME")]
    pub name: Option<String>,
    /// Certificate to serve logs with, PEM.
    #[arg(long, value_name = "FILE", env = "STRATA_TLS_CERT_FILE")]
    pub tls_cert_file: PathBuf,
    /// Its private key, PEM.
    #[arg(long, value_name = "FILE", env = "STRATA_TLS_PRIVATE_KEY_FILE")]
    pub tls_private_key_file: PathBuf,
    /// Authorities whose client certificates are believed, PEM.
    #[arg(long, value_name = "FILE", env = "STRATA_CLIENT_CA_FILE")]
    pub client_ca_file: PathBuf,
    /// Address and port to serve logs at; port 0 takes a free one.
    #[arg(long, value_name = "ADDRESS", default_value = "127.0.0.1:0", env = "STRATA_NODE_LISTEN")]
    pub listen: SocketAddr,
    /// Address and port for /livez, /readyz, /metrics and /debug/queue; none if not given.
    #[arg(long, value_name = "ADDRESS", env = "STRATA_ADMIN_LISTEN")]
    pub admin_listen: Option<SocketAddr>,
    /// Unix socket for the same, by which `strata queue` finds the process; none if not given.
    #[arg(long, value_name = "FILE", env = "STRATA_ADMIN_SOCKET")]
    pub admin_socket: Option<PathBuf>,
    #[command(flatten)]
    pub agent: AgentArgs,
    #[command(flatten)]
    pub log: LogArgs,
}

/// Holds the node to its pods until told to stop.
pub fn run(args: NodeArgs) -> ExitCode {
    let log = args.log.clone();
    shell::run(&log, Threads::One, move |stop| async move {
        let keep = args.agent.keep_workloads;
        let config = config(args)?;
        let stopped = async move {
            match stop.await {
                // Who asks means it; a killed supervisor will be followed by another, which finds what runs.
                Ok(Cause::Asked) if !keep => Stop::StopPods,
                _ => Stop::LeavePods,
            }
        };
        let ready = || notify::tell(notify::Message::Ready);
        Box::pin(agent::run(config, ready, stopped)).await.map_err(failure)
    })
}

fn failure(error: NodeError) -> Failure {
    if error.is_busy() {
        Failure::busy(error)
    } else if error.is_lasting() {
        Failure::lasting(error)
    } else {
        Failure::passing(error)
    }
}

/// What the flags mean to the agent; reads the files that they name.
fn config(args: NodeArgs) -> Result<Config, Failure> {
    let host = || rustix::system::uname().nodename().to_string_lossy().into_owned();
    Ok(Config {
        name: args.name.unwrap_or_else(|| node_name(&host())),
        nodes: args.agent.nodes,
        runtime: match args.agent.runtime {
            RuntimeKind::Process => agent::RuntimeKind::Process,
            RuntimeKind::Simulated => agent::RuntimeKind::Simulated,
        },
        root: args.root,
        simulated_start: SIMULATED_START,
        client: client::config(&args.kubeconfig, "node")?,
        tls: Tls {
            certificate_pem: read(&args.tls_cert_file)?,
            key_pem: read(&args.tls_private_key_file)?,
            client_ca_pem: read(&args.client_ca_file)?,
        },
        listen: args.listen,
        admin: Places { address: args.admin_listen, socket: args.admin_socket },
    })
}

fn read(path: &Path) -> Result<Vec<u8>, Failure> {
    std::fs::read(path).map_err(FileError::of("read", path)).map_err(Failure::lasting)
}

/// The name of a machine's node: that of the machine, in the form that names of objects have. Pure.
pub fn node_name(host: &str) -> String {
    let name: String = host
        .to_ascii_lowercase()
        .chars()
        .map(|c| if c.is_ascii_alphanumeric() || c == '-' || c == '.' { c } else { '-' })
        .collect();
    let name = name.trim_matches(['-', '.']);
    if name.is_empty() { "node".to_owned() } else { name.to_owned() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn any_machine_has_a_node_name() {
        assert_eq!(node_name("My_Laptop.local"), "my-laptop.local");
        assert_eq!(node_name("-"), "node");
    }
}
