//! The bottom layer: what holds real (or simulated) processes to the pods bound to a node.

pub mod procfs;
pub mod attempt;
pub mod shim;
pub mod runtime;
pub mod agent;
