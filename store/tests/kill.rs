//! SIGKILL of a writing process at any moment: under load, in checkpoints, in compaction, while it opens. What it said
//! was acknowledged is there, whole, and a write that was under way is there whole or not at all.
//!
//! `STRATA_KILL_ROUNDS` sets the number of kills: 30, and 500 in the nightly run.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on panics")]

mod support;

use std::path::Path;

use support::Numbers;
use support::writer::{Acknowledged, check, life, rounds, runtime, start, write};

const TEST: &str = "a_kill_at_any_moment_loses_nothing_acknowledged";
const ROUNDS: &str = "STRATA_KILL_ROUNDS";
const DEFAULT_ROUNDS: u64 = 30;

/// One life of the writer, ended after some acknowledged writes or some time into its opening.
fn live_and_die(directory: &Path, numbers: &mut Numbers, acknowledged: &mut Acknowledged) {
    let (mut child, mut lines) = start(TEST, directory);
    let in_opening = numbers.below(4) == 0;
    let enough = acknowledged.lines + 1 + numbers.below(1500);
    for line in lines.by_ref() {
        let line = line.unwrap();
        acknowledged.note(&line);
        if in_opening && line == "opening" {
            (0..numbers.below(20_000)).for_each(|_| std::thread::yield_now());
            break;
        }
        if acknowledged.lines >= enough {
            break;
        }
    }
    child.kill().unwrap();
    // What it said before it died counts.
    lines.map_while(Result::ok).for_each(|line| acknowledged.note(&line));
    assert!(!child.wait().unwrap().success(), "the writer ended by itself");
}

#[test]
fn a_kill_at_any_moment_loses_nothing_acknowledged() {
    let runtime = runtime();
    if let Some(directory) = life() {
        return runtime.block_on(write(directory));
    }
    let rounds = rounds(ROUNDS, DEFAULT_ROUNDS);
    let home = tempfile::tempdir().unwrap();
    let directory = home.path().join("store");
    let mut acknowledged = Acknowledged::default();
    let mut numbers = Numbers(0x5eed);
    for round in 1..=rounds {
        live_and_die(&directory, &mut numbers, &mut acknowledged);
        runtime.block_on(check(&directory, &acknowledged, round));
    }
    assert!(acknowledged.lines > rounds * 50, "only {} writes in {rounds} rounds", acknowledged.lines);
}
