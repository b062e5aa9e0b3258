//! The built-in types as clients see them, over a real connection: what a create fills, what is refused and how,
//! what may not change, how it is printed.

#![allow(clippy::unwrap_used, reason = "a test ends at the first surprise")]

#[path = "../common/mod.rs"]
mod common;

mod access;
mod case;
mod forms;
mod network;
mod pods;
mod storage;
mod workloads;
mod writes;
