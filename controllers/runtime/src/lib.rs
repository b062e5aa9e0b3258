//! What a controller runs on: an informer cache, a work queue of keys, workers with a freshness barrier, a leader lease
//! and an admin port. Users write their own controllers on it: either as a `strata_plan` [`Controller`], or as a
//! [`Reconcile`] with effects of its own. Knows no kind of object and no controller.
//!
//! The deciding parts (`queue`, `cache`, `core`, `correlator`, `election`) are values with time and randomness passed
//! in; the rest moves data between them and the API server.
//!
//! [`Controller`]: strata_plan::controller::Controller
//! [`Reconcile`]: reconcile::Reconcile

pub mod reason;
pub mod backoff;
pub mod barrier;
pub mod queue;
pub mod cache;
pub mod core;
pub mod guard;
pub mod correlator;
pub mod election;
pub mod telemetry;
pub mod events;
pub mod reconcile;
pub mod perform;
pub mod breaker;
pub mod planned;
pub mod lease;
pub mod pool;
pub mod informer;
pub mod worker;
pub mod admin;
pub mod run;
