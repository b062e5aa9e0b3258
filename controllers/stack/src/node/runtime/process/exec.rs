//! Runs a command beside a container's main process, as an exec probe asks: same environment, same directory,
//! bounded time and output. It must never outlive its limit, nor leave anything behind.

use std::ffi::OsStr;
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::process::Stdio;
use std::time::Duration;

use rustix::process::{Pid, Signal, kill_process_group};
use tokio::io::{AsyncRead, AsyncReadExt};
use tokio::process::Command;

use super::ExecResult;
use crate::node::procfs::Identity;

/// How much of each output stream is kept, in bytes.
const MAX_OUTPUT: u64 = 10 * 1024;

/// Runs `command` with the environment and in the directory of `main`.
pub async fn run(main: Identity, command: &[String], limit: Duration) -> io::Result<ExecResult> {
    let Some((program, args)) = command.split_first() else {
        return Err(io::Error::new(io::ErrorKind::InvalidInput, "the command is empty"));
    };
    let environment = tokio::fs::read(format!("/proc/{}/environ", main.pid)).await?;
    let mut child = Command::new(program)
        .args(args)
        .env_clear()
        .envs(environment.split(|byte| *byte == 0).filter_map(split_entry))
        .current_dir(format!("/proc/{}/cwd", main.pid))
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .process_group(0)
        .kill_on_drop(true)
        .spawn()?;
    let group = Group(child.id().and_then(|pid| Pid::from_raw(i32::try_from(pid).ok()?)));
    let (stdout, stderr) = (child.stdout.take(), child.stderr.take());
    let work = async {
        let (stdout, stderr, status) = tokio::join!(collect(stdout), collect(stderr), child.wait());
        Ok::<_, io::Error>((format!("{}{}", stdout?, stderr?), status?))
    };
    let result = match tokio::time::timeout(limit, work).await {
        Ok(done) => {
            let (output, status) = done?;
            ExecResult { code: Some(status.code().unwrap_or(-1)), output }
        }
        Err(_) => {
            let output = format!("command timed out after {} s", limit.as_secs());
            ExecResult { code: None, output }
        }
    };
    drop(group);
    Ok(result)
}

/// Ends the command's process group, however the waiting for it ended.
struct Group(Option<Pid>);

impl Drop for Group {
    fn drop(&mut self) {
        if let Some(pid) = self.0
            && let Err(error) = kill_process_group(pid, Signal::KILL)
            && error != rustix::io::Errno::SRCH
        {
            tracing::warn!(pid = pid.as_raw_nonzero().get(), %error, "cannot end a probe's processes");
        }
    }
}

fn split_entry(entry: &[u8]) -> Option<(&OsStr, &OsStr)> {
    let at = entry.iter().position(|byte| *byte == b'=')?;
    (at > 0).then(|| (OsStr::from_bytes(&entry[..at]), OsStr::from_bytes(&entry[at + 1..])))
}

/// The first bytes of a stream; the rest is read and dropped, so that the command never blocks on it.
async fn collect(stream: Option<impl AsyncRead + Unpin>) -> io::Result<String> {
    let Some(mut stream) = stream else { return Ok(String::new()) };
    let mut kept = Vec::new();
    (&mut stream).take(MAX_OUTPUT).read_to_end(&mut kept).await?;
    tokio::io::copy(&mut stream, &mut tokio::io::sink()).await?;
    Ok(String::from_utf8_lossy(&kept).into_owned())
}
