//! Tables for the usual numbers, and properties over a small simulation of sets whose pods become available in any
//! order and whose reports lag.

use proptest::prelude::*;

use super::*;

fn percent(text: &str) -> Option<IntOrString> {
    Some(IntOrString::String(text.to_owned()))
}

fn int(n: i32) -> Option<IntOrString> {
    Some(IntOrString::Int(n))
}

#[test]
fn surge_rounds_up_and_unavailable_rounds_down() {
    let cases = [
        (10, None, None, (3, 2)),
        (1, None, None, (1, 0)),
        (3, percent("25%"), percent("25%"), (1, 0)),
        (10, percent("100%"), percent("0%"), (10, 0)),
        (10, int(0), int(0), (0, 1)),
        (10, percent("0%"), percent("1%"), (0, 1)),
        (4, int(2), int(9), (2, 4)),
        (0, None, None, (0, 0)),
    ];
    for (replicas, surge, unavailable, expected) in cases {
        let limits = Limits::rolling(replicas, surge.as_ref(), unavailable.as_ref());
        assert_eq!((limits.surge, limits.unavailable), expected, "{replicas} {surge:?} {unavailable:?}");
    }
}

#[test]
fn ten_replicas_start_with_three_up_and_two_down() {
    let limits = Limits::rolling(10, None, None);
    let new = grow_new(limits, 0, 10);
    assert_eq!(new, 3);
    assert_eq!(shrink_old(limits, Size::new(0, 0), &[Size::new(10, 10)]), [8]);
    // Nothing more until the new ones are available, although the old set still reports ten.
    assert_eq!(shrink_old(limits, Size::new(3, 0), &[Size::new(8, 10)]), [8]);
    assert_eq!(shrink_old(limits, Size::new(3, 2), &[Size::new(8, 8)]), [6]);
}

#[test]
fn unhealthy_old_replicas_go_first() {
    let limits = Limits { replicas: 10, surge: 5, unavailable: 0 };
    let old = [Size::new(8, 8), Size::new(2, 0)];
    assert_eq!(shrink_old(limits, Size::new(5, 2), &old), [8, 0]);
    assert_eq!(shrink_old(limits, Size::new(5, 0), &old), [8, 2]);
    assert_eq!(shrink_old(limits, Size::new(5, 5), &old), [5, 0]);
}

#[test]
fn scaling_keeps_shares() {
    let share = |asked, max_before| Share { asked, max_before };
    let limits = |replicas, surge| Limits { replicas, surge, unavailable: 0 };
    assert_eq!(proportional(limits(10, 0), &[share(5, 5)]), [10]);
    assert_eq!(proportional(limits(20, 0), &[share(8, 10), share(2, 10)]), [16, 4]);
    assert_eq!(proportional(limits(5, 0), &[share(8, 10), share(2, 10)]), [4, 1]);
    assert_eq!(proportional(limits(0, 3), &[share(8, 10), share(2, 10)]), [0, 0]);
    assert_eq!(proportional(limits(11, 0), &[share(5, 10), share(5, 10)]), [6, 5]);
    assert_eq!(proportional(limits(15, 3), &[share(8, 13), share(5, 13)]), [11, 7]);
}

#[derive(Clone, Debug)]
struct Sim {
    limits: Limits,
    new: Size,
    old: Vec<Size>,
}

impl Sim {
    fn total(&self) -> i32 {
        self.new.asked + self.old.iter().map(|s| s.asked).sum::<i32>()
    }

    fn available(&self) -> i32 {
        self.new.available + self.old.iter().map(|s| s.available).sum::<i32>()
    }

    /// A step of ours; the sets delete pods that are not available first, as ReplicaSets do.
    fn step(&mut self) -> bool {
        let before = (self.new, self.old.clone());
        let shrunk = shrink_old(self.limits, self.new, &self.old);
        let grown = grow_new(self.limits, self.new.asked, self.total());
        self.new = Size::new(grown, self.new.available);
        for (set, size) in self.old.iter_mut().zip(shrunk) {
            *set = Size::new(size, set.available);
        }
        before != (self.new, self.old.clone())
    }
}

fn sims() -> impl Strategy<Value = Sim> {
    let bound = prop_oneof![
        (0i32..12).prop_map(|n| Some(IntOrString::Int(n))),
        (0i32..101).prop_map(|p| Some(IntOrString::String(format!("{p}%")))),
        Just(None),
    ];
    let old = prop::collection::vec((0i32..8, 0i32..8), 1..4);
    (0i32..25, bound.clone(), bound, old).prop_map(|(replicas, surge, unavailable, old)| {
        let old = old.into_iter().map(|(asked, available)| Size::new(asked, available)).collect();
        let limits = Limits::rolling(replicas, surge.as_ref(), unavailable.as_ref());
        Sim { limits, new: Size::new(0, 0), old }
    })
}

proptest! {
    #[test]
    fn bounds_hold_at_every_step_and_the_update_ends(mut sim in sims(), luck in prop::collection::vec(any::<u8>(), 40)) {
        let most = sim.limits.max_total().max(sim.total());
        let mut luck = luck.into_iter().cycle();
        for _ in 0..400 {
            let floor = sim.available().min(sim.limits.min_available());
            let moved = sim.step();
            prop_assert!(sim.total() <= most, "{sim:?}");
            prop_assert!(sim.available() >= floor, "{sim:?}");
            // Some of the new pods become available; always at least one, if one is missing.
            let missing = sim.new.asked - sim.new.available;
            let more = 1 + i32::from(luck.next().unwrap_or(0)) % 3;
            sim.new = Size::new(sim.new.asked, sim.new.available + more.min(missing));
            if !moved && missing == 0 {
                break;
            }
        }
        prop_assert_eq!(sim.new.asked, sim.limits.replicas);
        prop_assert!(sim.old.iter().all(|s| s.asked == 0), "{:?}", sim);
        prop_assert!(!sim.step(), "a finished update moves: {:?}", sim);
    }

    #[test]
    fn scaling_hands_out_exactly_what_is_allowed(
        shares in prop::collection::vec((1i32..50, 0i32..80), 1..6), replicas in 0i32..100, surge in 0i32..20,
    ) {
        let limits = Limits { replicas, surge, unavailable: 0 };
        let sets: Vec<Share> =
            shares.into_iter().map(|(asked, max_before)| Share { asked, max_before }).collect();
        let sizes = proportional(limits, &sets);
        let allowed = if replicas > 0 { limits.max_total() } else { 0 };
        prop_assert!(sizes.iter().all(|s| *s >= 0));
        let sum: i32 = sizes.iter().sum();
        let before: i32 = sets.iter().map(|s| s.asked).sum();
        // Where the first cannot give all that rounding left, the next turn goes on: never beyond what was or may be.
        prop_assert!(sum == allowed || (sum > allowed && sum <= before), "{sets:?} -> {sizes:?}");
    }
}
