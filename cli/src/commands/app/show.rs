//! `app list`, `app get` and `app history`: Applications for people. `get` draws the tree from the commit down to processes.

use std::sync::Arc;

use clap::Args;
use jiff::Timestamp;
use serde_json::{Value, json};
use strata_client::options::ListOptions;
use strata_model::object::ObjectKey;
use strata_model::resource::ResourceType;

use super::common::{self, AppArg, text, tone};
use crate::commands::error::CliResult;
use crate::commands::session::Session;
use crate::commands::stir::Stir;
use crate::commands::target::value_of;
use crate::output::format::pretty_json;
use crate::output::stdout;
use crate::output::style::{Painter, Tone};
use crate::output::table;
use crate::why::{Line, gather};

/// Spaces between columns.
const GAP: usize = 3;

/// Arguments of `app list`.
#[derive(Debug, Args)]
pub struct ListArgs {
    /// Only of this namespace; of all, if it is not given
    #[arg(short = 'N', long, value_name = "NAMESPACE")]
    app_namespace: Option<String>,
}

/// Arguments of `app get`.
#[derive(Debug, Args)]
pub struct GetArgs {
    #[command(flatten)]
    app: AppArg,
    /// Show it again with every change, until Ctrl-C
    #[arg(short = 'w', long, conflicts_with = "output")]
    watch: bool,
    /// As json, for programs
    #[arg(short = 'o', long, value_name = "json", value_parser = ["json"])]
    output: Option<String>,
}

/// Arguments of `app history`.
#[derive(Debug, Args)]
pub struct HistoryArgs {
    #[command(flatten)]
    app: AppArg,
}

fn print(lines: &[Vec<String>]) -> CliResult {
    Ok(stdout::data(&table::layout(lines, &mut Vec::new()))?)
}

/// Lists Applications.
pub async fn list(session: &Session, args: ListArgs) -> CliResult {
    let resource = common::resource(session).await?;
    let namespace = args.app_namespace.unwrap_or_default();
    let found = session.list_all(&resource, &namespace, ListOptions::default()).await?;
    if found.items.is_empty() {
        stdout::say("No resources found");
        return Ok(());
    }
    let head = ["NAMESPACE", "NAME", "PROJECT", "SYNC", "HEALTH", "REVISION", "CONDITIONS"];
    let mut lines = vec![head.map(str::to_owned).to_vec()];
    for object in &found.items {
        let app = value_of(&resource, object)?;
        let status = &app["status"];
        let conditions = status["conditions"].as_array().into_iter().flatten().map(|c| text(&c["type"]));
        let conditions = conditions.collect::<Vec<_>>().join(",");
        lines.push(vec![
            text(&app["metadata"]["namespace"]).to_owned(),
            text(&app["metadata"]["name"]).to_owned(),
            text(&app["spec"]["project"]).to_owned(),
            text(&status["sync"]["status"]).to_owned(),
            text(&status["health"]["status"]).to_owned(),
            common::revision(&status["sync"]),
            if conditions.is_empty() { "<none>".to_owned() } else { conditions },
        ]);
    }
    print(&lines)
}

/// Lists deployments.
pub async fn history(session: &Session, args: HistoryArgs) -> CliResult {
    let (_, _, app) = common::fetch(session, &args.app).await?;
    let mut lines = vec![["ID", "DATE", "REVISION", "BY"].map(str::to_owned).to_vec()];
    for one in app["status"]["history"].as_array().into_iter().flatten() {
        let by = &one["initiatedBy"];
        let by = if by["automated"] == true { "automated" } else { text(&by["username"]) };
        let deployed = text(&one["deployedAt"]).to_owned();
        lines.push(vec![one["id"].to_string(), deployed, common::revision(one), by.to_owned()]);
    }
    print(&lines)
}

/// Shows one Application.
pub async fn get(session: &Session, args: GetArgs) -> CliResult {
    let painter = Painter { colour: stdout::wants_colour() };
    if !args.watch {
        let (app, trees) = look(session, &args.app).await?;
        if args.output.is_some() {
            return Ok(stdout::data(&pretty_json(&json!({"application": app, "tree": trees})))?);
        }
        return Ok(stdout::data(&page(&app, &trees, painter))?);
    }
    let resource = common::resource(session).await?;
    let mut types: Vec<Arc<ResourceType>> = gather::owned_types(session.registry().await?);
    types.retain(|t| t.id != resource.id);
    types.push(resource);
    let mut stir = Stir::of(session, &types, "");
    let mut live = stdout::Live::default();
    loop {
        let (app, trees) = look(session, &args.app).await?;
        let now = page(&app, &trees, painter);
        live.show(now)?;
        stir.next().await;
    }
}

/// The Application, and the tree below each of its objects.
async fn look(session: &Session, app: &AppArg) -> CliResult<(Value, Vec<Option<Line>>)> {
    let (_, _, value) = common::fetch(session, app).await?;
    let registry = session.registry().await?;
    let mut trees = Vec::new();
    for one in value["status"]["resources"].as_array().into_iter().flatten() {
        let api_version = match text(&one["group"]) {
            "" => text(&one["version"]).to_owned(),
            group => format!("{group}/{}", text(&one["version"])),
        };
        let mut tree = None;
        if let Some(resource) = registry.by_api_version(&api_version, text(&one["kind"])) {
            let key = ObjectKey::new(text(&one["namespace"]), text(&one["name"]));
            // What is not there has no tree; what may not be read has none either.
            if let Ok(found) = session.client.get(resource, &key, &Default::default()).await {
                let root = value_of(resource, &found)?;
                tree = gather::tree(&session.client, registry, &root, Timestamp::now()).await.ok();
            }
        }
        trees.push(tree);
    }
    Ok((value, trees))
}

/// A row before it is laid out.
struct Row {
    name: String,
    sync: String,
    health: String,
    detail: String,
}

fn page(app: &Value, trees: &[Option<Line>], painter: Painter) -> String {
    let mut text_ = head(app, painter);
    let mut rows = vec![Row {
        name: "OBJECT".to_owned(),
        sync: "SYNC".to_owned(),
        health: "HEALTH".to_owned(),
        detail: "STATUS".to_owned(),
    }];
    let status = &app["status"];
    rows.push(Row {
        name: format!("commit {}", common::revision(&status["sync"])),
        sync: text(&status["sync"]["status"]).to_owned(),
        health: text(&status["health"]["status"]).to_owned(),
        detail: String::new(),
    });
    let resources: Vec<&Value> = status["resources"].as_array().into_iter().flatten().collect();
    for (at, one) in resources.iter().enumerate() {
        let last = at + 1 == resources.len();
        let (corner, below) = if last { ("└─ ", "   ") } else { ("├─ ", "│  ") };
        let place = match text(&one["namespace"]) {
            "" => String::new(),
            namespace if namespace == text(&app["spec"]["destination"]["namespace"]) => String::new(),
            namespace => format!(" -n {namespace}"),
        };
        let tree = trees.get(at).and_then(Option::as_ref);
        let message = text(&one["health"]["message"]);
        let detail = match tree {
            _ if one["requiresPruning"] == true => "to be pruned".to_owned(),
            Some(_) if !message.is_empty() => message.to_owned(),
            Some(line) => line.actual.clone(),
            None => message.to_owned(),
        };
        rows.push(Row {
            name: format!("{corner}{}/{}{place}", text(&one["kind"]), text(&one["name"])),
            sync: text(&one["status"]).to_owned(),
            health: text(&one["health"]["status"]).to_owned(),
            detail,
        });
        if let Some(line) = tree {
            below_of(line, below, &mut rows);
        }
    }
    text_.push_str(&lay_out(&rows, painter));
    text_
}

fn below_of(line: &Line, below: &str, rows: &mut Vec<Row>) {
    for (at, child) in line.children.iter().enumerate() {
        let last = at + 1 == line.children.len();
        let (corner, bar) = if last { ("└─ ", "   ") } else { ("├─ ", "│  ") };
        let object = match child.kind.ends_with("container") {
            true => format!("{} {}", child.kind, child.name),
            false => format!("{}/{}", child.kind, child.name),
        };
        let name = format!("{below}{corner}{object}");
        rows.push(Row { name, sync: String::new(), health: String::new(), detail: child.actual.clone() });
        below_of(child, &format!("{below}{bar}"), rows);
    }
}

fn lay_out(rows: &[Row], painter: Painter) -> String {
    let width = |of: fn(&Row) -> &str| rows.iter().map(|r| of(r).chars().count()).max().unwrap_or(0) + GAP;
    let widths = (width(|r| &r.name), width(|r| &r.sync), width(|r| &r.health));
    let pad = |text: &str, width: usize| " ".repeat(width.saturating_sub(text.chars().count()));
    let line = |(at, row): (usize, &Row)| {
        let paint = |word: &str| painter.paint(if at == 0 { Tone::Faint } else { tone(word) }, word);
        let text = format!(
            "{}{}{}{}{}{}{}",
            row.name,
            pad(&row.name, widths.0),
            paint(&row.sync),
            pad(&row.sync, widths.1),
            paint(&row.health),
            pad(&row.health, widths.2),
            row.detail
        );
        format!("{}\n", text.trim_end())
    };
    rows.iter().enumerate().map(line).collect()
}

/// What stands above the tree.
fn head(app: &Value, painter: Painter) -> String {
    let (spec, status) = (&app["spec"], &app["status"]);
    let mut lines = Vec::new();
    let mut line = |name: &str, value: String| {
        if !value.is_empty() {
            lines.push(format!("{name:<12}{value}\n"));
        }
    };
    line("Name:", text(&app["metadata"]["name"]).to_owned());
    let sources = spec["sources"].as_array().filter(|s| !s.is_empty()).cloned();
    for source in sources.unwrap_or_else(|| vec![spec["source"].clone()]) {
        let revision = match text(&source["targetRevision"]) {
            "" => "HEAD",
            revision => revision,
        };
        line("Source:", format!("{} {} at {revision}", text(&source["repoURL"]), text(&source["path"])));
    }
    line("Namespace:", text(&spec["destination"]["namespace"]).to_owned());
    let operation = &status["operationState"];
    if operation.is_object() {
        let phase = text(&operation["phase"]);
        let when = match text(&operation["finishedAt"]) {
            "" => String::new(),
            at => format!(" ({at})"),
        };
        let message = text(&operation["message"]);
        line("Operation:", format!("{} {message}{when}", painter.paint(tone(phase), phase)));
    }
    for condition in status["conditions"].as_array().into_iter().flatten() {
        let type_ = painter.paint(Tone::Bad, text(&condition["type"]));
        line("Condition:", format!("{type_}: {}", text(&condition["message"])));
    }
    lines.push("\n".to_owned());
    lines.concat()
}
