//! `strata store verify`.

use std::fs::File;
use std::io::{self, BufReader};
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use clap::Args;
use strata_store::error::OpenError;
use strata_store::restore::check;
use strata_store::verify::{Inspection, MAX_DAMAGES, VerifyError, verify};

use super::super::files::FileError;
use super::super::telemetry::LogArgs;
use super::job::{self, Stop, Stopping, hinted, local};
use super::place::{self, Place};
use crate::commands::error::{CliError, CliResult, usage};
use crate::output::stdout;

pub const EXAMPLES: &str = "\
Examples:
  strata store verify ./data/store
  strata store verify ~/.local/share/strata         the data directory of `strata up`
  strata store verify monday.strata                 a backup
  strata store backup | strata store verify -";

/// The flags of `strata store verify`.
#[derive(Clone, Debug, Args)]
pub struct VerifyArgs {
    /// A store's directory, the data directory of `strata up`, or a backup; `-` is a backup on standard input
    #[arg(value_name = "PLACE")]
    place: String,
    #[command(flatten)]
    log: LogArgs,
}

/// Runs it.
pub fn run(args: VerifyArgs) -> ExitCode {
    let log = args.log.clone();
    job::run(&log, move |_, stop| {
        if args.place == "-" {
            return backup(io::stdin().lock(), stop);
        }
        let path = match args.place.parse::<Place>() {
            Ok(Place::Etcd { .. }) => {
                return Err(usage("etcd checks its own data: see `etcdutl snapshot status` and its alarms"));
            }
            Ok(Place::Sled(path)) => path,
            Err(_) => PathBuf::from(&args.place),
        };
        if path.is_dir() {
            return directory(&place::within(&path));
        }
        let file = File::open(&path).map_err(FileError::of("read", &path)).map_err(local)?;
        backup(file, stop)
    })
}

fn backup(stream: impl io::Read, stop: Stop) -> CliResult {
    let found = check(Stopping { stream: BufReader::new(stream), stop }).map_err(local)?;
    let told = format!(
        "the backup is whole: {} records of {} bytes at resource version {}\n",
        found.records, found.bytes, found.revision
    );
    Ok(stdout::data(&told)?)
}

fn directory(path: &Path) -> CliResult {
    let found = verify(path).map_err(|error| match error {
        VerifyError::Open(OpenError::Locked { .. }) => usage(format!(
            "{} is in use by a server: stop that first, or check a backup of it: `strata store backup | strata store \
             verify -`",
            path.display()
        )),
        VerifyError::Open(error) => hinted(error),
        VerifyError::NoStore => usage(format!("there is no store in {}", path.display())),
    })?;
    let Inspection { segments, frames, frame_bytes, checkpoint_records, damages, .. } = &found;
    let looked = format!(
        "{segments} log segments with {frames} frames of {frame_bytes} bytes, {checkpoint_records} records in the \
         checkpoint"
    );
    if let (true, Some(current), Some(oldest)) = (damages.is_empty(), found.current, found.oldest) {
        let told = format!(
            "the store is whole: {looked}; {} objects at resource version {current}, history from {oldest}\n",
            found.records
        );
        return Ok(stdout::data(&told)?);
    }
    for damage in damages {
        stdout::data(&format!("damaged: {damage}\n"))?;
    }
    let more = if damages.len() == MAX_DAMAGES { "at least " } else { "" };
    stdout::say(&format!(
        "error: {more}{} in {}, of {looked}\nhint: restore a backup into another directory: `strata store \
         restore FILE --to DIRECTORY`; a server that has this store open still has what it read before: `strata store \
         backup -o FILE` saves that",
        if damages.len() == 1 {
            "one damaged place".to_owned()
        } else {
            format!("{} damaged places", damages.len())
        },
        path.display()
    ));
    Err(CliError::Silent(1))
}
