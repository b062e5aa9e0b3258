//! `app`: Applications, by which the platform is held to what repositories say: made, looked at, synced, taken back.

mod common;

mod create;

mod show;

mod operate;

mod undo;

mod compare;

use clap::Subcommand;

use crate::commands::error::CliResult;
use crate::commands::session::Session;

/// Help behind the flags.
pub const EXAMPLES: &str = "\
Examples:
  strata app create site --repo file:///srv/site.git --path deploy --dest-namespace site --auto --create-namespace
  strata app get site -w                           the tree from the commit to the processes, live
  strata app plan site --revision v1.4.0           what a sync would change, before it does
  strata app sync site                             hold the platform to the newest commit now
  strata app rollback site                         back to the deployment before
  strata app undo site                             restore what the last sync pruned or overwrote
  strata app wait site --timeout 60s               until it is synced and healthy";

/// What is done with Applications.
#[derive(Debug, Subcommand)]
#[allow(clippy::large_enum_variant, reason = "made once a process")]
pub enum AppCommand {
    /// Make an Application, or change it to what the flags say
    Create(create::CreateArgs),
    /// List Applications
    List(show::ListArgs),
    /// Show one, with all its objects down to the processes
    Get(show::GetArgs),
    /// Hold the platform to its source now, and wait for the end
    Sync(operate::SyncArgs),
    /// List its deployments
    History(show::HistoryArgs),
    /// Go back to an earlier deployment, and wait for the end
    Rollback(operate::RollbackArgs),
    /// Show what a sync would change, field by field
    Diff(compare::DiffArgs),
    /// List what a sync would make, change and delete
    Plan(compare::DiffArgs),
    /// Have its repository looked at now
    Refresh(operate::RefreshArgs),
    /// Wait until it is synced, healthy and at rest
    Wait(operate::WaitArgs),
    /// Restore what the last sync pruned or overwrote
    Undo(undo::UndoArgs),
    /// Delete it, with its objects
    Delete(operate::DeleteArgs),
}

/// Runs the command.
pub async fn run(session: &Session, command: AppCommand) -> CliResult {
    match command {
        AppCommand::Create(args) => create::run(session, args).await,
        AppCommand::List(args) => show::list(session, args).await,
        AppCommand::Get(args) => show::get(session, args).await,
        AppCommand::Sync(args) => operate::sync(session, args).await,
        AppCommand::History(args) => show::history(session, args).await,
        AppCommand::Rollback(args) => operate::rollback(session, args).await,
        AppCommand::Diff(args) => compare::diff(session, args).await,
        AppCommand::Plan(args) => compare::plan(session, args).await,
        AppCommand::Refresh(args) => operate::refresh(session, args).await,
        AppCommand::Wait(args) => operate::wait(session, args).await,
        AppCommand::Undo(args) => undo::run(session, args).await,
        AppCommand::Delete(args) => operate::delete(session, args).await,
    }
}
