//! What is the case with one container, in one closed list: from its attempts, its probes and what the pod's
//! status remembers. It must never know other containers; their order is the plan's business.

use std::collections::BTreeMap;

use jiff::Timestamp;
use k8s_openapi::api::core::v1::{Container, ContainerStatus};

use super::environment::Held;
use super::observed::{ContainerKey, ContainerState, Exit, ExitReason, ObservedContainer};
use super::probe::{Finding, ProbeKind};
use super::restart::{self, RestartPolicy};

/// What probes found, as far as they know; kept by whoever asks.
pub type Findings = BTreeMap<(ContainerKey, ProbeKind), Finding>;

/// What is the case with a container.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// It waits, for a reason that is not its own start.
    Held(Held),
    /// It is to be started, as this attempt.
    Start {
        /// The attempt.
        attempt: u32,
        /// How long it was held back, in seconds.
        backoff_seconds: u32,
        /// The end of the attempt before, if it was seen in this turn.
        after: Option<Ended>,
    },
    /// Its start is under way.
    Starting,
    /// It runs.
    Running {
        /// Since when.
        started_at: Timestamp,
        /// Whether its startup probe (if any) passed.
        started: bool,
        /// Whether it can serve.
        ready: bool,
        /// The probe for whose failure it must be restarted.
        failed: Option<ProbeKind>,
    },
    /// It ended and will be started again at a known time.
    BackOff {
        /// How it ended.
        ended: Ended,
        /// How long it is held back, in seconds.
        seconds: u32,
        /// When that is over.
        until: Timestamp,
    },
    /// It ended and stays so.
    Over(Ended),
}

/// An end and the container that it was the end of.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Ended {
    /// How.
    pub exit: Exit,
    /// The container's id.
    pub id: String,
}

/// One container of a pod and all that is known of it.
pub struct Life<'a> {
    /// Its spec.
    pub spec: &'a Container,
    /// Whether it is an init container.
    pub init: bool,
    /// When it is started again.
    pub policy: RestartPolicy,
    /// Its attempts, oldest first.
    pub attempts: Vec<&'a ObservedContainer>,
    /// What the pod's status says of it so far.
    pub told: Option<ContainerStatus>,
    /// What is the case.
    pub verdict: Verdict,
}

impl Life<'_> {
    /// The newest attempt.
    pub fn newest(&self) -> Option<&ObservedContainer> {
        self.attempts.last().copied()
    }

    /// The attempts that are not over.
    pub fn live(&self) -> impl Iterator<Item = &ObservedContainer> {
        self.attempts.iter().copied().filter(|attempt| !attempt.is_over())
    }

    /// Whether it is an init container that runs beside the others.
    pub fn is_sidecar(&self) -> bool {
        self.init && self.spec.restart_policy.as_deref() == Some("Always")
    }

    /// Whether an init container lets the next one begin.
    pub fn lets_pass(&self) -> bool {
        match &self.verdict {
            Verdict::Over(ended) => ended.exit.code == 0 || self.is_sidecar(),
            Verdict::Running { started, .. } => *started && self.is_sidecar(),
            _ => false,
        }
    }

    /// How it ended, if it did and stays so.
    pub fn over(&self) -> Option<&Exit> {
        match &self.verdict {
            Verdict::Over(ended) => Some(&ended.exit),
            _ => None,
        }
    }

    /// Finds the verdict. `restarts`: whether anything is started again at all.
    pub fn judge(&self, restarts: bool, findings: &Findings, now: Timestamp) -> Verdict {
        let Some(newest) = self.newest() else { return self.judge_unseen(restarts) };
        match &newest.state {
            ContainerState::Created => Verdict::Starting,
            ContainerState::Running { started_at } => self.judge_running(newest, *started_at, findings),
            ContainerState::Exited(exit) => {
                let ended = Ended { exit: exit.clone(), id: newest.id.clone() };
                if !restarts || !self.policy.restarts(exit.code) {
                    return Verdict::Over(ended);
                }
                let seconds = restart::backoff_seconds(newest, exit);
                let until = restart::due(exit, seconds);
                if until > now {
                    return Verdict::BackOff { ended, seconds, until };
                }
                let attempt = newest.key.attempt() + 1;
                Verdict::Start { attempt, backoff_seconds: seconds, after: Some(ended) }
            }
        }
    }

    /// Nothing of it is here: it never was, or what was here is lost and only the status remembers.
    fn judge_unseen(&self, restarts: bool) -> Verdict {
        let told = self.told.as_ref();
        if let Some(ended) = told.and_then(told_end)
            && (!restarts || !self.policy.restarts(ended.exit.code))
        {
            return Verdict::Over(ended);
        }
        let count = told.map_or(0, |told| u32::try_from(told.restart_count).unwrap_or(0));
        let was_here = told.is_some_and(|told| told.container_id.as_deref().is_some_and(|id| !id.is_empty()));
        Verdict::Start { attempt: count + u32::from(was_here), backoff_seconds: 0, after: None }
    }

    fn judge_running(
        &self,
        newest: &ObservedContainer,
        started_at: Timestamp,
        findings: &Findings,
    ) -> Verdict {
        let finding = |kind: ProbeKind| findings.get(&(newest.key.clone(), kind)).map(|found| found.passed);
        let has = |kind: ProbeKind| kind.of(self.spec).is_some();
        let started = !has(ProbeKind::Startup) || finding(ProbeKind::Startup) == Some(true);
        let ready = started && (!has(ProbeKind::Readiness) || finding(ProbeKind::Readiness) == Some(true));
        let failed = [ProbeKind::Startup, ProbeKind::Liveness]
            .into_iter()
            .find(|kind| has(*kind) && finding(*kind) == Some(false));
        Verdict::Running { started_at, started, ready, failed }
    }
}

/// The end that a status tells of.
fn told_end(told: &ContainerStatus) -> Option<Ended> {
    let ended = told.state.as_ref()?.terminated.as_ref()?;
    let finished_at = ended.finished_at.as_ref()?.0;
    let reason = match ended.reason.as_deref() {
        Some("Completed") => ExitReason::Completed,
        Some("OOMKilled") => ExitReason::OOMKilled,
        Some("StartError") => ExitReason::StartError,
        Some("ContainerStatusUnknown") => ExitReason::ContainerStatusUnknown,
        _ => ExitReason::Error,
    };
    let exit = Exit {
        code: ended.exit_code,
        signal: ended.signal,
        reason,
        message: ended.message.clone().unwrap_or_default(),
        started_at: ended.started_at.as_ref().map(|time| time.0),
        finished_at,
        interrupted: false,
    };
    Some(Ended { exit, id: ended.container_id.clone().unwrap_or_default() })
}
