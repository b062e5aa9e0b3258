//! `set image` and `set env`: the two parts of a pod template that change most often.

use clap::{Args, Subcommand};
use serde_json::{Map, Value, json};
use strata_client::options::Patch;

use crate::commands::error::{CliResult, usage};
use crate::commands::printing::{WriteArgs, warn};
use crate::commands::session::Session;
use crate::commands::target::{self, FileArgs, Found, SelectorArgs};

/// Help behind the flags.
pub const EXAMPLES: &str = "\
Examples:
  strata set image deployment/web nginx=nginx:1.27         container nginx gets a new image, step by step
  strata set image deployment/web '*=nginx:1.27'           all containers
  strata set env deployment/web MODE=fast DEBUG-           sets one variable, removes another";

/// What is set.
#[derive(Debug, Subcommand)]
pub enum SetCommand {
    /// The images of containers: CONTAINER=IMAGE, or *=IMAGE for all
    Image(SetArgs),
    /// Environment variables: NAME=VALUE sets, NAME- removes
    Env(SetEnvArgs),
}

/// Arguments of both.
#[derive(Debug, Args)]
pub struct SetArgs {
    /// TYPE NAME or TYPE/NAME, and then the changes
    #[arg(value_name = "TYPE NAME | TYPE/NAME, CHANGE")]
    arguments: Vec<String>,
    #[command(flatten)]
    selectors: SelectorArgs,
    #[command(flatten)]
    files: FileArgs,

    /// All objects of the type in the namespace
    #[arg(long)]
    all: bool,

    #[command(flatten)]
    write: WriteArgs,
}

/// Arguments of `set env`.
#[derive(Debug, Args)]
pub struct SetEnvArgs {
    #[command(flatten)]
    set: SetArgs,

    /// Only in containers of this name; * is all
    #[arg(short = 'c', long, value_name = "NAME", default_value = "*")]
    containers: String,
}

/// The places where types keep the pod they are about.
const POD_SPECS: [&str; 3] = ["/spec/template/spec", "/spec/jobTemplate/spec/template/spec", "/spec"];

/// The lists of containers in a pod.
const CONTAINER_LISTS: [&str; 2] = ["containers", "initContainers"];

/// Runs the command.
pub async fn run(session: &Session, command: SetCommand) -> CliResult {
    match command {
        SetCommand::Image(args) => {
            let (words, changes) = split(&args.arguments);
            let changes = image_changes(&changes)?;
            let patch = |object: &Value| image_patch(object, &changes);
            write(session, &args, &words, "image updated", patch).await
        }
        SetCommand::Env(SetEnvArgs { set: args, containers }) => {
            let (words, changes) = split(&args.arguments);
            if changes.is_empty() {
                return Err(usage(
                    "at least one change is needed: NAME=VALUE sets a variable, NAME- removes it",
                ));
            }
            let patch = |object: &Value| env_patch(object, &containers, &changes);
            write(session, &args, &words, "env updated", patch).await
        }
    }
}

async fn write(
    session: &Session,
    args: &SetArgs,
    words: &[String],
    done: &str,
    patch: impl Fn(&Value) -> CliResult<Option<Value>>,
) -> CliResult {
    let targets = target::targets(session, words, &args.files, false).await?;
    for Found { resource, object } in target::fetch(session, &targets, &args.selectors, args.all).await? {
        let value = object.to_value()?;
        let Some(patch) = patch(&value)? else { continue };
        if args.write.client_only() {
            args.write.report(&resource, &object, done)?;
            continue;
        }
        let options = args.write.options("strata-set");
        let patch = Patch::Strategic(patch);
        let written = session.client.patch(&resource, &object.key(), "", &patch, &options).await?;
        warn(&written.warnings);
        args.write.report(&resource, &written.object, done)?;
    }
    Ok(())
}

/// Names of objects, and the changes behind them.
fn split(arguments: &[String]) -> (Vec<String>, Vec<String>) {
    let is_change = |a: &String| a.contains('=') || (a.ends_with('-') && !a.contains('/'));
    let at = arguments.iter().position(is_change).unwrap_or(arguments.len());
    (arguments[..at].to_vec(), arguments[at..].to_vec())
}

fn image_changes(changes: &[String]) -> CliResult<Vec<(String, String)>> {
    if changes.is_empty() {
        return Err(usage(
            "at least one image update is required: CONTAINER=IMAGE, such as nginx=nginx:1.27",
        ));
    }
    changes
        .iter()
        .map(|change| match change.split_once('=') {
            Some((name, image)) if !name.is_empty() && !image.is_empty() => {
                Ok((name.to_owned(), image.to_owned()))
            }
            _ => Err(usage(format!("{change:?}: write CONTAINER=IMAGE, such as nginx=nginx:1.27"))),
        })
        .collect()
}

/// The path of the pod in an object, and the pod.
fn pod_spec(object: &Value) -> CliResult<(&'static str, &Value)> {
    let place = |path: &&'static str| {
        object.pointer(path).filter(|spec| spec["containers"].is_array()).map(|spec| (*path, spec))
    };
    POD_SPECS.iter().find_map(place).ok_or_else(|| usage("this object has no containers"))
}

/// A patch of named elements of the container lists; `None` where there are none.
fn container_patch(
    path: &str,
    spec: &Value,
    changes: impl Fn(&str, &Value) -> Option<Map<String, Value>>,
) -> Option<Value> {
    let mut pod = Map::new();
    for list in CONTAINER_LISTS {
        let containers = spec[list].as_array().map_or(&[][..], Vec::as_slice);
        let mut changed = Vec::new();
        for container in containers {
            let name = container["name"].as_str().unwrap_or_default();
            if let Some(mut change) = changes(name, container) {
                change.insert("name".to_owned(), json!(name));
                changed.push(Value::Object(change));
            }
        }
        if !changed.is_empty() {
            let order: Vec<Value> = containers.iter().map(|c| json!({"name": c["name"]})).collect();
            pod.insert(format!("$setElementOrder/{list}"), Value::Array(order));
            pod.insert(list.to_owned(), Value::Array(changed));
        }
    }
    let wrap = |inner: Value, part: &str| json!({ part: inner });
    (!pod.is_empty()).then(|| path.rsplit('/').filter(|p| !p.is_empty()).fold(Value::Object(pod), wrap))
}

fn image_patch(object: &Value, changes: &[(String, String)]) -> CliResult<Option<Value>> {
    let (path, spec) = pod_spec(object)?;
    let known: Vec<&str> = CONTAINER_LISTS
        .iter()
        .flat_map(|list| spec[*list].as_array().into_iter().flatten())
        .filter_map(|c| c["name"].as_str())
        .collect();
    if let Some((name, _)) = changes.iter().find(|(name, _)| name != "*" && !known.contains(&name.as_str())) {
        return Err(usage(format!(
            "unable to find container named \"{name}\"; there are: {}",
            known.join(", ")
        )));
    }
    Ok(container_patch(path, spec, |name, container| {
        let change = changes.iter().rev().find(|(wanted, _)| wanted == "*" || wanted == name);
        let (_, image) = change.filter(|(_, image)| container["image"] != **image)?;
        Some(Map::from_iter([("image".to_owned(), json!(image))]))
    }))
}

fn env_patch(object: &Value, containers: &str, changes: &[String]) -> CliResult<Option<Value>> {
    let (path, spec) = pod_spec(object)?;
    let mut env = Vec::new();
    for change in changes {
        match (change.split_once('='), change.strip_suffix('-')) {
            (Some((name, value)), _) if !name.is_empty() => env.push(json!({"name": name, "value": value})),
            (None, Some(name)) => env.push(json!({"name": name, "$patch": "delete"})),
            _ => return Err(usage(format!("{change:?}: write NAME=VALUE to set, NAME- to remove"))),
        }
    }
    let patch = container_patch(path, spec, |name, _| {
        let meant = containers == "*" || containers == name;
        meant.then(|| Map::from_iter([("env".to_owned(), json!(env))]))
    });
    match patch {
        Some(patch) => Ok(Some(patch)),
        None => Err(usage(format!("unable to find container named \"{containers}\""))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn deployment() -> Value {
        json!({"spec": {"template": {"spec": {"containers": [{"name": "a", "image": "x"}, {"name": "b", "image": "y"}]}}}})
    }

    #[test]
    fn images_are_patched_by_name() {
        let change = |name: &str, image: &str| vec![(name.to_owned(), image.to_owned())];
        let patch = image_patch(&deployment(), &change("b", "z")).unwrap().unwrap();
        assert_eq!(
            patch.pointer("/spec/template/spec").unwrap(),
            &json!({"containers": [{"name": "b", "image": "z"}],
                "$setElementOrder/containers": [{"name": "a"}, {"name": "b"}]})
        );
        assert_eq!(image_patch(&deployment(), &change("b", "y")).unwrap(), None);
        let all = image_patch(&deployment(), &change("*", "z")).unwrap().unwrap();
        assert_eq!(all.pointer("/spec/template/spec/containers").unwrap().as_array().unwrap().len(), 2);
        let error = image_patch(&deployment(), &change("c", "z")).unwrap_err().to_string();
        assert!(error.contains("there are: a, b"), "{error}");
        assert!(image_patch(&json!({"spec": {}}), &change("c", "z")).is_err());
    }

    #[test]
    fn variables_are_set_and_removed() {
        let changes = ["A=1".to_owned(), "B-".to_owned()];
        let patch = env_patch(&deployment(), "a", &changes).unwrap().unwrap();
        assert_eq!(
            patch.pointer("/spec/template/spec/containers/0/env").unwrap(),
            &json!([{"name": "A", "value": "1"}, {"name": "B", "$patch": "delete"}])
        );
        assert!(env_patch(&deployment(), "zz", &changes).is_err());
    }
}
