//! The outer loop as a process: holds the platform to what repositories say. What it decides is in
//! `strata_plan::application`; here is what reads repositories, asks the server and writes.

pub mod repositories;
pub mod source;
pub mod layer;
pub mod memory;
pub mod gather;
pub mod jq;
pub mod judge;
pub mod hand;
pub mod preview;
pub mod cascade;
pub mod turn;
pub mod operate;
pub mod controller;
pub mod sets;
pub mod hooks;
pub mod install;
pub mod process;
