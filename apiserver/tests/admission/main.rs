//! Admission: what others have a say in before a write happens. One file per who.

#![allow(clippy::unwrap_used, reason = "a test ends at the first surprise")]

#[path = "../common/mod.rs"]
mod common;
mod eviction;
mod limits;
mod policies;
mod quotas;
mod webhooks;
