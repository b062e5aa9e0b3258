//! Members: the connections to a cluster's servers. One is used at a time; when it fails, the next.
//! Knows the errors of etcd, not what is kept there.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use prost::Message;
use tokio::time::{Instant, sleep, timeout};
use tokio_stream::StreamExt;
use tonic::codegen::http::uri::PathAndQuery;
use tonic::metadata::MetadataValue;
use tonic::transport::{Certificate, Channel, ClientTlsConfig, Endpoint, Identity};
use tonic::{Code, Request, Status, Streaming};
use tonic_prost::ProstCodec;

use crate::engine::etcd::EtcdConfig;
use crate::engine::etcd::wire::{self, WatchCreateRequest, WatchRequest, WatchResponse};
use crate::error::EngineError;

/// Most time for a connection to come up.
const CONNECT_LIMIT: Duration = Duration::from_secs(2);
/// Most time for one answer: a little more than etcd's own limit for an election.
const CALL_LIMIT: Duration = Duration::from_secs(8);
/// Between pings of an idle connection; etcd resents more than one in 5 seconds.
const PING_EVERY: Duration = Duration::from_secs(10);
/// Most time for a ping's answer.
const PING_LIMIT: Duration = Duration::from_secs(5);
/// HTTP/2 receive windows.
const STREAM_WINDOW: u32 = 4 << 20;
const CONNECTION_WINDOW: u32 = 16 << 20;
/// First and longest rest between tries.
const FIRST_REST: Duration = Duration::from_millis(20);
const LONGEST_REST: Duration = Duration::from_secs(1);

/// Why a call failed.
#[derive(Clone, Debug)]
pub enum CallError {
    /// It was refused: nothing happened, and the same would be refused again.
    Refused {
        /// Who refused.
        at: String,
        /// Why.
        status: Status,
    },
    /// Nobody knows whether it happened.
    Lost {
        /// Who was asked.
        at: String,
        /// What went wrong.
        what: String,
    },
}

impl CallError {
    /// For a call that changes nothing.
    #[must_use]
    pub fn of_read(self) -> EngineError {
        match self {
            CallError::Refused { at, status } => EngineError::Refused { at, what: words(&status) },
            CallError::Lost { at, what } => EngineError::Unavailable { at, what },
        }
    }
}

fn words(status: &Status) -> String {
    format!("{} ({:?})", status.message(), status.code())
}

/// Rests between tries, longer each time.
pub struct Rest(Duration);

impl Rest {
    /// Begins with a short one.
    #[must_use]
    pub fn new() -> Self {
        Rest(FIRST_REST)
    }

    /// Rests.
    pub async fn take(&mut self) {
        sleep(self.0).await;
        self.0 = (self.0 * 2).min(LONGEST_REST);
    }
}

/// The servers of a cluster.
pub struct Members {
    members: Vec<(String, Channel)>,
    current: AtomicUsize,
}

/// A running watch.
pub struct Following {
    /// The server that it runs on.
    member: usize,
    stream: Streaming<WatchResponse>,
}

impl Members {
    /// The servers as configured. Nothing is connected yet. Must be called within a runtime.
    ///
    /// # Errors
    /// `Refused` if an address or a certificate cannot be used.
    pub fn new(config: &EtcdConfig) -> Result<Members, EngineError> {
        let connect = |server: &String| {
            let endpoint = endpoint(server, config).map_err(|error| EngineError::Refused {
                at: server.clone(),
                what: format!("the address or the certificates cannot be used: {}", causes(&error)),
            })?;
            Ok((server.clone(), endpoint.connect_lazy()))
        };
        let members = config.servers.iter().map(connect).collect::<Result<Vec<_>, EngineError>>()?;
        if members.is_empty() {
            return Err(EngineError::Refused {
                at: "etcd".to_owned(),
                what: "no server is named".to_owned(),
            });
        }
        Ok(Members { members, current: AtomicUsize::new(0) })
    }

    fn current(&self) -> usize {
        self.current.load(Ordering::Relaxed) % self.members.len()
    }

    /// Goes on to the next server, unless another caller did.
    fn leave(&self, member: usize) {
        let next = (member + 1) % self.members.len();
        if self.current.compare_exchange(member, next, Ordering::Relaxed, Ordering::Relaxed).is_ok()
            && next != member
        {
            tracing::info!(
                from = self.members[member].0,
                to = self.members[next].0,
                "another etcd server is used"
            );
        }
    }

    /// Calls once.
    ///
    /// # Errors
    /// `Refused`, or `Lost` if the call may have happened all the same.
    pub async fn call<Q, A>(&self, path: &'static str, request: Q) -> Result<A, CallError>
    where
        Q: Message + 'static,
        A: Message + Default + 'static,
    {
        let member = self.current();
        let (at, channel) = &self.members[member];
        let mut grpc = tonic::client::Grpc::new(channel.clone()).max_decoding_message_size(usize::MAX);
        let answer = timeout(CALL_LIMIT, async {
            grpc.ready().await.map_err(|error| Status::unavailable(causes(&error)))?;
            let codec = ProstCodec::<Q, A>::default();
            grpc.unary(Request::new(request), PathAndQuery::from_static(path), codec).await
        })
        .await;
        let status = match answer {
            Ok(Ok(answer)) => return Ok(answer.into_inner()),
            Ok(Err(status)) => status,
            Err(_) => Status::deadline_exceeded("no answer in time"),
        };
        let at = at.clone();
        match status.code() {
            Code::InvalidArgument
            | Code::NotFound
            | Code::AlreadyExists
            | Code::PermissionDenied
            | Code::ResourceExhausted
            | Code::FailedPrecondition
            | Code::OutOfRange
            | Code::Unimplemented
            | Code::Unauthenticated => Err(CallError::Refused { at, status }),
            _ => {
                self.leave(member);
                Err(CallError::Lost { at, what: words(&status) })
            }
        }
    }

    /// Calls until there is an answer: for what may happen twice.
    ///
    /// # Errors
    /// `Refused`, or `Lost` when the deadline has passed.
    pub async fn call_until<Q, A>(
        &self,
        path: &'static str,
        request: Q,
        deadline: Instant,
    ) -> Result<A, CallError>
    where
        Q: Message + Clone + 'static,
        A: Message + Default + 'static,
    {
        let mut rest = Rest::new();
        loop {
            match self.call(path, request.clone()).await {
                Err(CallError::Lost { .. }) if Instant::now() < deadline => rest.take().await,
                other => return other,
            }
        }
    }

    /// Begins a watch.
    ///
    /// # Errors
    /// As `call`.
    pub async fn watch(&self, create: WatchCreateRequest) -> Result<Following, CallError> {
        let member = self.current();
        let (at, channel) = &self.members[member];
        let mut grpc = tonic::client::Grpc::new(channel.clone()).max_decoding_message_size(usize::MAX);
        let asked = tokio_stream::once(WatchRequest { create: Some(create) }).chain(tokio_stream::pending());
        let mut request = Request::new(asked);
        // A server that is cut off from the others must say so rather than be silent.
        request.metadata_mut().insert("hasleader", MetadataValue::from_static("true"));
        let answer = timeout(CALL_LIMIT, async {
            grpc.ready().await.map_err(|error| Status::unavailable(causes(&error)))?;
            let codec = ProstCodec::<WatchRequest, WatchResponse>::default();
            grpc.streaming(request, PathAndQuery::from_static(wire::WATCH), codec).await
        })
        .await;
        match answer {
            Ok(Ok(answer)) => Ok(Following { member, stream: answer.into_inner() }),
            Ok(Err(status)) => {
                self.leave(member);
                Err(CallError::Lost { at: at.clone(), what: words(&status) })
            }
            Err(_) => {
                self.leave(member);
                Err(CallError::Lost { at: at.clone(), what: "no answer in time".to_owned() })
            }
        }
    }

    /// The next response of a watch; cancel safe.
    ///
    /// # Errors
    /// `Lost` if the watch has ended; it is to be begun anew.
    pub async fn next(&self, following: &mut Following) -> Result<WatchResponse, CallError> {
        let what = match following.stream.message().await {
            Ok(Some(response)) if response.canceled && response.compact_revision == 0 => {
                format!("the watch was cancelled: {}", response.cancel_reason)
            }
            Ok(Some(response)) => return Ok(response),
            Ok(None) => "the watch ended".to_owned(),
            Err(status) => words(&status),
        };
        self.leave(following.member);
        Err(CallError::Lost { at: self.members[following.member].0.clone(), what })
    }
}

fn endpoint(server: &str, config: &EtcdConfig) -> Result<Endpoint, tonic::transport::Error> {
    let endpoint = Endpoint::from_shared(server.to_owned())?
        .connect_timeout(CONNECT_LIMIT)
        .tcp_nodelay(true)
        .http2_keep_alive_interval(PING_EVERY)
        .keep_alive_timeout(PING_LIMIT)
        .keep_alive_while_idle(true)
        .initial_stream_window_size(STREAM_WINDOW)
        .initial_connection_window_size(CONNECTION_WINDOW);
    if endpoint.uri().scheme_str() != Some("https") {
        return Ok(endpoint);
    }
    let mut tls = ClientTlsConfig::new().timeout(CONNECT_LIMIT);
    if let Some(authority) = &config.authority_pem {
        tls = tls.ca_certificate(Certificate::from_pem(authority));
    }
    if let Some(identity) = &config.identity {
        tls = tls.identity(Identity::from_pem(&identity.certificate_pem, &identity.key_pem));
    }
    endpoint.tls_config(tls)
}

/// An error with its sources, in one line.
fn causes(error: &dyn std::error::Error) -> String {
    let mut text = error.to_string();
    let mut source = error.source();
    while let Some(error) = source {
        text = format!("{text}: {error}");
        source = error.source();
    }
    text
}
