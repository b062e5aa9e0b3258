//! The runtime without processes, for scale work: a container runs because time passed. It must never start,
//! open or listen to anything; thousands of pods cost a map entry each.
//!
//! Orders are read from the pod's annotations, all optional:
//! `strata.dev/simulate-start-seconds` (how long starting takes), `strata.dev/simulate-exit` (the exit code
//! with which it ends), `strata.dev/simulate-exit-after-seconds` (how long it runs before that; 0),
//! `strata.dev/simulate-stop-seconds` (how long it takes to stop; 0) and
//! `strata.dev/simulate-unready: "true"` (every probe fails).

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::time::Duration;

use jiff::{SignedDuration, Timestamp};
use strata_model::object::ObjectKey;
use strata_plan::pod::observed::{
    ContainerKey, ContainerState, Exit, ExitReason, Launch, ObservedContainer, StopCause,
};
use tokio::sync::Notify;

use super::changes::Changes;
use super::{BoxFuture, ExecResult, LogSource, ProbeAnswer, Runtime, RuntimeError};

/// The prefix of all orders in annotations.
const PREFIX: &str = "strata.dev/simulate-";
/// The longest time that an annotation may ask for.
const MAX_SECONDS: f64 = 86_400.0 * 365.0;

/// Runs containers by the clock.
pub struct SimulatedRuntime {
    shared: Arc<Shared>,
}

struct Shared {
    start_delay: Duration,
    changes: Changes,
    world: Mutex<World>,
    sooner: Notify,
}

/// All containers and the moments at which something happens to them.
#[derive(Default)]
struct World {
    pods: BTreeMap<String, BTreeMap<ContainerKey, Simulated>>,
    due: BTreeSet<(Timestamp, ContainerKey)>,
}

/// One container: its whole future, as far as it is known.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Simulated {
    starts_at: Timestamp,
    ends: Option<(Timestamp, i32)>,
    unready: bool,
    stop: Duration,
    stop_by: Option<Timestamp>,
    backoff_seconds: u32,
    pod_name: ObjectKey,
}

impl Simulated {
    fn new(launch: &Launch, now: Timestamp, start_delay: Duration) -> Self {
        let order = |name: &str| launch.annotations.get(&format!("{PREFIX}{name}")).map(String::as_str);
        let seconds = |name: &str| order(name).and_then(parse_seconds);
        let starts_at = after(now, seconds("start-seconds").unwrap_or(start_delay));
        let ends = order("exit").and_then(|code| code.parse().ok()).map(|code| {
            let runs = seconds("exit-after-seconds").unwrap_or_default();
            (after(starts_at, runs), code)
        });
        let stop = seconds("stop-seconds").unwrap_or_default();
        let unready = order("unready") == Some("true");
        let pod_name = ObjectKey::new(launch.namespace.as_str(), launch.pod_name.as_str());
        let backoff_seconds = launch.backoff_seconds;
        Self { starts_at, ends, unready, stop, stop_by: None, backoff_seconds, pod_name }
    }

    fn state(&self, now: Timestamp) -> ContainerState {
        match self.ends {
            Some((at, code)) if at <= now => ContainerState::Exited(self.exit(at, code)),
            _ if self.starts_at <= now => ContainerState::Running { started_at: self.starts_at },
            _ => ContainerState::Created,
        }
    }

    fn exit(&self, at: Timestamp, code: i32) -> Exit {
        let reason = if code == 0 { ExitReason::Completed } else { ExitReason::Error };
        let started_at = (self.starts_at <= at).then_some(self.starts_at);
        Exit {
            code,
            signal: None,
            reason,
            message: String::new(),
            started_at,
            finished_at: at,
            interrupted: false,
        }
    }

    /// A polite stop ends it with 0 after its stop time; a grace that is shorter kills it.
    fn stop(&mut self, now: Timestamp, grace: Duration) {
        let end = if self.stop <= grace { (after(now, self.stop), 0) } else { (after(now, grace), 137) };
        self.ends = Some(self.ends.map_or(end, |known| known.min(end)));
        let by = after(now, grace);
        self.stop_by = Some(self.stop_by.map_or(by, |known| known.min(by)));
    }

    /// The next moment after `now` at which its state changes.
    fn next_change(&self, now: Timestamp) -> Option<Timestamp> {
        let moments = [Some(self.starts_at), self.ends.map(|(at, _)| at)];
        moments.into_iter().flatten().filter(|at| *at > now).min()
    }
}

impl SimulatedRuntime {
    /// A world without containers in which starting takes `start_delay` where no annotation says otherwise.
    ///
    /// Must be called within a tokio runtime; it carries one task, which ends after this value does.
    pub fn new(start_delay: Duration) -> Self {
        let shared = Arc::new(Shared {
            start_delay,
            changes: Changes::default(),
            world: Mutex::default(),
            sooner: Notify::new(),
        });
        tokio::spawn(pass_time(Arc::downgrade(&shared)));
        Self { shared }
    }
}

impl Drop for SimulatedRuntime {
    fn drop(&mut self) {
        self.shared.sooner.notify_one();
    }
}

impl Shared {
    fn world(&self) -> MutexGuard<'_, World> {
        self.world.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Enters or changes a container and sees that time wakes for it.
    fn put(&self, key: &ContainerKey, now: Timestamp, container: Simulated) {
        let mut world = self.world();
        let next = container.next_change(now);
        world.pods.entry(key.pod().to_owned()).or_default().insert(key.clone(), container);
        match next {
            Some(at) => {
                world.due.insert((at, key.clone()));
                self.sooner.notify_one();
            }
            None => self.changes.mark(key.pod()),
        }
    }

    /// Marks the pods to which something happened, and says how long nothing will.
    fn turn(&self, now: Timestamp) -> Option<Duration> {
        let mut world = self.world();
        while let Some((at, key)) = world.due.pop_first() {
            if at > now {
                let wait = at.duration_since(now);
                world.due.insert((at, key));
                return Some(wait.unsigned_abs());
            }
            let next = world.container(&key).and_then(|container| container.next_change(now));
            if let Some(next) = next {
                world.due.insert((next, key.clone()));
            }
            self.changes.mark(key.pod());
        }
        None
    }
}

impl World {
    fn container(&self, key: &ContainerKey) -> Option<&Simulated> {
        self.pods.get(key.pod())?.get(key)
    }
}

/// Lets time pass until the runtime is gone.
async fn pass_time(shared: Weak<Shared>) {
    while let Some(alive) = shared.upgrade() {
        let wait = alive.turn(Timestamp::now());
        let sooner = alive.sooner.notified();
        match wait {
            Some(wait) => drop(tokio::time::timeout(wait, sooner).await),
            None => sooner.await,
        }
        if Arc::strong_count(&alive) == 1 {
            return;
        }
    }
}

impl Runtime for SimulatedRuntime {
    fn name(&self) -> &'static str {
        "simulated"
    }

    fn accepts_image(&self, _: &str) -> Result<(), String> {
        Ok(())
    }

    fn pods(&self) -> Result<Vec<String>, RuntimeError> {
        Ok(self.shared.world().pods.keys().cloned().collect())
    }

    fn pod_name(&self, pod: &str) -> Result<Option<ObjectKey>, RuntimeError> {
        let world = self.shared.world();
        let first = world.pods.get(pod).and_then(|containers| containers.values().next());
        Ok(first.map(|container| container.pod_name.clone()))
    }

    fn containers(&self, pod: &str) -> Result<Vec<ObservedContainer>, RuntimeError> {
        let now = Timestamp::now();
        let world = self.shared.world();
        let containers = world.pods.get(pod).into_iter().flatten();
        let observed = containers.map(|(key, container)| ObservedContainer {
            key: key.clone(),
            state: container.state(now),
            id: format!("{}://{key}", self.name()),
            backoff_seconds: container.backoff_seconds,
            stop_by: container.stop_by,
        });
        Ok(observed.collect())
    }

    fn start(&self, launch: &Launch) -> Result<(), RuntimeError> {
        if self.shared.world().container(&launch.key).is_none() {
            let now = Timestamp::now();
            self.shared.put(&launch.key, now, Simulated::new(launch, now, self.shared.start_delay));
        }
        Ok(())
    }

    fn stop(&self, key: &ContainerKey, grace: Duration, _: StopCause) -> Result<(), RuntimeError> {
        let container = self.shared.world().container(key).cloned();
        let now = Timestamp::now();
        match container {
            Some(mut container) if !matches!(container.state(now), ContainerState::Exited(_)) => {
                container.stop(now, grace);
                self.shared.put(key, now, container);
            }
            _ => self.shared.changes.mark(key.pod()),
        }
        Ok(())
    }

    fn grace(&self, _: &ContainerKey) -> Duration {
        Duration::ZERO
    }

    fn remove(&self, key: &ContainerKey) -> Result<(), RuntimeError> {
        let mut world = self.shared.world();
        let Some(container) = world.container(key) else { return Ok(()) };
        if !matches!(container.state(Timestamp::now()), ContainerState::Exited(_)) {
            return Err(RuntimeError::NotOver { key: key.clone() });
        }
        if let Some(containers) = world.pods.get_mut(key.pod()) {
            containers.remove(key);
            if containers.is_empty() {
                world.pods.remove(key.pod());
            }
        }
        Ok(())
    }

    fn remove_pod(&self, pod: &str) -> Result<(), RuntimeError> {
        for container in self.containers(pod)? {
            self.remove(&container.key)?;
        }
        Ok(())
    }

    fn log(&self, key: &ContainerKey) -> LogSource {
        LogSource::Text(format!("{key} is simulated: no process runs, so there is no output\n"))
    }

    fn exec<'a>(
        &'a self,
        _: &'a ContainerKey,
        _: &'a [String],
        _: Duration,
    ) -> BoxFuture<'a, Result<ExecResult, RuntimeError>> {
        let output = "simulated: no process runs, so nothing can be executed\n".to_owned();
        Box::pin(std::future::ready(Ok(ExecResult { code: Some(126), output })))
    }

    fn answer_probe(&self, key: &ContainerKey) -> Option<ProbeAnswer> {
        let world = self.shared.world();
        let unready = world.container(key).is_some_and(|container| container.unready);
        let message = if unready { format!("the pod is annotated {PREFIX}unready") } else { String::new() };
        Some(ProbeAnswer { success: !unready, message })
    }

    fn remember(&self, launch: &Launch, started_at: Timestamp) {
        if self.shared.world().container(&launch.key).is_some() {
            return;
        }
        let mut container = Simulated::new(launch, started_at, Duration::ZERO);
        container.starts_at = started_at;
        self.shared.put(&launch.key, Timestamp::now(), container);
    }

    fn changes(&self) -> &Changes {
        &self.shared.changes
    }
}

fn parse_seconds(text: &str) -> Option<Duration> {
    let seconds: f64 = text.parse().ok()?;
    (0.0..=MAX_SECONDS).contains(&seconds).then(|| Duration::from_secs_f64(seconds))
}

fn after(time: Timestamp, wait: Duration) -> Timestamp {
    SignedDuration::try_from(wait).ok().and_then(|wait| time.checked_add(wait).ok()).unwrap_or(Timestamp::MAX)
}

#[cfg(test)]
mod tests;
