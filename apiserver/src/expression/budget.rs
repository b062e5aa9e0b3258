//! How much work expressions may do: steps, spent while they run. The library that runs them knows no limits, so the
//! count is kept beside it, for the thread that evaluates; an evaluation never leaves its thread.

use std::cell::Cell;

/// Most steps of one expression. A step is a turn of a loop, a call, or a hundred bytes that a call made.
pub const MAX_STEPS: u64 = 500_000;
/// Most steps of all expressions about one object.
pub const MAX_STEPS_OF_OBJECT: u64 = 2_000_000;

thread_local! {
    static LEFT: Cell<u64> = const { Cell::new(0) };
}

/// What the expressions about one object may still do.
#[derive(Debug)]
pub struct Budget {
    left: u64,
}

impl Default for Budget {
    fn default() -> Self {
        Self { left: MAX_STEPS_OF_OBJECT }
    }
}

impl Budget {
    /// A budget of so many steps.
    pub fn of(steps: u64) -> Self {
        Self { left: steps }
    }

    /// Whether nothing is left.
    pub fn is_spent(&self) -> bool {
        self.left == 0
    }

    /// Runs one expression within what is left. The flag tells that it ran out.
    pub fn run<T>(&mut self, run: impl FnOnce() -> T) -> (T, bool) {
        let given = self.left.min(MAX_STEPS);
        let outer = LEFT.replace(given);
        let result = run();
        let left = LEFT.replace(outer);
        self.left -= given - left;
        (result, left == 0)
    }
}

/// Spends steps of the expression that runs on this thread; false if there are not so many.
pub fn spend(steps: u64) -> bool {
    LEFT.with(|left| match left.get().checked_sub(steps) {
        Some(rest) if rest > 0 => {
            left.set(rest);
            true
        }
        _ => {
            left.set(0);
            false
        }
    })
}
