//! Durations as people write them: `30s`, `1h30m`. Pure arithmetic.

use std::time::Duration;

/// Reads `300ms`, `5s`, `1h30m`, `-1s` or a bare number of seconds. Negative values mean "without end" to callers and
/// come back as `None`.
pub fn parse(text: &str) -> Result<Option<Duration>, String> {
    let fault = || format!("{text:?} is no duration: write a number with a unit, such as 30s, 5m or 1h30m");
    let (negative, body) = match text.strip_prefix('-') {
        Some(body) => (true, body),
        None => (false, text),
    };
    if let Ok(seconds) = body.parse::<u64>() {
        return Ok((!negative).then(|| Duration::from_secs(seconds)));
    }
    let mut total = 0f64;
    let mut rest = body;
    while !rest.is_empty() {
        let digits = rest.find(|c: char| !c.is_ascii_digit() && c != '.').ok_or_else(fault)?;
        let number: f64 = rest[..digits].parse().map_err(|_| fault())?;
        let tail = &rest[digits..];
        let unit = tail.find(|c: char| c.is_ascii_digit() || c == '.').unwrap_or(tail.len());
        total += number
            * match &tail[..unit] {
                "ns" => 1e-9,
                "us" | "µs" => 1e-6,
                "ms" => 1e-3,
                "s" => 1.0,
                "m" => 60.0,
                "h" => 3600.0,
                "d" => 86400.0,
                _ => return Err(fault()),
            };
        rest = &tail[unit..];
    }
    if body.is_empty() {
        return Err(fault());
    }
    let duration = Duration::try_from_secs_f64(total).map_err(|_| fault())?;
    Ok((!negative).then_some(duration))
}

/// How long something may take; `None` is without end. As the value of a flag: a negative duration has no end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limit(pub Option<Duration>);

impl Limit {
    /// The same where 0 means without end, too.
    pub fn zero_is_endless(self) -> Option<Duration> {
        self.0.filter(|limit| !limit.is_zero())
    }
}

impl std::str::FromStr for Limit {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        parse(text).map(Self)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations_are_read_as_go_writes_them() {
        assert_eq!(parse("1h30m"), Ok(Some(Duration::from_secs(5400))));
        assert_eq!(parse("1.5s"), Ok(Some(Duration::from_millis(1500))));
        assert_eq!(parse("300ms"), Ok(Some(Duration::from_millis(300))));
        assert_eq!(parse("0"), Ok(Some(Duration::ZERO)));
        assert_eq!(parse("-1s"), Ok(None));
        for bad in ["", "s", "5x", "5 m", "1..2s", "-", "1h30", "99999999999999999999h"] {
            assert!(parse(bad).is_err(), "{bad}");
        }
    }
}
