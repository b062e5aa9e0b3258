//! A TLS client that takes any certificate: for probes alone, which ask whether a server answers, not who it
//! is. It must never be used for anything that sends or believes something.

use std::sync::Arc;

use rustls::crypto::ring;
use rustls::{ClientConfig, Error};

use crate::anybody::Anybody;

/// The configuration of such a client.
pub fn client_config() -> Result<ClientConfig, Error> {
    let provider = Arc::new(ring::default_provider());
    let config =
        ClientConfig::builder_with_provider(Arc::clone(&provider)).with_safe_default_protocol_versions()?;
    let verifier = Arc::new(Anybody(provider));
    Ok(config.dangerous().with_custom_certificate_verifier(verifier).with_no_client_auth())
}
