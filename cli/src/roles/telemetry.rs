//! Telemetry: where log lines go and which are wanted, set up once per process. Quiet by default: warnings and errors,
//! on standard error. Knows nothing of what is logged.

use std::io;

use clap::{Args, ValueEnum};
use tracing_subscriber::EnvFilter;
use tracing_subscriber::fmt::format::FmtSpan;

/// The variable that overrides all flags, with the directives that Rust programs share.
const FILTER_VARIABLE: &str = "RUST_LOG";

/// What a log line looks like.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub enum Format {
    /// For people.
    #[default]
    Text,
    /// One JSON object a line.
    Json,
}

impl Format {
    /// As it is written in a flag.
    pub fn as_str(self) -> &'static str {
        match self {
            Format::Text => "text",
            Format::Json => "json",
        }
    }
}

/// The flags of every role.
#[derive(Clone, Debug, Default, Args)]
pub struct LogArgs {
    /// Form of log lines on standard error.
    #[arg(long, value_enum, default_value_t, env = "STRATA_LOG_FORMAT", help_heading = "Logs")]
    pub log_format: Format,
    /// Which log lines: error, warn, info, debug, trace, or directives such as `info,strata_store=debug`;
    /// default warn. RUST_LOG overrides it.
    #[arg(long, value_name = "LEVEL", env = "STRATA_LOG_LEVEL", help_heading = "Logs")]
    pub log_level: Option<String>,
    /// More log lines: -v for what happens, -vv for why, -vvv for everything.
    #[arg(short, long, action = clap::ArgAction::Count, help_heading = "Logs")]
    pub verbose: u8,
}

impl LogArgs {
    /// The directives that these flags mean. Pure.
    pub fn directives(&self) -> String {
        let level = match self.verbose {
            0 => "warn",
            1 => "info",
            2 => "debug",
            _ => "trace",
        };
        // The transport's own lines drown ours long before they help.
        let ours =
            format!("{level},h2=warn,hyper=warn,hyper_util=warn,rustls=warn,tower=warn,tonic=warn,sled=warn");
        self.log_level.clone().unwrap_or_else(|| if self.verbose > 2 { level.to_owned() } else { ours })
    }
}

/// A level that cannot be understood.
#[derive(Debug, thiserror::Error)]
#[error(
    "`{directives}` is no log level: use error, warn, info, debug, trace, or directives as `info,strata_store=debug`"
)]
pub struct LevelError {
    directives: String,
    #[source]
    source: tracing_subscriber::filter::ParseError,
}

/// Sends log lines to standard error from now on. A second call in one process changes nothing.
///
/// # Errors
/// The level makes no sense.
pub fn start(args: &LogArgs, colours: bool) -> Result<(), LevelError> {
    let wanted = std::env::var(FILTER_VARIABLE).ok().filter(|text| !text.trim().is_empty());
    let directives = wanted.unwrap_or_else(|| args.directives());
    let filter = EnvFilter::try_new(&directives)
        .map_err(|source| LevelError { directives: directives.clone(), source })?;
    // A supervisor that died must not take the child with it through a broken pipe: errors of writing are not told.
    let builder = tracing_subscriber::fmt()
        .with_env_filter(filter)
        .with_writer(io::stderr)
        .with_span_events(FmtSpan::NONE)
        .log_internal_errors(false)
        .with_ansi(colours);
    let started = match args.log_format {
        Format::Text => builder.try_init(),
        Format::Json => builder.json().flatten_event(true).try_init(),
    };
    if let Err(error) = started {
        tracing::debug!(%error, "logging was set up before");
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quiet_unless_asked() {
        let args = |verbose| LogArgs { verbose, ..LogArgs::default() }.directives();
        assert!(args(0).starts_with("warn,"));
        assert!(args(1).starts_with("info,"));
        assert_eq!(args(9), "trace");
        let level = LogArgs { log_level: Some("strata=debug".to_owned()), verbose: 1, ..LogArgs::default() };
        assert_eq!(level.directives(), "strata=debug");
        for verbose in 0..4 {
            EnvFilter::try_new(args(verbose)).unwrap();
        }
    }
}
