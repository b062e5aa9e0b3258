//! `apply`: makes objects as their manifests declare them, changing only what the manifest says or said before.

use clap::Args;
use serde_json::{Value, json};
use strata_apiserver::managed::entries::Writer;
use strata_apiserver::managed::migrate;
use strata_client::options::{Patch, WriteOptions};
use strata_model::object::Object;
use strata_model::resource::ResourceType;
use strata_model::status::Reason;

use crate::commands::error::{CliError, CliResult, usage};
use crate::commands::last_applied;
use crate::commands::printing::{DryRun, ValidateArgs, WriteArgs, warn};
use crate::commands::session::Session;
use crate::commands::target::{Declared, FileArgs, declared, value_of};
use crate::output::stdout;

/// Help behind the flags.
pub const EXAMPLES: &str = "\
Examples:
  strata apply -f web.yaml                         make what the manifest declares, or change it to that
  strata apply -f manifests/                       all manifests of a directory
  strata apply -f web.yaml --dry-run=server        only say what would happen
  strata apply -f web.yaml --server-side           let the server merge, by who manages which field

Fields that an earlier apply set and the manifest no longer has are removed; what others set is left alone.
Applying the same manifest again says `unchanged` and writes nothing.";

/// How often a change is computed anew because somebody else was faster.
const MAX_TRIES: usize = 5;

/// Arguments of `apply`.
#[derive(Debug, Args)]
pub struct ApplyArgs {
    #[command(flatten)]
    files: FileArgs,
    #[command(flatten)]
    validate: ValidateArgs,
    #[command(flatten)]
    write: WriteArgs,

    /// Let the server merge, and keep track of who manages which field
    #[arg(long)]
    server_side: bool,

    /// With --server-side: take fields over that others manage
    #[arg(long, requires = "server_side")]
    force_conflicts: bool,
}

/// Runs the command.
pub async fn run(session: &Session, args: ApplyArgs) -> CliResult {
    if args.files.filenames.is_empty() {
        return Err(usage("must specify the manifests to apply: strata apply -f FILE"));
    }
    let objects = declared(session, &args.files).await?;
    all(session, &args, &objects).await
}

/// Applies manifests as they are, without any flag; gives back what they declare, so that it can be followed.
pub async fn manifests(session: &Session, filenames: Vec<String>) -> CliResult<Vec<Declared>> {
    let args = ApplyArgs {
        files: FileArgs { filenames, recursive: false },
        validate: ValidateArgs { validate: "strict".to_owned() },
        write: WriteArgs {
            dry_run: DryRun::None,
            output: None,
            show_managed_fields: false,
            field_manager: None,
        },
        server_side: false,
        force_conflicts: false,
    };
    let objects = declared(session, &args.files).await?;
    all(session, &args, &objects).await?;
    Ok(objects)
}

async fn all(session: &Session, args: &ApplyArgs, objects: &[Declared]) -> CliResult {
    let mut errors = Vec::new();
    for object in objects {
        if object.name().is_empty() {
            errors.push(usage(format!(
                "{}: metadata.name is not set: apply needs to know which {} it is about",
                object.place, object.resource.kind
            )));
            continue;
        }
        if let Err(error) = apply(session, args, object).await {
            let about = format!("applying \"{}\"", object.place);
            errors.push(CliError::About { about, error: Box::new(error) });
        }
    }
    match errors.len() {
        0 => Ok(()),
        1 => Err(errors.remove(0)),
        _ => Err(CliError::Many(errors)),
    }
}

async fn apply(session: &Session, args: &ApplyArgs, object: &Declared) -> CliResult {
    let manager = if args.server_side { "strata" } else { migrate::CLIENT_SIDE };
    let mut options = args.write.options(manager);
    options.field_validation = args.validate.validation()?;
    if args.server_side {
        return server_side(session, args, object, &options).await;
    }
    let wanted = last_applied::remember(object.value.clone());
    for _ in 1..MAX_TRIES {
        match once(session, args, object, &wanted, &options).await {
            Err(error) if error.is(Reason::Conflict) => {}
            outcome => return outcome,
        }
    }
    once(session, args, object, &wanted, &options).await
}

/// How an apply is tried.
#[derive(Clone, Copy, Debug, Default)]
pub struct How<'a> {
    /// Whether the server merges.
    pub server_side: bool,
    /// Take over what others manage.
    pub force: bool,
    /// Who would manage the fields; `None` is as `apply` does.
    pub manager: Option<&'a str>,
}

/// An object as it is, and as applying a manifest would leave it. Nothing is changed.
pub async fn merged(
    session: &Session,
    object: &Declared,
    how: &How<'_>,
) -> CliResult<(Option<Value>, Value)> {
    let (resource, key) = (&object.resource, object.target().key());
    let live = match session.get(resource, &key.namespace, &key.name).await {
        Ok(live) => Some(value_of(resource, &live)?),
        Err(error) if error.is(Reason::NotFound) => None,
        Err(error) => return Err(error),
    };
    let manager = how.manager.unwrap_or(if how.server_side { "strata" } else { migrate::CLIENT_SIDE });
    let options =
        WriteOptions { dry_run: true, field_manager: manager.to_owned(), ..WriteOptions::default() };
    let client = &session.client;
    // The memory of what was applied is no part of what is compared.
    let wanted = &object.value;
    let written = match &live {
        _ if how.server_side => {
            let patch = Patch::Apply { object: object.value.to_string().into(), force: how.force };
            client.patch(resource, &key, "", &patch, &options).await?
        }
        None => client.create(resource, &key.namespace, wanted.to_string(), &options).await?,
        Some(value) => {
            let last = last_applied::recall(value);
            let Some(patch) = last_applied::patch(resource, last.as_ref(), wanted, value) else {
                return Ok((live.clone(), value.clone()));
            };
            client.patch(resource, &key, "", &patch, &options).await?
        }
    };
    warn(&written.warnings);
    Ok((live, value_of(resource, &written.object)?))
}

async fn server_side(
    session: &Session,
    args: &ApplyArgs,
    object: &Declared,
    options: &WriteOptions,
) -> CliResult {
    let patch = Patch::Apply { object: object.value.to_string().into(), force: args.force_conflicts };
    let (resource, key) = (&object.resource, object.target().key());
    let mut written = session.client.patch(resource, &key, "", &patch, options).await?;
    // What an earlier client-side apply owned becomes the applier's, so that the manifest rules over it too.
    if args.write.dry_run == DryRun::None
        && let Some(moved) = migration(resource, &written.object, &options.field_manager)?
    {
        session.client.patch(resource, &key, "", &Patch::Json(moved), options).await?;
        written = session.client.patch(resource, &key, "", &patch, options).await?;
        written.changed = true;
    }
    let done = if written.changed { "serverside-applied" } else { "unchanged" };
    args.write.report_written(resource, &written, done)
}

/// The JSON patch that gives the applier what a client-side apply owned; `None` where there is nothing of it.
fn migration(resource: &ResourceType, object: &Object, manager: &str) -> CliResult<Option<Value>> {
    let live = value_of(resource, object)?;
    let api_version = resource.api_version();
    let now = jiff::Timestamp::now();
    let writer = Writer { manager, api_version: &api_version, subresource: "", now };
    Ok(migrate::moved(&live, &writer).map(|managers| {
        json!([
            {"op": "replace", "path": "/metadata/managedFields", "value": managers},
            {"op": "replace", "path": "/metadata/resourceVersion", "value": live["metadata"]["resourceVersion"]},
        ])
    }))
}

/// One try: reads, compares, and creates or patches where there is a difference.
async fn once(
    session: &Session,
    args: &ApplyArgs,
    object: &Declared,
    wanted: &Value,
    options: &WriteOptions,
) -> CliResult {
    let (resource, key) = (&object.resource, object.target().key());
    let live = match session.get(resource, &key.namespace, &key.name).await {
        Ok(live) => value_of(resource, &live)?,
        Err(error) if error.is(Reason::NotFound) => {
            if args.write.client_only() {
                return args.write.report_value(resource, wanted.clone(), "created");
            }
            let written =
                session.client.create(resource, &key.namespace, wanted.to_string(), options).await?;
            return args.write.report_written(resource, &written, "created");
        }
        Err(error) => return Err(error),
    };
    let last = last_applied::recall(&live);
    if last.is_none() {
        stdout::say(&format!(
            "Warning: {}/{} was not made by `apply`: only what the manifest says is changed, and from now on remembered \
             in the annotation {}",
            resource.id,
            key.name,
            last_applied::LAST_APPLIED
        ));
    }
    let Some(patch) = last_applied::patch(resource, last.as_ref(), wanted, &live) else {
        return args.write.report_value(resource, live, "unchanged");
    };
    if args.write.client_only() {
        return args.write.report_value(resource, live, "configured");
    }
    let written = session.client.patch(resource, &key, "", &patch, options).await?;
    warn(&written.warnings);
    let done = if written.changed { "configured" } else { "unchanged" };
    args.write.report(resource, &written.object, done)
}
