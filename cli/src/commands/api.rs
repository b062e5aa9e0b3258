//! `api-resources`, `api-versions`, `version`, `cluster-info`: what a server serves, and which one it is.

use std::collections::BTreeSet;

use clap::{Args, ValueEnum};
use serde_json::json;
use strata_model::resource::{ResourceType, Verb};

use crate::commands::error::CliResult;
use crate::commands::session::Session;
use crate::output::format::pretty_json;
use crate::output::{stdout, table, yaml};

/// Help of `api-resources` behind the flags.
pub const EXAMPLES: &str = "\
Examples:
  strata api-resources                             all types, with their short names
  strata api-resources --api-group=apps -o wide
  strata api-resources --namespaced=false";

/// The forms of `api-resources`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum ResourceForm {
    Wide,
    Name,
}

/// Arguments of `api-resources`.
#[derive(Debug, Args)]
pub struct ResourcesArgs {
    /// Only types of this group; empty is the core group
    #[arg(long, value_name = "GROUP")]
    api_group: Option<String>,

    /// Only types in namespaces, or with =false only those beside them
    #[arg(long, value_name = "true|false", num_args = 0..=1, require_equals = true, default_missing_value = "true")]
    namespaced: Option<bool>,

    /// Only types that know all these verbs
    #[arg(long, value_name = "VERB", value_delimiter = ',')]
    verbs: Vec<String>,

    /// More columns (wide), or only names (name)
    #[arg(short = 'o', long, value_enum, value_name = "wide|name", hide_possible_values = true)]
    output: Option<ResourceForm>,

    /// No line of headers
    #[arg(long)]
    no_headers: bool,

    /// Order by name or kind
    #[arg(long, value_name = "name|kind", value_parser = ["name", "kind"])]
    sort_by: Option<String>,
}

/// Runs `api-resources`.
pub async fn resources(session: &Session, args: ResourcesArgs) -> CliResult {
    let verbs =
        |t: &ResourceType| -> Vec<&'static str> { t.verbs.iter().copied().map(Verb::as_str).collect() };
    let mut types: Vec<_> = session
        .registry()
        .await?
        .types()
        .iter()
        .filter(|t| args.api_group.as_ref().is_none_or(|group| t.id.group == *group))
        .filter(|t| args.namespaced.is_none_or(|wanted| t.is_namespaced() == wanted))
        .filter(|t| args.verbs.iter().all(|verb| verbs(t).contains(&verb.as_str())))
        .collect();
    match args.sort_by.as_deref() {
        Some("kind") => types.sort_by(|a, b| a.kind.cmp(&b.kind)),
        Some(_) => types.sort_by(|a, b| a.id.resource.cmp(&b.id.resource)),
        None => types.sort_by(|a, b| (&a.id.group, &a.id.resource).cmp(&(&b.id.group, &b.id.resource))),
    }
    if args.output == Some(ResourceForm::Name) {
        let names: String = types.iter().map(|t| format!("{}\n", t.id)).collect();
        return Ok(stdout::data(&names)?);
    }
    let wide = args.output == Some(ResourceForm::Wide);
    let mut lines = Vec::new();
    if !args.no_headers {
        let more: &[&str] = if wide { &["VERBS", "CATEGORIES"] } else { &[] };
        let headers = ["NAME", "SHORTNAMES", "APIVERSION", "NAMESPACED", "KIND"];
        lines.push(headers.iter().chain(more).map(ToString::to_string).collect());
    }
    for t in types {
        let mut line = vec![
            t.id.resource.to_string(),
            t.short_names.join(","),
            t.api_version(),
            t.is_namespaced().to_string(),
            t.kind.to_string(),
        ];
        if wide {
            line.extend([verbs(t).join(","), t.categories.join(",")]);
        }
        lines.push(line);
    }
    Ok(stdout::data(&table::layout(&lines, &mut Vec::new()))?)
}

/// Arguments of commands that take none.
#[derive(Debug, Args)]
pub struct NoArgs {}

/// Runs `api-versions`.
pub async fn versions(session: &Session, _: NoArgs) -> CliResult {
    let versions: BTreeSet<String> =
        session.registry().await?.types().iter().map(|t| t.api_version()).collect();
    let text: String = versions.iter().map(|version| format!("{version}\n")).collect();
    Ok(stdout::data(&text)?)
}

/// Runs `cluster-info`.
pub async fn cluster_info(session: &Session, _: NoArgs) -> CliResult {
    let version = session.client.version().await?;
    let store = session.client.status().await?;
    Ok(stdout::data(&format!(
        "Strata {} ({}) is running at {}\nIts store is at revision {}, holds {} keys in {} bytes, and serves {} watches.\n",
        version.strata,
        version.git_version,
        session.client.server(),
        store.revision,
        store.keys,
        store.bytes,
        store.watchers
    ))?)
}

/// Arguments of `version`.
#[derive(Debug, Args)]
pub struct VersionArgs {
    /// Only that of this program
    #[arg(long)]
    client: bool,

    /// As yaml or json
    #[arg(short = 'o', long, value_name = "yaml|json", value_parser = ["yaml", "json"])]
    output: Option<String>,
}

impl VersionArgs {
    /// Whether no server is to be asked.
    pub fn client_only(&self) -> bool {
        self.client
    }
}

/// Runs `version`; without a session no server is asked.
pub async fn version(session: Option<&Session>, args: &VersionArgs) -> CliResult {
    let client = env!("CARGO_PKG_VERSION");
    let asked = match session {
        Some(session) => Some(session.client.version().await),
        None => None,
    };
    let (server, error) = match asked {
        Some(Ok(version)) => (Some(version), None),
        Some(Err(error)) => (None, Some(error)),
        None => (None, None),
    };
    let mut value = json!({"clientVersion": {"gitVersion": format!("v{client}")}});
    if let Some(server) = &server {
        value["serverVersion"] = json!({"gitVersion": server.git_version, "major": server.major,
            "minor": server.minor, "strata": server.strata});
    }
    let text = match args.output.as_deref() {
        Some("json") => pretty_json(&value),
        Some(_) => yaml::to_string(&value),
        None => {
            let server = server.map(|s| format!("Server Version: {} (Strata {})\n", s.git_version, s.strata));
            format!("Client Version: v{client}\n{}", server.unwrap_or_default())
        }
    };
    stdout::data(&text)?;
    error.map_or(Ok(()), |error| Err(error.into()))
}
