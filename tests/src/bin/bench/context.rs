//! What every measurement is given: sizes, rounds, a place on the disk, and where results go.

use std::error::Error;
use std::future::Future;
use std::path::PathBuf;
use std::pin::Pin;
use std::time::Duration;

use tempfile::TempDir;

use crate::report::Report;

/// What a step comes to.
pub type Outcome<T> = Result<T, Box<dyn Error + Send + Sync>>;

/// A running measurement.
pub type Running<'a> = Pin<Box<dyn Future<Output = Outcome<()>> + 'a>>;

/// Measurements that are made together, and the names of what they give.
pub struct Case {
    /// Names of ratios and figures.
    pub names: &'static [&'static str],
    /// Makes them.
    pub run: fn(&mut Context) -> Running<'_>,
}

/// Sizes, rounds, place and results of one run.
pub struct Context {
    /// Alternating rounds of each measurement.
    pub rounds: usize,
    /// Small sizes.
    pub quick: bool,
    /// What was measured.
    pub report: Report,
    place: TempDir,
    places: usize,
}

impl Context {
    /// A context with a new directory in `within`, else where temporary files go.
    pub fn new(rounds: usize, quick: bool, within: Option<PathBuf>) -> Outcome<Self> {
        let within = within.unwrap_or_else(std::env::temp_dir);
        let place = tempfile::Builder::new().prefix("strata-bench-").tempdir_in(&within);
        let place =
            place.map_err(|error| format!("no directory can be made in {}: {error}", within.display()))?;
        Ok(Self { rounds, quick, report: Report::default(), place, places: 0 })
    }

    /// A path that nothing else has, and whose directory is not there yet.
    pub fn path(&mut self, name: &str) -> PathBuf {
        self.places += 1;
        self.place.path().join(format!("{name}-{}", self.places))
    }

    /// The size that this run takes.
    pub fn size<T>(&self, full: T, quick: T) -> T {
        if self.quick { quick } else { full }
    }

    /// How long one side of one round lasts.
    pub fn time(&self) -> Duration {
        self.size(Duration::from_secs(3), Duration::from_millis(300))
    }
}
