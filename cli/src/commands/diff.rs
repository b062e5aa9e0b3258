//! `diff`: what a manifest would change, or what did change between two moments of the kept history.

use std::collections::BTreeMap;

use clap::Args;
use serde_json::Value;
use strata_client::history::Moment;
use strata_client::options::{GetOptions, ListOptions};
use strata_model::resource::ResourceType;
use strata_model::status::Reason;

use crate::commands::apply;
use crate::commands::error::{CliError, CliResult, usage};
use crate::commands::moment::MomentArg;
use crate::commands::session::Session;
use crate::commands::target::{self, Declared, FileArgs, SelectorArgs, Target, declared, display, value_of};
use crate::output::difference::{comparable, unified};
use crate::output::stdout;
use crate::output::style::Painter;

/// Help behind the flags.
pub const EXAMPLES: &str = "\
Examples:
  strata diff -f web.yaml                          what applying the manifest would change
  strata diff deployment/web --from 5m             what changed in the last five minutes
  strata diff deployment/web --from 1200 --to 1300 between two revisions (`strata history` lists them)
  strata diff configmaps --from 1h -A              of all objects of a type, those that came and went too

Exit code 0 if there is no difference, 1 if there is one, 2 if it cannot be told.";

/// Exit code where something differs.
const DIFFERENT: u8 = 1;
/// Exit code where it cannot be told.
const TROUBLE: u8 = 2;

/// Arguments of `diff`.
#[derive(Debug, Args)]
pub struct DiffArgs {
    /// TYPE/NAME… or TYPE NAME…, or a TYPE for all of it
    #[arg(value_name = "TYPE/NAME")]
    resources: Vec<String>,
    #[command(flatten)]
    files: FileArgs,
    #[command(flatten)]
    selectors: SelectorArgs,

    /// In all namespaces
    #[arg(short = 'A', long)]
    all_namespaces: bool,

    /// The earlier moment: a revision, how long ago, or an instant
    #[arg(long, value_name = "MOMENT", conflicts_with = "filenames")]
    from: Option<MomentArg>,

    /// The later moment; now, if it is not given
    #[arg(long, value_name = "MOMENT", requires = "from")]
    to: Option<MomentArg>,

    /// With -f: as `apply --server-side` would
    #[arg(long, requires = "filenames")]
    server_side: bool,

    /// With --server-side: take fields over that others manage
    #[arg(long, requires = "server_side")]
    force_conflicts: bool,

    /// The name under which an apply would manage the fields
    #[arg(long, value_name = "NAME", hide_short_help = true)]
    field_manager: Option<String>,
}

/// Runs the command.
pub async fn run(session: &Session, args: DiffArgs) -> CliResult {
    let outcome = match args.files.filenames.is_empty() {
        false => manifests(session, &args).await,
        true => moments(session, &args).await,
    };
    match outcome {
        Ok(false) => Ok(()),
        Ok(true) => Err(CliError::Silent(DIFFERENT)),
        Err(error) => Err(CliError::Exit { code: TROUBLE, error: Box::new(error) }),
    }
}

fn show(before: (&str, Option<Value>), after: (&str, Option<Value>)) -> CliResult<bool> {
    let ((before, mut old), (after, mut new)) = (before, after);
    comparable(&mut old, &mut new);
    let painter = Painter { colour: stdout::wants_colour() };
    let text = unified((before, old.as_ref()), (after, new.as_ref()), painter);
    stdout::data(&text)?;
    Ok(!text.is_empty())
}

async fn manifests(session: &Session, args: &DiffArgs) -> CliResult<bool> {
    if !args.resources.is_empty() {
        return Err(usage(
            "when files are given with -f, resources may not be specified by arguments as well",
        ));
    }
    let mut differs = false;
    for object in declared(session, &args.files).await? {
        if object.name().is_empty() {
            return Err(usage(format!(
                "{}: metadata.name is not set: there is nothing to compare with",
                object.place
            )));
        }
        let how = apply::How {
            server_side: args.server_side,
            force: args.force_conflicts,
            manager: args.field_manager.as_deref(),
        };
        let (live, merged) = apply::merged(session, &object, &how).await?;
        let file = file_of(&object);
        differs |= show((&format!("LIVE/{file}"), live), (&format!("MERGED/{file}"), Some(merged)))?;
    }
    Ok(differs)
}

/// `apps.v1.Deployment.default.web`: the name under which kubectl compares an object.
fn file_of(object: &Declared) -> String {
    let resource = &object.resource;
    let parts = [&*resource.id.group, &*resource.version, &*resource.kind, &object.namespace, object.name()];
    parts.into_iter().filter(|part| !part.is_empty()).collect::<Vec<_>>().join(".")
}

async fn moments(session: &Session, args: &DiffArgs) -> CliResult<bool> {
    let Some(from) = &args.from else {
        return Err(usage(
            "compare what? -f FILE shows what a manifest would change, TYPE/NAME --from MOMENT what changed since then",
        ));
    };
    let targets = target::targets(session, &args.resources, &args.files, args.all_namespaces).await?;
    let from = from.find(session).await?;
    let to = match &args.to {
        Some(to) => to.find(session).await?,
        None => session.client.moment(&Default::default()).await?,
    };
    let mut differs = false;
    for target in &targets {
        let (mut before, mut after) =
            (state(session, args, target, &from).await?, state(session, args, target, &to).await?);
        if let Some(name) = &target.name
            && before.is_empty()
            && after.is_empty()
        {
            return Err(usage(format!(
                "{} was there neither at revision {} nor at {}",
                display(&target.resource, name),
                from.revision,
                to.revision
            )));
        }
        let keys: std::collections::BTreeSet<Key> = before.keys().chain(after.keys()).cloned().collect();
        for key in keys {
            let label = |moment: &Moment| label(&target.resource, &key, moment);
            differs |= show((&label(&from), before.remove(&key)), (&label(&to), after.remove(&key)))?;
        }
    }
    Ok(differs)
}

/// Namespace and name.
type Key = (String, String);

fn label(resource: &ResourceType, (namespace, name): &Key, moment: &Moment) -> String {
    let place = if namespace.is_empty() { String::new() } else { format!(" -n {namespace}") };
    let time = if moment.time.is_empty() { String::new() } else { format!(", {}", moment.time) };
    format!("{}{place}\t(revision {}{time})", display(resource, name), moment.revision)
}

/// The objects of a target as they were at a moment.
async fn state(
    session: &Session,
    args: &DiffArgs,
    target: &Target,
    at: &Moment,
) -> CliResult<BTreeMap<Key, Value>> {
    let (resource, exact) = (&target.resource, "Exact".to_owned());
    let objects = if target.name.is_some() {
        let options = GetOptions {
            resource_version: at.revision.to_string(),
            resource_version_match: exact,
            ..GetOptions::default()
        };
        match session.client.get(resource, &target.key(), &options).await {
            Ok(object) => vec![object],
            Err(error) if error.is(Reason::NotFound) => Vec::new(),
            Err(error) => return Err(error.into()),
        }
    } else {
        let options = ListOptions {
            resource_version: at.revision.to_string(),
            resource_version_match: exact,
            ..args.selectors.options()
        };
        session.list_all(resource, &target.namespace, options).await?.items
    };
    let mut found = BTreeMap::new();
    for object in objects {
        let meta = object.meta();
        let key = (meta.namespace.clone(), meta.name.clone());
        found.insert(key, value_of(resource, &object)?);
    }
    Ok(found)
}
