//! `strata store compact`.

use std::process::ExitCode;
use std::time::SystemTime;

use clap::{ArgGroup, Args};
use strata_client::options::Compaction;
use strata_store::config::Config;
use strata_store::error::ReadError;
use strata_store::past::Which;
use strata_store::revision::Revision;
use strata_store::store::{EngineChoice, Store};

use super::job::{self, Where, hinted, local};
use super::stats::existing;
use crate::commands::connection::ConnectionArgs;
use crate::commands::error::{CliResult, usage};
use crate::output::duration::Limit;
use crate::output::stdout;

pub const EXAMPLES: &str = "\
Examples:
  strata store compact --older-than 10m
  strata store compact --revision 120000
  strata store compact --older-than 0s --store ./data/store     while nothing runs";

/// The flags of `strata store compact`.
#[derive(Clone, Debug, Args)]
#[command(group = ArgGroup::new("which").required(true))]
pub struct CompactArgs {
    /// Give up what was before this resource version
    #[arg(long, value_name = "NUMBER", group = "which", value_parser = clap::value_parser!(u64).range(1..))]
    revision: Option<u64>,
    /// Give up what was superseded longer ago than this, such as 90s, 10m or 2h
    #[arg(long, value_name = "DURATION", group = "which")]
    older_than: Option<Limit>,
    #[command(flatten)]
    place: Where,
}

/// Runs it.
pub fn run(before: ConnectionArgs, args: CompactArgs) -> ExitCode {
    job::run(&args.place.log(), move |at, _| {
        let which = match (args.revision, args.older_than) {
            (Some(revision), _) => Compaction::Below(revision),
            (None, Some(Limit(Some(age)))) => Compaction::OlderThanSeconds(age.as_secs().max(1)),
            (None, _) => return Err(usage("--older-than: a time that has no end keeps everything")),
        };
        let oldest = match args.place.engine()? {
            Some(engine) => at.block_on(offline(engine, which))?.get(),
            None => {
                let session = args.place.session(before, at)?;
                at.block_on(session.client.compact(which))?
            }
        };
        Ok(stdout::data(&format!("history is kept from resource version {oldest} on\n"))?)
    })
}

async fn offline(engine: EngineChoice, which: Compaction) -> CliResult<Revision> {
    existing(&engine).await?;
    let store = Store::open(Config::default(), engine).map_err(hinted)?;
    let compacted = compact(&store, which).await;
    store.close().await;
    compacted
}

async fn compact(store: &Store, which: Compaction) -> CliResult<Revision> {
    let below = match which {
        Compaction::Below(revision) if revision > store.current_revision().get() => {
            let current = store.current_revision();
            return Err(usage(format!(
                "--revision {revision} has not happened yet; the newest is {current}"
            )));
        }
        Compaction::Below(revision) => Revision::new(revision),
        Compaction::OlderThanSeconds(seconds) => {
            let then = SystemTime::now().checked_sub(std::time::Duration::from_secs(seconds));
            match store.moment(Which::Before(then.unwrap_or(SystemTime::UNIX_EPOCH))).await {
                Ok(moment) => moment.revision,
                // Nothing that old is kept.
                Err(ReadError::Compacted { oldest }) => oldest,
                Err(error) => return Err(local(error)),
            }
        }
    };
    store.compact(below).await.map_err(local)
}
