//! Up: the whole platform on this machine. Prepares the data directory, starts a process for each role, says when all
//! serve, keeps them up, and stops them in order. Knows which roles there are; never what they do.

pub mod args;

mod children;

mod words;

mod screen;

mod follow;

use std::cell::RefCell;
use std::collections::BTreeSet;
use std::fs::File;
use std::io::{self, Write};
use std::net::{SocketAddr, TcpListener};
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::Arc;
use std::time::Duration;

use jiff::Timestamp;
use tempfile::TempDir;
use tokio::sync::oneshot;
use tokio::time::Instant;

use self::args::{Config, UpArgs};
use self::children::Platform;
use self::screen::Screen;
use super::datadir::{DataDir, DataDirError};
use super::identities::{self, Names};
use super::lifeline::Lifeline;
use super::shell::{self, Failure, Threads};
use super::supervise::child::News;
use super::supervise::group::Group;
use super::supervise::output;
use super::telemetry::Format;
use super::{listen, node, notify};
use crate::manifest::{self, ManifestError};

/// How long the processes of a killed `strata up` are waited for; they end by themselves.
const LEFTOVER_LIMIT: Duration = Duration::from_secs(45);
/// Between two tries.
const LEFTOVER_PAUSE: Duration = Duration::from_millis(20);

/// Why there is no platform.
#[derive(Debug, thiserror::Error)]
pub enum UpError {
    /// Nobody can listen there.
    #[error("cannot listen at {address}{}", hint(.source))]
    Listen {
        /// Where.
        address: SocketAddr,
        /// Why not.
        #[source]
        source: io::Error,
    },
    /// Processes of an earlier `strata up` do not end.
    #[error(
        "processes of an earlier `strata up` on {path} are still running; end them (`ps` shows them as `strata \
         controller …` and `strata node …`) and try again"
    )]
    Leftover {
        /// The data directory.
        path: PathBuf,
    },
    /// No directory for a platform that keeps nothing.
    #[error("cannot make a directory in {place}; name another place with TMPDIR or --data-dir")]
    Scratch {
        /// Where temporary files are.
        place: PathBuf,
        /// Why not.
        #[source]
        source: io::Error,
    },
    /// A child cannot start.
    #[error("{name} cannot start, so everything was stopped: it {reason}")]
    Child {
        /// Which.
        name: String,
        /// How it ended, and the last thing it said.
        reason: String,
    },
    /// Told to stop twice.
    #[error(
        "all processes were killed, as it was told to stop twice; the next start finds everything as it was"
    )]
    Forced,
    /// Processes had to be killed to stop.
    #[error("some processes did not stop in time and were killed; --grace-seconds gives them more")]
    Killed,
}

fn hint(error: &io::Error) -> &'static str {
    match error.kind() {
        io::ErrorKind::AddrInUse => {
            ": the port is taken by another program; choose another with --listen, as `--listen :0` for a free one"
        }
        io::ErrorKind::PermissionDenied => ": not allowed; choose a port above 1023 with --listen",
        io::ErrorKind::AddrNotAvailable => {
            ": this machine does not have that address; choose another with --listen"
        }
        _ => "",
    }
}

/// Brings the platform up and keeps it up until told to stop.
pub fn run(mut args: UpArgs) -> ExitCode {
    let began = Instant::now();
    let scratch = match scratch(&args) {
        Ok(scratch) => scratch,
        Err(error) => return shell::finish(Err(Failure::lasting(error))),
    };
    args.data_dir = args.data_dir.take().or_else(|| scratch.as_ref().map(|dir| dir.path().to_owned()));
    let result = args::config(args, |name| std::env::var(name).ok()).map_err(Failure::lasting);
    shell::finish(result.and_then(|config| {
        shell::start(&config.log)?;
        let runtime = shell::runtime(Threads::One).map_err(Failure::passing)?;
        runtime.block_on(up(config, began))
    }))
}

/// The directory of a platform that keeps nothing, gone with the value; `None` where one was named or is kept.
fn scratch(args: &UpArgs) -> Result<Option<TempDir>, UpError> {
    if !args.server.in_memory || args.data_dir.is_some() {
        return Ok(None);
    }
    let made = tempfile::Builder::new().prefix("strata-").tempdir();
    made.map(Some).map_err(|source| UpError::Scratch { place: std::env::temp_dir(), source })
}

async fn up(config: Config, began: Instant) -> Result<(), Failure> {
    readable(&config).map_err(Failure::lasting)?;
    let mut lifeline = Lifeline::attach().map_err(Failure::passing)?;
    let data = DataDir::open(&config.data_dir).map_err(|error| match error {
        DataDirError::InUse { .. } => Failure::busy(error),
        error => Failure::lasting(error),
    })?;
    let lock = wait_for_children(&data, config.log.log_format).await?;
    let (listener, address) = bind(config.listen.0, data.is_unclean()).await.map_err(Failure::lasting)?;
    let host = rustix::system::uname().nodename().to_string_lossy().into_owned();
    let node_name = node::node_name(&host);
    let names = Names {
        host,
        node: node_name.clone(),
        address,
        more: config.names.clone(),
        controllers: config.controllers.iter().map(|name| name.as_str()).collect(),
    };
    let pki = identities::prepare(data.layout(), &names, Timestamp::now()).map_err(Failure::lasting)?;
    let stages = children::stages(&Platform {
        config: &config,
        layout: data.layout(),
        pki: &pki,
        node: &node_name,
        identity: &format!("{node_name}_up"),
        listener: (Arc::new(listener), address),
        lock: Arc::new(lock),
    });
    let waiting = stages.iter().flatten().map(|child| child.name.clone()).collect();
    let mut group = Group::start(stages, config.log.log_format);

    let kubeconfig = data.layout().kubeconfig();
    let screen = RefCell::new(Screen::new());
    let (ready, is_ready) = oneshot::channel();
    let work = async {
        if is_ready.await.is_ok() {
            greet(&config, &kubeconfig, address, began);
            follow_manifests(&config, &kubeconfig, &screen).await;
        }
        std::future::pending().await
    };
    let outcome = tokio::select! {
        failure = keep(&mut group, waiting, ready, &screen, config.log.log_format) => Err(failure),
        () = work => Ok(()),
        _ = lifeline.cut() => Ok(()),
    };
    stop(group, lifeline, &config, outcome, data).await
}

/// A manifest that cannot be read or is no manifest is told before anything is started. What comes on standard input
/// can be read once only, and is read when it is applied.
fn readable(config: &Config) -> Result<(), ManifestError> {
    let names = config.filenames.iter().map(|name| name.to_string_lossy().into_owned());
    let files: Vec<String> = names.filter(|name| name != "-").collect();
    if files.is_empty() {
        return Ok(());
    }
    manifest::load(&files, false).map(|_| ())
}

/// Says, once, that everything serves.
fn greet(config: &Config, kubeconfig: &Path, address: SocketAddr, began: Instant) {
    notify::tell(notify::Message::Ready);
    let program = std::env::current_exe().unwrap_or_else(|_| "strata".into());
    let elsewhere = std::env::var_os("KUBECONFIG").is_some();
    let current = std::env::current_dir().ok();
    let next = words::next(config, kubeconfig, &program, current.as_deref(), elsewhere);
    let line = words::ready(began.elapsed(), &listen::url(address), kubeconfig, &next);
    if !config.print_kubeconfig {
        return say(&line);
    }
    tell(config.log.log_format, &line);
    match one_line(kubeconfig) {
        Ok(line) => say(&line),
        Err(error) => tell(config.log.log_format, &format!("cannot print {}: {error}", kubeconfig.display())),
    }
}

/// A kubeconfig as JSON, which YAML readers take as well: a program that started us reads one line and has it.
fn one_line(kubeconfig: &Path) -> Result<String, Box<dyn std::error::Error>> {
    let text = std::fs::read_to_string(kubeconfig)?;
    let value: serde_json::Value = serde_saphyr::from_str(&text)?;
    Ok(serde_json::to_string(&value)?)
}

/// Applies what `-f` names and follows it. What goes wrong there is told, and the platform stays up.
async fn follow_manifests(config: &Config, kubeconfig: &Path, screen: &RefCell<Screen>) {
    if config.filenames.is_empty() {
        return;
    }
    match follow::run(kubeconfig, &config.filenames, screen).await {
        Ok(took) if config.print_kubeconfig => tell(config.log.log_format, &words::converged(took)),
        Ok(took) => say(&words::converged(took)),
        Err(lines) => {
            lines.iter().for_each(|line| output::print(line));
            tell(
                config.log.log_format,
                "the platform stays up without that; apply it again with `strata apply -f FILE`",
            );
        }
    }
    screen.borrow_mut().release();
}

/// Keeps the children running; ends only when one cannot start.
async fn keep(
    group: &mut Group,
    mut waiting: BTreeSet<String>,
    ready: oneshot::Sender<()>,
    screen: &RefCell<Screen>,
    format: Format,
) -> Failure {
    let mut ready = Some(ready);
    loop {
        let Some((name, news)) = group.news().await else {
            return Failure::passing("all processes ended");
        };
        if let Some(line) = words::news(&name, &news, ready.is_none()) {
            screen.borrow_mut().release();
            tell(format, &line);
        }
        match news {
            News::Ready => {
                waiting.remove(&name);
                if waiting.is_empty()
                    && let Some(ready) = ready.take()
                    && ready.send(()).is_err()
                {
                    tracing::debug!("nobody waits for the platform");
                }
            }
            News::GivenUp { reason } => return Failure::lasting(UpError::Child { name, reason }),
            News::Started { .. } | News::Ended { .. } | News::Stopped => {}
        }
    }
}

/// Stops everything in order; being told again forces it.
async fn stop(
    group: Group,
    mut lifeline: Lifeline,
    config: &Config,
    outcome: Result<(), Failure>,
    data: DataDir,
) -> Result<(), Failure> {
    tell(config.log.log_format, "stopping; again to force it");
    let mut told_twice = false;
    let force = async {
        lifeline.cut().await;
        told_twice = true;
    };
    let stopping =
        group.stop(config.grace, force, |name, news| tracing::debug!(name, ?news, "stopping")).await;
    data.close().map_err(Failure::passing)?;
    outcome?;
    match (stopping.killed, told_twice) {
        (false, _) => Ok(()),
        (true, true) => Err(Failure::forced(UpError::Forced)),
        (true, false) => Err(Failure::forced(UpError::Killed)),
    }
}

/// Waits until no process of an earlier `strata up` is left, and takes the lock that ours will hold.
async fn wait_for_children(data: &DataDir, format: Format) -> Result<File, Failure> {
    let end = Instant::now() + LEFTOVER_LIMIT;
    let mut told = false;
    loop {
        if let Some(lock) = data.children_lock().map_err(Failure::lasting)? {
            return Ok(lock);
        }
        if Instant::now() >= end {
            return Err(Failure::busy(UpError::Leftover { path: data.layout().root().to_owned() }));
        }
        if !told {
            tell(format, "processes of an earlier `strata up` are still ending; waiting for them");
            told = true;
        }
        tokio::time::sleep(LEFTOVER_PAUSE).await;
    }
}

/// Takes the address. After a platform was killed its port is waited for, since its processes are still ending.
async fn bind(address: SocketAddr, unclean: bool) -> Result<(TcpListener, SocketAddr), UpError> {
    let end = Instant::now() + if unclean { LEFTOVER_LIMIT } else { Duration::ZERO };
    let failed = |source| UpError::Listen { address, source };
    loop {
        match TcpListener::bind(address) {
            Ok(listener) => {
                let actual = listener.local_addr().map_err(failed)?;
                return Ok((listener, actual));
            }
            Err(error) if error.kind() == io::ErrorKind::AddrInUse && Instant::now() < end => {
                tokio::time::sleep(LEFTOVER_PAUSE).await;
            }
            Err(error) => return Err(failed(error)),
        }
    }
}

/// Data for standard output. Who closed it does not want to know.
fn say(line: &str) {
    if let Err(error) = writeln!(io::stdout().lock(), "{line}") {
        tracing::debug!(%error, "standard output is closed");
    }
}

/// Talk, for standard error.
fn tell(format: Format, line: &str) {
    output::print(&output::own(format, line));
}
