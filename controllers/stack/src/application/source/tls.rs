//! With which trust a host is spoken to over TLS. Connects to nothing.

use std::sync::{Arc, LazyLock};

use rustls::crypto::ring;
use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::{ClientConfig, RootCertStore};
use strata_plan::application::rendered::{Fault, RenderError};

use super::transport::Means;
use crate::anybody::Anybody;

/// Authorities of the system: read once a process.
static SYSTEM: LazyLock<Vec<CertificateDer<'static>>> = LazyLock::new(|| {
    let found = rustls_native_certs::load_native_certs();
    for error in &found.errors {
        tracing::debug!(%error, "an authority of the system cannot be read");
    }
    found.certs
});

/// What a connection to a repository trusts, and how it shows who we are.
pub fn config(means: &Means) -> Result<ClientConfig, RenderError> {
    let fail = |what: &str, why: String| {
        RenderError::new(Fault::Settings, format!("{}: {what} cannot be used: {why}", means.url))
    };
    let provider = Arc::new(ring::default_provider());
    let builder = ClientConfig::builder_with_provider(Arc::clone(&provider))
        .with_safe_default_protocol_versions()
        .map_err(|error| fail("TLS", error.to_string()))?;
    let builder = if means.credential.insecure {
        builder.dangerous().with_custom_certificate_verifier(Arc::new(Anybody(provider)))
    } else {
        let mut roots = RootCertStore::empty();
        roots.add_parsable_certificates(SYSTEM.iter().cloned());
        let own = means.certificates.as_deref().unwrap_or_default();
        for certificate in CertificateDer::pem_slice_iter(own.as_bytes()) {
            let certificate =
                certificate.map_err(|error| fail("the certificate of its authority", error.to_string()))?;
            roots
                .add(certificate)
                .map_err(|error| fail("the certificate of its authority", error.to_string()))?;
        }
        builder.with_root_certificates(roots)
    };
    let credential = &means.credential;
    if credential.tls_certificate.is_empty() {
        return Ok(builder.with_no_client_auth());
    }
    let chain: Result<Vec<_>, _> =
        CertificateDer::pem_slice_iter(credential.tls_certificate.as_bytes()).collect();
    let chain = chain.map_err(|error| fail("tlsClientCertData", error.to_string()))?;
    let key = PrivateKeyDer::from_pem_slice(credential.tls_key.as_bytes())
        .map_err(|error| fail("tlsClientCertKey", error.to_string()))?;
    builder.with_client_auth_cert(chain, key).map_err(|error| fail("tlsClientCertData", error.to_string()))
}
