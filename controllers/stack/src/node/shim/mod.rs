//! The shim: a tiny supervisor process, one per container attempt, that outlives the agent. It starts the
//! command, writes its log, records how it ended and stops all of it on request.
//!
//! Two stages of our own binary: `shim run DIR` supervises; it starts `shim exec …`, which ties its life to
//! the supervisor's and then becomes the command. No async runtime, no threads, no network: it must never
//! know the API, nor depend on anything that can fail after the command runs.

pub mod exec;
pub mod log;
pub mod order;
mod supervise;

use std::ffi::OsString;
use std::path::PathBuf;
use std::process::ExitCode;

/// The exit code for a command that could not be executed.
pub const EXIT_START_ERROR: u8 = 128;

/// Runs the hidden role: `run DIR`, or `exec PARENT DIR PROGRAM [ARG…]`. `args` are those after `shim`.
///
/// `exec` does not return when it succeeds. Complaints go to standard error.
pub fn main(args: impl IntoIterator<Item = OsString>) -> ExitCode {
    let args: Vec<OsString> = args.into_iter().collect();
    match args.first().and_then(|role| role.to_str()) {
        Some("run") if args.len() == 2 => match supervise::run(PathBuf::from(&args[1])) {
            Ok(()) => ExitCode::SUCCESS,
            Err(error) => {
                complain(&error);
                ExitCode::FAILURE
            }
        },
        Some("exec") if args.len() >= 4 => exec::run(&args[1], &args[2], &args[3], &args[4..]),
        _ => {
            eprintln!(
                "`shim` is an internal role that the node agent starts; to run a node use `strata node`"
            );
            ExitCode::from(2)
        }
    }
}

/// Prints an error and its chain on one line.
fn complain(error: &dyn std::error::Error) {
    let mut text = error.to_string();
    let mut source = error.source();
    while let Some(inner) = source {
        text.push_str(": ");
        text.push_str(&inner.to_string());
        source = inner.source();
    }
    eprintln!("shim: {text}");
}
