//! How many replicas each ReplicaSet of a Deployment gets this turn: the numbers of `rollout` for the case at hand.
//! Makes no action.

use std::cmp::Reverse;

use super::observed::{Observed, SetRef, actual, asked, available, is_current, new_size, size};
use super::template::{self, DESIRED};
use crate::rollout::{self, Share};

/// The sizes of a turn.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Sizes {
    /// Of the new set; `None`: there is none, and none is to be created now.
    pub new: Option<i32>,
    /// Of the old sets, in their order.
    pub old: Vec<i32>,
    /// Whether the Deployment was scaled, so that all active sets must be told the new numbers.
    pub rescaled: bool,
}

/// Chooses the case: scaled or paused, `Recreate`, rolling.
pub fn of(observed: &Observed) -> Sizes {
    let scaled = is_scaled(observed);
    if observed.is_recreate() && !observed.is_paused() {
        return recreate(observed, scaled);
    }
    if scaled || observed.is_paused() {
        return scale(observed, scaled);
    }
    roll(observed)
}

fn unchanged(observed: &Observed, rescaled: bool) -> Sizes {
    let old = observed.old.iter().map(asked).collect();
    Sizes { new: observed.new.as_ref().map(asked), old, rescaled }
}

/// Whether an active set was sized for another number of replicas than the Deployment has now.
fn is_scaled(observed: &Observed) -> bool {
    observed.sets().filter(|s| asked(s) > 0).any(|s| {
        template::number(s.object().meta(), DESIRED).is_some_and(|desired| desired != observed.replicas())
    })
}

/// One step of a rolling update, which is none where it is complete.
fn roll(observed: &Observed) -> Sizes {
    let limits = observed.limits();
    let total = observed.sets().map(asked).sum();
    let new = observed.new.as_ref().map_or(rollout::Size::new(0, 0), new_size);
    let old: Vec<rollout::Size> = observed.old.iter().map(size).collect();
    Sizes {
        new: Some(rollout::grow_new(limits, new.asked, total)),
        old: rollout::shrink_old(limits, new, &old),
        rescaled: false,
    }
}

/// All old replicas go, and are waited for; then the new set comes with all its replicas.
fn recreate(observed: &Observed, rescaled: bool) -> Sizes {
    let gone = observed.old.iter().all(|s| asked(s) == 0 && actual(s) == 0 && is_current(s));
    let mut sizes = unchanged(observed, rescaled);
    sizes.old.fill(0);
    if gone && !observed.old_pods_leaving {
        sizes.new = Some(observed.replicas());
    }
    sizes
}

/// The Deployment was scaled, or is paused: sizes follow its number without a rollout.
fn scale(observed: &Observed, rescaled: bool) -> Sizes {
    let mut sizes = unchanged(observed, rescaled);
    let replicas = observed.replicas();
    let new_is_active = observed.new.as_ref().is_some_and(|s| asked(s) > 0);
    let active_old: Vec<usize> = (0..observed.old.len()).filter(|i| asked(&observed.old[*i]) > 0).collect();
    match (observed.new.as_ref(), active_old.as_slice()) {
        (Some(_), []) => sizes.new = Some(replicas),
        (None, []) => {
            if let Some(latest) = sizes.old.last_mut() {
                *latest = replicas;
            }
        }
        (_, [only]) if !new_is_active => sizes.old[*only] = replicas,
        (Some(new), _) if is_saturated(observed, new) => sizes.old.fill(0),
        _ if rescaled => spread(observed, &mut sizes),
        _ => {}
    }
    sizes
}

/// Whether the new set alone already is what the Deployment asks for.
fn is_saturated(observed: &Observed, new: &SetRef) -> bool {
    let replicas = observed.replicas();
    asked(new) == replicas
        && available(new) == replicas
        && template::number(new.object().meta(), DESIRED) == Some(replicas)
}

/// Several sets are active: each keeps its share.
fn spread(observed: &Observed, sizes: &mut Sizes) {
    let limits = observed.limits();
    // `None` is the new set, which is the youngest.
    let mut active: Vec<(Option<usize>, &SetRef)> =
        observed.old.iter().enumerate().map(|(i, s)| (Some(i), s)).collect();
    active.extend(observed.new.iter().map(|s| (None, s)));
    active.retain(|(_, s)| asked(s) > 0);
    let total: i32 = active.iter().map(|(_, s)| asked(s)).sum();
    if limits.max_total() > total {
        active.reverse();
    }
    active.sort_by_key(|(_, s)| Reverse(asked(s)));
    let reported = observed.deployment.status.as_ref().and_then(|s| s.replicas).unwrap_or(0);
    let share = |set: &SetRef| Share {
        asked: asked(set),
        max_before: template::number(set.object().meta(), template::MAX)
            .filter(|n| *n > 0)
            .unwrap_or(reported),
    };
    let shares: Vec<Share> = active.iter().map(|(_, s)| share(s)).collect();
    for ((at, _), size) in active.iter().zip(rollout::proportional(limits, &shares)) {
        match at {
            Some(i) => sizes.old[*i] = size,
            None => sizes.new = Some(size),
        }
    }
}
