//! `rollout`: watching, telling, undoing, pausing and repeating the roll-out of a pod template.

mod history;

mod status;

use clap::{Args, Subcommand};
use serde_json::{Value, json};
use strata_client::options::Patch;

use crate::commands::error::{CliResult, usage};
use crate::commands::printing::{WriteArgs, warn};
use crate::commands::session::Session;
use crate::commands::target::{self, FileArgs, Found, SelectorArgs};

/// Help behind the flags.
pub const EXAMPLES: &str = "\
Examples:
  strata rollout status deployment/web             wait until the current template runs everywhere
  strata rollout history deployment/web            its revisions
  strata rollout history deployment/web --revision=2
  strata rollout undo deployment/web               back to the template before
  strata rollout restart deployment/web            replace all pods, step by step
  strata rollout pause deployment/web              collect several changes; resume rolls them out";

/// What is done with a roll-out.
#[derive(Debug, Subcommand)]
pub enum RolloutCommand {
    /// Show how far it is, and wait until it is through
    Status(status::StatusArgs),
    /// List its revisions, or show one
    History(history::HistoryArgs),
    /// Go back to an earlier revision
    Undo(history::UndoArgs),
    /// Replace all pods, step by step
    Restart(TemplateArgs),
    /// Hold it where it is
    Pause(TemplateArgs),
    /// Let it go on
    Resume(TemplateArgs),
}

/// Which objects.
#[derive(Debug, Args)]
pub struct TemplateArgs {
    /// TYPE NAME or TYPE/NAME
    #[arg(value_name = "TYPE NAME | TYPE/NAME")]
    resources: Vec<String>,
    #[command(flatten)]
    selectors: SelectorArgs,
    #[command(flatten)]
    files: FileArgs,
    #[command(flatten)]
    write: WriteArgs,
}

/// Runs the command.
pub async fn run(session: &Session, command: RolloutCommand) -> CliResult {
    match command {
        RolloutCommand::Status(args) => status::run(session, args).await,
        RolloutCommand::History(args) => history::history(session, args).await,
        RolloutCommand::Undo(args) => history::undo(session, args).await,
        RolloutCommand::Restart(args) => restart(session, args).await,
        RolloutCommand::Pause(args) => pause(session, args, true).await,
        RolloutCommand::Resume(args) => pause(session, args, false).await,
    }
}

async fn found(session: &Session, args: &TemplateArgs) -> CliResult<Vec<Found>> {
    let targets = target::targets(session, &args.resources, &args.files, false).await?;
    let found = target::fetch(session, &targets, &args.selectors, false).await?;
    for Found { resource, object } in &found {
        if object.to_value()?["spec"]["template"].is_null() {
            return Err(usage(format!("{} have no pod template to roll out", resource.id)));
        }
    }
    Ok(found)
}

async fn restart(session: &Session, args: TemplateArgs) -> CliResult {
    let now = strata_model::condition::rfc3339(jiff::Timestamp::now());
    for found in found(session, &args).await? {
        if found.object.to_value()?["spec"]["paused"] == true {
            return Err(usage(format!(
                "can't restart paused deployment (run rollout resume first): {}",
                found.object.meta().name
            )));
        }
        let annotations = json!({"kubectl.kubernetes.io/restartedAt": now});
        let patch = json!({"spec": {"template": {"metadata": {"annotations": annotations}}}});
        change(session, &args.write, &found, patch, "restarted").await?;
    }
    Ok(())
}

async fn pause(session: &Session, args: TemplateArgs, paused: bool) -> CliResult {
    let word = if paused { "paused" } else { "resumed" };
    for found in found(session, &args).await? {
        let object = found.object.to_value()?;
        if object["spec"]["strategy"].is_null() {
            return Err(usage(format!("{} cannot be paused or resumed", found.resource.id)));
        }
        if (object["spec"]["paused"] == true) == paused {
            let already = if paused { "already paused" } else { "not paused" };
            return Err(usage(format!(
                "{} \"{}\" is {already}",
                found.resource.id,
                found.object.meta().name
            )));
        }
        let value = if paused { Value::Bool(true) } else { Value::Null };
        change(session, &args.write, &found, json!({"spec": {"paused": value}}), word).await?;
    }
    Ok(())
}

async fn change(session: &Session, write: &WriteArgs, found: &Found, patch: Value, done: &str) -> CliResult {
    if write.client_only() {
        return write.report(&found.resource, &found.object, done);
    }
    let options = write.options("strata-rollout");
    let patch = Patch::Strategic(patch);
    let written = session.client.patch(&found.resource, &found.object.key(), "", &patch, &options).await?;
    warn(&written.warnings);
    write.report(&found.resource, &written.object, done)
}
