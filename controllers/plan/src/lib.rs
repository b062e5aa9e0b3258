//! Every controller's decisions as pure functions: what is observed goes in, what to do comes out. No runtime, clock,
//! random number or IO; so a plan can be tested as a table and driven by a simulation.

pub mod controller;
pub mod ownership;
pub mod typed;
pub mod amounts;
pub mod pods;
pub mod status;
pub mod podtemplate;
pub mod revisions;
pub mod world;
#[cfg(test)]
mod testing;
pub mod replicaset;
pub mod statefulset;
pub mod rollout;
pub mod deployment;
pub mod placement;
pub mod daemonset;
pub mod scheduler;
pub mod nodelifecycle;
pub mod disruption;
pub mod resourcequota;
pub mod namespace;
pub mod serviceaccount;
pub mod certificates;
pub mod endpoints;
pub mod job;
pub mod cronjob;
pub mod garbage;
pub mod application;
pub mod pod;
pub mod node;
#[cfg(test)]
mod story;
