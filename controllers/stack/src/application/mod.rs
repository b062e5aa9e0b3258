//! The outer loop as a process: holds the platform to what repositories say. What it decides is in
//! `strata_plan::application`; here is what reads repositories, asks the server and writes.

pub mod repositories;
pub mod source;
