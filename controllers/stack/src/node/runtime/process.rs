//! The runtime for image `host`: each attempt is a shim and its command on this machine. It must never keep
//! state that is not in the attempts' directories, since a restarted agent has nothing else.

mod environment;
mod exec;
mod watch;

use std::collections::BTreeMap;
use std::fs::OpenOptions;
use std::io::{self, Write};
use std::os::fd::OwnedFd;
use std::os::unix::fs::OpenOptionsExt;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use jiff::Timestamp;
use rustix::process::Signal;
use strata_model::object::ObjectKey;
use strata_plan::pod::observed::{
    ContainerKey, ContainerState, Exit, ExitReason, Launch, ObservedContainer, StopCause,
};
use tokio::runtime::Handle;
use tracing::{info, warn};

use super::changes::Changes;
use super::{BoxFuture, ExecResult, LogSource, ProbeAnswer, Runtime, RuntimeError};
use crate::node::attempt::{self, AttemptDir, Facts, Record};
use crate::node::procfs::{self, Identity};
use crate::node::shim::log::Limits;
use crate::node::shim::order::{RunOrder, StopOrder};

/// The one image that this runtime runs: the machine itself.
pub const HOST_IMAGE: &str = "host";
/// How long past its grace a shim may take before it is ended itself.
const SHIM_MARGIN: Duration = Duration::from_secs(15);
/// How often the processes of a lost attempt are looked for, until none is left.
const SWEEPS: usize = 20;

/// How the runtime is set up.
#[derive(Clone, Debug)]
pub struct Config {
    /// The directory below which everything is kept; created private.
    pub root: PathBuf,
    /// The program that has the `shim` role as its first argument's meaning; usually `/proc/self/exe`.
    pub shim: PathBuf,
    /// The bounds of each log.
    pub log: Limits,
}

impl Config {
    /// The usual set-up: our own binary and the default log bounds.
    pub fn new(root: PathBuf) -> Self {
        Self { root, shim: PathBuf::from("/proc/self/exe"), log: Limits::default() }
    }
}

/// Runs containers as supervised processes.
pub struct ProcessRuntime {
    shared: Arc<Shared>,
}

/// What the runtime and its watchers share.
struct Shared {
    root: PathBuf,
    shim: PathBuf,
    log: Limits,
    boot_id: String,
    handle: Handle,
    changes: Changes,
    /// Attempts with a watcher; those being started here have no identity yet.
    watched: Mutex<BTreeMap<ContainerKey, watch::Watched>>,
}

impl ProcessRuntime {
    /// Opens the runtime in its directory and adopts what runs there.
    ///
    /// Must be called within a tokio runtime with IO; it carries the watchers, which end with this value.
    pub fn open(config: Config) -> Result<Self, RuntimeError> {
        attempt::create_private_dir(&config.root)?;
        let root = config.root.canonicalize().map_err(attempt::io_error("find", &config.root))?;
        let boot_path = Path::new("/proc/sys/kernel/random/boot_id");
        let boot_id = procfs::boot_id().map_err(attempt::io_error("read", boot_path))?;
        let shared = Arc::new(Shared {
            root,
            shim: config.shim,
            log: config.log,
            boot_id,
            handle: Handle::current(),
            changes: Changes::default(),
            watched: Mutex::default(),
        });
        let runtime = Self { shared };
        let mut adopted = 0;
        for pod in runtime.pods()? {
            for container in runtime.containers(&pod)? {
                adopted += usize::from(!container.is_over());
            }
        }
        info!(root = %runtime.shared.root.display(), adopted, "process runtime open");
        Ok(runtime)
    }
}

impl Drop for ProcessRuntime {
    fn drop(&mut self) {
        for watched in self.shared.watched().values() {
            watched.abort();
        }
    }
}

impl Shared {
    fn watched(&self) -> MutexGuard<'_, BTreeMap<ContainerKey, watch::Watched>> {
        self.watched.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn dir(&self, key: &ContainerKey) -> AttemptDir {
        AttemptDir::of(&self.root, key)
    }

    /// The state of one attempt, from its record and, where that has no end, from the process table.
    fn state(self: &Arc<Self>, key: &ContainerKey) -> Result<ContainerState, RuntimeError> {
        let dir = self.dir(key);
        let Some(record) = dir.record()? else {
            if self.watched().contains_key(key) {
                return Ok(ContainerState::Created);
            }
            return self.settle(key, &dir);
        };
        if let Some(exit) = record.exit {
            return Ok(ContainerState::Exited(exit));
        }
        match record.shim.filter(|shim| record.boot_id == self.boot_id && shim.is_alive()) {
            Some(shim) => {
                self.watch_adopted(key, shim);
                Ok(record
                    .started_at
                    .map_or(ContainerState::Created, |started_at| ContainerState::Running { started_at }))
            }
            None => self.settle(key, &dir),
        }
    }

    /// Decides about an attempt without a living, recorded shim. Whoever has the lock has the say: a shim that
    /// comes late finds the record and leaves; one that was quicker is left alone.
    fn settle(&self, key: &ContainerKey, dir: &AttemptDir) -> Result<ContainerState, RuntimeError> {
        let Some(_lock) = dir.try_lock()? else { return Ok(ContainerState::Created) };
        let mut record = dir.record()?.unwrap_or_else(|| Record::new(self.boot_id.clone(), None));
        if let Some(exit) = record.exit {
            return Ok(ContainerState::Exited(exit));
        }
        let message = if record.boot_id != self.boot_id {
            "the machine was restarted while the container ran"
        } else if record.shim.is_none() {
            "the agent ended before the container's supervisor was up"
        } else {
            "the container's supervisor was ended; what was found of its processes was ended too"
        };
        self.sweep(key);
        let exit = Exit {
            code: 137,
            signal: None,
            reason: ExitReason::ContainerStatusUnknown,
            message: message.to_owned(),
            started_at: record.started_at,
            finished_at: Timestamp::now(),
            interrupted: record.boot_id != self.boot_id,
        };
        record.exit = Some(exit.clone());
        dir.write_record(&record)?;
        warn!(%key, message, "container lost");
        Ok(ContainerState::Exited(exit))
    }

    /// Ends every process that carries the attempt's mark.
    fn sweep(&self, key: &ContainerKey) {
        let (mark, dir) = (attempt::mark(key), self.dir(key));
        for _ in 0..SWEEPS {
            let left = procfs::marked(&mark, dir.path());
            if left.is_empty() {
                return;
            }
            for process in &left {
                if let Err(error) = process.signal(Signal::KILL) {
                    warn!(%key, pid = process.pid, %error, "cannot kill a process that was left behind");
                }
            }
        }
        let left = procfs::marked(&mark, dir.path()).iter().map(|process| process.pid).collect::<Vec<_>>();
        if !left.is_empty() {
            warn!(%key, pids = ?left, "processes that were left behind do not end");
        }
    }

    fn spawn_shim(&self, launch: &Launch, dir: &AttemptDir) -> io::Result<Child> {
        let complaints =
            OpenOptions::new().create(true).append(true).mode(attempt::FILE_MODE).open(dir.complaints())?;
        let mut child = Command::new(&self.shim)
            .arg0("strata")
            .args(["shim", "run"])
            .arg(dir.path())
            .env_clear()
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::from(complaints))
            .current_dir("/")
            .spawn()?;
        // Of a binary that was replaced the directory is still right.
        let own = std::fs::read_link("/proc/self/exe").ok();
        let order = RunOrder {
            command: launch.command.clone(),
            env: environment::with_host(launch, std::env::vars_os(), own.as_deref()),
            working_dir: launch.working_dir.clone(),
            grace_seconds: launch.grace_seconds,
            log_file_bytes: self.log.file_bytes,
            log_files: self.log.files,
        };
        let sent =
            serde_json::to_vec(&order).map_err(io::Error::from).and_then(|bytes| match child.stdin.take() {
                Some(mut stdin) => stdin.write_all(&bytes),
                None => Err(io::ErrorKind::BrokenPipe.into()),
            });
        if let Err(error) = sent {
            // Half an order is no order: the shim ends by itself, but must not stay a zombie.
            child.kill()?;
            child.wait()?;
            return Err(error);
        }
        Ok(child)
    }

    /// Hands the order to the shim; `false`: nobody listens.
    fn send_stop(&self, key: &ContainerKey, order: StopOrder) -> Result<bool, RuntimeError> {
        let flags = i32::try_from(rustix::fs::OFlags::NONBLOCK.bits()).unwrap_or_default();
        let sent = OpenOptions::new()
            .write(true)
            .custom_flags(flags)
            .open(self.dir(key).control())
            .and_then(|mut fifo| fifo.write_all(order.to_line().as_bytes()));
        match sent {
            Ok(()) => Ok(true),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(false),
            Err(error) if error.raw_os_error() == Some(rustix::io::Errno::NXIO.raw_os_error()) => Ok(false),
            Err(source) => Err(RuntimeError::Stop { key: key.clone(), source }),
        }
    }

    /// The main process of a running attempt.
    fn workload(&self, key: &ContainerKey) -> Result<Identity, RuntimeError> {
        let running =
            self.dir(key).record()?.filter(|record| record.exit.is_none()).and_then(|record| record.workload);
        running.filter(|main| main.is_alive()).ok_or_else(|| RuntimeError::NotRunning { key: key.clone() })
    }
}

impl Runtime for ProcessRuntime {
    fn name(&self) -> &'static str {
        "process"
    }

    fn accepts_image(&self, image: &str) -> Result<(), String> {
        if image == HOST_IMAGE {
            return Ok(());
        }
        Err(format!(
            "image {image:?} cannot be run here: the process runtime knows only the image \"{HOST_IMAGE}\" (this \
             machine's own file system); use that, or start the node with `--runtime simulated`"
        ))
    }

    fn pods(&self) -> Result<Vec<String>, RuntimeError> {
        Ok(attempt::names_in(&attempt::pods_dir(&self.shared.root))?)
    }

    fn pod_name(&self, pod: &str) -> Result<Option<ObjectKey>, RuntimeError> {
        for container in self.containers(pod)? {
            if let Some(facts) = self.shared.dir(&container.key).facts()? {
                return Ok(Some(ObjectKey::new(facts.namespace, facts.pod_name)));
            }
        }
        Ok(None)
    }

    fn containers(&self, pod: &str) -> Result<Vec<ObservedContainer>, RuntimeError> {
        let mut found = Vec::new();
        let dir = attempt::pods_dir(&self.shared.root).join(pod);
        for container in attempt::names_in(&dir)? {
            let mut attempts: Vec<u32> = attempt::names_in(&dir.join(&container))?
                .iter()
                .filter_map(|name| name.parse().ok())
                .collect();
            attempts.sort_unstable();
            for number in attempts {
                // Names that are no key were not made by us; they are left alone.
                let Ok(key) = ContainerKey::new(pod, &container, number) else { continue };
                let state = self.shared.state(&key)?;
                let id = format!("{}://{pod}/{container}/{number}", self.name());
                let facts = self.shared.dir(&key).facts()?;
                let backoff_seconds = facts.map_or(0, |facts| facts.backoff_seconds);
                let stop_by = self.shared.stop_by(&key);
                found.push(ObservedContainer { key, state, id, backoff_seconds, stop_by });
            }
        }
        Ok(found)
    }

    fn start(&self, launch: &Launch) -> Result<(), RuntimeError> {
        let dir = self.shared.dir(&launch.key);
        if dir.path().exists() {
            return Ok(());
        }
        let facts = Facts {
            namespace: launch.namespace.clone(),
            pod_name: launch.pod_name.clone(),
            grace_seconds: launch.grace_seconds,
            backoff_seconds: launch.backoff_seconds,
            created_at: Timestamp::now(),
        };
        // Known as starting before the directory exists, so that nobody takes it for an abandoned one.
        self.shared.watch_starting(&launch.key);
        let started = dir.create(&facts).map_err(RuntimeError::from).and_then(|()| {
            self.shared.spawn_shim(launch, &dir).or_else(|source| {
                dir.remove()?;
                Err(RuntimeError::Supervisor { key: launch.key.clone(), source })
            })
        });
        match started {
            Ok(child) => self.shared.watch_child(&launch.key, child),
            Err(error) => {
                self.shared.watched().remove(&launch.key);
                return Err(error);
            }
        }
        Ok(())
    }

    fn stop(&self, key: &ContainerKey, grace: Duration, cause: StopCause) -> Result<(), RuntimeError> {
        let state = self.shared.state(key)?;
        if matches!(state, ContainerState::Exited(_)) {
            self.shared.changes.mark(key.pod());
            return Ok(());
        }
        if self.shared.send_stop(key, StopOrder { signal: Signal::TERM, grace, cause })? {
            self.shared.note_stop(key, grace, SHIM_MARGIN);
        }
        Ok(())
    }

    fn grace(&self, key: &ContainerKey) -> Duration {
        match self.shared.dir(key).facts() {
            Ok(facts) => Duration::from_secs(facts.map_or(0, |facts| u64::from(facts.grace_seconds))),
            Err(error) => {
                warn!(%key, error = &error as &dyn std::error::Error, "cannot read the facts of an attempt");
                Duration::ZERO
            }
        }
    }

    fn remove(&self, key: &ContainerKey) -> Result<(), RuntimeError> {
        let dir = self.shared.dir(key);
        if !dir.path().exists() {
            return Ok(());
        }
        if !matches!(self.shared.state(key)?, ContainerState::Exited(_)) {
            return Err(RuntimeError::NotOver { key: key.clone() });
        }
        Ok(dir.remove()?)
    }

    fn remove_pod(&self, pod: &str) -> Result<(), RuntimeError> {
        for container in self.containers(pod)? {
            self.remove(&container.key)?;
        }
        Ok(AttemptDir::at(attempt::pods_dir(&self.shared.root).join(pod)).remove()?)
    }

    fn log(&self, key: &ContainerKey) -> LogSource {
        LogSource::Files(self.shared.dir(key).log())
    }

    fn exec<'a>(
        &'a self,
        key: &'a ContainerKey,
        command: &'a [String],
        limit: Duration,
    ) -> BoxFuture<'a, Result<ExecResult, RuntimeError>> {
        Box::pin(async move {
            let main = self.shared.workload(key)?;
            let program = command.first().cloned().unwrap_or_default();
            exec::run(main, command, limit).await.map_err(|source| RuntimeError::Exec {
                key: key.clone(),
                program,
                source,
            })
        })
    }

    fn answer_probe(&self, _: &ContainerKey) -> Option<ProbeAnswer> {
        None
    }

    fn remember(&self, _: &Launch, _: Timestamp) {}

    fn changes(&self) -> &Changes {
        &self.shared.changes
    }
}

/// A descriptor for a pipe end of a child.
fn owned<T: Into<OwnedFd>>(end: T) -> OwnedFd {
    end.into()
}
