//! Turns: writes that all change one record beside their own object (a quota, a budget) go one after the other, so that
//! none of this server's loses to another. Other servers' still may: then the transaction is decided anew.

use strata_model::names::fnv32;
use tokio::sync::{Mutex, MutexGuard};

/// How many writes of different records can go side by side. Two records that share a place only wait for each other.
const PLACES: usize = 64;

/// Places where writes wait for their turn.
pub struct Turns([Mutex<()>; PLACES]);

impl Default for Turns {
    fn default() -> Self {
        Self(std::array::from_fn(|_| Mutex::new(())))
    }
}

impl Turns {
    /// Waits for the turn at a record. Who holds a turn must not ask for another.
    pub async fn take(&self, what: &str) -> MutexGuard<'_, ()> {
        let place = usize::try_from(fnv32(what.as_bytes())).unwrap_or(0) % PLACES;
        self.0[place].lock().await
    }
}
