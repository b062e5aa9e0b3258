//! Durations as people read and write them: `3m20s`, `5d4h`; `30s`, `1h30m`. Pure arithmetic on seconds.

use std::time::Duration;

/// The age `seconds` in the form of kubectl's AGE column: at most two units, coarser the older. A second in the future
/// counts as now (clocks differ); further ahead is `<invalid>`.
pub fn human(seconds: i64) -> String {
    const MINUTE: i64 = 60;
    const HOUR: i64 = 60 * MINUTE;
    const DAY: i64 = 24 * HOUR;
    const YEAR: i64 = 365 * DAY;
    let pair = |large: i64, unit: &str, rest: i64, rest_unit: &str| match rest {
        0 => format!("{large}{unit}"),
        _ => format!("{large}{unit}{rest}{rest_unit}"),
    };
    match seconds {
        ..-1 => "<invalid>".to_owned(),
        -1 => "0s".to_owned(),
        s if s < 2 * MINUTE => format!("{s}s"),
        s if s < 10 * MINUTE => pair(s / MINUTE, "m", s % MINUTE, "s"),
        s if s < 3 * HOUR => format!("{}m", s / MINUTE),
        s if s < 8 * HOUR => pair(s / HOUR, "h", s % HOUR / MINUTE, "m"),
        s if s < 2 * DAY => format!("{}h", s / HOUR),
        s if s < 8 * DAY => pair(s / DAY, "d", s % DAY / HOUR, "h"),
        s if s < 2 * YEAR => format!("{}d", s / DAY),
        s if s < 8 * YEAR => pair(s / YEAR, "y", s % YEAR / DAY, "d"),
        s => format!("{}y", s / YEAR),
    }
}

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
    fn ages_read_as_in_kubectl() {
        for (seconds, text) in [
            (-5, "<invalid>"),
            (-1, "0s"),
            (0, "0s"),
            (119, "119s"),
            (120, "2m"),
            (200, "3m20s"),
            (600, "10m"),
            (10_799, "179m"),
            (10_800, "3h"),
            (12_000, "3h20m"),
            (28_800, "8h"),
            (172_800, "2d"),
            (180_000, "2d2h"),
            (691_200, "8d"),
            (63_072_000, "2y"),
            (70_000_000, "2y80d"),
            (300_000_000, "9y"),
        ] {
            assert_eq!(human(seconds), text, "{seconds}");
        }
    }

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
