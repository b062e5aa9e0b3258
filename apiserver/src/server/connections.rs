//! Connections: accepted within their limits, served in HTTP/1.1 or HTTP/2, ended in order.

use std::convert::Infallible;
use std::sync::Arc;
use std::time::Duration;

use hyper::service::service_fn;
use hyper_util::rt::{TokioExecutor, TokioIo, TokioTimer};
use hyper_util::server::conn::auto::Builder;
use hyper_util::server::graceful::GracefulShutdown;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{Semaphore, watch};
use tokio::task::JoinSet;
use tokio_rustls::TlsAcceptor;

use super::dispatch::Site;
use crate::authn;
use crate::gate::Peer;
use crate::telemetry::{Held, Telemetry};

/// Most connections at a time; more wait to be accepted.
const MAX_CONNECTIONS: usize = 16_384;
/// How long a client may take to shake hands.
const HANDSHAKE_TIMEOUT: Duration = Duration::from_secs(10);
/// How long a client may take to send the head of a request.
const HEAD_TIMEOUT: Duration = Duration::from_secs(30);
/// How often a silent HTTP/2 client is asked whether it is there, and how long it may take to answer.
const PING_EVERY: Duration = Duration::from_secs(30);
const PING_TIMEOUT: Duration = Duration::from_secs(20);
/// Most bytes of the headers of a request.
const MAX_HEADER_BYTES: u32 = 64 * 1024;
/// Most headers of a request over HTTP/1.1.
const MAX_HEADERS: usize = 128;
/// Most requests on one HTTP/2 connection at a time.
const MAX_STREAMS: u32 = 1_000;
/// How much a client may send ahead, on one stream and on all of a connection.
const STREAM_WINDOW: u32 = 1 << 20;
const CONNECTION_WINDOW: u32 = 4 << 20;
/// Most bytes that wait on one stream for a client that reads slowly.
const SEND_BUFFER: usize = 512 * 1024;
/// How long connections may take to end once the server ends.
const GRACE: Duration = Duration::from_secs(10);
/// How long accepting pauses when the machine refuses a connection (out of file descriptors).
const ACCEPT_PAUSE: Duration = Duration::from_millis(100);

/// How connections are served, with every limit set.
pub fn builder() -> Builder<TokioExecutor> {
    let mut builder = Builder::new(TokioExecutor::new());
    builder.http1().timer(TokioTimer::new()).header_read_timeout(HEAD_TIMEOUT).max_headers(MAX_HEADERS);
    builder
        .http2()
        .timer(TokioTimer::new())
        .keep_alive_interval(PING_EVERY)
        .keep_alive_timeout(PING_TIMEOUT)
        .max_concurrent_streams(MAX_STREAMS)
        .max_header_list_size(MAX_HEADER_BYTES)
        .initial_stream_window_size(STREAM_WINDOW)
        .initial_connection_window_size(CONNECTION_WINDOW)
        .max_send_buf_size(SEND_BUFFER);
    builder
}

/// Serves connections until `ending` turns true, then lets them finish within the grace.
pub async fn serve(
    listener: TcpListener,
    tls: TlsAcceptor,
    site: Arc<Site>,
    telemetry: &Telemetry,
    mut ending: watch::Receiver<bool>,
) {
    let builder = Arc::new(builder());
    let graceful = GracefulShutdown::new();
    let room = Arc::new(Semaphore::new(MAX_CONNECTIONS));
    let mut tasks = JoinSet::new();
    loop {
        let accepted = tokio::select! {
            accepted = accept(&listener, &room) => accepted,
            Some(ended) = tasks.join_next() => {
                if let Err(error) = ended {
                    tracing::error!(%error, "a connection failed");
                }
                continue;
            }
            _ = ending.wait_for(|ending| *ending) => break,
        };
        let Some((stream, permit)) = accepted else { continue };
        let (tls, site, builder) = (tls.clone(), Arc::clone(&site), Arc::clone(&builder));
        let (watcher, held) = (graceful.watcher(), Held::new(&telemetry.connections));
        tasks.spawn(async move {
            let _kept = (permit, held);
            let Some((stream, peer)) = shake(&tls, stream).await else { return };
            let service = service_fn(move |request| {
                let (site, peer) = (Arc::clone(&site), peer.clone());
                async move { Ok::<_, Infallible>(site.answer(&peer, request).await) }
            });
            let connection = builder.serve_connection(TokioIo::new(stream), service).into_owned();
            if let Err(error) = watcher.watch(connection).await {
                tracing::debug!(%error, "a connection broke off");
            }
        });
    }
    drop(listener);
    if tokio::time::timeout(GRACE, graceful.shutdown()).await.is_err() {
        tracing::warn!("connections were cut that did not end in time");
    }
    tasks.shutdown().await;
}

async fn accept(
    listener: &TcpListener,
    room: &Arc<Semaphore>,
) -> Option<(TcpStream, tokio::sync::OwnedSemaphorePermit)> {
    let permit = Arc::clone(room).acquire_owned().await.ok()?;
    match listener.accept().await {
        Ok((stream, _)) => Some((stream, permit)),
        Err(error) => {
            tracing::warn!(%error, "a connection could not be accepted");
            tokio::time::sleep(ACCEPT_PAUSE).await;
            None
        }
    }
}

/// Shakes hands, and tells whom the client's certificate names.
async fn shake(
    tls: &TlsAcceptor,
    stream: TcpStream,
) -> Option<(tokio_rustls::server::TlsStream<TcpStream>, Peer)> {
    if let Err(error) = stream.set_nodelay(true) {
        tracing::debug!(%error, "a connection stays slow");
    }
    match tokio::time::timeout(HANDSHAKE_TIMEOUT, tls.accept(stream)).await {
        Ok(Ok(stream)) => {
            let certificates = stream.get_ref().1.peer_certificates();
            let user = certificates.and_then(|all| all.first()).and_then(|own| authn::of_certificate(own));
            Some((stream, Peer(user.map(Arc::new))))
        }
        Ok(Err(error)) => {
            tracing::debug!(%error, "a handshake failed");
            None
        }
        Err(_) => {
            tracing::debug!("a handshake took too long");
            None
        }
    }
}
