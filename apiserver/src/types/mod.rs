//! The built-in types: what each defaults, checks, prints and selects on. One file per group of types; everything
//! here is a pure function over values, found through the catalogue by a type's identity, never by matching on kinds.

pub mod rules;
pub mod print;
pub mod meta;
pub mod check;
pub mod pod_spec;
pub mod pod_checks;
pub mod pod_row;
pub mod pod;
pub mod workload;
pub mod deployment;
pub mod replica_set;
pub mod claim;
pub mod stateful_set;
pub mod daemon_set;
pub mod replication_controller;
pub mod job;
pub mod cron_job;
pub mod policy;
pub mod quota;
pub mod namespace;
pub mod node;
pub mod config;
pub mod event;
pub mod lease;
pub mod autoscaler;
pub mod review;
pub mod custom_object;
pub mod definition;
pub mod catalogue;
