//! The floor: the least that a durable write costs on this disk. A plain log that appends what waits, syncs once, and
//! answers; nothing is indexed, checked or readable.

use std::fs::{File, OpenOptions};
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::sync::Arc;
use std::thread;
use std::time::Duration;

use rustix::fs::{FallocateFlags, fallocate};
use tokio::sync::{mpsc, oneshot};

use crate::context::Outcome;
use crate::load::{Load, VALUE_BYTES, closed_loop, value};

/// Bytes reserved for the log; it begins anew when they are used up.
const LOG_BYTES: u64 = 64 << 20;
/// Writes that may wait, and most of one group.
const MAX_WAITING: usize = 1024;

type Write = (Arc<Vec<u8>>, oneshot::Sender<()>);

/// Writes a second and their times with so many callers.
pub async fn measure(path: &Path, callers: usize, time: Duration) -> Outcome<Load> {
    let file = OpenOptions::new().create(true).truncate(true).write(true).open(path)?;
    fallocate(&file, FallocateFlags::empty(), 0, LOG_BYTES)?;
    let (writes, waiting) = mpsc::channel::<Write>(MAX_WAITING);
    let log = thread::spawn(move || append(&file, waiting));
    let bytes = Arc::new(value(1, VALUE_BYTES));
    let load = closed_loop(callers, time, move |_, _| {
        let (writes, bytes) = (writes.clone(), Arc::clone(&bytes));
        async move {
            let (done, durable) = oneshot::channel();
            writes.send((bytes, done)).await.map_err(|_| "the plain log ended")?;
            Ok(durable.await?)
        }
    })
    .await?;
    log.join().map_err(|_| "the plain log panicked")??;
    std::fs::remove_file(path)?;
    Ok(load)
}

fn append(file: &File, mut waiting: mpsc::Receiver<Write>) -> std::io::Result<()> {
    let (mut group, mut frame, mut end) = (Vec::new(), Vec::new(), 0);
    while waiting.blocking_recv_many(&mut group, MAX_WAITING) > 0 {
        frame.clear();
        group.iter().for_each(|(bytes, _)| frame.extend_from_slice(bytes));
        if end + frame.len() as u64 > LOG_BYTES {
            end = 0;
        }
        file.write_all_at(&frame, end)?;
        file.sync_data()?;
        end += frame.len() as u64;
        for (_, done) in group.drain(..) {
            if done.send(()).is_err() {
                eprintln!("a caller left before its answer");
            }
        }
    }
    Ok(())
}
