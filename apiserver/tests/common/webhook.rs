//! A webhook: an HTTPS server on a port of its own that answers reviews.

use std::convert::Infallible;
use std::net::SocketAddr;
use std::sync::Arc;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use bytes::Bytes;
use http_body_util::{BodyExt, Full};
use hyper_util::rt::TokioIo;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use serde_json::Value;

use super::server::TestServer;

/// A webhook that listens.
pub struct Webhook {
    /// Where.
    pub address: SocketAddr,
    /// Its authority, as `caBundle` has it.
    pub authority: String,
}

impl Webhook {
    /// Starts one at an address of this machine, whose certificate is for that and for the service `hook` in `default`. It
    /// answers reviews by a function, until the test ends.
    pub async fn start(
        server: &TestServer,
        ip: &str,
        answer: impl Fn(&Value) -> Value + Send + Sync + 'static,
    ) -> Self {
        let pair = server.authority.identity("webhook", "webhooks", &[ip, "hook.default.svc"]).unwrap();
        let chain = vec![CertificateDer::from_pem_slice(pair.certificate.as_bytes()).unwrap()];
        let key = PrivateKeyDer::from_pem_slice(pair.key.as_bytes()).unwrap();
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let tls = rustls::ServerConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()
            .unwrap();
        let tls = tls.with_no_client_auth().with_single_cert(chain, key).unwrap();
        let acceptor = tokio_rustls::TlsAcceptor::from(Arc::new(tls));
        let listener = tokio::net::TcpListener::bind((ip, 0)).await.unwrap();
        let address = listener.local_addr().unwrap();
        let answer = Arc::new(answer);
        tokio::spawn(async move {
            loop {
                let (stream, _) = listener.accept().await.unwrap();
                let (acceptor, answer) = (acceptor.clone(), Arc::clone(&answer));
                tokio::spawn(async move {
                    // A client that gives up, or does not trust it, is no fault of the webhook.
                    let Ok(stream) = acceptor.accept(stream).await else { return };
                    let service =
                        hyper::service::service_fn(|request: http::Request<hyper::body::Incoming>| {
                            let answer = Arc::clone(&answer);
                            async move {
                                let body = request.into_body().collect().await.unwrap().to_bytes();
                                let said = answer(&serde_json::from_slice(&body).unwrap()).to_string();
                                Ok::<_, Infallible>(http::Response::new(Full::new(Bytes::from(said))))
                            }
                        });
                    let http = hyper::server::conn::http1::Builder::new();
                    http.serve_connection(TokioIo::new(stream), service).await.unwrap_or_default();
                });
            }
        });
        Self { address, authority: STANDARD.encode(server.authority.pem()) }
    }

    /// Its URL.
    pub fn url(&self) -> String {
        format!("https://{}/review", self.address)
    }
}
