//! Watchers: one small task per living shim that marks its pod when the command runs and when the shim ended.
//! A watcher must never decide what an end means; whoever looks next reads the record.

use std::io;
use std::process::{Child, ChildStdout};
use std::sync::Arc;
use std::time::Duration;

use jiff::Timestamp;
use rustix::process::Signal;
use strata_plan::pod::observed::ContainerKey;
use tokio::io::AsyncReadExt;
use tokio::net::unix::pipe;
use tokio::task::AbortHandle;
use tracing::{error, warn};

use super::{Shared, owned};
use crate::node::procfs::Identity;

/// How long to wait before looking again at a process that cannot be waited for.
const POLL_PAUSE: Duration = Duration::from_secs(1);

/// The watcher of one attempt.
pub struct Watched {
    task: Option<AbortHandle>,
    /// The stop that is under way: when the command will have ended, and who sees to it.
    stop: Option<(Timestamp, AbortHandle)>,
}

impl Watched {
    /// Ends the watching, not the watched.
    pub fn abort(&self) {
        for task in self.task.iter().chain(self.stop.iter().map(|(_, task)| task)) {
            task.abort();
        }
    }
}

impl Shared {
    /// Notes an attempt that is about to be started by this runtime.
    pub fn watch_starting(&self, key: &ContainerKey) {
        self.watched().insert(key.clone(), Watched { task: None, stop: None });
    }

    /// Watches a shim that this runtime started.
    pub fn watch_child(self: &Arc<Self>, key: &ContainerKey, mut child: Child) {
        let shared = Arc::clone(self);
        let watched = key.clone();
        let mut watching = self.watched();
        let task = self.handle.spawn(async move {
            if let Some(stdout) = child.stdout.take() {
                if let Err(error) = end_of(stdout).await {
                    warn!(key = %watched, %error, "cannot hear a supervisor");
                }
                shared.changes.mark(watched.pod());
            }
            // Until it is waited for its pid cannot be taken by another.
            let identity = i32::try_from(child.id()).ok().and_then(Identity::of);
            if let Some(identity) = identity {
                end_of_process(identity).await;
            }
            if let Err(error) = child.wait() {
                error!(key = %watched, %error, "cannot reap a supervisor");
            }
            shared.unwatch(&watched);
        });
        watching.insert(key.clone(), Watched { task: Some(task.abort_handle()), stop: None });
    }

    /// Watches a shim that was found running, once.
    pub fn watch_adopted(self: &Arc<Self>, key: &ContainerKey, shim: Identity) {
        let mut watching = self.watched();
        if watching.contains_key(key) {
            return;
        }
        let shared = Arc::clone(self);
        let watched = key.clone();
        let task = self.handle.spawn(async move {
            end_of_process(shim).await;
            shared.unwatch(&watched);
        });
        watching.insert(key.clone(), Watched { task: Some(task.abort_handle()), stop: None });
    }

    /// When an attempt that was told to stop will have ended.
    pub fn stop_by(&self, key: &ContainerKey) -> Option<Timestamp> {
        self.watched().get(key).and_then(|watched| watched.stop.as_ref().map(|(by, _)| *by))
    }

    /// Notes that a shim was told to stop within `grace`, and ends the shim itself when it takes `margin` more;
    /// the command dies with it.
    pub fn note_stop(self: &Arc<Self>, key: &ContainerKey, grace: Duration, margin: Duration) {
        let shared = Arc::clone(self);
        let late = key.clone();
        let mut watching = self.watched();
        let Some(watched) = watching.get_mut(key) else { return };
        let task = self.handle.spawn(async move {
            tokio::time::sleep(grace + margin).await;
            let shim = match shared.dir(&late).record() {
                Ok(record) => record.and_then(|record| record.shim),
                Err(error) => {
                    return error!(key = %late, %error, "cannot read the record of a late supervisor");
                }
            };
            let Some(shim) = shim else { return };
            warn!(key = %late, pid = shim.pid, "the supervisor did not end in time and is killed");
            if let Err(error) = shim.signal(Signal::KILL) {
                error!(key = %late, %error, "cannot kill the supervisor");
            }
        });
        let by = Timestamp::now().checked_add(grace).unwrap_or(Timestamp::MAX);
        match &watched.stop {
            // The shim keeps the nearer of two ends, and so does its limit.
            Some((earlier, _)) if *earlier <= by => task.abort(),
            _ => {
                if let Some((_, earlier)) = watched.stop.replace((by, task.abort_handle())) {
                    earlier.abort();
                }
            }
        }
    }

    fn unwatch(&self, key: &ContainerKey) {
        if let Some(Watched { stop: Some((_, stop)), .. }) = self.watched().remove(key) {
            stop.abort();
        }
        self.changes.mark(key.pod());
    }
}

/// Waits for the end of a shim's standard output: it closes it when its command runs, or by ending.
async fn end_of(stdout: ChildStdout) -> io::Result<()> {
    let fd = owned(stdout);
    rustix::io::ioctl_fionbio(&fd, true)?;
    let mut receiver = pipe::Receiver::from_owned_fd(fd)?;
    let mut bytes = [0; 64];
    while receiver.read(&mut bytes).await? > 0 {}
    Ok(())
}

/// Waits until a process is gone (or a zombie).
async fn end_of_process(identity: Identity) {
    loop {
        match wait_readable(identity).await {
            Ok(()) => {}
            // Without descriptors to spare: look now and then instead.
            Err(error) => {
                warn!(pid = identity.pid, %error, "cannot wait for a process; polling");
                tokio::time::sleep(POLL_PAUSE).await;
            }
        }
        if !identity.is_alive() {
            return;
        }
    }
}

async fn wait_readable(identity: Identity) -> io::Result<()> {
    let Some(fd) = identity.pidfd()? else { return Ok(()) };
    // Not a pipe, but nothing is read from it: only its readiness counts.
    pipe::Receiver::from_owned_fd_unchecked(fd)?.readable().await
}
