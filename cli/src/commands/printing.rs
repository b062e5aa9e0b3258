//! What commands share in printing: `-o`, the message of a change, `--dry-run`. Knows no command.

use clap::Args;
use serde_json::Value;
use strata_client::options::{FieldValidation, WriteOptions, Written};
use strata_model::object::Object;
use strata_model::resource::ResourceType;

use crate::commands::error::{CliResult, usage};
use crate::commands::target::{display, value_of};
use crate::output::format::{self, Format};
use crate::output::stdout;

/// Reads the form of `-o`, with the template files it may name.
pub fn parse_format(text: &str) -> Result<Format, String> {
    let file = |path: &str| std::fs::read_to_string(path).map_err(|e| format!("cannot read {path}: {e}"));
    Format::parse(text, file)
}

/// How far a change goes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, clap::ValueEnum)]
pub enum DryRun {
    /// It is made.
    #[default]
    None,
    /// It is not sent.
    Client,
    /// The server checks it and answers, and stores nothing.
    Server,
}

/// Flags of commands that change objects.
#[derive(Clone, Debug, Args)]
pub struct WriteArgs {
    /// Change nothing: `client` prints what would be sent, `server` has it checked as well
    #[arg(long, value_name = "none|client|server", value_enum, hide_possible_values = true, num_args = 0..=1,
          require_equals = true, default_value = "none", default_missing_value = "client", hide_default_value = true)]
    pub dry_run: DryRun,

    /// Print the changed object: yaml, json, name, jsonpath=…, custom-columns=…
    #[arg(short = 'o', long, value_name = "FORM", value_parser = parse_format)]
    pub output: Option<Format>,

    /// Print managedFields too
    #[arg(long, hide_short_help = true)]
    pub show_managed_fields: bool,

    /// The name under which the changed fields are managed
    #[arg(long, value_name = "NAME", hide_short_help = true)]
    pub field_manager: Option<String>,
}

impl WriteArgs {
    /// Options of a write under `manager`, unless another one was asked for.
    pub fn options(&self, manager: &str) -> WriteOptions {
        WriteOptions {
            dry_run: self.dry_run == DryRun::Server,
            field_manager: self.field_manager.clone().unwrap_or_else(|| manager.to_owned()),
            field_validation: FieldValidation::Warn,
            cause: String::new(),
        }
    }

    /// Whether nothing is to be sent.
    pub fn client_only(&self) -> bool {
        self.dry_run == DryRun::Client
    }

    /// Says what was done to an object, or prints it as asked for.
    pub fn report(&self, resource: &ResourceType, object: &Object, done: &str) -> CliResult {
        self.report_value(resource, value_of(resource, object)?, done)
    }

    /// The same for an object as a value.
    pub fn report_value(&self, resource: &ResourceType, mut value: Value, done: &str) -> CliResult {
        match &self.output {
            Some(format) if !format.is_table() => {
                if !self.show_managed_fields {
                    format::strip_managed_fields(&mut value);
                }
                stdout::data(&format.print(&value)?)?;
            }
            _ => {
                let name = value["metadata"]["name"].as_str().unwrap_or_default();
                let dry = match self.dry_run {
                    DryRun::None => "",
                    DryRun::Client => " (dry run)",
                    DryRun::Server => " (server dry run)",
                };
                stdout::data(&format!("{} {done}{dry}\n", display(resource, name)))?;
            }
        }
        Ok(())
    }

    /// Says what a write did, with the server's warnings.
    pub fn report_written(&self, resource: &ResourceType, written: &Written, done: &str) -> CliResult {
        warn(&written.warnings);
        self.report(resource, &written.object, done)
    }
}

/// Shows the server's warnings.
pub fn warn(warnings: &[String]) {
    for warning in warnings {
        stdout::say(&format!("Warning: {warning}"));
    }
}

/// Flag `--validate` of create and apply.
#[derive(Clone, Debug, Args)]
pub struct ValidateArgs {
    /// What to do about unknown or duplicate fields: strict refuses, warn says so, ignore drops them
    #[arg(long, value_name = "strict|warn|ignore", num_args = 0..=1, require_equals = true, default_value = "strict",
          default_missing_value = "strict", hide_default_value = true)]
    pub validate: String,
}

impl ValidateArgs {
    /// As the API has it.
    pub fn validation(&self) -> CliResult<FieldValidation> {
        match self.validate.as_str() {
            "strict" | "true" => Ok(FieldValidation::Strict),
            "warn" => Ok(FieldValidation::Warn),
            "ignore" | "false" => Ok(FieldValidation::Ignore),
            other => Err(usage(format!("invalid --validate {other:?}: write strict, warn or ignore"))),
        }
    }
}
