//! `rollout status`: how far a roll-out is. What an object says of it is a pure function.

use std::ops::ControlFlow;

use clap::Args;
use serde_json::Value;

use crate::commands::error::{CliResult, usage};
use crate::commands::follow::{self, Outcome};
use crate::commands::session::Session;
use crate::commands::target::{self, FileArgs, Found, SelectorArgs, display};
use crate::output::duration::Limit;
use crate::output::stdout;

/// The annotation with the number of a roll-out.
pub const REVISION: &str = "deployment.kubernetes.io/revision";

/// Arguments of `rollout status`.
#[derive(Debug, Args)]
pub struct StatusArgs {
    /// TYPE NAME or TYPE/NAME
    #[arg(value_name = "TYPE NAME | TYPE/NAME")]
    resources: Vec<String>,
    #[command(flatten)]
    selectors: SelectorArgs,
    #[command(flatten)]
    files: FileArgs,

    /// Wait until it is through
    #[arg(short = 'w', long, value_name = "true|false", num_args = 0..=1, require_equals = true, default_value_t = true,
          default_missing_value = "true", action = clap::ArgAction::Set, hide_default_value = true)]
    watch: bool,

    /// Only this revision: another one taking its place ends the wait
    #[arg(long, value_name = "N", default_value_t = 0, hide_default_value = true)]
    revision: u64,

    /// How long to wait at most; 0 is as long as it takes
    #[arg(long, value_name = "DURATION", default_value = "0", hide_default_value = true)]
    timeout: Limit,
}

/// How far a roll-out is.
#[derive(Debug, PartialEq, Eq)]
enum Progress {
    /// What is still to come.
    Going(String),
    /// It is through.
    Through(String),
    /// It will not get through by itself.
    Stuck(String),
}

/// What a Deployment, or another type with a template and the usual counts, says of its roll-out.
fn progress(object: &Value, revision: u64) -> Progress {
    let name = object["metadata"]["name"].as_str().unwrap_or_default();
    let (spec, status) = (&object["spec"], &object["status"]);
    let count = |field: &str| status[field].as_i64().unwrap_or(0);
    let current = object["metadata"]["annotations"][REVISION].as_str().and_then(|r| r.parse::<u64>().ok());
    if let Some(current) = current.filter(|current| revision > 0 && *current != revision) {
        return Progress::Stuck(format!(
            "desired revision ({revision}) is different from the running revision ({current})"
        ));
    }
    if object["metadata"]["generation"].as_i64().unwrap_or(0) > count("observedGeneration") {
        return Progress::Going("Waiting for deployment spec update to be observed...".to_owned());
    }
    let conditions = status["conditions"].as_array();
    let progressing = conditions.into_iter().flatten().find(|c| c["type"] == "Progressing");
    if progressing.is_some_and(|c| c["reason"] == "ProgressDeadlineExceeded") {
        return Progress::Stuck(format!(
            "deployment \"{name}\" exceeded its progress deadline; `strata why deployment/{name}` tells what it waits for"
        ));
    }
    let wanted = spec["replicas"].as_i64().unwrap_or(1);
    let (updated, all, available) = (count("updatedReplicas"), count("replicas"), count("availableReplicas"));
    let waiting = |what: String| {
        Progress::Going(format!("Waiting for deployment \"{name}\" rollout to finish: {what}..."))
    };
    if updated < wanted {
        waiting(format!("{updated} out of {wanted} new replicas have been updated"))
    } else if all > updated {
        waiting(format!("{} old replicas are pending termination", all - updated))
    } else if available < updated {
        waiting(format!("{available} of {updated} updated replicas are available"))
    } else {
        Progress::Through(format!("deployment \"{name}\" successfully rolled out"))
    }
}

/// Runs the command.
pub async fn run(session: &Session, args: StatusArgs) -> CliResult {
    let targets = target::targets(session, &args.resources, &args.files, false).await?;
    for found in target::fetch(session, &targets, &args.selectors, false).await? {
        one(session, &args, &found).await?;
    }
    Ok(())
}

async fn one(session: &Session, args: &StatusArgs, found: &Found) -> CliResult {
    let (resource, key) = (&found.resource, found.object.key());
    if found.object.to_value()?["spec"]["template"].is_null() {
        return Err(usage(format!("{} have no roll-out", resource.id)));
    }
    let mut said = String::new();
    let look = |state: Option<&Value>| {
        let Some(object) = state else {
            return Err(usage(format!("{} \"{}\" was deleted", resource.id, key.name)));
        };
        let (line, over) = match progress(object, args.revision) {
            Progress::Going(line) => (line, !args.watch),
            Progress::Through(line) => (line, true),
            Progress::Stuck(why) => return Err(usage(why)),
        };
        if line != said {
            stdout::data(&format!("{line}\n"))?;
            said = line;
        }
        Ok(if over { ControlFlow::Break(()) } else { ControlFlow::Continue(()) })
    };
    match follow::object(session, resource, &key, args.timeout.zero_is_endless(), look).await? {
        Outcome::Done(()) => Ok(()),
        Outcome::TimedOut => Err(usage(format!(
            "timed out waiting for the condition; `strata why {}` tells what it waits for",
            display(resource, &key.name)
        ))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn deployment(generation: i64, counts: [i64; 3]) -> Value {
        json!({"metadata": {"name": "web", "generation": generation, "annotations": {REVISION: "2"}},
            "spec": {"replicas": 3},
            "status": {"observedGeneration": 2, "updatedReplicas": counts[0], "replicas": counts[1],
                "availableReplicas": counts[2]}})
    }

    #[test]
    fn progress_is_told_as_by_kubectl() {
        let going = |generation, counts| match progress(&deployment(generation, counts), 0) {
            Progress::Going(line) | Progress::Through(line) | Progress::Stuck(line) => line,
        };
        assert_eq!(going(3, [3, 3, 3]), "Waiting for deployment spec update to be observed...");
        let prefix = "Waiting for deployment \"web\" rollout to finish: ";
        assert_eq!(going(2, [1, 4, 3]), format!("{prefix}1 out of 3 new replicas have been updated..."));
        assert_eq!(going(2, [3, 4, 3]), format!("{prefix}1 old replicas are pending termination..."));
        assert_eq!(going(2, [3, 3, 2]), format!("{prefix}2 of 3 updated replicas are available..."));
        assert_eq!(going(2, [3, 3, 3]), "deployment \"web\" successfully rolled out");
        assert!(matches!(progress(&deployment(2, [3, 3, 3]), 1), Progress::Stuck(_)));
        let mut stuck = deployment(2, [1, 4, 3]);
        stuck["status"]["conditions"] =
            json!([{"type": "Progressing", "reason": "ProgressDeadlineExceeded"}]);
        assert!(matches!(progress(&stuck, 0), Progress::Stuck(_)));
    }
}
