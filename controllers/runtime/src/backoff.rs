//! How long to wait after failures in a row. Pure: randomness comes in.

use std::time::Duration;

/// The pause after the first failure, as in client-go.
pub const BASE: Duration = Duration::from_millis(5);
/// The longest pause. client-go goes to 1,000 s; a state that somebody unblocked should not wait that long.
pub const CAP: Duration = Duration::from_secs(120);

/// The pause after `failures` (at least one) in a row: doubles each time, between half and whole of it by `random` in
/// `[0, 1)`, so that keys that failed together do not come back together.
pub fn pause(failures: u32, random: f64) -> Duration {
    let doublings = failures.saturating_sub(1).min(31);
    let whole = BASE.saturating_mul(1 << doublings).min(CAP);
    whole.mul_f64(0.5 + random.clamp(0.0, 1.0) / 2.0)
}

/// Retries a second that a controller makes in the long run, over all its keys.
pub const RATE: u32 = 10;
/// Retries that it may make at once, after a time without any.
pub const BURST: u32 = 100;

/// A bucket of retries: however many keys fail together, the server is asked by a controller only so often for what it
/// refuses. A new cause, which may be the cure, is no retry and takes nothing.
#[derive(Clone, Copy, Debug, Default)]
pub struct Bucket {
    /// When the bucket is full again: each retry moves it on by its share of a second.
    full: Duration,
}

impl Bucket {
    /// Takes a retry for a moment that is not before `at`; answers when it may be.
    pub fn take(&mut self, at: Duration, now: Duration) -> Duration {
        let share = Duration::from_secs(1) / RATE;
        self.full = self.full.max(now) + share;
        at.max(self.full.saturating_sub(share * BURST))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_burst_is_free_and_then_retries_come_at_their_rate() {
        let (mut bucket, now) = (Bucket::default(), Duration::from_secs(7));
        for _ in 0..BURST {
            assert_eq!(bucket.take(now, now), now);
        }
        let share = Duration::from_secs(1) / RATE;
        assert_eq!(bucket.take(now, now), now + share);
        assert_eq!(bucket.take(now, now), now + share * 2);
        // One that waits for longer anyway is not held up, and an idle time fills the bucket.
        let late = now + Duration::from_secs(60);
        assert_eq!(bucket.take(late, now), late);
        let later = late + Duration::from_secs(60);
        for _ in 0..BURST {
            assert_eq!(bucket.take(later, later), later);
        }
        assert_eq!(bucket.take(later, later), later + share);
    }

    #[test]
    fn doubles_to_the_cap_within_half_and_whole() {
        assert_eq!(pause(1, 1.0), BASE);
        assert_eq!(pause(1, 0.0), BASE / 2);
        assert_eq!(pause(3, 1.0), BASE * 4);
        assert_eq!(pause(16, 1.0), CAP);
        assert_eq!(pause(u32::MAX, 1.0), CAP);
    }
}
