//! `wait`: until a condition holds of objects.

use std::ops::ControlFlow;
use std::sync::Arc;
use std::time::Duration;

use clap::Args;
use jiff::Timestamp;
use serde_json::Value;

use crate::commands::error::{CliError, CliResult, usage};
use crate::commands::follow::{self, Outcome};
use crate::commands::session::Session;
use crate::commands::stir::Stir;
use crate::commands::target::{self, FileArgs, SelectorArgs, Target, value_of};
use crate::output::duration::Limit;
use crate::output::stdout;
use crate::why::gather;
use strata_model::jsonpath::{JsonPath, text_of};

/// Help behind the flags.
pub const EXAMPLES: &str = "\
Examples:
  strata wait --for=condition=Available deployment/web
  strata wait --for=condition=Ready pod -l app=web --timeout=60s
  strata wait --for=jsonpath='{.status.phase}'=Running pod/web-1
  strata wait --converged deployment/web           until all is as declared, down to the processes
  strata wait --for=delete pod/web-1
  strata wait --for=create deployment/web";

/// How long "as long as it takes" is for a negative timeout.
const WEEK: Duration = Duration::from_secs(7 * 24 * 3600);

/// Arguments of `wait`.
#[derive(Debug, Args)]
pub struct WaitArgs {
    /// TYPE NAME… or TYPE/NAME…
    #[arg(value_name = "TYPE NAME | TYPE/NAME")]
    resources: Vec<String>,

    /// What to wait for: condition=NAME[=VALUE], jsonpath='{PATH}'[=VALUE], delete, create, converged
    #[arg(long = "for", value_name = "CONDITION", value_parser = parse_condition, required_unless_present = "converged")]
    condition: Option<Condition>,

    /// The same as --for=converged: until the object and all it is made of are as declared
    #[arg(long, conflicts_with = "condition")]
    converged: bool,

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

    /// How long to wait at most; 0 looks once, a negative duration waits for a week
    #[arg(long, value_name = "DURATION", default_value = "30s", allow_hyphen_values = true)]
    timeout: Limit,
}

/// What must hold.
#[derive(Clone, Debug, PartialEq)]
enum Condition {
    /// A condition of the status has a value.
    Status { type_: String, value: String },
    /// A path finds a value, or with none given, anything.
    Path { path: JsonPath, value: Option<String> },
    /// It is gone.
    Delete,
    /// It is there.
    Create,
    /// It and everything below it is as declared.
    Converged,
}

fn parse_condition(text: &str) -> Result<Condition, String> {
    if let Some(rest) = text.strip_prefix("condition=") {
        let (type_, value) = rest.split_once('=').unwrap_or((rest, "true"));
        return Ok(Condition::Status { type_: type_.to_owned(), value: value.to_owned() });
    }
    if let Some(rest) = text.strip_prefix("jsonpath=") {
        let end = match rest.starts_with('{') {
            true => rest.rfind('}').map_or(rest.len(), |at| at + 1),
            false => rest.find('=').unwrap_or(rest.len()),
        };
        let (path, value) = rest.split_at(end);
        let path = JsonPath::parse_relaxed(path).map_err(|e| e.to_string())?;
        return match value.strip_prefix('=') {
            Some("") => Err("jsonpath wait value must have a value behind =".to_owned()),
            Some(value) => {
                Ok(Condition::Path { path, value: Some(value.trim_matches(['"', '\'']).to_owned()) })
            }
            None => Ok(Condition::Path { path, value: None }),
        };
    }
    match text {
        "delete" => Ok(Condition::Delete),
        "create" => Ok(Condition::Create),
        "converged" => Ok(Condition::Converged),
        other => Err(format!(
            "unrecognized condition {other:?}: write condition=Ready, jsonpath='{{.status.phase}}'=Running, delete, create or converged"
        )),
    }
}

impl Condition {
    fn holds(&self, object: Option<&Value>) -> CliResult<bool> {
        let Some(object) = object else { return Ok(*self == Self::Delete) };
        Ok(match self {
            Self::Create => true,
            // Told by more than the object itself.
            Self::Delete | Self::Converged => false,
            Self::Path { path, value } => {
                let found = path.find(object)?;
                match value {
                    Some(value) => found.iter().any(|found| text_of(found) == *value),
                    None => found.iter().any(|found| !found.is_null()),
                }
            }
            Self::Status { type_, value } => {
                let conditions = object["status"]["conditions"].as_array();
                let same = |c: &&Value| c["type"].as_str().is_some_and(|t| t.eq_ignore_ascii_case(type_));
                let condition = conditions.into_iter().flatten().find(same);
                // A condition that speaks of an older generation says nothing about this one.
                let generation = object["metadata"]["generation"].as_i64().unwrap_or(0);
                let observed = |c: &Value| {
                    c["observedGeneration"].as_i64().or(object["status"]["observedGeneration"].as_i64())
                };
                condition.is_some_and(|c| {
                    observed(c).is_none_or(|observed| observed >= generation)
                        && c["status"].as_str().is_some_and(|s| s.eq_ignore_ascii_case(value))
                })
            }
        })
    }
}

/// Runs the command.
pub async fn run(session: &Session, args: WaitArgs) -> CliResult {
    let condition = args.condition.clone().unwrap_or(Condition::Converged);
    let mut targets = Vec::new();
    for target in target::targets(session, &args.resources, &args.files, args.all_namespaces).await? {
        if target.name.is_some() {
            targets.push(target);
            continue;
        }
        let found = target::fetch(session, std::slice::from_ref(&target), &args.selectors, args.all).await?;
        targets.extend(found.into_iter().map(|found| Target {
            namespace: found.object.meta().namespace.clone(),
            name: Some(found.object.meta().name.clone()),
            resource: found.resource,
        }));
    }
    if targets.is_empty() {
        return match condition {
            Condition::Delete => Ok(()),
            _ => Err(usage("no matching resources found")),
        };
    }
    let began = tokio::time::Instant::now();
    let limit = args.timeout.0.unwrap_or(WEEK);
    let mut errors = Vec::new();
    for target in &targets {
        let left = limit.saturating_sub(began.elapsed());
        if let Err(error) = one(session, &condition, target, left).await {
            errors.push(error);
        }
    }
    match errors.len() {
        0 => Ok(()),
        1 => Err(errors.remove(0)),
        _ => Err(CliError::Many(errors)),
    }
}

async fn one(session: &Session, condition: &Condition, target: &Target, limit: Duration) -> CliResult {
    let name = target.key().name;
    if *condition == Condition::Converged {
        return converged(session, target, &name, limit).await;
    }
    let look_once = limit.is_zero() || !matches!(condition, Condition::Delete | Condition::Create);
    if look_once {
        // What is not there will not meet a condition; and a look without waiting is a read.
        let object = match session.get(&target.resource, &target.namespace, &name).await {
            Ok(object) => Some(object.to_value()?),
            Err(error)
                if error.is(strata_model::status::Reason::NotFound) && *condition == Condition::Delete =>
            {
                None
            }
            Err(error) => return Err(error),
        };
        if condition.holds(object.as_ref())? {
            return say(target, &name);
        }
    }
    let mut vanished = false;
    let outcome = match limit.is_zero() {
        true => Outcome::TimedOut,
        false => {
            let look = |state: Option<&Value>| {
                vanished = state.is_none();
                let over = condition.holds(state)? || (vanished && look_once);
                Ok(if over { ControlFlow::Break(()) } else { ControlFlow::Continue(()) })
            };
            follow::object(session, &target.resource, &target.key(), Some(limit), look).await?
        }
    };
    let display = format!("{}/{name}", target.resource.id);
    match outcome {
        Outcome::Done(()) if vanished && look_once => {
            Err(usage(format!("{display} was deleted while waiting for it")))
        }
        Outcome::Done(()) => say(target, &name),
        Outcome::TimedOut => Err(usage(format!(
            "timed out waiting for the condition on {display}; `strata why {}` tells what it waits for",
            target::display(&target.resource, &name)
        ))),
    }
}

/// Looks at the whole tree of an object, again with every change in its namespace, until all of it is as declared.
async fn converged(session: &Session, target: &Target, name: &str, limit: Duration) -> CliResult {
    let registry = session.registry().await?;
    let mut types = gather::part_types(registry);
    types.push(Arc::clone(&target.resource));
    let mut stir = Stir::of(session, &types, &target.namespace);
    let end = tokio::time::Instant::now() + limit;
    loop {
        let object = session.get(&target.resource, &target.namespace, name).await?;
        let root = value_of(&target.resource, &object)?;
        let line = gather::tree(&session.client, registry, &root, Timestamp::now()).await?;
        if line.settled() {
            return say(target, name);
        }
        if tokio::time::timeout_at(end, stir.next()).await.is_err() {
            let display = target::display(&target.resource, name);
            let why =
                line.first_reason().map(|(whose, reason)| format!(": {whose}: {reason}")).unwrap_or_default();
            return Err(usage(format!("timed out waiting for {display} to converge{why}")));
        }
    }
}

fn say(target: &Target, name: &str) -> CliResult {
    Ok(stdout::data(&format!("{} condition met\n", target::display(&target.resource, name)))?)
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn conditions_are_read_and_checked() {
        let pod = json!({"metadata": {"generation": 2}, "status": {"phase": "Running", "observedGeneration": 2,
            "conditions": [{"type": "Ready", "status": "True"}]}});
        let old = json!({"metadata": {"generation": 3}, "status": {"observedGeneration": 2,
            "conditions": [{"type": "Ready", "status": "True"}]}});
        for (text, on_pod, on_old, on_none) in [
            ("condition=Ready", true, false, false),
            ("condition=ready=true", true, false, false),
            ("condition=Ready=False", false, false, false),
            ("jsonpath={.status.phase}=Running", true, false, false),
            ("jsonpath={.status.phase}", true, false, false),
            ("jsonpath=.status.phase=Pending", false, false, false),
            ("jsonpath={.status.conditions[?(@.type==\"Ready\")].status}=True", true, true, false),
            ("delete", false, false, true),
            ("create", true, true, false),
        ] {
            let condition = parse_condition(text).unwrap();
            assert_eq!(condition.holds(Some(&pod)).unwrap(), on_pod, "{text}");
            assert_eq!(condition.holds(Some(&old)).unwrap(), on_old, "{text}");
            assert_eq!(condition.holds(None).unwrap(), on_none, "{text}");
        }
        assert!(parse_condition("ready").unwrap_err().contains("condition=Ready"));
        assert!(parse_condition("jsonpath={.a}=").is_err());
    }
}
