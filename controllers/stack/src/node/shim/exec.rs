//! The second stage: the process that becomes the container's command. It must never supervise anything.
//!
//! Its standard input is the write end of a pipe to the shim: it closes by itself when the command has been
//! executed, and carries the reason when it could not be. Its environment is already the command's.

use std::ffi::{OsStr, OsString};
use std::fs::File;
use std::io::{self, Write};
use std::os::unix::process::CommandExt;
use std::process::{Command, ExitCode};

use rustix::process::{Signal, getppid, set_parent_process_death_signal};

use super::EXIT_START_ERROR;

/// Becomes `program`, started in `dir`, dying with its parent, which must be the process `parent`.
///
/// Returns only when that failed; the reason then went into standard input's pipe.
pub fn run(parent: &OsStr, dir: &OsStr, program: &OsStr, args: &[OsString]) -> ExitCode {
    let mut report = match take_report_pipe() {
        Ok(report) => report,
        Err(error) => {
            eprintln!("shim: cannot set up standard input: {error}");
            return ExitCode::from(EXIT_START_ERROR);
        }
    };
    let reason = match tie_to_parent(parent).and_then(|()| enter(dir)) {
        Ok(()) => {
            let error = Command::new(program).args(args).exec();
            describe(program, &error)
        }
        Err(reason) => reason,
    };
    if let Err(error) = report.write_all(reason.as_bytes()) {
        eprintln!("shim: {reason} (and could not report it: {error})");
    }
    ExitCode::from(EXIT_START_ERROR)
}

/// Moves the pipe away from standard input, which becomes empty; the moved end closes on exec.
fn take_report_pipe() -> io::Result<File> {
    let report = rustix::io::fcntl_dupfd_cloexec(rustix::stdio::stdin(), 3)?;
    rustix::stdio::dup2_stdin(File::open("/dev/null")?)?;
    Ok(File::from(report))
}

/// Asks the kernel for SIGKILL when the shim dies, and sees that it had not died before that.
fn tie_to_parent(parent: &OsStr) -> Result<(), String> {
    set_parent_process_death_signal(Some(Signal::KILL))
        .map_err(|error| format!("cannot tie the command to its supervisor: {error}"))?;
    let now = getppid().map(|pid| pid.as_raw_nonzero().get().to_string());
    if now.as_deref().map(OsStr::new) == Some(parent) {
        Ok(())
    } else {
        Err("the supervisor died before the command started".to_owned())
    }
}

fn enter(dir: &OsStr) -> Result<(), String> {
    std::env::set_current_dir(dir)
        .map_err(|error| format!("workingDir {}: {}", dir.to_string_lossy(), reason(&error)))
}

/// Says what a person should look at.
fn describe(program: &OsStr, error: &io::Error) -> String {
    let program = program.to_string_lossy();
    match error.kind() {
        io::ErrorKind::NotFound if !program.contains('/') => {
            format!("exec: {program:?}: executable file not found in $PATH")
        }
        _ => format!("exec: {program:?}: {}", reason(error)),
    }
}

/// The system's words without its number.
fn reason(error: &io::Error) -> String {
    let text = error.to_string();
    text.split(" (os error").next().unwrap_or(&text).to_lowercase()
}
