//! `create`: from manifests, or from flags for the types that newcomers make first.

mod build;

use clap::{Args, Subcommand};
use serde_json::Value;

use crate::commands::error::{CliError, CliResult, usage};
use crate::commands::printing::{ValidateArgs, WriteArgs};
use crate::commands::session::Session;
use crate::commands::target::{Declared, FileArgs, declared};

/// Help behind the flags.
pub const EXAMPLES: &str = "\
Examples:
  strata create -f web.yaml                        what a manifest declares
  cat web.yaml | strata create -f -
  strata create deployment web --image=nginx --replicas=3
  strata create deployment hello --image=host -- python3 -m http.server 8080
  strata create configmap settings --from-literal=mode=fast --from-file=app.conf
  strata create secret generic login --from-literal=password=…
  strata create namespace shop
  strata create deployment web --image=nginx --dry-run=client -o yaml > web.yaml";

/// Arguments of `create`.
#[derive(Debug, Args)]
pub struct CreateArgs {
    #[command(subcommand)]
    kind: Option<CreateKind>,
    #[command(flatten)]
    files: FileArgs,
    #[command(flatten)]
    validate: ValidateArgs,
    #[command(flatten)]
    write: WriteArgs,
}

/// What can be made from flags alone.
#[derive(Debug, Subcommand)]
enum CreateKind {
    /// A Deployment: a number of equal pods, kept at that number
    #[command(visible_alias = "deploy")]
    Deployment(build::DeploymentArgs),
    /// A ConfigMap: settings as keys and texts
    #[command(visible_alias = "cm")]
    Configmap(build::ConfigMapArgs),
    /// A Secret: the same for what not everybody may read
    #[command(subcommand)]
    Secret(SecretKind),
    /// A Namespace: a room of its own for objects
    #[command(visible_alias = "ns")]
    Namespace(build::NameArgs),
    /// A ServiceAccount: an identity for programs
    #[command(visible_alias = "sa")]
    Serviceaccount(build::NameArgs),
}

/// Kinds of secrets.
#[derive(Debug, Subcommand)]
enum SecretKind {
    /// From literals and files
    Generic(build::SecretArgs),
}

/// Prints what flags describe, where nothing is to be sent: manifests can be written without a server. `None` where a
/// server is needed after all.
pub fn offline(args: &CreateArgs, namespace: Option<&str>) -> Option<CliResult> {
    let kind = args.kind.as_ref()?;
    kind.write().client_only().then(|| {
        let mut value = kind.build()?;
        let text = |field: &str| value[field].as_str().unwrap_or_default();
        let registry = strata_model::resource::Registry::builtin();
        let known = registry.by_api_version(text("apiVersion"), text("kind"));
        let resource = known.ok_or_else(|| usage(format!("no such type: {}", text("kind"))))?;
        if let (true, Some(namespace)) = (resource.is_namespaced(), namespace) {
            value["metadata"]["namespace"] = Value::String(namespace.to_owned());
        }
        kind.write().report_value(resource, value, "created")
    })
}

impl CreateKind {
    fn build(&self) -> CliResult<Value> {
        match self {
            Self::Deployment(args) => build::deployment(args),
            Self::Configmap(args) => build::config_map(args),
            Self::Secret(SecretKind::Generic(args)) => build::secret(args),
            Self::Namespace(args) => Ok(build::namespace(args)),
            Self::Serviceaccount(args) => Ok(build::service_account(args)),
        }
    }

    fn write(&self) -> &WriteArgs {
        match self {
            Self::Deployment(args) => &args.write,
            Self::Configmap(args) => &args.write,
            Self::Secret(SecretKind::Generic(args)) => &args.write,
            Self::Namespace(args) | Self::Serviceaccount(args) => &args.write,
        }
    }
}

/// Runs the command.
pub async fn run(session: &Session, args: CreateArgs) -> CliResult {
    if let Some(kind) = args.kind {
        return from_flags(session, &kind).await;
    }
    if args.files.filenames.is_empty() {
        return Err(usage(
            "must specify what to create: a manifest with -f FILE, or a type, such as `strata create deployment web \
             --image=nginx` (strata create --help)",
        ));
    }
    let mut errors = Vec::new();
    for object in declared(session, &args.files).await? {
        let mut options = args.write.options("strata-create");
        options.field_validation = args.validate.validation()?;
        if let Err(error) = create(session, &args.write, &object, &options).await {
            let about = format!("creating \"{}\"", object.place);
            errors.push(CliError::About { about, error: Box::new(error) });
        }
    }
    match errors.len() {
        0 => Ok(()),
        1 => Err(errors.remove(0)),
        _ => Err(CliError::Many(errors)),
    }
}

async fn from_flags(session: &Session, kind: &CreateKind) -> CliResult {
    let (mut value, write) = (kind.build()?, kind.write());
    let text = |field: &str| value[field].as_str().unwrap_or_default().to_owned();
    let (api_version, kind) = (text("apiVersion"), text("kind"));
    let resource = session.type_of(&api_version, &kind).await?;
    let namespace = session.namespace_of(&resource, false);
    if resource.is_namespaced() {
        value["metadata"]["namespace"] = Value::String(namespace.clone());
    }
    let mut options = write.options("strata-create");
    options.field_validation = strata_client::options::FieldValidation::Strict;
    let written = session.client.create(&resource, &namespace, value.to_string(), &options).await?;
    write.report_written(&resource, &written, "created")
}

/// Creates one declared object, and says so.
async fn create(
    session: &Session,
    write: &WriteArgs,
    object: &Declared,
    options: &strata_client::options::WriteOptions,
) -> CliResult {
    let named = !object.name().is_empty() || object.value["metadata"]["generateName"].is_string();
    if !named {
        return Err(usage(format!(
            "{}: metadata.name is not set: give the {} a name",
            object.place, object.resource.kind
        )));
    }
    if write.client_only() {
        return write.report_value(&object.resource, object.value.clone(), "created");
    }
    let body = object.value.to_string();
    let written = session.client.create(&object.resource, &object.namespace, body, options).await?;
    write.report_written(&object.resource, &written, "created")
}
