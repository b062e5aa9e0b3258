//! Probes against small servers of the test's own.

use std::time::Duration;

use k8s_openapi::api::core::v1::{Container, Probe};
use serde_json::{Value, json};
use strata_model::object::ObjectKey;
use strata_plan::pod::observed::{ContainerKey, Launch, ObservedContainer, StopCause};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpListener;

use super::Question;
use crate::node::runtime::changes::Changes;
use crate::node::runtime::{BoxFuture, ExecResult, LogSource, ProbeAnswer, Runtime, RuntimeError};

/// A runtime in which every command prints its own words and ends with the number that is its first word.
struct Echo;

impl Runtime for Echo {
    fn name(&self) -> &'static str {
        "echo"
    }
    fn accepts_image(&self, _: &str) -> Result<(), String> {
        Ok(())
    }
    fn pods(&self) -> Result<Vec<String>, RuntimeError> {
        Ok(Vec::new())
    }
    fn pod_name(&self, _: &str) -> Result<Option<ObjectKey>, RuntimeError> {
        Ok(None)
    }
    fn containers(&self, _: &str) -> Result<Vec<ObservedContainer>, RuntimeError> {
        Ok(Vec::new())
    }
    fn start(&self, _: &Launch) -> Result<(), RuntimeError> {
        Ok(())
    }
    fn stop(&self, _: &ContainerKey, _: Duration, _: StopCause) -> Result<(), RuntimeError> {
        Ok(())
    }
    fn grace(&self, _: &ContainerKey) -> Duration {
        Duration::ZERO
    }
    fn remove(&self, _: &ContainerKey) -> Result<(), RuntimeError> {
        Ok(())
    }
    fn remove_pod(&self, _: &str) -> Result<(), RuntimeError> {
        Ok(())
    }
    fn log(&self, _: &ContainerKey) -> LogSource {
        LogSource::Text(String::new())
    }
    fn exec<'a>(
        &'a self,
        _: &'a ContainerKey,
        command: &'a [String],
        _: Duration,
    ) -> BoxFuture<'a, Result<ExecResult, RuntimeError>> {
        let result = ExecResult { code: command[0].parse().ok(), output: command.join(" ") };
        Box::pin(std::future::ready(Ok(result)))
    }
    fn answer_probe(&self, _: &ContainerKey) -> Option<ProbeAnswer> {
        None
    }
    fn remember(&self, _: &Launch, _: jiff::Timestamp) {}
    fn changes(&self) -> &Changes {
        unreachable!("nobody waits for changes here")
    }
}

async fn ask(probe: Value, container: Value) -> Result<(), String> {
    let probe: Probe = serde_json::from_value(probe).unwrap();
    let container: Container = serde_json::from_value(container).unwrap();
    let key = ContainerKey::new("u", "c", 0).unwrap();
    let answer = Question::new(&probe, &container, "127.0.0.1").ask(&Echo, &key).await;
    if answer.success { Ok(()) } else { Err(answer.message) }
}

/// Answers one connection with a text and returns the request; its port is told first.
async fn serve(answer: &'static str) -> (u16, tokio::task::JoinHandle<String>) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let port = listener.local_addr().unwrap().port();
    let served = tokio::spawn(async move {
        let (mut stream, _) = listener.accept().await.unwrap();
        let mut request = vec![0; 4096];
        let count = stream.read(&mut request).await.unwrap();
        stream.write_all(answer.as_bytes()).await.unwrap();
        String::from_utf8_lossy(&request[..count]).into_owned()
    });
    (port, served)
}

#[tokio::test]
async fn a_command_passes_with_zero_alone() {
    let exec = |word: &str| json!({"exec": {"command": [word, "words"]}});
    assert_eq!(ask(exec("0"), json!({"name": "c"})).await, Ok(()));
    assert_eq!(ask(exec("3"), json!({"name": "c"})).await, Err("exit code 3: 3 words".into()));
}

#[tokio::test]
async fn http_passes_from_200_to_399_and_sends_what_the_spec_says() {
    let (port, served) = serve("HTTP/1.1 302 Found\r\n\r\n").await;
    let probe = json!({"httpGet": {"port": "web", "path": "/ok?x=1", "httpHeaders": [
        {"name": "Host", "value": "example.com"}, {"name": "X-A", "value": "b"}, {"name": "X-Bad", "value": "a\r\nb"}]}});
    let container = json!({"name": "c", "ports": [{"name": "web", "containerPort": port}]});
    assert_eq!(ask(probe, container).await, Ok(()));
    let request = served.await.unwrap();
    assert!(request.starts_with("GET /ok?x=1 HTTP/1.1\r\nHost: example.com\r\n"), "{request}");
    assert!(request.contains("X-A: b\r\n") && !request.contains("X-Bad"), "{request}");

    let (port, _served) = serve("HTTP/1.0 503 Busy\r\n\r\n").await;
    let failed = ask(json!({"httpGet": {"port": port}}), json!({"name": "c"})).await;
    assert_eq!(failed, Err("HTTP probe failed with statuscode: 503".into()));
    let (port, _served) = serve("SSH-2.0\n").await;
    assert_eq!(
        ask(json!({"httpGet": {"port": port}}), json!({"name": "c"})).await,
        Err("no HTTP answer: SSH-2.0".into())
    );
}

#[tokio::test]
async fn a_connection_is_enough_for_tcp_and_its_refusal_is_told() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let port = listener.local_addr().unwrap().port();
    let probe = json!({"tcpSocket": {"port": port}});
    assert_eq!(ask(probe.clone(), json!({"name": "c"})).await, Ok(()));
    drop(listener);
    assert!(ask(probe, json!({"name": "c"})).await.unwrap_err().contains("refused"));
}

#[tokio::test]
async fn what_cannot_be_asked_fails_with_its_reason() {
    let unnamed = ask(json!({"tcpSocket": {"port": "web"}}), json!({"name": "c"})).await.unwrap_err();
    assert!(unnamed.contains("web"), "{unnamed}");
    let grpc = ask(json!({"grpc": {"port": 1}}), json!({"name": "c"})).await.unwrap_err();
    assert!(grpc.contains("httpGet"), "{grpc}");
}
