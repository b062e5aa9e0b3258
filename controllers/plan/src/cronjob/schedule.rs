//! When a CronJob runs: its schedule in its time zone. Reads the five fields, the names (`@hourly`) and `@every SPAN`.

use cronexpr::Crontab;
use jiff::{SignedDuration, Timestamp, ToSpan};

/// Most runs that were missed and are counted; beyond, there were too many.
pub const MOST_MISSED: usize = 100;

/// What the names of schedules mean.
const NAMES: [(&str, &str); 7] = [
    ("@yearly", "0 0 1 1 *"),
    ("@annually", "0 0 1 1 *"),
    ("@monthly", "0 0 1 * *"),
    ("@weekly", "0 0 * * 0"),
    ("@daily", "0 0 * * *"),
    ("@midnight", "0 0 * * *"),
    ("@hourly", "0 * * * *"),
];

/// A schedule that cannot be read.
#[derive(Debug, thiserror::Error)]
pub enum ScheduleError {
    /// The fields, or the time zone.
    #[error("unparseable schedule {schedule:?}")]
    Fields {
        /// As written, with its zone.
        schedule: String,
        /// Why.
        #[source]
        source: cronexpr::Error,
    },
    /// What comes after `@every`.
    #[error("unparseable schedule {schedule:?}: {every} is no span of a second or more")]
    Every {
        /// As written.
        schedule: String,
        /// The span.
        every: String,
    },
}

/// A schedule.
#[derive(Debug)]
pub enum Schedule {
    /// By the clock and the calendar of a place.
    Calendar(Box<Crontab>),
    /// In equal steps since the beginning of time.
    Every(SignedDuration),
}

/// The runs that are due.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Due {
    /// The latest of them.
    pub latest: Option<Timestamp>,
    /// How many there are; [`MOST_MISSED`] + 1 stands for more.
    pub count: usize,
}

impl Schedule {
    /// Reads a schedule; without a zone it is that of UTC.
    pub fn parse(schedule: &str, zone: Option<&str>) -> Result<Self, ScheduleError> {
        if let Some(every) = schedule.strip_prefix("@every ") {
            let step: Option<SignedDuration> =
                every.parse().ok().filter(|s: &SignedDuration| s.as_secs() >= 1);
            let fault = || ScheduleError::Every { schedule: schedule.to_owned(), every: every.to_owned() };
            return step.map(|s| Self::Every(SignedDuration::from_secs(s.as_secs()))).ok_or_else(fault);
        }
        let named = NAMES.iter().find(|(name, _)| *name == schedule);
        let fields = named.map_or(schedule, |(_, fields)| *fields).replace('?', "*");
        let text = format!("{fields} {}", zone.unwrap_or("UTC"));
        // The zone is always there, so nothing falls back to one.
        let parsed = cronexpr::parse_crontab(&text);
        parsed
            .map(|crontab| Self::Calendar(Box::new(crontab)))
            .map_err(|source| ScheduleError::Fields { schedule: text, source })
    }

    /// The first run after an instant; `None`: there is none.
    pub fn after(&self, at: Timestamp) -> Option<Timestamp> {
        match self {
            Self::Calendar(crontab) => crontab.find_next(at).ok().map(|zoned| zoned.timestamp()),
            Self::Every(step) => {
                let seconds = step.as_secs().max(1);
                let next = (at.as_second().div_euclid(seconds) + 1).checked_mul(seconds)?;
                Timestamp::from_second(next).ok()
            }
        }
    }

    /// The runs after `since`, up to and with `now`.
    pub fn due(&self, since: Timestamp, now: Timestamp) -> Due {
        let mut due = Due::default();
        let mut at = since;
        while let Some(next) = self.after(at).filter(|next| *next <= now) {
            due.count += 1;
            if due.count > MOST_MISSED {
                due.latest = self.latest(now).or(Some(next));
                return due;
            }
            due.latest = Some(next);
            at = next;
        }
        due
    }

    /// The latest run up to and with `now`, looked for further and further back.
    fn latest(&self, now: Timestamp) -> Option<Timestamp> {
        let mut back = 60i64;
        while back < 10 * 366 * 86_400 {
            let from = now.checked_sub(back.seconds()).ok()?;
            let mut latest = None;
            let mut at = from;
            while let Some(next) = self.after(at).filter(|next| *next <= now) {
                latest = Some(next);
                at = next;
            }
            if latest.is_some() {
                return latest;
            }
            back *= 2;
        }
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(text: &str) -> Timestamp {
        text.parse().unwrap()
    }

    #[test]
    fn schedules_run_by_the_clock_of_their_zone() {
        for (schedule, zone, since, next) in [
            ("*/5 * * * *", None, "2026-11-30T20:01:00Z", "2026-11-30T20:05:00Z"),
            ("0 9 * * *", Some("Europe/Berlin"), "2026-11-30T20:00:00Z", "2026-12-01T08:00:00Z"),
            ("0 9 * * *", Some("Europe/Berlin"), "2026-07-01T20:00:00Z", "2026-07-02T07:00:00Z"),
            ("@hourly", None, "2026-11-30T20:00:00Z", "2026-11-30T21:00:00Z"),
            ("@every 90s", None, "2026-11-30T20:00:00Z", "2026-11-30T20:01:30Z"),
            ("30 4 ? * sun", None, "2026-11-30T20:00:00Z", "2026-12-06T04:30:00Z"),
            ("0 0 1 jan *", None, "2026-11-30T20:00:00Z", "2027-01-01T00:00:00Z"),
        ] {
            let parsed = Schedule::parse(schedule, zone).unwrap();
            assert_eq!(parsed.after(at(since)), Some(at(next)), "{schedule}");
        }
        for wrong in ["", "* * * *", "61 * * * *", "@every x", "@every 0s", "@never"] {
            assert!(Schedule::parse(wrong, None).is_err(), "{wrong}");
        }
        assert!(Schedule::parse("* * * * *", Some("Mars/Base")).is_err());
    }

    #[test]
    fn runs_that_are_due_are_counted_up_to_a_limit_and_the_latest_is_right_beyond() {
        let minutely = Schedule::parse("* * * * *", None).unwrap();
        let now = at("2026-11-30T20:00:30Z");
        assert_eq!(minutely.due(now, now), Due::default());
        let due = minutely.due(at("2026-11-30T19:57:00Z"), now);
        assert_eq!(due, Due { latest: Some(at("2026-11-30T20:00:00Z")), count: 3 });
        let many = minutely.due(at("2026-11-01T00:00:00Z"), now);
        assert_eq!(many, Due { latest: Some(at("2026-11-30T20:00:00Z")), count: MOST_MISSED + 1 });
    }
}
