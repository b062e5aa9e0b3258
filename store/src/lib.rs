//! A watchable store for a control plane: embedded in a directory of this machine, or over an etcd cluster that several
//! machines share.
//!
//! One line of revisions; transactions with preconditions, all or nothing; consistent snapshots; watches that lose, repeat
//! and split nothing. Keys and values are bytes: what they mean is the caller's affair.
//!
//! # A tour
//!
//! ```
//! use strata_store::config::Config;
//! use strata_store::error::CommitError;
//! use strata_store::key::KeyRange;
//! use strata_store::snapshot::ReadAt;
//! use strata_store::store::{EngineChoice, Store};
//! use strata_store::txn::{Condition, Txn, Value};
//! use strata_store::watch::{From, WatchItem};
//!
//! # #[tokio::main(flavor = "current_thread")]
//! # async fn main() -> Result<(), Box<dyn std::error::Error>> {
//! # let home = tempfile::tempdir()?;
//! # let directory = home.path().join("store");
//! // Opening recovers what is there; a new directory is an empty store.
//! let store = Store::open(Config::default(), EngineChoice::Sled { directory })?;
//!
//! // A watch is a cursor: it yields whole transactions, in order, each once.
//! let mut watch = store.watch(KeyRange::prefix("seats/"), From::Now)?;
//!
//! // A transaction happens as a whole or not at all, and is on stable storage when this returns.
//! let txn = Txn::new()
//!     .when("seats/1", Condition::Absent)
//!     .put("seats/1", Value::plain("ada"))
//!     .put("guests/ada", Value::plain("seats/1"));
//! let booked = store.commit(txn.clone()).await?;
//!
//! // What it was based on is no longer so: it is refused, with what is there now.
//! let Err(CommitError::Failed { actual: Some(record), .. }) = store.commit(txn).await else { panic!() };
//! assert_eq!((record.value.as_ref(), record.modified), (&b"ada"[..], booked.revision));
//!
//! // A snapshot is one revision, taken in constant time; pages of it are ranges that start after a key.
//! let snapshot = store.snapshot(ReadAt::Latest).await?;
//! assert_eq!(snapshot.range(&KeyRange::prefix("seats/"), None).count(), 1);
//!
//! // The watch tells of the transaction with all its changes, and what each of them replaced.
//! let WatchItem::Transaction(seen) = watch.next().await? else { panic!() };
//! assert_eq!((seen.revision, seen.changes.len()), (booked.revision, 2));
//! assert!(seen.changes[0].previous.is_none());
//!
//! // What was is there, within the history kept; and a watch resumes after any of its revisions.
//! store.commit(Txn::new().delete("seats/1").delete("guests/ada")).await?;
//! let then = store.snapshot(ReadAt::Exact(booked.revision)).await?;
//! assert!(then.get(&"seats/1".into()).is_some());
//! let mut resumed = store.watch(KeyRange::all(), From::After(booked.revision))?;
//! assert!(matches!(resumed.next().await?, WatchItem::Transaction(gone) if gone.changes.len() == 2));
//!
//! store.close().await;
//! # Ok(())
//! # }
//! ```
//!
//! `examples/ledger.rs` is a program that moves money between accounts, follows them from another task and is itself again
//! after a restart. Where to go on: [`store::Store`] for all calls, [`config::Config`] for the sizes, [`txn`] and [`watch`]
//! for what goes in and comes out, [`engine::memory`] for tests with a disk that fails on demand, [`backup`], [`restore`],
//! [`verify`] and [`migrate`] for operators.
//!
//! # Guarantees
//!
//! * **Durable first.** A transaction is on stable storage before its writer is answered, a reader can see it or a watcher
//!   is sent it. The end of a process or of power at any moment loses nothing acknowledged, and leaves nothing by halves.
//! * **One order.** Each transaction that changes something takes the next revision; readers and watchers see whole
//!   transactions in that order.
//! * **A watch** is ordered, unique, complete, atomic and resumable; its progress is true, its filter right, and each change
//!   names the record before it. Where history was given up it says so, and never goes on as if nothing were missing.
//! * **Readers cost nothing.** A snapshot is taken in constant time and never waits for a writer; a watcher is a cursor and
//!   never slows one.
//! * **Bounded.** Every queue, group, window and slice of background work has a limit. History is given back by itself.
//! * **A full disk** refuses puts, with how much room is missing. Reads, watches, deletes and compaction go on from a
//!   reserve, and what comes free is used again without being told.
//! * **Damage is never served.** Every frame of the log and every record of the checkpoint carries a checksum. What does not
//!   match is refused by file, place, key and revision; a log that was taken away is missed; data of a newer format is not
//!   touched.
//!
//! # Limits
//!
//! * All live records are in memory, as are the newest transactions: a store is as large as memory allows, which is some
//!   millions of records of a KiB.
//! * A key has at most 4 KiB ([`key::MAX_KEY_BYTES`]), a transaction [`txn::MAX_TXN_BYTES`] and [`txn::MAX_TXN_STEPS`]
//!   conditions or mutations. One store at a time has a directory open.
//! * History is kept by age and count, not by need: a watch that is away for longer than that starts anew. A held revision
//!   ([`store::Store::hold`]) is kept for its reader, unless the disk is full.
//! * Records have two revisions, created and modified; how often one was changed is not counted.
//! * Values are stored as they are: no encryption, and compression in the checkpoint alone; a bit that flips in
//!   memory is stored as it is then.
//! * A disk that lies about a sync loses what it lied about. After the crash that shows it, what is missing is a run of the
//!   newest transactions, each as a whole, or the store is refused as damaged: never is there a hole. Who saw more than is
//!   left is told: reads and watches of its revisions answer `Future`, conditions on them fail. That holds until the line
//!   has come to that revision again, from when on the new one cannot be told from the one that was lost.
//! * There is one checkpoint, brought up to date in place, and not the one before it as well. What would be gained is small:
//!   its flush is atomic (no damage in 82 measured power cuts of sled's own, nor in ours), small states are in the log
//!   itself, and each record is checked when it is read. The price would be all of it a second time: of the 132 MiB that 38
//!   MiB of hardly compressible records took (reserve and all), the checkpoint had 69, so two would make 5.3 times the
//!   records of 3.4. Against a disk that decays there are backups.
//!
//! Over etcd the same holds, with these limits: revisions are etcd's, so what others do in the cluster skips some; a
//! transaction has at most 120 conditions and mutations, and is not larger than etcd was told to take; its time is its
//! writer's, so transactions of two machines may differ by what their clocks differ; a full etcd keeps no time and cause of
//! the deletes that it still takes, and does not say how much is missing; one that shares history with others gives it up
//! with them, held revisions included.
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
