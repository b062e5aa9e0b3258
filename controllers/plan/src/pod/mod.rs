//! The node agent's decisions about one pod, as pure functions: which containers to start, stop and remove,
//! which probes to run, and what the pod's status says. It must never know a runtime, a clock or a client.
//!
//! What must hold: each container of a pod that is bound here and neither finished nor being deleted runs, or
//! waits for a reason that its status names; what runs belongs to such a pod; and the status is what is seen.

pub mod observed;
pub mod probe;
pub mod restart;
pub mod environment;
pub mod verdict;
pub mod status;
pub mod plan;

#[cfg(test)]
mod tests;
