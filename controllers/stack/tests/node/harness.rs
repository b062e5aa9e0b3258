//! What the tests share: a runtime in a fresh directory, launches, and waits for states.

use std::collections::BTreeMap;
use std::future::Future;
use std::panic::AssertUnwindSafe;
use std::path::Path;
use std::pin::Pin;
use std::process::ExitCode;
use std::time::{Duration, Instant};

use futures_util::FutureExt;
use strata_plan::pod::observed::{ContainerKey, ContainerState, Exit, Launch, StopCause};
use strata_stack::node::attempt::{AttemptDir, mark};
use strata_stack::node::procfs::{Identity, marked};
use strata_stack::node::runtime::Runtime;
use strata_stack::node::runtime::process::{Config, ProcessRuntime};
use strata_stack::node::shim::log::Limits;

/// The longest that anything is waited for.
pub const LIMIT: Duration = Duration::from_secs(30);
/// How often to look for what is not announced.
const LOOK: Duration = Duration::from_millis(5);

/// A test: its name and what it does.
pub type Test = (&'static str, fn() -> Pin<Box<dyn Future<Output = ()>>>);

/// Runs the tests whose name contains `filter`, one after another.
pub fn run_all(filter: &str, tests: &[Test]) -> ExitCode {
    let mut failed = Vec::new();
    for (name, test) in tests.iter().filter(|(name, _)| name.contains(filter)) {
        let runtime =
            tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap();
        let begun = Instant::now();
        let outcome = runtime.block_on(AssertUnwindSafe(test()).catch_unwind());
        println!("test {name} ... {} ({:?})", if outcome.is_ok() { "ok" } else { "FAILED" }, begun.elapsed());
        if outcome.is_err() {
            failed.push(name);
        }
    }
    if failed.is_empty() {
        return ExitCode::SUCCESS;
    }
    println!("failed: {failed:?}");
    ExitCode::FAILURE
}

/// A runtime in a directory of its own, and all that it started ended with it.
pub struct Bench {
    pub root: tempfile::TempDir,
    pub runtime: ProcessRuntime,
}

impl Bench {
    pub fn new() -> Self {
        Self::with_log(Limits::default())
    }

    pub fn with_log(log: Limits) -> Self {
        let root = tempfile::tempdir().unwrap();
        let runtime = open(root.path(), log);
        Self { root, runtime }
    }

    /// Puts another runtime on the same directory in place of this one, as a restarted agent does.
    pub fn reopen(&mut self) {
        self.runtime = open(self.root.path(), Limits::default());
    }

    /// Starts `sh -c script` as attempt 0 of container `c`.
    pub fn sh(&self, script: &str) -> ContainerKey {
        self.start(&["sh", "-c", script])
    }

    pub fn start(&self, command: &[&str]) -> ContainerKey {
        let launch = launch(command);
        self.runtime.start(&launch).unwrap();
        launch.key
    }

    pub fn state(&self, key: &ContainerKey) -> Option<ContainerState> {
        let found = self.runtime.containers(key.pod()).unwrap();
        found.into_iter().find(|container| container.key == *key).map(|container| container.state)
    }

    /// Waits for the runtime's announcements until the state is as wanted.
    pub async fn until<T>(&self, key: &ContainerKey, wanted: impl Fn(&ContainerState) -> Option<T>) -> T {
        let waiting = async {
            loop {
                if let Some(found) = self.state(key).and_then(|state| wanted(&state)) {
                    return found;
                }
                self.runtime.changes().take().await;
            }
        };
        match tokio::time::timeout(LIMIT, waiting).await {
            Ok(found) => found,
            Err(_) => panic!("still {:?}", self.state(key)),
        }
    }

    /// Waits until it runs, and says as which process.
    pub async fn running(&self, key: &ContainerKey) -> Identity {
        self.until(key, |state| matches!(state, ContainerState::Running { .. }).then_some(())).await;
        self.dir(key).record().unwrap().unwrap().workload.unwrap()
    }

    pub async fn exit(&self, key: &ContainerKey) -> Exit {
        self.until(key, |state| match state {
            ContainerState::Exited(exit) => Some(exit.clone()),
            _ => None,
        })
        .await
    }

    pub fn dir(&self, key: &ContainerKey) -> AttemptDir {
        AttemptDir::of(&self.root.path().canonicalize().unwrap(), key)
    }

    pub fn shim(&self, key: &ContainerKey) -> Identity {
        self.dir(key).record().unwrap().unwrap().shim.unwrap()
    }

    /// Waits until the supervisor is gone and reaped.
    pub async fn reaped(&self, key: &ContainerKey) {
        let shim = self.shim(key);
        until(|| Identity::of(shim.pid) != Some(shim)).await;
    }

    /// The text of the log, without times.
    pub fn log(&self, key: &ContainerKey) -> Vec<String> {
        let text = std::fs::read_to_string(self.dir(key).log()).unwrap_or_default();
        text.lines().map(|line| line.split_once(' ').unwrap().1.to_owned()).collect()
    }

    /// Waits until the log has a line with this text.
    pub async fn logged(&self, key: &ContainerKey, text: &str) {
        until(|| self.log(key).iter().any(|line| line.ends_with(text))).await;
    }
}

impl Drop for Bench {
    fn drop(&mut self) {
        for pod in self.runtime.pods().unwrap() {
            for container in self.runtime.containers(&pod).unwrap() {
                self.runtime.stop(&container.key, Duration::ZERO, StopCause::Pod).unwrap();
                let end = Instant::now() + LIMIT;
                while !processes(&container.key).is_empty() && Instant::now() < end {
                    std::thread::yield_now();
                }
            }
        }
    }
}

fn open(root: &Path, log: Limits) -> ProcessRuntime {
    ProcessRuntime::open(Config { log, ..Config::new(root.to_owned()) }).unwrap()
}

/// A launch of a command on the host image. Each has a pod uid of its own, so that marks do not meet.
pub fn launch(command: &[&str]) -> Launch {
    let uid = uuid::Uuid::new_v4().to_string();
    Launch {
        key: ContainerKey::new(&uid, "c", 0).unwrap(),
        namespace: "default".into(),
        pod_name: "web-0".into(),
        image: "host".into(),
        command: command.iter().map(|part| (*part).to_owned()).collect(),
        env: vec![("GREETING".into(), "hello".into())],
        working_dir: None,
        backoff_seconds: 0,
        grace_seconds: 20,
        annotations: BTreeMap::new(),
    }
}

/// Waits for something that nobody announces: looks at every tick, until the limit.
pub async fn until(condition: impl Fn() -> bool) {
    let mut looks = looks();
    while !condition() {
        looks.next().await;
    }
}

/// The times at which to look for something that nobody announces.
pub struct Looks {
    ticks: tokio::time::Interval,
    end: Instant,
}

/// Looks that begin now.
pub fn looks() -> Looks {
    Looks { ticks: tokio::time::interval(LOOK), end: Instant::now() + LIMIT }
}

impl Looks {
    /// Waits for the next one; panics when the limit is over.
    pub async fn next(&mut self) {
        assert!(Instant::now() < self.end, "waited for {LIMIT:?}");
        self.ticks.tick().await;
    }
}

/// All processes of an attempt that kept their environment, the shim left out.
pub fn processes(key: &ContainerKey) -> Vec<Identity> {
    marked(&mark(key), Path::new("/nowhere")).into_iter().collect()
}

/// The zombies among this process's children.
pub fn zombies() -> usize {
    let me = std::process::id();
    let all = std::fs::read_dir("/proc").unwrap().flatten();
    let stats = all.filter_map(|entry| std::fs::read_to_string(entry.path().join("stat")).ok());
    stats.filter(|stat| stat.rsplit(')').next().unwrap().starts_with(&format!(" Z {me} "))).count()
}
