//! What a node's runtime reports about containers, and what it is asked to start: plain values that the
//! pod plan reads and writes. It must never know how a runtime does its work, nor any IO.

use std::collections::BTreeMap;
use std::fmt;

use jiff::Timestamp;
use k8s_openapi::api::core::v1::Pod;
use serde::{Deserialize, Serialize};
use strata_model::addresses;

/// The longest name part that is accepted from a pod (the limit of a DNS subdomain).
const MAX_PART: usize = 253;

/// One attempt at running one container of one pod. Attempts count from 0 and equal the restart count that
/// the container had when the attempt was started.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct ContainerKey {
    pod: String,
    container: String,
    attempt: u32,
}

/// A pod uid or container name that cannot be used as part of a path.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "{what} {value:?} is not usable as a name: it must be 1 to {MAX_PART} characters of [A-Za-z0-9._-], not starting with a dot"
)]
pub struct UnusableName {
    what: &'static str,
    value: String,
}

impl ContainerKey {
    /// A key from a pod's uid, a container's name and the attempt. Both texts must be safe as one path part.
    pub fn new(pod: &str, container: &str, attempt: u32) -> Result<Self, UnusableName> {
        for (what, value) in [("pod uid", pod), ("container name", container)] {
            if !is_safe_part(value) {
                return Err(UnusableName { what, value: value.to_owned() });
            }
        }
        Ok(Self { pod: pod.to_owned(), container: container.to_owned(), attempt })
    }

    /// The uid of the pod.
    pub fn pod(&self) -> &str {
        &self.pod
    }

    /// The container's name in the pod's spec.
    pub fn container(&self) -> &str {
        &self.container
    }

    /// Which attempt this is, from 0.
    pub fn attempt(&self) -> u32 {
        self.attempt
    }
}

impl fmt::Display for ContainerKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}/{}", self.pod, self.container, self.attempt)
    }
}

/// Whether `value` can stand as one part of a path.
fn is_safe_part(value: &str) -> bool {
    !value.is_empty()
        && value.len() <= MAX_PART
        && !value.starts_with('.')
        && value.bytes().all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'.' | b'_' | b'-'))
}

/// How an attempt ended.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Exit {
    /// The exit code; 128 + signal for a process ended by a signal; 128 for a command that could not be started.
    pub code: i32,
    /// The signal that ended the main process, if one did.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub signal: Option<i32>,
    /// Why it ended, in the words of a container status.
    pub reason: ExitReason,
    /// What a person should know beyond the reason; may be empty.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub message: String,
    /// When the main process started; `None` when it never did.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub started_at: Option<Timestamp>,
    /// When the end was recorded.
    pub finished_at: Timestamp,
    /// It ended because the agent or the machine was shut down: no crash, and no reason to wait.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub interrupted: bool,
}

/// The reasons that a terminated container state may carry.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum ExitReason {
    /// Exit code 0.
    Completed,
    /// Any other exit code, or a signal.
    Error,
    /// Ended by the kernel for want of memory.
    OOMKilled,
    /// The command could not be executed.
    StartError,
    /// Nobody saw the end: the supervisor or the machine went down first.
    ContainerStatusUnknown,
}

impl ExitReason {
    /// The reason as a container status spells it.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Completed => "Completed",
            Self::Error => "Error",
            Self::OOMKilled => "OOMKilled",
            Self::StartError => "StartError",
            Self::ContainerStatusUnknown => "ContainerStatusUnknown",
        }
    }
}

/// What a runtime sees of one attempt.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ContainerState {
    /// Asked for, not running yet.
    Created,
    /// Its main process runs.
    Running {
        /// When the main process started.
        started_at: Timestamp,
    },
    /// Over; its log and its record are still there.
    Exited(Exit),
}

/// Why an attempt is told to stop.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StopCause {
    /// Its pod does not want it (any more, or in this state).
    Pod,
    /// The agent or the machine goes down; the pod would have it run.
    Shutdown,
}

/// One attempt as a runtime reports it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ObservedContainer {
    /// Which attempt.
    pub key: ContainerKey,
    /// Its state.
    pub state: ContainerState,
    /// The container's id as a status shows it, for example `process://…`.
    pub id: String,
    /// How long its start was held back after the end of the attempt before it, in seconds.
    pub backoff_seconds: u32,
    /// When it will have been ended, if it was told to stop.
    pub stop_by: Option<Timestamp>,
}

impl ObservedContainer {
    /// Whether the attempt is over.
    pub fn is_over(&self) -> bool {
        matches!(self.state, ContainerState::Exited(_))
    }
}

/// Everything a runtime needs to start one attempt; nothing in it refers to other objects any more.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Launch {
    /// Which attempt.
    pub key: ContainerKey,
    /// The pod's namespace.
    pub namespace: String,
    /// The pod's name.
    pub pod_name: String,
    /// The image as the spec names it.
    pub image: String,
    /// Program and arguments, expanded; the program is searched in the container's `PATH`. Empty: the image decides.
    pub command: Vec<String>,
    /// The variables that the spec sets, in order, later ones win; the runtime adds what its image brings.
    pub env: Vec<(String, String)>,
    /// The directory to start in; `None`: the image decides.
    pub working_dir: Option<String>,
    /// How long this start was held back after the end of the attempt before it, in seconds.
    pub backoff_seconds: u32,
    /// The pod's termination grace, in seconds: what an ordered end of the machine gives the container.
    pub grace_seconds: u32,
    /// The pod's annotations (a simulated runtime reads its orders there).
    pub annotations: BTreeMap<String, String>,
}

/// The address of a pod: its own, or its node's where it is on the network of its host.
pub fn address(pod: &Pod, host_ip: &str) -> String {
    match pod.spec.as_ref().and_then(|spec| spec.host_network) {
        Some(true) => host_ip.to_owned(),
        _ => addresses::of_pod(pod.metadata.uid.as_deref().unwrap_or_default()).to_string(),
    }
}

/// What a node's runtime can do, and where it is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NodeFacts {
    /// The runtime's name, with which container and image ids begin.
    pub runtime: String,
    /// The node's address.
    pub host_ip: String,
    /// The only user that containers can run as; `None`: any may be asked for.
    pub user: Option<i64>,
    /// Whether volumes can be mounted.
    pub mounts: bool,
    /// Whether `postStart` and `preStop` are run (or need not be, where nothing runs).
    pub hooks: bool,
    /// Whether images bring no command of their own.
    pub needs_command: bool,
}

#[cfg(test)]
mod tests {
    use super::ContainerKey;

    #[test]
    fn a_key_takes_only_names_that_are_safe_in_a_path() {
        assert_eq!(ContainerKey::new("4f-1", "web", 3).unwrap().to_string(), "4f-1/web/3");
        for (pod, container) in
            [("", "web"), ("..", "web"), ("a/b", "web"), ("a", "../b"), ("a", ".x"), ("a\0", "x")]
        {
            assert!(ContainerKey::new(pod, container, 0).is_err(), "{pod:?} {container:?}");
        }
    }
}
