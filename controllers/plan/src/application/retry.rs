//! When a sync that failed is tried again. Pure arithmetic.

use jiff::SignedDuration;

use super::spec::Retry;

/// How often what nobody asked for is tried again, unless the policy says.
pub const AUTOMATED_LIMIT: i64 = 5;
/// Before the first retry, unless said.
const FIRST: SignedDuration = SignedDuration::from_secs(5);
/// The longest time between, unless said.
const LONGEST: SignedDuration = SignedDuration::from_mins(3);
/// By what the time grows, unless said.
const FACTOR: i64 = 2;

/// A span as Go writes it (`1h30m`, `500ms`), or a number of seconds.
pub fn span(text: &str) -> Option<SignedDuration> {
    let text = text.trim();
    if let Ok(seconds) = text.parse::<i64>() {
        return Some(SignedDuration::from_secs(seconds));
    }
    text.parse::<SignedDuration>().ok()
}

/// How long to wait before attempt number `attempt` (from 1); `None`: it is not tried again.
pub fn wait(retry: Option<&Retry>, attempt: i64) -> Option<SignedDuration> {
    let limit = retry.and_then(|r| r.limit).unwrap_or(0);
    if limit >= 0 && attempt > limit {
        return None;
    }
    let backoff = retry.and_then(|r| r.backoff.as_ref());
    let said = |text: Option<&String>, usual| text.and_then(|t| span(t)).unwrap_or(usual);
    let first = said(backoff.map(|b| &b.duration), FIRST);
    let longest = said(backoff.map(|b| &b.max_duration), LONGEST);
    let factor = backoff.and_then(|b| b.factor).unwrap_or(FACTOR).clamp(1, 1000);
    let mut wait = first;
    for _ in 1..attempt.min(64) {
        wait = SignedDuration::from_millis(
            i64::try_from(wait.as_millis()).unwrap_or(i64::MAX).saturating_mul(factor),
        );
        if wait >= longest {
            break;
        }
    }
    Some(wait.min(longest))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn the_time_between_grows_up_to_its_limit() {
        let retry: Retry = serde_json::from_value(json!({"limit": 4, "backoff":
            {"duration": "5s", "factor": 3, "maxDuration": "1m30s"}}))
        .unwrap();
        let waits: Vec<Option<i64>> = (1..=5).map(|n| wait(Some(&retry), n).map(|d| d.as_secs())).collect();
        assert_eq!(waits, [Some(5), Some(15), Some(45), Some(90), None]);
        assert_eq!(wait(None, 1), None);
        let endless: Retry = serde_json::from_value(json!({"limit": -1})).unwrap();
        assert_eq!(wait(Some(&endless), 1000).map(|d| d.as_secs()), Some(180));
        assert_eq!(span("90"), Some(SignedDuration::from_secs(90)));
        assert_eq!(span("soon"), None);
    }
}
