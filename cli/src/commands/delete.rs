//! `delete`: removes objects, and by default waits until they are gone.

use std::time::Duration;

use clap::{Args, ValueEnum};
use strata_client::options::DeleteOptions;
use strata_model::object::ObjectKey;
use strata_model::status::Reason;

use crate::commands::error::{CliError, CliResult, usage};
use crate::commands::follow::{self, Outcome};
use crate::commands::printing::{DryRun, warn};
use crate::commands::session::Session;
use crate::commands::target::{self, FileArgs, Found, SelectorArgs, Target};
use crate::output::duration::Limit;
use crate::output::stdout;

/// Help behind the flags.
pub const EXAMPLES: &str = "\
Examples:
  strata delete pod web-1                          and wait until it is gone
  strata delete pods -l app=web --field-selector status.phase=Running
  strata delete deployment/web --cascade=orphan    but leave its ReplicaSets and pods
  strata delete -f web.yaml --ignore-not-found
  strata delete pod web-1 --now                    with one second of grace in place of what the pod asks for";

/// What happens to the objects that a deleted one owns.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Cascade {
    Background,
    Foreground,
    Orphan,
}

/// Arguments of `delete`.
#[derive(Debug, Args)]
pub struct DeleteArgs {
    /// TYPE NAME… or TYPE/NAME…
    #[arg(value_name = "TYPE [NAME…] | TYPE/NAME")]
    resources: Vec<String>,
    #[command(flatten)]
    selectors: SelectorArgs,
    #[command(flatten)]
    files: FileArgs,

    /// All objects of the type in the namespace
    #[arg(long)]
    all: bool,

    /// In all namespaces
    #[arg(short = 'A', long)]
    all_namespaces: bool,

    /// What happens to the objects it owns: background deletes them after, foreground before, orphan leaves them
    #[arg(long, value_enum, value_name = "background|foreground|orphan", hide_possible_values = true, num_args = 0..=1,
          require_equals = true, default_value = "background", default_missing_value = "background", hide_default_value = true)]
    cascade: Cascade,

    /// Seconds a pod is given to end by itself
    #[arg(long, value_name = "SECONDS", allow_negative_numbers = true)]
    grace_period: Option<i64>,

    /// Remove at once, without waiting for the node to confirm (grace period 0)
    #[arg(long)]
    force: bool,

    /// Grace of one second
    #[arg(long, conflicts_with = "grace_period")]
    now: bool,

    /// Wait until the objects are gone
    #[arg(long, value_name = "true|false", num_args = 0..=1, require_equals = true, default_value_t = true,
          default_missing_value = "true", action = clap::ArgAction::Set, hide_default_value = true)]
    wait: bool,

    /// How long to wait at most, such as 30s; 0 is as long as it takes
    #[arg(long, value_name = "DURATION", default_value = "0", hide_default_value = true)]
    timeout: Limit,

    /// An object that is not there is no error
    #[arg(long)]
    ignore_not_found: bool,

    /// Change nothing: client or server
    #[arg(long, value_name = "none|client|server", value_enum, hide_possible_values = true, num_args = 0..=1,
          require_equals = true, default_value = "none", default_missing_value = "client", hide_default_value = true)]
    dry_run: DryRun,

    /// Print only type/name
    #[arg(short = 'o', long, value_name = "name", value_parser = ["name"])]
    output: Option<String>,
}

impl DeleteArgs {
    fn options(&self) -> CliResult<DeleteOptions> {
        let grace = match (self.now, self.force, self.grace_period.filter(|g| *g >= 0)) {
            (true, _, _) => Some(1),
            (false, true, Some(grace)) if grace > 0 => {
                return Err(usage("--force and --grace-period greater than 0 cannot be specified together"));
            }
            (false, true, _) => Some(0),
            (false, false, Some(0)) => {
                stdout::say(
                    "Warning: a grace period of 0 is taken for 1 without --force, so that the process is stopped",
                );
                Some(1)
            }
            (false, false, grace) => grace,
        };
        let policy = match self.cascade {
            Cascade::Background => "Background",
            Cascade::Foreground => "Foreground",
            Cascade::Orphan => "Orphan",
        };
        Ok(DeleteOptions {
            grace_period_seconds: grace,
            propagation_policy: policy.to_owned(),
            dry_run: self.dry_run == DryRun::Server,
            ..DeleteOptions::default()
        })
    }

    fn forgives(&self, error: &CliError) -> bool {
        let selected = self.all || !self.selectors.is_empty();
        (self.ignore_not_found || selected) && error.is(Reason::NotFound)
    }

    fn say(&self, target: &Target, name: &str) -> CliResult {
        if self.output.is_some() {
            return Ok(stdout::data(&format!("{}\n", target::display(&target.resource, name)))?);
        }
        let kind = target::display(&target.resource, "");
        let how = if self.force { "force deleted" } else { "deleted" };
        let dry = match self.dry_run {
            DryRun::None => "",
            DryRun::Client => " (dry run)",
            DryRun::Server => " (server dry run)",
        };
        Ok(stdout::data(&format!("{} \"{name}\" {how}{dry}\n", kind.trim_end_matches('/')))?)
    }
}

/// An object on its way out.
struct Leaving {
    target: Target,
    key: ObjectKey,
    uid: String,
}

/// Runs the command.
pub async fn run(session: &Session, args: DeleteArgs) -> CliResult {
    let options = args.options()?;
    let targets = target::targets(session, &args.resources, &args.files, args.all_namespaces).await?;
    if args.force {
        stdout::say(
            "Warning: Immediate deletion does not wait for confirmation that the running resource has been terminated. \
             The resource may continue to run on the node for a while.",
        );
    }
    if args.all && targets.iter().any(|t| t.name.is_some()) {
        return Err(usage("name cannot be provided when --all is given"));
    }
    let (mut errors, mut leaving, mut none) = (Vec::new(), Vec::new(), true);
    for target in &targets {
        let found = match names(session, &args, target).await {
            Ok(found) => found,
            Err(error) => {
                errors.push(error);
                continue;
            }
        };
        for key in found {
            none = false;
            match remove(session, &args, target, key, &options).await {
                Ok(still) => leaving.extend(still),
                Err(error) if args.forgives(&error) => {}
                Err(error) => errors.push(error),
            }
        }
    }
    if none && errors.is_empty() {
        stdout::say("No resources found");
    }
    if args.wait
        && args.dry_run == DryRun::None
        && let Err(error) = wait(session, &leaving, args.timeout.zero_is_endless()).await
    {
        errors.push(error);
    }
    match errors.len() {
        0 => Ok(()),
        1 => Err(errors.remove(0)),
        _ => Err(CliError::Many(errors)),
    }
}

async fn names(session: &Session, args: &DeleteArgs, target: &Target) -> CliResult<Vec<ObjectKey>> {
    if target.name.is_some() && args.selectors.is_empty() {
        return Ok(vec![target.key()]);
    }
    let found = target::fetch(session, std::slice::from_ref(target), &args.selectors, args.all).await?;
    Ok(found.iter().map(|Found { object, .. }| object.key()).collect())
}

/// Deletes one object. What remains of it, marked, is answered, to be waited for.
async fn remove(
    session: &Session,
    args: &DeleteArgs,
    target: &Target,
    key: ObjectKey,
    options: &DeleteOptions,
) -> CliResult<Option<Leaving>> {
    if args.dry_run == DryRun::Client {
        session.get(&target.resource, &key.namespace, &key.name).await?;
        args.say(target, &key.name)?;
        return Ok(None);
    }
    let deleted = session.client.delete(&target.resource, &key, options).await?;
    warn(&deleted.warnings);
    args.say(target, &key.name)?;
    let uid = deleted.object.meta().uid.clone();
    Ok((!deleted.removed).then(|| Leaving { target: target.clone(), key, uid }))
}

async fn wait(session: &Session, leaving: &[Leaving], timeout: Option<Duration>) -> CliResult {
    let began = tokio::time::Instant::now();
    for Leaving { target, key, uid } in leaving {
        let left = timeout.map(|limit| limit.saturating_sub(began.elapsed()));
        if follow::gone(session, &target.resource, key, uid, left).await? == Outcome::TimedOut {
            let object = session.get(&target.resource, &key.namespace, &key.name).await;
            let finalizers = object.map(|o| o.meta().finalizers.join(", ")).unwrap_or_default();
            let why = match finalizers.is_empty() {
                true => String::new(),
                false => format!("; it waits for its finalizers: {finalizers}"),
            };
            return Err(usage(format!(
                "timed out waiting for {} to go{why}; `strata why {}` tells more",
                target::display(&target.resource, &key.name),
                target::display(&target.resource, &key.name),
            )));
        }
    }
    Ok(())
}
