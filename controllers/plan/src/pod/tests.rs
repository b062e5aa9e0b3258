//! Scenarios of one pod on a node: a world that applies writes as the API server would, and a node that does
//! what effects say. Each scenario settles, and runs again with only one step of each plan applied a turn.

use std::collections::BTreeMap;
use std::time::Duration;

use jiff::{SignedDuration, Timestamp};
use serde_json::{Value, json};
use strata_model::object::ObjectKey;
use strata_model::resource::builtin;

use super::environment::{SourceRef, Sources};
use super::observed::{ContainerKey, ContainerState, Exit, ExitReason, NodeFacts, ObservedContainer};
use super::plan::{Effect, Observed, PodPlan, plan, plan_gone};
use super::probe::{Finding, ProbeKind};
use super::verdict::Findings;
use crate::controller::{Action, Next, View};
use crate::world::World;

mod crashes;
mod ends;
mod lives;

/// Most turns that a scene may take to settle.
const MAX_TURNS: usize = 100;

/// How much of a plan is applied in one turn.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Pace {
    Whole,
    OneStep,
}

/// One step of a plan.
enum Step {
    Write(Box<Action>),
    Effect(Effect),
}

/// A world with one pod and the node that it is bound to.
struct Scene {
    world: World,
    key: ObjectKey,
    uid: String,
    now: Timestamp,
    containers: Vec<ObservedContainer>,
    findings: Findings,
    refused_images: BTreeMap<String, String>,
    /// What there is to be fetched.
    there: Sources,
    /// Whether created containers run by themselves.
    starts: bool,
    pace: Pace,
    /// All statuses that a watcher saw.
    seen: Vec<Value>,
}

/// Plays a scene at both paces.
fn play(spec: Value, scene: impl Fn(&mut Scene)) {
    for pace in [Pace::Whole, Pace::OneStep] {
        scene(&mut Scene::new(spec.clone(), pace));
    }
}

impl Scene {
    fn new(mut spec: Value, pace: Pace) -> Self {
        let now: Timestamp = "2026-11-30T20:00:00Z".parse().unwrap();
        let mut world = World::new();
        spec["nodeName"] = json!("n1");
        let pod = json!({"metadata": {"name": "web-0", "namespace": "default"}, "spec": spec,
            "status": {"phase": "Pending", "qosClass": "BestEffort",
                "conditions": [{"type": "PodScheduled", "status": "True"}]}});
        let pod = world.create(&builtin::POD, pod, now).unwrap();
        Self {
            world,
            key: pod.key(),
            uid: pod.meta().uid.clone(),
            now,
            containers: Vec::new(),
            findings: Findings::new(),
            refused_images: BTreeMap::new(),
            there: Sources::new(),
            starts: true,
            pace,
            seen: Vec::new(),
        }
    }

    fn pass(&mut self, seconds: i64) {
        self.now += SignedDuration::from_secs(seconds);
        for container in &mut self.containers {
            if container.stop_by.is_some_and(|by| by <= self.now) && !container.is_over() {
                container.state = ContainerState::Exited(exit(137, container, self.now));
            }
        }
    }

    fn plan(&self) -> PodPlan {
        let Some(pod) = self.world.get(&builtin::POD.id, &self.key) else {
            return match self.containers.is_empty() {
                true => PodPlan::default(),
                false => plan_gone(&self.uid, &self.containers, |_| Duration::from_secs(3)),
            };
        };
        let mut observed = Observed {
            pod,
            node: node(),
            containers: self.containers.clone(),
            findings: self.findings.clone(),
            refused_images: self.refused_images.clone(),
            sources: None,
        };
        let first = plan(&observed, self.now).unwrap();
        if first.needs.is_empty() {
            return first;
        }
        let fetched = first.needs.iter().map(|need| (need.clone(), self.there.get(need).cloned().flatten()));
        observed.sources = Some(fetched.collect());
        let second = plan(&observed, self.now).unwrap();
        assert!(second.needs.is_empty());
        second
    }

    /// One turn. Returns whether there was anything to do.
    fn turn(&mut self) -> bool {
        let plan = self.plan();
        let writes = |actions: Vec<Action>| actions.into_iter().map(|action| Step::Write(Box::new(action)));
        let steps =
            writes(plan.before).chain(plan.effects.into_iter().map(Step::Effect)).chain(writes(plan.after));
        let limit = if self.pace == Pace::Whole { usize::MAX } else { 1 };
        let mut done = 0;
        for step in steps.take(limit) {
            done += 1;
            match step {
                Step::Write(action) => self.world.apply(&action, self.now).unwrap(),
                Step::Effect(effect) => self.perform(effect),
            }
        }
        if let Some(status) = self.status().filter(|status| self.seen.last() != Some(status)) {
            self.seen.push(status);
        }
        for container in &mut self.containers {
            if self.starts && container.state == ContainerState::Created {
                container.state = ContainerState::Running { started_at: self.now };
                done += 1;
            }
        }
        done > 0
    }

    fn settle(&mut self) {
        for _ in 0..MAX_TURNS {
            if !self.turn() {
                assert!(self.plan().is_settled());
                return;
            }
        }
        panic!("does not settle: {:#?}", self.plan());
    }

    fn perform(&mut self, effect: Effect) {
        match effect {
            Effect::Start(launch) => {
                assert!(self.containers.iter().all(|container| container.key != launch.key), "started twice");
                let same = |other: &&ObservedContainer| other.key.container() == launch.key.container();
                assert!(self.containers.iter().filter(same).all(ObservedContainer::is_over), "two at once");
                self.containers.push(ObservedContainer {
                    id: format!("process://{}", launch.key),
                    key: launch.key,
                    state: ContainerState::Created,
                    backoff_seconds: launch.backoff_seconds,
                    stop_by: None,
                });
                self.containers.sort_by(|a, b| a.key.cmp(&b.key));
            }
            Effect::Stop { key, grace } => {
                let by = self.now + SignedDuration::try_from(grace).unwrap();
                self.container(&key).stop_by = Some(by);
            }
            Effect::Remove(key) => {
                assert!(self.container(&key).is_over());
                self.containers.retain(|container| container.key != key);
            }
            Effect::RemovePod(uid) => {
                assert!(uid == self.uid && self.containers.iter().all(ObservedContainer::is_over));
                self.containers.clear();
            }
        }
    }

    fn container(&mut self, key: &ContainerKey) -> &mut ObservedContainer {
        self.containers.iter_mut().find(|container| container.key == *key).unwrap()
    }

    /// Ends the newest attempt of a container.
    fn die(&mut self, name: &str, code: i32) {
        let key = self.newest(name);
        let now = self.now;
        let container = self.container(&key);
        container.state = ContainerState::Exited(exit(code, container, now));
    }

    fn newest(&self, name: &str) -> ContainerKey {
        let of_name = self.containers.iter().filter(|container| container.key.container() == name);
        of_name.map(|container| container.key.clone()).max_by_key(ContainerKey::attempt).unwrap()
    }

    fn find(&mut self, name: &str, kind: ProbeKind, passed: bool) {
        let key = self.newest(name);
        self.findings.insert((key, kind), Finding { passed, message: "HTTP 500".into() });
    }

    fn status(&self) -> Option<Value> {
        let pod = self.world.get(&builtin::POD.id, &self.key)?;
        Some(pod.to_value().unwrap()["status"].take())
    }

    /// A value in the status, by pointer.
    fn at(&self, pointer: &str) -> Value {
        self.status().unwrap().pointer(pointer).cloned().unwrap_or(Value::Null)
    }

    fn condition(&self, type_: &str) -> String {
        let status = self.status().unwrap();
        let list = status["conditions"].as_array().unwrap();
        let found = list.iter().find(|condition| condition["type"] == type_).unwrap();
        format!("{} {}", found["status"].as_str().unwrap(), found["reason"].as_str().unwrap_or("-"))
    }

    fn running(&self) -> Vec<String> {
        let live = self.containers.iter().filter(|container| !container.is_over());
        live.map(|container| format!("{}/{}", container.key.container(), container.key.attempt())).collect()
    }

    /// Checks the reasons of the events. Only where plans were applied whole: an event that follows a change is
    /// lost with the rest of its turn.
    fn assert_told(&self, want: &[&str]) {
        if self.pace == Pace::Whole {
            assert_eq!(self.world.told.iter().map(|told| told.reason).collect::<Vec<_>>(), want);
        }
    }
}

fn exit(code: i32, of: &ObservedContainer, now: Timestamp) -> Exit {
    let started_at = match of.state {
        ContainerState::Running { started_at } => Some(started_at),
        _ => None,
    };
    let reason = if code == 0 { ExitReason::Completed } else { ExitReason::Error };
    Exit {
        code,
        signal: None,
        reason,
        message: String::new(),
        started_at,
        finished_at: now,
        interrupted: false,
    }
}

fn node() -> NodeFacts {
    NodeFacts {
        runtime: "process".into(),
        host_ip: "127.0.0.1".into(),
        user: Some(0),
        mounts: false,
        hooks: false,
        needs_command: false,
    }
}

fn one(extra: Value) -> Value {
    let mut container = json!({"name": "c", "image": "host", "command": ["serve"]});
    container.as_object_mut().unwrap().extend(extra.as_object().unwrap().clone());
    json!({"containers": [container], "terminationGracePeriodSeconds": 20})
}

fn source(name: &str) -> SourceRef {
    SourceRef::ConfigMap(name.into())
}

fn grace_of(plan: &PodPlan) -> Vec<Duration> {
    let stops = plan.effects.iter().filter_map(|effect| match effect {
        Effect::Stop { grace, .. } => Some(*grace),
        _ => None,
    });
    stops.collect()
}
