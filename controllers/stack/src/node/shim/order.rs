//! What agent and shim say to each other: the order to run a command (on the shim's standard input) and the
//! order to stop (through its control fifo). It must never do IO.

use std::ffi::OsString;
use std::os::unix::ffi::OsStringExt;
use std::time::Duration;

use rustix::process::Signal;
use serde::{Deserialize, Serialize};

use strata_plan::pod::observed::StopCause;

use super::log::Limits;

/// The longest order to run that a shim reads, in bytes: more than the kernel lets a command have.
pub const MAX_RUN_ORDER: u64 = 8 * 1024 * 1024;

/// The order to run one command. It goes through a pipe, so that secrets in it never touch the disk.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct RunOrder {
    /// Program and arguments; the program is searched in the `PATH` of `env`.
    pub command: Vec<String>,
    /// The whole environment of the command.
    pub env: Vec<(String, String)>,
    /// The directory to start in; `None`: the attempt's own work directory.
    pub working_dir: Option<String>,
    /// How long the command gets when the shim itself is told to end, in seconds.
    pub grace_seconds: u32,
    /// The size at which a log file is rotated, in bytes.
    pub log_file_bytes: u64,
    /// How many log files are kept.
    pub log_files: usize,
}

impl RunOrder {
    /// The bounds of the log.
    pub fn log_limits(&self) -> Limits {
        Limits { file_bytes: self.log_file_bytes, files: self.log_files }
    }
}

/// The order to stop: a signal to the command's process group, and after `grace` an end to all of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StopOrder {
    /// The polite signal.
    pub signal: Signal,
    /// How long politeness lasts.
    pub grace: Duration,
    /// Why.
    pub cause: StopCause,
}

impl StopOrder {
    /// One line for the fifo, well below the size up to which writes to it are atomic.
    pub fn to_line(self) -> String {
        let cause = match self.cause {
            StopCause::Pod => "pod",
            StopCause::Shutdown => "shutdown",
        };
        format!("stop {} {} {cause}\n", self.signal.as_raw(), self.grace.as_millis())
    }

    /// The order in a line; `None` for anything else.
    pub fn parse(line: &str) -> Option<Self> {
        let mut words = line.split_ascii_whitespace();
        if words.next()? != "stop" {
            return None;
        }
        let signal = Signal::from_named_raw(words.next()?.parse().ok()?)?;
        let grace = Duration::from_millis(words.next()?.parse().ok()?);
        let cause = match words.next()? {
            "pod" => StopCause::Pod,
            "shutdown" => StopCause::Shutdown,
            _ => return None,
        };
        words.next().is_none().then_some(Self { signal, grace, cause })
    }
}

/// A text for a command line or an error, whatever bytes it holds.
pub fn lossy(text: OsString) -> String {
    String::from_utf8_lossy(&text.into_vec()).into_owned()
}

#[cfg(test)]
mod tests {
    use super::{StopCause, StopOrder};
    use rustix::process::Signal;
    use std::time::Duration;

    #[test]
    fn a_stop_order_survives_its_line() {
        for cause in [StopCause::Pod, StopCause::Shutdown] {
            let order = StopOrder { signal: Signal::TERM, grace: Duration::from_millis(1500), cause };
            assert_eq!(StopOrder::parse(&order.to_line()), Some(order));
        }
        for bad in [
            "",
            "stop",
            "stop 15",
            "stop x 1 pod",
            "stop 15 1 2",
            "stop 15 1 pod 2",
            "halt 15 1 pod",
            "stop 99999 1 pod",
        ] {
            assert_eq!(StopOrder::parse(bad), None, "{bad}");
        }
    }
}
