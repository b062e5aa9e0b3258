//! The server as a whole: one TLS port for both facades, from its start to its orderly end. The shell around the
//! pipeline; nothing else in this crate listens, accepts or spawns tasks of its own.

pub mod config;
pub mod tls;
pub mod dispatch;
pub mod connections;
pub mod run;

pub use config::{Config, Pem};
pub use run::{RunError, Server, StartError};
