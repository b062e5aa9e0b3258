//! TLS on both sides: towards clients, who may show a certificate, and towards node agents.

use std::path::PathBuf;
use std::sync::Arc;

use rustls::crypto::{CryptoProvider, ring};
use rustls::pki_types::pem::{self, PemObject};
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::server::WebPkiClientVerifier;
use rustls::{ClientConfig, RootCertStore, ServerConfig};

use super::config::{Config, Identity, NodeAccess, Pem};

/// Certificates or keys that cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum TlsError {
    /// A file cannot be read.
    #[error("cannot read {path}")]
    Read {
        /// The file.
        path: PathBuf,
        /// Why.
        #[source]
        source: std::io::Error,
    },
    /// The text is no PEM, or has nothing of what is needed.
    #[error("{what} is not usable PEM")]
    Pem {
        /// What it should be.
        what: &'static str,
        /// Why.
        #[source]
        source: pem::Error,
    },
    /// There is no certificate in the text.
    #[error("{what} has no certificate in it")]
    Empty {
        /// What it should be.
        what: &'static str,
    },
    /// Certificate and key, or an authority, do not work.
    #[error("{what} cannot be used")]
    Unusable {
        /// What.
        what: &'static str,
        /// Why.
        #[source]
        source: rustls::Error,
    },
    /// The authorities do not work.
    #[error("the client authorities cannot be used")]
    Verifier(#[source] rustls::server::VerifierBuilderError),
}

fn provider() -> Arc<CryptoProvider> {
    Arc::new(ring::default_provider())
}

fn text(pem: &Pem) -> Result<Vec<u8>, TlsError> {
    match pem {
        Pem::Text(text) => Ok(text.clone().into_bytes()),
        Pem::File(path) => {
            std::fs::read(path).map_err(|source| TlsError::Read { path: path.clone(), source })
        }
    }
}

fn certificates(pem: &Pem, what: &'static str) -> Result<Vec<CertificateDer<'static>>, TlsError> {
    let text = text(pem)?;
    let all: Result<Vec<_>, _> = CertificateDer::pem_slice_iter(&text).collect();
    let all = all.map_err(|source| TlsError::Pem { what, source })?;
    if all.is_empty() { Err(TlsError::Empty { what }) } else { Ok(all) }
}

fn key(pem: &Pem, what: &'static str) -> Result<PrivateKeyDer<'static>, TlsError> {
    PrivateKeyDer::from_pem_slice(&text(pem)?).map_err(|source| TlsError::Pem { what, source })
}

fn roots(pem: &Pem, what: &'static str) -> Result<RootCertStore, TlsError> {
    let mut roots = RootCertStore::empty();
    for certificate in certificates(pem, what)? {
        roots.add(certificate).map_err(|source| TlsError::Unusable { what, source })?;
    }
    Ok(roots)
}

fn own(identity: &Identity) -> Result<(Vec<CertificateDer<'static>>, PrivateKeyDer<'static>), TlsError> {
    Ok((certificates(&identity.certificate, "the certificate")?, key(&identity.key, "the private key")?))
}

/// TLS towards clients. A client may show a certificate of the authorities, or none.
pub fn server(config: &Config) -> Result<Arc<ServerConfig>, TlsError> {
    let unusable = |source| TlsError::Unusable { what: "the server's certificate", source };
    let builder = ServerConfig::builder_with_provider(provider())
        .with_safe_default_protocol_versions()
        .map_err(unusable)?;
    let builder = match &config.client_authority {
        Some(authority) => {
            let roots = Arc::new(roots(authority, "the client authority")?);
            let verifier =
                WebPkiClientVerifier::builder_with_provider(roots, provider()).allow_unauthenticated();
            builder.with_client_cert_verifier(verifier.build().map_err(TlsError::Verifier)?)
        }
        None => builder.with_no_client_auth(),
    };
    let (chain, key) = own(&config.identity)?;
    let mut tls = builder.with_single_cert(chain, key).map_err(unusable)?;
    tls.alpn_protocols = vec![b"h2".to_vec(), b"http/1.1".to_vec()];
    Ok(Arc::new(tls))
}

/// TLS towards node agents.
pub fn client(access: &NodeAccess) -> Result<Arc<ClientConfig>, TlsError> {
    let unusable = |source| TlsError::Unusable { what: "the client certificate for nodes", source };
    let builder = ClientConfig::builder_with_provider(provider())
        .with_safe_default_protocol_versions()
        .map_err(unusable)?;
    let (chain, key) = own(&access.identity)?;
    let roots = roots(&access.authority, "the authority of nodes")?;
    let mut tls =
        builder.with_root_certificates(roots).with_client_auth_cert(chain, key).map_err(unusable)?;
    tls.alpn_protocols = vec![b"h2".to_vec()];
    Ok(Arc::new(tls))
}
