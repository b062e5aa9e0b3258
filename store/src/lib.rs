//! Strata's watchable store: embedded in a directory of this machine, or over an etcd cluster that several
//! machines share.
//!
//! One line of revisions; transactions with preconditions, all or nothing; consistent snapshots;
//! watches that lose, repeat and split nothing. Keys and values are bytes: what they mean is the
//! caller's affair.
//!
//! Promises
//! * **Durable first.** A transaction is on stable storage before its writer is answered, a reader can
//!   see it or a watcher is sent it. The end of a process at any moment loses nothing acknowledged.
//! * **One order.** Each transaction that changes something takes the next revision; readers and
//!   watchers see whole transactions in that order.
//! * **Readers cost nothing.** A snapshot is taken in constant time and never waits for a writer; a
//!   watcher is a cursor and never slows one.
//! * **Bounded.** Every queue, group, window and slice of background work has a limit. History is given
//!   back by itself; a full disk refuses puts with a clear error and still takes deletes.
//!
//! Over etcd the same holds, with these limits: revisions are etcd's, so what others do in the cluster skips
//! some; a transaction has at most 120 conditions and mutations, and is not larger than etcd was told to take;
//! its time is its writer's, so transactions of two machines may differ by what their clocks differ; a full
//! etcd keeps no time and cause of the deletes that it still takes.
//!
//! The modules, in reading order; each imports only from those above it.

pub mod revision;
pub mod key;
pub mod record;
pub mod txn;
pub mod error;
pub mod config;
pub(crate) mod state;
pub mod engine;
pub(crate) mod holds;
pub(crate) mod ring;
pub(crate) mod shared;
pub mod snapshot;
pub mod watch;
pub mod past;
pub(crate) mod upkeep;
pub(crate) mod committer;
#[cfg(feature = "etcd")]
pub(crate) mod remote;
pub mod store;
pub mod target;
pub mod migrate;
pub mod backup;
pub mod restore;
pub mod verify;
