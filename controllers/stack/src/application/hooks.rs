//! Pushes that hosts of repositories tell of: what Applications ask of that repository is looked at at once.

use std::net::SocketAddr;
use std::sync::Arc;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::Value;
use strata_client::client::Client;
use strata_client::options::GetOptions;
use strata_model::object::ObjectKey;
use strata_model::resource::builtin;
use strata_plan::application::types::NAMESPACE;

use super::layer::Layer;
use super::repositories::{Ask, Repositories};
use super::source::webhook::listen::{Listener, Told};
use super::source::webhook::{Keys, Push, SECRET};

struct Hooks<R> {
    layer: Arc<Layer<R>>,
    client: Client,
}

impl<R: Repositories> Told for Hooks<R> {
    async fn keys(&self) -> Keys {
        let key = ObjectKey::new(NAMESPACE, SECRET);
        let found = self.client.get(&builtin::SECRET, &key, &GetOptions::default()).await;
        let secret: Value = match found.as_ref().map(|object| object.to_value()) {
            Ok(Ok(secret)) => secret,
            Ok(Err(error)) => {
                tracing::warn!(
                    error = &error as &dyn std::error::Error,
                    "the keys of webhooks cannot be read"
                );
                Value::Null
            }
            Err(error) => {
                tracing::debug!(error = error as &dyn std::error::Error, "there are no keys of webhooks");
                Value::Null
            }
        };
        let decode = |name: &str| {
            let bytes = secret["data"][name].as_str().and_then(|text| STANDARD.decode(text).ok());
            bytes.and_then(|bytes| String::from_utf8(bytes).ok()).unwrap_or_default()
        };
        Keys::from_secret(decode)
    }

    async fn pushed(&self, push: Push) {
        let concerns = |ask: &Ask| ask.sources.iter().any(|source| push.is_of(&source.repo_url));
        let count = self.layer.refresh_where(concerns);
        tracing::info!(reference = push.reference, applications = count, "pushed");
    }
}

/// Takes webhooks at an address for as long as it is polled; without one it only waits.
pub async fn serve<R: Repositories>(address: Option<SocketAddr>, layer: Arc<Layer<R>>, client: Client) {
    let Some(address) = address else { return std::future::pending().await };
    match Listener::bind(address).await {
        Ok(listener) => listener.serve(Arc::new(Hooks { layer, client })).await,
        Err(error) => {
            tracing::error!(%error, %address, "webhooks cannot be taken; repositories are looked at by themselves");
            std::future::pending().await
        }
    }
}
