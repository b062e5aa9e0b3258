//! Strata over REST: HTTP/2 over four connections, with TLS where the server has it.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use bytes::Bytes;
use http::{Request, Response};
use http_body_util::{BodyExt, Full};
use hyper::body::Incoming;
use hyper::client::conn::http2::{self, SendRequest};
use hyper_util::rt::{TokioExecutor, TokioIo};
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName};
use rustls::{ClientConfig, RootCertStore};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;

use crate::context::Outcome;
use crate::etcd::CONNECTIONS;
use crate::host::{Access, Tls};

/// Receive windows, so that large answers are not held up.
const STREAM_WINDOW: u32 = 1 << 20;
const CONNECTION_WINDOW: u32 = 4 << 20;

/// A client.
#[derive(Clone)]
pub struct Client {
    senders: Arc<[SendRequest<Full<Bytes>>]>,
    turn: Arc<AtomicUsize>,
    origin: Arc<str>,
}

impl Client {
    /// Connects.
    pub async fn connect(access: &Access) -> Outcome<Self> {
        let mut senders = Vec::new();
        for _ in 0..CONNECTIONS {
            let stream = TcpStream::connect(access.address).await?;
            stream.set_nodelay(true)?;
            senders.push(match &access.tls {
                None => handshake(stream).await?,
                Some(tls) => {
                    let name = ServerName::IpAddress(access.address.ip().into());
                    handshake(TlsConnector::from(config(tls)?).connect(name, stream).await?).await?
                }
            });
        }
        let scheme = if access.tls.is_some() { "https" } else { "http" };
        let origin = format!("{scheme}://{}", access.address).into();
        Ok(Self { senders: senders.into(), turn: Arc::new(AtomicUsize::new(0)), origin })
    }

    async fn send(&self, method: &str, path: &str, media: &str, body: Bytes) -> Outcome<Response<Incoming>> {
        let turn = self.turn.fetch_add(1, Ordering::Relaxed) % self.senders.len();
        let request = Request::builder()
            .method(method)
            .uri(format!("{}{path}", self.origin))
            .header("content-type", media)
            .body(Full::new(body))?;
        let mut sender = self.senders[turn].clone();
        sender.ready().await?;
        let response = sender.send_request(request).await?;
        if response.status().is_success() {
            return Ok(response);
        }
        let status = response.status();
        let text = response.into_body().collect().await?.to_bytes();
        Err(format!("{method} {path}: {status}: {}", String::from_utf8_lossy(&text)).into())
    }

    /// Sends a request and takes the whole answer; gives its bytes.
    pub async fn ask(&self, method: &str, path: &str, media: &str, body: Bytes) -> Outcome<u64> {
        let mut answer = self.send(method, path, media, body).await?.into_body();
        let mut bytes = 0;
        while let Some(frame) = answer.frame().await {
            bytes += frame?.data_ref().map_or(0, |data| data.len() as u64);
        }
        Ok(bytes)
    }

    /// Opens so many watches at a path, each on a stream of its own.
    pub async fn watch(&self, path: &str, watches: usize) -> Outcome<Vec<Events>> {
        let path = format!("{path}?watch=true");
        let mut all = Vec::new();
        for _ in 0..watches {
            all.push(Events {
                body: self.send("GET", &path, "application/json", Bytes::new()).await?.into_body(),
            });
        }
        Ok(all)
    }

    /// Creates an object at the path of its collection.
    pub async fn create(&self, path: &str, object: Bytes) -> Outcome<()> {
        self.ask("POST", path, "application/json", object).await.map(drop)
    }
}

/// One watch.
pub struct Events {
    body: Incoming,
}

impl Events {
    /// Waits for the next events; gives a zero for each, as each is a line that is not looked into.
    pub async fn next(&mut self, revisions: &mut Vec<u64>) -> Outcome<()> {
        let frame = self.body.frame().await.ok_or("the server ended a watch")??;
        let lines = frame.data_ref().map_or(0, |data| data.iter().filter(|byte| **byte == b'\n').count());
        revisions.extend(std::iter::repeat_n(0, lines));
        Ok(())
    }
}

async fn handshake<S>(stream: S) -> Outcome<SendRequest<Full<Bytes>>>
where
    S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
{
    let (sender, connection) = http2::Builder::new(TokioExecutor::new())
        .initial_stream_window_size(STREAM_WINDOW)
        .initial_connection_window_size(CONNECTION_WINDOW)
        .handshake(TokioIo::new(stream))
        .await?;
    tokio::spawn(async move {
        if let Err(error) = connection.await {
            eprintln!("a connection broke off: {error}");
        }
    });
    Ok(sender)
}

fn config(tls: &Tls) -> Outcome<Arc<ClientConfig>> {
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let mut roots = RootCertStore::empty();
    roots.add(CertificateDer::from_pem_slice(tls.authority.as_bytes())?)?;
    let chain = vec![CertificateDer::from_pem_slice(tls.certificate.as_bytes())?];
    let key = PrivateKeyDer::from_pem_slice(tls.key.as_bytes())?;
    let mut config = ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()?
        .with_root_certificates(roots)
        .with_client_auth_cert(chain, key)?;
    config.alpn_protocols = vec![b"h2".to_vec()];
    Ok(Arc::new(config))
}
