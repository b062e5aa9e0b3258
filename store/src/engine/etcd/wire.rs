//! Wire: the messages of etcd's v3 API that the engine speaks, with the fields that it uses.
//! The numbers are etcd's; what is left out is skipped when read. Knows nothing of what is kept in etcd.

use bytes::Bytes;
use prost::{Message, Oneof};

/// Reads a range of keys.
pub const RANGE: &str = "/etcdserverpb.KV/Range";
/// Compares, then does one of two lists of operations.
pub const TXN: &str = "/etcdserverpb.KV/Txn";
/// Gives history back.
pub const COMPACT: &str = "/etcdserverpb.KV/Compact";
/// Follows changes.
pub const WATCH: &str = "/etcdserverpb.Watch/Watch";

/// A key and what etcd knows of it.
#[derive(Clone, PartialEq, Message)]
pub struct KeyValue {
    #[prost(bytes = "bytes", tag = "1")]
    pub key: Bytes,
    #[prost(int64, tag = "2")]
    pub create_revision: i64,
    #[prost(int64, tag = "3")]
    pub mod_revision: i64,
    #[prost(int64, tag = "4")]
    pub version: i64,
    #[prost(bytes = "bytes", tag = "5")]
    pub value: Bytes,
}

/// The kind of an event that is a delete; a put has 0.
pub const DELETE: i32 = 1;

/// A change of one key.
#[derive(Clone, PartialEq, Message)]
pub struct Event {
    #[prost(int32, tag = "1")]
    pub kind: i32,
    #[prost(message, optional, tag = "2")]
    pub kv: Option<KeyValue>,
    #[prost(message, optional, tag = "3")]
    pub prev_kv: Option<KeyValue>,
}

/// What comes with each answer.
#[derive(Clone, PartialEq, Message)]
pub struct Header {
    #[prost(int64, tag = "3")]
    pub revision: i64,
}

/// Asks for a range.
#[derive(Clone, PartialEq, Message)]
pub struct RangeRequest {
    #[prost(bytes = "bytes", tag = "1")]
    pub key: Bytes,
    #[prost(bytes = "bytes", tag = "2")]
    pub range_end: Bytes,
    #[prost(int64, tag = "3")]
    pub limit: i64,
    #[prost(int64, tag = "4")]
    pub revision: i64,
}

/// A range, or its first part.
#[derive(Clone, PartialEq, Message)]
pub struct RangeResponse {
    #[prost(message, optional, tag = "1")]
    pub header: Option<Header>,
    #[prost(message, repeated, tag = "2")]
    pub kvs: Vec<KeyValue>,
    #[prost(bool, tag = "3")]
    pub more: bool,
}

/// Stores a value.
#[derive(Clone, PartialEq, Message)]
pub struct PutRequest {
    #[prost(bytes = "bytes", tag = "1")]
    pub key: Bytes,
    #[prost(bytes = "bytes", tag = "2")]
    pub value: Bytes,
}

/// Removes a key.
#[derive(Clone, PartialEq, Message)]
pub struct DeleteRangeRequest {
    #[prost(bytes = "bytes", tag = "1")]
    pub key: Bytes,
    #[prost(bytes = "bytes", tag = "2")]
    pub range_end: Bytes,
    #[prost(bool, tag = "3")]
    pub prev_kv: bool,
}

/// What was removed.
#[derive(Clone, PartialEq, Message)]
pub struct DeleteRangeResponse {
    #[prost(message, repeated, tag = "3")]
    pub prev_kvs: Vec<KeyValue>,
}

/// One operation of a transaction.
#[derive(Clone, PartialEq, Message)]
pub struct RequestOp {
    #[prost(oneof = "Op", tags = "1, 2, 3")]
    pub op: Option<Op>,
}

/// What an operation does.
#[derive(Clone, PartialEq, Oneof)]
pub enum Op {
    #[prost(message, tag = "1")]
    Range(RangeRequest),
    #[prost(message, tag = "2")]
    Put(PutRequest),
    #[prost(message, tag = "3")]
    Delete(DeleteRangeRequest),
}

/// The answer to one operation; puts are answered with nothing of interest.
#[derive(Clone, PartialEq, Message)]
pub struct ResponseOp {
    #[prost(message, optional, tag = "1")]
    pub range: Option<RangeResponse>,
    #[prost(message, optional, tag = "3")]
    pub delete: Option<DeleteRangeResponse>,
}

/// How a compare compares.
pub mod result {
    pub const EQUAL: i32 = 0;
    pub const GREATER: i32 = 1;
    pub const LESS: i32 = 2;
}

/// What a compare compares.
pub mod target {
    pub const VERSION: i32 = 0;
    pub const MOD: i32 = 2;
}

/// What must hold of a key.
#[derive(Clone, PartialEq, Message)]
pub struct Compare {
    #[prost(int32, tag = "1")]
    pub result: i32,
    #[prost(int32, tag = "2")]
    pub target: i32,
    #[prost(bytes = "bytes", tag = "3")]
    pub key: Bytes,
    #[prost(oneof = "Against", tags = "4, 6")]
    pub against: Option<Against>,
    #[prost(bytes = "bytes", tag = "64")]
    pub range_end: Bytes,
}

/// What a key is compared with.
#[derive(Clone, Copy, PartialEq, Oneof)]
pub enum Against {
    #[prost(int64, tag = "4")]
    Version(i64),
    #[prost(int64, tag = "6")]
    ModRevision(i64),
}

/// A transaction.
#[derive(Clone, PartialEq, Message)]
pub struct TxnRequest {
    #[prost(message, repeated, tag = "1")]
    pub compare: Vec<Compare>,
    #[prost(message, repeated, tag = "2")]
    pub success: Vec<RequestOp>,
    #[prost(message, repeated, tag = "3")]
    pub failure: Vec<RequestOp>,
}

/// What a transaction did.
#[derive(Clone, PartialEq, Message)]
pub struct TxnResponse {
    #[prost(message, optional, tag = "1")]
    pub header: Option<Header>,
    #[prost(bool, tag = "2")]
    pub succeeded: bool,
    #[prost(message, repeated, tag = "3")]
    pub responses: Vec<ResponseOp>,
}

/// Gives history below a revision back.
#[derive(Clone, PartialEq, Message)]
pub struct CompactionRequest {
    #[prost(int64, tag = "1")]
    pub revision: i64,
}

/// The answer to that.
#[derive(Clone, PartialEq, Message)]
pub struct CompactionResponse {}

/// A request on the stream of watches; the engine has one watch a stream.
#[derive(Clone, PartialEq, Message)]
pub struct WatchRequest {
    #[prost(message, optional, tag = "1")]
    pub create: Option<WatchCreateRequest>,
}

/// Begins a watch.
#[derive(Clone, PartialEq, Message)]
pub struct WatchCreateRequest {
    #[prost(bytes = "bytes", tag = "1")]
    pub key: Bytes,
    #[prost(bytes = "bytes", tag = "2")]
    pub range_end: Bytes,
    #[prost(int64, tag = "3")]
    pub start_revision: i64,
    #[prost(bool, tag = "6")]
    pub prev_kv: bool,
}

/// What a watch says. Without fragments, which are never asked for, all events of a revision are in one.
#[derive(Clone, PartialEq, Message)]
pub struct WatchResponse {
    #[prost(message, optional, tag = "1")]
    pub header: Option<Header>,
    #[prost(bool, tag = "3")]
    pub created: bool,
    #[prost(bool, tag = "4")]
    pub canceled: bool,
    #[prost(int64, tag = "5")]
    pub compact_revision: i64,
    #[prost(string, tag = "6")]
    pub cancel_reason: String,
    #[prost(message, repeated, tag = "11")]
    pub events: Vec<Event>,
}

/// The revision of an answer.
#[must_use]
pub fn revision(header: &Option<Header>) -> i64 {
    header.as_ref().map_or(0, |header| header.revision)
}

/// An operation that stores a value.
#[must_use]
pub fn put(key: Bytes, value: impl Into<Bytes>) -> RequestOp {
    RequestOp { op: Some(Op::Put(PutRequest { key, value: value.into() })) }
}

/// An operation that removes a key and gives what it was.
#[must_use]
pub fn delete(key: Bytes) -> RequestOp {
    RequestOp { op: Some(Op::Delete(DeleteRangeRequest { key, range_end: Bytes::new(), prev_kv: true })) }
}

/// An operation that reads one key.
#[must_use]
pub fn get(key: Bytes) -> RequestOp {
    RequestOp { op: Some(Op::Range(RangeRequest { key, ..RangeRequest::default() })) }
}

/// A compare of a key's last revision.
#[must_use]
pub fn modified(key: Bytes, result: i32, revision: i64) -> Compare {
    let against = Some(Against::ModRevision(revision));
    Compare { result, target: target::MOD, key, against, range_end: Bytes::new() }
}

/// A compare: the key is not there.
#[must_use]
pub fn absent(key: Bytes) -> Compare {
    let against = Some(Against::Version(0));
    Compare { result: result::EQUAL, target: target::VERSION, key, against, range_end: Bytes::new() }
}

/// A compare: the key is there.
#[must_use]
pub fn present(key: Bytes) -> Compare {
    Compare { result: result::GREATER, ..absent(key) }
}

impl TxnResponse {
    /// The one key that the operation at `index` read, if it was there.
    #[must_use]
    pub fn read(&self, index: usize) -> Option<&KeyValue> {
        self.responses.get(index)?.range.as_ref()?.kvs.first()
    }
}
