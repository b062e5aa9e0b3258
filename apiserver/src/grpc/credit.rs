//! The flow control of one watch: how many events may still be sent before the client has taken some.

use std::sync::Mutex;
use std::sync::PoisonError;

use tokio::sync::Notify;

/// Events that may be under way where the client does not say.
pub const DEFAULT_WINDOW: u32 = 1024;
/// Most events that may be under way.
pub const MAX_WINDOW: u32 = 65_536;

/// A balance of events. A transaction is never split, so it may go below zero; nothing is sent until it is above.
pub struct Credit {
    balance: Mutex<i64>,
    window: i64,
    raised: Notify,
}

impl Credit {
    /// A full window; 0 means the default.
    pub fn new(window: u32) -> Self {
        let window = if window == 0 { DEFAULT_WINDOW } else { window.min(MAX_WINDOW) };
        let window = i64::from(window);
        Self { balance: Mutex::new(window), window, raised: Notify::new() }
    }

    fn with<T>(&self, change: impl FnOnce(&mut i64) -> T) -> T {
        change(&mut self.balance.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// Takes what was sent.
    pub fn spend(&self, events: usize) {
        let events = i64::try_from(events).unwrap_or(i64::MAX);
        self.with(|balance| *balance = balance.saturating_sub(events));
    }

    /// Gives back what the client has taken; never above the window.
    pub fn add(&self, events: u32) {
        self.with(|balance| *balance = (*balance + i64::from(events)).min(self.window));
        self.raised.notify_one();
    }

    /// Waits until something may be sent.
    pub async fn available(&self) {
        while self.with(|balance| *balance <= 0) {
            self.raised.notified().await;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use futures_util::FutureExt;

    #[test]
    fn credit_runs_out_and_comes_back() {
        let credit = Credit::new(2);
        credit.spend(3);
        assert!(credit.available().now_or_never().is_none());
        credit.add(1);
        assert!(credit.available().now_or_never().is_none(), "one is still owed");
        credit.add(100);
        assert!(credit.available().now_or_never().is_some());
        credit.spend(2);
        assert!(credit.available().now_or_never().is_none(), "never more than the window");
    }
}
