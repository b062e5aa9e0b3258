//! One request and its answer, each on a connection of its own: waits are on the runtime's sockets, the caller's thread
//! blocks within the limits of its conversation. Knows nothing of git beyond the words for its faults.

use std::io::Read;
use std::sync::Arc;
use std::time::Instant;

use bytes::Bytes;
use http::{Request, Response, StatusCode, header};
use http_body_util::{BodyExt as _, Full};
use hyper::body::Incoming as HyperBody;
use hyper_util::rt::TokioIo;
use rustls::pki_types::ServerName;
use strata_plan::application::rendered::{Fault, RenderError};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpStream;
use tokio::runtime::Handle;
use tokio::task::AbortHandle;
use tokio::time::timeout_at;
use tokio_rustls::TlsConnector;

use crate::application::source::address::Web;
use crate::application::source::bounds::CONNECT_LIMIT;
use crate::application::source::tls;
use crate::application::source::transport::{Line, Means};

/// Either kind of connection.
trait Stream: AsyncRead + AsyncWrite + Send + Unpin {}
impl<T: AsyncRead + AsyncWrite + Send + Unpin> Stream for T {}

/// What came back.
pub enum Answer {
    /// The answer: header lines, and the body to be read.
    Here {
        /// `name: value` in lines.
        head: String,
        /// The body.
        body: Incoming,
    },
    /// It is at another URL.
    Elsewhere(String),
}

/// Sends requests for one repository.
pub struct Client {
    url: String,
    line: Line,
    runtime: Handle,
    tls: Arc<rustls::ClientConfig>,
    user: String,
}

impl Client {
    /// For one conversation.
    pub fn new(means: &Means, line: &Line) -> Result<Self, RenderError> {
        Ok(Self {
            url: means.url.clone(),
            line: line.clone(),
            runtime: means.runtime.clone(),
            tls: Arc::new(tls::config(means)?),
            user: means.credential.username.clone(),
        })
    }

    /// Sends a request: `POST` where there is a body. `identified` says whether it had credentials, for the words of a
    /// refusal.
    pub fn send(
        &self,
        to: &Web,
        headers: Vec<(String, String)>,
        body: Option<Vec<u8>>,
        identified: bool,
    ) -> gix::Result<Answer> {
        let request = self.request(to, headers, body)?;
        let exchange = async {
            let connect = Instant::now() + CONNECT_LIMIT;
            let connect = connect.min(self.line.deadline());
            let Ok(stream) = timeout_at(connect.into(), self.connect(to)).await else {
                let message = format!(
                    "{} does not answer: no connection to {} within {CONNECT_LIMIT:?}",
                    self.url,
                    to.authority()
                );
                return Err(self.fault(Fault::Unreachable, message));
            };
            let answered = timeout_at(self.line.deadline().into(), self.exchange(stream?, request)).await;
            answered.unwrap_or_else(|_| Err(self.late()))
        };
        let (response, connection) = self.runtime.block_on(exchange)?;
        self.judge(to, response, connection, identified)
    }

    fn request(
        &self,
        to: &Web,
        headers: Vec<(String, String)>,
        body: Option<Vec<u8>>,
    ) -> gix::Result<Request<Full<Bytes>>> {
        let path = if to.path.is_empty() { "/" } else { &to.path };
        let mut request = Request::builder()
            .method(if body.is_some() { "POST" } else { "GET" })
            .uri(path)
            .header(header::HOST, to.authority());
        for (name, value) in headers {
            request = request.header(name, value);
        }
        request.body(Full::new(Bytes::from(body.unwrap_or_default()))).map_err(|error| {
            self.fault(Fault::Settings, format!("{}: no request can be made of it: {error}", self.url))
        })
    }

    async fn connect(&self, to: &Web) -> gix::Result<Box<dyn Stream>> {
        let place = to.authority();
        let stream = TcpStream::connect((to.host.as_str(), to.port)).await.map_err(|error| {
            self.fault(Fault::Unreachable, format!("{} cannot be reached: {place}: {error}", self.url))
        })?;
        if !to.tls {
            return Ok(Box::new(stream));
        }
        let name = ServerName::try_from(to.host.clone())
            .map_err(|error| self.fault(Fault::Settings, format!("{}: {place}: {error}", self.url)))?;
        let stream = TlsConnector::from(Arc::clone(&self.tls)).connect(name, stream).await;
        let stream = stream.map_err(|error| {
            let known = error.get_ref().and_then(|inner| inner.downcast_ref::<rustls::Error>());
            match known {
                Some(rustls::Error::InvalidCertificate(why)) => self.fault(
                    Fault::Refused,
                    format!("{}: the certificate of {place} is not trusted: {why}", self.url),
                ),
                Some(why) => self.fault(Fault::Refused, format!("{}: no TLS with {place}: {why}", self.url)),
                None => self.fault(Fault::Unreachable, format!("{}: no TLS with {place}: {error}", self.url)),
            }
        })?;
        Ok(Box::new(stream))
    }

    async fn exchange(
        &self,
        stream: Box<dyn Stream>,
        request: Request<Full<Bytes>>,
    ) -> gix::Result<(Response<HyperBody>, Connection)> {
        let fail = |error: hyper::Error| {
            self.fault(Fault::Unreachable, format!("{}: the connection ended: {error}", self.url))
        };
        let (mut sender, connection) =
            hyper::client::conn::http1::handshake(TokioIo::new(stream)).await.map_err(fail)?;
        let url = self.url.clone();
        let task = tokio::spawn(async move {
            if let Err(error) = connection.await {
                tracing::debug!(%url, %error, "the connection to a repository ended");
            }
        });
        let connection = Connection(task.abort_handle());
        Ok((sender.send_request(request).await.map_err(fail)?, connection))
    }

    fn judge(
        &self,
        to: &Web,
        response: Response<HyperBody>,
        connection: Connection,
        identified: bool,
    ) -> gix::Result<Answer> {
        let status = response.status();
        let url = &self.url;
        let field = |name| response.headers().get(name).and_then(|v: &http::HeaderValue| v.to_str().ok());
        match status {
            _ if status.is_success() => {
                if !field(header::CONTENT_TYPE).is_some_and(|kind| kind.starts_with("application/x-git-")) {
                    let message = format!("{url} answers, but not as a git repository: check repoURL");
                    return Err(self.fault(Fault::Missing, message));
                }
                let lines = response.headers().iter();
                let head = lines.map(|(name, value)| format!("{name}: {}\n", String::from_utf8_lossy(value.as_bytes())));
                let head = head.collect();
                let body = Incoming {
                    url: url.clone(),
                    line: self.line.clone(),
                    runtime: self.runtime.clone(),
                    body: response.into_body(),
                    chunk: Bytes::new(),
                    _connection: connection,
                };
                Ok(Answer::Here { head, body })
            }
            _ if status.is_redirection() => match field(header::LOCATION) {
                Some(next) if next.starts_with('/') => {
                    let scheme = if to.tls { "https" } else { "http" };
                    Ok(Answer::Elsewhere(format!("{scheme}://{}{next}", to.authority())))
                }
                Some(next) => Ok(Answer::Elsewhere(next.to_owned())),
                None => Err(self.fault(Fault::Unreachable, format!("{url}: {status} leads nowhere"))),
            },
            StatusCode::UNAUTHORIZED if identified => {
                let who = if self.user.is_empty() { "the token" } else { &self.user };
                Err(self.fault(Fault::Refused, format!("{url} refuses the credentials of {who} ({status})")))
            }
            StatusCode::UNAUTHORIZED => Err(self.fault(
                Fault::Refused,
                format!("{url} asks for credentials ({status}), and no repository Secret has any for it"),
            )),
            StatusCode::FORBIDDEN => Err(self.fault(Fault::Refused, format!("{url} refuses us ({status})"))),
            StatusCode::NOT_FOUND | StatusCode::GONE => Err(self.fault(
                Fault::Missing,
                format!("{url}: there is no such repository, or it shows itself only with other credentials ({status})"),
            )),
            _ => Err(self.fault(Fault::Unreachable, format!("{url} answers {status}"))),
        }
    }

    fn late(&self) -> gix::Error {
        late(&self.url, &self.line)
    }

    fn fault(&self, fault: Fault, message: String) -> gix::Error {
        let error = gix::Error::from_error(std::io::Error::other(message.clone()));
        self.line.fail(fault, message);
        error
    }
}

fn late(url: &str, line: &Line) -> gix::Error {
    let message = format!("{url} is too slow: not done within {:?}", line.limit());
    let error = gix::Error::from_error(std::io::Error::new(std::io::ErrorKind::TimedOut, message.clone()));
    line.fail(Fault::Unreachable, message);
    error
}

/// Ends the task of a connection with it.
struct Connection(AbortHandle);

impl Drop for Connection {
    fn drop(&mut self) {
        self.0.abort();
    }
}

/// A body that is read while it comes.
pub struct Incoming {
    url: String,
    line: Line,
    runtime: Handle,
    body: HyperBody,
    chunk: Bytes,
    _connection: Connection,
}

impl Read for Incoming {
    fn read(&mut self, out: &mut [u8]) -> std::io::Result<usize> {
        while self.chunk.is_empty() {
            let deadline = self.line.deadline().into();
            // The timer belongs to the runtime, so it is made within.
            let next = self.runtime.block_on(async { timeout_at(deadline, self.body.frame()).await });
            match next {
                Err(_) => return Err(std::io::Error::other(late(&self.url, &self.line).to_string())),
                Ok(None) => return Ok(0),
                Ok(Some(Err(error))) => {
                    let message = format!("{}: the connection broke off: {error}", self.url);
                    self.line.fail(Fault::Unreachable, message);
                    return Err(std::io::Error::other(error));
                }
                Ok(Some(Ok(frame))) => {
                    if let Ok(chunk) = frame.into_data() {
                        self.line.received(chunk.len())?;
                        self.chunk = chunk;
                    }
                }
            }
        }
        let count = out.len().min(self.chunk.len());
        out[..count].copy_from_slice(&self.chunk.split_to(count));
        Ok(count)
    }
}
