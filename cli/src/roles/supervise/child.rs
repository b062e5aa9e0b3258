//! Child: one role's process, started again whenever it ends, until it is told to stop. One task for each. Knows how
//! to start and signal a process and decides nothing: that is `restart`'s.

use std::ffi::OsString;
use std::fs::File;
use std::net::TcpListener;
use std::os::fd::OwnedFd;
use std::os::unix::process::ExitStatusExt;
use std::process::{ExitStatus, Stdio};
use std::sync::Arc;
use std::time::Duration;

use rustix::process::{Pid, Signal, kill_process};
use tokio::io::BufReader;
use tokio::process::{Child, ChildStderr, Command};
use tokio::sync::{mpsc, watch};
use tokio::time::Instant;

use super::super::telemetry::Format;
use super::super::{lifeline, notify};
use super::output;
use super::restart::{End, Policy, Restart, Verdict};

/// The program of every child: this one, even if its file was replaced since.
const SELF: &str = "/proc/self/exe";
/// The variable that says: standard output is the socket to listen on.
pub const LISTENER: &str = "STRATA_LISTENER";
/// The name of every child in the process list.
const PROGRAM: &str = "strata";
/// How long after its end a child's last lines are waited for: a grandchild may hold the pipe open.
const LAST_LINES: Duration = Duration::from_millis(200);

/// What a child is.
#[derive(Clone, Debug)]
pub struct Spec {
    /// Its name in messages: `apiserver`, `deployment`, `node`.
    pub name: String,
    /// The arguments behind `strata`.
    pub args: Vec<OsString>,
    /// What it inherits.
    pub inherits: Inherits,
}

/// What a child gets as standard output, where roles have nothing to say.
#[derive(Clone, Debug)]
pub enum Inherits {
    /// A listening socket, so that a restarted child serves at the same address and its clients wait meanwhile.
    Listener(Arc<TcpListener>),
    /// A file whose lock is held until the last process that has it ends.
    Lock(Arc<File>),
}

/// What a child is told.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Order {
    /// Run, and be started again when it ends.
    Run,
    /// End in order.
    Stop,
    /// End now.
    Kill,
}

/// What became of a child.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum News {
    /// A process was started.
    Started {
        /// Its process id.
        pid: u32,
    },
    /// It serves.
    Ready,
    /// It ended, and is started again after a delay.
    Ended {
        /// How, and the last thing it said.
        reason: String,
        /// Until it is started again.
        delay: Duration,
    },
    /// It ended and is not started again.
    GivenUp {
        /// How, and the last thing it said.
        reason: String,
    },
    /// It ended as it was told to.
    Stopped,
}

/// Runs the child to its last end. `news` is bounded: a full one holds the child's restarts up, never its process.
pub async fn run(
    spec: Spec,
    format: Format,
    mut orders: watch::Receiver<Order>,
    news: mpsc::Sender<(String, News)>,
) {
    let began = Instant::now();
    let mut restart = Restart::new(Policy::default());
    let tell = async |item: News| {
        if news.send((spec.name.clone(), item)).await.is_err() {
            tracing::debug!(child = spec.name, "nobody listens any more");
        }
    };
    while *orders.borrow() == Order::Run {
        let life = live(&spec, format, &mut orders, |item| {
            if item == News::Ready {
                restart.ready(began.elapsed());
            }
            tell(item)
        })
        .await;
        if *orders.borrow() != Order::Run {
            break;
        }
        match restart.ended(life.end, began.elapsed()) {
            Verdict::GiveUp => {
                tell(News::GivenUp { reason: life.reason() }).await;
                return;
            }
            Verdict::After(delay) => {
                tell(News::Ended { reason: life.reason(), delay }).await;
                tokio::select! {
                    () = tokio::time::sleep(delay) => {}
                    () = told_to_end(&mut orders) => {}
                }
            }
        }
    }
    tell(News::Stopped).await;
}

/// One life of a child, from its start to its end.
struct Life {
    end: End,
    last_line: Option<String>,
    error: Option<std::io::Error>,
}

impl Life {
    fn reason(&self) -> String {
        let how = match (self.end, &self.error) {
            (_, Some(error)) => format!("could not be started: {error}"),
            (End::Code(code), None) => format!("ended with exit code {code}"),
            (End::Signal(signal), None) => format!("was ended by signal {signal}{}", signal_name(signal)),
            (End::NotStarted, None) => "could not be started".to_owned(),
        };
        // Who was killed from outside did not say why.
        let is_own_doing = !matches!(self.end, End::Signal(9 | 15));
        match self.last_line.as_ref().filter(|_| is_own_doing) {
            Some(line) => format!("{how}: {line}"),
            None => how,
        }
    }
}

fn signal_name(signal: i32) -> &'static str {
    match Signal::from_named_raw(signal) {
        Some(Signal::KILL) => " (SIGKILL)",
        Some(Signal::TERM) => " (SIGTERM)",
        Some(Signal::SEGV) => " (SIGSEGV)",
        Some(Signal::ABORT) => " (SIGABRT)",
        _ => "",
    }
}

/// Resolves when the child is not to run any more.
async fn told_to_end(orders: &mut watch::Receiver<Order>) {
    if orders.wait_for(|order| *order != Order::Run).await.is_err() {
        tracing::debug!("the supervisor is gone");
    }
}

/// Starts the child and sees it through. Never lasts longer than the process does, plus [`LAST_LINES`].
async fn live<F: Future<Output = ()>>(
    spec: &Spec,
    format: Format,
    orders: &mut watch::Receiver<Order>,
    mut tell: impl FnMut(News) -> F,
) -> Life {
    let (mut child, ear) = match start(spec) {
        Ok(started) => started,
        Err(error) => return Life { end: End::NotStarted, last_line: None, error: Some(error) },
    };
    let pid = child.id();
    // The lifeline: taken, since waiting for a child would close it, and held to the child's end.
    let _lifeline = child.stdin.take();
    let mut lines = child.stderr.take().map(BufReader::new);
    let mut last_line = None;
    if let Some(pid) = pid {
        tell(News::Started { pid }).await;
    }
    let mut done = Order::Run;
    let mut deaf = false;
    let status = loop {
        tokio::select! {
            status = child.wait() => break status,
            heard = ear.hear(), if !deaf => match heard {
                Ok(notify::Message::Ready) => tell(News::Ready).await,
                Ok(notify::Message::Stopping) => {}
                Err(error) => {
                    tracing::warn!(child = spec.name, %error, "cannot hear it");
                    deaf = true;
                }
            },
            line = next(&mut lines) => last_line = show(spec, format, line, &mut lines).or(last_line),
            () = changed(orders, done) => {
                done = *orders.borrow();
                signal(pid, if done == Order::Kill { Signal::KILL } else { Signal::TERM });
            }
        }
    };
    while let Ok(line) = tokio::time::timeout(LAST_LINES, next(&mut lines)).await {
        last_line = show(spec, format, line, &mut lines).or(last_line);
        if lines.is_none() {
            break;
        }
    }
    match status {
        Ok(status) => Life { end: end(status), last_line, error: None },
        Err(error) => Life { end: End::NotStarted, last_line, error: Some(error) },
    }
}

/// Resolves when there is a stronger order than the one that was carried out.
async fn changed(orders: &mut watch::Receiver<Order>, done: Order) {
    if orders.wait_for(|order| *order as u8 > done as u8).await.is_err() {
        // Without a supervisor there are no more orders.
        std::future::pending().await
    }
}

/// The next line of a child; never, once there are no more.
async fn next(lines: &mut Option<BufReader<ChildStderr>>) -> std::io::Result<Option<String>> {
    match lines {
        Some(reader) => output::next_line(reader).await,
        None => std::future::pending().await,
    }
}

/// Prints a line, and gives it back unless it is empty; closes `lines` at its end.
fn show(
    spec: &Spec,
    format: Format,
    line: std::io::Result<Option<String>>,
    lines: &mut Option<BufReader<ChildStderr>>,
) -> Option<String> {
    match line {
        Ok(Some(line)) => {
            output::print(&output::labelled(format, &spec.name, &line));
            Some(line).filter(|line| !line.trim().is_empty())
        }
        Ok(None) => {
            *lines = None;
            None
        }
        Err(error) => {
            tracing::warn!(child = spec.name, %error, "cannot read its output");
            *lines = None;
            None
        }
    }
}

/// Starts the process: a group of its own, so that Ctrl-C reaches the supervisor alone; a lifeline as standard input;
/// errors to us.
fn start(spec: &Spec) -> std::io::Result<(Child, notify::Ear)> {
    let ear = notify::Ear::open()?;
    let stdout = match &spec.inherits {
        Inherits::Listener(listener) => Stdio::from(OwnedFd::from(listener.try_clone()?)),
        Inherits::Lock(lock) => Stdio::from(OwnedFd::from(lock.try_clone()?)),
    };
    let mut command = Command::new(SELF);
    command
        .arg0(PROGRAM)
        .args(&spec.args)
        .env(notify::VARIABLE, ear.name())
        .env(lifeline::VARIABLE, "1")
        .stdin(Stdio::piped())
        .stdout(stdout)
        .stderr(Stdio::piped())
        .process_group(0);
    if matches!(spec.inherits, Inherits::Listener(_)) {
        command.env(LISTENER, "stdout");
    }
    Ok((command.spawn()?, ear))
}

fn end(status: ExitStatus) -> End {
    match (status.code(), status.signal()) {
        (Some(code), _) => End::Code(code),
        (None, Some(signal)) => End::Signal(signal),
        (None, None) => End::NotStarted,
    }
}

/// Signals a child that was not waited for yet: its id cannot be another's.
fn signal(pid: Option<u32>, signal: Signal) {
    let pid = pid.and_then(|pid| i32::try_from(pid).ok()).and_then(Pid::from_raw);
    if let Some(pid) = pid
        && let Err(error) = kill_process(pid, signal)
    {
        tracing::debug!(?pid, %error, "cannot signal");
    }
}
