//! Serves webhooks: `POST /api/webhook`, as Argo CD has it. What a push leads to is the business of those who are told.

use std::convert::Infallible;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use http::{Method, Request, Response, StatusCode};
use http_body_util::{BodyExt as _, Full, Limited};
use hyper::body::Incoming;
use hyper::service::service_fn;
use hyper_util::rt::{TokioIo, TokioTimer};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::Semaphore;

use super::{Keys, Push, WebhookError, read};

/// The path.
pub const PATH: &str = "/api/webhook";
/// Largest message, in bytes.
const MAX_BODY: usize = 8 << 20;
/// Longest that one exchange may take.
const EXCHANGE_LIMIT: Duration = Duration::from_secs(10);
/// Longest wait for the head of a request.
const HEAD_LIMIT: Duration = Duration::from_secs(5);
/// How many may be talking at once.
const MAX_CONNECTIONS: usize = 32;
/// Wait after a connection could not be taken.
const PAUSE: Duration = Duration::from_millis(100);

/// Who is told of pushes, and with which keys they must be signed now.
pub trait Told: Send + Sync + 'static {
    /// The keys.
    fn keys(&self) -> impl Future<Output = Keys> + Send;
    /// Something was pushed.
    fn pushed(&self, push: Push) -> impl Future<Output = ()> + Send;
}

/// A port for webhooks.
pub struct Listener(TcpListener);

impl Listener {
    /// Binds an address; port 0 is any free one.
    pub async fn bind(address: SocketAddr) -> std::io::Result<Self> {
        TcpListener::bind(address).await.map(Self)
    }

    /// The address with its port.
    pub fn address(&self) -> std::io::Result<SocketAddr> {
        self.0.local_addr()
    }

    /// Serves until dropped.
    pub async fn serve<T: Told>(self, told: Arc<T>) {
        let slots = Arc::new(Semaphore::new(MAX_CONNECTIONS));
        while let Ok(slot) = Arc::clone(&slots).acquire_owned().await {
            match self.0.accept().await {
                Ok((stream, _)) => {
                    let told = Arc::clone(&told);
                    tokio::spawn(async move {
                        let talk = tokio::time::timeout(EXCHANGE_LIMIT, connection(stream, told));
                        if talk.await.is_err() {
                            tracing::debug!("webhooks: a sender was too slow");
                        }
                        drop(slot);
                    });
                }
                Err(error) => {
                    tracing::debug!(%error, "webhooks: cannot accept");
                    tokio::time::sleep(PAUSE).await;
                }
            }
        }
    }
}

async fn connection<T: Told>(stream: TcpStream, told: Arc<T>) {
    let service = service_fn(move |request: Request<Incoming>| {
        let told = Arc::clone(&told);
        async move { Ok::<_, Infallible>(answer(request, &*told).await) }
    });
    let mut builder = hyper::server::conn::http1::Builder::new();
    builder.timer(TokioTimer::new()).header_read_timeout(HEAD_LIMIT).keep_alive(false);
    if let Err(error) = builder.serve_connection(TokioIo::new(stream), service).await {
        tracing::debug!(%error, "webhooks: connection failed");
    }
}

async fn answer<T: Told>(request: Request<Incoming>, told: &T) -> Response<Full<Bytes>> {
    if request.uri().path() != PATH {
        return say(StatusCode::NOT_FOUND, format!("webhooks are taken at {PATH}"));
    }
    if request.method() != Method::POST {
        return say(StatusCode::METHOD_NOT_ALLOWED, "webhooks are sent by POST".to_owned());
    }
    let (head, body) = request.into_parts();
    let Ok(body) = Limited::new(body, MAX_BODY).collect().await else {
        return say(StatusCode::PAYLOAD_TOO_LARGE, format!("a message may have {MAX_BODY} bytes"));
    };
    let header = |name: &str| head.headers.get(name).and_then(|value| value.to_str().ok());
    match read(header, &body.to_bytes(), &told.keys().await) {
        Ok(Some(push)) => {
            tracing::info!(repositories = ?push.repositories, reference = %push.reference, "pushed");
            told.pushed(push).await;
            say(StatusCode::OK, "thank you".to_owned())
        }
        Ok(None) => say(StatusCode::OK, "nothing was pushed".to_owned()),
        Err(error @ WebhookError::Signature { .. }) => {
            tracing::warn!(%error, "a webhook is refused");
            say(StatusCode::UNAUTHORIZED, error.to_string())
        }
        Err(error) => say(StatusCode::BAD_REQUEST, error.to_string()),
    }
}

fn say(status: StatusCode, text: String) -> Response<Full<Bytes>> {
    let mut response = Response::new(Full::new(Bytes::from(text + "\n")));
    *response.status_mut() = status;
    response
}
