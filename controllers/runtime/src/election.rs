//! Who leads: the decisions around a Lease, as in client-go. Pure. No clock of another machine is trusted: a lease is
//! over when it has not changed for its duration as measured here.

use std::time::Duration;

use crate::queue::Moment;

/// How long a lease holds without renewal.
pub const LEASE_DURATION: Duration = Duration::from_secs(15);
/// A holder that could not renew for this long stops by itself, before others may take over.
pub const RENEW_DEADLINE: Duration = Duration::from_secs(10);
/// Between attempts, to take it or after a failed renewal.
pub const RETRY_PERIOD: Duration = Duration::from_secs(2);
/// Between renewals that succeed: a third of the duration, for the sake of idle disks.
pub const RENEW_PERIOD: Duration = Duration::from_secs(5);

/// What a lease says.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Record {
    /// Who holds it; empty: nobody.
    pub holder: String,
    /// Renewal, as its writer put it: compared for change only.
    pub renewed: String,
    /// Seconds it holds.
    pub seconds: u64,
}

/// What to do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Step {
    /// There is none: create it.
    Create,
    /// It is ours or nobody's, or over: write ourselves into it. True where the holder changes.
    Take(bool),
    /// It is another's; look again at this moment.
    Wait(Moment),
}

/// One candidate.
#[derive(Clone, Debug)]
pub struct Election {
    me: String,
    seen: Option<(Record, Moment)>,
    renewed: Option<Moment>,
}

impl Election {
    /// A candidate. An identity that outlives the process (a role of one installation) takes its own lease back at
    /// once after a crash; it must then never run twice at the same time.
    pub fn new(me: impl Into<String>) -> Self {
        Self { me: me.into(), seen: None, renewed: None }
    }

    /// What to do about the lease as it is.
    pub fn decide(&mut self, lease: Option<Record>, now: Moment) -> Step {
        let Some(record) = lease else {
            self.seen = None;
            return Step::Create;
        };
        if record.holder.is_empty() || record.holder == self.me {
            return Step::Take(record.holder != self.me);
        }
        let since = match &self.seen {
            Some((seen, since)) if *seen == record => *since,
            _ => now,
        };
        let over = since + Duration::from_secs(record.seconds.max(1));
        self.seen = Some((record, since));
        if now >= over { Step::Take(true) } else { Step::Wait((now + RETRY_PERIOD).min(over)) }
    }

    /// A write of ours succeeded; `asked` is the moment before it was sent.
    pub fn renewed(&mut self, asked: Moment) {
        self.renewed = Some(asked);
    }

    /// Whether we may act as leader.
    pub fn leads(&self, now: Moment) -> bool {
        self.renewed.is_some_and(|at| now < at + RENEW_DEADLINE)
    }

    /// When leading ends unless it is renewed.
    pub fn ends(&self) -> Option<Moment> {
        self.renewed.map(|at| at + RENEW_DEADLINE)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const S: Duration = Duration::from_secs(1);

    fn held(renewed: &str) -> Option<Record> {
        Some(Record { holder: "other".into(), renewed: renewed.into(), seconds: 15 })
    }

    #[test]
    fn anothers_lease_is_taken_only_when_it_stood_still_for_its_duration() {
        let mut me = Election::new("me");
        assert_eq!(me.decide(held("a"), S), Step::Wait(S * 3));
        assert_eq!(me.decide(held("b"), S * 10), Step::Wait(S * 12));
        assert_eq!(me.decide(held("b"), S * 24), Step::Wait(S * 25));
        assert_eq!(me.decide(held("b"), S * 25), Step::Take(true));
    }

    #[test]
    fn what_is_ours_or_released_or_missing_is_taken_at_once() {
        let mut me = Election::new("me");
        assert_eq!(me.decide(None, S), Step::Create);
        let mine = Record { holder: "me".into(), ..Record::default() };
        assert_eq!(me.decide(Some(mine), S), Step::Take(false));
        assert_eq!(me.decide(Some(Record::default()), S), Step::Take(true));
    }

    #[test]
    fn leading_ends_before_others_may_take_over() {
        let mut me = Election::new("me");
        assert!(!me.leads(S));
        me.renewed(S);
        assert!(me.leads(S * 10) && !me.leads(S * 11));
        assert!(RENEW_DEADLINE < LEASE_DURATION && RENEW_PERIOD + RETRY_PERIOD < RENEW_DEADLINE);
    }
}
