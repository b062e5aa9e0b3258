//! `get`, `list`, `watch`: objects as tables or in any form, once or as they change.

use std::sync::Arc;

use clap::Args;
use serde_json::Value;
use strata_client::cursor::Start;
use strata_client::event::{Event, WatchOptions};
use strata_client::options::{GetOptions, ListOptions, Projection};
use strata_model::object::Object;
use strata_model::status::Reason;

use crate::commands::error::{CliError, CliResult, usage};
use crate::commands::moment::MomentArg;
use crate::commands::printing::parse_format;
use crate::commands::session::{PAGE, Session};
use crate::commands::target::{self, FileArgs, SelectorArgs, Target, value_of};
use crate::output::format::{self, Format};
use crate::output::sort;
use crate::output::stdout;
use crate::output::table::{Table, TableOptions, TablePrinter};
use strata_model::jsonpath::JsonPath;

/// Help behind the flags.
pub const EXAMPLES: &str = "\
Examples:
  strata get pods                                  all pods of the namespace
  strata get pods -A -o wide                       those of all namespaces, with more columns
  strata get deploy,rs,pods -l app=web             several types, selected by label
  strata get deployment/web -o yaml                one object, as YAML
  strata get pods -w                               and then every change, until Ctrl-C
  strata get deployment/web -o yaml --at 5m        as it was five minutes ago; or --at a revision
  strata get pods --sort-by=.metadata.creationTimestamp
  strata get pods -o jsonpath='{range .items[*]}{.metadata.name}{\"\\n\"}{end}'
  strata get pods -o custom-columns=NAME:.metadata.name,IP:.status.podIP";

/// Arguments of `get`.
#[derive(Debug, Args)]
pub struct GetArgs {
    #[command(flatten)]
    what: WhatArgs,

    /// After printing, go on with every change
    #[arg(short = 'w', long)]
    watch: bool,

    /// Print only changes from now on
    #[arg(long)]
    watch_only: bool,
}

/// Arguments of `watch`.
#[derive(Debug, Args)]
pub struct WatchArgs {
    #[command(flatten)]
    what: WhatArgs,

    /// Print only changes from now on
    #[arg(long)]
    watch_only: bool,
}

/// What both print, and how.
#[derive(Debug, Args)]
struct WhatArgs {
    /// TYPE[,TYPE…] [NAME…] or TYPE/NAME…
    #[arg(value_name = "TYPE [NAME…] | TYPE/NAME")]
    resources: Vec<String>,

    #[command(flatten)]
    selectors: SelectorArgs,

    /// In all namespaces
    #[arg(short = 'A', long)]
    all_namespaces: bool,

    #[command(flatten)]
    files: FileArgs,

    /// The form: wide, yaml, json, name, jsonpath=…, jsonpath-file=…, custom-columns=…, custom-columns-file=…
    #[arg(short = 'o', long, value_name = "FORM", value_parser = parse_format, default_value = "", hide_default_value = true)]
    output: Format,

    /// No line of headers
    #[arg(long)]
    no_headers: bool,

    /// A column with all labels
    #[arg(long)]
    show_labels: bool,

    /// Columns with the values of these labels
    #[arg(short = 'L', long, value_name = "LABEL", value_delimiter = ',')]
    label_columns: Vec<String>,

    /// Order by what a path finds, such as .metadata.creationTimestamp
    #[arg(long, value_name = "PATH")]
    sort_by: Option<String>,

    /// An object that is not there is no error
    #[arg(long)]
    ignore_not_found: bool,

    /// How many objects to ask for at once; 0 asks for all
    #[arg(long, alias = "limit", value_name = "N", default_value_t = PAGE, hide_short_help = true)]
    chunk_size: u64,

    /// The subresource to read, such as status or scale
    #[arg(long, value_name = "NAME", default_value = "", hide_default_value = true, hide_short_help = true)]
    subresource: String,

    /// As it was at a moment of the kept history: a revision, how long ago such as 5m, or an instant
    #[arg(long, value_name = "MOMENT")]
    at: Option<MomentArg>,

    /// Print managedFields too
    #[arg(long, hide_short_help = true)]
    show_managed_fields: bool,

    /// The revision of `at`; empty is now.
    #[arg(skip)]
    exact: String,
}

/// Runs `get`.
pub async fn get(session: &Session, args: GetArgs) -> CliResult {
    let follow = args.watch || args.watch_only;
    run(session, args.what, follow, args.watch_only).await
}

/// Runs `watch`.
pub async fn watch(session: &Session, args: WatchArgs) -> CliResult {
    run(session, args.what, true, args.watch_only).await
}

async fn run(session: &Session, mut args: WhatArgs, follow: bool, only: bool) -> CliResult {
    let targets = target::targets(session, &args.resources, &args.files, args.all_namespaces).await?;
    if targets.iter().any(|t| t.name.is_some()) && !args.selectors.is_empty() {
        return Err(usage("name cannot be provided when a selector is specified"));
    }
    if let Some(at) = &args.at {
        if follow {
            return Err(usage("the past does not change any more: leave out either --at or -w"));
        }
        args.exact = at.find(session).await?.revision.to_string();
    }
    if follow {
        return match targets.as_slice() {
            [one] => follow_one(session, &args, one, only).await,
            _ => Err(usage("you may only watch a single type, or a single object, at a time")),
        };
    }
    match args.output.is_table() {
        true => tables(session, &args, &targets).await,
        false => objects(session, &args, &targets).await,
    }
}

impl WhatArgs {
    fn table_options(&self, prefix: String) -> TableOptions {
        TableOptions {
            wide: self.output == Format::Wide,
            no_headers: self.no_headers,
            with_namespace: self.all_namespaces,
            show_labels: self.show_labels,
            label_columns: self.label_columns.clone(),
            prefix,
        }
    }

    fn list_options(&self, projection: Projection) -> ListOptions {
        let (resource_version, resource_version_match) = self.state();
        ListOptions {
            limit: self.chunk_size,
            projection,
            resource_version,
            resource_version_match,
            ..self.selectors.options()
        }
    }

    /// Which state is read.
    fn state(&self) -> (String, String) {
        let matching = if self.exact.is_empty() { "" } else { "Exact" };
        (self.exact.clone(), matching.to_owned())
    }

    /// Whether an error is one to be passed over.
    fn forgives(&self, error: &CliError) -> bool {
        self.ignore_not_found && error.is(Reason::NotFound)
    }

    async fn read(&self, session: &Session, target: &Target, projection: Projection) -> CliResult<Read> {
        if target.name.is_none() {
            let options = self.list_options(projection);
            let list = if self.chunk_size == 0 {
                session.client.list(&target.resource, &target.namespace, &options).await?
            } else {
                session.list_all(&target.resource, &target.namespace, options).await?
            };
            return Ok(Read { items: list.items, resource_version: list.resource_version });
        }
        let (resource_version, resource_version_match) = self.state();
        let subresource = self.subresource.clone();
        let options = GetOptions { subresource, resource_version, resource_version_match, projection };
        let object = session.client.get(&target.resource, &target.key(), &options).await?;
        let resource_version = object.meta().resource_version.clone();
        Ok(Read { items: vec![object], resource_version })
    }
}

/// What a target held, and as of when.
struct Read {
    items: Vec<Object>,
    resource_version: String,
}

fn table_of(items: &[Object]) -> CliResult<Table> {
    let mut table = Table::default();
    for item in items {
        table.extend(Table::from_value(item.to_value()?));
    }
    Ok(table)
}

async fn tables(session: &Session, args: &WhatArgs, targets: &[Target]) -> CliResult {
    let mut errors = Vec::new();
    // One table a type, as several names may be of one type.
    let mut tables: Vec<(&Target, Table)> = Vec::new();
    for target in targets {
        let items = match args.read(session, target, Projection::Table).await {
            Ok(read) => read.items,
            Err(error) if args.forgives(&error) => continue,
            Err(error) => {
                errors.push(error);
                continue;
            }
        };
        let mut table = table_of(&items)?;
        if let Some(path) = &args.sort_by {
            sort_rows(session, args, target, path, &mut table).await?;
        }
        match tables.iter_mut().find(|(t, _)| t.resource == target.resource) {
            Some((_, known)) => known.extend(table),
            None => tables.push((target, table)),
        }
    }
    let printed = print_tables(args, &tables, targets)?;
    let named = targets.iter().any(|t| t.name.is_some());
    if !printed && errors.is_empty() && !named && !args.ignore_not_found {
        let namespaced = targets.iter().any(|t| t.resource.is_namespaced()) && !args.all_namespaces;
        stdout::say(&match namespaced {
            true => format!("No resources found in {} namespace.", session.namespace()),
            false => "No resources found".to_owned(),
        });
        if namespaced {
            session.tell_missing_namespace().await;
        }
    }
    finish(errors)
}

/// Prints the tables that have rows; answers whether there was one.
fn print_tables(args: &WhatArgs, tables: &[(&Target, Table)], targets: &[Target]) -> CliResult<bool> {
    let several = targets.iter().any(|t| t.resource != targets[0].resource);
    let mut printed = false;
    for (target, table) in tables.iter().filter(|(_, table)| !table.rows.is_empty()) {
        if printed {
            stdout::data("\n")?;
        }
        printed = true;
        let prefix = if several { target::display(&target.resource, "") } else { String::new() };
        stdout::data(&TablePrinter::new(args.table_options(prefix)).print(table))?;
    }
    Ok(printed)
}

/// Sorts rows by what a path finds in their objects, which tables do not carry.
async fn sort_rows(
    session: &Session,
    args: &WhatArgs,
    target: &Target,
    path: &str,
    table: &mut Table,
) -> CliResult {
    let path = JsonPath::parse_relaxed(path)?;
    let objects = args.read(session, target, Projection::Object).await?.items;
    let mut values = Vec::new();
    for object in &objects {
        values.push(object.to_value()?);
    }
    sort::by_path(&mut values, &path)?;
    let id = |object: &Value| {
        let text = |field: &str| object["metadata"][field].as_str().unwrap_or_default().to_owned();
        (text("namespace"), text("name"))
    };
    let order: std::collections::HashMap<_, _> =
        values.iter().enumerate().map(|(at, v)| (id(v), at)).collect();
    table.rows.sort_by_key(|row| order.get(&id(&row.object)).copied().unwrap_or(usize::MAX));
    Ok(())
}

async fn objects(session: &Session, args: &WhatArgs, targets: &[Target]) -> CliResult {
    let mut errors = Vec::new();
    let mut values = Vec::new();
    for target in targets {
        match args.read(session, target, Projection::Object).await {
            Ok(read) => {
                for object in &read.items {
                    let mut value = value_of(&target.resource, object)?;
                    if !args.show_managed_fields {
                        format::strip_managed_fields(&mut value);
                    }
                    values.push(value);
                }
            }
            Err(error) if args.forgives(&error) => {}
            Err(error) => errors.push(error),
        }
    }
    if let Some(path) = &args.sort_by {
        sort::by_path(&mut values, &JsonPath::parse_relaxed(path)?)?;
    }
    let single = matches!(targets, [Target { name: Some(_), .. }]);
    let text = match &args.output {
        _ if single && values.is_empty() => String::new(),
        Format::Columns(columns) => columns.print(&values, !args.no_headers, &mut Vec::new())?,
        format if single => format.print(&values[0])?,
        _ if values.is_empty() && !errors.is_empty() => String::new(),
        format => format.print(&format::list_of(values))?,
    };
    stdout::data(&text)?;
    finish(errors)
}

fn finish(mut errors: Vec<CliError>) -> CliResult {
    match errors.len() {
        0 => Ok(()),
        1 => Err(errors.remove(0)),
        _ => Err(CliError::Many(errors)),
    }
}

/// Prints one target and then its changes, for as long as the user wants.
async fn follow_one(session: &Session, args: &WhatArgs, target: &Target, only: bool) -> CliResult {
    let table = args.output.is_table();
    let projection = if table { Projection::Table } else { Projection::Object };
    let mut printer = Follower {
        args,
        target,
        table: TablePrinter::new(args.table_options(String::new())),
        widths: Vec::new(),
        printed: false,
    };
    // The revision comes from a read of its own, as that of one object is not that of the list.
    let read = args.read(session, target, projection).await?;
    let start = match target.name {
        None => read.resource_version,
        Some(_) => {
            let probe = ListOptions { limit: 1, projection: Projection::Metadata, ..ListOptions::default() };
            session.client.list(&target.resource, &target.namespace, &probe).await?.resource_version
        }
    };
    if !only {
        for item in &read.items {
            printer.print(item)?;
        }
    }
    let field_selector = match &target.name {
        Some(name) => format!("metadata.name={name}"),
        None => args.selectors.field_selector.clone(),
    };
    let options = WatchOptions {
        namespace: target.namespace.clone(),
        label_selector: args.selectors.selector.clone(),
        field_selector,
        projection,
        start: start.parse().map_or(Start::State, Start::After),
        window: 0,
    };
    let mut watch = session.watches().open(&target.resource, options);
    let end = session.follow_limit.and_then(|limit| tokio::time::Instant::now().checked_add(limit));
    while let Some(event) = until(end, watch.next()).await {
        match event {
            Event::Initial(object) | Event::Applied(object, _) | Event::Deleted(object, _) => {
                printer.print(&object)?;
            }
            Event::Lost(error) => stdout::say(&format!("Warning: {error}; trying again")),
            Event::Failed(error) => {
                return match Arc::try_unwrap(error) {
                    Ok(error) => Err(error.into()),
                    Err(shared) => Err(usage(shared.to_string())),
                };
            }
            Event::Restarted | Event::InitialEnd(_) | Event::Progress(_) => {}
        }
    }
    Ok(())
}

/// What comes before an end; `None` afterwards.
async fn until<T>(end: Option<tokio::time::Instant>, what: impl Future<Output = Option<T>>) -> Option<T> {
    match end {
        Some(end) => tokio::time::timeout_at(end, what).await.ok().flatten(),
        None => what.await,
    }
}

/// Prints object after object.
struct Follower<'a> {
    args: &'a WhatArgs,
    target: &'a Target,
    table: TablePrinter,
    widths: Vec<usize>,
    printed: bool,
}

impl Follower<'_> {
    fn print(&mut self, object: &Object) -> CliResult {
        if self.args.output.is_table() {
            let table = Table::from_value(object.to_value()?);
            return Ok(stdout::data(&self.table.print(&table))?);
        }
        let mut value = value_of(&self.target.resource, object)?;
        if !self.args.show_managed_fields {
            format::strip_managed_fields(&mut value);
        }
        let text = match &self.args.output {
            Format::Columns(columns) => {
                let headers = !self.printed && !self.args.no_headers;
                columns.print(&[value], headers, &mut self.widths)?
            }
            Format::Yaml if self.printed => format!("---\n{}", Format::Yaml.print(&value)?),
            format => format.print(&value)?,
        };
        self.printed = true;
        Ok(stdout::data(&text)?)
    }
}
