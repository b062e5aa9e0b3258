//! `config`: which kubeconfig and context are in use; and `completion`: scripts for shells.

use std::path::Path;

use clap::{Args, Subcommand};
use jiff::Timestamp;
use serde_json::{Value, json};
use strata_client::kubeconfig::Kubeconfig;

use crate::commands::connection::{ConnectionArgs, Environment};
use crate::commands::error::{CliResult, usage};
use crate::output::{stdout, yaml};

/// What is shown of the configuration.
#[derive(Debug, Subcommand)]
pub enum ConfigCommand {
    /// Show the server, the identity and the namespace in use, and where they come from
    View,
    /// Show the name of the context in use
    CurrentContext,
    /// List the contexts
    GetContexts,
}

fn files(args: &ConnectionArgs) -> Vec<std::path::PathBuf> {
    args.kubeconfigs(&Environment::of_process(), Path::exists)
}

/// Runs `config`.
pub fn run(args: &ConnectionArgs, command: &ConfigCommand) -> CliResult {
    let text = match command {
        ConfigCommand::View => {
            let (config, origin) = args.resolve(&Environment::of_process())?;
            let identity: Value = match (&config.identity, &config.token) {
                (_, Some(_)) => json!("bearer token"),
                (Some(identity), None) => json!(subject(&identity.certificate_pem)),
                (None, None) => json!("anonymous"),
            };
            let mut shown = json!({"from": origin, "server": config.server.to_string(), "identity": identity,
                "namespace": config.namespace});
            if let (Some(identity), None) = (&config.identity, &config.token) {
                shown["valid until"] = json!(not_after(&identity.certificate_pem));
            }
            yaml::to_string(&shown)
        }
        ConfigCommand::CurrentContext => {
            let config = Kubeconfig::load(&files(args))?;
            let current = args.context.as_deref().or(config.current_context());
            format!(
                "{}\n",
                current.ok_or_else(|| usage("current-context is not set; choose one with --context"))?
            )
        }
        ConfigCommand::GetContexts => {
            let config = Kubeconfig::load(&files(args))?;
            let current = args.context.as_deref().or(config.current_context());
            let mark = |name: &str| if Some(name) == current { "*" } else { " " };
            config.contexts().iter().map(|name| format!("{} {name}\n", mark(name))).collect()
        }
    };
    Ok(stdout::data(&text)?)
}

/// Whose certificate it is.
fn subject(pem: &[u8]) -> String {
    let parsed = x509_parser::pem::parse_x509_pem(pem).ok().and_then(|(_, pem)| {
        let certificate = pem.parse_x509().ok()?;
        Some(format!("certificate of {}", certificate.subject()))
    });
    parsed.unwrap_or_else(|| "a certificate that cannot be read".to_owned())
}

/// Until when a certificate holds.
fn not_after(pem: &[u8]) -> String {
    let until = x509_parser::pem::parse_x509_pem(pem).ok().and_then(|(_, pem)| {
        Timestamp::from_second(pem.parse_x509().ok()?.validity().not_after.timestamp()).ok()
    });
    until.map_or_else(|| "unknown".to_owned(), |until| until.to_string())
}

/// Arguments of `completion`.
#[derive(Debug, Args)]
pub struct CompletionArgs {
    /// The shell
    #[arg(value_enum)]
    shell: clap_complete::Shell,
}

/// Help of `completion` behind the flags.
pub const COMPLETION_EXAMPLES: &str = "\
Examples:
  source <(strata completion bash)                 for this shell; put it into ~/.bashrc for all
  strata completion zsh > ~/.zfunc/_strata
  strata completion fish > ~/.config/fish/completions/strata.fish";

/// Prints the script for a shell.
pub fn completion(args: &CompletionArgs, mut tree: clap::Command) -> CliResult {
    let mut script = Vec::new();
    clap_complete::generate(args.shell, &mut tree, "strata", &mut script);
    Ok(stdout::bytes(&script)?)
}
