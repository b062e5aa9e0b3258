//! `app create`: an Application from flags.

use clap::Args;
use serde_json::{Value, json};
use strata_client::options::{Patch, WriteOptions};
use strata_model::condition::rfc3339;

use super::common::{self, AppArg};
use crate::commands::error::{CliResult, usage};
use crate::commands::printing::WriteArgs;
use crate::commands::session::Session;

/// Arguments of `app create`.
#[derive(Debug, Args)]
pub struct CreateArgs {
    #[command(flatten)]
    app: AppArg,
    /// URL of the repository: https, ssh, or file
    #[arg(long, value_name = "URL")]
    repo: String,
    /// Folder within the repository
    #[arg(long, value_name = "PATH", default_value = ".")]
    path: String,
    /// Branch, tag, range of versions or commit
    #[arg(long, value_name = "REVISION", default_value = "HEAD")]
    revision: String,
    /// Namespace of objects that name none
    #[arg(long, value_name = "NAMESPACE")]
    dest_namespace: String,
    /// Project
    #[arg(long, value_name = "NAME", default_value = "default")]
    project: String,
    /// Sync new commits, prune what is no longer in the repository, and put back what others change
    #[arg(long)]
    auto: bool,
    /// Make the namespace where it is missing
    #[arg(long)]
    create_namespace: bool,
    /// Leave the objects where they are when the Application is deleted
    #[arg(long)]
    keep_objects: bool,
    /// Folders below count too
    #[arg(long)]
    directory_recurse: bool,
    /// Options of every sync, as NAME=VALUE
    #[arg(long, value_name = "OPTION")]
    sync_option: Vec<String>,
    #[command(flatten)]
    write: WriteArgs,
}

/// Runs the command.
pub async fn run(session: &Session, args: CreateArgs) -> CliResult {
    let resource = common::resource(session).await?;
    let object = object(&args)?;
    if args.write.client_only() {
        return args.write.report_value(&resource, object, "created");
    }
    let options = WriteOptions {
        cause: format!("strata app create, {}", rfc3339(jiff::Timestamp::now())),
        ..args.write.options("strata-app")
    };
    let patch = Patch::Apply { object: object.to_string().into(), force: true };
    let written = session.client.patch(&resource, &args.app.key(), "", &patch, &options).await?;
    let done = match (written.object.meta().generation, written.changed) {
        (_, false) => "unchanged",
        (1, _) => "created",
        _ => "configured",
    };
    args.write.report_written(&resource, &written, done)
}

/// The repository as a URL: a path on this machine becomes one.
fn url(repo: &str) -> CliResult<String> {
    if repo.contains("://") || repo.contains('@') || !std::path::Path::new(repo).exists() {
        return Ok(repo.to_owned());
    }
    let path = std::path::Path::new(repo).canonicalize()?;
    let path = path.to_str().ok_or_else(|| usage(format!("the path {} is not text", path.display())))?;
    Ok(format!("file://{path}"))
}

fn object(args: &CreateArgs) -> CliResult<Value> {
    let mut options = args.sync_option.clone();
    if args.create_namespace {
        options.push("CreateNamespace=true".to_owned());
    }
    let mut policy = json!({});
    if args.auto {
        policy["automated"] = json!({"prune": true, "selfHeal": true});
    }
    if !options.is_empty() {
        policy["syncOptions"] = json!(options);
    }
    let mut source = json!({"repoURL": url(&args.repo)?, "path": args.path, "targetRevision": args.revision});
    if args.directory_recurse {
        source["directory"] = json!({"recurse": true});
    }
    let finalizers: &[&str] =
        if args.keep_objects { &[] } else { &["resources-finalizer.argocd.argoproj.io"] };
    Ok(json!({
        "apiVersion": "argoproj.io/v1alpha1",
        "kind": "Application",
        "metadata": {"name": args.app.name, "namespace": args.app.app_namespace, "finalizers": finalizers},
        "spec": {
            "project": args.project,
            "source": source,
            "destination": {"server": "https://kubernetes.default.svc", "namespace": args.dest_namespace},
            "syncPolicy": policy,
        },
    }))
}
