//! The controllers as processes: one module per process, each a thin shell around a plan.

mod anybody;
pub mod types;
pub mod application;
pub mod certificates;
pub mod node;
pub mod process;
