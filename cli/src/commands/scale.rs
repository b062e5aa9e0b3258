//! `scale`: the number of replicas.

use clap::Args;
use serde_json::json;
use strata_client::options::{GetOptions, Patch};

use crate::commands::error::{CliResult, usage};
use crate::commands::printing::{WriteArgs, warn};
use crate::commands::session::Session;
use crate::commands::target::{self, FileArgs, Found, SelectorArgs};

/// Help behind the flags.
pub const EXAMPLES: &str = "\
Examples:
  strata scale deployment/web --replicas=5
  strata scale deployment web --current-replicas=3 --replicas=5    only if there are 3 now";

/// Arguments of `scale`.
#[derive(Debug, Args)]
pub struct ScaleArgs {
    /// TYPE NAME… or TYPE/NAME…
    #[arg(value_name = "TYPE NAME | TYPE/NAME")]
    resources: Vec<String>,
    #[command(flatten)]
    selectors: SelectorArgs,
    #[command(flatten)]
    files: FileArgs,

    /// All objects of the type in the namespace
    #[arg(long)]
    all: bool,

    /// How many there should be
    #[arg(long, value_name = "N")]
    replicas: u32,

    /// Only if there are this many now
    #[arg(long, value_name = "N")]
    current_replicas: Option<u32>,

    #[command(flatten)]
    write: WriteArgs,
}

/// Runs the command.
pub async fn run(session: &Session, args: ScaleArgs) -> CliResult {
    let targets = target::targets(session, &args.resources, &args.files, false).await?;
    for Found { resource, object } in target::fetch(session, &targets, &args.selectors, args.all).await? {
        if resource.subresource("scale").is_none() {
            return Err(usage(format!("{} cannot be scaled: the type has no replicas", resource.id)));
        }
        let key = object.key();
        let mut patch = json!({"spec": {"replicas": args.replicas}});
        if let Some(expected) = args.current_replicas {
            let options = GetOptions { subresource: "scale".to_owned(), ..GetOptions::default() };
            let scale = session.client.get(&resource, &key, &options).await?;
            let now = scale.to_value()?["spec"]["replicas"].as_u64().unwrap_or(0);
            if now != u64::from(expected) {
                return Err(usage(format!("Expected replicas to be {expected}, was {now}")));
            }
            // What was looked at is what is changed.
            patch["metadata"] = json!({"resourceVersion": scale.meta().resource_version});
        }
        if args.write.client_only() {
            args.write.report(&resource, &object, "scaled")?;
            continue;
        }
        let options = args.write.options("strata-scale");
        let written = session.client.patch(&resource, &key, "scale", &Patch::Merge(patch), &options).await?;
        warn(&written.warnings);
        let object = match args.write.output {
            Some(_) => session.get(&resource, &key.namespace, &key.name).await?,
            None => object,
        };
        args.write.report(&resource, &object, "scaled")?;
    }
    Ok(())
}
