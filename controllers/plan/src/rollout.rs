//! The numbers of a rolling update: how many replicas each set may have now. Integers in, integers out; knows no
//! object. Two promises, held by property tests: the sum never goes above `max_total`, and what is available never
//! goes below `min_available` by a step of ours; and while pods become available, the update ends.

#[cfg(test)]
mod tests;

use k8s_openapi::apimachinery::pkg::util::intstr::IntOrString;

/// How far a Deployment may stray from its number of replicas.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// How many there should be.
    pub replicas: i32,
    /// How many more there may be.
    pub surge: i32,
    /// How many of them may be missing; at most `replicas`.
    pub unavailable: i32,
}

/// A number of nodes, or a percentage of them rounded up; `default` where the body says nothing.
pub fn rounded_up(bound: Option<&IntOrString>, nodes: usize, default: usize) -> usize {
    match bound {
        None => default,
        some => usize::try_from(resolve(some, i32::try_from(nodes).unwrap_or(i32::MAX), 99)).unwrap_or(0),
    }
}

/// What both bounds are where the body says nothing.
const DEFAULT_PERCENT: i64 = 25;

impl Limits {
    /// The bounds of a rolling update: surge rounds up, unavailable rounds down, and if both come to nothing one may be
    /// missing, for else nothing could move.
    pub fn rolling(replicas: i32, surge: Option<&IntOrString>, unavailable: Option<&IntOrString>) -> Self {
        let replicas = replicas.max(0);
        let surge = resolve(surge, replicas, 99);
        let mut unavailable = resolve(unavailable, replicas, 0);
        if surge == 0 && unavailable == 0 {
            unavailable = 1;
        }
        Self { replicas, surge, unavailable: unavailable.min(replicas) }
    }

    /// All at once, never one more: what `Recreate` means for counting.
    pub fn recreate(replicas: i32) -> Self {
        Self { replicas: replicas.max(0), surge: 0, unavailable: 0 }
    }

    /// The most replicas of all sets together.
    pub fn max_total(self) -> i32 {
        self.replicas.saturating_add(self.surge)
    }

    /// The least that must be available.
    pub fn min_available(self) -> i32 {
        self.replicas - self.unavailable
    }
}

/// A number, or a percentage of `total` with `round` hundredths added before the division (99 rounds up).
fn resolve(bound: Option<&IntOrString>, total: i32, round: i64) -> i32 {
    let percent = match bound {
        Some(IntOrString::Int(n)) => return (*n).max(0),
        Some(IntOrString::String(text)) => text.strip_suffix('%').and_then(|p| p.parse::<i64>().ok()),
        None => None,
    };
    let percent = percent.unwrap_or(DEFAULT_PERCENT).clamp(0, i64::from(i32::MAX));
    i32::try_from((i64::from(total) * percent + round) / 100).unwrap_or(i32::MAX)
}

/// One set as it is: what was asked for, and how many of those are available.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Size {
    /// `spec.replicas`.
    pub asked: i32,
    /// Available, at most `asked`: a set that was just shrunk still reports pods that it is about to delete.
    pub available: i32,
}

impl Size {
    /// A size; an availability above what is asked for is cut.
    pub fn new(asked: i32, available: i32) -> Self {
        Self { asked, available: available.clamp(0, asked.max(0)) }
    }
}

/// The next size of the new set, given what all sets together are asked for: as large as the surge allows, never
/// shrunk below what it has but to `replicas`.
pub fn grow_new(limits: Limits, new: i32, total: i32) -> i32 {
    if new >= limits.replicas {
        return limits.replicas;
    }
    let room = (limits.max_total() - total).max(0);
    new + room.min(limits.replicas - new)
}

/// The next sizes of the old sets, oldest first. Replicas that are not available go first, as nobody misses them; then
/// available ones, as many as the available of the new set make up for.
pub fn shrink_old(limits: Limits, new: Size, old: &[Size]) -> Vec<i32> {
    let mut sizes: Vec<i32> = old.iter().map(|s| s.asked).collect();
    let asked: i32 = sizes.iter().sum();
    // Replicas of the new set that are not there yet must not be counted on.
    let mut budget = asked + new.available - limits.min_available();
    for (size, set) in sizes.iter_mut().zip(old) {
        let gone = (set.asked - set.available).min(budget).max(0);
        *size -= gone;
        budget -= gone;
    }
    let available: i32 = new.available + old.iter().map(|s| s.available).sum::<i32>();
    let mut spare = budget.min(available - limits.min_available()).max(0);
    for size in &mut sizes {
        let gone = (*size).min(spare).max(0);
        *size -= gone;
        spare -= gone;
    }
    sizes
}

/// One set at the moment the Deployment is scaled while several sets have replicas.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Share {
    /// `spec.replicas`, above zero.
    pub asked: i32,
    /// What `max_total` was when the set was sized last.
    pub max_before: i32,
}

/// The next sizes of all active sets, so that each keeps its share; what rounding leaves goes to the first. Pass them
/// in order of precedence: largest first, and of equals the newer where it grows, the older where it shrinks.
pub fn proportional(limits: Limits, sets: &[Share]) -> Vec<i32> {
    let total: i32 = sets.iter().map(|s| s.asked).sum();
    let allowed = if limits.replicas > 0 { limits.max_total() } else { 0 };
    let change = allowed - total;
    let mut left = change;
    let mut sizes = Vec::with_capacity(sets.len());
    for set in sets {
        let fair = share(limits, *set) - set.asked;
        let step = if change > 0 { fair.clamp(0, left) } else { fair.clamp(left, 0) };
        left -= step;
        sizes.push(set.asked + step);
    }
    if let Some(first) = sizes.first_mut() {
        *first = (*first + left).max(0);
    }
    sizes
}

/// `asked × max_total ÷ max_before`, rounded to the nearest.
fn share(limits: Limits, set: Share) -> i32 {
    if limits.replicas == 0 {
        return 0;
    }
    let before = i64::from(set.max_before);
    if before <= 0 {
        return set.asked;
    }
    let scaled = (2 * i64::from(set.asked) * i64::from(limits.max_total()) + before) / (2 * before);
    i32::try_from(scaled).unwrap_or(i32::MAX)
}
