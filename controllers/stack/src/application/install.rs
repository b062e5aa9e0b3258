//! What the outer loop needs on the platform: its types, its namespace, and the project of those that name none. Applied, so
//! that nothing is written where it is there; the project is only made, and then belongs to its users.

use std::time::Duration;

use serde_json::{Value, json};
use strata_client::client::Client;
use strata_client::error::ClientError;
use strata_client::options::{Patch, WriteOptions};
use strata_model::object::ObjectKey;
use strata_model::resource::{ResourceType, builtin};
use strata_model::status::Reason;
use strata_plan::application::definition::{default_project, definitions};
use strata_plan::application::types::{APP_PROJECT, DEFAULT_PROJECT, MANAGER, NAMESPACE};

/// Between attempts while the server is not there yet.
const RETRY: Duration = Duration::from_millis(200);
/// The longest between attempts.
const LONGEST: Duration = Duration::from_secs(10);

/// Installs all of it, for as long as it takes.
pub async fn until_installed(client: &Client) {
    let mut pause = RETRY;
    while let Err(error) = install(client).await {
        tracing::debug!(error = &error as &dyn std::error::Error, "types of applications not installed yet");
        tokio::time::sleep(pause).await;
        pause = (pause * 2).min(LONGEST);
    }
}

async fn install(client: &Client) -> Result<(), ClientError> {
    for definition in definitions() {
        apply(client, &builtin::CUSTOM_RESOURCE_DEFINITION, &definition).await?;
    }
    let namespace = json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": NAMESPACE}});
    apply(client, &builtin::NAMESPACE, &namespace).await?;
    let options = WriteOptions { field_manager: MANAGER.to_owned(), ..WriteOptions::default() };
    let made = client.create(&APP_PROJECT, NAMESPACE, default_project().to_string(), &options).await;
    match made {
        Ok(_) => tracing::debug!(project = DEFAULT_PROJECT, "made"),
        Err(error) if error.is(Reason::AlreadyExists) => {}
        Err(error) => return Err(error),
    }
    Ok(())
}

async fn apply(client: &Client, resource: &ResourceType, object: &Value) -> Result<(), ClientError> {
    let name = object["metadata"]["name"].as_str().unwrap_or_default();
    let patch = Patch::Apply { object: object.to_string().into(), force: true };
    let options = WriteOptions { field_manager: MANAGER.to_owned(), ..WriteOptions::default() };
    client.patch(resource, &ObjectKey::new("", name), "", &patch, &options).await.map(|_| ())
}
