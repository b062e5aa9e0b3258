//! `describe`: an object for people, with what happened to it. What is printed of an object is pure; fetching it, its
//! relations and its events is done here.

mod page;

mod generic;

pub mod template;

mod pod;

mod workload;

mod sets;

mod jobs;

mod cluster;

use clap::Args;
use jiff::Timestamp;
use serde_json::Value;
use strata_client::options::ListOptions;
use strata_model::resource::ResourceType;

use self::page::Page;
use crate::commands::error::{CliError, CliResult, usage};
use crate::commands::session::Session;
use crate::commands::target::{self, FileArgs, Found, SelectorArgs, Target, value_of};
use crate::output::stdout;

/// Help behind the flags.
pub const EXAMPLES: &str = "\
Examples:
  strata describe pod web-1                        what it is, how it is, and what happened to it
  strata describe deployment/web
  strata describe pods -l app=web
  strata describe pod web                          all pods whose names begin with web, where there is no pod web";

/// Most events that are shown.
const MAX_EVENTS: usize = 50;

/// Arguments of `describe`.
#[derive(Debug, Args)]
pub struct DescribeArgs {
    /// TYPE [NAME…] or TYPE/NAME…
    #[arg(value_name = "TYPE [NAME…] | TYPE/NAME")]
    resources: Vec<String>,
    #[command(flatten)]
    selectors: SelectorArgs,
    #[command(flatten)]
    files: FileArgs,

    /// In all namespaces
    #[arg(short = 'A', long)]
    all_namespaces: bool,

    /// With the events about it
    #[arg(long, value_name = "true|false", num_args = 0..=1, require_equals = true, default_value_t = true,
          default_missing_value = "true", action = clap::ArgAction::Set, hide_default_value = true)]
    show_events: bool,
}

/// What a page is made from.
struct Subject<'a> {
    object: &'a Value,
    /// Objects that belong to it, by the type's own rule.
    related: Vec<Value>,
    now: Timestamp,
}

/// Which other objects belong on a page.
#[derive(Clone, Copy)]
enum Related {
    /// None.
    Nothing,
    /// ReplicaSets it controls.
    ReplicaSets,
    /// Pods it controls.
    OwnPods,
    /// Pods on this node, in all namespaces.
    PodsOnNode,
}

/// How a type is described.
type Describe = fn(&mut Page, &Subject<'_>);

/// The types with a page of their own; others get the generic one.
const PAGES: [(&str, &str, Related, Describe); 12] = [
    ("", "pods", Related::Nothing, pod::describe),
    ("apps", "deployments", Related::ReplicaSets, workload::deployment),
    ("apps", "replicasets", Related::OwnPods, workload::replica_set),
    ("", "replicationcontrollers", Related::OwnPods, workload::replica_set),
    ("apps", "statefulsets", Related::OwnPods, sets::stateful),
    ("apps", "daemonsets", Related::OwnPods, sets::daemon),
    ("batch", "jobs", Related::Nothing, jobs::job),
    ("batch", "cronjobs", Related::Nothing, jobs::cron_job),
    ("", "nodes", Related::PodsOnNode, cluster::node),
    ("", "namespaces", Related::Nothing, cluster::namespace),
    ("", "configmaps", Related::Nothing, cluster::config_map),
    ("", "secrets", Related::Nothing, cluster::secret),
];

/// Runs the command.
pub async fn run(session: &Session, args: DescribeArgs) -> CliResult {
    let targets = target::targets(session, &args.resources, &args.files, args.all_namespaces).await?;
    let (mut errors, mut first) = (Vec::new(), true);
    for target in targets {
        let found = match find(session, &target, &args.selectors).await {
            Ok(found) => found,
            Err(error) => {
                errors.push(error);
                continue;
            }
        };
        for found in found {
            if !first {
                stdout::data("\n\n")?;
            }
            first = false;
            stdout::data(&describe(session, &found, args.show_events).await?)?;
        }
    }
    match errors.len() {
        0 if first => {
            stdout::say(&format!("No resources found in {} namespace.", session.namespace()));
            Ok(())
        }
        0 => Ok(()),
        1 => Err(errors.remove(0)),
        _ => Err(CliError::Many(errors)),
    }
}

/// The objects of a target; a name that is none is taken for the beginning of names.
async fn find(session: &Session, target: &Target, selectors: &SelectorArgs) -> CliResult<Vec<Found>> {
    let error = match target::fetch(session, std::slice::from_ref(target), selectors, true).await {
        Ok(found) => return Ok(found),
        Err(error) => error,
    };
    let (Some(prefix), true) = (&target.name, error.is(strata_model::status::Reason::NotFound)) else {
        return Err(error);
    };
    let all = session.list_all(&target.resource, &target.namespace, ListOptions::default()).await?.items;
    let alike: Vec<Found> = all
        .into_iter()
        .filter(|object| object.meta().name.starts_with(prefix))
        .map(|object| Found { resource: target.resource.clone(), object })
        .collect();
    if alike.is_empty() { Err(error) } else { Ok(alike) }
}

async fn describe(session: &Session, found: &Found, events: bool) -> CliResult<String> {
    let object = value_of(&found.resource, &found.object)?;
    let id = &found.resource.id;
    let own = PAGES.iter().find(|(group, resource, ..)| id.group == *group && id.resource == *resource);
    let related = match own {
        Some((_, _, related, _)) => self::related(session, *related, &object).await?,
        None => Vec::new(),
    };
    let subject = Subject { object: &object, related, now: Timestamp::now() };
    let mut page = Page::default();
    match own {
        Some((_, _, _, describe)) => describe(&mut page, &subject),
        None => generic::describe(&mut page, &subject),
    }
    if events {
        match self::events(session, &object).await {
            Ok(events) => page.events(&events, subject.now),
            Err(error) => page.line(0, &format!("Events:\tcannot be read: {}", error.lines("").join(" "))),
        }
    }
    page.finish().map_err(|e| usage(e.to_string()))
}

async fn list(session: &Session, word: &str, namespace: &str, options: ListOptions) -> CliResult<Vec<Value>> {
    let resource = session.lookup(word).await?;
    let items = session.list_all(&resource, namespace, options).await?.items;
    items.iter().map(|item| value_of(&resource as &ResourceType, item)).collect()
}

async fn related(session: &Session, related: Related, object: &Value) -> CliResult<Vec<Value>> {
    let namespace = object["metadata"]["namespace"].as_str().unwrap_or_default();
    let name = object["metadata"]["name"].as_str().unwrap_or_default();
    let owned = |all: Vec<Value>| -> Vec<Value> {
        let uid = &object["metadata"]["uid"];
        let controls = |o: &Value| {
            let owners = o["metadata"]["ownerReferences"].as_array();
            owners.into_iter().flatten().any(|owner| owner["controller"] == true && owner["uid"] == *uid)
        };
        all.into_iter().filter(controls).collect()
    };
    Ok(match related {
        Related::Nothing => Vec::new(),
        Related::ReplicaSets => {
            owned(list(session, "replicasets.apps", namespace, ListOptions::default()).await?)
        }
        Related::OwnPods => owned(list(session, "pods", namespace, ListOptions::default()).await?),
        Related::PodsOnNode => {
            let field_selector = format!("spec.nodeName={name}");
            list(session, "pods", "", ListOptions { field_selector, ..ListOptions::default() }).await?
        }
    })
}

/// The newest events about an object, oldest first.
async fn events(session: &Session, object: &Value) -> CliResult<Vec<Value>> {
    let metadata = &object["metadata"];
    let text = |field: &str| metadata[field].as_str().unwrap_or_default();
    let namespace = if text("namespace").is_empty() { "default" } else { text("namespace") };
    let field_selector = format!("involvedObject.name={},involvedObject.uid={}", text("name"), text("uid"));
    let mut events =
        list(session, "events", namespace, ListOptions { field_selector, ..ListOptions::default() }).await?;
    events.sort_by_cached_key(|event| page::event_time(event).to_owned());
    Ok(events.split_off(events.len().saturating_sub(MAX_EVENTS)))
}

#[cfg(test)]
mod tests;
