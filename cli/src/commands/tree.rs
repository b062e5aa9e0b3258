//! `tree`: what an object owns, down to processes, with status and age; live with `-w`.

use std::sync::Arc;

use clap::Args;
use jiff::Timestamp;
use serde_json::{Value, json};
use strata_model::age;
use strata_model::resource::ResourceType;

use crate::commands::error::{CliResult, usage};
use crate::commands::session::Session;
use crate::commands::stir::Stir;
use crate::commands::target::{self, FileArgs, SelectorArgs, Target, value_of};
use crate::output::format::pretty_json;
use crate::output::stdout;
use crate::output::style::{Painter, Tone};
use crate::why::{Line, gather};

/// Help behind the flags.
pub const EXAMPLES: &str = "\
Examples:
  strata tree deployment/web                       all that it owns, of every type, and how it is
  strata tree deployment/web -w                    live, until Ctrl-C
  strata tree deployments -A";

/// Spaces between columns.
const GAP: usize = 3;

/// Arguments of `tree`.
#[derive(Debug, Args)]
pub struct TreeArgs {
    /// TYPE/NAME… or TYPE NAME…, or a TYPE for all of it
    #[arg(value_name = "TYPE/NAME")]
    resources: Vec<String>,
    #[command(flatten)]
    selectors: SelectorArgs,
    #[command(flatten)]
    files: FileArgs,

    /// In all namespaces
    #[arg(short = 'A', long)]
    all_namespaces: bool,

    /// Show it again with every change, until Ctrl-C
    #[arg(short = 'w', long, conflicts_with = "output")]
    watch: bool,

    /// As json, for programs
    #[arg(short = 'o', long, value_name = "json", value_parser = ["json"])]
    output: Option<String>,
}

/// Runs the command.
pub async fn run(session: &Session, args: TreeArgs) -> CliResult {
    if args.resources.is_empty() && args.files.filenames.is_empty() {
        return Err(usage("which object? write TYPE/NAME, such as `strata tree deployment/web`"));
    }
    let targets = target::targets(session, &args.resources, &args.files, args.all_namespaces).await?;
    if !args.watch {
        let lines = lines(session, &args, &targets).await?;
        if args.output.is_some() {
            return Ok(stdout::data(&pretty_json(&json!(lines)))?);
        }
        if lines.is_empty() {
            stdout::say("No resources found");
            return Ok(());
        }
        return Ok(stdout::data(&text(&lines, painter()))?);
    }
    let mut types: Vec<Arc<ResourceType>> = gather::owned_types(session.registry().await?);
    types.extend(targets.iter().map(|target| Arc::clone(&target.resource)));
    types.sort_by(|a, b| a.id.cmp(&b.id));
    types.dedup_by(|a, b| a.id == b.id);
    let namespaces: Vec<&str> = targets.iter().map(|target| target.namespace.as_str()).collect();
    let namespace = match namespaces.as_slice() {
        [first, rest @ ..] if rest.iter().all(|other| other == first) => first,
        _ => "",
    };
    let mut stir = Stir::of(session, &types, namespace);
    let mut live = stdout::Live::default();
    loop {
        let now = text(&lines(session, &args, &targets).await?, painter());
        live.show(now)?;
        stir.next().await;
    }
}

fn painter() -> Painter {
    Painter { colour: stdout::wants_colour() }
}

async fn lines(session: &Session, args: &TreeArgs, targets: &[Target]) -> CliResult<Vec<Line>> {
    let registry = session.registry().await?;
    let mut lines = Vec::new();
    for found in target::fetch(session, targets, &args.selectors, true).await? {
        let root: Value = value_of(&found.resource, &found.object)?;
        lines.push(gather::owned(&session.client, registry, &root, Timestamp::now()).await?);
    }
    Ok(lines)
}

/// A row before it is laid out.
struct Row {
    name: String,
    status: String,
    age: String,
    tone: Tone,
}

/// The trees as text, one row an object.
fn text(lines: &[Line], painter: Painter) -> String {
    let mut rows = vec![Row {
        name: "OBJECT".to_owned(),
        status: "STATUS".to_owned(),
        age: "AGE".to_owned(),
        tone: Tone::Faint,
    }];
    for line in lines {
        draw(line, "", "", &mut rows);
    }
    let column =
        |of: fn(&Row) -> &str| rows.iter().map(|row| of(row).chars().count()).max().unwrap_or(0) + GAP;
    let (names, statuses) = (column(|row| &row.name), column(|row| &row.status));
    let pad = |text: &str, width: usize| " ".repeat(width.saturating_sub(text.chars().count()));
    let line = |row: &Row| {
        let (name, status) = (pad(&row.name, names), pad(&row.status, statuses));
        let text = format!("{}{name}{}{status}{}", row.name, painter.paint(row.tone, &row.status), row.age);
        format!("{}\n", text.trim_end())
    };
    rows.iter().map(line).collect()
}

fn draw(line: &Line, branch: &str, below: &str, rows: &mut Vec<Row>) {
    let object = match line.kind.ends_with("container") {
        true => format!("{} {}", line.kind, line.name),
        false => format!("{}/{}", line.kind, line.name),
    };
    rows.push(Row {
        name: format!("{branch}{object}"),
        status: line.actual.clone(),
        age: line.age_seconds.map(age::human).unwrap_or_default(),
        tone: match (line.converged, line.settled()) {
            (true, true) => Tone::Good,
            (true, false) => Tone::Waiting,
            (false, _) => Tone::Bad,
        },
    });
    for (at, child) in line.children.iter().enumerate() {
        let last = at + 1 == line.children.len();
        let (corner, bar) = if last { ("└─ ", "   ") } else { ("├─ ", "│  ") };
        draw(child, &format!("{below}{corner}"), &format!("{below}{bar}"), rows);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_stand_under_their_owner_with_status_and_age() {
        let line = |kind: &str, name: &str, children: Vec<Line>| Line {
            kind: kind.to_owned(),
            name: name.to_owned(),
            actual: "ready".to_owned(),
            converged: true,
            age_seconds: Some(61),
            children,
            ..Line::default()
        };
        let set = line("ReplicaSet", "web-1", vec![line("Pod", "web-1-a", Vec::new())]);
        let tree = line("Deployment", "web", vec![set, line("ConfigMap", "c", Vec::new())]);
        let expected = "\
OBJECT                STATUS   AGE
Deployment/web        ready    61s
├─ ReplicaSet/web-1   ready    61s
│  └─ Pod/web-1-a     ready    61s
└─ ConfigMap/c        ready    61s
";
        assert_eq!(text(&[tree], Painter::PLAIN), expected);
    }
}
