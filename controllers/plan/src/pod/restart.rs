//! Whether and when an ended container is started again. It must never count by itself: how long the last
//! start was held back is a fact that comes with the attempt.

use jiff::{SignedDuration, Timestamp};

use super::observed::{Exit, ObservedContainer};

/// The first back-off, in seconds; each further one is twice as long.
const FIRST_BACKOFF: u32 = 10;
/// The longest back-off, in seconds.
const MAX_BACKOFF: u32 = 300;
/// After running this long a container starts with a clean slate, in seconds.
const CLEAN_SLATE: i64 = 600;

/// When an ended container is started again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RestartPolicy {
    /// Whatever its exit code.
    Always,
    /// When it failed.
    OnFailure,
    /// Not at all.
    Never,
}

impl RestartPolicy {
    /// The policy in a spec; absent or unknown is `Always`.
    pub fn parse(text: Option<&str>) -> Self {
        match text {
            Some("OnFailure") => Self::OnFailure,
            Some("Never") => Self::Never,
            _ => Self::Always,
        }
    }

    /// The policy for init containers of a pod: they are done when they succeed.
    #[must_use]
    pub fn for_init(self) -> Self {
        match self {
            Self::Always => Self::OnFailure,
            other => other,
        }
    }

    /// Whether a container that ended with `code` is to be started again.
    pub fn restarts(self, code: i32) -> bool {
        match self {
            Self::Always => true,
            Self::OnFailure => code != 0,
            Self::Never => false,
        }
    }
}

/// How long the start after this end is held back, in seconds: the first is not, then 10, 20, 40 … 300.
pub fn backoff_seconds(ended: &ObservedContainer, exit: &Exit) -> u32 {
    let ran = exit.started_at.map_or(0, |started_at| exit.finished_at.duration_since(started_at).as_secs());
    if exit.interrupted || ran >= CLEAN_SLATE || ended.key.attempt() == 0 {
        return 0;
    }
    match ended.backoff_seconds {
        0 => FIRST_BACKOFF,
        held => held.saturating_mul(2).min(MAX_BACKOFF),
    }
}

/// When the back-off after this end is over.
pub fn due(exit: &Exit, backoff_seconds: u32) -> Timestamp {
    let wait = SignedDuration::from_secs(i64::from(backoff_seconds));
    exit.finished_at.checked_add(wait).unwrap_or(Timestamp::MAX)
}

#[cfg(test)]
mod tests {
    use super::{RestartPolicy, backoff_seconds};
    use crate::pod::observed::{ContainerKey, ContainerState, Exit, ExitReason, ObservedContainer};
    use jiff::Timestamp;

    fn exit(ran: i64) -> Exit {
        Exit {
            code: 1,
            signal: None,
            reason: ExitReason::Error,
            message: String::new(),
            started_at: Some(Timestamp::from_second(1000).unwrap()),
            finished_at: Timestamp::from_second(1000 + ran).unwrap(),
            interrupted: false,
        }
    }

    fn ended(attempt: u32, backoff_seconds: u32, ran: i64) -> ObservedContainer {
        let key = ContainerKey::new("u", "c", attempt).unwrap();
        ObservedContainer {
            key,
            state: ContainerState::Exited(exit(ran)),
            id: String::new(),
            backoff_seconds,
            stop_by: None,
        }
    }

    #[test]
    fn backoff_doubles_to_five_minutes_and_is_forgotten_after_ten() {
        let mut held = 0;
        let mut all = Vec::new();
        for attempt in 0..9 {
            held = backoff_seconds(&ended(attempt, held, 1), &exit(1));
            all.push(held);
        }
        assert_eq!(all, [0, 10, 20, 40, 80, 160, 300, 300, 300]);
        assert_eq!(backoff_seconds(&ended(9, 300, 600), &exit(600)), 0);
        assert_eq!(backoff_seconds(&ended(9, 300, 599), &exit(599)), 300);
        let interrupted = Exit { interrupted: true, ..exit(1) };
        assert_eq!(backoff_seconds(&ended(9, 300, 1), &interrupted), 0, "a shutdown is no crash");
    }

    #[test]
    fn policies_say_what_is_started_again() {
        let restarts = |policy: &str| {
            let policy = RestartPolicy::parse(Some(policy));
            (
                policy.restarts(0),
                policy.restarts(1),
                policy.for_init().restarts(0),
                policy.for_init().restarts(1),
            )
        };
        assert_eq!(restarts("Always"), (true, true, false, true));
        assert_eq!(restarts("OnFailure"), (false, true, false, true));
        assert_eq!(restarts("Never"), (false, false, false, false));
    }
}
