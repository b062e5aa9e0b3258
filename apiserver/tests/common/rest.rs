//! A plain HTTP client: one connection a request.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use http::{HeaderMap, Request, Response};
use http_body_util::{BodyExt, Full};
use hyper::body::Incoming;
use hyper_util::rt::TokioIo;
use rustls::ClientConfig;
use serde_json::Value;

use super::server::{TestServer, connect};

/// How long anything may take before a test fails.
pub const LIMIT: Duration = Duration::from_secs(20);

/// A client as somebody.
#[derive(Clone)]
pub struct Rest {
    address: SocketAddr,
    tls: Arc<ClientConfig>,
    token: Option<String>,
}

/// An answer.
#[derive(Debug)]
pub struct Answer {
    pub code: u16,
    pub headers: HeaderMap,
    pub text: String,
}

impl Answer {
    pub fn json(&self) -> Value {
        serde_json::from_str(&self.text).unwrap_or_else(|error| panic!("{error}: {}", self.text))
    }
}

impl Rest {
    pub fn new(server: &TestServer, who: Option<(&str, &str)>) -> Self {
        Self { address: server.address, tls: server.tls(who, "http/1.1"), token: None }
    }

    pub fn admin(server: &TestServer) -> Self {
        Self::new(server, Some(("admin", "system:masters")))
    }

    pub fn with_token(server: &TestServer, token: &str) -> Self {
        Self { token: Some(token.to_owned()), ..Self::new(server, None) }
    }

    async fn open(
        &self,
        method: &str,
        path: &str,
        headers: &[(&str, &str)],
        body: Bytes,
    ) -> Response<Incoming> {
        let stream = connect(self.address, self.tls.clone()).await.unwrap();
        let (mut sender, connection) =
            hyper::client::conn::http1::handshake(TokioIo::new(stream)).await.unwrap();
        tokio::spawn(connection);
        let mut request = Request::builder().method(method).uri(path).header("host", "test");
        for (name, value) in headers {
            request = request.header(*name, *value);
        }
        if let Some(token) = &self.token {
            request = request.header("authorization", format!("Bearer {token}"));
        }
        sender.send_request(request.body(Full::new(body)).unwrap()).await.unwrap()
    }

    /// Sends a request and takes the whole answer.
    pub async fn send(
        &self,
        method: &str,
        path: &str,
        headers: &[(&str, &str)],
        body: impl Into<Bytes>,
    ) -> Answer {
        let work = async {
            let response = self.open(method, path, headers, body.into()).await;
            let (parts, body) = response.into_parts();
            let bytes = body.collect().await.unwrap().to_bytes();
            let text = String::from_utf8_lossy(&bytes).into_owned();
            Answer { code: parts.status.as_u16(), headers: parts.headers, text }
        };
        tokio::time::timeout(LIMIT, work).await.unwrap_or_else(|_| panic!("{method} {path} took too long"))
    }

    pub async fn get(&self, path: &str) -> Answer {
        self.send("GET", path, &[], "").await
    }

    pub async fn post(&self, path: &str, body: &Value) -> Answer {
        self.send("POST", path, &[("content-type", "application/json")], body.to_string()).await
    }

    pub async fn put(&self, path: &str, body: &Value) -> Answer {
        self.send("PUT", path, &[("content-type", "application/json")], body.to_string()).await
    }

    pub async fn merge(&self, path: &str, body: &Value) -> Answer {
        self.send("PATCH", path, &[("content-type", "application/merge-patch+json")], body.to_string()).await
    }

    pub async fn delete(&self, path: &str) -> Answer {
        self.send("DELETE", path, &[], "").await
    }

    /// Opens a watch.
    pub async fn watch(&self, path: &str) -> Lines {
        let response = self.open("GET", path, &[], Bytes::new()).await;
        assert_eq!(response.status(), 200, "{path}");
        Lines::new(response.into_body())
    }
}

/// The events of a watch.
pub struct Lines {
    body: Incoming,
    rest: Vec<u8>,
}

impl Lines {
    /// Those of an answer's body.
    pub fn new(body: Incoming) -> Self {
        Self { body, rest: Vec::new() }
    }

    /// The next event; `None` at the end.
    pub async fn next(&mut self) -> Option<Value> {
        loop {
            if let Some(end) = self.rest.iter().position(|b| *b == b'\n') {
                let line: Vec<u8> = self.rest.drain(..=end).collect();
                return Some(serde_json::from_slice(&line).unwrap());
            }
            let frame = tokio::time::timeout(LIMIT, self.body.frame()).await.expect("an event in time")?;
            if let Ok(data) = frame.unwrap().into_data() {
                self.rest.extend_from_slice(&data);
            }
        }
    }

    /// The next event's type, name and revision.
    pub async fn brief(&mut self) -> (String, String, String) {
        let event = self.next().await.expect("an event");
        let text = |v: &Value| v.as_str().unwrap_or_default().to_owned();
        let meta = &event["object"]["metadata"];
        (text(&event["type"]), text(&meta["name"]), text(&meta["resourceVersion"]))
    }
}

/// How long between two looks.
const LOOK_EVERY: Duration = Duration::from_millis(20);

/// Looks until it is so, within the limit.
pub async fn until<F: Future<Output = bool>>(what: &str, mut look: impl FnMut() -> F) {
    let mut ticks = tokio::time::interval(LOOK_EVERY);
    let looking = async {
        while !look().await {
            ticks.tick().await;
        }
    };
    tokio::time::timeout(LIMIT, looking).await.unwrap_or_else(|_| panic!("waited {LIMIT:?} for {what}"));
}
