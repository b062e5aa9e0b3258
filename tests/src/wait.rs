//! Waiting for a state of the world, with a limit: the only place where a test lets time pass.

use std::fmt::Debug;
use std::time::{Duration, Instant};

/// How long between two looks.
const LOOK_EVERY: Duration = Duration::from_millis(25);

/// Looks until `look` answers `Ok`, and gives that answer. When the limit has passed it panics with what was waited for
/// and the last thing seen.
pub fn until<T, E: Debug>(what: &str, limit: Duration, mut look: impl FnMut() -> Result<T, E>) -> T {
    let end = Instant::now() + limit;
    loop {
        match look() {
            Ok(found) => return found,
            Err(seen) if Instant::now() >= end => panic!("waited {limit:?} for {what}; last seen: {seen:?}"),
            Err(_) => std::thread::park_timeout(LOOK_EVERY),
        }
    }
}

/// The same for a plain condition.
pub fn until_true(what: &str, limit: Duration, mut look: impl FnMut() -> bool) {
    until(what, limit, || if look() { Ok(()) } else { Err("not so") });
}
