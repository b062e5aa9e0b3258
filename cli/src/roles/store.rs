//! Store: work on the data of an API server that does not run. Knows places, not what is kept there.

use std::path::PathBuf;
use std::process::ExitCode;
use std::str::FromStr;

use clap::{Args, Subcommand};
use strata_store::config::Config;
use strata_store::migrate::migrate;
use strata_store::store::EngineChoice;

use super::etcd::EtcdAccess;
use super::shell::{self, Failure, Threads};
use super::telemetry::LogArgs;
use crate::output::stdout;

/// The flags of `strata store`.
#[derive(Clone, Debug, Args)]
pub struct StoreArgs {
    #[command(subcommand)]
    command: StoreCommand,
}

#[derive(Clone, Debug, Subcommand)]
enum StoreCommand {
    /// Copy the data to another place, with every resource version
    ///
    /// Places are `sled:DIRECTORY` and `etcd:URL[,URL...][/PREFIX]`. No API server may use the old place meanwhile, and
    /// the new one must be empty. Resource versions go on where they are, so clients need not know; history is not
    /// copied, and who asks for it is told that it is gone.
    Migrate(MigrateArgs),
}

#[derive(Clone, Debug, Args)]
struct MigrateArgs {
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

/// Where a store is.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Place {
    Sled(PathBuf),
    Etcd { servers: Vec<String>, prefix: Option<String> },
}

/// Words that are no place.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("a place is sled:DIRECTORY or etcd:URL[,URL...][/PREFIX], as in etcd:http://127.0.0.1:2379")]
struct PlaceError;

impl FromStr for Place {
    type Err = PlaceError;

    fn from_str(text: &str) -> Result<Self, PlaceError> {
        match text.split_once(':') {
            Some(("sled", path)) if !path.is_empty() => Ok(Place::Sled(path.into())),
            Some(("etcd", urls)) => {
                let mut servers: Vec<String> = urls.split(',').map(str::to_owned).collect();
                let is_url = |url: &String| url.starts_with("http://") || url.starts_with("https://");
                if !servers.iter().all(is_url) {
                    return Err(PlaceError);
                }
                let Some(last) = servers.last_mut() else { return Err(PlaceError) };
                let host = last.find("//").map_or(0, |at| at + 2);
                let prefix = last[host..].find('/').map(|at| last.split_off(host + at));
                Ok(Place::Etcd { servers, prefix: prefix.filter(|prefix| prefix != "/") })
            }
            _ => Err(PlaceError),
        }
    }
}

impl Place {
    fn engine(&self, access: &EtcdAccess) -> Result<EngineChoice, Failure> {
        match self {
            Place::Sled(directory) => Ok(EngineChoice::Sled { directory: directory.clone() }),
            Place::Etcd { servers, prefix } => {
                let mut config = access.config(servers.clone()).map_err(Failure::lasting)?;
                config.prefix = prefix.clone().unwrap_or(config.prefix);
                Ok(EngineChoice::Etcd(config))
            }
        }
    }
}

/// Does the work.
pub fn run(args: StoreArgs) -> ExitCode {
    let StoreCommand::Migrate(args) = args.command;
    let log = args.log.clone();
    shell::run(&log, Threads::One, move |_stop| async move {
        let (from, to) = (args.from.engine(&args.access)?, args.to.engine(&args.access)?);
        let moved = migrate(&Config::default(), from, &to).await.map_err(Failure::passing)?;
        let told = format!("copied {} records at resource version {}\n", moved.records, moved.revision);
        stdout::data(&told).map_err(Failure::passing)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn places() {
        let etcd = |servers: &[&str], prefix: Option<&str>| {
            let servers = servers.iter().map(|server| (*server).to_owned()).collect();
            Ok(Place::Etcd { servers, prefix: prefix.map(str::to_owned) })
        };
        assert_eq!("sled:/a/b".parse(), Ok(Place::Sled("/a/b".into())));
        assert_eq!("etcd:http://a:1".parse(), etcd(&["http://a:1"], None));
        assert_eq!("etcd:http://a:1/".parse(), etcd(&["http://a:1"], None));
        assert_eq!(
            "etcd:https://a:1,https://b:2/x/y".parse(),
            etcd(&["https://a:1", "https://b:2"], Some("/x/y"))
        );
        for wrong in ["", "sled:", "/a/b", "etcd:a:1", "etcd:", "memory:"] {
            assert_eq!(wrong.parse::<Place>(), Err(PlaceError), "{wrong}");
        }
    }
}
