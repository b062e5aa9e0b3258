//! The plan for one pod: what to start, stop and remove, which probes to run, and the status. Read top down:
//! what comes in, what goes out, then the steps in the order in which `plan` takes them.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use jiff::{SignedDuration, Timestamp};
use k8s_openapi::api::core::v1::{Container, ContainerStatus, Pod};
use serde_json::Value;
use strata_model::merge;
use strata_model::object::{Object, ObjectError};
use strata_model::resource::builtin;

use super::environment::{self, Held, SourceRef, Sources};
use super::observed::{ContainerKey, Launch, NodeFacts, ObservedContainer};
use super::probe::ProbeKind;
use super::restart::RestartPolicy;
use super::status::{self, Phase, PodReason};
use super::verdict::{Findings, Life, Verdict};
use crate::controller::{Action, EventType, Next, Note, Propagation, Target};

/// An end that is promised this much later than wanted is not promised anew.
const STOP_TOLERANCE: SignedDuration = SignedDuration::from_secs(1);
/// The longest grace for containers of which nobody knows the pod any more.
const ORPHAN_GRACE: Duration = Duration::from_secs(30);

/// All that the plan for a pod depends on.
pub struct Observed {
    /// The pod, bound to this node.
    pub pod: Arc<Object>,
    /// This node.
    pub node: NodeFacts,
    /// All attempts that the runtime has of this pod's uid, ordered by container and attempt.
    pub containers: Vec<ObservedContainer>,
    /// What probes found.
    pub findings: Findings,
    /// Images that the runtime cannot run, with the sentence that says so.
    pub refused_images: BTreeMap<String, String>,
    /// What was fetched of the objects in [`PodPlan::needs`] of the turn before; `None`: nothing was asked for yet.
    pub sources: Option<Sources>,
}

/// What to do to the world.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Effect {
    /// Start an attempt.
    Start(Box<Launch>),
    /// Tell an attempt to stop, and end it after the grace.
    Stop {
        /// Which.
        key: ContainerKey,
        /// How long politeness lasts.
        grace: Duration,
    },
    /// Remove an attempt that is over.
    Remove(ContainerKey),
    /// Remove everything that is left of a pod.
    RemovePod(String),
}

/// What to do for one pod: `before`, then `effects`, then `after`. A failure in `before` ends the turn; one in
/// `effects` does not keep the status from being told.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct PodPlan {
    /// Writes without which nothing is to be started: the first status, so that a watcher sees it.
    pub before: Vec<Action>,
    /// In order.
    pub effects: Vec<Effect>,
    /// Writes that tell what was seen, or that the pod is gone.
    pub after: Vec<Action>,
    /// The probes that are to be run from now on; all others are to be ended.
    pub probes: BTreeSet<(ContainerKey, ProbeKind)>,
    /// Objects to fetch; with them the pod is to be planned again at once.
    pub needs: BTreeSet<SourceRef>,
    /// When to look again if nothing happens.
    pub next: Next,
    /// What is not done, and why.
    pub notes: Vec<Note>,
}

impl PodPlan {
    /// Whether nothing is to be done now.
    pub fn is_settled(&self) -> bool {
        self.before.is_empty() && self.effects.is_empty() && self.after.is_empty() && self.needs.is_empty()
    }

    fn note(&mut self, reason: &'static str, message: impl Into<String>) {
        self.notes.push(Note { reason, message: message.into() });
    }
}

/// What a pod's status says is running in the node's runtime, and since when: for a runtime without memory.
pub fn remembered(pod: &Pod, node: &NodeFacts) -> Vec<(Launch, Timestamp)> {
    let (Some(spec), Some(status)) = (pod.spec.as_ref(), pod.status.as_ref()) else { return Vec::new() };
    let uid = pod.metadata.uid.as_deref().unwrap_or_default();
    let prefix = format!("{}://", node.runtime);
    let told =
        status.init_container_statuses.iter().flatten().chain(status.container_statuses.iter().flatten());
    let running = told.filter_map(|told| {
        let started_at = told.state.as_ref()?.running.as_ref()?.started_at.as_ref()?.0;
        told.container_id.as_ref().filter(|id| id.starts_with(&prefix))?;
        let containers = spec.init_containers.iter().flatten().chain(&spec.containers);
        let container = containers.into_iter().find(|container| container.name == told.name)?;
        let attempt = u32::try_from(told.restart_count).ok()?;
        let key = ContainerKey::new(uid, &told.name, attempt).ok()?;
        Some((environment::bare(pod, container, key), started_at))
    });
    running.collect()
}

/// The plan for containers whose pod is gone: all of it ends and is removed. `grace` is what the pod had granted.
pub fn plan_gone(
    pod: &str,
    containers: &[ObservedContainer],
    grace: impl Fn(&ContainerKey) -> Duration,
) -> PodPlan {
    let mut plan = PodPlan::default();
    for container in containers.iter().filter(|container| !container.is_over()) {
        plan.note("PodGone", format!("{} ends, since its pod does not exist any more", container.key));
        if container.stop_by.is_none() {
            let grace = grace(&container.key).min(ORPHAN_GRACE);
            plan.effects.push(Effect::Stop { key: container.key.clone(), grace });
        }
    }
    if plan.notes.is_empty() {
        plan.effects.push(Effect::RemovePod(pod.to_owned()));
    }
    plan
}

/// The plan for a pod. Fails only for an object that is no pod.
pub fn plan(observed: &Observed, now: Timestamp) -> Result<PodPlan, ObjectError> {
    let pod: Pod = observed.pod.decode()?;
    let old = observed.pod.to_value()?["status"].take();
    let mut turn = Turn { observed, pod: &pod, old: &old, now, plan: PodPlan::default() };
    let (mut inits, mut mains) = turn.lives();
    turn.remove_superfluous(&inits, &mains);
    if let Some(deadline) = pod.metadata.deletion_timestamp.as_ref() {
        turn.end(&mut inits, &mut mains, deadline.0);
    } else if is_final(&old) {
        turn.hold_final(&inits, &mains);
    } else {
        turn.hold(&mut inits, &mut mains);
    }
    Ok(turn.plan)
}

/// Whether a status says that the pod is finished.
fn is_final(status: &Value) -> bool {
    matches!(status["phase"].as_str(), Some("Succeeded" | "Failed"))
}

/// One turn of planning.
struct Turn<'a> {
    observed: &'a Observed,
    pod: &'a Pod,
    old: &'a Value,
    now: Timestamp,
    plan: PodPlan,
}

impl<'a> Turn<'a> {
    /// All containers of the spec with what is known of them; not judged yet.
    fn lives(&self) -> (Vec<Life<'a>>, Vec<Life<'a>>) {
        let Some(spec) = self.pod.spec.as_ref() else { return Default::default() };
        let inits = spec.init_containers.iter().flatten().map(|container| self.life(container, true));
        let mains = spec.containers.iter().map(|container| self.life(container, false));
        (inits.collect(), mains.collect())
    }

    fn life(&self, spec: &'a Container, init: bool) -> Life<'a> {
        let policy = match (init, spec.restart_policy.as_deref()) {
            (true, Some("Always")) => RestartPolicy::Always,
            (true, _) => self.policy().for_init(),
            (false, _) => self.policy(),
        };
        let of_this = |container: &&ObservedContainer| container.key.container() == spec.name;
        let told = if init { &self.old["initContainerStatuses"] } else { &self.old["containerStatuses"] };
        let told = told.as_array().into_iter().flatten().find(|told| told["name"] == spec.name.as_str());
        Life {
            spec,
            init,
            policy,
            attempts: self.observed.containers.iter().filter(of_this).collect(),
            told: told.and_then(|told| serde_json::from_value::<ContainerStatus>(told.clone()).ok()),
            verdict: Verdict::Starting,
        }
    }

    fn policy(&self) -> RestartPolicy {
        RestartPolicy::parse(self.pod.spec.as_ref().and_then(|spec| spec.restart_policy.as_deref()))
    }

    /// Only the newest attempt and the one before it (for its log) are kept, and only of containers in the spec.
    fn remove_superfluous(&mut self, inits: &[Life<'_>], mains: &[Life<'_>]) {
        let mut kept = BTreeSet::new();
        for life in inits.iter().chain(mains) {
            kept.extend(life.attempts.iter().rev().take(2).map(|attempt| attempt.key.clone()));
        }
        for container in &self.observed.containers {
            if kept.contains(&container.key) {
                continue;
            }
            if container.is_over() {
                self.plan.effects.push(Effect::Remove(container.key.clone()));
            } else {
                self.stop(container, Duration::ZERO);
            }
        }
    }

    /// Tells an attempt to stop unless it was told so. Returns whether it is the first time.
    fn stop(&mut self, container: &ObservedContainer, grace: Duration) -> bool {
        let wait = SignedDuration::try_from(grace).unwrap_or(SignedDuration::MAX);
        let by = self.now.checked_add(wait).unwrap_or(Timestamp::MAX);
        if container.stop_by.is_none_or(|told| told.duration_since(by) > STOP_TOLERANCE) {
            self.plan.effects.push(Effect::Stop { key: container.key.clone(), grace });
        }
        container.stop_by.is_none()
    }

    /// A pod that is being deleted: everything ends by the deadline; then the pod goes.
    fn end(&mut self, inits: &mut [Life<'a>], mains: &mut [Life<'a>], deadline: Timestamp) {
        let left = Duration::try_from(deadline.duration_since(self.now)).unwrap_or_default();
        let mut alive = 0;
        for life in inits.iter_mut().chain(mains.iter_mut()) {
            life.verdict = self.judge_ended(life);
            for container in life.live() {
                alive += 1;
                let name = &life.spec.name;
                self.plan.notes.push(Note {
                    reason: "Terminating",
                    message: format!("container {name} has until {deadline} to end"),
                });
                if self.stop(container, left) {
                    self.event(EventType::Normal, "Killing", format!("Stopping container {name}"));
                }
            }
        }
        if alive == 0 {
            let meta = self.observed.pod.meta();
            if meta.deletion_grace_period_seconds == Some(0) && !meta.finalizers.is_empty() {
                let message = format!("the pod goes when {} let it", meta.finalizers.join(", "));
                return self.plan.note("Finalizers", message);
            }
            let target = self.target().at_any_revision();
            let (propagation, grace_seconds) = (Propagation::Background, Some(0));
            self.plan.after.push(Action::Delete { target, propagation, grace_seconds });
            return;
        }
        // What has ended already is told, but the phase stays: only the rest of the turn makes it final.
        if self.old["startTime"].is_string() {
            let phase = match status::phase(inits, mains, self.policy()) {
                phase if phase.is_final() => Phase::Running,
                phase => phase,
            };
            self.tell(inits, mains, phase, None);
        }
    }

    /// The verdict on a container of a pod in which nothing is started any more.
    fn judge_ended(&self, life: &Life<'_>) -> Verdict {
        match life.judge(false, &self.observed.findings, self.now) {
            Verdict::Start { .. } => {
                Verdict::Held(Held { reason: "ContainerCreating", message: String::new() })
            }
            verdict => verdict,
        }
    }

    /// A finished pod: nothing of it runs, and its status stays.
    fn hold_final(&mut self, inits: &[Life<'_>], mains: &[Life<'_>]) {
        for container in inits.iter().chain(mains).flat_map(Life::live) {
            self.stop(container, self.grace());
        }
    }

    /// The usual case: containers run, or wait for a reason.
    fn hold(&mut self, inits: &mut [Life<'a>], mains: &mut [Life<'a>]) {
        if let Some(reason) = self.past_deadline() {
            return self.fail(inits, mains, reason);
        }
        let first_sight = self.old["startTime"].is_null();
        let initialized = self.judge_inits(inits, mains);
        for life in mains.iter_mut() {
            life.verdict = match initialized {
                true => self.judge(life),
                false => Verdict::Held(Held { reason: "PodInitializing", message: String::new() }),
            };
        }
        for life in inits.iter().chain(mains.iter()) {
            self.act(life);
        }
        let phase = status::phase(inits, mains, self.policy());
        if phase.is_final() {
            for container in inits.iter().flat_map(Life::live) {
                self.stop(container, self.grace());
            }
        }
        self.tell(inits, mains, phase, None);
        // Only a pod of which nothing runs can wait for its first status.
        if first_sight && self.observed.containers.is_empty() {
            self.plan.before = std::mem::take(&mut self.plan.after);
        }
    }

    /// Judges init containers in their order. Returns whether the others may begin.
    fn judge_inits(&mut self, inits: &mut [Life<'a>], mains: &[Life<'a>]) -> bool {
        let began = mains.iter().any(|life| !life.attempts.is_empty());
        let mut pass = true;
        for life in inits.iter_mut() {
            let unseen = life.attempts.is_empty();
            life.verdict = match (pass, began && unseen && !life.is_sidecar()) {
                // What is lost of an init container was done, or the others had not begun.
                (true, true) => life.judge(false, &self.observed.findings, self.now),
                (true, false) => self.judge(life),
                (false, _) => Verdict::Held(Held { reason: "PodInitializing", message: String::new() }),
            };
            pass = pass && (began || life.lets_pass());
        }
        pass
    }

    /// The verdict on a container that may be started: a start that is not possible is a reason to wait.
    fn judge(&mut self, life: &Life<'a>) -> Verdict {
        let verdict = life.judge(true, &self.observed.findings, self.now);
        let Verdict::Start { attempt, backoff_seconds, .. } = &verdict else { return verdict };
        let image = life.spec.image.as_deref().unwrap_or_default();
        if let Some(message) = self.observed.refused_images.get(image) {
            return Verdict::Held(Held { reason: "ErrImagePull", message: message.clone() });
        }
        let needs = environment::sources_of(life.spec);
        let sources = match &self.observed.sources {
            Some(sources) => sources,
            None if needs.is_empty() => &Sources::new(),
            None => {
                self.plan.needs.extend(needs);
                return verdict;
            }
        };
        let uid = self.pod.metadata.uid.as_deref().unwrap_or_default();
        let launch = match ContainerKey::new(uid, &life.spec.name, *attempt) {
            Ok(key) => environment::launch(self.pod, life.spec, key, &self.observed.node, sources),
            Err(error) => Err(Held { reason: "CreateContainerError", message: error.to_string() }),
        };
        match launch {
            Ok(launch) => {
                let launch = Launch { backoff_seconds: *backoff_seconds, ..launch };
                self.plan.effects.push(Effect::Start(Box::new(launch)));
                verdict
            }
            Err(held) => Verdict::Held(held),
        }
    }

    /// What a verdict asks for, beyond a start.
    fn act(&mut self, life: &Life<'_>) {
        let name = &life.spec.name;
        match &life.verdict {
            Verdict::Running { started, failed, .. } => {
                let Some(newest) = life.newest() else { return };
                match failed {
                    Some(kind) => self.restart(life, newest, *kind),
                    None if newest.stop_by.is_none() => self.want_probes(life, &newest.key, *started),
                    None => {}
                }
            }
            Verdict::BackOff { until, seconds, .. } => {
                self.plan.next = self.plan.next.or_at(*until);
                self.plan.note("CrashLoopBackOff", format!("container {name} is held back for {seconds} s"));
            }
            Verdict::Held(held) => self.plan.note(held.reason, format!("container {name}: {}", held.message)),
            Verdict::Starting => {
                self.plan.note("ContainerCreating", format!("container {name} is being started"))
            }
            Verdict::Start { .. } | Verdict::Over(_) => {}
        }
    }

    /// Ends a container that failed its probe; its end is what starts it again.
    fn restart(&mut self, life: &Life<'_>, newest: &ObservedContainer, kind: ProbeKind) {
        let own = kind.of(life.spec).and_then(|probe| probe.termination_grace_period_seconds);
        let grace = own.map_or(self.grace(), |own| Duration::from_secs(u64::try_from(own).unwrap_or(0)));
        let (name, kind_name) = (&life.spec.name, kind.as_str().to_lowercase());
        self.plan
            .note("Unhealthy", format!("container {name} failed its {kind_name} probe and is being ended"));
        if self.stop(newest, grace) {
            let found = self.observed.findings.get(&(newest.key.clone(), kind));
            let answer = found.map(|found| found.message.as_str()).unwrap_or_default();
            self.event(EventType::Warning, "Unhealthy", format!("{} probe failed: {answer}", kind.as_str()));
            let message = format!("Container {name} failed {kind_name} probe, will be restarted");
            self.event(EventType::Normal, "Killing", message);
        }
    }

    fn want_probes(&mut self, life: &Life<'_>, key: &ContainerKey, started: bool) {
        for kind in ProbeKind::ALL {
            let due = (kind == ProbeKind::Startup) != started;
            if due && kind.of(life.spec).is_some() {
                self.plan.probes.insert((key.clone(), kind));
            }
        }
    }

    /// Why the pod has run out of its own time, if it has; else when it will.
    fn past_deadline(&mut self) -> Option<PodReason> {
        let seconds = self.pod.spec.as_ref()?.active_deadline_seconds?;
        let started: Timestamp = self.old["startTime"].as_str()?.parse().ok()?;
        let deadline = started.checked_add(SignedDuration::from_secs(seconds)).ok()?;
        if deadline > self.now {
            self.plan.next = self.plan.next.or_at(deadline);
            return None;
        }
        let message = "Pod was active on the node longer than the specified deadline".to_owned();
        Some(PodReason { reason: "DeadlineExceeded", message })
    }

    /// Ends everything and fails the pod.
    fn fail(&mut self, inits: &mut [Life<'a>], mains: &mut [Life<'a>], reason: PodReason) {
        for life in inits.iter_mut().chain(mains.iter_mut()) {
            life.verdict = self.judge_ended(life);
            for container in life.live() {
                self.stop(container, self.grace());
            }
        }
        if inits.iter().chain(mains.iter()).all(|life| life.live().next().is_none()) {
            self.tell(inits, mains, Phase::Failed, Some(reason));
        }
    }

    fn grace(&self) -> Duration {
        let seconds =
            self.pod.spec.as_ref().and_then(|spec| spec.termination_grace_period_seconds).unwrap_or(30);
        Duration::from_secs(u64::try_from(seconds).unwrap_or(0))
    }

    fn target(&self) -> Target {
        Target::of(&builtin::POD, &self.observed.pod)
    }

    /// The status, if it is another than so far, and the events of what has changed.
    fn tell(&mut self, inits: &[Life<'_>], mains: &[Life<'_>], phase: Phase, reason: Option<PodReason>) {
        let node = &self.observed.node;
        let facts =
            status::Facts { pod: self.pod, old: self.old, node, inits, mains, phase, reason, now: self.now };
        let new = status::build(&facts);
        let Some(patch) = merge::diff(self.old, &new) else { return };
        self.plan.after.insert(0, Action::Status { target: self.target(), status: patch });
        for life in inits.iter().chain(mains) {
            self.tell_change(life);
        }
    }

    /// The event for what is new about a container.
    fn tell_change(&mut self, life: &Life<'_>) {
        let name = &life.spec.name;
        let state = life.told.as_ref().and_then(|told| told.state.as_ref());
        let waited_for = state.and_then(|state| state.waiting.as_ref()?.reason.as_deref());
        let ran = life.told.as_ref().filter(|_| state.is_some_and(|state| state.running.is_some()));
        let ran_as = ran.and_then(|told| told.container_id.as_deref());
        match &life.verdict {
            Verdict::Running { ready, failed, .. } => {
                let Some(newest) = life.newest() else { return };
                if ran_as != Some(newest.id.as_str()) {
                    return self.event(EventType::Normal, "Started", format!("Started container {name}"));
                }
                let found = self.observed.findings.get(&(newest.key.clone(), ProbeKind::Readiness));
                if ran.is_some_and(|told| told.ready)
                    && !ready
                    && failed.is_none()
                    && let Some(found) = found
                {
                    let message = format!("Readiness probe failed: {}", found.message);
                    self.event(EventType::Warning, "Unhealthy", message);
                }
            }
            Verdict::BackOff { .. } if waited_for != Some("CrashLoopBackOff") => {
                let message =
                    format!("Back-off restarting failed container {name} in pod {}", self.observed.pod.key());
                self.event(EventType::Warning, "BackOff", message);
            }
            Verdict::Held(held) if !held.message.is_empty() && waited_for != Some(held.reason) => {
                self.event(EventType::Warning, "Failed", format!("Error: {}", held.message));
            }
            _ => {}
        }
    }

    fn event(&mut self, type_: EventType, reason: &'static str, message: String) {
        let about = self.target();
        self.plan.after.push(Action::Event { about, type_, reason, message });
    }
}
