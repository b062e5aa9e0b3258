//! Exit codes of the roles: what a process says to its supervisor (ours, or systemd) by the way it ends.
//! Knows nothing of why a role failed.

use std::process::ExitCode;

/// How a role ended, as a process tells it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Exit {
    /// It was asked to stop and did: 0.
    Stopped,
    /// It failed; starting it again may help: 1.
    Failed,
    /// Somebody else holds what it needs (the data directory, the store): 75, `EX_TEMPFAIL`.
    Busy,
    /// Starting it again cannot help until something is changed (a port, a directory, a flag): 78, `EX_CONFIG`.
    CannotStart,
    /// It was told twice to stop, and left without tidying: 130.
    Forced,
}

impl Exit {
    /// The number that the process ends with.
    pub fn code(self) -> u8 {
        match self {
            Exit::Stopped => 0,
            Exit::Failed => 1,
            Exit::Busy => 75,
            Exit::CannotStart => 78,
            Exit::Forced => 130,
        }
    }

    /// Whether a child that ended with `code` can only fail again.
    pub fn is_final(code: i32) -> bool {
        code == i32::from(Exit::CannotStart.code())
    }
}

impl From<Exit> for ExitCode {
    fn from(exit: Exit) -> Self {
        ExitCode::from(exit.code())
    }
}
