//! A real server on port 0 over a store in memory, and plain clients for both facades.

#![allow(clippy::unwrap_used, reason = "a test ends at the first surprise")]
#![allow(dead_code, reason = "each suite uses a part")]

pub mod authority;
pub mod server;
pub mod rest;
pub mod http2;
pub mod grpc;
pub mod parity;
pub mod webhook;
