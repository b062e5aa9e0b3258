//! Carries out one probe: a command, an HTTP request or a connection. It must never count answers; that is the
//! state machine's work.

use std::sync::Arc;
use std::time::Duration;

use k8s_openapi::api::core::v1::{Container, HTTPGetAction, Probe};
use k8s_openapi::apimachinery::pkg::util::intstr::IntOrString;
use rustls::pki_types::ServerName;
use strata_plan::pod::observed::ContainerKey;
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio::net::TcpStream;

use super::trusting;
use crate::node::runtime::{ProbeAnswer, Runtime};

/// How much of an answer is read, in bytes.
const MAX_ANSWER: u64 = 10 * 1024;
/// How much of it is shown, in characters.
const MAX_SHOWN: usize = 256;

/// A probe, ready to be asked.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Question {
    what: What,
    limit: Duration,
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum What {
    Exec(Vec<String>),
    Http {
        host: String,
        port: u16,
        tls: bool,
        request: String,
    },
    Tcp {
        host: String,
        port: u16,
    },
    /// It cannot be asked, and so fails with this sentence.
    Impossible(String),
}

impl Question {
    /// The question of a probe; hosts and ports that it leaves open are those of the pod and the container.
    pub fn new(probe: &Probe, container: &Container, pod_ip: &str) -> Self {
        let seconds = u64::try_from(probe.timeout_seconds.unwrap_or(1)).unwrap_or(1).max(1);
        let host_or_pod = |host: &Option<String>| {
            host.clone().filter(|host| !host.is_empty()).unwrap_or_else(|| pod_ip.to_owned())
        };
        let what = if let Some(exec) = &probe.exec {
            What::Exec(exec.command.clone().unwrap_or_default())
        } else if let Some(get) = &probe.http_get {
            let host = host_or_pod(&get.host);
            match port(&get.port, container) {
                Some(port) => What::Http {
                    tls: get.scheme.as_deref() == Some("HTTPS"),
                    request: request(get, &host, port),
                    host,
                    port,
                },
                None => What::Impossible(format!("no port {:?} in the container", get.port)),
            }
        } else if let Some(tcp) = &probe.tcp_socket {
            match port(&tcp.port, container) {
                Some(port) => What::Tcp { host: host_or_pod(&tcp.host), port },
                None => What::Impossible(format!("no port {:?} in the container", tcp.port)),
            }
        } else {
            What::Impossible("only exec, httpGet and tcpSocket probes are supported".to_owned())
        };
        Self { what, limit: Duration::from_secs(seconds) }
    }

    /// Asks, within the probe's time limit.
    pub async fn ask(&self, runtime: &dyn Runtime, key: &ContainerKey) -> ProbeAnswer {
        if let Some(answer) = runtime.answer_probe(key) {
            return answer;
        }
        let asked = async {
            match &self.what {
                What::Exec(command) => exec(runtime, key, command, self.limit).await,
                What::Http { host, port, tls, request } => http(host, *port, *tls, request).await,
                What::Tcp { host, port } => TcpStream::connect((host.as_str(), *port))
                    .await
                    .map(drop)
                    .map_err(|error| error.to_string()),
                What::Impossible(why) => Err(why.clone()),
            }
        };
        // A command is ended by the runtime when its time is over; the rest ends by being dropped.
        let slack = if matches!(self.what, What::Exec(_)) { Duration::from_secs(1) } else { Duration::ZERO };
        match tokio::time::timeout(self.limit + slack, asked).await {
            Ok(Ok(())) => ProbeAnswer { success: true, message: String::new() },
            Ok(Err(message)) => ProbeAnswer { success: false, message },
            Err(_) => ProbeAnswer {
                success: false,
                message: format!("no answer within {} s", self.limit.as_secs()),
            },
        }
    }
}

/// A port by number, or by its name in the container.
fn port(port: &IntOrString, container: &Container) -> Option<u16> {
    let number = match port {
        IntOrString::Int(number) => *number,
        IntOrString::String(name) => {
            let named = container.ports.iter().flatten().find(|port| port.name.as_ref() == Some(name));
            named.map(|port| port.container_port).or_else(|| name.parse().ok())?
        }
    };
    u16::try_from(number).ok().filter(|port| *port > 0)
}

/// The text of the request; a line break in a value would make another request of it, so such a header is left out.
fn request(get: &HTTPGetAction, host: &str, port: u16) -> String {
    let path = get.path.as_deref().filter(|path| path.starts_with('/')).unwrap_or("/");
    let path: String = path.chars().filter(|char| !char.is_whitespace() && !char.is_control()).collect();
    let mut host_header = if port == 80 { host.to_owned() } else { format!("{host}:{port}") };
    let mut headers = String::new();
    let mut agent = concat!("User-Agent: strata-probe/", env!("CARGO_PKG_VERSION"), "\r\n").to_owned();
    for header in get.http_headers.iter().flatten() {
        let bad = |text: &str| text.contains(['\r', '\n', '\0']);
        if bad(&header.name) || bad(&header.value) {
            continue;
        }
        match header.name.to_ascii_lowercase().as_str() {
            "host" => host_header.clone_from(&header.value),
            "connection" => {}
            "user-agent" => agent = format!("User-Agent: {}\r\n", header.value),
            _ => headers.push_str(&format!("{}: {}\r\n", header.name, header.value)),
        }
    }
    format!(
        "GET {path} HTTP/1.1\r\nHost: {host_header}\r\n{agent}Accept: */*\r\nConnection: close\r\n{headers}\r\n"
    )
}

async fn exec(
    runtime: &dyn Runtime,
    key: &ContainerKey,
    command: &[String],
    limit: Duration,
) -> Result<(), String> {
    let result = runtime.exec(key, command, limit).await.map_err(|error| error.to_string())?;
    match result.code {
        Some(0) => Ok(()),
        Some(code) => Err(format!("exit code {code}: {}", shown(&result.output))),
        None => Err(result.output),
    }
}

async fn http(host: &str, port: u16, tls: bool, request: &str) -> Result<(), String> {
    let stream = TcpStream::connect((host, port)).await.map_err(|error| error.to_string())?;
    if !tls {
        return exchange(stream, request).await;
    }
    let name = ServerName::try_from(host.to_owned()).map_err(|error| error.to_string())?;
    let config = trusting::client_config().map_err(|error| error.to_string())?;
    let connector = tokio_rustls::TlsConnector::from(Arc::new(config));
    let stream = connector.connect(name, stream).await.map_err(|error| error.to_string())?;
    exchange(stream, request).await
}

/// Sends the request and reads the status line; 200 to 399 is success.
async fn exchange(mut stream: impl AsyncRead + AsyncWrite + Unpin, request: &str) -> Result<(), String> {
    stream.write_all(request.as_bytes()).await.map_err(|error| error.to_string())?;
    let mut answer = Vec::new();
    let mut limited = stream.take(MAX_ANSWER);
    while !answer.contains(&b'\n') {
        if limited.read_buf(&mut answer).await.map_err(|error| error.to_string())? == 0 {
            break;
        }
    }
    let text = String::from_utf8_lossy(&answer);
    let line = text.lines().next().unwrap_or_default();
    let code = line.strip_prefix("HTTP/").and_then(|line| line.split_whitespace().nth(1));
    match code.and_then(|code| code.parse::<u16>().ok()) {
        Some(200..=399) => Ok(()),
        Some(code) => Err(format!("HTTP probe failed with statuscode: {code}")),
        None => Err(format!("no HTTP answer: {}", shown(line))),
    }
}

fn shown(text: &str) -> String {
    text.trim().chars().take(MAX_SHOWN).collect()
}

#[cfg(test)]
mod tests;
