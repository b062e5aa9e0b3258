//! Power loss: a store on a file system of its own in an image. The writer is frozen, the image is copied as it is, what
//! was not synced is in it or not, and the copy is mounted: everything that was acknowledged is there, whole.
//!
//! `STRATA_POWER_ROUNDS` sets the number of cuts: 5, and 100 in the nightly run.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on panics")]

mod support;

use std::fs::File;
use std::path::Path;
use std::process::Command;

use strata_store::verify::verify;

use support::Numbers;
use support::mount::Mounted;
use support::writer::{Acknowledged, check, life, rounds, runtime, start, write};

const TEST: &str = "a_power_cut_loses_nothing_acknowledged";
const ROUNDS: &str = "STRATA_POWER_ROUNDS";
const DEFAULT_ROUNDS: u64 = 5;
const IMAGE_BYTES: u64 = 128 << 20;

fn run(program: &str, arguments: &[&str]) {
    let done = Command::new(program).args(arguments).output();
    assert!(done.as_ref().is_ok_and(|done| done.status.success()), "{program} {arguments:?}: {done:?}");
}

fn copy(from: &Path, to: &Path) {
    run("cp", &["--sparse=always", from.to_str().unwrap(), to.to_str().unwrap()]);
}

#[test]
fn a_power_cut_loses_nothing_acknowledged() {
    let runtime = runtime();
    if let Some(directory) = life() {
        return runtime.block_on(write(directory));
    }
    let home = tempfile::tempdir().unwrap();
    let (image, cut) = (home.path().join("image"), home.path().join("cut"));
    File::create(&image).unwrap().set_len(IMAGE_BYTES).unwrap();
    run("mkfs.ext4", &["-q", "-F", image.to_str().unwrap()]);
    let Some(disk) = Mounted::image(&image) else { return };
    let directory = disk.path().join("store");
    let (mut acknowledged, mut numbers) = (Acknowledged::default(), Numbers(0xc07));
    let rounds = rounds(ROUNDS, DEFAULT_ROUNDS);
    for round in 1..=rounds {
        let (mut child, mut lines) = start(TEST, &directory);
        let enough = acknowledged.lines + 1 + numbers.below(4000);
        while acknowledged.lines < enough {
            acknowledged.note(&lines.next().unwrap().unwrap());
        }
        run("kill", &["-STOP", &child.id().to_string()]);
        copy(&image, &cut);
        child.kill().unwrap();
        // What it said before it was frozen counts.
        lines.map_while(Result::ok).for_each(|line| acknowledged.note(&line));
        child.wait().unwrap();
        let after = Mounted::image(&cut).unwrap();
        let found = verify(&after.path().join("store")).unwrap();
        assert!(found.damages.is_empty(), "round {round}: {:?}", found.damages);
        runtime.block_on(check(&after.path().join("store"), &acknowledged, round));
        // The next life begins where this one ended, on the disk that lost nothing.
        runtime.block_on(check(&directory, &acknowledged, round));
    }
    assert!(acknowledged.lines > rounds * 50, "only {} writes in {rounds} rounds", acknowledged.lines);
}
