//! `patch`: a change as the user wrote it.

use std::path::PathBuf;

use clap::{Args, ValueEnum};
use serde_json::Value;
use strata_client::options::Patch;

use crate::commands::error::{CliResult, usage};
use crate::commands::printing::WriteArgs;
use crate::commands::session::Session;
use crate::commands::target::{self, FileArgs};

/// Help behind the flags.
pub const EXAMPLES: &str = "\
Examples:
  strata patch deployment web -p '{\"spec\":{\"replicas\":2}}'
  strata patch deployment web --patch-file change.yaml
  strata patch deployment web --type json -p '[{\"op\":\"replace\",\"path\":\"/spec/replicas\",\"value\":2}]'

Types: strategic (default) merges lists such as containers by their keys, merge replaces lists, json is a list of operations.";

/// How a patch is meant.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum PatchForm {
    Strategic,
    Merge,
    Json,
}

/// Arguments of `patch`.
#[derive(Debug, Args)]
pub struct PatchArgs {
    /// TYPE NAME or TYPE/NAME
    #[arg(value_name = "TYPE NAME | TYPE/NAME")]
    resources: Vec<String>,
    #[command(flatten)]
    files: FileArgs,

    /// The patch, JSON or YAML
    #[arg(short = 'p', long, value_name = "PATCH")]
    patch: Option<String>,

    /// A file with the patch
    #[arg(long, value_name = "FILE", conflicts_with = "patch")]
    patch_file: Option<PathBuf>,

    /// How it is meant: strategic, merge or json
    #[arg(
        long = "type",
        value_enum,
        value_name = "TYPE",
        hide_possible_values = true,
        default_value = "strategic"
    )]
    form: PatchForm,

    /// The subresource to patch, such as status or scale
    #[arg(long, value_name = "NAME", default_value = "", hide_default_value = true)]
    subresource: String,

    #[command(flatten)]
    write: WriteArgs,
}

/// Runs the command.
pub async fn run(session: &Session, args: PatchArgs) -> CliResult {
    let text = match (&args.patch, &args.patch_file) {
        (Some(text), _) => text.clone(),
        (None, Some(path)) => std::fs::read_to_string(path)
            .map_err(|e| usage(format!("cannot read {}: {e}", path.display())))?,
        (None, None) => {
            return Err(usage("must specify --patch or --patch-file containing the contents of the patch"));
        }
    };
    let value: Value = serde_saphyr::from_str(&text).map_err(|e| {
        usage(format!("unable to parse the patch: {}", e.to_string().lines().next().unwrap_or_default()))
    })?;
    let patch = match args.form {
        PatchForm::Json if !value.is_array() => {
            return Err(usage("a JSON patch is a list: [{\"op\": …, \"path\": …, \"value\": …}]"));
        }
        PatchForm::Strategic | PatchForm::Merge if !value.is_object() => {
            return Err(usage("the patch must be a mapping, such as {\"spec\": {\"replicas\": 2}}"));
        }
        PatchForm::Json => Patch::Json(value),
        PatchForm::Strategic => Patch::Strategic(value),
        PatchForm::Merge => Patch::Merge(value),
    };
    let targets = target::targets(session, &args.resources, &args.files, false).await?;
    for target in targets {
        if target.name.is_none() {
            return Err(usage("resource(s) were provided, but no name was specified"));
        }
        if args.write.client_only() {
            let object = session.get(&target.resource, &target.namespace, target.key().name.as_str()).await?;
            args.write.report(&target.resource, &object, "patched")?;
            continue;
        }
        let options = args.write.options("strata-patch");
        let written = session
            .client
            .patch(&target.resource, &target.key(), &args.subresource, &patch, &options)
            .await?;
        let done =
            if written.changed || args.write.options("").dry_run { "patched" } else { "patched (no change)" };
        args.write.report_written(&target.resource, &written, done)?;
    }
    Ok(())
}
