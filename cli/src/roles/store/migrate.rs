//! `strata store migrate`.

use std::process::ExitCode;

use clap::Args;
use strata_store::config::Config;
use strata_store::migrate::migrate;

use super::super::etcd::EtcdAccess;
use super::super::shell::{self, Failure, Threads};
use super::super::telemetry::LogArgs;
use super::place::Place;
use crate::output::stdout;

/// The flags of `strata store migrate`.
#[derive(Clone, Debug, Args)]
pub struct MigrateArgs {
    /// Where the data is.
    #[arg(long, value_name = "PLACE")]
    from: Place,
    /// Where it is to be.
    #[arg(long, value_name = "PLACE")]
    to: Place,
    #[command(flatten)]
    access: EtcdAccess,
    #[command(flatten)]
    log: LogArgs,
}

/// Runs it.
pub fn run(args: MigrateArgs) -> ExitCode {
    let log = args.log.clone();
    shell::run(&log, Threads::One, move |_stop| async move {
        let engine = |place: &Place| place.engine(&args.access).map_err(Failure::lasting);
        let (from, to) = (engine(&args.from)?, engine(&args.to)?);
        let moved = migrate(&Config::default(), from, &to).await.map_err(Failure::passing)?;
        let told = format!("copied {} records at resource version {}\n", moved.records, moved.revision);
        stdout::data(&told).map_err(Failure::passing)
    })
}
