//! Restart: whether and when a child that ended is started again. A value that is told what happened and when, and
//! answers; it must never know a process, a clock or a timer.
//!
//! * The first end after a healthy time is answered at once; each further one after twice the delay, up to a bound.
//! * A child that was ready once is never given up: what worked may work again, and the platform runs without it.
//! * A child that never was is given up after a few tries, or at once if it says itself that trying is no use.
//! * One that says that somebody else holds what it needs is tried for longer: the other may be ending.

use std::time::Duration;

use super::super::exit::Exit;

/// The bounds of restarting.
#[derive(Clone, Copy, Debug)]
pub struct Policy {
    /// Delay before the second start in a row; doubles from there.
    pub first_delay: Duration,
    /// Longest delay.
    pub longest_delay: Duration,
    /// A child that was ready for so long begins anew, without delay.
    pub healthy: Duration,
    /// Starts in a row that may fail before a child that was never ready is given up.
    pub tries: u32,
    /// Between tries while somebody else holds what the child needs.
    pub busy_delay: Duration,
    /// How many of those there are before a child that was never ready is given up.
    pub busy_tries: u32,
}

impl Default for Policy {
    fn default() -> Self {
        Policy {
            first_delay: Duration::from_millis(100),
            longest_delay: Duration::from_secs(10),
            healthy: Duration::from_secs(10),
            tries: 6,
            busy_delay: Duration::from_millis(100),
            busy_tries: 200,
        }
    }
}

/// How a child ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum End {
    /// With an exit code.
    Code(i32),
    /// By a signal.
    Signal(i32),
    /// It could not even be started.
    NotStarted,
}

/// What to do about it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// Start it again after this delay.
    After(Duration),
    /// Leave it: it cannot start.
    GiveUp,
}

/// The restart state of one child. Times are durations since any fixed moment.
#[derive(Clone, Debug)]
pub struct Restart {
    policy: Policy,
    /// Ends in a row without a healthy time between.
    ends: u32,
    /// Ends in a row because of somebody else.
    busy: u32,
    ready_since: Option<Duration>,
    was_ready: bool,
}

impl Restart {
    /// A child that was never started.
    pub fn new(policy: Policy) -> Self {
        Restart { policy, ends: 0, busy: 0, ready_since: None, was_ready: false }
    }

    /// The child said that it serves.
    pub fn ready(&mut self, now: Duration) {
        self.was_ready = true;
        self.ready_since.get_or_insert(now);
    }

    /// The child ended.
    pub fn ended(&mut self, end: End, now: Duration) -> Verdict {
        let healthy =
            self.ready_since.take().is_some_and(|since| now.saturating_sub(since) >= self.policy.healthy);
        if healthy {
            (self.ends, self.busy) = (0, 0);
        }
        if end == End::Code(Exit::Busy.code().into()) {
            self.busy = self.busy.saturating_add(1);
            let is_over = !self.was_ready && self.busy >= self.policy.busy_tries;
            return if is_over { Verdict::GiveUp } else { Verdict::After(self.policy.busy_delay) };
        }
        self.busy = 0;
        self.ends = self.ends.saturating_add(1);
        let hopeless = matches!(end, End::Code(code) if Exit::is_final(code));
        if !self.was_ready && (hopeless || self.ends >= self.policy.tries) {
            return Verdict::GiveUp;
        }
        Verdict::After(self.delay())
    }

    /// Nothing for the first end, then doubling.
    fn delay(&self) -> Duration {
        match self.ends {
            0 | 1 => Duration::ZERO,
            ends => {
                let factor = 1_u32.checked_shl(ends - 2).unwrap_or(u32::MAX);
                self.policy.first_delay.saturating_mul(factor).min(self.policy.longest_delay)
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: Duration = Duration::from_secs(1);

    fn restart() -> Restart {
        Restart::new(Policy::default())
    }

    fn millis(verdict: Verdict) -> u128 {
        match verdict {
            Verdict::After(delay) => delay.as_millis(),
            Verdict::GiveUp => panic!("given up"),
        }
    }

    #[test]
    fn a_child_that_was_ready_is_restarted_for_ever_with_growing_delays() {
        let mut child = restart();
        child.ready(SECOND);
        let delays: Vec<u128> = (0..12).map(|_| millis(child.ended(End::Code(1), SECOND))).collect();
        assert_eq!(delays, [0, 100, 200, 400, 800, 1600, 3200, 6400, 10_000, 10_000, 10_000, 10_000]);
        for _ in 0..100 {
            assert_eq!(millis(child.ended(End::Code(78), SECOND)), 10_000);
        }
    }

    #[test]
    fn a_healthy_time_makes_the_next_restart_immediate() {
        let mut child = restart();
        child.ready(SECOND);
        for _ in 0..5 {
            child.ended(End::Signal(9), SECOND * 2);
        }
        child.ready(SECOND * 10);
        assert_eq!(millis(child.ended(End::Signal(9), SECOND * 20)), 0);
        child.ready(SECOND * 21);
        assert_eq!(millis(child.ended(End::Signal(9), SECOND * 30)), 100, "nine seconds are not enough");
    }

    #[test]
    fn a_child_that_never_was_ready_is_given_up_after_some_tries() {
        let mut child = restart();
        let verdicts: Vec<Verdict> = (0..6).map(|_| child.ended(End::Signal(11), SECOND)).collect();
        assert_eq!(verdicts[5], Verdict::GiveUp);
        assert!(verdicts[..5].iter().all(|verdict| *verdict != Verdict::GiveUp));
    }

    #[test]
    fn what_cannot_start_is_not_tried_twice() {
        assert_eq!(restart().ended(End::Code(78), SECOND), Verdict::GiveUp);
        assert_eq!(restart().ended(End::NotStarted, SECOND), Verdict::After(Duration::ZERO));
    }

    #[test]
    fn somebody_else_is_waited_for_but_not_for_ever() {
        let mut child = restart();
        let policy = Policy::default();
        for _ in 1..policy.busy_tries {
            assert_eq!(child.ended(End::Code(75), SECOND), Verdict::After(policy.busy_delay));
        }
        assert_eq!(child.ended(End::Code(75), SECOND), Verdict::GiveUp);
        assert_eq!(restart().ended(End::Code(1), SECOND), Verdict::After(Duration::ZERO));
    }
}
