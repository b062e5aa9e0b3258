//! The sockets of the admin port. Bounded in connections, time and size of a request; knows nothing of what is shown.

use std::convert::Infallible;
use std::io;
use std::net::SocketAddr;
use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use hyper::Request;
use hyper::body::Incoming;
use hyper::service::service_fn;
use hyper_util::rt::{TokioIo, TokioTimer};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::{TcpListener, UnixListener};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::task::JoinSet;

use super::board::{Board, Rights};

/// Connections at the same time, of all sockets.
const CONNECTIONS: usize = 16;
/// Most time for a request's head.
const HEAD_TIMEOUT: Duration = Duration::from_secs(10);
/// Largest head, bytes.
const HEAD: usize = 16 * 1024;
/// After a connection could not be taken.
const PAUSE: Duration = Duration::from_millis(100);

/// Where the admin port is. Neither: there is none.
#[derive(Clone, Debug, Default)]
pub struct Places {
    /// An address, for looking only.
    pub address: Option<SocketAddr>,
    /// A Unix socket, for its owner; a leftover file of that name is replaced.
    pub socket: Option<PathBuf>,
}

/// The admin port cannot be had.
#[derive(Debug, thiserror::Error)]
pub enum AdminError {
    /// At this address.
    #[error("cannot listen on {address} for the admin port; choose another with --admin-listen, or none")]
    Address {
        /// Where.
        address: SocketAddr,
        /// Why.
        #[source]
        source: io::Error,
    },
    /// At this path.
    #[error(
        "cannot listen on the Unix socket {path} for the admin port; choose another with --admin-socket, or none"
    )]
    Socket {
        /// Where.
        path: PathBuf,
        /// Why.
        #[source]
        source: io::Error,
    },
}

/// Sockets that are bound.
#[derive(Default)]
pub struct Listeners {
    tcp: Option<TcpListener>,
    unix: Option<UnixListener>,
}

impl Listeners {
    /// Binds. Needs a tokio runtime with IO.
    ///
    /// # Errors
    /// A place is taken or not allowed.
    pub async fn bind(places: &Places) -> Result<Self, AdminError> {
        let mut listeners = Self::default();
        if let Some(address) = places.address {
            let failed = |source| AdminError::Address { address, source };
            let listener = TcpListener::bind(address).await.map_err(failed)?;
            let local = listener.local_addr().map_err(failed)?;
            tracing::info!(%local, "admin port");
            listeners.tcp = Some(listener);
        }
        if let Some(path) = &places.socket {
            let failed = |source| AdminError::Socket { path: path.clone(), source };
            match std::fs::remove_file(path) {
                Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(failed(error)),
                _ => {}
            }
            listeners.unix = Some(UnixListener::bind(path).map_err(failed)?);
            std::fs::set_permissions(path, PermissionsExt::from_mode(0o600)).map_err(failed)?;
        }
        Ok(listeners)
    }

    /// Serves for as long as the process lives; without a socket it only waits.
    pub async fn serve(self, board: Arc<Board>) {
        let slots = Arc::new(Semaphore::new(CONNECTIONS));
        let mut sockets = JoinSet::new();
        if let Some(listener) = self.tcp {
            let (board, slots) = (Arc::clone(&board), Arc::clone(&slots));
            sockets.spawn(async move {
                while let Some(slot) = slot(&slots).await {
                    let stream = listener.accept().await.map(|(stream, _)| stream);
                    take(stream, &board, Rights::Look, slot).await;
                }
            });
        }
        if let Some(listener) = self.unix {
            sockets.spawn(async move {
                while let Some(slot) = slot(&slots).await {
                    let stream = listener.accept().await.map(|(stream, _)| stream);
                    take(stream, &board, Rights::Act, slot).await;
                }
            });
        }
        while sockets.join_next().await.is_some() {}
        std::future::pending().await
    }
}

async fn slot(slots: &Arc<Semaphore>) -> Option<OwnedSemaphorePermit> {
    Arc::clone(slots).acquire_owned().await.ok()
}

async fn take<S>(stream: io::Result<S>, board: &Arc<Board>, rights: Rights, slot: OwnedSemaphorePermit)
where
    S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
{
    match stream {
        Ok(stream) => {
            let board = Arc::clone(board);
            tokio::spawn(async move {
                connection(stream, board, rights).await;
                drop(slot);
            });
        }
        Err(error) => {
            tracing::debug!(%error, "admin port: cannot accept");
            tokio::time::sleep(PAUSE).await;
        }
    }
}

async fn connection<S: AsyncRead + AsyncWrite + Unpin>(stream: S, board: Arc<Board>, rights: Rights) {
    let service = service_fn(move |request: Request<Incoming>| {
        let answer = board.answer(request.method(), request.uri(), rights);
        async move { Ok::<_, Infallible>(answer) }
    });
    let mut builder = hyper::server::conn::http1::Builder::new();
    builder.timer(TokioTimer::new()).header_read_timeout(HEAD_TIMEOUT).max_buf_size(HEAD).keep_alive(false);
    if let Err(error) = builder.serve_connection(TokioIo::new(stream), service).await {
        tracing::debug!(%error, "admin port: connection failed");
    }
}
