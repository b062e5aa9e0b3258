//! Tells when something in a directory changed: inotify where the system has an instance to spare, else the
//! clock. It must never say that nothing changed when something did.

use std::io;
use std::path::Path;
use std::time::Duration;

use rustix::fs::inotify::{self, CreateFlags, WatchFlags};
use tokio::net::unix::pipe;

/// How often to look where there is no inotify, and the longest that one wait lasts where there is.
const POLL_PAUSE: Duration = Duration::from_millis(250);
const BACKSTOP: Duration = Duration::from_secs(10);

/// Wakes on changes in one directory.
pub struct Wake {
    notify: Option<pipe::Receiver>,
}

impl Wake {
    /// Begins to listen.
    pub fn on(dir: &Path) -> Self {
        match listen(dir) {
            Ok(notify) => Self { notify: Some(notify) },
            Err(error) => {
                tracing::debug!(dir = %dir.display(), %error, "no inotify; polling the log");
                Self { notify: None }
            }
        }
    }

    /// Waits until something may have changed since the last wait.
    pub async fn wait(&mut self) {
        let Some(notify) = &self.notify else { return tokio::time::sleep(POLL_PAUSE).await };
        let heard = tokio::time::timeout(BACKSTOP, drain(notify)).await;
        if let Ok(Err(error)) = heard {
            tracing::debug!(%error, "inotify failed; polling the log");
            self.notify = None;
        }
    }
}

fn listen(dir: &Path) -> io::Result<pipe::Receiver> {
    let fd = inotify::init(CreateFlags::NONBLOCK | CreateFlags::CLOEXEC)?;
    let what = WatchFlags::MODIFY | WatchFlags::CREATE | WatchFlags::MOVED_TO | WatchFlags::DELETE_SELF;
    inotify::add_watch(&fd, dir, what)?;
    // Not a pipe, but read the same way.
    pipe::Receiver::from_owned_fd_unchecked(fd)
}

/// Waits for events and forgets them all: only that there were some matters.
async fn drain(notify: &pipe::Receiver) -> io::Result<()> {
    let mut bytes = [0; 4096];
    let mut heard = false;
    while !heard {
        notify.readable().await?;
        loop {
            match notify.try_read(&mut bytes) {
                Ok(0) => return Err(io::ErrorKind::UnexpectedEof.into()),
                Ok(_) => heard = true,
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => break,
                Err(error) => return Err(error),
            }
        }
    }
    Ok(())
}
