//! `why`: what an object waits for, through all layers down to its processes.

use clap::{Args, ValueEnum};
use jiff::Timestamp;
use serde_json::{Value, json};

use crate::commands::error::{CliError, CliResult, usage};
use crate::commands::session::Session;
use crate::commands::target::{self, FileArgs, SelectorArgs, value_of};
use crate::output::format::pretty_json;
use crate::output::stdout;
use crate::output::style::Painter;
use crate::output::yaml;
use crate::why::{gather, render};

/// Help behind the flags.
pub const EXAMPLES: &str = "\
Examples:
  strata why deployment/web                        the tree of what it wants, what is, and why they differ
  strata why pod web-1 -o json
  strata why deployments -A                        all deployments
  strata why deployment/web && echo converged      exit code 0 if all is as wanted, 1 if not";

/// Exit code where something is not as wanted.
const NOT_CONVERGED: u8 = 1;

/// The forms of `why`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Form {
    Json,
    Yaml,
}

/// Arguments of `why`.
#[derive(Debug, Args)]
pub struct WhyArgs {
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

    /// As json or yaml, for programs
    #[arg(short = 'o', long, value_enum, value_name = "json|yaml", hide_possible_values = true)]
    output: Option<Form>,
}

/// Runs the command.
pub async fn run(session: &Session, args: WhyArgs) -> CliResult {
    if args.resources.is_empty() && args.files.filenames.is_empty() {
        return Err(usage("which object? write TYPE/NAME, such as `strata why deployment/web`"));
    }
    let targets = target::targets(session, &args.resources, &args.files, args.all_namespaces).await?;
    let registry = session.registry().await?;
    let mut lines = Vec::new();
    for found in target::fetch(session, &targets, &args.selectors, true).await? {
        let root = value_of(&found.resource, &found.object)?;
        lines.push(gather::tree(&session.client, registry, &root, Timestamp::now()).await?);
    }
    if lines.is_empty() {
        stdout::say("No resources found");
        return Ok(());
    }
    let value: Value = match lines.as_slice() {
        [one] => json!(one),
        many => json!(many),
    };
    let text = match args.output {
        Some(Form::Json) => pretty_json(&value),
        Some(Form::Yaml) => yaml::to_string(&value),
        None => render::tree(&lines, Painter { colour: stdout::wants_colour() }, stdout::width()),
    };
    stdout::data(&text)?;
    match lines.iter().all(|line| line.settled()) {
        true => Ok(()),
        false => Err(CliError::Silent(NOT_CONVERGED)),
    }
}
