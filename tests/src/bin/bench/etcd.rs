//! The etcd to compare with: one node on the loopback with its data on the same disk, and a client that asks it over
//! four connections. Its messages have the fields that are used here, with etcd's numbers.

use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use bytes::Bytes;
use prost::{Message, Oneof};
use tokio_stream::wrappers::ReceiverStream;
use tonic::codegen::http::uri::PathAndQuery;
use tonic::transport::{Channel, Endpoint};
use tonic::{Request, Streaming};
use tonic_prost::ProstCodec;

use crate::context::Outcome;
use crate::process::{Process, Usage, free_address};

/// The program.
const PROGRAM: &str = "etcd";
/// Connections of a client, on all sides.
pub const CONNECTIONS: usize = 4;
/// How long a start may take.
const START_LIMIT: Duration = Duration::from_secs(120);
/// Between two looks whether it answers.
const LOOK_EVERY: Duration = Duration::from_millis(5);
/// Most bytes that its database may have: enough for a million keys.
const QUOTA_BYTES: &str = "8589934592";
/// Most puts of one transaction that it takes by default.
const BATCH: usize = 128;
/// Receive windows, so that large answers are not held up.
const STREAM_WINDOW: u32 = 1 << 20;
const CONNECTION_WINDOW: u32 = 4 << 20;

#[derive(Clone, PartialEq, Message)]
struct RangeRequest {
    #[prost(bytes = "bytes", tag = "1")]
    key: Bytes,
    #[prost(bytes = "bytes", tag = "2")]
    range_end: Bytes,
}

#[derive(Clone, PartialEq, Message)]
struct KeyValue {
    #[prost(bytes = "bytes", tag = "1")]
    key: Bytes,
    #[prost(int64, tag = "3")]
    mod_revision: i64,
    #[prost(bytes = "bytes", tag = "5")]
    value: Bytes,
}

#[derive(Clone, PartialEq, Message)]
struct RangeResponse {
    #[prost(message, repeated, tag = "2")]
    kvs: Vec<KeyValue>,
}

#[derive(Clone, PartialEq, Message)]
struct PutRequest {
    #[prost(bytes = "bytes", tag = "1")]
    key: Bytes,
    #[prost(bytes = "bytes", tag = "2")]
    value: Bytes,
}

#[derive(Clone, PartialEq, Message)]
struct Header {
    #[prost(int64, tag = "3")]
    revision: i64,
}

#[derive(Clone, PartialEq, Message)]
struct PutResponse {
    #[prost(message, optional, tag = "1")]
    header: Option<Header>,
}

#[derive(Clone, PartialEq, Message)]
struct RequestOp {
    #[prost(oneof = "Op", tags = "2")]
    op: Option<Op>,
}

#[derive(Clone, PartialEq, Oneof)]
enum Op {
    #[prost(message, tag = "2")]
    Put(PutRequest),
}

#[derive(Clone, PartialEq, Message)]
struct TxnRequest {
    #[prost(message, repeated, tag = "2")]
    success: Vec<RequestOp>,
}

#[derive(Clone, PartialEq, Message)]
struct TxnResponse {}

#[derive(Clone, PartialEq, Message)]
struct WatchRequest {
    #[prost(message, optional, tag = "1")]
    create: Option<WatchCreateRequest>,
}

#[derive(Clone, PartialEq, Message)]
struct WatchCreateRequest {
    #[prost(bytes = "bytes", tag = "1")]
    key: Bytes,
    #[prost(bytes = "bytes", tag = "2")]
    range_end: Bytes,
}

#[derive(Clone, PartialEq, Message)]
struct Event {
    #[prost(message, optional, tag = "2")]
    kv: Option<KeyValue>,
}

#[derive(Clone, PartialEq, Message)]
struct WatchResponse {
    #[prost(bool, tag = "3")]
    created: bool,
    #[prost(message, repeated, tag = "11")]
    events: Vec<Event>,
}

/// A running etcd.
pub struct Etcd {
    process: Process,
    address: SocketAddr,
    data: PathBuf,
}

impl Etcd {
    /// Starts one on this directory, and waits until it answers a linearisable read.
    pub async fn start(data: &Path) -> Outcome<Self> {
        let (address, peer) = (free_address()?, free_address()?);
        let url = format!("http://{address}");
        let log = std::fs::File::create(data.with_extension("log"))?;
        let mut command = Command::new(PROGRAM);
        command
            .arg("--data-dir")
            .arg(data)
            .args(["--listen-client-urls", &url, "--advertise-client-urls", &url])
            .args(["--listen-peer-urls", &format!("http://{peer}")])
            .args(["--quota-backend-bytes", QUOTA_BYTES, "--logger", "zap"])
            .stdin(Stdio::null())
            .stdout(log.try_clone()?)
            .stderr(log);
        let etcd = Self { process: Process::start(&mut command)?, address, data: data.to_owned() };
        let end = Instant::now() + START_LIMIT;
        let mut looks = tokio::time::interval(LOOK_EVERY);
        loop {
            looks.tick().await;
            match etcd.client().await {
                Ok(client) if client.get("/").await.is_ok() => return Ok(etcd),
                _ if Instant::now() < end => {}
                Ok(_) | Err(_) => return Err("etcd does not answer".into()),
            }
        }
    }

    /// A client with connections of its own.
    pub async fn client(&self) -> Outcome<Client> {
        let mut channels = Vec::new();
        for _ in 0..CONNECTIONS {
            let endpoint = Endpoint::from_shared(format!("http://{}", self.address))?
                .tcp_nodelay(true)
                .initial_stream_window_size(STREAM_WINDOW)
                .initial_connection_window_size(CONNECTION_WINDOW);
            channels.push(endpoint.connect().await?);
        }
        Ok(Client { channels: channels.into(), turn: Arc::new(AtomicUsize::new(0)) })
    }

    /// What it has used.
    pub fn usage(&self) -> Outcome<Usage> {
        self.process.usage()
    }

    /// Ends it as a power cut would; gives its directory.
    pub fn kill(self) -> Outcome<PathBuf> {
        self.process.kill()?;
        Ok(self.data)
    }
}

/// What `etcd --version` says of itself.
pub fn version() -> String {
    let output = Command::new(PROGRAM).arg("--version").output();
    let text = output.map(|output| String::from_utf8_lossy(&output.stdout).into_owned()).unwrap_or_default();
    text.lines().next().unwrap_or("etcd of an unknown version").trim().to_owned()
}

/// A client.
#[derive(Clone)]
pub struct Client {
    channels: Arc<[Channel]>,
    turn: Arc<AtomicUsize>,
}

impl Client {
    async fn call<Q, A>(&self, path: &'static str, message: Q) -> Outcome<A>
    where
        Q: Message + Send + Sync + 'static,
        A: Message + Default + Send + Sync + 'static,
    {
        let turn = self.turn.fetch_add(1, Ordering::Relaxed) % self.channels.len();
        let mut grpc =
            tonic::client::Grpc::new(self.channels[turn].clone()).max_decoding_message_size(usize::MAX);
        grpc.ready().await?;
        let codec = ProstCodec::<Q, A>::default();
        let answer = grpc.unary(Request::new(message), PathAndQuery::from_static(path), codec).await?;
        Ok(answer.into_inner())
    }

    /// Stores a value; gives its revision.
    pub async fn put(&self, key: String, value: Bytes) -> Outcome<u64> {
        let request = PutRequest { key: key.into(), value };
        let answer: PutResponse = self.call("/etcdserverpb.KV/Put", request).await?;
        Ok(answer.header.map_or(0, |header| header.revision.unsigned_abs()))
    }

    /// Stores many values, some a transaction.
    pub async fn fill(&self, values: Vec<(String, Bytes)>) -> Outcome<()> {
        for batch in values.chunks(BATCH) {
            let put = |(key, value): &(String, Bytes)| RequestOp {
                op: Some(Op::Put(PutRequest { key: key.clone().into(), value: value.clone() })),
            };
            let request = TxnRequest { success: batch.iter().map(put).collect() };
            let _done: TxnResponse = self.call("/etcdserverpb.KV/Txn", request).await?;
        }
        Ok(())
    }

    /// Bytes of the value of a key.
    pub async fn get(&self, key: &str) -> Outcome<usize> {
        let request = RangeRequest { key: Bytes::copy_from_slice(key.as_bytes()), ..RangeRequest::default() };
        let answer: RangeResponse = self.call("/etcdserverpb.KV/Range", request).await?;
        Ok(answer.kvs.iter().map(|kv| kv.value.len()).sum())
    }

    /// How many keys begin like this, all of them read.
    pub async fn range(&self, prefix: &str) -> Outcome<usize> {
        let request =
            RangeRequest { key: Bytes::copy_from_slice(prefix.as_bytes()), range_end: after(prefix) };
        let answer: RangeResponse = self.call("/etcdserverpb.KV/Range", request).await?;
        Ok(answer.kvs.len())
    }

    /// Opens so many watches of a prefix, each on a stream of its own; gives them once all are open.
    pub async fn watch(&self, prefix: &str, watches: usize) -> Outcome<Vec<Events>> {
        let mut all = Vec::new();
        for index in 0..watches {
            let (asks, asked) = tokio::sync::mpsc::channel(1);
            let create = WatchCreateRequest {
                key: Bytes::copy_from_slice(prefix.as_bytes()),
                range_end: after(prefix),
            };
            asks.send(WatchRequest { create: Some(create) }).await?;
            let channel = self.channels[index % self.channels.len()].clone();
            let mut grpc = tonic::client::Grpc::new(channel).max_decoding_message_size(usize::MAX);
            grpc.ready().await?;
            let path = PathAndQuery::from_static("/etcdserverpb.Watch/Watch");
            let codec = ProstCodec::<WatchRequest, WatchResponse>::default();
            let stream = grpc.streaming(Request::new(ReceiverStream::new(asked)), path, codec).await?;
            let mut events = Events { stream: stream.into_inner(), _asks: asks };
            while !events.message().await?.created {}
            all.push(events);
        }
        Ok(all)
    }
}

/// One watch.
pub struct Events {
    stream: Streaming<WatchResponse>,
    _asks: tokio::sync::mpsc::Sender<WatchRequest>,
}

impl Events {
    async fn message(&mut self) -> Outcome<WatchResponse> {
        Ok(self.stream.message().await?.ok_or("etcd ended a watch")?)
    }

    /// Waits for the next events; gives the revision of each.
    pub async fn next(&mut self, revisions: &mut Vec<u64>) -> Outcome<()> {
        let message = self.message().await?;
        revisions
            .extend(message.events.iter().filter_map(|event| Some(event.kv.as_ref()?.mod_revision as u64)));
        Ok(())
    }
}

/// The first key after all that begin like this.
fn after(prefix: &str) -> Bytes {
    let mut end = prefix.as_bytes().to_vec();
    if let Some(last) = end.last_mut() {
        *last += 1;
    }
    end.into()
}
