//! Channels: TLS, keepalive, windows. A channel connects when it is first used and again whenever it must.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use tonic::metadata::{Ascii, MetadataValue};
use tonic::transport::{Certificate, Channel, ClientTlsConfig, Endpoint, Identity};

use crate::config::ClientConfig;

/// Most time for TCP and TLS together to come up.
pub const CONNECT_TIMEOUT: Duration = Duration::from_secs(5);
/// Between pings of an idle connection, so that a dead peer is noticed.
pub const KEEPALIVE_INTERVAL: Duration = Duration::from_secs(15);
/// Most time for a ping's answer.
pub const KEEPALIVE_TIMEOUT: Duration = Duration::from_secs(10);
/// HTTP/2 receive windows: large enough for a list at full speed on loopback.
const STREAM_WINDOW: u32 = 1024 * 1024;
const CONNECTION_WINDOW: u32 = 4 * 1024 * 1024;
/// Requests that may wait for a channel.
const CHANNEL_QUEUE: usize = 128;
/// Largest message that is read: a batch of a watch holds a whole transaction.
pub const MAX_MESSAGE: usize = 64 * 1024 * 1024;

/// A configuration with which no connection can be tried.
#[derive(Debug, thiserror::Error)]
#[error("cannot use {what} to connect to {server}")]
pub struct SetupError {
    /// Address as configured.
    pub server: String,
    /// Which part of the configuration.
    pub what: &'static str,
    /// Why.
    #[source]
    pub source: Box<dyn std::error::Error + Send + Sync>,
}

/// Channels to one server, used in turn.
#[derive(Clone)]
pub(crate) struct Channels {
    channels: Arc<[Channel]>,
    turn: Arc<AtomicUsize>,
    /// Address for messages.
    pub server: Arc<str>,
    /// `authorization`, if a token is configured.
    pub bearer: Option<MetadataValue<Ascii>>,
    /// Most time an answer may take.
    pub timeout: Duration,
}

impl Channels {
    /// Must be called within a tokio runtime. Does not connect yet.
    pub fn new(config: &ClientConfig) -> Result<Self, SetupError> {
        let server: Arc<str> = config.server.to_string().trim_end_matches('/').into();
        let failed = |what: &'static str, source: Box<dyn std::error::Error + Send + Sync>| SetupError {
            server: server.to_string(),
            what,
            source,
        };
        let endpoint = endpoint(config).map_err(|(what, source)| failed(what, source.into()))?;
        let bearer = match &config.token {
            None => None,
            Some(token) => {
                let mut value = MetadataValue::try_from(format!("Bearer {}", token.0))
                    .map_err(|e| failed("the token", e.into()))?;
                value.set_sensitive(true);
                Some(value)
            }
        };
        Ok(Self {
            channels: (0..config.connections.max(1)).map(|_| endpoint.connect_lazy()).collect(),
            turn: Arc::new(AtomicUsize::new(0)),
            server,
            bearer,
            timeout: Duration::from_secs(config.request_timeout_seconds),
        })
    }

    /// The next channel.
    pub fn next(&self) -> Channel {
        let turn = self.turn.fetch_add(1, Ordering::Relaxed) % self.channels.len();
        self.channels[turn].clone()
    }
}

fn endpoint(config: &ClientConfig) -> Result<Endpoint, (&'static str, tonic::transport::Error)> {
    let endpoint = Endpoint::from(config.server.clone())
        .user_agent(config.user_agent.clone())
        .map_err(|e| ("the user agent", e))?
        .connect_timeout(CONNECT_TIMEOUT)
        .tcp_nodelay(true)
        .tcp_keepalive(Some(KEEPALIVE_INTERVAL))
        .http2_keep_alive_interval(KEEPALIVE_INTERVAL)
        .keep_alive_timeout(KEEPALIVE_TIMEOUT)
        .keep_alive_while_idle(true)
        .initial_stream_window_size(STREAM_WINDOW)
        .initial_connection_window_size(CONNECTION_WINDOW)
        .buffer_size(CHANNEL_QUEUE);
    if config.server.scheme_str() == Some("http") {
        return Ok(endpoint);
    }
    let mut tls = ClientTlsConfig::new().timeout(CONNECT_TIMEOUT);
    if let Some(ca) = &config.ca_pem {
        tls = tls.ca_certificate(Certificate::from_pem(ca));
    }
    if let Some(name) = &config.tls_server_name {
        tls = tls.domain_name(name);
    }
    if let Some(identity) = &config.identity {
        tls = tls.identity(Identity::from_pem(&identity.certificate_pem, &identity.key_pem));
    }
    endpoint.tls_config(tls).map_err(|e| ("the certificates", e))
}
