//! Reads a container's log: the last lines, since a time, following as it grows and is rotated. It must never
//! know who reads, nor hold up the writer.

mod files;
mod wake;

use std::io;
use std::path::PathBuf;

use bytes::Bytes;
use jiff::Timestamp;

use self::files::FileLog;
use self::wake::Wake;
use super::LogSource;
use crate::node::attempt::AttemptDir;

/// What to read of a log.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct LogOptions {
    /// Go on until the container ends.
    pub follow: bool,
    /// Only the last lines; `None`: all.
    pub tail_lines: Option<u64>,
    /// Only lines from this time on.
    pub since: Option<Timestamp>,
    /// Each line begins with its time.
    pub timestamps: bool,
    /// Stop after so many bytes.
    pub limit_bytes: Option<u64>,
}

/// A log being read.
pub struct LogStream {
    source: Source,
    left: Option<u64>,
}

enum Source {
    Text(Option<Bytes>),
    Files { log: Option<Box<FileLog>>, dir: AttemptDir, wake: Option<Wake> },
}

impl LogStream {
    /// Opens a log. A log whose files are not there (yet) is empty.
    pub async fn open(source: LogSource, options: LogOptions) -> io::Result<Self> {
        let left = options.limit_bytes;
        let source = match source {
            LogSource::Text(text) => Source::Text(Some(Bytes::from(text))),
            LogSource::Files(path) => {
                let dir = AttemptDir::at(path.parent().map(PathBuf::from).unwrap_or_default());
                // Watching begins before the first read, so that nothing falls in between.
                let wake = options.follow.then(|| Wake::on(dir.path()));
                let log = blocking(move || FileLog::open(path, &options)).await?;
                Source::Files { log: Some(Box::new(log)), dir, wake }
            }
        };
        Ok(Self { source, left })
    }

    /// The next piece: whole lines, some tens of kilobytes at most; `None` at the end. When following it waits
    /// for more until the container's end is recorded and everything was read. After an error: `None`.
    pub async fn next(&mut self) -> Option<io::Result<Bytes>> {
        if self.left == Some(0) {
            return None;
        }
        let mut piece = match &mut self.source {
            Source::Text(text) => text.take().filter(|text| !text.is_empty())?,
            Source::Files { log, dir, wake } => match next_of_files(log, dir, wake.as_mut()).await {
                Ok(piece) => piece?,
                Err(error) => return Some(Err(error)),
            },
        };
        if let Some(left) = &mut self.left {
            piece.truncate(usize::try_from(*left).unwrap_or(usize::MAX));
            *left -= piece.len() as u64;
        }
        Some(Ok(piece))
    }
}

async fn next_of_files(
    slot: &mut Option<Box<FileLog>>,
    dir: &AttemptDir,
    mut wake: Option<&mut Wake>,
) -> io::Result<Option<Bytes>> {
    loop {
        let Some(mut log) = slot.take() else { return Ok(None) };
        // Asked before reading: what an ended container wrote is in the files by then.
        let over = wake.is_none() || is_over(dir);
        let (log, piece) = blocking(move || {
            let piece = log.read();
            piece.map(|piece| (log, piece))
        })
        .await?;
        if !piece.is_empty() {
            *slot = Some(log);
            return Ok(Some(piece));
        }
        match &mut wake {
            Some(wake) if !over => wake.wait().await,
            _ => return Ok(None),
        }
        *slot = Some(log);
    }
}

/// Whether the attempt's end is recorded, or nothing of it is left.
fn is_over(dir: &AttemptDir) -> bool {
    match dir.record() {
        Ok(Some(record)) => record.exit.is_some(),
        Ok(None) => !dir.path().exists(),
        Err(_) => true,
    }
}

async fn blocking<T: Send + 'static>(work: impl FnOnce() -> io::Result<T> + Send + 'static) -> io::Result<T> {
    tokio::task::spawn_blocking(work).await.map_err(io::Error::other)?
}
