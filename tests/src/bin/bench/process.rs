//! Processes that the bench starts: on a free port, with their memory and CPU read from the system, ended with their
//! handle.

use std::net::{Ipv4Addr, SocketAddr, TcpListener};
use std::process::{Child, Command};

use crate::context::Outcome;

/// A process that ends with this handle.
pub struct Process {
    child: Child,
}

/// What a process has used of the machine.
#[derive(Clone, Copy, Debug, Default)]
pub struct Usage {
    /// Bytes resident.
    pub resident: u64,
}

impl Process {
    /// Starts a command.
    pub fn start(command: &mut Command) -> Outcome<Self> {
        let child = command.spawn().map_err(|error| format!("{:?}: {error}", command.get_program()))?;
        Ok(Self { child })
    }

    /// What it has used.
    pub fn usage(&self) -> Outcome<Usage> {
        usage(self.child.id())
    }

    /// Its standard output, once.
    pub fn output(&mut self) -> Outcome<std::process::ChildStdout> {
        self.child.stdout.take().ok_or_else(|| "the process has no output to read".into())
    }

    /// Ends it at once, as a power cut would.
    pub fn kill(mut self) -> Outcome<()> {
        self.child.kill()?;
        self.child.wait()?;
        Ok(())
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        if !matches!(self.child.try_wait(), Ok(Some(_)))
            && let Err(error) = self.child.kill().and_then(|()| self.child.wait())
        {
            eprintln!("a process could not be ended: {error}");
        }
    }
}

/// What a process has used, by its id.
pub fn usage(pid: u32) -> Outcome<Usage> {
    let status = std::fs::read_to_string(format!("/proc/{pid}/status"))?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:")).ok_or("no VmRSS")?;
    let kib: u64 = line.trim().trim_end_matches("kB").trim().parse()?;
    Ok(Usage { resident: kib * 1024 })
}

/// An address of the loopback that nobody listens on at the moment.
pub fn free_address() -> Outcome<SocketAddr> {
    Ok(TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?.local_addr()?)
}

/// Bytes of memory of a process, of which pages that it shares count in part.
pub fn proportional(pid: i32) -> Outcome<u64> {
    let text = std::fs::read_to_string(format!("/proc/{pid}/smaps_rollup"))?;
    let line = text.lines().find_map(|line| line.strip_prefix("Pss:")).ok_or("no Pss")?;
    Ok(line.trim().trim_end_matches("kB").trim().parse::<u64>()? * 1024)
}

/// CPU time of all threads of a process, in microseconds.
pub fn cpu_micros(pid: i32) -> Outcome<u64> {
    let mut nanos = 0;
    for task in std::fs::read_dir(format!("/proc/{pid}/task"))? {
        let text = std::fs::read_to_string(task?.path().join("schedstat"))?;
        nanos += text.split_whitespace().next().and_then(|n| n.parse::<u64>().ok()).unwrap_or_default();
    }
    Ok(nanos / 1000)
}
