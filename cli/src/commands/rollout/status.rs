//! `rollout status`: how far a roll-out is. What an object says of it is a pure function.

use std::ops::ControlFlow;

use clap::Args;
use serde_json::Value;
use strata_model::resource::{GroupResource, builtin};

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

/// What an object says of its roll-out: by what its type counts.
fn progress(resource: &GroupResource, object: &Value, revision: u64) -> Progress {
    let strategy = object["spec"]["updateStrategy"]["type"].as_str();
    if let Some(strategy) = strategy.filter(|strategy| *strategy != "RollingUpdate") {
        return Progress::Stuck(format!(
            "rollout status is only available for RollingUpdate strategy type, not for {strategy}"
        ));
    }
    if *resource == builtin::STATEFUL_SET.id {
        stateful_set(object)
    } else if *resource == builtin::DAEMON_SET.id {
        daemon_set(object)
    } else {
        deployment(object, revision)
    }
}

/// Whether an object's status speaks of its present spec.
fn is_observed(object: &Value) -> bool {
    let generation = object["metadata"]["generation"].as_i64().unwrap_or(0);
    generation <= object["status"]["observedGeneration"].as_i64().unwrap_or(0)
}

/// What a StatefulSet says.
fn stateful_set(object: &Value) -> Progress {
    if !is_observed(object) {
        return Progress::Going("Waiting for statefulset spec update to be observed...".to_owned());
    }
    let (spec, status) = (&object["spec"], &object["status"]);
    let count = |field: &str| status[field].as_i64().unwrap_or(0);
    let wanted = spec["replicas"].as_i64().unwrap_or(1);
    let (ready, updated) = (count("readyReplicas"), count("updatedReplicas"));
    let partition = spec["updateStrategy"]["rollingUpdate"]["partition"].as_i64().unwrap_or(0);
    if ready < wanted {
        return Progress::Going(format!("Waiting for {} pods to be ready...", wanted - ready));
    }
    let expected = (wanted - partition).max(0);
    if updated < expected {
        return Progress::Going(format!(
            "Waiting for partitioned roll out to finish: {updated} out of {expected} new pods have been updated..."
        ));
    }
    if partition > 0 {
        return Progress::Through(format!(
            "partitioned roll out complete: {updated} new pods have been updated..."
        ));
    }
    let revision = status["updateRevision"].as_str().unwrap_or_default();
    if status["currentRevision"] != status["updateRevision"] {
        return Progress::Going(format!(
            "waiting for statefulset rolling update to complete {updated} pods at revision {revision}..."
        ));
    }
    Progress::Through(format!(
        "statefulset rolling update complete {} pods at revision {revision}...",
        count("currentReplicas")
    ))
}

/// What a DaemonSet says.
fn daemon_set(object: &Value) -> Progress {
    if !is_observed(object) {
        return Progress::Going("Waiting for daemon set spec update to be observed...".to_owned());
    }
    let name = object["metadata"]["name"].as_str().unwrap_or_default();
    let count = |field: &str| object["status"][field].as_i64().unwrap_or(0);
    let (wanted, updated, available) =
        (count("desiredNumberScheduled"), count("updatedNumberScheduled"), count("numberAvailable"));
    let waiting = |what: String| {
        Progress::Going(format!("Waiting for daemon set \"{name}\" rollout to finish: {what}..."))
    };
    if updated < wanted {
        waiting(format!("{updated} out of {wanted} new pods have been updated"))
    } else if available < wanted {
        waiting(format!("{available} of {wanted} updated pods are available"))
    } else {
        Progress::Through(format!("daemon set \"{name}\" successfully rolled out"))
    }
}

/// What a Deployment, or another type with a template and the usual counts, says of its roll-out.
fn deployment(object: &Value, revision: u64) -> Progress {
    let name = object["metadata"]["name"].as_str().unwrap_or_default();
    let (spec, status) = (&object["spec"], &object["status"]);
    let count = |field: &str| status[field].as_i64().unwrap_or(0);
    let current = object["metadata"]["annotations"][REVISION].as_str().and_then(|r| r.parse::<u64>().ok());
    if let Some(current) = current.filter(|current| revision > 0 && *current != revision) {
        return Progress::Stuck(format!(
            "desired revision ({revision}) is different from the running revision ({current})"
        ));
    }
    if !is_observed(object) {
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
        let (line, over) = match progress(&resource.id, object, args.revision) {
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

    fn web(generation: i64, counts: [i64; 3]) -> Value {
        json!({"metadata": {"name": "web", "generation": generation, "annotations": {REVISION: "2"}},
            "spec": {"replicas": 3},
            "status": {"observedGeneration": 2, "updatedReplicas": counts[0], "replicas": counts[1],
                "availableReplicas": counts[2]}})
    }

    #[test]
    fn progress_is_told_as_by_kubectl() {
        let going = |generation, counts| match super::deployment(&web(generation, counts), 0) {
            Progress::Going(line) | Progress::Through(line) | Progress::Stuck(line) => line,
        };
        assert_eq!(going(3, [3, 3, 3]), "Waiting for deployment spec update to be observed...");
        let prefix = "Waiting for deployment \"web\" rollout to finish: ";
        assert_eq!(going(2, [1, 4, 3]), format!("{prefix}1 out of 3 new replicas have been updated..."));
        assert_eq!(going(2, [3, 4, 3]), format!("{prefix}1 old replicas are pending termination..."));
        assert_eq!(going(2, [3, 3, 2]), format!("{prefix}2 of 3 updated replicas are available..."));
        assert_eq!(going(2, [3, 3, 3]), "deployment \"web\" successfully rolled out");
        assert!(matches!(super::deployment(&web(2, [3, 3, 3]), 1), Progress::Stuck(_)));
        let mut stuck = web(2, [1, 4, 3]);
        stuck["status"]["conditions"] =
            json!([{"type": "Progressing", "reason": "ProgressDeadlineExceeded"}]);
        assert!(matches!(super::deployment(&stuck, 0), Progress::Stuck(_)));
    }

    #[test]
    fn sets_tell_theirs_as_well() {
        let line = |resource: &GroupResource, object: Value| match progress(resource, &object, 0) {
            Progress::Going(line) => (false, line),
            Progress::Through(line) => (true, line),
            Progress::Stuck(line) => (true, format!("stuck: {line}")),
        };
        let stateful = |partition: i64, ready: i64, updated: i64, current: &str| {
            json!({"metadata": {"name": "db", "generation": 2}, "spec": {"replicas": 3, "updateStrategy":
                {"type": "RollingUpdate", "rollingUpdate": {"partition": partition}}}, "status": {"observedGeneration": 2,
                "readyReplicas": ready, "updatedReplicas": updated, "currentReplicas": updated,
                "currentRevision": current, "updateRevision": "db-2"}})
        };
        let db = |object| line(&builtin::STATEFUL_SET.id, object);
        assert_eq!(db(stateful(0, 2, 0, "db-1")), (false, "Waiting for 1 pods to be ready...".to_owned()));
        let going = "Waiting for partitioned roll out to finish: 1 out of 2 new pods have been updated...";
        assert_eq!(db(stateful(1, 3, 1, "db-1")), (false, going.to_owned()));
        assert!(db(stateful(1, 3, 2, "db-1")).0);
        assert!(!db(stateful(0, 3, 3, "db-1")).0);
        let through = "statefulset rolling update complete 3 pods at revision db-2...";
        assert_eq!(db(stateful(0, 3, 3, "db-2")), (true, through.to_owned()));
        let daemon = |updated: i64, available: i64| {
            json!({"metadata": {"name": "log"}, "spec": {"updateStrategy": {"type": "RollingUpdate"}}, "status":
                {"desiredNumberScheduled": 2, "updatedNumberScheduled": updated, "numberAvailable": available}})
        };
        let log = |object| line(&builtin::DAEMON_SET.id, object);
        assert!(log(daemon(1, 2)).1.ends_with("finish: 1 out of 2 new pods have been updated..."));
        assert!(log(daemon(2, 1)).1.ends_with("finish: 1 of 2 updated pods are available..."));
        assert_eq!(log(daemon(2, 2)), (true, "daemon set \"log\" successfully rolled out".to_owned()));
        let by_hand = json!({"spec": {"updateStrategy": {"type": "OnDelete"}}});
        assert!(log(by_hand).1.starts_with("stuck: rollout status is only available"));
    }
}
