//! Serves what only the node has: the logs of containers, to the API server, over mutual TLS. It must never
//! answer anybody else, nor change anything.

use std::io;
use std::net::SocketAddr;
use std::pin::Pin;
use std::sync::Arc;

use futures_util::{Stream, stream};
use jiff::{SignedDuration, Timestamp};
use strata_model::object::ObjectKey;
use strata_model::resource::builtin;
use strata_model::status::{About, Status};
use strata_plan::pod::observed::{ContainerState, ObservedContainer};
use strata_wire::convert;
use strata_wire::v1::node_server::{Node, NodeServer};
use strata_wire::v1::{LogChunk, LogsRequest};
use tokio::net::TcpListener;
use tokio_stream::wrappers::TcpListenerStream;
use tonic::transport::{Certificate, Identity, Server, ServerTlsConfig};
use tonic::{Request, Response};
use x509_parser::prelude::{FromDer, X509Certificate};

use super::index::Index;
use crate::node::runtime::Runtime;
use crate::node::runtime::logs::{LogOptions, LogStream};

/// Who may ask: members of this organisation, as the API server is with the certificate it shows to nodes.
const ALLOWED_GROUP: &str = "system:masters";
/// How many requests one connection may have open.
const STREAMS: u32 = 256;

/// What the server shows and whom it believes, PEM.
#[derive(Clone)]
pub struct Tls {
    /// Its certificate chain.
    pub certificate_pem: Vec<u8>,
    /// The key of that.
    pub key_pem: Vec<u8>,
    /// Authorities of client certificates.
    pub client_ca_pem: Vec<u8>,
}

/// Answers from a runtime.
pub struct LogServer {
    runtime: Arc<dyn Runtime>,
    index: Arc<Index>,
}

impl LogServer {
    /// A server for the pods in `index`.
    pub fn new(runtime: Arc<dyn Runtime>, index: Arc<Index>) -> Self {
        Self { runtime, index }
    }

    /// Serves on a listener until `shutdown` completes.
    pub async fn serve(
        self,
        listener: TcpListener,
        tls: Tls,
        shutdown: impl Future<Output = ()>,
    ) -> Result<(), tonic::transport::Error> {
        let tls = ServerTlsConfig::new()
            .identity(Identity::from_pem(tls.certificate_pem, tls.key_pem))
            .client_ca_root(Certificate::from_pem(tls.client_ca_pem));
        Server::builder()
            .tls_config(tls)?
            .max_concurrent_streams(STREAMS)
            .add_service(NodeServer::with_interceptor(self, authorise))
            .serve_with_incoming_shutdown(TcpListenerStream::new(listener), shutdown)
            .await
    }
}

/// Binds the port; the address says which it became.
pub async fn bind(address: SocketAddr) -> io::Result<(TcpListener, SocketAddr)> {
    let listener = TcpListener::bind(address).await?;
    let address = listener.local_addr()?;
    Ok((listener, address))
}

/// Lets the API server in, by its certificate, and nobody else.
fn authorise(request: Request<()>) -> Result<Request<()>, tonic::Status> {
    let certificates = request.peer_certs();
    let leaf = certificates.as_ref().and_then(|all| all.first());
    let allowed = leaf.is_some_and(|leaf| organisations(leaf).iter().any(|group| group == ALLOWED_GROUP));
    if allowed {
        Ok(request)
    } else {
        Err(tonic::Status::permission_denied("only the API server may ask a node"))
    }
}

fn organisations(certificate: &[u8]) -> Vec<String> {
    let Ok((_, certificate)) = X509Certificate::from_der(certificate) else { return Vec::new() };
    let names = certificate.subject().iter_organization();
    names.filter_map(|name| name.as_str().ok().map(str::to_owned)).collect()
}

/// Why there is no log.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
enum Refused {
    /// The question makes no sense, or not now.
    #[error("{0}")]
    BadRequest(String),
    /// There is no such pod.
    #[error("pod {0:?} is not on this node")]
    NoPod(String),
    /// Our own fault.
    #[error("{0}")]
    Internal(String),
}

impl Refused {
    fn internal(error: impl std::error::Error) -> Self {
        let source = error.source().map(|source| format!(": {source}")).unwrap_or_default();
        Self::Internal(format!("{error}{source}"))
    }

    fn to_rpc(&self) -> tonic::Status {
        convert::to_rpc(&match self {
            Self::BadRequest(message) => Status::bad_request(message.as_str()),
            Self::NoPod(name) => {
                let (resource, kind) = (&builtin::POD.id.resource, &builtin::POD.kind);
                Status::not_found(About { group: "", resource, kind, name })
            }
            Self::Internal(message) => Status::internal(message),
        })
    }
}

type Chunks = Pin<Box<dyn Stream<Item = Result<LogChunk, tonic::Status>> + Send>>;

#[tonic::async_trait]
impl Node for LogServer {
    type LogsStream = Chunks;

    async fn logs(&self, request: Request<LogsRequest>) -> Result<Response<Chunks>, tonic::Status> {
        let log = self.open(&request.into_inner()).await.map_err(|refused| refused.to_rpc())?;
        let chunks = stream::unfold(log, |mut log| async {
            let piece = log.next().await?;
            let chunk = piece.map(|data| LogChunk { data });
            Some((chunk.map_err(|error| Refused::internal(error).to_rpc()), log))
        });
        Ok(Response::new(Box::pin(chunks)))
    }
}

impl LogServer {
    async fn open(&self, request: &LogsRequest) -> Result<LogStream, Refused> {
        let options = options(request, Timestamp::now())?;
        let found = self.find(request).await?;
        LogStream::open(self.runtime.log(&found.key), options).await.map_err(Refused::internal)
    }

    /// The attempt whose log is meant.
    async fn find(&self, request: &LogsRequest) -> Result<ObservedContainer, Refused> {
        let uid = self.uid(request)?;
        let runtime = Arc::clone(&self.runtime);
        let containers = tokio::task::spawn_blocking(move || runtime.containers(&uid));
        let containers = containers.await.map_err(Refused::internal)?.map_err(Refused::internal)?;
        choose(request, containers)
    }

    fn uid(&self, request: &LogsRequest) -> Result<String, Refused> {
        if !request.pod_uid.is_empty() {
            return Ok(request.pod_uid.clone());
        }
        let key = ObjectKey::new(request.namespace.as_str(), request.name.as_str());
        self.index.uids(&key).pop_last().ok_or_else(|| Refused::NoPod(request.name.clone()))
    }
}

/// Picks the newest attempt of the container that is meant, or the one before it.
fn choose(request: &LogsRequest, containers: Vec<ObservedContainer>) -> Result<ObservedContainer, Refused> {
    let LogsRequest { name: pod, container, previous, .. } = request;
    let mut names: Vec<&str> = containers.iter().map(|container| container.key.container()).collect();
    names.dedup();
    let name = match (container.as_str(), names.as_slice()) {
        ("", [only]) => (*only).to_owned(),
        ("", []) => return Err(waiting("", pod)),
        ("", names) => {
            let message =
                format!("a container name must be specified for pod {pod}, choose one of: {names:?}");
            return Err(Refused::BadRequest(message));
        }
        (name, _) => name.to_owned(),
    };
    let mut attempts: Vec<ObservedContainer> =
        containers.into_iter().filter(|container| container.key.container() == name).collect();
    let newest = attempts.pop();
    let chosen = if *previous {
        let message = format!("previous terminated container {name:?} in pod {pod:?} not found");
        return attempts.pop().ok_or(Refused::BadRequest(message));
    } else {
        newest
    };
    match chosen {
        Some(container) if container.state != ContainerState::Created => Ok(container),
        _ => Err(waiting(&name, pod)),
    }
}

fn waiting(container: &str, pod: &str) -> Refused {
    Refused::BadRequest(format!(
        "container {container:?} in pod {pod:?} is waiting to start: ContainerCreating"
    ))
}

/// What to read, from a request.
fn options(request: &LogsRequest, now: Timestamp) -> Result<LogOptions, Refused> {
    let count = |name: &str, value: Option<i64>| match value.map(u64::try_from) {
        None => Ok(None),
        Some(Ok(count)) => Ok(Some(count)),
        Some(Err(_)) => Err(Refused::BadRequest(format!("{name} must not be negative"))),
    };
    let since = match (request.since_seconds, request.since_time.as_str()) {
        (Some(_), time) if !time.is_empty() => {
            return Err(Refused::BadRequest(
                "at most one of sinceTime or sinceSeconds may be specified".to_owned(),
            ));
        }
        (Some(seconds), _) => now.checked_sub(SignedDuration::from_secs(seconds.max(0))).ok(),
        (None, "") => None,
        (None, time) => {
            let parsed = time.parse();
            Some(parsed.map_err(|error| Refused::BadRequest(format!("sinceTime {time:?}: {error}")))?)
        }
    };
    Ok(LogOptions {
        follow: request.follow,
        tail_lines: count("tailLines", request.tail_lines)?,
        since,
        timestamps: request.timestamps,
        limit_bytes: count("limitBytes", request.limit_bytes)?,
    })
}

#[cfg(test)]
mod tests;
