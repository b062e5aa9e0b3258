//! `logs`: what the containers of pods have written.

use clap::Args;
use futures_util::StreamExt as _;
use futures_util::stream::FuturesUnordered;
use serde_json::Value;
use strata_client::client::Logs;
use strata_client::error::ClientError;
use strata_client::options::{ListOptions, LogOptions};
use strata_model::object::{Object, ObjectKey};
use strata_model::selector::Selector;

use crate::commands::error::{CliResult, usage};
use crate::commands::session::Session;
use crate::commands::target::{self, Word};
use crate::output::duration::Limit;
use crate::output::stdout;

/// Help behind the flags.
pub const EXAMPLES: &str = "\
Examples:
  strata logs web-1                                what pod web-1 has written
  strata logs -f deployment/web                    of one pod of the deployment, as it grows
  strata logs -l app=web --prefix                  of all pods that match, each line with its pod
  strata logs web-1 -c sidecar --tail=20
  strata logs web-1 --previous                     of the attempt before the last restart";

/// Lines of each pod, where pods are selected and nothing else is asked for.
const SELECTED_TAIL: i64 = 10;

/// The annotation that names the container people mean.
const DEFAULT_CONTAINER: &str = "kubectl.kubernetes.io/default-container";

/// Arguments of `logs`.
#[derive(Debug, Args)]
pub struct LogsArgs {
    /// POD or TYPE/NAME, and the container if there are several
    #[arg(value_name = "POD | TYPE/NAME", num_args = 0..=2)]
    target: Vec<String>,

    /// The pods whose labels match
    #[arg(short = 'l', long, value_name = "SELECTOR", default_value = "", hide_default_value = true)]
    selector: String,

    /// Go on as the log grows, until Ctrl-C
    #[arg(short = 'f', long)]
    follow: bool,

    /// The container
    #[arg(short = 'c', long, value_name = "NAME", default_value = "", hide_default_value = true)]
    container: String,

    /// All containers of the pods
    #[arg(long)]
    all_containers: bool,

    /// All pods of the object, not only one
    #[arg(long)]
    all_pods: bool,

    /// That of the attempt before the running one
    #[arg(short = 'p', long)]
    previous: bool,

    /// Only the last lines; -1 is all [default: all; with -l: 10]
    #[arg(long, value_name = "N", allow_negative_numbers = true)]
    tail: Option<i64>,

    /// Only lines not older than this, such as 5m
    #[arg(long, value_name = "DURATION")]
    since: Option<Limit>,

    /// Only lines after this instant, such as 2026-01-31T08:00:00Z
    #[arg(long, value_name = "TIME", conflicts_with = "since")]
    since_time: Option<String>,

    /// Begin each line with its instant
    #[arg(long)]
    timestamps: bool,

    /// Begin each line with its pod and container
    #[arg(long)]
    prefix: bool,

    /// At most this many bytes of each log
    #[arg(long, value_name = "N")]
    limit_bytes: Option<i64>,

    /// At most this many logs at once
    #[arg(long, value_name = "N", default_value_t = 5)]
    max_log_requests: usize,
}

impl LogsArgs {
    fn options(&self, container: &str) -> CliResult<LogOptions> {
        let selected = (!self.selector.is_empty()).then_some(SELECTED_TAIL);
        let since_time = match &self.since_time {
            Some(text) => {
                let instant: jiff::Timestamp = text.parse().map_err(|_| {
                    usage(format!("--since-time {text:?} is no instant: write it as 2026-01-31T08:00:00Z"))
                })?;
                instant.to_string()
            }
            None => String::new(),
        };
        Ok(LogOptions {
            container: container.to_owned(),
            follow: self.follow,
            previous: self.previous,
            tail_lines: self.tail.or(selected).filter(|n| *n >= 0),
            since_seconds: self
                .since
                .and_then(|since| since.0)
                .map(|d| i64::try_from(d.as_secs_f64().ceil() as u64).unwrap_or(i64::MAX)),
            since_time,
            timestamps: self.timestamps,
            limit_bytes: self.limit_bytes,
        })
    }

    /// The names of the containers to read of a pod.
    fn containers(&self, pod: &Value) -> Vec<String> {
        if !self.all_containers {
            let named = self.target.get(1).unwrap_or(&self.container);
            let default = pod["metadata"]["annotations"][DEFAULT_CONTAINER].as_str();
            let first = || pod["spec"]["containers"][0]["name"].as_str();
            let chosen = if named.is_empty() { default.or_else(first).unwrap_or_default() } else { named };
            return vec![chosen.to_owned()];
        }
        let lists = ["initContainers", "containers"].into_iter();
        let all = lists.flat_map(|list| pod["spec"][list].as_array().into_iter().flatten());
        all.filter_map(|c| c["name"].as_str().map(str::to_owned)).collect()
    }
}

/// One log that is read.
struct Source {
    logs: Logs,
    prefix: String,
    /// The beginning of a line whose end has not come.
    partial: Vec<u8>,
}

/// Runs the command.
pub async fn run(session: &Session, args: LogsArgs) -> CliResult {
    let pods = pods(session, &args).await?;
    let mut wanted = Vec::new();
    for pod in &pods {
        let value = pod.to_value()?;
        say_default(&args, &value);
        for container in args.containers(&value) {
            wanted.push((pod.key(), container));
        }
    }
    if args.follow && wanted.len() > args.max_log_requests {
        return Err(usage(format!(
            "you are attempting to follow {} log streams, but maximum allowed concurrency is {}, use --max-log-requests \
             to increase the limit",
            wanted.len(),
            args.max_log_requests
        )));
    }
    let several = wanted.len() > 1 || args.prefix;
    let mut sources = Vec::new();
    for (key, container) in wanted {
        let source = open(session, &args, &key, &container).await?;
        if args.follow && several {
            sources.push(source);
        } else {
            drain(source, several).await?;
        }
    }
    merge(sources).await
}

/// Says which container is read where the pod has several and none was named.
fn say_default(args: &LogsArgs, pod: &Value) {
    let names: Vec<&str> = pod["spec"]["containers"]
        .as_array()
        .into_iter()
        .flatten()
        .filter_map(|c| c["name"].as_str())
        .collect();
    let chosen = args.all_containers || !args.container.is_empty() || args.target.len() > 1;
    if let ([first, _, ..], false) = (names.as_slice(), chosen) {
        let default = pod["metadata"]["annotations"][DEFAULT_CONTAINER].as_str();
        stdout::say(&format!(
            "Defaulted container \"{}\" out of: {}",
            default.unwrap_or(first),
            names.join(", ")
        ));
    }
}

async fn open(session: &Session, args: &LogsArgs, key: &ObjectKey, container: &str) -> CliResult<Source> {
    let logs = session.client.logs(key, &args.options(container)?).await?;
    let prefix = match args.prefix {
        true => format!("[pod/{}/{container}] ", key.name),
        false => String::new(),
    };
    Ok(Source { logs, prefix, partial: Vec::new() })
}

/// Reads one log to its end. Where it is the only one, its bytes go out as they come.
async fn drain(mut source: Source, by_lines: bool) -> CliResult {
    while let Some(chunk) = source.logs.next().await? {
        match by_lines {
            true => print_lines(&mut source, &chunk)?,
            false => stdout::bytes(&chunk)?,
        }
    }
    print_rest(&mut source)
}

fn print_lines(source: &mut Source, chunk: &[u8]) -> CliResult {
    source.partial.extend_from_slice(chunk);
    while let Some(end) = source.partial.iter().position(|b| *b == b'\n') {
        let line: Vec<u8> = source.partial.drain(..=end).collect();
        stdout::bytes(&[source.prefix.as_bytes(), &line].concat())?;
    }
    Ok(())
}

fn print_rest(source: &mut Source) -> CliResult {
    if !source.partial.is_empty() {
        let line = std::mem::take(&mut source.partial);
        stdout::bytes(&[source.prefix.as_bytes(), &line, b"\n"].concat())?;
    }
    Ok(())
}

/// A log and its next piece.
async fn next_chunk(mut source: Source) -> (Source, Result<Option<bytes::Bytes>, ClientError>) {
    let chunk = source.logs.next().await;
    (source, chunk)
}

/// Reads several logs at once, whole lines each.
async fn merge(sources: Vec<Source>) -> CliResult {
    let mut running: FuturesUnordered<_> = sources.into_iter().map(next_chunk).collect();
    while let Some((mut source, chunk)) = running.next().await {
        match chunk? {
            Some(chunk) => {
                print_lines(&mut source, &chunk)?;
                running.push(next_chunk(source));
            }
            None => print_rest(&mut source)?,
        }
    }
    Ok(())
}

/// The pods that are meant.
async fn pods(session: &Session, args: &LogsArgs) -> CliResult<Vec<Object>> {
    let pod_type = session.lookup("pods").await?;
    if !args.selector.is_empty() {
        if !args.target.is_empty() {
            return Err(usage("only a selector (-l) or a POD name is allowed"));
        }
        let options = ListOptions { label_selector: args.selector.clone(), ..ListOptions::default() };
        let found = session.list_all(&pod_type, session.namespace(), options).await?.items;
        if found.is_empty() {
            stdout::say(&format!("No resources found in {} namespace.", session.namespace()));
        }
        return Ok(found);
    }
    let Some(name) = args.target.first() else {
        return Err(usage(
            "expected 'logs [-f] (POD | TYPE/NAME) [-c CONTAINER]'; `strata get pods` lists pods",
        ));
    };
    let Some((resource, name)) = name.split_once('/') else {
        return Ok(vec![session.get(&pod_type, session.namespace(), name).await?]);
    };
    let word = Word { resource: resource.to_owned(), name: Some(name.to_owned()) };
    let targets = target::resolve(session, &[word], false).await?;
    let found = target::fetch(session, &targets, &Default::default(), false).await?;
    let mut all = Vec::new();
    for owner in found {
        if owner.resource.id == pod_type.id {
            all.push(owner.object);
            continue;
        }
        let mut pods = pods_of(session, &owner.object).await?;
        if pods.len() > 1 && !args.all_pods {
            stdout::say(&format!("Found {} pods, using pod/{}", pods.len(), pods[0].meta().name));
            pods.truncate(1);
        }
        all.extend(pods);
    }
    Ok(all)
}

/// The pods an object selects; running ones first, then the older.
async fn pods_of(session: &Session, owner: &Object) -> CliResult<Vec<Object>> {
    let value = owner.to_value()?;
    let selector = selector_text(&value)?;
    let pod_type = session.lookup("pods").await?;
    let options = ListOptions { label_selector: selector, ..ListOptions::default() };
    let mut pods = session.list_all(&pod_type, &owner.meta().namespace, options).await?.items;
    let mut ranked = Vec::new();
    for pod in pods.drain(..) {
        let running = pod.to_value()?["status"]["phase"] == "Running" && !pod.meta().is_deleting();
        ranked.push((!running, pod.meta().creation_timestamp, pod));
    }
    ranked.sort_by_key(|(idle, created, _)| (*idle, *created));
    match ranked.is_empty() {
        true => Err(usage(format!("{} {} has no pods", owner.kind(), owner.key()))),
        false => Ok(ranked.into_iter().map(|(_, _, pod)| pod).collect()),
    }
}

/// An object's pod selector as a query.
pub fn selector_text(owner: &Value) -> CliResult<String> {
    let selector = &owner["spec"]["selector"];
    let labels = selector["matchLabels"]
        .as_object()
        .or(selector.as_object().filter(|_| selector["matchExpressions"].is_null()));
    let Some(labels) = labels else {
        return Err(usage(format!(
            "{} selects no pods",
            owner["metadata"]["name"].as_str().unwrap_or("this object")
        )));
    };
    let pairs: Vec<String> =
        labels.iter().filter_map(|(key, value)| Some(format!("{key}={}", value.as_str()?))).collect();
    let mut text = pairs.join(",");
    for expression in selector["matchExpressions"].as_array().into_iter().flatten() {
        let key = expression["key"].as_str().unwrap_or_default();
        let values: Vec<&str> =
            expression["values"].as_array().into_iter().flatten().filter_map(Value::as_str).collect();
        let part = match expression["operator"].as_str() {
            Some("In") => format!("{key} in ({})", values.join(",")),
            Some("NotIn") => format!("{key} notin ({})", values.join(",")),
            Some("Exists") => key.to_owned(),
            _ => format!("!{key}"),
        };
        text = if text.is_empty() { part } else { format!("{text},{part}") };
    }
    Selector::parse(&text)?;
    Ok(text)
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn selectors_become_queries() {
        let owner = json!({"spec": {"selector": {"matchLabels": {"a": "1", "b": "2"},
            "matchExpressions": [{"key": "t", "operator": "In", "values": ["x", "y"]}, {"key": "z", "operator": "DoesNotExist"}]}}});
        assert_eq!(selector_text(&owner).unwrap(), "a=1,b=2,t in (x,y),!z");
        assert_eq!(selector_text(&json!({"spec": {"selector": {"app": "web"}}})).unwrap(), "app=web");
        assert!(selector_text(&json!({"spec": {}})).is_err());
    }
}
