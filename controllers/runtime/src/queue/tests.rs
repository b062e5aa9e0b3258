//! Tests of the work queue: nothing lost, nothing doubled, nobody starved.

use proptest::prelude::*;
use strata_model::resource::builtin;

use super::*;

const MS: Duration = Duration::from_millis(1);

fn key(n: u32) -> Key {
    Key::new(&builtin::POD, ObjectKey::new("n", n.to_string()))
}

fn pods() -> GroupResource {
    builtin::POD.id.clone()
}

fn reason(n: u64) -> Reason {
    Reason { why: Why::Changed(pods(), ObjectKey::new("n", n.to_string())), revision: n }
}

fn add(queue: &mut Queue, n: u32, priority: Priority, now: Moment) {
    queue.add(key(n), priority, reason(u64::from(n)), now);
}

fn settle(queue: &mut Queue, job: Job, now: Moment) {
    queue.done(job, End::Settled(None), Vec::new(), now, 0.5);
}

#[test]
fn a_key_is_in_once_and_runs_once_at_a_time() {
    let mut queue = Queue::new();
    add(&mut queue, 1, Priority::Live, MS);
    queue.add(key(1), Priority::Live, reason(2), MS);
    let job = queue.pop(MS).unwrap();
    assert_eq!(job.reasons.to_string(), "pods/n/1 changed@1, pods/n/2 changed@2");
    assert!(queue.pop(MS).is_none());
    queue.add(key(1), Priority::Live, reason(3), MS);
    assert!(queue.pop(MS).is_none(), "it runs");
    settle(&mut queue, job, MS * 2);
    let job = queue.pop(MS * 2).unwrap();
    assert_eq!((job.attempt, job.reasons.to_string().as_str()), (1, "pods/n/3 changed@3"));
    settle(&mut queue, job, MS * 3);
    assert!(
        queue.pop(MS * 3).is_none() && queue.items.is_empty(),
        "nothing is kept of a key that is settled"
    );
    assert_eq!((queue.counts().adds, queue.counts().dedups), (3, 1));
}

#[test]
fn failures_wait_longer_and_a_change_runs_at_once() {
    let mut queue = Queue::new();
    add(&mut queue, 1, Priority::Live, MS);
    let job = queue.pop(MS).unwrap();
    queue.done(job, End::Failed("no".into()), Vec::new(), MS, 1.0);
    assert_eq!(queue.next_due(), Some(MS * 6));
    assert!(queue.pop(MS * 5).is_none());
    let job = queue.pop(MS * 6).unwrap();
    assert_eq!((job.attempt, job.reasons.to_string().as_str()), (2, "retry"));
    queue.done(job, End::Failed("no".into()), Vec::new(), MS * 6, 1.0);
    assert_eq!(queue.next_due(), Some(MS * 16));
    add(&mut queue, 1, Priority::Background, MS * 7);
    assert!(queue.pop(MS * 7).is_none(), "a mere look does not hurry a failure");
    add(&mut queue, 1, Priority::Live, MS * 7);
    let job = queue.pop(MS * 7).unwrap();
    assert_eq!(job.attempt, 3);
    queue.done(job, End::Settled(None), Vec::new(), MS * 7, 1.0);
    add(&mut queue, 1, Priority::Live, MS * 8);
    assert_eq!(queue.pop(MS * 8).unwrap().attempt, 1, "success begins anew");
}

#[test]
fn a_terminal_failure_waits_for_a_change() {
    let mut queue = Queue::new();
    add(&mut queue, 1, Priority::Live, MS);
    let job = queue.pop(MS).unwrap();
    queue.done(job, End::Terminal("forbidden".into()), Vec::new(), MS, 0.0);
    assert!(queue.pop(TERMINAL_RECHECK).is_none());
    let shown = &queue.keys(MS, 10)[0];
    assert_eq!((shown.state, shown.error.as_str()), ("failed", "forbidden"));
    assert_eq!(queue.counts().terminal, 1);
    add(&mut queue, 1, Priority::Live, MS * 2);
    assert!(queue.pop(MS * 2).is_some());
}

#[test]
fn draining_burns_no_attempt_and_keeps_the_reasons() {
    let mut queue = Queue::new();
    add(&mut queue, 1, Priority::Live, MS);
    let job = queue.pop(MS).unwrap();
    queue.done(job, End::Drained, Vec::new(), MS, 0.5);
    let job = queue.pop(MS).unwrap();
    assert_eq!(job.attempt, 1);
    assert!(job.reasons.to_string().starts_with("pods/n/1 changed@1"), "{}", job.reasons);
}

#[test]
fn a_timer_runs_the_key_and_an_earlier_change_replaces_it() {
    let mut queue = Queue::new();
    add(&mut queue, 1, Priority::Live, MS);
    let job = queue.pop(MS).unwrap();
    queue.done(job, End::Settled(Some(MS * 100)), Vec::new(), MS, 0.5);
    assert_eq!(queue.next_due(), Some(MS * 100));
    add(&mut queue, 1, Priority::Live, MS * 50);
    let job = queue.pop(MS * 50).unwrap();
    settle(&mut queue, job, MS * 50);
    assert!(queue.next_due().is_none() && queue.pop(MS * 200).is_none());
}

#[test]
fn a_key_that_wrote_waits_until_the_cache_has_seen_it() {
    let mut queue = Queue::new();
    add(&mut queue, 1, Priority::Live, MS);
    let job = queue.pop(MS).unwrap();
    let left = Barrier::Left {
        resource: pods(),
        key: ObjectKey::new("n", "x"),
        uid: "u".into(),
        resource_version: None,
    };
    let barriers = vec![Barrier::Revision(pods(), 7), left.clone()];
    queue.done(job, End::Settled(None), barriers, MS, 0.5);
    add(&mut queue, 1, Priority::Live, MS);
    assert!(queue.pop(MS).is_none() && queue.has_parked());
    queue.seen(&pods(), 6, MS);
    queue.touched(&pods(), &ObjectKey::new("n", "x"), MS, |b| *b == left);
    assert!(queue.pop(MS).is_none());
    queue.seen(&builtin::NODE.id, 9, MS);
    assert!(queue.pop(MS).is_none(), "another type says nothing");
    queue.seen(&pods(), 8, MS);
    assert!(queue.pop(MS).is_some() && !queue.has_parked());
    assert!(queue.revisions.is_empty() && queue.objects.is_empty());
}

#[test]
fn barriers_of_a_line_of_revisions_that_ended_are_lifted() {
    let mut queue = Queue::new();
    add(&mut queue, 1, Priority::Live, MS);
    let job = queue.pop(MS).unwrap();
    let left = Barrier::Left {
        resource: pods(),
        key: ObjectKey::default(),
        uid: "u".into(),
        resource_version: None,
    };
    queue.done(job, End::Settled(None), vec![Barrier::Revision(pods(), 900), left], MS, 0.5);
    add(&mut queue, 1, Priority::Live, MS);
    assert!(queue.pop(MS).is_none());
    queue.release(&pods(), MS);
    assert!(queue.pop(MS).is_some());
}

#[test]
fn a_settled_key_with_barriers_is_forgotten_when_they_are_passed() {
    let mut queue = Queue::new();
    add(&mut queue, 1, Priority::Live, MS);
    let job = queue.pop(MS).unwrap();
    queue.done(job, End::Settled(None), vec![Barrier::Revision(pods(), 7)], MS, 0.5);
    assert_eq!(queue.items.len(), 1);
    queue.seen(&pods(), 7, MS);
    assert!(queue.items.is_empty());
}

#[test]
fn reasons_are_bounded() {
    let mut queue = Queue::new();
    for n in 0..100 {
        queue.add(key(1), Priority::Live, reason(n), MS);
    }
    let reasons = queue.pop(MS).unwrap().reasons;
    assert_eq!((reasons.kept().len(), reasons.dropped), (crate::reason::MAX_REASONS, 92));
}

/// Of what may happen to a queue.
#[derive(Clone, Debug)]
enum Step {
    Add(u32, bool),
    Pop,
    Settle(bool),
    Fail,
    Terminal,
    Seen,
    Pass(u64),
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let step = prop_oneof![
        4 => (0u32..6, any::<bool>()).prop_map(|(n, live)| Step::Add(n, live)),
        4 => Just(Step::Pop),
        3 => any::<bool>().prop_map(Step::Settle),
        1 => Just(Step::Fail),
        1 => Just(Step::Terminal),
        2 => Just(Step::Seen),
        1 => (1u64..50).prop_map(Step::Pass),
    ];
    proptest::collection::vec(step, 0..120)
}

#[test]
fn a_damped_key_is_hurried_by_nothing_and_comes_back_with_what_happened_meanwhile() {
    let mut queue = Queue::new();
    add(&mut queue, 1, Priority::Live, MS);
    let job = queue.pop(MS).unwrap();
    add(&mut queue, 1, Priority::Live, MS * 2);
    queue.done(job, End::Damped(MS * 100, "a and b fight".into()), Vec::new(), MS * 3, 0.5);
    add(&mut queue, 1, Priority::Live, MS * 4);
    assert!(queue.pop(MS * 99).is_none());
    let shown = &queue.keys(MS * 4, 10)[0];
    assert_eq!((shown.state, shown.error.as_str()), ("damped", "a and b fight"));
    let job = queue.pop(MS * 100).unwrap();
    assert_eq!(job.attempt, 1);
    assert!(job.reasons.to_string().contains("pause over"), "{}", job.reasons);
    settle(&mut queue, job, MS * 101);
    assert!(queue.items.is_empty());
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 512, failure_persistence: None, ..ProptestConfig::default() })]

    /// Whatever happens: a key never runs twice at once, never runs behind a barrier, and every key that was added
    /// after its last start runs in the end.
    #[test]
    fn nothing_is_lost_or_doubled(steps in steps()) {
        let mut queue = Queue::new();
        let mut now = MS;
        let mut running: Vec<Job> = Vec::new();
        let mut wanted: BTreeSet<Key> = BTreeSet::new();
        let mut barred: HashMap<Key, u64> = HashMap::new();
        let (mut written, mut seen) = (0, 0);
        for step in steps {
            match step {
                Step::Add(n, live) => {
                    let priority = if live { Priority::Live } else { Priority::Background };
                    add(&mut queue, n, priority, now);
                    wanted.insert(key(n));
                }
                Step::Pop => if let Some(job) = queue.pop(now) {
                    prop_assert!(running.iter().all(|j| j.key != job.key), "runs twice");
                    prop_assert!(barred.get(&job.key).is_none_or(|at| *at <= seen), "runs behind its barrier");
                    wanted.remove(&job.key);
                    running.push(job);
                },
                Step::Settle(wrote) => if let Some(job) = running.pop() {
                    let mut barriers = Vec::new();
                    if wrote {
                        written += 1;
                        barred.insert(job.key.clone(), written);
                        barriers.push(Barrier::Revision(pods(), written));
                    }
                    queue.done(job, End::Settled(None), barriers, now, 0.5);
                },
                Step::Fail => if let Some(job) = running.pop() {
                    wanted.insert(job.key.clone());
                    queue.done(job, End::Failed("x".into()), Vec::new(), now, 0.5);
                },
                Step::Terminal => if let Some(job) = running.pop() {
                    queue.done(job, End::Terminal("x".into()), Vec::new(), now, 0.5);
                },
                Step::Seen => {
                    seen = written;
                    queue.seen(&pods(), seen, now);
                }
                Step::Pass(ms) => now += MS * ms as u32,
            }
            prop_assert_eq!(queue.counts().running, running.len());
        }
        for job in running.drain(..) {
            settle(&mut queue, job, now);
        }
        queue.seen(&pods(), written, now);
        now += TERMINAL_RECHECK * 2;
        while let Some(job) = queue.pop(now) {
            wanted.remove(&job.key);
            settle(&mut queue, job, now);
        }
        prop_assert!(wanted.is_empty(), "never ran: {wanted:?}");
        prop_assert!(queue.items.is_empty() && queue.revisions.is_empty() && queue.delayed.is_empty());
        prop_assert!(!queue.has_parked());
    }

    /// With any mix of both priorities waiting, and more of both coming all the time, a key at place `p` of its line is
    /// taken within a bounded number of turns: neither starves the other.
    #[test]
    fn no_priority_starves_the_other(live in 1u32..20, background in 1u32..20) {
        let mut queue = Queue::new();
        let mut fresh = 1_000;
        for n in 0..live {
            add(&mut queue, n, Priority::Live, MS);
        }
        for n in 100..100 + background {
            add(&mut queue, n, Priority::Background, MS);
        }
        let mut taken: HashMap<Key, u32> = HashMap::new();
        for turn in 1..=(live + background) * (LIVE_IN_A_ROW + 1) + LIVE_IN_A_ROW + 1 {
            let job = queue.pop(MS).unwrap();
            taken.insert(job.key.clone(), turn);
            settle(&mut queue, job, MS);
            add(&mut queue, fresh, Priority::Live, MS);
            add(&mut queue, fresh + 1, Priority::Background, MS);
            fresh += 2;
        }
        for n in 0..live {
            let place = n + 1;
            let turn = taken[&key(n)];
            prop_assert!(turn <= place + place.div_ceil(LIVE_IN_A_ROW), "live {n} only at {turn}");
        }
        for n in 0..background {
            let turn = taken[&key(100 + n)];
            prop_assert!(turn <= (n + 1) * (LIVE_IN_A_ROW + 1), "background {n} only at {turn}");
        }
    }
}

#[test]
fn many_that_fail_together_come_back_at_a_bounded_rate_and_a_change_does_not_wait() {
    let mut queue = Queue::new();
    let count = backoff::BURST + 50;
    for n in 0..count {
        add(&mut queue, n, Priority::Live, MS);
    }
    while let Some(job) = queue.pop(MS) {
        queue.done(job, End::Failed("no".into()), Vec::new(), MS, 0.5);
    }
    let mut soon = 0;
    while let Some(job) = queue.pop(MS * 100) {
        soon += 1;
        settle(&mut queue, job, MS * 100);
    }
    assert_eq!(soon, backoff::BURST);
    // The key that waits longest runs at once where something about it changed.
    add(&mut queue, count - 1, Priority::Live, MS * 100);
    assert_eq!(queue.pop(MS * 100).unwrap().key, key(count - 1));
    let all = MS * 1000 * 60;
    while let Some(job) = queue.pop(all) {
        soon += 1;
        settle(&mut queue, job, all);
    }
    assert_eq!(soon, count - 1, "none is lost");
}
