//! What the commands about Applications share: which one is meant, how it is read and changed.

use std::sync::Arc;

use clap::Args;
use serde_json::{Value, json};
use strata_client::options::{Patch, WriteOptions};
use strata_model::object::{Object, ObjectKey};
use strata_model::resource::ResourceType;
use strata_model::status::Reason;

use crate::commands::error::{CliError, CliResult, usage};
use crate::commands::session::Session;
use crate::commands::target::value_of;
use crate::output::style::Tone;

/// The namespace of Applications, unless another one is given.
pub const NAMESPACE: &str = "argocd";
/// The manager of what these commands write.
const MANAGER: &str = "strata-app";

/// Which Application.
#[derive(Clone, Debug, Args)]
pub struct AppArg {
    /// Name of the Application
    #[arg(value_name = "NAME")]
    pub name: String,
    /// Namespace of the Application itself
    #[arg(short = 'N', long, value_name = "NAMESPACE", default_value = NAMESPACE)]
    pub app_namespace: String,
}

impl AppArg {
    /// Namespace and name.
    pub fn key(&self) -> ObjectKey {
        ObjectKey::new(self.app_namespace.clone(), self.name.clone())
    }
}

/// The type of Applications.
pub async fn resource(session: &Session) -> CliResult<Arc<ResourceType>> {
    session.lookup("applications.argoproj.io").await.map_err(|error| match error {
        CliError::Usage(_) => usage(
            "this platform has no Applications: the application controller brings them (`strata controller application`)",
        ),
        other => other,
    })
}

/// One Application as it is.
pub async fn fetch(session: &Session, app: &AppArg) -> CliResult<(Arc<ResourceType>, Object, Value)> {
    let resource = resource(session).await?;
    let found = session.client.get(&resource, &app.key(), &Default::default()).await;
    let object = match found {
        Err(error) if error.is(Reason::NotFound) => {
            return Err(usage(format!(
                "there is no Application {} in namespace {} (`strata app list` shows those there are)",
                app.name, app.app_namespace
            )));
        }
        other => other?,
    };
    let value = value_of(&resource, &object)?;
    Ok((resource, object, value))
}

/// Changes an Application.
pub async fn change(
    session: &Session,
    resource: &ResourceType,
    key: &ObjectKey,
    patch: Value,
) -> CliResult<Value> {
    let options = WriteOptions { field_manager: MANAGER.to_owned(), ..WriteOptions::default() };
    let written = session.client.patch(resource, key, "", &Patch::Merge(patch), &options).await?;
    value_of(resource, &written.object)
}

/// Asks for an operation; refused while another one runs.
pub async fn operate(session: &Session, app: &AppArg, operation: Value) -> CliResult<Value> {
    let (resource, object, value) = fetch(session, app).await?;
    if value["operation"].is_object() || value["status"]["operationState"]["phase"] == "Running" {
        return Err(usage(format!(
            "another operation of {} is in progress: {} (`strata app wait {} --operation` waits for its end)",
            app.name,
            text(&value["status"]["operationState"]["message"]),
            app.name
        )));
    }
    let metadata = json!({"resourceVersion": object.meta().resource_version});
    change(session, &resource, &app.key(), json!({"metadata": metadata, "operation": operation})).await
}

/// A text, empty where there is none.
pub fn text(value: &Value) -> &str {
    value.as_str().unwrap_or_default()
}

/// The commits of a sync status, shortened.
pub fn revision(of: &Value) -> String {
    let short = |r: &str| r.get(..12).filter(|_| r.len() == 40 || r.len() == 64).unwrap_or(r).to_owned();
    match of["revisions"].as_array() {
        Some(list) if !list.is_empty() => list.iter().map(|r| short(text(r))).collect::<Vec<_>>().join(","),
        _ => short(text(&of["revision"])),
    }
}

/// The tone of a word about sync or health.
pub fn tone(word: &str) -> Tone {
    match word {
        "Synced" | "Healthy" | "Succeeded" => Tone::Good,
        "Progressing" | "Running" | "Suspended" | "OutOfSync" | "Terminating" => Tone::Waiting,
        "" => Tone::Faint,
        _ => Tone::Bad,
    }
}

/// Who runs this command, for what is written down of it.
pub fn user() -> String {
    ["USER", "LOGNAME"]
        .iter()
        .find_map(|name| std::env::var(name).ok())
        .unwrap_or_else(|| "strata".to_owned())
}
