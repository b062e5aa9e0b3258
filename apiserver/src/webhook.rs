//! Calls to webhooks: one HTTPS request with a JSON body, and its JSON answer. Every wait and every size has a limit.
//! Knows nothing of what is asked.

use std::sync::Arc;
use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use bytes::{Bytes, BytesMut};
use http::header::{ACCEPT, CONTENT_TYPE, HOST};
use http::{Request, Uri};
use http_body_util::{BodyExt, Full};
use hyper_util::rt::TokioIo;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, ServerName};
use rustls::{ClientConfig, RootCertStore};
use serde_json::Value;
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;

/// Most time that a call may take.
pub const MAX_TIMEOUT: Duration = Duration::from_secs(30);
/// Most bytes of an answer.
pub const MAX_ANSWER: usize = 16 * 1024 * 1024;
/// The port where a URL names none.
const HTTPS: u16 = 443;

/// Why a webhook gave no answer.
#[derive(Debug, thiserror::Error)]
pub enum WebhookError {
    /// The URL cannot be used.
    #[error("the URL {url:?} cannot be called: {why}")]
    Url {
        /// As it is written.
        url: String,
        /// What is wrong with it.
        why: &'static str,
    },
    /// The authorities of its certificate cannot be used.
    #[error("the caBundle cannot be used: {0}")]
    Authority(String),
    /// It cannot be reached.
    #[error("{url} cannot be reached")]
    Connect {
        /// As it is written.
        url: String,
        /// Why.
        #[source]
        source: std::io::Error,
    },
    /// It took too long.
    #[error("{url} did not answer within {} s", .after.as_secs())]
    Timeout {
        /// As it is written.
        url: String,
        /// The limit.
        after: Duration,
    },
    /// The exchange broke off.
    #[error("the call of {url} broke off")]
    Http {
        /// As it is written.
        url: String,
        /// Why.
        #[source]
        source: hyper::Error,
    },
    /// It answered with another code than 200.
    #[error("{url} answered {code}")]
    Code {
        /// As it is written.
        url: String,
        /// The code.
        code: u16,
    },
    /// Its answer is too large, or no JSON.
    #[error("the answer of {url} cannot be used: {why}")]
    Answer {
        /// As it is written.
        url: String,
        /// What is wrong with it.
        why: String,
    },
}

/// Where a webhook is, and who vouches for it.
#[derive(Clone, Copy, Debug)]
pub struct Endpoint<'a> {
    /// `https://host[:port]/path`.
    pub url: &'a str,
    /// Where to connect instead, as `host:port`; empty for what the URL names.
    pub address: &'a str,
    /// Authorities of its certificate: base64 of PEM.
    pub authority: &'a str,
}

/// Posts a JSON body; gives the JSON of the answer.
///
/// # Errors
/// What went wrong, and where.
pub async fn call(endpoint: Endpoint<'_>, body: &Value, timeout: Duration) -> Result<Value, WebhookError> {
    let after = timeout.min(MAX_TIMEOUT);
    match tokio::time::timeout(after, exchange(endpoint, body)).await {
        Ok(answer) => answer,
        Err(_) => Err(WebhookError::Timeout { url: endpoint.url.to_owned(), after }),
    }
}

async fn exchange(endpoint: Endpoint<'_>, body: &Value) -> Result<Value, WebhookError> {
    let url = endpoint.url.to_owned();
    let bad = |why| WebhookError::Url { url: url.clone(), why };
    let uri: Uri = endpoint.url.parse().map_err(|_| bad("it is no URL"))?;
    if uri.scheme_str() != Some("https") {
        return Err(bad("it must begin with https://"));
    }
    let host = uri.host().ok_or_else(|| bad("it names no host"))?.trim_matches(['[', ']']).to_owned();
    let port = uri.port_u16().unwrap_or(HTTPS);
    let server = ServerName::try_from(host.clone()).map_err(|_| bad("its host is no name"))?;
    let tls = TlsConnector::from(Arc::new(trusting(endpoint.authority)?));
    let broken = |source| WebhookError::Connect { url: url.clone(), source };
    let stream = if endpoint.address.is_empty() {
        TcpStream::connect((host.as_str(), port)).await
    } else {
        TcpStream::connect(endpoint.address).await
    };
    let stream = tls.connect(server, stream.map_err(broken)?).await.map_err(broken)?;
    let http = |source| WebhookError::Http { url: url.clone(), source };
    let (mut sender, connection) =
        hyper::client::conn::http1::handshake(TokioIo::new(stream)).await.map_err(http)?;
    let path = uri.path_and_query().map_or("/", |path| path.as_str());
    let request = Request::post(path)
        .header(HOST, uri.authority().map_or("", |authority| authority.as_str()))
        .header(CONTENT_TYPE, "application/json")
        .header(ACCEPT, "application/json")
        .body(Full::new(Bytes::from(body.to_string())))
        .map_err(|_| bad("it cannot be asked for"))?;
    let answered = async {
        let answer = sender.send_request(request).await.map_err(http)?;
        let code = answer.status().as_u16();
        if code != 200 {
            return Err(WebhookError::Code { url: url.clone(), code });
        }
        read(&url, answer.into_body()).await
    };
    let mut connection = std::pin::pin!(connection);
    let mut answered = std::pin::pin!(answered);
    tokio::select! {
        answer = &mut answered => answer,
        end = &mut connection => match end {
            // The answer may have come with the end.
            Ok(()) => answered.await,
            Err(source) => Err(http(source)),
        },
    }
}

async fn read(url: &str, mut body: hyper::body::Incoming) -> Result<Value, WebhookError> {
    let unusable = |why: String| WebhookError::Answer { url: url.to_owned(), why };
    let mut all = BytesMut::new();
    while let Some(frame) = body.frame().await {
        let frame = frame.map_err(|source| WebhookError::Http { url: url.to_owned(), source })?;
        if let Ok(data) = frame.into_data() {
            if all.len() + data.len() > MAX_ANSWER {
                return Err(unusable(format!("it is larger than {MAX_ANSWER} bytes")));
            }
            all.extend_from_slice(&data);
        }
    }
    serde_json::from_slice(&all).map_err(|error| unusable(error.to_string()))
}

/// TLS that trusts these authorities alone.
fn trusting(authority: &str) -> Result<ClientConfig, WebhookError> {
    let wrong = |why: &dyn std::fmt::Display| WebhookError::Authority(why.to_string());
    if authority.is_empty() {
        return Err(wrong(&"it is empty; name the authorities that signed the certificate of the webhook"));
    }
    let text: String = authority.split_whitespace().collect();
    let pem = STANDARD.decode(text).map_err(|error| wrong(&error))?;
    let mut roots = RootCertStore::empty();
    for certificate in CertificateDer::pem_slice_iter(&pem) {
        roots.add(certificate.map_err(|error| wrong(&error))?).map_err(|error| wrong(&error))?;
    }
    if roots.is_empty() {
        return Err(wrong(&"it holds no certificate"));
    }
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let builder = ClientConfig::builder_with_provider(provider).with_safe_default_protocol_versions();
    let builder = builder.map_err(|error| wrong(&error))?;
    Ok(builder.with_root_certificates(roots).with_no_client_auth())
}
