//! `strata store restore`.

use std::fs::File;
use std::io::{self, BufReader, Read};
use std::path::PathBuf;
use std::process::ExitCode;

use clap::Args;
use strata_store::error::OpenError;
use strata_store::restore::{RestoreError, restore};

use super::super::etcd::EtcdAccess;
use super::super::files::FileError;
use super::super::telemetry::LogArgs;
use super::job::{self, Stopping, hinted, local};
use super::place::Place;
use crate::commands::error::usage;
use crate::output::stdout;

pub const EXAMPLES: &str = "\
Examples:
  strata store restore monday.strata --to ./data/store          then: strata up --data-dir ./data
  zstd -dc monday.strata.zst | strata store restore - --to ./data/store
  strata store restore monday.strata --to etcd:http://127.0.0.1:2379";

/// Bytes read ahead of a backup.
const READ_AHEAD_BYTES: usize = 1 << 20;

/// The flags of `strata store restore`.
#[derive(Clone, Debug, Args)]
pub struct RestoreArgs {
    /// The backup; `-` is standard input
    #[arg(value_name = "FILE")]
    backup: PathBuf,
    /// Where the store is to be: an empty or new directory, or etcd:URL[,URL...][/PREFIX] without keys
    #[arg(long, value_name = "PLACE")]
    to: Place,
    #[command(flatten)]
    access: EtcdAccess,
    #[command(flatten)]
    log: LogArgs,
}

/// Runs it.
pub fn run(args: RestoreArgs) -> ExitCode {
    let log = args.log.clone();
    job::run(&log, move |at, stop| {
        let engine = args.to.engine(&args.access).map_err(local)?;
        let stream: Box<dyn Read> = if args.backup.as_os_str() == "-" {
            Box::new(io::stdin().lock())
        } else {
            Box::new(File::open(&args.backup).map_err(FileError::of("read", &args.backup)).map_err(local)?)
        };
        let backup = Stopping { stream: BufReader::with_capacity(READ_AHEAD_BYTES, stream), stop };
        let restored = at.block_on(restore(backup, &engine)).map_err(|error| match error {
            RestoreError::Target(OpenError::Directory { source, .. })
                if source.kind() == io::ErrorKind::DirectoryNotEmpty =>
            {
                usage(format!(
                    "{} is not empty: a backup is restored where there is nothing; name another place with --to, or move \
                     away what is there",
                    args.to
                ))
            }
            error => hinted(error),
        })?;
        let told = format!(
            "restored {} records of {} bytes at resource version {}, backed up at {}\n",
            restored.records,
            restored.bytes,
            restored.revision,
            jiff::Timestamp::try_from(restored.taken).map(|taken| format!("{taken:.0}")).unwrap_or_default(),
        );
        Ok(stdout::data(&told)?)
    })
}
