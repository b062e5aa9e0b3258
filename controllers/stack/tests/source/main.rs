//! Repositories as they are: made by git itself, read from disk and from real servers on loopback, rendered by the real
//! programs. Where a program is missing a test says so, and fails in continuous integration.

#![allow(clippy::unwrap_used, reason = "a test ends at the first surprise")]

mod repository;

mod files;

mod programs;

mod servers;

mod remote;

mod rubbish;

mod webhooks;
