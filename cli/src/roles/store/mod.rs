//! Store: work on the data behind an API server: with the server while it runs, on its place while none does. Knows what
//! is said to whom; what is done to the data is the store's own affair.

mod place;

mod job;

mod backup;

mod restore;

mod verify;

mod compact;

mod stats;

mod migrate;

use std::process::ExitCode;

use clap::{Args, Subcommand};

use crate::commands::connection::ConnectionArgs;

const EXAMPLES: &str = "\
Examples:
  strata store backup -o monday.strata              of the running server, at one revision
  strata store verify monday.strata                 is it whole?
  strata store restore monday.strata --to ./data/store
  strata store verify ./data/store                  every record of a server that does not run
  strata store stats -o json
  strata store compact --older-than 1h

The commands end with 0 if all is well and with 1 if anything is not.";

/// The flags of `strata store`.
#[derive(Clone, Debug, Args)]
#[command(after_help = EXAMPLES)]
pub struct StoreArgs {
    #[command(subcommand)]
    command: StoreCommand,
}

#[derive(Clone, Debug, Subcommand)]
#[allow(clippy::large_enum_variant, reason = "made once a process")]
enum StoreCommand {
    /// Write a backup of all objects, as they are at one revision
    ///
    /// Without --store the running API server is asked; it goes on meanwhile, and the backup shows one revision. With it,
    /// the data is read where it is, and no server may use it. A backup holds every object with its resource versions,
    /// secrets among them: it is readable by its owner alone. It does not hold history, nor the certificates and keys
    /// next to the data in the data directory of `strata up`.
    #[command(after_help = backup::EXAMPLES)]
    Backup(backup::BackupArgs),
    /// Make a store from a backup, in a place where there is none
    ///
    /// Objects keep their resource versions, and the line goes on where the backup stands. A backup that is cut off,
    /// damaged or of a newer version is refused, and nothing of it is left in the new place.
    #[command(after_help = restore::EXAMPLES)]
    Restore(restore::RestoreArgs),
    /// Check every record of a store that no server uses, or of a backup
    ///
    /// Damage is told with the file, the place in it, the key and the revision. Nothing is changed.
    #[command(after_help = verify::EXAMPLES)]
    Verify(verify::VerifyArgs),
    /// Give up old history
    ///
    /// Without --store the running API server is asked. Reads and watches of what is given up are refused from then on
    /// (410, Expired); objects are not touched. Servers do this by themselves for what is older than --history-minutes.
    #[command(after_help = compact::EXAMPLES)]
    Compact(compact::CompactArgs),
    /// Tell how much there is: objects, history, disk, watches
    ///
    /// Without --store the running API server is asked.
    #[command(after_help = stats::EXAMPLES)]
    Stats(stats::StatsArgs),
    /// Copy the data to another place, with every resource version
    ///
    /// Places are `sled:DIRECTORY` and `etcd:URL[,URL...][/PREFIX]`. No API server may use the old place meanwhile, and
    /// the new one must be empty. Resource versions go on where they are, so clients need not know; history is not
    /// copied, and who asks for it is told that it is gone.
    Migrate(migrate::MigrateArgs),
}

/// Does the work. `before` are the connection flags that stood before the command.
pub fn run(before: ConnectionArgs, args: StoreArgs) -> ExitCode {
    match args.command {
        StoreCommand::Backup(args) => backup::run(before, args),
        StoreCommand::Restore(args) => restore::run(args),
        StoreCommand::Verify(args) => verify::run(args),
        StoreCommand::Compact(args) => compact::run(before, args),
        StoreCommand::Stats(args) => stats::run(before, args),
        StoreCommand::Migrate(args) => migrate::run(args),
    }
}
