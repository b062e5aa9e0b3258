//! Holds: revisions that readers come back to, and until when: automatic compaction leaves them alone. Pure; time is
//! passed in.

use std::collections::VecDeque;
use std::time::{Duration, SystemTime};

use crate::revision::Revision;

/// Readers that come within this time share one hold, that of the oldest revision among them.
const SPACING: Duration = Duration::from_secs(5);
/// Most holds; more share the newest.
const MAX_HOLDS: usize = 256;

/// What is held.
#[derive(Debug, Default)]
pub struct Holds(VecDeque<Hold>);

#[derive(Debug)]
struct Hold {
    revision: Revision,
    since: SystemTime,
    until: SystemTime,
}

impl Holds {
    /// Holds a revision for so long.
    pub fn hold(&mut self, revision: Revision, now: SystemTime, how_long: Duration) {
        let until = now + how_long;
        let is_full = self.0.len() == MAX_HOLDS;
        match self.0.back_mut().filter(|last| is_full || now < last.since + SPACING) {
            Some(last) => {
                last.revision = last.revision.min(revision);
                last.until = last.until.max(until);
            }
            None => self.0.push_back(Hold { revision, since: now, until }),
        }
    }

    /// The oldest revision that is held at `now`.
    pub fn oldest(&mut self, now: SystemTime) -> Option<Revision> {
        self.0.retain(|hold| hold.until > now);
        self.0.iter().map(|hold| hold.revision).min()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(seconds: u64) -> SystemTime {
        SystemTime::UNIX_EPOCH + Duration::from_secs(seconds)
    }

    #[test]
    fn what_is_held_is_held_for_its_time_and_hardly_longer() {
        let (mut holds, minute) = (Holds::default(), Duration::from_secs(60));
        holds.hold(Revision::new(7), at(0), minute);
        holds.hold(Revision::new(9), at(1), minute);
        holds.hold(Revision::new(8), at(10), minute);
        assert_eq!(holds.oldest(at(59)), Some(Revision::new(7)));
        assert_eq!(holds.oldest(at(60)), Some(Revision::new(7)), "shared with 9");
        assert_eq!(holds.oldest(at(61)), Some(Revision::new(8)));
        assert_eq!(holds.oldest(at(70)), None);
        // A reader who comes all the time holds what it asks for, and nothing older.
        for second in 100..2_000 {
            holds.hold(Revision::new(second), at(second), minute);
            let oldest = holds.oldest(at(second)).unwrap().get();
            assert!(
                oldest <= second.saturating_sub(59).max(100) && oldest + 66 >= second,
                "{oldest} at {second}"
            );
        }
    }
}
