//! `history`: who changed an object, when, how and in which fields, within the kept history.

use std::sync::Arc;

use clap::{Args, ValueEnum};
use jiff::Timestamp;
use serde_json::{Value, json};
use strata_client::history::{Change, ChangeKind, Changes, ChangesOptions};
use strata_model::age;

use crate::commands::error::{CliResult, usage};
use crate::commands::moment::MomentArg;
use crate::commands::session::Session;
use crate::commands::target::{self, FileArgs, Target, display};
use crate::output::format::pretty_json;
use crate::output::{stdout, table, yaml};

/// Help behind the flags.
pub const EXAMPLES: &str = "\
Examples:
  strata history deployment/web                    every change that is kept, newest last
  strata history deployment/web -o wide            with all fields, instants, requests and reasons
  strata history pods --since 1m                   what happened to all pods of the namespace
  strata history deployment/web -o json            for programs

How long history is kept is up to the server: --history-minutes of `strata up` and `strata apiserver`.";

/// How many changes are asked for at most where the user does not say.
const LIMIT: u64 = 500;
/// How many fields are named in the short form.
const FIELDS: usize = 3;

/// The forms of `history`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Form {
    Wide,
    Json,
    Yaml,
}

/// Arguments of `history`.
#[derive(Debug, Args)]
pub struct HistoryArgs {
    /// TYPE/NAME… or TYPE NAME…, or a TYPE for all of it
    #[arg(value_name = "TYPE/NAME")]
    resources: Vec<String>,
    #[command(flatten)]
    files: FileArgs,

    /// In all namespaces
    #[arg(short = 'A', long)]
    all_namespaces: bool,

    /// Only what happened after this moment: a revision, how long ago, or an instant
    #[arg(long, value_name = "MOMENT")]
    since: Option<MomentArg>,

    /// Only what happened up to this moment
    #[arg(long, value_name = "MOMENT")]
    until: Option<MomentArg>,

    /// The newest so many changes
    #[arg(long, value_name = "N", default_value_t = LIMIT, value_parser = clap::value_parser!(u64).range(1..=10_000))]
    limit: u64,

    /// No line of headers
    #[arg(long)]
    no_headers: bool,

    /// The form: wide, json or yaml
    #[arg(short = 'o', long, value_enum, value_name = "wide|json|yaml", hide_possible_values = true)]
    output: Option<Form>,
}

/// Runs the command.
pub async fn run(session: &Session, args: HistoryArgs) -> CliResult {
    if args.resources.is_empty() && args.files.filenames.is_empty() {
        return Err(usage("which object? write TYPE/NAME, such as `strata history deployment/web`"));
    }
    let targets = target::targets(session, &args.resources, &args.files, args.all_namespaces).await?;
    let revision = async |moment: &Option<MomentArg>| match moment {
        Some(moment) => Ok(moment.find(session).await?.revision),
        None => CliResult::Ok(0),
    };
    let options = ChangesOptions {
        after: revision(&args.since).await?,
        through: revision(&args.until).await?,
        limit: args.limit,
        include_objects: false,
    };
    let mut told = Vec::new();
    for target in &targets {
        let changes = session.client.changes(&target.resource, &target.key(), options).await?;
        if changes.changes.is_empty()
            && let Some(name) = &target.name
        {
            // Of what never was there is no history; else it says why not.
            session.get(&target.resource, &target.namespace, name).await?;
        }
        told.push((target, changes));
    }
    match args.output {
        Some(Form::Json) => stdout::data(&pretty_json(&documents(&told)))?,
        Some(Form::Yaml) => stdout::data(&yaml::to_string(&documents(&told)))?,
        None | Some(Form::Wide) => {
            stdout::data(&text(&told, &args, Timestamp::now()))?;
            told.iter().for_each(|(target, changes)| remark(target, changes));
        }
    }
    Ok(())
}

/// Says what a table cannot: that nothing is kept, or that there was more.
fn remark(target: &Target, changes: &Changes) {
    let what = match &target.name {
        Some(name) => display(&target.resource, name),
        None => target.resource.id.to_string(),
    };
    if changes.changes.is_empty() {
        stdout::say(&format!(
            "{what} did not change since revision {}, the oldest that is kept",
            changes.oldest
        ));
    } else if changes.truncated {
        stdout::say(&format!("hint: older changes of {what} are left out; --limit shows more"));
    }
}

fn text(told: &[(&Target, Changes)], args: &HistoryArgs, now: Timestamp) -> String {
    let wide = args.output == Some(Form::Wide);
    let named = !matches!(told, [(Target { name: Some(_), .. }, _)]);
    let mut lines = Vec::new();
    for (target, changes) in told {
        for change in &changes.changes {
            let mut line = Vec::new();
            if args.all_namespaces {
                line.push(change.key.namespace.clone());
            }
            if named {
                line.push(display(&target.resource, &change.key.name));
            }
            line.extend(cells(change, wide, now));
            lines.push(line);
        }
    }
    if lines.is_empty() {
        return String::new();
    }
    if !args.no_headers {
        let head = [(args.all_namespaces, "NAMESPACE"), (named, "OBJECT"), (true, "REVISION"), (true, "AGE")]
            .into_iter()
            .chain([(true, "VERB"), (true, "USER"), (true, "MANAGER"), (true, "CHANGED")])
            .chain([(wide, "TIME"), (wide, "REQUEST"), (wide, "CAUSE")]);
        lines.insert(0, head.filter(|(is, _)| *is).map(|(_, word)| word.to_owned()).collect());
    }
    table::layout(&lines, &mut Vec::new())
}

fn cells(change: &Change, wide: bool, now: Timestamp) -> Vec<String> {
    let seconds = change.time.parse::<Timestamp>().ok().map(|time| now.as_second() - time.as_second());
    let verb = match change.subresource.as_str() {
        "" => change.verb.clone(),
        subresource => format!("{}/{subresource}", change.verb),
    };
    let or_none = |text: &str| if text.is_empty() { "<none>".to_owned() } else { text.to_owned() };
    let mut cells = vec![
        change.revision.to_string(),
        seconds.map_or_else(|| "<unknown>".to_owned(), age::human),
        or_none(&verb),
        or_none(&change.user),
        or_none(&change.manager),
        changed(change, wide),
    ];
    if wide {
        cells.extend([or_none(&change.time), or_none(&change.request), or_none(&change.cause)]);
    }
    cells
}

fn changed(change: &Change, wide: bool) -> String {
    match change.kind {
        ChangeKind::Added => "<created>".to_owned(),
        ChangeKind::Deleted => "<deleted>".to_owned(),
        ChangeKind::Modified => {
            let shown = if wide { change.fields.len() } else { FIELDS };
            let mut text = change.fields.iter().take(shown).map(String::as_str).collect::<Vec<_>>().join(",");
            let left = change.fields.len().saturating_sub(shown);
            if left > 0 || change.more_fields {
                text.push_str(&format!(",… (+{left}{})", if change.more_fields { " or more" } else { "" }));
            }
            text
        }
    }
}

fn documents(told: &[(&Target, Changes)]) -> Value {
    let one = |(target, changes): &(&Target, Changes)| {
        let type_of = |change: &Change| match change.kind {
            ChangeKind::Added => "ADDED",
            ChangeKind::Modified => "MODIFIED",
            ChangeKind::Deleted => "DELETED",
        };
        let items: Vec<Value> = changes
            .changes
            .iter()
            .map(|change| {
                json!({
                    "revision": change.revision, "time": change.time, "type": type_of(change),
                    "namespace": change.key.namespace, "name": change.key.name,
                    "user": change.user, "verb": change.verb, "subresource": change.subresource,
                    "manager": change.manager, "request": change.request, "cause": change.cause,
                    "fields": change.fields, "moreFields": change.more_fields,
                })
            })
            .collect();
        json!({
            "resource": Arc::clone(&target.resource).id.to_string(),
            "oldestRevision": changes.oldest, "throughRevision": changes.through,
            "truncated": changes.truncated, "changes": items,
        })
    };
    match told {
        [only] => one(only),
        many => Value::Array(many.iter().map(one).collect()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_short_form_names_some_fields_and_counts_the_rest() {
        let fields = ["a", "b", "c", "d"].map(str::to_owned).to_vec();
        let change = Change { fields, ..Change::default() };
        assert_eq!(changed(&change, false), "a,b,c,… (+1)");
        assert_eq!(changed(&change, true), "a,b,c,d");
        let created = Change { kind: ChangeKind::Added, ..Change::default() };
        assert_eq!(changed(&created, false), "<created>");
    }

    #[test]
    fn what_is_not_known_is_none() {
        let change =
            Change { revision: 7, verb: "patch".into(), subresource: "scale".into(), ..Change::default() };
        let cells = cells(&change, false, Timestamp::UNIX_EPOCH);
        assert_eq!(cells, ["7", "<unknown>", "patch/scale", "<none>", "<none>", ""]);
    }
}
