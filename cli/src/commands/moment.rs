//! Moments of the past, as flags name them: a revision, a duration, an instant.

use std::str::FromStr;

use strata_client::history::{Moment, When};

use crate::commands::error::{CliResult, usage};
use crate::commands::session::Session;
use crate::output::duration;

/// A moment as a flag names it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MomentArg(pub When);

impl FromStr for MomentArg {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let fault = || {
            format!(
                "{text:?} is no moment: write a revision such as 1234, how long ago such as 5m, or an instant such as \
                 2026-11-30T08:00:00Z"
            )
        };
        if text == "now" {
            return Ok(Self(When::Now));
        }
        if let Ok(revision) = text.parse() {
            return Ok(Self(When::Revision(revision)));
        }
        if text.parse::<jiff::Timestamp>().is_ok() {
            return Ok(Self(When::Time(text.to_owned())));
        }
        match duration::parse(text) {
            Ok(Some(ago)) => Ok(Self(When::Ago(ago))),
            Ok(None) | Err(_) => Err(fault()),
        }
    }
}

impl MomentArg {
    /// The moment, found in the server's history.
    pub async fn find(&self, session: &Session) -> CliResult<Moment> {
        let moment = session.client.moment(&self.0).await?;
        session.tell(1, || format!("revision {} ({})", moment.revision, moment.time));
        if moment.revision == 0 {
            return Err(usage("at that moment nothing was there yet: the first revision is 1"));
        }
        Ok(moment)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    #[test]
    fn moments_are_told_apart() {
        let parse = |text: &str| text.parse::<MomentArg>().map(|arg| arg.0);
        assert_eq!(parse("1234"), Ok(When::Revision(1234)));
        assert_eq!(parse("5m"), Ok(When::Ago(Duration::from_secs(300))));
        assert_eq!(parse("2026-11-30T08:00:00Z"), Ok(When::Time("2026-11-30T08:00:00Z".to_owned())));
        assert_eq!(parse("now"), Ok(When::Now));
        for bad in ["", "-5m", "yesterday", "2026-11-30", "5x"] {
            assert!(parse(bad).unwrap_err().contains("is no moment"), "{bad}");
        }
    }
}
