//! Who must go so that a more important pod finds room. Pure; deletes nothing.

use std::cmp::Reverse;

use jiff::Timestamp;
use strata_model::selector::Selector;

use super::{Place, Request};
use crate::amounts::Amounts;
use crate::pods::PodRef;

/// Most places that are looked at closely for one pod.
const CANDIDATES: usize = 100;

/// A PodDisruptionBudget: whom it protects, and how many of them may go now.
#[derive(Clone, Debug)]
pub struct Budget {
    /// Its namespace.
    pub namespace: String,
    /// Whom it protects.
    pub selector: Selector,
    /// How many may go.
    pub allowed: i32,
}

/// The importance of a pod.
pub fn priority(pod: &PodRef) -> i32 {
    pod.spec.as_ref().and_then(|s| s.priority).unwrap_or(0)
}

/// Whether a pod may have others removed for it.
pub fn may_preempt(pod: &PodRef) -> bool {
    pod.spec.as_ref().and_then(|s| s.preemption_policy.as_deref()) != Some("Never")
}

/// A place, and who must go there.
#[derive(Debug)]
pub struct Room {
    /// Index of the place.
    pub at: usize,
    /// Who must go, the least important first.
    pub victims: Vec<PodRef>,
}

/// The place where making room costs least: the fewest budgets broken, then the least important victims, then the fewest,
/// then the youngest. `None`: it helps nowhere.
pub fn room(places: &[Place], request: &Request<'_>, priority_of: i32, budgets: &[Budget]) -> Option<Room> {
    let short = places.iter().enumerate().filter(|(_, place)| {
        place.residents().iter().any(|pod| priority(pod) < priority_of) && place.is_full_for(request)
    });
    let rooms = short.take(CANDIDATES).filter_map(|(at, place)| {
        let (victims, broken) = victims(place, request, priority_of, budgets)?;
        Some((Room { at, victims }, broken))
    });
    rooms.min_by_key(|(room, broken)| cost(room, *broken, places)).map(|(room, _)| room)
}

fn cost(
    room: &Room,
    broken: usize,
    places: &[Place],
) -> (usize, i32, i64, usize, Reverse<Option<Timestamp>>, String) {
    let highest = room.victims.iter().map(priority).max().unwrap_or(i32::MIN);
    let sum = room.victims.iter().map(|p| i64::from(priority(p)) - i64::from(i32::MIN)).sum();
    let oldest = room.victims.iter().filter_map(|p| p.object().meta().creation_timestamp).min();
    (broken, highest, sum, room.victims.len(), Reverse(oldest), places[room.at].name().to_owned())
}

/// Who must go from a place, and how many budgets that breaks. Everybody less important goes, and comes back if there is
/// room: those whom budgets protect first, then the most important, then the oldest.
fn victims(
    place: &Place,
    request: &Request<'_>,
    priority_of: i32,
    budgets: &[Budget],
) -> Option<(Vec<PodRef>, usize)> {
    let (less, stay): (Vec<PodRef>, Vec<PodRef>) = place
        .residents()
        .iter()
        .cloned()
        .partition(|pod| priority(pod) < priority_of && !pod.object().meta().is_deleting());
    let mut rest = place.emptied();
    stay.iter().for_each(|pod| rest.host(pod));
    let asked: &Amounts = request.asked();
    if !rest.has_room_for(request.spec, asked) {
        return None;
    }
    let mut less: Vec<(bool, PodRef)> = protected(less, budgets);
    less.sort_by_cached_key(|(protected, pod)| {
        (!protected, Reverse(priority(pod)), pod.object().meta().creation_timestamp, pod.object().key())
    });
    let (mut victims, mut broken) = (Vec::new(), 0);
    for (protected, pod) in less {
        let mut with = rest.clone();
        with.host(&pod);
        if with.has_room_for(request.spec, asked) {
            rest = with;
        } else {
            broken += usize::from(protected);
            victims.push(pod);
        }
    }
    victims.reverse();
    (!victims.is_empty()).then_some((victims, broken))
}

/// Each pod with whether its going would break a budget, if all before it in the list went as well.
fn protected(pods: Vec<PodRef>, budgets: &[Budget]) -> Vec<(bool, PodRef)> {
    let mut allowed: Vec<i32> = budgets.iter().map(|b| b.allowed).collect();
    let each = pods.into_iter().map(|pod| {
        let meta = pod.object().meta();
        let mut broken = false;
        for (budget, left) in budgets.iter().zip(&mut allowed) {
            if budget.namespace == meta.namespace && budget.selector.matches(&meta.labels) {
                *left -= 1;
                broken |= *left < 0;
            }
        }
        (broken, pod)
    });
    each.collect()
}
