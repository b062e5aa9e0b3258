//! `app sync`, `rollback`, `refresh`, `wait` and `delete`: asks the controller for something, and waits until it is so.

use std::ops::ControlFlow;
use std::time::Duration;

use clap::Args;
use serde_json::{Value, json};
use strata_client::options::DeleteOptions;

use super::common::{self, AppArg, text, tone};
use crate::commands::error::{CliError, CliResult, usage};
use crate::commands::follow::{self, Outcome};
use crate::commands::session::Session;
use crate::output::duration;
use crate::output::stdout;
use crate::output::style::Painter;

/// The annotation that asks for a look at the repository.
const REFRESH: &str = "argocd.argoproj.io/refresh";
/// The finalizer that has objects go with their Application.
const FINALIZER: &str = "resources-finalizer.argocd.argoproj.io";

/// What a negative limit means.
const ENDLESS: Duration = Duration::from_secs(365 * 24 * 3600);

/// How long a command waits.
#[derive(Clone, Debug, Args)]
pub struct TimeoutArgs {
    /// How long to wait
    #[arg(long, value_name = "DURATION", default_value = "5m", value_parser = limit)]
    timeout: Duration,
}

fn limit(text: &str) -> Result<Duration, String> {
    duration::parse(text).map(|limit| limit.unwrap_or(ENDLESS))
}

/// Arguments of `app sync`.
#[derive(Debug, Args)]
pub struct SyncArgs {
    #[command(flatten)]
    app: AppArg,
    /// To this branch, tag or commit instead of the Application's own
    #[arg(long, value_name = "REVISION")]
    revision: Option<String>,
    /// Delete what is no longer in the repository
    #[arg(long)]
    prune: bool,
    /// Write nothing; the server checks everything
    #[arg(long)]
    dry_run: bool,
    /// Delete and make anew what cannot be changed
    #[arg(long)]
    force: bool,
    /// Only this object, as GROUP:KIND:NAME or GROUP:KIND:NAMESPACE/NAME; may be given several times
    #[arg(long, value_name = "OBJECT")]
    resource: Vec<String>,
    /// Options of this sync, as NAME=VALUE
    #[arg(long, value_name = "OPTION")]
    sync_option: Vec<String>,
    /// How many objects may be pruned: a number, or a percentage
    #[arg(long, value_name = "N|N%")]
    max_prune: Option<String>,
    /// Do not wait for the end
    #[arg(long = "async")]
    no_wait: bool,
    #[command(flatten)]
    timeout: TimeoutArgs,
}

/// Arguments of `app rollback`.
#[derive(Debug, Args)]
pub struct RollbackArgs {
    #[command(flatten)]
    app: AppArg,
    /// Which deployment (`strata app history` lists them); the one before, if it is not given
    #[arg(value_name = "ID")]
    id: Option<i64>,
    /// Delete what was not there then
    #[arg(long)]
    prune: bool,
    #[command(flatten)]
    timeout: TimeoutArgs,
}

/// Arguments of `app refresh`.
#[derive(Debug, Args)]
pub struct RefreshArgs {
    #[command(flatten)]
    app: AppArg,
    /// Forget what was rendered before as well
    #[arg(long)]
    hard: bool,
    #[command(flatten)]
    timeout: TimeoutArgs,
}

/// Arguments of `app wait`.
#[derive(Debug, Args)]
pub struct WaitArgs {
    #[command(flatten)]
    app: AppArg,
    /// Until it is as its source says
    #[arg(long)]
    sync: bool,
    /// Until it is healthy
    #[arg(long)]
    health: bool,
    /// Until no operation runs
    #[arg(long)]
    operation: bool,
    #[command(flatten)]
    timeout: TimeoutArgs,
}

/// Arguments of `app delete`.
#[derive(Debug, Args)]
pub struct DeleteArgs {
    #[command(flatten)]
    app: AppArg,
    /// Delete its objects as well; `false` leaves them
    #[arg(long, default_value_t = true, num_args = 0..=1, default_missing_value = "true", action = clap::ArgAction::Set)]
    cascade: bool,
    #[command(flatten)]
    timeout: TimeoutArgs,
}

/// Syncs.
pub async fn sync(session: &Session, args: SyncArgs) -> CliResult {
    let mut sync = json!({"prune": args.prune, "dryRun": args.dry_run});
    if let Some(revision) = &args.revision {
        sync["revision"] = json!(revision);
    }
    if args.force {
        sync["syncStrategy"] = json!({"hook": {"force": true}});
    }
    let mut options = args.sync_option.clone();
    options.extend(args.max_prune.as_ref().map(|n| format!("MaxPrune={n}")));
    if !options.is_empty() {
        sync["syncOptions"] = json!(options);
    }
    let named: Vec<Value> = args.resource.iter().map(|r| named(r)).collect::<CliResult<_>>()?;
    if !named.is_empty() {
        sync["resources"] = json!(named);
    }
    let asked = json!({"sync": sync, "initiatedBy": {"username": common::user()}});
    common::operate(session, &args.app, asked).await?;
    if args.no_wait {
        return Ok(());
    }
    ended(session, &args.app, args.timeout.timeout).await
}

/// An object as the flag names it.
fn named(object: &str) -> CliResult<Value> {
    let mut parts = object.splitn(3, ':');
    let (Some(group), Some(kind), Some(place)) = (parts.next(), parts.next(), parts.next()) else {
        return Err(usage(format!(
            "--resource {object:?}: write GROUP:KIND:NAME, such as apps:Deployment:web"
        )));
    };
    let (namespace, name) = place.split_once('/').unwrap_or(("", place));
    Ok(json!({"group": group, "kind": kind, "namespace": namespace, "name": name}))
}

/// Goes back to a deployment.
pub async fn rollback(session: &Session, args: RollbackArgs) -> CliResult {
    let (_, _, app) = common::fetch(session, &args.app).await?;
    if app["spec"]["syncPolicy"]["automated"].is_object()
        && app["spec"]["syncPolicy"]["automated"]["enabled"] != false
    {
        return Err(usage(format!(
            "rollback cannot be performed when auto-sync is enabled: the newest commit would come back at once. \
             Revert the commit, or turn syncPolicy.automated of {} off first",
            args.app.name
        )));
    }
    let history = app["status"]["history"].as_array().cloned().unwrap_or_default();
    let found = match args.id {
        Some(id) => history.iter().find(|h| h["id"] == id),
        None => history.len().checked_sub(2).and_then(|at| history.get(at)),
    };
    let Some(to) = found else {
        return Err(usage("there is no such deployment (`strata app history` lists them)"));
    };
    let mut sync = json!({"prune": args.prune, "revision": to["revision"]});
    for member in ["source", "sources", "revisions"] {
        if !to[member].is_null() {
            sync[member] = to[member].clone();
        }
    }
    let asked = json!({"sync": sync, "initiatedBy": {"username": common::user()}});
    common::operate(session, &args.app, asked).await?;
    ended(session, &args.app, args.timeout.timeout).await
}

/// Waits for the end of an operation that was asked for, and tells what it did.
async fn ended(session: &Session, app: &AppArg, limit: Duration) -> CliResult {
    let resource = common::resource(session).await?;
    let outcome = follow::object(session, &resource, &app.key(), Some(limit), |state| {
        let Some(app) = state else { return Err(usage("the Application was deleted meanwhile")) };
        let state = &app["status"]["operationState"];
        let over = app["operation"].is_null() && !matches!(text(&state["phase"]), "Running" | "Terminating");
        Ok(if over { ControlFlow::Break(state.clone()) } else { ControlFlow::Continue(()) })
    })
    .await?;
    let Outcome::Done(state) = outcome else { return Err(late(session, app, limit).await) };
    let painter = Painter { colour: stdout::wants_colour() };
    for one in state["syncResult"]["resources"].as_array().into_iter().flatten() {
        let status = text(&one["status"]);
        let word = painter.paint(
            if status.contains("Failed") { crate::output::style::Tone::Bad } else { tone("Synced") },
            status,
        );
        stdout::data(&format!(
            "{word}  {}/{}  {}\n",
            text(&one["kind"]),
            text(&one["name"]),
            text(&one["message"])
        ))?;
    }
    let phase = text(&state["phase"]);
    stdout::data(&format!("{}: {}\n", painter.paint(tone(phase), phase), text(&state["message"])))?;
    if phase == "Succeeded" { Ok(()) } else { Err(CliError::Silent(1)) }
}

async fn late(session: &Session, app: &AppArg, limit: Duration) -> CliError {
    let now = match common::fetch(session, app).await {
        Ok((_, _, value)) => {
            let status = &value["status"];
            format!(
                "sync {}, health {}, operation {} {}",
                text(&status["sync"]["status"]),
                text(&status["health"]["status"]),
                text(&status["operationState"]["phase"]),
                text(&status["operationState"]["message"])
            )
        }
        Err(error) => error.to_string(),
    };
    usage(format!("timed out after {} s; {now}", limit.as_secs()))
}

/// Has the repository looked at.
pub async fn refresh(session: &Session, args: RefreshArgs) -> CliResult {
    let (resource, _, _) = common::fetch(session, &args.app).await?;
    let word = if args.hard { "hard" } else { "normal" };
    let patch = json!({"metadata": {"annotations": {REFRESH: word}}});
    common::change(session, &resource, &args.app.key(), patch).await?;
    let limit = args.timeout.timeout;
    let outcome = follow::object(session, &resource, &args.app.key(), Some(limit), |state| {
        let Some(app) = state else { return Err(usage("the Application was deleted meanwhile")) };
        let waits = app["metadata"]["annotations"][REFRESH].is_string();
        Ok(if waits { ControlFlow::Continue(()) } else { ControlFlow::Break(app.clone()) })
    })
    .await?;
    let Outcome::Done(app) = outcome else { return Err(late(session, &args.app, limit).await) };
    let status = &app["status"];
    stdout::data(&format!("{} at {}\n", text(&status["sync"]["status"]), common::revision(&status["sync"])))?;
    Ok(())
}

/// Waits for a state.
pub async fn wait(session: &Session, args: WaitArgs) -> CliResult {
    let resource = common::resource(session).await?;
    let all = !(args.sync || args.health || args.operation);
    let limit = args.timeout.timeout;
    let outcome = follow::object(session, &resource, &args.app.key(), Some(limit), |state| {
        let Some(app) = state else { return Ok(ControlFlow::Continue(())) };
        let status = &app["status"];
        let synced = status["sync"]["status"] == "Synced";
        let healthy = status["health"]["status"] == "Healthy";
        let phase = text(&status["operationState"]["phase"]);
        let rests = app["operation"].is_null() && !matches!(phase, "Running" | "Terminating");
        let so = (synced || !(all || args.sync))
            && (healthy || !(all || args.health))
            && (rests || !(all || args.operation));
        Ok(if so { ControlFlow::Break(()) } else { ControlFlow::Continue(()) })
    })
    .await?;
    match outcome {
        Outcome::Done(()) => Ok(()),
        Outcome::TimedOut => Err(late(session, &args.app, limit).await),
    }
}

/// Deletes an Application.
pub async fn delete(session: &Session, args: DeleteArgs) -> CliResult {
    let (resource, object, _) = common::fetch(session, &args.app).await?;
    let mut finalizers: Vec<String> =
        object.meta().finalizers.iter().filter(|f| !f.starts_with(FINALIZER)).cloned().collect();
    if args.cascade {
        finalizers.push(FINALIZER.to_owned());
    }
    if finalizers != object.meta().finalizers {
        let patch = json!({"metadata": {"finalizers": finalizers}});
        common::change(session, &resource, &args.app.key(), patch).await?;
    }
    let options = DeleteOptions { uid: object.meta().uid.clone(), ..DeleteOptions::default() };
    session.client.delete(&resource, &args.app.key(), &options).await?;
    let limit = args.timeout.timeout;
    match follow::gone(session, &resource, &args.app.key(), &object.meta().uid, Some(limit)).await? {
        Outcome::Done(()) => {
            Ok(stdout::data(&format!("application.argoproj.io \"{}\" deleted\n", args.app.name))?)
        }
        Outcome::TimedOut => Err(late(session, &args.app, limit).await),
    }
}
