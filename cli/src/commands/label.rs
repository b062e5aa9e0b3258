//! `label` and `annotate`: keys and values in an object's metadata.

use clap::Args;
use serde_json::{Map, Value, json};
use strata_client::options::Patch;

use crate::commands::error::{CliResult, usage};
use crate::commands::printing::{WriteArgs, warn};
use crate::commands::session::Session;
use crate::commands::target::{self, FileArgs, Found, SelectorArgs};
use crate::output::stdout;

/// Help of `label` behind the flags.
pub const LABEL_EXAMPLES: &str = "\
Examples:
  strata label pod web-1 tier=front                sets a label
  strata label pods -l app=web tier=front          on all that match
  strata label pod web-1 tier=back --overwrite     changes it
  strata label pod web-1 tier-                     removes it
  strata label pod web-1 --list                    shows all";

/// Help of `annotate` behind the flags.
pub const ANNOTATE_EXAMPLES: &str = "\
Examples:
  strata annotate deployment web note='for the launch'
  strata annotate deployment web note-             removes it";

/// Arguments of `label` and `annotate`.
#[derive(Debug, Args)]
pub struct LabelArgs {
    /// TYPE NAME… or TYPE/NAME…, and then KEY=VALUE to set and KEY- to remove
    #[arg(value_name = "TYPE NAME | TYPE/NAME, KEY=VALUE, KEY-")]
    arguments: Vec<String>,
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

    /// Change values that are already there
    #[arg(long)]
    overwrite: bool,

    /// Show what is there
    #[arg(long)]
    list: bool,

    #[command(flatten)]
    write: WriteArgs,
}

/// Which part of the metadata, and how it is spoken of.
struct Part {
    field: &'static str,
    done: &'static str,
    undone: &'static str,
    same: &'static str,
    manager: &'static str,
}

const LABELS: Part = Part {
    field: "labels",
    done: "labeled",
    undone: "unlabeled",
    same: "not labeled",
    manager: "strata-label",
};
const ANNOTATIONS: Part = Part {
    field: "annotations",
    done: "annotated",
    undone: "annotated",
    same: "annotated",
    manager: "strata-annotate",
};

/// Runs `label`.
pub async fn label(session: &Session, args: LabelArgs) -> CliResult {
    run(session, args, &LABELS).await
}

/// Runs `annotate`.
pub async fn annotate(session: &Session, args: LabelArgs) -> CliResult {
    run(session, args, &ANNOTATIONS).await
}

/// What is to be set and what is to go.
#[derive(Debug, Default, PartialEq, Eq)]
struct Changes {
    set: Vec<(String, String)>,
    remove: Vec<String>,
}

/// Takes the changes off the end of the arguments: what stands before them names objects.
fn split(arguments: &[String]) -> CliResult<(Vec<String>, Changes)> {
    let is_change = |a: &String| a.contains('=') || (a.ends_with('-') && a.len() > 1);
    let at = arguments.iter().position(is_change).unwrap_or(arguments.len());
    let mut changes = Changes::default();
    for argument in &arguments[at..] {
        match (argument.split_once('='), argument.strip_suffix('-')) {
            (Some((key, value)), _) if !key.is_empty() => {
                changes.set.push((key.to_owned(), value.to_owned()))
            }
            (None, Some(key)) => changes.remove.push(key.to_owned()),
            _ => {
                return Err(usage(format!(
                    "{argument:?}: write KEY=VALUE to set, KEY- to remove; names come before"
                )));
            }
        }
    }
    if let Some((key, _)) = changes.set.iter().find(|(key, _)| changes.remove.contains(key)) {
        return Err(usage(format!("can not both modify and remove {key:?} in the same command")));
    }
    Ok((arguments[..at].to_vec(), changes))
}

/// The merge patch of changes for an object, and whether it changes anything.
fn patch(part: &Part, changes: &Changes, object: &Value, overwrite: bool) -> CliResult<(Value, bool)> {
    let current = &object["metadata"][part.field];
    let mut members = Map::new();
    let mut differs = false;
    for (key, value) in &changes.set {
        match current[key].as_str() {
            Some(now) if now == value => {}
            Some(now) if !overwrite => {
                return Err(usage(format!("'{key}' already has a value ({now}), and --overwrite is false")));
            }
            _ => differs = true,
        }
        members.insert(key.clone(), Value::String(value.clone()));
    }
    for key in &changes.remove {
        differs |= !current[key].is_null();
        members.insert(key.clone(), Value::Null);
    }
    Ok((json!({"metadata": {part.field: members}}), differs))
}

async fn run(session: &Session, args: LabelArgs, part: &Part) -> CliResult {
    let (words, changes) = split(&args.arguments)?;
    if changes == Changes::default() && !args.list {
        return Err(usage(format!(
            "at least one change is needed: KEY=VALUE sets one of the {}, KEY- removes it",
            part.field
        )));
    }
    let targets = target::targets(session, &words, &args.files, args.all_namespaces).await?;
    for found in target::fetch(session, &targets, &args.selectors, args.all).await? {
        if args.list {
            show(part, &found)?;
        } else {
            change(session, &args, part, &changes, &found).await?;
        }
    }
    Ok(())
}

fn show(part: &Part, found: &Found) -> CliResult {
    let value = found.object.to_value()?;
    for (key, text) in value["metadata"][part.field].as_object().into_iter().flatten() {
        stdout::data(&format!("{key}={}\n", text.as_str().unwrap_or_default()))?;
    }
    Ok(())
}

async fn change(
    session: &Session,
    args: &LabelArgs,
    part: &Part,
    changes: &Changes,
    found: &Found,
) -> CliResult {
    let (resource, object) = (&found.resource, &found.object);
    let (patch, differs) = patch(part, changes, &object.to_value()?, args.overwrite)?;
    for key in &changes.remove {
        if part.field == LABELS.field && object.meta().label(key).is_none() {
            stdout::say(&format!("label \"{key}\" not found."));
        }
    }
    let done = match (differs, changes.set.is_empty()) {
        (false, _) => part.same,
        (true, true) => part.undone,
        (true, false) => part.done,
    };
    if args.write.client_only() || !differs {
        return args.write.report(resource, object, done);
    }
    let options = args.write.options(part.manager);
    let written = session.client.patch(resource, &object.key(), "", &Patch::Merge(patch), &options).await?;
    warn(&written.warnings);
    args.write.report(resource, &written.object, done)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn split_words(words: &[&str]) -> CliResult<(Vec<String>, Changes)> {
        split(&words.iter().map(ToString::to_string).collect::<Vec<_>>())
    }

    #[test]
    fn changes_stand_behind_names() {
        let (names, changes) = split_words(&["pod", "a", "x=1", "y-", "e="]).unwrap();
        assert_eq!(names, ["pod", "a"]);
        assert_eq!(changes.set, [("x".to_owned(), "1".to_owned()), ("e".to_owned(), String::new())]);
        assert_eq!(changes.remove, ["y"]);
        assert!(split_words(&["pod", "x=1", "a"]).unwrap_err().to_string().contains("names come before"));
        assert!(split_words(&["pod", "a", "x=1", "x-"]).is_err());
    }

    #[test]
    fn values_are_not_overwritten_unless_asked() {
        let object = json!({"metadata": {"labels": {"x": "1"}}});
        let set = |value: &str| Changes { set: vec![("x".into(), value.into())], remove: vec![] };
        assert!(
            patch(&LABELS, &set("2"), &object, false)
                .unwrap_err()
                .to_string()
                .contains("--overwrite is false")
        );
        assert!(!patch(&LABELS, &set("1"), &object, false).unwrap().1);
        assert!(patch(&LABELS, &set("2"), &object, true).unwrap().1);
        let gone = Changes { set: vec![], remove: vec!["x".into(), "z".into()] };
        let (change, differs) = patch(&LABELS, &gone, &object, false).unwrap();
        assert!(differs);
        assert_eq!(change, json!({"metadata": {"labels": {"x": null, "z": null}}}));
    }
}
