//! The controllers as processes: one module per process, each a thin shell around a plan.

pub mod types;
pub mod application;
pub mod certificates;
pub mod node;
pub mod process;
