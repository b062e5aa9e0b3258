//! `app undo`: restores what the last sync pruned or overwrote, from the history that the platform keeps of every object.

use clap::Args;
use serde_json::{Value, json};
use strata_client::options::{GetOptions, WriteOptions};
use strata_model::object::{Object, ObjectKey};
use strata_model::resource::ResourceType;
use strata_model::status::Reason;

use super::common::{self, AppArg, text};
use crate::commands::error::{CliError, CliResult, usage};
use crate::commands::session::Session;
use crate::commands::target::display;
use crate::output::stdout;

/// Members of metadata that the server gives.
const GIVEN: [&str; 6] =
    ["uid", "resourceVersion", "generation", "creationTimestamp", "managedFields", "deletionTimestamp"];

/// Arguments of `app undo`.
#[derive(Debug, Args)]
pub struct UndoArgs {
    #[command(flatten)]
    app: AppArg,
    /// Turn automated syncs off first, so that what is restored stays
    #[arg(long)]
    pause: bool,
    /// Only say what would be restored
    #[arg(long)]
    dry_run: bool,
}

/// Runs the command.
pub async fn run(session: &Session, args: UndoArgs) -> CliResult {
    let (resource, _, app) = common::fetch(session, &args.app).await?;
    let state = &app["status"]["operationState"];
    let result = &state["syncResult"];
    let before = text(&result["before"]);
    if before.is_empty() {
        return Err(usage(format!("no sync of {} is remembered that could be undone", args.app.name)));
    }
    if text(&state["phase"]) == "Running" {
        return Err(usage("a sync is in progress; wait for its end, or terminate it"));
    }
    let automated = &app["spec"]["syncPolicy"]["automated"];
    let is_automated = automated.is_object() && automated["enabled"] != false;
    if is_automated && !args.pause && !args.dry_run {
        return Err(usage(
            "automated syncs are on, and would undo this at once; --pause turns them off first \
             (spec.syncPolicy.automated.enabled: false)",
        ));
    }
    if is_automated && args.pause && !args.dry_run {
        let patch = json!({"spec": {"syncPolicy": {"automated": {"enabled": false}}}});
        common::change(session, &resource, &args.app.key(), patch).await?;
        stdout::say("automated syncs are off");
    }
    let mut restored = 0;
    for one in result["resources"].as_array().into_iter().flatten().rev() {
        if matches!(text(&one["status"]), "Synced" | "Pruned") && text(&one["hookType"]).is_empty() {
            restored += usize::from(restore(session, one, before, args.dry_run).await?);
        }
    }
    if restored == 0 {
        stdout::say("everything is as it was before the last sync");
    }
    Ok(())
}

/// Restores one object; answers whether there was anything to restore.
async fn restore(session: &Session, one: &Value, before: &str, dry_run: bool) -> CliResult<bool> {
    let Some(resource) = type_of(session, one).await? else { return Ok(false) };
    let key = ObjectKey::new(text(&one["namespace"]), text(&one["name"]));
    let at = GetOptions {
        resource_version: before.to_owned(),
        resource_version_match: "Exact".to_owned(),
        ..GetOptions::default()
    };
    let Some(then) = found(session.client.get(&resource, &key, &at).await)? else { return Ok(false) };
    let now = found(session.client.get(&resource, &key, &GetOptions::default()).await)?;
    let mut object = then.to_value()?;
    if let Some(meta) = object["metadata"].as_object_mut() {
        GIVEN.iter().for_each(|given| drop(meta.remove(*given)));
    }
    let options =
        WriteOptions { field_manager: "strata-app-undo".to_owned(), dry_run, ..WriteOptions::default() };
    let (written, word) = match now {
        None => (
            session.client.create(&resource, &key.namespace, object.to_string(), &options).await?,
            "restored",
        ),
        Some(now) => {
            object["metadata"]["uid"] = json!(now.meta().uid);
            object["metadata"]["resourceVersion"] = json!(now.meta().resource_version);
            (session.client.update(&resource, &key, "", object.to_string(), &options).await?, "taken back")
        }
    };
    if !written.changed {
        return Ok(false);
    }
    let dry = if dry_run { " (dry run)" } else { "" };
    stdout::data(&format!("{} {word}{dry}\n", display(&resource, &key.name)))?;
    Ok(true)
}

async fn type_of(session: &Session, one: &Value) -> CliResult<Option<std::sync::Arc<ResourceType>>> {
    let kind = text(&one["kind"]);
    let word = match text(&one["group"]) {
        "" => kind.to_lowercase(),
        group => format!("{}.{group}", kind.to_lowercase()),
    };
    match session.lookup(&word).await {
        Ok(resource) => Ok(Some(resource)),
        Err(CliError::Usage(_)) => Ok(None),
        Err(error) => Err(error),
    }
}

fn found(object: Result<Object, strata_client::error::ClientError>) -> CliResult<Option<Object>> {
    match object {
        Ok(object) => Ok(Some(object)),
        Err(error) if error.is(Reason::NotFound) => Ok(None),
        Err(error) if error.is(Reason::Expired) || error.is(Reason::Gone) => Err(usage(
            "the history of before that sync is given up already (see --history-minutes of `strata up`); nothing is restored",
        )),
        Err(error) => Err(error.into()),
    }
}
