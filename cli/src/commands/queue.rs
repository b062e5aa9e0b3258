//! `queue`: what the controllers of a platform have to do, asked of their admin ports; and a key retried by hand.

use std::net::SocketAddr;
use std::path::{Path, PathBuf};

use clap::Args;
use serde_json::{Value, json};
use strata_model::age;
use strata_runtime::admin::ask::{AskError, Place, ask};

use crate::commands::connection::{ConnectionArgs, Environment};
use crate::commands::error::{CliError, CliResult, usage};
use crate::output::format::pretty_json;
use crate::output::stdout;
use crate::output::table::layout;

/// Help behind the flags.
pub const EXAMPLES: &str = "\
Examples:
  strata queue                                     all controllers of the platform on this machine
  strata queue deployment                          its keys: state, attempts, why, last error
  strata queue deployment --retry deployments.apps/default/web
  strata queue deployment --resync                 has every key looked at: a check, which finds nothing to do
  strata queue deployment --admin 127.0.0.1:9001   a process started by hand with --admin-listen";

/// Where admin ports are, beside the kubeconfig of a data directory.
const SOCKETS: &str = "run";
/// Most sockets looked at.
const MAX_SOCKETS: usize = 256;

/// Arguments of `queue`.
#[derive(Debug, Args)]
pub struct QueueArgs {
    /// Only this controller, with its keys
    #[arg(value_name = "CONTROLLER")]
    controller: Option<String>,

    /// Have a key reconciled now, whatever it waits for
    #[arg(long, value_name = "KEY", requires = "controller")]
    retry: Option<String>,

    /// Have every key looked at, after all else
    #[arg(long, requires = "controller", conflicts_with = "retry")]
    resync: bool,

    /// Ask the process with this --admin-listen, not those of the data directory
    #[arg(long, value_name = "ADDRESS", conflicts_with_all = ["retry", "resync"])]
    admin: Option<SocketAddr>,

    /// As json, for programs
    #[arg(short = 'o', long, value_name = "json", value_parser = ["json"])]
    output: Option<String>,
}

/// Runs the command.
pub async fn run(connection: ConnectionArgs, args: QueueArgs) -> CliResult {
    let places = match args.admin {
        Some(address) => vec![Place::Address(address)],
        None => sockets(&connection)?,
    };
    let mut controllers: Vec<(Place, Value)> = Vec::new();
    let mut silent: Vec<AskError> = Vec::new();
    for place in places {
        match ask(&place, http::Method::GET, "/debug/queue").await {
            Ok(said) => {
                let mut shown: Value = serde_json::from_str(&said).unwrap_or(Value::Null);
                let Value::Array(list) = shown["controllers"].take() else { continue };
                controllers.extend(list.into_iter().map(|one| (place.clone(), one)));
            }
            // The file of a process that is gone.
            Err(error) => silent.push(error),
        }
    }
    if controllers.is_empty() {
        return Err(match silent.into_iter().next() {
            Some(error) => asked(error),
            None => usage("no controller runs here"),
        });
    }
    let Some(name) = &args.controller else { return show_all(&controllers, args.output.is_some()) };
    let Some((place, one)) = controllers.iter().find(|(_, one)| one["name"] == name.as_str()) else {
        let known: Vec<&str> = controllers.iter().filter_map(|(_, one)| one["name"].as_str()).collect();
        return Err(usage(format!("no controller {name:?} runs here; there are: {}", known.join(", "))));
    };
    if args.resync {
        let path = format!("/debug/resync?controller={name}");
        let count = ask(place, http::Method::POST, &path).await.map_err(asked)?;
        stdout::data(&format!("{name} looks at all of its keys: {count}\n"))?;
        return Ok(());
    }
    match &args.retry {
        Some(key) => {
            let path = format!("/debug/retry?controller={name}&key={}", key.replace('/', "%2F"));
            ask(place, http::Method::POST, &path).await.map_err(asked)?;
            stdout::data(&format!("{key} is reconciled by {name} now\n"))?;
            Ok(())
        }
        None => show_keys(one, args.output.is_some()),
    }
}

fn asked(error: AskError) -> CliError {
    let cause = std::error::Error::source(&error).map(|cause| format!(": {cause}")).unwrap_or_default();
    usage(format!("{error}{cause}"))
}

/// The folders in which admin ports are, beside the kubeconfig in use.
fn folders(connection: &ConnectionArgs) -> Vec<PathBuf> {
    let files = connection.kubeconfigs(&Environment::of_process(), |path| path.exists());
    files.iter().filter_map(|f| f.parent()).map(|dir| dir.join(SOCKETS)).collect()
}

/// The admin ports beside the kubeconfig in use; none is none.
pub fn sockets_of(connection: &ConnectionArgs) -> Vec<Place> {
    let mut found: Vec<PathBuf> = folders(connection).iter().flat_map(|folder| entries(folder)).collect();
    found.sort();
    found.into_iter().map(Place::Socket).collect()
}

/// The same, where there must be some.
fn sockets(connection: &ConnectionArgs) -> CliResult<Vec<Place>> {
    let found = sockets_of(connection);
    if found.is_empty() {
        let folders = folders(connection);
        let looked: Vec<String> = folders.iter().map(|f| f.display().to_string()).collect();
        return Err(usage(format!(
            "no processes of a platform found in {}: is `strata up` running? Its place is chosen by --data-dir; \
             a process on its own is asked with --admin ADDRESS",
            looked.join(", ")
        )));
    }
    Ok(found)
}

fn entries(folder: &Path) -> Vec<PathBuf> {
    let Ok(entries) = std::fs::read_dir(folder) else { return Vec::new() };
    let paths = entries.flatten().map(|entry| entry.path());
    paths.filter(|path| path.extension().is_some_and(|e| e == "sock")).take(MAX_SOCKETS).collect()
}

fn show_all(controllers: &[(Place, Value)], as_json: bool) -> CliResult {
    if as_json {
        let all: Vec<&Value> = controllers.iter().map(|(_, one)| one).collect();
        return Ok(stdout::data(&pretty_json(&json!({"controllers": all})))?);
    }
    let heads =
        ["CONTROLLER", "LEADS", "READY", "RUNNING", "DELAYED", "WAITING", "FAILED", "OLDEST", "RETRIES"];
    let mut lines = vec![heads.map(str::to_owned).to_vec()];
    for (_, one) in controllers {
        let failed = keys(one).filter(|key| key["state"] == "failed").count();
        let number = |name: &str| one[name].as_u64().unwrap_or(0).to_string();
        let leads = if one["leads"] == true { "yes" } else { "no" };
        lines.push(vec![
            text(&one["name"]).to_owned(),
            leads.to_owned(),
            number("depth"),
            number("running"),
            number("delayed"),
            number("waitingForCache"),
            failed.to_string(),
            seconds(&one["oldestSeconds"]),
            number("retries"),
        ]);
    }
    Ok(stdout::data(&layout(&lines, &mut Vec::new()))?)
}

fn show_keys(one: &Value, as_json: bool) -> CliResult {
    if as_json {
        return Ok(stdout::data(&pretty_json(one))?);
    }
    let heads = ["KEY", "STATE", "FOR", "FAILURES", "WHY", "LAST ERROR"];
    let mut lines = vec![heads.map(str::to_owned).to_vec()];
    for key in keys(one) {
        let or_none = |value: &Value| match text(value) {
            "" => "<none>".to_owned(),
            text => text.to_owned(),
        };
        lines.push(vec![
            text(&key["key"]).to_owned(),
            text(&key["state"]).to_owned(),
            seconds(&key["seconds"]),
            key["failures"].as_u64().unwrap_or(0).to_string(),
            or_none(&key["reasons"]),
            or_none(&key["error"]),
        ]);
    }
    if lines.len() == 1 {
        stdout::say(&format!("{} has nothing to do", text(&one["name"])));
        return Ok(());
    }
    Ok(stdout::data(&layout(&lines, &mut Vec::new()))?)
}

fn keys(one: &Value) -> impl Iterator<Item = &Value> {
    one["keys"].as_array().into_iter().flatten()
}

fn text(value: &Value) -> &str {
    value.as_str().unwrap_or_default()
}

fn seconds(value: &Value) -> String {
    age::human(value.as_f64().unwrap_or(0.0) as i64)
}
