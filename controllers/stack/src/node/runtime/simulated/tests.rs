//! The simulated runtime, by its states at given times and by what it announces.

use std::collections::BTreeMap;
use std::time::Duration;

use jiff::{SignedDuration, Timestamp};
use strata_plan::pod::observed::{ContainerKey, ContainerState, Launch, StopCause};

use super::{Simulated, SimulatedRuntime};
use crate::node::runtime::Runtime;

fn launch(annotations: &[(&str, &str)]) -> Launch {
    let annotations: BTreeMap<String, String> = annotations
        .iter()
        .map(|(name, value)| (format!("strata.dev/simulate-{name}"), (*value).to_owned()))
        .collect();
    Launch {
        key: ContainerKey::new("u", "c", 0).unwrap(),
        namespace: "default".into(),
        pod_name: "web".into(),
        image: "nginx".into(),
        command: Vec::new(),
        env: Vec::new(),
        working_dir: None,
        backoff_seconds: 0,
        grace_seconds: 30,
        annotations,
    }
}

fn t0() -> Timestamp {
    "2026-11-30T20:00:00Z".parse().unwrap()
}

fn name(state: &ContainerState) -> &'static str {
    match state {
        ContainerState::Created => "created",
        ContainerState::Running { .. } => "running",
        ContainerState::Exited(exit) if exit.code == 0 => "completed",
        ContainerState::Exited(_) => "failed",
    }
}

#[test]
fn a_container_goes_through_the_states_that_its_annotations_order() {
    let orders = [("start-seconds", "2"), ("exit", "3"), ("exit-after-seconds", "5")];
    let container = Simulated::new(&launch(&orders), t0(), Duration::from_millis(200));
    for (second, want) in
        [(0, "created"), (1, "created"), (2, "running"), (6, "running"), (7, "failed"), (99, "failed")]
    {
        let now = t0() + SignedDuration::from_secs(second);
        assert_eq!(name(&container.state(now)), want, "at {second}");
    }
}

#[test]
fn stopping_is_polite_within_the_grace_and_a_kill_beyond_it() {
    let mut quick = Simulated::new(&launch(&[]), t0(), Duration::ZERO);
    quick.stop(t0(), Duration::from_secs(30));
    assert_eq!(name(&quick.state(t0())), "completed");
    let mut slow = Simulated::new(&launch(&[("stop-seconds", "60")]), t0(), Duration::ZERO);
    slow.stop(t0(), Duration::from_secs(30));
    assert_eq!(name(&slow.state(t0() + SignedDuration::from_secs(29))), "running");
    assert_eq!(name(&slow.state(t0() + SignedDuration::from_secs(30))), "failed");
    slow.stop(t0(), Duration::ZERO);
    assert_eq!(name(&slow.state(t0())), "failed");
}

#[tokio::test]
async fn each_change_of_state_is_announced() {
    let runtime = SimulatedRuntime::new(Duration::from_millis(5));
    let launch = launch(&[]);
    let state = || runtime.containers("u").unwrap().first().map(|container| name(&container.state));
    let until = async |want: Option<&str>| {
        while state() != want {
            tokio::time::timeout(Duration::from_secs(20), runtime.changes().take()).await.unwrap();
        }
    };
    runtime.start(&launch).unwrap();
    until(Some("running")).await;
    assert!(runtime.remove(&launch.key).is_err());
    runtime.stop(&launch.key, Duration::from_secs(30), StopCause::Pod).unwrap();
    until(Some("completed")).await;
    runtime.remove(&launch.key).unwrap();
    assert_eq!(state(), None);
    assert!(runtime.pods().unwrap().is_empty());
}

#[tokio::test]
async fn what_the_api_remembers_as_running_runs_on_without_starting() {
    let runtime = SimulatedRuntime::new(Duration::from_secs(3600));
    runtime.remember(&launch(&[]), t0());
    let state = runtime.containers("u").unwrap().remove(0).state;
    assert_eq!(state, ContainerState::Running { started_at: t0() });
}
