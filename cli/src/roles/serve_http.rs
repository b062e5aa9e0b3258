//! Serve-http: a small HTTP server that says hello, so that the first example needs nothing installed. It answers every
//! request with who it is, and writes a line per request to standard output. Knows nothing of the platform.

use std::io::{self, Write};
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::process::ExitCode;
use std::sync::Arc;
use std::time::Duration;

use clap::Args;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{Semaphore, oneshot};
use tokio::task::JoinSet;

use super::lifeline::Cause;
use super::shell::{self, Failure, Threads};
use super::telemetry::LogArgs;

/// Connections that are answered at once; more wait.
const CONNECTIONS: usize = 64;
/// Most bytes of a request's head.
const HEAD_BYTES: usize = 8 * 1024;
/// Most time that a connection may take.
const REQUEST_LIMIT: Duration = Duration::from_secs(10);
/// How long running answers may take once the server is told to stop.
const STOP_LIMIT: Duration = Duration::from_secs(2);

/// The flags.
#[derive(Clone, Debug, Args)]
pub struct ServeHttpArgs {
    /// The address to listen at.
    #[arg(long, env = "POD_IP", default_value_t = IpAddr::V4(Ipv4Addr::LOCALHOST))]
    address: IpAddr,
    /// The port; 0 takes a free one.
    #[arg(long, default_value_t = 0)]
    port: u16,
    #[command(flatten)]
    log: LogArgs,
}

/// Why it cannot serve.
#[derive(Debug, thiserror::Error)]
#[error("cannot listen at {address}")]
struct ListenError {
    address: SocketAddr,
    #[source]
    source: io::Error,
}

/// Serves until it is told to stop.
pub fn run(args: ServeHttpArgs) -> ExitCode {
    let address = SocketAddr::new(args.address, args.port);
    let name = std::env::var("HOSTNAME").unwrap_or_else(|_| "strata".to_owned());
    shell::run(&args.log, Threads::One, move |stop| async move {
        let failed = |source| Failure::lasting(ListenError { address, source });
        let listener = TcpListener::bind(address).await.map_err(failed)?;
        say(&format!("{name} serves at http://{}/", listener.local_addr().map_err(failed)?));
        serve(listener, name.into(), stop).await;
        Ok(())
    })
}

async fn serve(listener: TcpListener, name: Arc<str>, mut stop: oneshot::Receiver<Cause>) {
    let room = Arc::new(Semaphore::new(CONNECTIONS));
    let mut answers = JoinSet::new();
    loop {
        let accepted = async {
            let place = Arc::clone(&room).acquire_owned().await;
            (place, listener.accept().await)
        };
        tokio::select! {
            (place, connection) = accepted => match connection {
                Ok((stream, peer)) => {
                    let name = Arc::clone(&name);
                    answers.spawn(async move {
                        let _place = place;
                        match tokio::time::timeout(REQUEST_LIMIT, answer(stream, &name)).await {
                            Ok(Ok(request)) => say(&format!("{peer} {request}")),
                            Ok(Err(error)) => tracing::info!(%peer, %error, "connection failed"),
                            Err(_) => tracing::info!(%peer, "connection took too long"),
                        }
                    });
                }
                Err(error) => {
                    // Most likely out of file descriptors: running answers will give some back.
                    tracing::warn!(%error, "cannot accept a connection");
                    tokio::time::sleep(Duration::from_millis(100)).await;
                }
            },
            Some(_) = answers.join_next(), if !answers.is_empty() => {}
            _ = &mut stop => break,
        }
    }
    drop(listener);
    let rest = async { while answers.join_next().await.is_some() {} };
    if tokio::time::timeout(STOP_LIMIT, rest).await.is_err() {
        tracing::info!("some answers were cut short");
    }
    say("stopped");
}

/// Answers one request; gives back what to write about it.
async fn answer(mut stream: TcpStream, name: &str) -> io::Result<String> {
    let head = read_head(&mut stream).await?;
    let (response, line) = respond(&head, name, std::process::id());
    stream.write_all(response.as_bytes()).await?;
    stream.shutdown().await?;
    Ok(line)
}

/// Everything up to the empty line, or to the limit.
async fn read_head(stream: &mut TcpStream) -> io::Result<String> {
    let mut head = Vec::with_capacity(1024);
    let mut piece = [0; 1024];
    while head.len() < HEAD_BYTES && !head.windows(4).any(|end| end == b"\r\n\r\n") {
        match stream.read(&mut piece).await? {
            0 => break,
            length => head.extend_from_slice(&piece[..length]),
        }
    }
    Ok(String::from_utf8_lossy(&head).into_owned())
}

/// The response to a request's head, and the line to write about it. Pure.
fn respond(head: &str, name: &str, pid: u32) -> (String, String) {
    let line = head.lines().next().unwrap_or("");
    let mut words = line.split(' ');
    let (method, path) = (words.next().unwrap_or(""), words.next().unwrap_or(""));
    let is_http = words.next().is_some_and(|version| version.starts_with("HTTP/1."));
    let (status, body) = if !is_http || !path.starts_with('/') {
        ("400 Bad Request", "this is no HTTP/1 request\n".to_owned())
    } else if !matches!(method, "GET" | "HEAD") {
        ("405 Method Not Allowed", "only GET and HEAD are answered here\n".to_owned())
    } else {
        ("200 OK", format!("hello from {name}, process {pid}, at {path}\n"))
    };
    let shown = if method == "HEAD" { "" } else { body.as_str() };
    let response = format!(
        "HTTP/1.1 {status}\r\nContent-Type: text/plain; charset=utf-8\r\nContent-Length: {}\r\nConnection: close\r\n\r\n{shown}",
        body.len(),
    );
    let code = status.split(' ').next().unwrap_or("");
    (response, format!("\"{}\" {code}", line.escape_debug()))
}

/// Writes a line to standard output. Who closed it does not want to know.
fn say(line: &str) {
    if let Err(error) = writeln!(io::stdout().lock(), "{line}") {
        tracing::debug!(%error, "standard output is closed");
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn body(head: &str) -> (String, String) {
        let (response, line) = respond(head, "pod-1", 7);
        (response.split_once("\r\n\r\n").map(|(_, body)| body.to_owned()).unwrap_or_default(), line)
    }

    #[test]
    fn it_says_who_it_is() {
        let (text, line) = body("GET /a?b HTTP/1.1\r\nHost: x\r\n\r\n");
        assert_eq!(text, "hello from pod-1, process 7, at /a?b\n");
        assert_eq!(line, "\"GET /a?b HTTP/1.1\" 200");
        assert_eq!(body("HEAD / HTTP/1.0\r\n\r\n"), (String::new(), "\"HEAD / HTTP/1.0\" 200".to_owned()));
        assert!(body("POST / HTTP/1.1\r\n\r\n").1.ends_with("405"));
        for nonsense in ["", "\u{1b}[2J", "GET", "GET / HTTP/2", "GET x HTTP/1.1"] {
            let (_, line) = body(nonsense);
            assert!(line.ends_with("400") && !line.contains('\u{1b}'), "{line}");
        }
    }

    #[tokio::test]
    async fn it_serves_and_stops() {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let (stop, stopped) = oneshot::channel();
        let server = tokio::spawn(serve(listener, "pod-1".into(), stopped));
        let mut stream = TcpStream::connect(address).await.unwrap();
        stream.write_all(b"GET /x HTTP/1.1\r\n\r\n").await.unwrap();
        let mut text = String::new();
        stream.read_to_string(&mut text).await.unwrap();
        assert!(text.starts_with("HTTP/1.1 200 OK\r\n") && text.ends_with("at /x\n"), "{text}");
        stop.send(Cause::Asked).unwrap();
        server.await.unwrap();
    }
}
