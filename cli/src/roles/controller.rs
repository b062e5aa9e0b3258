//! Controller: the role that runs one controller by its name, or several in one process. Turns flags into their options;
//! knows no controller.

use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use clap::Args;
use clap::builder::PossibleValuesParser;
use strata_client::client::Client;
use strata_runtime::admin::board::Board;
use strata_runtime::admin::listen::{Listeners, Places};
use strata_runtime::pool::Pool;
use strata_runtime::run::{Options, Ready, RunError};
use strata_stack::certificates::authority;
use strata_stack::process::{self, Name, Settings};
use tokio::sync::watch;
use tokio::task::JoinSet;
use uuid::Uuid;

use super::shell::{self, Failure, Threads};
use super::telemetry::LogArgs;
use super::{client, files, notify};

/// The flags of `strata controller`.
#[derive(Clone, Debug, Args)]
pub struct ControllerArgs {
    /// Which controller; several, separated by commas, run in one process.
    #[arg(value_parser = PossibleValuesParser::new(Name::ALL.map(Name::as_str)), value_name = "NAME",
          value_delimiter = ',', num_args = 1, required = true)]
    pub names: Vec<String>,
    /// The kubeconfig with the server and the controller's identity; or a directory that has a NAME.kubeconfig for each.
    #[arg(long, value_name = "FILE|DIR", env = "KUBECONFIG")]
    pub kubeconfig: PathBuf,
    /// Who holds the leader lease; never that of two processes at a time [default: a new one].
    #[arg(long, value_name = "NAME", env = "STRATA_IDENTITY")]
    pub identity: Option<String>,
    /// Address and port for /livez, /readyz, /metrics and /debug/queue; none if not given.
    #[arg(long, value_name = "ADDRESS", env = "STRATA_ADMIN_LISTEN")]
    pub admin_listen: Option<SocketAddr>,
    /// Unix socket for the same, by which `strata queue` finds the process; none if not given.
    #[arg(long, value_name = "FILE", env = "STRATA_ADMIN_SOCKET")]
    pub admin_socket: Option<PathBuf>,
    /// For nodelifecycle: how long a node may be silent before it counts as lost.
    #[arg(long, value_name = "SECONDS", default_value_t = 40, env = "STRATA_NODE_GRACE_SECONDS",
        value_parser = clap::value_parser!(u32).range(1..=86_400))]
    pub node_grace_seconds: u32,
    /// For application: where what is fetched from repositories is kept [default: a new folder for temporary files].
    #[arg(long, value_name = "FOLDER", env = "STRATA_REPOSITORY_CACHE")]
    pub repository_cache: Option<PathBuf>,
    /// For application: address and port for /api/webhook, by which GitHub, GitLab and Gitea tell of pushes; none if not
    /// given.
    #[arg(long, value_name = "ADDRESS", env = "STRATA_WEBHOOK_LISTEN")]
    pub webhook_listen: Option<SocketAddr>,
    /// For certificatesigning: the authority that signs, PEM.
    #[arg(
        long,
        value_name = "FILE",
        env = "STRATA_CLUSTER_SIGNING_CERT_FILE",
        requires = "cluster_signing_key_file"
    )]
    pub cluster_signing_cert_file: Option<PathBuf>,
    /// Its private key, PEM; without it nothing is signed.
    #[arg(
        long,
        value_name = "FILE",
        env = "STRATA_CLUSTER_SIGNING_KEY_FILE",
        requires = "cluster_signing_cert_file"
    )]
    pub cluster_signing_key_file: Option<PathBuf>,
    #[command(flatten)]
    pub log: LogArgs,
}

/// Settings with the authority of two files, where they are given.
fn signing(certificate: Option<&Path>, key: Option<&Path>) -> Result<Settings, Failure> {
    let (Some(certificate), Some(key)) = (certificate, key) else { return Ok(Settings::default()) };
    let read = |path: &Path| {
        let text = files::read_text(path).map_err(Failure::lasting)?;
        text.ok_or_else(|| Failure::lasting(SigningFile(path.to_owned())))
    };
    let signing = authority(&read(certificate)?, &read(key)?).map_err(Failure::lasting)?;
    Ok(Settings { signing: Some(signing), ..Settings::default() })
}

/// A file of the authority that is not there.
#[derive(Debug, thiserror::Error)]
#[error("there is no file {} to sign certificates with", .0.display())]
struct SigningFile(PathBuf);

/// Reconciles until told to stop. Where one of several controllers ends by itself, so does the process.
pub fn run(args: ControllerArgs) -> ExitCode {
    let log = args.log.clone();
    shell::run(&log, Threads::One, move |stop| async move {
        let places = Places { address: args.admin_listen, socket: args.admin_socket };
        let listeners = Listeners::bind(&places).await.map_err(Failure::lasting)?;
        let (board, pool) = (Arc::new(Board::default()), Arc::new(Pool::default()));
        let identity = args.identity.unwrap_or_else(|| Uuid::new_v4().to_string());
        let missing = Arc::new(AtomicUsize::new(args.names.len()));
        let node_grace = Duration::from_secs(args.node_grace_seconds.into());
        let signing =
            signing(args.cluster_signing_cert_file.as_deref(), args.cluster_signing_key_file.as_deref())?;
        let (end, ending) = watch::channel(false);
        let mut controllers = JoinSet::new();
        for name in &args.names {
            let name: Name = name.parse().map_err(Failure::lasting)?;
            let (client, root_ca) = connect(&args.kubeconfig, name)?;
            let settings = Settings {
                node_grace,
                root_ca,
                cache: args.repository_cache.clone(),
                webhooks: args.webhook_listen,
                ..signing.clone()
            };
            let options = Options {
                identity: Some(identity.clone()),
                board: Some(Arc::clone(&board)),
                pool: Arc::clone(&pool),
                ready: Some(ready(&missing)),
                ..Options::default()
            };
            controllers.spawn(process::run(name, settings, client, options, ended(ending.clone())));
        }
        let serving = listeners.serve(board);
        tokio::select! {
            stopped = stop => if let Err(error) = stopped {
                tracing::debug!(%error, "nobody can stop this process any more");
            },
            Some(first) = controllers.join_next() => outcome(first)?,
            () = serving => {}
        }
        end.send_replace(true);
        while let Some(next) = controllers.join_next().await {
            outcome(next)?;
        }
        Ok(())
    })
}

/// A client, and the authority that it believes: what runs in namespaces is to believe the same.
fn connect(kubeconfig: &Path, name: Name) -> Result<(Client, Option<Arc<str>>), Failure> {
    let file = match kubeconfig.is_dir() {
        true => kubeconfig.join(format!("{name}.kubeconfig")),
        false => kubeconfig.to_owned(),
    };
    let config = client::config(&file, name.as_str())?;
    let authority = config.ca_pem.as_deref().map(|pem| String::from_utf8_lossy(pem).into());
    Ok((Client::new(&config).map_err(Failure::lasting)?, authority))
}

/// What a controller says when its cache is complete: the last one speaks for the process.
fn ready(missing: &Arc<AtomicUsize>) -> Ready {
    let missing = Arc::clone(missing);
    Box::new(move || {
        if missing.fetch_sub(1, Ordering::AcqRel) == 1 {
            notify::tell(notify::Message::Ready);
        }
    })
}

async fn ended(mut ending: watch::Receiver<bool>) {
    if let Err(error) = ending.wait_for(|end| *end).await {
        tracing::debug!(%error, "nobody can stop this controller any more");
    }
}

fn outcome(ended: Result<Result<(), RunError>, tokio::task::JoinError>) -> Result<(), Failure> {
    match ended {
        Ok(result) => result.map_err(failure),
        Err(error) => Err(Failure::passing(error)),
    }
}

fn failure(error: RunError) -> Failure {
    match error {
        RunError::Watches(_) => Failure::lasting(error),
        RunError::LeaseLost(_) | RunError::Ended { .. } => Failure::passing(error),
    }
}
