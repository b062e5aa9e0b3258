//! The node agent's decisions about one pod, as pure functions: which containers to start, stop and remove,
//! which probes to run, and what the pod's status says. It must never know a runtime, a clock or a client.

pub mod observed;
