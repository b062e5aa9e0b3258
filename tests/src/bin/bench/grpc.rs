//! Strata over gRPC: config maps created and watched by the generated client, over four connections.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use bytes::Bytes;
use strata_wire::v1;
use strata_wire::v1::resources_client::ResourcesClient;
use tokio_stream::wrappers::ReceiverStream;
use tonic::Streaming;
use tonic::transport::{Certificate, Channel, ClientTlsConfig, Endpoint, Identity};

use crate::context::Outcome;
use crate::etcd::CONNECTIONS;
use crate::host::Access;
use crate::load::{VALUE_BYTES, text};

/// Receive windows, so that large answers are not held up.
const STREAM_WINDOW: u32 = 1 << 20;
const CONNECTION_WINDOW: u32 = 4 << 20;
/// Events of one watch that may be under way: more than any measurement sends, so none waits for credit.
const WATCH_WINDOW: u32 = 65_536;
/// Largest message: a batch of a watch.
const MAX_MESSAGE: usize = 64 << 20;

/// Where the objects are.
pub const NAMESPACE: &str = "default";

/// A client.
#[derive(Clone)]
pub struct Client {
    channels: Arc<[Channel]>,
    turn: Arc<AtomicUsize>,
}

impl Client {
    /// Connects, with TLS where the server has it.
    pub async fn connect(access: &Access) -> Outcome<Self> {
        let mut channels = Vec::new();
        for _ in 0..CONNECTIONS {
            let scheme = if access.tls.is_some() { "https" } else { "http" };
            let mut endpoint = Endpoint::from_shared(format!("{scheme}://{}", access.address))?
                .tcp_nodelay(true)
                .initial_stream_window_size(STREAM_WINDOW)
                .initial_connection_window_size(CONNECTION_WINDOW);
            if let Some(tls) = &access.tls {
                let identity = Identity::from_pem(&tls.certificate, &tls.key);
                let authority = Certificate::from_pem(&tls.authority);
                endpoint = endpoint
                    .tls_config(ClientTlsConfig::new().ca_certificate(authority).identity(identity))?;
            }
            channels.push(endpoint.connect().await?);
        }
        Ok(Self { channels: channels.into(), turn: Arc::new(AtomicUsize::new(0)) })
    }

    fn resources(&self, at: usize) -> ResourcesClient<Channel> {
        ResourcesClient::new(self.channels[at % self.channels.len()].clone())
            .max_decoding_message_size(MAX_MESSAGE)
    }

    /// Creates an object; gives its bytes as stored.
    pub async fn create(&self, resource: v1::ResourceRef, object: Bytes) -> Outcome<Bytes> {
        let request = v1::CreateRequest {
            resource: Some(resource),
            namespace: NAMESPACE.to_owned(),
            object,
            ..v1::CreateRequest::default()
        };
        let turn = self.turn.fetch_add(1, Ordering::Relaxed);
        Ok(self.resources(turn).create(request).await?.into_inner().object)
    }

    /// Opens so many watches of config maps, each on a stream of its own; gives them once all are open.
    pub async fn watch(&self, watches: usize) -> Outcome<Vec<Events>> {
        let mut all = Vec::new();
        for index in 0..watches {
            let (asks, asked) = tokio::sync::mpsc::channel(2);
            let open = v1::WatchOpen {
                resource: Some(config_maps()),
                namespace: NAMESPACE.to_owned(),
                window: WATCH_WINDOW,
                ..v1::WatchOpen::default()
            };
            let say = |say| v1::WatchRequest { watch_id: 1, say: Some(say) };
            asks.send(say(v1::watch_request::Say::Open(open))).await?;
            asks.send(say(v1::watch_request::Say::AskProgress(v1::WatchAskProgress {}))).await?;
            let stream = self.resources(index).watch(ReceiverStream::new(asked)).await?.into_inner();
            let mut events = Events { stream, _asks: asks };
            while !matches!(events.message().await?.say, Some(v1::watch_response::Say::Progress(_))) {}
            all.push(events);
        }
        Ok(all)
    }
}

/// One watch.
pub struct Events {
    stream: Streaming<v1::WatchResponse>,
    _asks: tokio::sync::mpsc::Sender<v1::WatchRequest>,
}

impl Events {
    async fn message(&mut self) -> Outcome<v1::WatchResponse> {
        Ok(self.stream.message().await?.ok_or("the server ended a watch")?)
    }

    /// Waits for the next events; gives the revision of each.
    pub async fn next(&mut self, revisions: &mut Vec<u64>) -> Outcome<()> {
        match self.message().await?.say {
            Some(v1::watch_response::Say::Events(events)) => {
                revisions.extend(events.events.iter().map(|event| event.revision));
            }
            Some(v1::watch_response::Say::Closed(closed)) => {
                return Err(String::from_utf8_lossy(&closed.status).into_owned().into());
            }
            _ => {}
        }
        Ok(())
    }
}

/// The type of config maps.
pub fn config_maps() -> v1::ResourceRef {
    v1::ResourceRef { group: String::new(), version: "v1".to_owned(), resource: "configmaps".to_owned() }
}

/// A config map of about [`VALUE_BYTES`] bytes as it is sent.
pub fn config_map(name: &str, seed: u64) -> Bytes {
    let head = format!(
        r#"{{"apiVersion":"v1","kind":"ConfigMap","metadata":{{"name":"{name}","labels":{{"app":"bench"}}}},"data":{{"value":""#
    );
    let room = VALUE_BYTES.saturating_sub(head.len() + 4);
    format!("{head}{}\"}}}}", text(seed, room)).into()
}
