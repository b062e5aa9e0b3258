//! `app diff` and `app plan`: what a sync would change, field by field or object by object, before it does. Renders the
//! source on this machine, at any revision.

use clap::Args;
use serde_json::Value;
use strata_stack::application::preview::{Change, Preview, preview};
use strata_stack::application::source::git::Git;

use super::common::{self, AppArg};
use crate::commands::error::{CliError, CliResult};
use crate::commands::session::Session;
use crate::output::difference::{comparable, unified};
use crate::output::stdout;
use crate::output::style::{Painter, Tone};

/// Exit code where something differs.
const DIFFERENT: u8 = 1;
/// Exit code where it cannot be told.
const TROUBLE: u8 = 2;
/// Fields that are named of one object.
const MOST_FIELDS: usize = 4;

/// Arguments of `app diff` and `app plan`.
#[derive(Debug, Args)]
pub struct DiffArgs {
    #[command(flatten)]
    app: AppArg,
    /// At this branch, tag or commit instead of the Application's own
    #[arg(long, value_name = "REVISION")]
    revision: Option<String>,
}

/// Shows fields.
pub async fn diff(session: &Session, args: DiffArgs) -> CliResult {
    told(Box::pin(look(session, &args)).await, |preview, painter| {
        for change in &preview.changes {
            let (mut live, mut then) = (change.live.clone(), change.then.clone());
            comparable(&mut live, &mut then);
            let name = change.id.to_string();
            let (before, after) = (format!("LIVE/{name}"), format!("SOURCE/{name}"));
            stdout::data(&unified((&before, live.as_ref()), (&after, then.as_ref()), painter))?;
        }
        Ok(())
    })
}

/// Lists objects.
pub async fn plan(session: &Session, args: DiffArgs) -> CliResult {
    told(Box::pin(look(session, &args)).await, |preview, painter| {
        stdout::data(&list(preview, painter))?;
        Ok(())
    })
}

fn told(found: CliResult<Preview>, show: impl FnOnce(&Preview, Painter) -> CliResult) -> CliResult {
    let trouble = |error| CliError::Exit { code: TROUBLE, error: Box::new(error) };
    let preview = found.map_err(trouble)?;
    let painter = Painter { colour: stdout::wants_colour() };
    show(&preview, painter).map_err(trouble)?;
    for fault in &preview.faults {
        stdout::say(&format!("Warning: {fault}"));
    }
    for change in &preview.changes {
        if let Some(why) = &change.refused {
            stdout::say(&format!("Warning: {} would be refused: {why}", change.id));
        }
    }
    if preview.changes.is_empty() { Ok(()) } else { Err(CliError::Silent(DIFFERENT)) }
}

async fn look(session: &Session, args: &DiffArgs) -> CliResult<Preview> {
    let (_, object, _) = common::fetch(session, &args.app).await?;
    let git = Git::new(cache(), session.client.clone());
    let found = preview(&session.client, &git, &object, args.revision.as_deref()).await;
    found.map_err(|error| CliError::Local(Box::new(error)))
}

/// Where copies of repositories are kept for this user.
fn cache() -> Option<std::path::PathBuf> {
    let folder = match std::env::var_os("XDG_CACHE_HOME") {
        Some(cache) => std::path::PathBuf::from(cache),
        None => std::path::PathBuf::from(std::env::var_os("HOME")?).join(".cache"),
    };
    Some(folder.join("strata/repositories"))
}

fn list(preview: &Preview, painter: Painter) -> String {
    let mut text = String::new();
    let mut counts = [0; 3];
    for change in &preview.changes {
        let (at, sign, tone) = match (&change.live, &change.then) {
            (None, _) => (0, "+", Tone::Good),
            (Some(_), Some(_)) => (1, "~", Tone::Waiting),
            (Some(_), None) => (2, "-", Tone::Bad),
        };
        counts[at] += 1;
        let line = format!("{sign} {}{}", change.id, fields(change));
        text.push_str(&painter.paint(tone, &line));
        text.push('\n');
    }
    let [made, changed, deleted] = counts;
    let to = preview.revisions.join(", ");
    text.push_str(&format!(
        "{made} to make, {changed} to change, {deleted} to delete (where pruning is asked for), {} as they are; at {to}\n",
        preview.same
    ));
    text
}

fn fields(change: &Change) -> String {
    if change.fields.is_empty() {
        return String::new();
    }
    let mut named: Vec<String> = change.fields.iter().take(MOST_FIELDS).map(|f| named(change, f)).collect();
    if change.fields.len() > MOST_FIELDS {
        named.push(format!("{} more", change.fields.len() - MOST_FIELDS));
    }
    format!("  {}", named.join(", "))
}

/// A field with its values where they are short; never those of a Secret.
fn named(change: &Change, field: &str) -> String {
    let value = |of: &Option<Value>| {
        let pointer = field.replace(['.', '['], "/").replace(']', "");
        of.as_ref().and_then(|o| o.pointer(&pointer)).filter(|v| !v.is_object() && !v.is_array()).cloned()
    };
    match (value(&change.live), value(&change.then)) {
        _ if change.id.kind == "Secret" => field.to_owned(),
        (Some(before), Some(after)) => format!("{field}: {before} -> {after}"),
        _ => field.to_owned(),
    }
}
