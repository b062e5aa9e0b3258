//! The first stage: one loop around `poll` that moves the command's output into its log, takes orders, reaps,
//! and writes the record of the end. It must never wait without also hearing its child and its fifo.

use std::fs::{self, File};
use std::io::{self, Read};
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::fs::OpenOptionsExt;
use std::os::unix::net::UnixStream;
use std::os::unix::process::CommandExt;
use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use jiff::Timestamp;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fs::{FileType, Mode};
use rustix::process::{Pid, Signal, WaitOptions, WaitStatus, kill_process_group, wait};
use signal_hook::consts::{SIGCHLD, SIGHUP, SIGINT, SIGTERM};
use strata_plan::pod::observed::{Exit, ExitReason, StopCause};

use super::EXIT_START_ERROR;
use super::log::{LogWriter, Stream};
use super::order::{MAX_RUN_ORDER, RunOrder, StopOrder};
use crate::node::attempt::{AttemptDir, AttemptError, Record, io_error};
use crate::node::procfs::{self, Identity};

/// How much of an output stream is moved at once, in bytes.
const CHUNK: usize = 64 * 1024;
/// How long the end of the last descendants is waited for after SIGKILL, before the end is recorded anyway.
const REAP_LIMIT: Duration = Duration::from_secs(10);
/// How often descendants are looked for again while they are being killed.
const SWEEP_PAUSE: Duration = Duration::from_millis(20);
/// The longest reason that the second stage may report, in bytes.
const MAX_REASON: u64 = 4 * 1024;
/// The longest unfinished line in the fifo, in bytes.
const MAX_ORDER_LINE: usize = 256;

/// Why a shim could not do its work.
#[derive(Debug, thiserror::Error)]
pub enum ShimError {
    /// The attempt's directory failed.
    #[error(transparent)]
    Attempt(#[from] AttemptError),
    /// The order on standard input is not readable.
    #[error("the order on standard input is not readable")]
    Order(#[source] serde_json::Error),
    /// The system refused something.
    #[error("cannot {action}")]
    System {
        /// What was tried.
        action: &'static str,
        /// What the system answered.
        #[source]
        source: io::Error,
    },
}

/// Puts the action around an IO error.
fn system<E: Into<io::Error>>(action: &'static str) -> impl FnOnce(E) -> ShimError {
    move |source| ShimError::System { action, source: source.into() }
}

/// Supervises one attempt in `dir`, from the order on standard input to the record of its end.
pub fn run(dir: PathBuf) -> Result<(), ShimError> {
    let dir = AttemptDir::at(dir);
    rustix::process::setsid().map_err(system("start a session"))?;
    let order = read_order()?;
    // Held to the end of this process. An agent that found it free has written this attempt off.
    let _lock = dir.lock()?;
    if dir.record()?.is_some() {
        return Ok(());
    }
    let me = Identity::of_self().map_err(system("read /proc"))?;
    let boot_id = procfs::boot_id().map_err(system("read the boot id"))?;
    let mut record = Record::new(boot_id, Some(me));
    dir.write_record(&record)?;
    // From here on the end of the attempt is always recorded.
    let exit = match Supervisor::start(&dir, &order, me, &mut record) {
        Ok(supervisor) => supervisor.supervise(),
        Err(StartFailure::Command(reason)) => start_error(reason),
        Err(StartFailure::Shim(error)) => start_error(format!("supervisor: {}", chain(&error))),
    };
    record.exit = Some(exit);
    dir.write_record(&record)?;
    Ok(())
}

/// Reads the order; it ends with the end of the input.
fn read_order() -> Result<RunOrder, ShimError> {
    let mut bytes = Vec::new();
    let read = io::stdin().lock().take(MAX_RUN_ORDER).read_to_end(&mut bytes);
    read.map_err(system("read standard input"))?;
    serde_json::from_slice(&bytes).map_err(ShimError::Order)
}

fn start_error(message: String) -> Exit {
    let code = i32::from(EXIT_START_ERROR);
    let reason = ExitReason::StartError;
    Exit {
        code,
        signal: None,
        reason,
        message,
        started_at: None,
        finished_at: Timestamp::now(),
        interrupted: false,
    }
}

fn chain(error: &dyn std::error::Error) -> String {
    match error.source() {
        Some(source) => format!("{error}: {source}"),
        None => error.to_string(),
    }
}

/// Why a command did not start.
enum StartFailure {
    /// The command's own fault: what a person should read.
    Command(String),
    /// The shim's.
    Shim(ShimError),
}

impl From<ShimError> for StartFailure {
    fn from(error: ShimError) -> Self {
        Self::Shim(error)
    }
}

impl From<AttemptError> for StartFailure {
    fn from(error: AttemptError) -> Self {
        Self::Shim(error.into())
    }
}

/// A running command and everything that is open around it.
struct Supervisor {
    me: Identity,
    main: Identity,
    group: Pid,
    started_at: Timestamp,
    log: LogWriter,
    outputs: [Option<File>; 2],
    control: File,
    order_line: Vec<u8>,
    signals: UnixStream,
    told_to_end: Arc<AtomicBool>,
    grace: Duration,
    deadline: Option<Instant>,
    interrupted: bool,
}

impl Supervisor {
    /// Starts the command and records it as running.
    fn start(
        dir: &AttemptDir,
        order: &RunOrder,
        me: Identity,
        record: &mut Record,
    ) -> Result<Self, StartFailure> {
        rustix::process::set_child_subreaper(Some(rustix::process::getpid()))
            .map_err(system("become a subreaper"))?;
        let told_to_end = Arc::new(AtomicBool::new(false));
        let signals = listen(&told_to_end).map_err(system("listen to signals"))?;
        let control = make_control(dir)?;
        let log_path = dir.log();
        let log = LogWriter::open(&log_path, order.log_limits()).map_err(io_error("open", &log_path))?;
        let (outputs, main) = spawn(dir, order, me)?;
        let group =
            Pid::from_raw(main.pid).ok_or_else(|| StartFailure::Command("no process id".to_owned()))?;
        let started_at = Timestamp::now();
        record.workload = Some(main);
        record.started_at = Some(started_at);
        dir.write_record(record)?;
        // The agent waits for the end of this stream: the record is there now.
        File::open("/dev/null")
            .and_then(|null| Ok(rustix::stdio::dup2_stdout(null)?))
            .map_err(system("close standard output"))?;
        Ok(Self {
            me,
            main,
            group,
            started_at,
            log,
            outputs: outputs.map(Some),
            control,
            order_line: Vec::new(),
            signals,
            told_to_end,
            grace: Duration::from_secs(order.grace_seconds.into()),
            deadline: None,
            interrupted: false,
        })
    }

    /// Runs until the main process ended, ends what it left behind, and says how it ended.
    fn supervise(mut self) -> Exit {
        let status = loop {
            self.turn(self.deadline.map(|deadline| deadline.saturating_duration_since(Instant::now())));
            if let Some(status) = self.reap().main {
                break status;
            }
            if self.told_to_end.swap(false, Ordering::Relaxed) {
                self.begin_stop(StopOrder {
                    signal: Signal::TERM,
                    grace: self.grace,
                    cause: StopCause::Shutdown,
                });
            }
            if self.deadline.is_some_and(|deadline| deadline <= Instant::now()) {
                self.kill_all();
                self.deadline = Some(Instant::now() + SWEEP_PAUSE);
            }
        };
        let finished_at = Timestamp::now();
        self.end_descendants();
        self.drain();
        Exit { interrupted: self.interrupted, ..exit_of(status, self.started_at, finished_at) }
    }

    /// Waits for anything to happen, at most `limit`, and moves output and orders.
    fn turn(&mut self, limit: Option<Duration>) {
        let ready = match self.wait_ready(limit) {
            Ok(ready) => ready,
            Err(error) => {
                eprintln!("shim: poll: {error}");
                return;
            }
        };
        if ready[0] {
            drain_wakeups(&mut self.signals);
        }
        if ready[1] {
            self.take_orders();
        }
        for (index, stream) in [Stream::Stdout, Stream::Stderr].into_iter().enumerate() {
            if ready[2 + index] {
                self.move_output(stream);
            }
        }
    }

    /// Which of signals, fifo, standard output and standard error can be read.
    fn wait_ready(&self, limit: Option<Duration>) -> rustix::io::Result<[bool; 4]> {
        let timeout = limit.and_then(|limit| Timespec::try_from(limit).ok());
        let sources: [Option<BorrowedFd<'_>>; 4] = [
            Some(self.signals.as_fd()),
            Some(self.control.as_fd()),
            self.outputs[0].as_ref().map(AsFd::as_fd),
            self.outputs[1].as_ref().map(AsFd::as_fd),
        ];
        let mut polled: Vec<PollFd<'_>> =
            sources.iter().flatten().map(|fd| PollFd::from_borrowed_fd(*fd, PollFlags::IN)).collect();
        match poll(&mut polled, timeout.as_ref()) {
            Ok(_) | Err(rustix::io::Errno::INTR) => {}
            Err(error) => return Err(error),
        }
        let mut answers = polled.iter().map(|fd| !fd.revents().is_empty());
        Ok(sources.map(|source| source.is_some() && answers.next().unwrap_or(false)))
    }

    /// Moves one chunk of a stream into the log. Returns whether there may be more.
    fn move_output(&mut self, stream: Stream) -> bool {
        let Some(output) = &mut self.outputs[stream as usize] else { return false };
        let mut chunk = vec![0; CHUNK];
        let now = Timestamp::now();
        let logged = match output.read(&mut chunk) {
            Ok(0) => {
                self.outputs[stream as usize] = None;
                self.log.finish(stream, now)
            }
            Ok(count) => self.log.write(stream, now, &chunk[..count]),
            Err(error) if matches!(error.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::Interrupted) => {
                return false;
            }
            Err(error) => {
                self.outputs[stream as usize] = None;
                Err(error)
            }
        };
        // A full disk costs log lines, never the workload.
        if let Err(error) = logged {
            eprintln!("shim: log: {error}");
        }
        self.outputs[stream as usize].is_some()
    }

    /// Takes the orders that are in the fifo.
    fn take_orders(&mut self) {
        let mut chunk = [0; MAX_ORDER_LINE];
        while let Ok(count @ 1..) = self.control.read(&mut chunk) {
            for byte in &chunk[..count] {
                if *byte != b'\n' {
                    self.order_line.truncate(MAX_ORDER_LINE);
                    self.order_line.push(*byte);
                    continue;
                }
                let line = std::mem::take(&mut self.order_line);
                match StopOrder::parse(&String::from_utf8_lossy(&line)) {
                    Some(order) => self.begin_stop(order),
                    None => eprintln!("shim: unknown order {:?}", String::from_utf8_lossy(&line)),
                }
            }
        }
    }

    /// Sends the polite signal once; a later order can only bring the end nearer.
    fn begin_stop(&mut self, order: StopOrder) {
        let deadline = Instant::now() + order.grace;
        if self.deadline.is_none() {
            self.interrupted = order.cause == StopCause::Shutdown;
            self.signal_group(order.signal);
        }
        self.deadline = Some(self.deadline.map_or(deadline, |current| current.min(deadline)));
    }

    fn signal_group(&self, signal: Signal) {
        match kill_process_group(self.group, signal) {
            Ok(()) | Err(rustix::io::Errno::SRCH) => {}
            Err(error) => eprintln!("shim: signal {}: {error}", signal.as_raw()),
        }
    }

    /// SIGKILL to the group and to every descendant outside of it.
    fn kill_all(&self) {
        self.signal_group(Signal::KILL);
        kill_each(&procfs::descendants(self.me.pid));
    }

    /// Takes the status of every child that ended: the main process, and orphans that came to us.
    fn reap(&self) -> Reaped {
        let mut reaped = Reaped { main: None, childless: false };
        loop {
            match wait(WaitOptions::NOHANG) {
                Ok(Some((pid, status))) => {
                    if pid.as_raw_nonzero().get() == self.main.pid {
                        reaped.main = Some(status);
                    }
                }
                Ok(None) | Err(rustix::io::Errno::INTR) => return reaped,
                Err(_) => return Reaped { childless: true, ..reaped },
            }
        }
    }

    /// After the main process: nothing that it started may stay.
    fn end_descendants(&mut self) {
        let limit = Instant::now() + REAP_LIMIT;
        while !self.reap().childless {
            if Instant::now() >= limit {
                eprintln!("shim: processes remain after SIGKILL: {:?}", procfs::descendants(self.me.pid));
                return;
            }
            kill_each(&procfs::descendants(self.me.pid));
            self.turn(Some(SWEEP_PAUSE));
        }
    }

    /// Moves what is left in the pipes, without waiting for writers.
    fn drain(&mut self) {
        for stream in [Stream::Stdout, Stream::Stderr] {
            while self.move_output(stream) {}
            if let Err(error) = self.log.finish(stream, Timestamp::now()) {
                eprintln!("shim: log: {error}");
            }
        }
    }
}

/// What one round of reaping found.
struct Reaped {
    main: Option<WaitStatus>,
    childless: bool,
}

fn kill_each(processes: &[Identity]) {
    for process in processes {
        if let Err(error) = process.signal(Signal::KILL) {
            eprintln!("shim: kill {}: {error}", process.pid);
        }
    }
}

/// Wakes the returned stream on each signal that matters; TERM and INT also raise the flag.
fn listen(told_to_end: &Arc<AtomicBool>) -> io::Result<UnixStream> {
    let (ours, theirs) = UnixStream::pair()?;
    ours.set_nonblocking(true)?;
    for signal in [SIGTERM, SIGINT] {
        signal_hook::flag::register(signal, Arc::clone(told_to_end))?;
        signal_hook::low_level::pipe::register(signal, theirs.try_clone()?)?;
    }
    // Heard and ignored: the end of a terminal is not the end of a workload.
    signal_hook::flag::register(SIGHUP, Arc::new(AtomicBool::new(false)))?;
    signal_hook::low_level::pipe::register(SIGCHLD, theirs)?;
    Ok(ours)
}

fn drain_wakeups(stream: &mut UnixStream) {
    let mut bytes = [0; 64];
    while matches!(stream.read(&mut bytes), Ok(1..)) {}
}

/// Makes the fifo and opens both its ends, so that it never reports an end of input.
fn make_control(dir: &AttemptDir) -> Result<File, ShimError> {
    let path = dir.control();
    let mode = Mode::RUSR | Mode::WUSR;
    rustix::fs::mknodat(rustix::fs::CWD, &path, FileType::Fifo, mode, 0)
        .map_err(system("make the control fifo"))?;
    let flags = i32::try_from(rustix::fs::OFlags::NONBLOCK.bits()).unwrap_or_default();
    let opened = fs::OpenOptions::new().read(true).write(true).custom_flags(flags).open(&path);
    Ok(opened.map_err(io_error("open", &path))?)
}

/// Starts the second stage and waits until it has become the command.
fn spawn(dir: &AttemptDir, order: &RunOrder, me: Identity) -> Result<([File; 2], Identity), StartFailure> {
    let pipe = || io::pipe().map_err(system("make a pipe"));
    let ((stdout, stdout_end), (stderr, stderr_end)) = (pipe()?, pipe()?);
    let (mut report, report_end) = pipe()?;
    let work = order.working_dir.as_deref().map_or_else(|| dir.work(), PathBuf::from);
    let mut child = Command::new("/proc/self/exe")
        .arg0("strata")
        .args(["shim", "exec", &me.pid.to_string()])
        .arg(work)
        .args(&order.command)
        .env_clear()
        .envs(order.env.iter().map(|(name, value)| (name, value)))
        .stdin(Stdio::from(report_end))
        .stdout(Stdio::from(stdout_end))
        .stderr(Stdio::from(stderr_end))
        .process_group(0)
        .spawn()
        .map_err(|error| StartFailure::Command(format!("cannot start a process: {error}")))?;
    let pid =
        i32::try_from(child.id()).map_err(|_| StartFailure::Command("process id out of range".to_owned()))?;
    let mut reason = String::new();
    Read::by_ref(&mut report)
        .take(MAX_REASON)
        .read_to_string(&mut reason)
        .map_err(system("read the start report"))?;
    if !reason.is_empty() {
        child.wait().map_err(system("reap the failed command"))?;
        return Err(StartFailure::Command(reason));
    }
    // It may have ended already; a zombie still has its start time, since only we reap it.
    let main = Identity::of(pid).ok_or_else(|| StartFailure::Command("the command vanished".to_owned()))?;
    let outputs =
        [File::from(std::os::fd::OwnedFd::from(stdout)), File::from(std::os::fd::OwnedFd::from(stderr))];
    for output in &outputs {
        rustix::io::ioctl_fionbio(output, true).map_err(system("set a pipe to non-blocking"))?;
    }
    Ok((outputs, main))
}

/// The end in the words of a container status.
fn exit_of(status: WaitStatus, started_at: Timestamp, finished_at: Timestamp) -> Exit {
    let signal = status.terminating_signal();
    let code = signal.map_or_else(|| status.exit_status().unwrap_or(-1), |signal| 128 + signal);
    let reason = if code == 0 { ExitReason::Completed } else { ExitReason::Error };
    Exit {
        code,
        signal,
        reason,
        message: String::new(),
        started_at: Some(started_at),
        finished_at,
        interrupted: false,
    }
}
