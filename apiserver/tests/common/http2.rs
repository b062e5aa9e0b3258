//! A client of one HTTP/2 connection with many requests on it, and raw bytes on a connection, for clients that misbehave.

use std::convert::Infallible;
use std::sync::Arc;

use bytes::Bytes;
use futures_util::stream;
use http::Request;
use http_body_util::combinators::UnsyncBoxBody;
use http_body_util::{BodyExt, Full, StreamBody};
use hyper::body::Frame;
use hyper::client::conn::http2::{SendRequest, handshake};
use hyper_util::rt::{TokioExecutor, TokioIo};
use tokio::io::AsyncWriteExt;
use tokio::sync::mpsc;
use tokio::task::JoinHandle;

use super::rest::{LIMIT, Lines};
use super::server::{TestServer, connect};

type Body = UnsyncBoxBody<Bytes, Infallible>;

/// A connection of an administrator.
pub struct Http2 {
    sender: SendRequest<Body>,
    connection: JoinHandle<()>,
}

/// What was answered: the code, or of gRPC its status.
pub struct Answer {
    pub code: u16,
    pub status: String,
}

/// A request whose body is not at its end.
pub struct Begun {
    body: mpsc::Sender<Bytes>,
    answer: Option<JoinHandle<Option<u16>>>,
}

impl Begun {
    /// Sends more of the body; false once nobody takes it any more.
    pub async fn push(&self, chunk: Bytes) -> bool {
        tokio::time::timeout(LIMIT, self.body.send(chunk)).await.is_ok_and(|sent| sent.is_ok())
    }

    /// The code of the answer; `None` if the stream was cut.
    pub async fn answer(mut self) -> Option<u16> {
        self.answer.take().unwrap().await.unwrap()
    }
}

impl Drop for Begun {
    fn drop(&mut self) {
        if let Some(answer) = &self.answer {
            answer.abort();
        }
    }
}

impl Http2 {
    pub async fn admin(server: &TestServer) -> Self {
        let tls = server.tls(Some(("admin", "system:masters")), "h2");
        let stream = connect(server.address, tls).await.unwrap();
        let (sender, connection) = handshake(TokioExecutor::new(), TokioIo::new(stream)).await.unwrap();
        let connection = tokio::spawn(async move { connection.await.unwrap_or_default() });
        Self { sender, connection }
    }

    fn request(method: &str, path: &str, headers: &[(&str, &str)], body: Body) -> Request<Body> {
        let mut request = Request::builder().method(method).uri(format!("https://test{path}"));
        for (name, value) in headers {
            request = request.header(*name, *value);
        }
        request.body(body).unwrap()
    }

    /// Sends a request, and takes the whole answer.
    pub async fn send(&self, method: &str, path: &str, headers: &[(&str, &str)], body: Bytes) -> Answer {
        let mut sender = self.sender.clone();
        let work = async {
            sender.ready().await.unwrap();
            let answer = sender
                .send_request(Self::request(method, path, headers, Full::new(body).boxed_unsync()))
                .await;
            let (parts, body) = answer.unwrap().into_parts();
            let trailers = body.collect().await.unwrap().trailers().cloned().unwrap_or_default();
            let status = parts.headers.get("grpc-status").or(trailers.get("grpc-status")).cloned();
            let status = status.map(|s| s.to_str().unwrap().to_owned()).unwrap_or_default();
            Answer { code: parts.status.as_u16(), status }
        };
        tokio::time::timeout(LIMIT, work).await.unwrap()
    }

    /// Sends the head of a request and the beginning of its body.
    pub async fn begin(&self, method: &str, path: &str) -> Begun {
        let (body, chunks) = mpsc::channel::<Bytes>(1);
        body.send(Bytes::from_static(b"{\"metadata\":")).await.unwrap();
        let frames = stream::unfold(chunks, |mut chunks| async move {
            let chunk = chunks.recv().await?;
            Some((Ok(Frame::data(chunk)), chunks))
        });
        let request = Self::request(
            method,
            path,
            &[("content-type", "application/json")],
            UnsyncBoxBody::new(StreamBody::new(frames)),
        );
        let mut sender = self.sender.clone();
        sender.ready().await.unwrap();
        let answer = sender.send_request(request);
        let answer = tokio::spawn(async move { answer.await.ok().map(|answer| answer.status().as_u16()) });
        Begun { body, answer: Some(answer) }
    }

    /// Opens a watch.
    pub async fn watch(&self, path: &str) -> Lines {
        let mut sender = self.sender.clone();
        sender.ready().await.unwrap();
        let request = Self::request("GET", path, &[], Full::default().boxed_unsync());
        let answer = tokio::time::timeout(LIMIT, sender.send_request(request)).await.unwrap().unwrap();
        assert_eq!(answer.status(), 200, "{path}");
        Lines::new(answer.into_body())
    }
}

impl Drop for Http2 {
    fn drop(&mut self) {
        self.connection.abort();
    }
}

/// Writes bytes on a connection of HTTP/1.1, and breaks it off.
pub async fn broken_off(server: &TestServer, bytes: &[u8]) {
    let tls = server.tls(Some(("admin", "system:masters")), "http/1.1");
    let mut stream = connect(server.address, Arc::clone(&tls)).await.unwrap();
    stream.write_all(bytes).await.unwrap();
    stream.flush().await.unwrap();
}
