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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn doubles_to_the_cap_within_half_and_whole() {
        assert_eq!(pause(1, 1.0), BASE);
        assert_eq!(pause(1, 0.0), BASE / 2);
        assert_eq!(pause(3, 1.0), BASE * 4);
        assert_eq!(pause(16, 1.0), CAP);
        assert_eq!(pause(u32::MAX, 1.0), CAP);
    }
}
