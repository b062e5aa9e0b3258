//! Asks the admin port of another process.

use std::io;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::Duration;

use bytes::Bytes;
use http_body_util::{BodyExt as _, Empty, Limited};
use hyper::{Method, Request, StatusCode};
use hyper_util::rt::TokioIo;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::{TcpStream, UnixStream};

/// Most time for an answer.
const LIMIT: Duration = Duration::from_secs(10);
/// Largest answer, bytes.
const MAX_ANSWER: usize = 64 * 1024 * 1024;

/// Where an admin port is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Place {
    /// An address.
    Address(SocketAddr),
    /// A Unix socket.
    Socket(PathBuf),
}

impl std::fmt::Display for Place {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Address(address) => write!(f, "http://{address}"),
            Self::Socket(path) => write!(f, "{}", path.display()),
        }
    }
}

/// There is no answer.
#[derive(Debug, thiserror::Error)]
pub enum AskError {
    /// Nobody listens there.
    #[error("cannot reach the admin port {place}")]
    Connect {
        /// Where.
        place: Place,
        /// Why.
        #[source]
        source: io::Error,
    },
    /// It does not speak HTTP, or hung up.
    #[error("the admin port {place} does not answer")]
    Broken {
        /// Where.
        place: Place,
        /// Why.
        #[source]
        source: Box<dyn std::error::Error + Send + Sync>,
    },
    /// It did not answer in time.
    #[error("the admin port {0} did not answer within {limit} s", limit = LIMIT.as_secs())]
    Late(Place),
    /// It said no.
    #[error("{said}")]
    Refused {
        /// The HTTP status.
        code: u16,
        /// In its words.
        said: String,
    },
}

/// Sends a request and takes the whole answer.
///
/// # Errors
/// See [`AskError`].
pub async fn ask(place: &Place, method: Method, path: &str) -> Result<String, AskError> {
    let asking = async {
        let failed = |source| AskError::Connect { place: place.clone(), source };
        match place {
            Place::Address(address) => {
                let stream = TcpStream::connect(address).await.map_err(failed)?;
                over(stream, place, method, path).await
            }
            Place::Socket(file) => {
                let stream = UnixStream::connect(file).await.map_err(failed)?;
                over(stream, place, method, path).await
            }
        }
    };
    tokio::time::timeout(LIMIT, asking).await.unwrap_or_else(|_| Err(AskError::Late(place.clone())))
}

async fn over<S>(stream: S, place: &Place, method: Method, path: &str) -> Result<String, AskError>
where
    S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
{
    let broken =
        |source: Box<dyn std::error::Error + Send + Sync>| AskError::Broken { place: place.clone(), source };
    let request =
        Request::builder().method(method).uri(path).header("host", "admin").body(Empty::<Bytes>::new());
    let request = request.map_err(|error| broken(error.into()))?;
    let shaken = hyper::client::conn::http1::handshake(TokioIo::new(stream)).await;
    let (mut sender, connection) = shaken.map_err(|error| broken(error.into()))?;
    let answering = async {
        let response = sender.send_request(request).await.map_err(|error| broken(error.into()))?;
        let status = response.status();
        let body = Limited::new(response.into_body(), MAX_ANSWER).collect().await.map_err(broken)?;
        Ok((status, String::from_utf8_lossy(&body.to_bytes()).into_owned()))
    };
    let mut connection = std::pin::pin!(connection);
    let mut answering = std::pin::pin!(answering);
    let (status, said) = tokio::select! {
        answer = &mut answering => answer?,
        ended = &mut connection => {
            ended.map_err(|error| broken(error.into()))?;
            answering.await?
        }
    };
    if status == StatusCode::OK {
        return Ok(said);
    }
    Err(AskError::Refused { code: status.as_u16(), said: said.trim_end().to_owned() })
}
