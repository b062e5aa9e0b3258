//! Pace: how long the operations of a disk in memory take, on demand: slow by so much each, or held until let go.
//! Knows nothing of what the operations do, and is waited at without any other lock.

use std::sync::{Condvar, Mutex, PoisonError};
use std::time::{Duration, Instant};

use crate::engine::log::locked;

/// Where operations wait before they happen.
#[derive(Default)]
pub struct Pace {
    inner: Mutex<Inner>,
    changed: Condvar,
}

#[derive(Default)]
struct Inner {
    delay: Duration,
    holds: usize,
    waiting: usize,
}

impl Pace {
    /// Makes each operation take so long, also those that wait now.
    pub fn slow(&self, delay: Duration) {
        locked(&self.inner).delay = delay;
        self.changed.notify_all();
    }

    /// Holds all operations from now on.
    pub fn hold(&self) {
        locked(&self.inner).holds += 1;
    }

    /// Takes back one `hold`.
    pub fn let_go(&self) {
        let mut inner = locked(&self.inner);
        inner.holds = inner.holds.saturating_sub(1);
        self.changed.notify_all();
    }

    /// How many operations wait at this moment.
    pub fn waiting(&self) -> usize {
        locked(&self.inner).waiting
    }

    /// Waits for as long as an operation has to.
    pub fn wait(&self) {
        let began = Instant::now();
        let mut inner = locked(&self.inner);
        inner.waiting += 1;
        loop {
            let left = inner.delay.saturating_sub(began.elapsed());
            inner = if inner.holds > 0 {
                self.changed.wait(inner).unwrap_or_else(PoisonError::into_inner)
            } else if !left.is_zero() {
                self.changed.wait_timeout(inner, left).unwrap_or_else(PoisonError::into_inner).0
            } else {
                break;
            };
        }
        inner.waiting -= 1;
    }
}
