//! Probes as state machines: when to ask next, and what the answers so far mean. Asking is somebody else's
//! work. It must never know the time but what it is given.

use jiff::{SignedDuration, Timestamp};
use k8s_openapi::api::core::v1::{Container, Probe};

/// The three questions about a running container.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum ProbeKind {
    /// Has it come up? Until then the others are not asked.
    Startup,
    /// Is it alive? If not it is restarted.
    Liveness,
    /// Can it serve? If not it gets no traffic.
    Readiness,
}

impl ProbeKind {
    /// All kinds, in the order in which they matter.
    pub const ALL: [Self; 3] = [Self::Startup, Self::Liveness, Self::Readiness];

    /// The kind's name in sentences.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Startup => "Startup",
            Self::Liveness => "Liveness",
            Self::Readiness => "Readiness",
        }
    }

    /// The probe of this kind in a container's spec.
    pub fn of(self, container: &Container) -> Option<&Probe> {
        match self {
            Self::Startup => container.startup_probe.as_ref(),
            Self::Liveness => container.liveness_probe.as_ref(),
            Self::Readiness => container.readiness_probe.as_ref(),
        }
    }
}

/// What the answers so far mean.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Finding {
    /// Whether the probe counts as passed.
    pub passed: bool,
    /// The last answer's words, for people.
    pub message: String,
}

/// One probe of one attempt.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Machine {
    kind: ProbeKind,
    period: SignedDuration,
    success_threshold: u32,
    failure_threshold: u32,
    next: Timestamp,
    last: Option<bool>,
    in_a_row: u32,
    finding: Option<Finding>,
}

impl Machine {
    /// A probe of a container that started at `started_at`. `remembered` is what was found before, for a
    /// container that was adopted.
    pub fn new(kind: ProbeKind, probe: &Probe, started_at: Timestamp, remembered: Option<bool>) -> Self {
        let seconds = |value: Option<i32>, default: i32, least: i32| {
            SignedDuration::from_secs(i64::from(value.unwrap_or(default).max(least)))
        };
        let count = |value: Option<i32>, default: u32| {
            value.and_then(|value| u32::try_from(value).ok()).filter(|count| *count > 0).unwrap_or(default)
        };
        let delay = seconds(probe.initial_delay_seconds, 0, 0);
        Self {
            kind,
            period: seconds(probe.period_seconds, 10, 1),
            success_threshold: count(probe.success_threshold, 1),
            failure_threshold: count(probe.failure_threshold, 3),
            next: started_at.checked_add(delay).unwrap_or(started_at),
            last: None,
            in_a_row: 0,
            finding: remembered.map(|passed| Finding { passed, message: String::new() }),
        }
    }

    /// When to ask next; `None`: never again (a passed startup probe is not asked twice).
    pub fn next(&self) -> Option<Timestamp> {
        let done = self.kind == ProbeKind::Startup && self.finding.as_ref().is_some_and(|found| found.passed);
        (!done).then_some(self.next)
    }

    /// What is known; `None` before the first thresholds are reached.
    pub fn finding(&self) -> Option<&Finding> {
        self.finding.as_ref()
    }

    /// Takes an answer. Returns whether it changed what is known to be passed or not.
    pub fn answer(&mut self, success: bool, message: &str, now: Timestamp) -> bool {
        self.next = now.checked_add(self.period).unwrap_or(now);
        self.in_a_row = if self.last == Some(success) { self.in_a_row.saturating_add(1) } else { 1 };
        self.last = Some(success);
        let threshold = if success { self.success_threshold } else { self.failure_threshold };
        if self.in_a_row < threshold {
            return false;
        }
        let changed = self.finding.as_ref().map(|found| found.passed) != Some(success);
        if changed {
            self.finding = Some(Finding { passed: success, message: message.to_owned() });
        }
        changed
    }
}

#[cfg(test)]
mod tests {
    use super::{Machine, ProbeKind};
    use jiff::{SignedDuration, Timestamp};
    use k8s_openapi::api::core::v1::Probe;

    fn at(second: i64) -> Timestamp {
        Timestamp::from_second(second).unwrap()
    }

    fn passed(machine: &Machine) -> Option<bool> {
        machine.finding().map(|found| found.passed)
    }

    #[test]
    fn thresholds_count_answers_in_a_row() {
        let probe = Probe { success_threshold: Some(2), failure_threshold: Some(3), ..Probe::default() };
        let mut machine = Machine::new(ProbeKind::Readiness, &probe, at(0), None);
        let told: Vec<_> = [true, false, true, true, false, false, true, false, false, false, false]
            .into_iter()
            .zip(0..)
            .map(|(answer, second)| (machine.answer(answer, "", at(second)), passed(&machine)))
            .collect();
        let (no, yes) = (Some(false), Some(true));
        let want = [
            (false, None),
            (false, None),
            (false, None),
            (true, yes),
            (false, yes),
            (false, yes),
            (false, yes),
            (false, yes),
            (false, yes),
            (true, no),
            (false, no),
        ];
        assert_eq!(told, want);
    }

    #[test]
    fn asking_begins_after_the_delay_and_goes_on_by_the_period() {
        let probe = Probe { initial_delay_seconds: Some(5), period_seconds: Some(2), ..Probe::default() };
        let mut machine = Machine::new(ProbeKind::Liveness, &probe, at(100), None);
        assert_eq!(machine.next(), Some(at(105)));
        machine.answer(true, "", at(106));
        assert_eq!(machine.next(), Some(at(106) + SignedDuration::from_secs(2)));
    }

    #[test]
    fn a_passed_startup_probe_rests_and_memory_counts_until_proved_wrong() {
        let mut startup = Machine::new(ProbeKind::Startup, &Probe::default(), at(0), None);
        assert!(startup.answer(true, "", at(1)));
        assert_eq!(startup.next(), None);
        assert_eq!(Machine::new(ProbeKind::Startup, &Probe::default(), at(0), Some(true)).next(), None);
        let mut ready = Machine::new(ProbeKind::Readiness, &Probe::default(), at(0), Some(true));
        assert!(!ready.answer(true, "", at(1)));
        assert!(!ready.answer(false, "", at(2)) && !ready.answer(false, "", at(3)));
        assert!(ready.answer(false, "refused", at(4)));
        assert_eq!(ready.finding().unwrap().message, "refused");
    }
}
