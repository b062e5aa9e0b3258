//! Processes as the kernel tells of them: identities that survive pid reuse, descendants, and processes that
//! carry a mark. It must never know pods or containers.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::io;
use std::path::Path;

use rustix::process::{Pid, PidfdFlags, Signal, pidfd_open, pidfd_send_signal};
use serde::{Deserialize, Serialize};

/// A process by pid and start time: a pid that was reused is another identity.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct Identity {
    /// The process id.
    pub pid: i32,
    /// Clock ticks between boot and the process's start.
    pub start: u64,
}

/// What `/proc/<pid>/stat` says, as far as it is needed here.
struct Stat {
    state: char,
    parent: i32,
    /// The controlling terminal; 0 for none.
    terminal: i32,
    start: u64,
}

impl Identity {
    /// The identity of the process that has `pid` now; `None` when there is none.
    pub fn of(pid: i32) -> Option<Self> {
        stat(pid).map(|stat| Self { pid, start: stat.start })
    }

    /// The identity of this very process.
    pub fn of_self() -> io::Result<Self> {
        let pid = rustix::process::getpid().as_raw_nonzero().get();
        Self::of(pid)
            .ok_or_else(|| io::Error::new(io::ErrorKind::NotFound, "/proc shows no entry for this process"))
    }

    /// Whether the process still runs. A zombie does not.
    pub fn is_alive(self) -> bool {
        stat(self.pid).is_some_and(|stat| stat.start == self.start && !matches!(stat.state, 'Z' | 'X'))
    }

    /// A descriptor that refers to exactly this process; `None` when it is gone.
    pub fn pidfd(self) -> io::Result<Option<std::os::fd::OwnedFd>> {
        let Some(pid) = Pid::from_raw(self.pid) else { return Ok(None) };
        let fd = match pidfd_open(pid, PidfdFlags::empty()) {
            Ok(fd) => fd,
            Err(rustix::io::Errno::SRCH) => return Ok(None),
            Err(error) => return Err(error.into()),
        };
        // The descriptor pins whoever had the pid when it was opened; only now the comparison is safe.
        Ok(self.is_alive().then_some(fd))
    }

    /// Sends a signal to exactly this process; gone already counts as done.
    pub fn signal(self, signal: Signal) -> io::Result<()> {
        let Some(fd) = self.pidfd()? else { return Ok(()) };
        match pidfd_send_signal(fd, signal) {
            Ok(()) | Err(rustix::io::Errno::SRCH) => Ok(()),
            Err(error) => Err(error.into()),
        }
    }
}

/// The kernel's id of the current boot: start times of two boots cannot be compared.
pub fn boot_id() -> io::Result<String> {
    Ok(fs::read_to_string("/proc/sys/kernel/random/boot_id")?.trim().to_owned())
}

/// All live descendants of `root`, without it and without zombies.
pub fn descendants(root: i32) -> Vec<Identity> {
    let mut children: BTreeMap<i32, Vec<(Identity, bool)>> = BTreeMap::new();
    for pid in pids() {
        if let Some(stat) = stat(pid) {
            let gone = matches!(stat.state, 'Z' | 'X');
            children.entry(stat.parent).or_default().push((Identity { pid, start: stat.start }, gone));
        }
    }
    let mut found = Vec::new();
    let mut seen = BTreeSet::from([root]);
    let mut open = vec![root];
    while let Some(parent) = open.pop() {
        for (identity, gone) in children.remove(&parent).unwrap_or_default() {
            if !gone {
                found.push(identity);
            }
            if seen.insert(identity.pid) {
                open.push(identity.pid);
            }
        }
    }
    found
}

/// All live processes of ours that carry a mark, and all that descend from them. The mark is the entry `mark`
/// (`NAME=value`) in the initial environment, which a program may clear, or a current directory in `dir` without a
/// terminal: a person may look around there.
pub fn marked(mark: &str, dir: &Path) -> BTreeSet<Identity> {
    let carries = |pid: i32| {
        let environment = fs::read(format!("/proc/{pid}/environ")).unwrap_or_default();
        environment.split(|byte| *byte == 0).any(|entry| entry == mark.as_bytes())
            || (fs::read_link(format!("/proc/{pid}/cwd")).is_ok_and(|current| current.starts_with(dir))
                && stat(pid).is_some_and(|stat| stat.terminal == 0))
    };
    let own: Vec<Identity> = pids().filter_map(Identity::of).filter(|found| carries(found.pid)).collect();
    let below = own.iter().flat_map(|found| descendants(found.pid));
    below.chain(own.iter().copied()).filter(|found| found.is_alive()).collect()
}

/// All process ids that `/proc` shows.
fn pids() -> impl Iterator<Item = i32> {
    fs::read_dir("/proc").into_iter().flatten().filter_map(|entry| {
        entry.ok().and_then(|entry| entry.file_name().to_str().and_then(|name| name.parse().ok()))
    })
}

/// Reads `/proc/<pid>/stat`; the command name may hold anything, so fields are counted after its last `)`.
fn stat(pid: i32) -> Option<Stat> {
    parse_stat(&String::from_utf8_lossy(&fs::read(format!("/proc/{pid}/stat")).ok()?))
}

fn parse_stat(text: &str) -> Option<Stat> {
    let mut fields = text[text.rfind(')')? + 1..].split_ascii_whitespace();
    let state = fields.next()?.chars().next()?;
    let parent = fields.next()?.parse().ok()?;
    // state is field 3 and parent field 4 of the manual's numbering; the terminal is field 7, the start time 22.
    let terminal = fields.nth(2)?.parse().ok()?;
    let start = fields.nth(14)?.parse().ok()?;
    Some(Stat { state, parent, terminal, start })
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::{Identity, descendants, marked, parse_stat};

    #[test]
    fn a_command_name_with_brackets_and_spaces_does_not_shift_the_fields() {
        let stat =
            parse_stat("12 (a) b (c) S 7 12 12 0 -1 4194560 1 2 3 4 5 6 7 8 20 0 1 0 98765 1 2").unwrap();
        assert_eq!((stat.state, stat.parent, stat.terminal, stat.start), ('S', 7, 0, 98765));
        assert!(parse_stat("12 (cut").is_none());
    }

    #[test]
    fn identity_tells_a_reused_pid_from_the_process_it_was_taken_of() {
        let me = Identity::of_self().unwrap();
        assert!(me.is_alive());
        let other = Identity { start: me.start + 1, ..me };
        assert!(!other.is_alive());
        assert!(other.pidfd().unwrap().is_none());
    }

    #[test]
    fn children_are_found_as_descendants_and_by_their_mark() {
        let mark = format!("STRATA_TEST_MARK={}", std::process::id());
        let (name, value) = mark.split_once('=').unwrap();
        let mut child = std::process::Command::new("sleep").arg("60").env(name, value).spawn().unwrap();
        let pid = i32::try_from(child.id()).unwrap();
        let me = i32::try_from(std::process::id()).unwrap();
        assert!(descendants(me).iter().any(|found| found.pid == pid));
        assert_eq!(
            marked(&mark, Path::new("/nowhere")).iter().map(|found| found.pid).collect::<Vec<_>>(),
            [pid]
        );
        child.kill().unwrap();
        child.wait().unwrap();
        assert!(!descendants(me).iter().any(|found| found.pid == pid));
    }

    #[test]
    fn processes_that_cleared_their_environment_are_found_by_where_they_are_or_descend_from() {
        let dir = tempfile::tempdir().unwrap();
        let dir = dir.path().canonicalize().unwrap();
        let mut shell = std::process::Command::new("setsid")
            .args(["sh", "-c", "(cd / && exec sleep 60) & echo; wait"])
            .env_clear()
            .env("PATH", std::env::var_os("PATH").unwrap())
            .current_dir(&dir)
            .stdout(std::process::Stdio::piped())
            .spawn()
            .unwrap();
        let pid = i32::try_from(shell.id()).unwrap();
        // Its line says that it has started the other.
        std::io::Read::read_exact(shell.stdout.as_mut().unwrap(), &mut [0]).unwrap();
        let found = marked("NO_SUCH_MARK=1", &dir);
        assert!(found.iter().any(|found| found.pid == pid), "by its directory");
        assert_eq!(found.len(), 2, "and its child: {found:?}");
        for process in found {
            process.signal(rustix::process::Signal::KILL).unwrap();
        }
        shell.wait().unwrap();
    }
}
