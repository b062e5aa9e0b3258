//! The hot-loop breaker: notices that a key writes the same thing over and over because somebody else undoes it, and
//! says how long the key should pause. Pure: time is passed in, the object as it was found too. Knows no kind.

use std::collections::HashMap;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::time::Duration;

use strata_plan::controller::{Action, Key, Target};

use crate::queue::Moment;

pub mod contest;

use self::contest::Contest;

/// How long a write is remembered, at least.
pub const WINDOW: Duration = Duration::from_secs(60);
/// From this time on that the same write is made, it is worth a look at who undid it.
pub const SUSPECT: u32 = 3;
/// At this time it is a fight.
pub const FIGHT: u32 = 5;
/// The first pause of a key that fights; doubles with each further round.
pub const FIRST_PAUSE: Duration = Duration::from_secs(1);
/// The longest pause.
pub const LONGEST_PAUSE: Duration = Duration::from_secs(60);
/// A fight is over when nothing was undone for this long.
pub const PEACE: Duration = Duration::from_secs(120);
/// Most writes remembered; a process that makes more within the window forgets the older ones sooner.
const MAX_WRITES: usize = 16_384;

/// One write, told from others by what it changes of which object.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Print(u64);

/// The print of an action, and what it writes; `None` for what cannot be undone by an edit.
pub fn print(action: &Action) -> Option<(Print, &Target)> {
    let (target, part, body) = match action {
        Action::Patch { target, patch } => (target, "", patch),
        Action::Status { target, status } => (target, "status", status),
        Action::Replace { target, subresource, object } => (target, *subresource, object),
        _ => return None,
    };
    let mut hasher = DefaultHasher::new();
    (&target.uid, part, body).hash(&mut hasher);
    Some((Print(hasher.finish()), target))
}

/// A fight of one key.
#[derive(Clone, Debug)]
struct Fight {
    rounds: u32,
    last: Moment,
}

/// What a key should do after a round.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Truce {
    /// How long it pauses.
    pub pause: Duration,
    /// Whether this round began the fight.
    pub first: bool,
}

/// Remembers writes and fights.
#[derive(Debug, Default)]
pub struct Guard {
    young: HashMap<Print, u32>,
    old: HashMap<Print, u32>,
    turned: Moment,
    fights: HashMap<Key, Fight>,
}

impl Guard {
    /// How often a write was made lately.
    pub fn times(&self, print: Print) -> u32 {
        let of = |writes: &HashMap<Print, u32>| writes.get(&print).copied().unwrap_or(0);
        of(&self.young).saturating_add(of(&self.old))
    }

    /// Counts a write; answers how often it was made lately, this time included.
    pub fn wrote(&mut self, print: Print, now: Moment) -> u32 {
        let age = now.saturating_sub(self.turned);
        if age >= WINDOW || self.young.len() >= MAX_WRITES {
            let young = std::mem::take(&mut self.young);
            self.old = if age >= WINDOW * 2 { HashMap::new() } else { young };
            self.turned = now;
        }
        let young = self.young.entry(print).or_default();
        *young = young.saturating_add(1);
        self.times(print)
    }

    /// A write that was undone was made for the `times`th time. `None`: not often enough to be a fight.
    pub fn contested(&mut self, key: &Key, times: u32, now: Moment) -> Option<Truce> {
        let first = !self.fights.contains_key(key);
        if times < FIGHT && first {
            return None;
        }
        let fight = self.fights.entry(key.clone()).or_insert(Fight { rounds: 0, last: now });
        let pause = FIRST_PAUSE.saturating_mul(1 << fight.rounds.min(16)).min(LONGEST_PAUSE);
        fight.rounds = fight.rounds.saturating_add(1);
        fight.last = now;
        Some(Truce { pause, first })
    }

    /// A key found nothing to do. `Some(None)`: its fight is over, say so; `Some(Some(at))`: not yet, look again then.
    pub fn settled(&mut self, key: &Key, now: Moment) -> Option<Option<Moment>> {
        let over = self.fights.get(key)?.last + PEACE;
        if now < over {
            return Some(Some(over));
        }
        self.fights.remove(key);
        Some(None)
    }

    /// A key's root is gone.
    pub fn forget(&mut self, key: &Key) {
        self.fights.remove(key);
    }
}

/// What people are told of a fight.
pub fn sentence(me: &str, target: &Target, contest: &Contest) -> String {
    let rivals: Vec<&str> = contest.rivals.iter().map(String::as_str).collect();
    let fields: Vec<&str> = contest.fields.iter().map(String::as_str).collect();
    format!(
        "{me} and {} change {} of {}/{} back and forth; {me} pauses between its writes until one of them lets go",
        rivals.join(", "),
        fields.join(", "),
        target.resource.id,
        target.key,
    )
}

#[cfg(test)]
mod tests;
