//! The process runtime on real processes: what runs, what is recorded, what survives whose death. It must
//! never wait by the clock: each wait is for a state, with a limit.
//!
//! This binary is its own shim: with `shim` as first argument it plays that role.

#![allow(clippy::unwrap_used, reason = "a test may panic")]

mod agents;
mod harness;
mod kills;
mod lives;

use std::process::ExitCode;

fn main() -> ExitCode {
    let args: Vec<_> = std::env::args_os().skip(1).collect();
    if args.first().is_some_and(|role| role == "shim") {
        return strata_stack::node::shim::main(args.into_iter().skip(1));
    }
    let filter = args.iter().filter_map(|arg| arg.to_str()).find(|arg| !arg.starts_with('-')).unwrap_or("");
    harness::run_all(filter, &[lives::TESTS, kills::TESTS, agents::TESTS].concat())
}
