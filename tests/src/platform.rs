//! A whole platform under test: `strata up` in a directory of its own, on a port of its own, stopped when dropped.

use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::sync::mpsc;
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process};

use crate::tools;
use crate::wait;

/// How long a start may take on a busy machine.
const START_LIMIT: Duration = Duration::from_secs(60);
/// How long an orderly stop may take.
const STOP_LIMIT: Duration = Duration::from_secs(60);
/// How long any one command may take before the test calls it hung.
pub const COMMAND_LIMIT: Duration = Duration::from_secs(60);

/// A running platform.
pub struct Platform {
    up: Child,
    dir: tempfile::TempDir,
    /// What `up` printed until it was ready.
    pub greeting: Vec<String>,
}

/// What a command said.
#[derive(Debug)]
pub struct Said {
    /// Exit code; `None` after a signal.
    pub code: Option<i32>,
    /// Standard output.
    pub out: String,
    /// Standard error.
    pub err: String,
}

impl Said {
    fn of(output: Output) -> Self {
        Self {
            code: output.status.code(),
            out: String::from_utf8_lossy(&output.stdout).into_owned(),
            err: String::from_utf8_lossy(&output.stderr).into_owned(),
        }
    }

    /// The output, of a command that must have succeeded.
    #[track_caller]
    pub fn ok(self) -> String {
        assert_eq!(self.code, Some(0), "stdout: {}\nstderr: {}", self.out, self.err);
        self.out
    }
}

impl Platform {
    /// Starts a platform with these further flags of `strata up`, and waits until it says it is ready.
    pub fn start(flags: &[&str]) -> Self {
        let dir = tempfile::Builder::new().prefix("strata-").tempdir().expect("a temporary directory");
        Self::start_in(dir, flags)
    }

    /// The same on the directory of a platform that was stopped.
    pub fn start_in(dir: tempfile::TempDir, flags: &[&str]) -> Self {
        let mut up = Command::new(tools::strata())
            .args(["up", "--listen", "127.0.0.1:0", "--data-dir"])
            .arg(dir.path())
            .args(flags)
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::inherit())
            .spawn()
            .expect("strata starts");
        let stdout = up.stdout.take().expect("stdout is piped");
        let (send, lines) = mpsc::sync_channel(1024);
        // The reader goes on after the greeting, so that the platform never blocks on a full pipe.
        std::thread::spawn(move || {
            for line in BufReader::new(stdout).lines().map_while(Result::ok) {
                if send.try_send(line).is_err() {
                    continue;
                }
            }
        });
        let end = Instant::now() + START_LIMIT;
        let mut greeting: Vec<String> = Vec::new();
        while !greeting.iter().any(|line| line.contains("ready in")) {
            match lines.recv_timeout(end.saturating_duration_since(Instant::now())) {
                Ok(line) => greeting.push(line),
                Err(error) => {
                    signal(up.id() as i32, Signal::KILL);
                    panic!("`strata up` was not ready in {START_LIMIT:?} ({error}); it said {greeting:?}")
                }
            }
        }
        Self { up, dir, greeting }
    }

    /// Its data directory.
    pub fn data_dir(&self) -> &Path {
        self.dir.path()
    }

    /// Its kubeconfig.
    pub fn kubeconfig(&self) -> PathBuf {
        self.dir.path().join("kubeconfig")
    }

    /// The process id of `strata up`.
    pub fn pid(&self) -> u32 {
        self.up.id()
    }

    /// The pids of its role processes whose command line contains all of these words.
    pub fn role_pids(&self, words: &[&str]) -> Vec<i32> {
        children(self.up.id())
            .into_iter()
            .filter(|pid| words.iter().all(|w| command_line(*pid).contains(w)))
            .collect()
    }

    /// Runs the bundled command line against it.
    pub fn strata(&self, args: &[&str]) -> Said {
        self.run(Command::new(tools::strata()).args(args))
    }

    /// Runs a kubectl against it, with caches of its own.
    pub fn kubectl(&self, program: &Path, args: &[&str]) -> Said {
        let cache = self.dir.path().join("kubectl-cache");
        self.run(Command::new(program).arg("--cache-dir").arg(cache).args(args))
    }

    /// Runs a command with the platform's kubeconfig in its environment, within the limit of a command.
    pub fn run(&self, command: &mut Command) -> Said {
        self.run_within(command, COMMAND_LIMIT)
    }

    /// The same within another limit.
    pub fn run_within(&self, command: &mut Command, limit: Duration) -> Said {
        command.env("KUBECONFIG", self.kubeconfig()).env("HOME", self.dir.path()).env_remove("XDG_DATA_HOME");
        let shown = format!("{command:?}");
        let child = command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn();
        let child = child.unwrap_or_else(|e| panic!("{shown}: {e}"));
        let pid = child.id();
        let (send, done) = mpsc::sync_channel(1);
        std::thread::spawn(move || send.send(child.wait_with_output()));
        match done.recv_timeout(limit) {
            Ok(output) => Said::of(output.unwrap_or_else(|e| panic!("{shown}: {e}"))),
            Err(_) => {
                signal(pid as i32, Signal::KILL);
                panic!("{shown} did not end in {limit:?}");
            }
        }
    }

    /// Stops it in order and gives its directory back for a second start.
    pub fn stop(mut self) -> tempfile::TempDir {
        self.end();
        let empty = tempfile::tempdir().expect("a temporary directory");
        std::mem::replace(&mut self.dir, empty)
    }

    fn end(&mut self) {
        if matches!(self.up.try_wait(), Ok(Some(_))) {
            return;
        }
        signal(self.up.id() as i32, Signal::TERM);
        let end = Instant::now() + STOP_LIMIT;
        while Instant::now() < end {
            if matches!(self.up.try_wait(), Ok(Some(_))) {
                return;
            }
            std::thread::park_timeout(Duration::from_millis(10));
        }
        signal(self.up.id() as i32, Signal::KILL);
        eprintln!("`strata up` did not stop in {STOP_LIMIT:?} and was killed");
        if let Err(error) = self.up.wait() {
            eprintln!("waiting for the killed `strata up`: {error}");
        }
    }
}

impl Drop for Platform {
    fn drop(&mut self) {
        self.end();
    }
}

/// Sends a signal to a process that the test started.
pub fn signal(pid: i32, signal: Signal) {
    if let Some(pid) = Pid::from_raw(pid)
        && let Err(error) = kill_process(pid, signal)
    {
        eprintln!("signal {signal:?} to {pid:?}: {error}");
    }
}

/// Whether a process is alive (a zombie is not).
pub fn is_alive(pid: i32) -> bool {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    stat.rsplit(')').next().is_some_and(|rest| !rest.is_empty() && !rest.trim_start().starts_with('Z'))
}

/// Waits until a process is gone.
pub fn wait_gone(pid: i32, limit: Duration) {
    wait::until_true(&format!("process {pid} to end"), limit, || !is_alive(pid));
}

/// The direct children of a process.
pub fn children(pid: u32) -> Vec<i32> {
    let tasks = std::fs::read_dir(format!("/proc/{pid}/task"))
        .map(|d| d.flatten().collect())
        .unwrap_or_else(|_| vec![]);
    let lists = tasks.iter().map(|t| std::fs::read_to_string(t.path().join("children")).unwrap_or_default());
    lists.flat_map(|l| l.split_whitespace().filter_map(|p| p.parse().ok()).collect::<Vec<i32>>()).collect()
}

/// The command line of a process, words separated by spaces; empty once it is gone.
pub fn command_line(pid: i32) -> String {
    std::fs::read_to_string(format!("/proc/{pid}/cmdline")).unwrap_or_default().replace('\0', " ")
}
