//! Every verb of the API, over objects as the model has them. One value serves a whole process; clones share its
//! connections.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use strata_model::object::{Object, ObjectKey};
use strata_model::resource::ResourceType;
use strata_wire::FENCE_HEADER;
use strata_wire::convert;
use strata_wire::v1;
use strata_wire::v1::discovery_client::DiscoveryClient;
use strata_wire::v1::maintenance_client::MaintenanceClient;
use strata_wire::v1::resources_client::ResourcesClient;
use tonic::transport::Channel;
use tonic::{Request, Streaming};

use crate::config::ClientConfig;
use crate::connect::{Channels, MAX_MESSAGE, SetupError};
use crate::error::ClientError;
use crate::fence::Fence;
use crate::options::{
    Compaction, DeleteOptions, Deleted, GetOptions, List, ListOptions, LogOptions, Patch, Projection,
    StoreStatus, Version, WriteOptions, Written,
};

/// Most bytes of a cause that are sent.
const MAX_CAUSE: usize = 1024;

/// A client of one server. Cheap to clone.
#[derive(Clone)]
pub struct Client {
    pub(crate) channels: Channels,
    namespace: Arc<str>,
    fence: Option<Fence>,
}

impl Client {
    /// A client that connects when it is first used. Must be called within a tokio runtime.
    pub fn new(config: &ClientConfig) -> Result<Self, SetupError> {
        Ok(Self {
            channels: Channels::new(config)?,
            namespace: config.namespace.as_str().into(),
            fence: None,
        })
    }

    /// The server's address, for messages.
    pub fn server(&self) -> &str {
        &self.channels.server
    }

    /// A client of the same connections whose writes are made in the term that the fence is given.
    pub fn fenced(&self) -> (Self, Fence) {
        let fence = Fence::default();
        (Self { fence: Some(fence.clone()), ..self.clone() }, fence)
    }

    /// The default namespace of the context.
    pub fn namespace(&self) -> &str {
        &self.namespace
    }

    pub(crate) fn resources(&self) -> ResourcesClient<Channel> {
        ResourcesClient::new(self.channels.next()).max_decoding_message_size(MAX_MESSAGE)
    }

    /// A request with the identity, without a time limit.
    pub(crate) fn open_request<T>(&self, message: T) -> Request<T> {
        let mut request = Request::new(message);
        if let Some(bearer) = &self.channels.bearer {
            request.metadata_mut().insert("authorization", bearer.clone());
        }
        if let Some(term) = self.fence.as_ref().and_then(Fence::value) {
            request.metadata_mut().insert(FENCE_HEADER, term);
        }
        request
    }

    pub(crate) fn request<T>(&self, message: T) -> Request<T> {
        let mut request = self.open_request(message);
        request.set_timeout(self.channels.timeout);
        request
    }

    pub(crate) fn failed(&self, error: tonic::Status) -> ClientError {
        ClientError::from_rpc(&self.channels.server, error)
    }

    pub(crate) async fn answer<T>(
        &self,
        what: &'static str,
        call: impl Future<Output = Result<tonic::Response<T>, tonic::Status>>,
    ) -> Result<T, ClientError> {
        let answer = self.in_time(what, call).await?;
        answer.map(tonic::Response::into_inner).map_err(|e| self.failed(e))
    }

    pub(crate) async fn in_time<T>(
        &self,
        what: &'static str,
        call: impl Future<Output = T>,
    ) -> Result<T, ClientError> {
        let limit: Duration = self.channels.timeout;
        tokio::time::timeout(limit, call).await.map_err(|_| ClientError::Timeout {
            server: self.server().to_owned(),
            what,
            seconds: limit.as_secs(),
        })
    }

    pub(crate) fn object(&self, json: Bytes) -> Result<Object, ClientError> {
        Object::from_bytes(json)
            .map_err(|source| ClientError::Decode { server: self.server().to_owned(), source })
    }

    fn written(&self, response: v1::WriteResponse) -> Result<Written, ClientError> {
        let v1::WriteResponse { object, changed, warnings } = response;
        Ok(Written { object: self.object(object)?, changed, warnings })
    }

    /// One object, or one of its readable subresources.
    pub async fn get(
        &self,
        resource: &ResourceType,
        key: &ObjectKey,
        options: &GetOptions,
    ) -> Result<Object, ClientError> {
        let message = v1::GetRequest {
            resource: Some(convert::resource_ref(resource)),
            namespace: key.namespace.clone(),
            name: key.name.clone(),
            subresource: options.subresource.clone(),
            resource_version: options.resource_version.clone(),
            projection: projection(options.projection).into(),
            resource_version_match: options.resource_version_match.clone(),
        };
        let object = self.answer("get", self.resources().get(self.request(message))).await?;
        self.object(object.json)
    }

    /// All objects of a type that match; `limit` makes pages. An empty namespace means all.
    pub async fn list(
        &self,
        resource: &ResourceType,
        namespace: &str,
        options: &ListOptions,
    ) -> Result<List, ClientError> {
        let message = v1::ListRequest {
            resource: Some(convert::resource_ref(resource)),
            namespace: namespace.to_owned(),
            label_selector: options.label_selector.clone(),
            field_selector: options.field_selector.clone(),
            limit: options.limit,
            continue_token: options.continue_token.clone(),
            resource_version: options.resource_version.clone(),
            resource_version_match: options.resource_version_match.clone(),
            projection: projection(options.projection).into(),
        };
        let chunks = self.answer("list", self.resources().list(self.open_request(message))).await?;
        self.gather(chunks).await
    }

    async fn gather(&self, mut chunks: Streaming<v1::ListChunk>) -> Result<List, ClientError> {
        let mut list = List::default();
        while let Some(chunk) = self.in_time("list", chunks.message()).await?.map_err(|e| self.failed(e))? {
            for item in chunk.items {
                // Copied out, so that one object kept does not keep its whole chunk.
                list.items.push(self.object(Bytes::copy_from_slice(&item))?);
            }
            list.resource_version = chunk.resource_version;
            list.continue_token = chunk.continue_token;
            list.remaining = chunk.remaining;
        }
        Ok(list)
    }

    /// Creates an object, given as JSON.
    pub async fn create(
        &self,
        resource: &ResourceType,
        namespace: &str,
        object: impl Into<Bytes>,
        options: &WriteOptions,
    ) -> Result<Written, ClientError> {
        self.create_at(resource, &ObjectKey::new(namespace, ""), "", object.into(), options).await
    }

    /// Acts through a subresource of an object (`binding`, `eviction`), with a body in JSON.
    pub async fn create_subresource(
        &self,
        resource: &ResourceType,
        key: &ObjectKey,
        subresource: &str,
        body: impl Into<Bytes>,
        options: &WriteOptions,
    ) -> Result<Written, ClientError> {
        self.create_at(resource, key, subresource, body.into(), options).await
    }

    async fn create_at(
        &self,
        resource: &ResourceType,
        key: &ObjectKey,
        subresource: &str,
        object: Bytes,
        options: &WriteOptions,
    ) -> Result<Written, ClientError> {
        let message = v1::CreateRequest {
            resource: Some(convert::resource_ref(resource)),
            namespace: key.namespace.clone(),
            name: key.name.clone(),
            subresource: subresource.to_owned(),
            object,
            options: Some(write_options(options)),
        };
        let response = self.answer("create", self.resources().create(self.request(message))).await?;
        self.written(response)
    }

    /// Replaces an object, or with a subresource that part of it. A `metadata.resourceVersion` in it is a precondition.
    pub async fn update(
        &self,
        resource: &ResourceType,
        key: &ObjectKey,
        subresource: &str,
        object: impl Into<Bytes>,
        options: &WriteOptions,
    ) -> Result<Written, ClientError> {
        let message = v1::UpdateRequest {
            resource: Some(convert::resource_ref(resource)),
            namespace: key.namespace.clone(),
            name: key.name.clone(),
            subresource: subresource.to_owned(),
            object: object.into(),
            options: Some(write_options(options)),
        };
        let response = self.answer("update", self.resources().update(self.request(message))).await?;
        self.written(response)
    }

    /// Patches an object, or with a subresource that part of it.
    pub async fn patch(
        &self,
        resource: &ResourceType,
        key: &ObjectKey,
        subresource: &str,
        patch: &Patch,
        options: &WriteOptions,
    ) -> Result<Written, ClientError> {
        let (type_, bytes, force) = match patch {
            Patch::Merge(value) => (v1::PatchType::Merge, value.to_string().into(), false),
            Patch::Json(value) => (v1::PatchType::Json, value.to_string().into(), false),
            Patch::Strategic(value) => (v1::PatchType::Strategic, value.to_string().into(), false),
            Patch::Apply { object, force } => (v1::PatchType::Apply, object.clone(), *force),
        };
        let message = v1::PatchRequest {
            resource: Some(convert::resource_ref(resource)),
            namespace: key.namespace.clone(),
            name: key.name.clone(),
            subresource: subresource.to_owned(),
            r#type: type_.into(),
            patch: bytes,
            options: Some(write_options(options)),
            force,
        };
        let response = self.answer("patch", self.resources().patch(self.request(message))).await?;
        self.written(response)
    }

    /// Deletes an object, or marks it where something remains to be done first.
    pub async fn delete(
        &self,
        resource: &ResourceType,
        key: &ObjectKey,
        options: &DeleteOptions,
    ) -> Result<Deleted, ClientError> {
        let message = v1::DeleteRequest {
            resource: Some(convert::resource_ref(resource)),
            namespace: key.namespace.clone(),
            name: key.name.clone(),
            options: Some(delete_options(options)),
        };
        let response = self.answer("delete", self.resources().delete(self.request(message))).await?;
        let v1::DeleteResponse { json, removed, warnings } = response;
        Ok(Deleted { object: self.object(json)?, removed, warnings })
    }

    /// Deletes all objects that match, and answers them.
    pub async fn delete_collection(
        &self,
        resource: &ResourceType,
        namespace: &str,
        label_selector: &str,
        field_selector: &str,
        options: &DeleteOptions,
    ) -> Result<List, ClientError> {
        let message = v1::DeleteCollectionRequest {
            resource: Some(convert::resource_ref(resource)),
            namespace: namespace.to_owned(),
            label_selector: label_selector.to_owned(),
            field_selector: field_selector.to_owned(),
            options: Some(delete_options(options)),
        };
        let call = self.resources();
        let mut call = call;
        let chunks =
            self.answer("delete collection", call.delete_collection(self.open_request(message))).await?;
        self.gather(chunks).await
    }

    /// The log of a container of a pod.
    pub async fn logs(&self, pod: &ObjectKey, options: &LogOptions) -> Result<Logs, ClientError> {
        let message = v1::LogsRequest {
            namespace: pod.namespace.clone(),
            name: pod.name.clone(),
            container: options.container.clone(),
            follow: options.follow,
            previous: options.previous,
            tail_lines: options.tail_lines,
            since_seconds: options.since_seconds,
            since_time: options.since_time.clone(),
            timestamps: options.timestamps,
            limit_bytes: options.limit_bytes,
            pod_uid: String::new(),
        };
        let chunks = self.answer("logs", self.resources().logs(self.open_request(message))).await?;
        Ok(Logs { chunks, server: Arc::clone(&self.channels.server) })
    }

    /// All served types, as discovery describes them.
    pub async fn types(&self) -> Result<Vec<ResourceType>, ClientError> {
        let mut discovery = DiscoveryClient::new(self.channels.next()).max_decoding_message_size(MAX_MESSAGE);
        let response = self.answer("discovery", discovery.types(self.request(v1::TypesRequest {}))).await?;
        Ok(response.types.into_iter().map(convert::described).collect())
    }

    /// The OpenAPI v3 document of a group and version, JSON.
    pub async fn schema(&self, group: &str, version: &str) -> Result<Bytes, ClientError> {
        let mut discovery = DiscoveryClient::new(self.channels.next()).max_decoding_message_size(MAX_MESSAGE);
        let message = v1::SchemaRequest { group: group.to_owned(), version: version.to_owned() };
        let response = self.answer("schema", discovery.schema(self.request(message))).await?;
        Ok(response.openapi)
    }

    /// The server's version: the cheapest way to see whether it is there.
    pub async fn version(&self) -> Result<Version, ClientError> {
        let mut discovery = DiscoveryClient::new(self.channels.next());
        let response = self.answer("version", discovery.version(self.request(v1::VersionRequest {}))).await?;
        let v1::VersionResponse { git_version, major, minor, strata } = response;
        Ok(Version { git_version, major, minor, strata })
    }

    /// What the store says of itself.
    pub async fn status(&self) -> Result<StoreStatus, ClientError> {
        let mut maintenance = MaintenanceClient::new(self.channels.next());
        let s = self.answer("status", maintenance.status(self.request(v1::StatusRequest {}))).await?;
        Ok(StoreStatus {
            revision: s.revision,
            oldest_revision: s.oldest_revision,
            keys: s.keys,
            bytes: s.bytes,
            log_bytes: s.log_bytes,
            watchers: s.watchers,
            watchers_behind: s.watchers_behind,
            watch_lag: s.watch_lag,
            disk_bytes: s.disk_bytes,
            disk_available_bytes: s.disk_available_bytes,
            oldest_time: s.oldest_time,
        })
    }

    /// Drops old history; answers the oldest revision that remains.
    pub async fn compact(&self, which: Compaction) -> Result<u64, ClientError> {
        let mut maintenance = MaintenanceClient::new(self.channels.next());
        let message = match which {
            Compaction::Below(revision) => v1::CompactRequest { revision, older_than_seconds: 0 },
            Compaction::OlderThanSeconds(seconds) => {
                v1::CompactRequest { revision: 0, older_than_seconds: seconds }
            }
        };
        let message = self.request(message);
        Ok(self.answer("compact", maintenance.compact(message)).await?.oldest_revision)
    }

    /// Begins a backup of the whole store at its newest revision. The time limit is that of its first answer alone.
    pub async fn backup(&self) -> Result<Backup, ClientError> {
        let mut maintenance = MaintenanceClient::new(self.channels.next());
        let message = self.open_request(v1::BackupRequest {});
        let chunks = self.answer("backup", maintenance.backup(message)).await?;
        Ok(Backup { chunks, server: self.channels.server.clone() })
    }
}

/// A backup, piece by piece. Only its reader can tell whether it is whole.
pub struct Backup {
    chunks: Streaming<v1::BackupChunk>,
    server: Arc<str>,
}

impl Backup {
    /// The next bytes; `None` where the server has said everything.
    pub async fn next(&mut self) -> Result<Option<Bytes>, ClientError> {
        match self.chunks.message().await {
            Ok(chunk) => Ok(chunk.map(|chunk| chunk.data)),
            Err(error) => Err(ClientError::from_rpc(&self.server, error)),
        }
    }
}

/// A log, piece by piece.
pub struct Logs {
    chunks: Streaming<v1::LogChunk>,
    server: Arc<str>,
}

impl Logs {
    /// The next piece; `None` at the end. Pieces are not lines.
    pub async fn next(&mut self) -> Result<Option<Bytes>, ClientError> {
        let chunk = self.chunks.message().await.map_err(|e| ClientError::from_rpc(&self.server, e))?;
        Ok(chunk.map(|c| c.data))
    }
}

pub(crate) fn projection(projection: Projection) -> v1::Projection {
    match projection {
        Projection::Object => v1::Projection::Object,
        Projection::Metadata => v1::Projection::Metadata,
        Projection::Table => v1::Projection::Table,
    }
}

fn write_options(options: &WriteOptions) -> v1::WriteOptions {
    v1::WriteOptions {
        dry_run: options.dry_run,
        field_manager: options.field_manager.clone(),
        field_validation: options.field_validation.as_str().to_owned(),
        cause: cut(&options.cause).to_owned(),
    }
}

fn delete_options(options: &DeleteOptions) -> v1::DeleteOptions {
    v1::DeleteOptions {
        grace_period_seconds: options.grace_period_seconds,
        propagation_policy: options.propagation_policy.clone(),
        uid: options.uid.clone(),
        resource_version: options.resource_version.clone(),
        dry_run: options.dry_run,
        cause: cut(&options.cause).to_owned(),
    }
}

fn cut(cause: &str) -> &str {
    let fits = |at: &usize| *at <= MAX_CAUSE;
    let end = cause.char_indices().map(|(at, c)| at + c.len_utf8()).take_while(fits).last();
    &cause[..end.unwrap_or(0)]
}
