//! The gRPC facade as clients see it, over a real connection, and that both facades show the same.

#![allow(clippy::unwrap_used, reason = "a test ends at the first surprise")]

mod common;

use std::time::Duration;

use common::grpc::{admin, channel, open_watch, resource};
use common::rest::{LIMIT, Rest};
use common::server::TestServer;
use serde_json::{Value, json};
use strata_wire::convert::from_rpc;
use strata_wire::v1::discovery_client::DiscoveryClient;
use strata_wire::v1::maintenance_client::MaintenanceClient;
use strata_wire::v1::resources_client::ResourcesClient;
use strata_wire::v1::watch_request::Say;
use strata_wire::v1::watch_response::Say as Said;
use strata_wire::v1::{self, EventType};
use tokio::sync::mpsc;
use tokio_stream::wrappers::ReceiverStream;
use tonic::transport::Channel;
use tonic::{Code, Streaming};

fn map(name: &str) -> Vec<u8> {
    json!({"metadata": {"name": name}, "data": {"k": "v"}}).to_string().into_bytes()
}

async fn create(
    client: &mut ResourcesClient<Channel>,
    name: &str,
) -> Result<v1::WriteResponse, tonic::Status> {
    let request = v1::CreateRequest {
        resource: resource("", "configmaps"),
        namespace: "default".to_owned(),
        object: map(name).into(),
        ..Default::default()
    };
    client.create(request).await.map(tonic::Response::into_inner)
}

/// A watch stream from the client's side.
struct Stream {
    say: mpsc::Sender<v1::WatchRequest>,
    hear: Streaming<v1::WatchResponse>,
}

impl Stream {
    async fn open(client: &mut ResourcesClient<Channel>) -> Self {
        let (say, said) = mpsc::channel(16);
        let hear = client.watch(ReceiverStream::new(said)).await.unwrap().into_inner();
        Self { say, hear }
    }

    async fn say(&self, watch_id: u64, say: Say) {
        self.say.send(v1::WatchRequest { watch_id, say: Some(say) }).await.unwrap();
    }

    async fn next(&mut self) -> Option<(u64, Said)> {
        let message = tokio::time::timeout(LIMIT, self.hear.message()).await.expect("an answer in time");
        message.unwrap().map(|answer| (answer.watch_id, answer.say.unwrap()))
    }

    /// The next events of a watch, and nothing else.
    async fn events(&mut self, id: u64) -> Vec<v1::WatchEvent> {
        match self.next().await.unwrap() {
            (from, Said::Events(events)) if from == id => events.events,
            other => panic!("{other:?}"),
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn both_facades_show_the_same_bytes() {
    let server = TestServer::start().await;
    let (mut grpc, rest) = (admin(&server), Rest::admin(&server));
    let made = create(&mut grpc, "a").await.unwrap();
    assert!(made.changed);
    let over_rest = rest.get("/api/v1/namespaces/default/configmaps/a").await;
    assert_eq!(made.object, over_rest.text.as_bytes());
    let taken = create(&mut grpc, "a").await.unwrap_err();
    assert_eq!(taken.code(), Code::AlreadyExists);
    assert_eq!(from_rpc(&taken).unwrap().details.unwrap().name, "a");
    let patch = v1::PatchRequest {
        resource: resource("", "configmaps"),
        namespace: "default".to_owned(),
        name: "a".to_owned(),
        patch: json!({"data": {"k": "v"}}).to_string().into(),
        ..Default::default()
    };
    let same = grpc.patch(patch.clone()).await.unwrap().into_inner();
    assert!(!same.changed && same.object == made.object);
    let apply = v1::PatchRequest { r#type: v1::PatchType::Apply.into(), ..patch };
    let unnamed = grpc.patch(apply).await.unwrap_err();
    assert_eq!(unnamed.code(), Code::InvalidArgument, "an apply must say who manages");
    let delete = v1::DeleteRequest {
        resource: resource("", "configmaps"),
        namespace: "default".to_owned(),
        name: "a".to_owned(),
        options: Some(v1::DeleteOptions { uid: "other".to_owned(), ..Default::default() }),
    };
    assert_eq!(grpc.delete(delete.clone()).await.unwrap_err().code(), Code::Aborted);
    let removed = grpc.delete(v1::DeleteRequest { options: None, ..delete }).await.unwrap().into_inner();
    assert!(removed.removed);
    server.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn lists_come_in_chunks_of_one_state() {
    let server = TestServer::start().await;
    let mut grpc = admin(&server);
    for i in 0..4 {
        create(&mut grpc, &format!("m{i}")).await.unwrap();
    }
    let request = v1::ListRequest { resource: resource("", "configmaps"), limit: 3, ..Default::default() };
    let mut chunks = grpc.list(request.clone()).await.unwrap().into_inner();
    let chunk = chunks.message().await.unwrap().unwrap();
    assert_eq!((chunk.items.len(), chunk.remaining), (3, 1));
    let next = v1::ListRequest { continue_token: chunk.continue_token, ..request.clone() };
    let chunk = grpc.list(next).await.unwrap().into_inner().message().await.unwrap().unwrap();
    assert_eq!((chunk.items.len(), chunk.continue_token.as_str()), (1, ""));
    let table = v1::ListRequest { projection: v1::Projection::Table.into(), ..request };
    let chunk = grpc.list(table).await.unwrap().into_inner().message().await.unwrap().unwrap();
    let table: Value = serde_json::from_slice(&chunk.items[0]).unwrap();
    assert_eq!((&table["kind"], table["rows"].as_array().unwrap().len()), (&json!("Table"), 3));
    server.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn watches_share_a_stream_and_resume() {
    let server = TestServer::start().await;
    let mut grpc = admin(&server);
    create(&mut grpc, "a").await.unwrap();
    let mut stream = Stream::open(&mut grpc.clone()).await;
    let initial = v1::WatchOpen { initial_state: true, ..Default::default() };
    stream.say.send(open_watch(1, initial)).await.unwrap();
    let first = stream.events(1).await;
    assert_eq!(first[0].r#type(), EventType::Added);
    let Some((1, Said::InitialEnd(end))) = stream.next().await else {
        panic!("the end of the initial state")
    };
    let resume = v1::WatchOpen { resource_version: end.revision.to_string(), ..Default::default() };
    stream.say.send(open_watch(2, resume)).await.unwrap();
    create(&mut grpc, "b").await.unwrap();
    let (mut ids, mut revisions) = (Vec::new(), Vec::new());
    for _ in 0..2 {
        let Some((id, Said::Events(events))) = stream.next().await else { panic!("events") };
        ids.push(id);
        revisions.push(events.events[0].revision);
    }
    ids.sort_unstable();
    assert_eq!(ids, [1, 2]);
    assert_eq!(revisions[0], revisions[1]);
    stream.say(1, Say::AskProgress(v1::WatchAskProgress {})).await;
    assert_eq!(stream.next().await, Some((1, Said::Progress(v1::WatchProgress { revision: revisions[0] }))));
    stream.say(1, Say::Cancel(v1::WatchCancel {})).await;
    assert_eq!(stream.next().await, Some((1, Said::Closed(v1::WatchClosed::default()))));
    let wrong = v1::WatchOpen { resource: resource("", "nothing"), ..Default::default() };
    stream.say.send(open_watch(3, wrong)).await.unwrap();
    let Some((3, Said::Closed(closed))) = stream.next().await else { panic!("a refusal") };
    let status: Value = serde_json::from_slice(&closed.status).unwrap();
    assert_eq!(status["code"], 404);
    server.store.compact(server.store.current_revision()).await.unwrap();
    let old = v1::WatchOpen { resource_version: "1".to_owned(), ..Default::default() };
    stream.say.send(open_watch(4, old)).await.unwrap();
    let Some((4, Said::Closed(closed))) = stream.next().await else { panic!("a refusal") };
    let status: Value = serde_json::from_slice(&closed.status).unwrap();
    assert_eq!(status["reason"], "Expired");
    server.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_watch_without_credit_holds_up_no_other() {
    let server = TestServer::start().await;
    let mut grpc = admin(&server);
    let mut stream = Stream::open(&mut grpc.clone()).await;
    let now = server.store.current_revision().to_string();
    let slow = v1::WatchOpen { resource_version: now.clone(), window: 1, ..Default::default() };
    stream.say.send(open_watch(1, slow)).await.unwrap();
    create(&mut grpc, "first").await.unwrap();
    assert_eq!(stream.events(1).await.len(), 1);
    for i in 0..3 {
        create(&mut grpc, &format!("m{i}")).await.unwrap();
    }
    let quick = v1::WatchOpen { resource_version: now, ..Default::default() };
    stream.say.send(open_watch(2, quick)).await.unwrap();
    let mut seen = 0;
    while seen < 4 {
        seen += stream.events(2).await.len();
    }
    stream.say(1, Say::Credit(v1::WatchCredit { events: 1 })).await;
    let mut late = 0;
    while late < 3 {
        late += stream.events(1).await.len();
        stream.say(1, Say::Credit(v1::WatchCredit { events: 1 })).await;
    }
    assert_eq!(late, 3);
    server.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn rights_and_services() {
    let server = TestServer::start().await;
    let node = Some(("system:node:n1", "system:nodes"));
    let denied = create(&mut ResourcesClient::new(channel(&server, node)), "a").await.unwrap_err();
    assert_eq!(denied.code(), Code::PermissionDenied);
    let stranger = create(&mut ResourcesClient::new(channel(&server, None)), "a").await.unwrap_err();
    assert_eq!(stranger.code(), Code::Unauthenticated);
    let version = DiscoveryClient::new(channel(&server, None)).version(v1::VersionRequest {}).await.unwrap();
    assert_eq!(version.into_inner().minor, "33");
    let mut discovery = DiscoveryClient::new(channel(&server, node));
    let types = discovery.types(v1::TypesRequest {}).await.unwrap().into_inner().types;
    assert!(types.iter().any(|t| t.kind == "Deployment"));
    let schema = v1::SchemaRequest { group: "apps".to_owned(), version: "v1".to_owned() };
    assert!(!discovery.schema(schema).await.unwrap().into_inner().openapi.is_empty());
    let status = v1::StatusRequest {};
    assert_eq!(
        MaintenanceClient::new(channel(&server, node)).status(status).await.unwrap_err().code(),
        Code::PermissionDenied
    );
    let mut maintenance = MaintenanceClient::new(channel(&server, Some(("admin", "system:masters"))));
    let stats = maintenance.status(status).await.unwrap().into_inner();
    assert_eq!(stats.revision, server.store.current_revision().get());
    server.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn administrators_back_up_and_compact() {
    let server = TestServer::start().await;
    let mut client = admin(&server);
    for at in 0..40 {
        create(&mut client, &format!("map-{at}")).await.unwrap();
    }
    let node = Some(("system:node:a", "system:nodes"));
    let mut stranger = MaintenanceClient::new(channel(&server, node));
    assert_eq!(stranger.backup(v1::BackupRequest {}).await.unwrap_err().code(), Code::PermissionDenied);
    let mut maintenance = MaintenanceClient::new(channel(&server, Some(("admin", "system:masters"))));
    let mut chunks = maintenance.backup(v1::BackupRequest {}).await.unwrap().into_inner();
    let mut bytes = Vec::new();
    while let Some(chunk) = chunks.message().await.unwrap() {
        bytes.extend_from_slice(&chunk.data);
    }
    let found = strata_store::restore::check(&bytes[..]).unwrap();
    assert_eq!(found.revision, server.store.current_revision());
    assert_eq!(found.records, server.store.stats().keys);

    let mut compact = async |revision, older_than_seconds| {
        let request = v1::CompactRequest { revision, older_than_seconds };
        maintenance.compact(request).await.map(|answer| answer.into_inner().oldest_revision)
    };
    for (revision, seconds) in [(0, 0), (1, 1), (u64::MAX, 0)] {
        assert_eq!(compact(revision, seconds).await.unwrap_err().code(), Code::InvalidArgument);
    }
    let current = server.store.current_revision().get();
    assert_eq!(compact(0, 3600).await.unwrap(), server.store.oldest_revision().get());
    assert_eq!(compact(current - 5, 0).await.unwrap(), current - 5);
    let stats = maintenance.status(v1::StatusRequest {}).await.unwrap().into_inner();
    assert_eq!(stats.oldest_revision, current - 5);
    assert!(stats.disk_bytes > 0 && stats.oldest_time.ends_with('Z'), "{stats:?}");
    server.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_ending_server_tells_its_watchers() {
    let server = TestServer::start().await;
    let mut stream = Stream::open(&mut admin(&server)).await;
    stream
        .say
        .send(open_watch(1, v1::WatchOpen { initial_state: true, ..Default::default() }))
        .await
        .unwrap();
    assert!(matches!(stream.next().await, Some((1, Said::InitialEnd(_)))));
    server.stop().await;
    let ended = tokio::time::timeout(Duration::from_secs(20), stream.hear.message()).await.unwrap();
    assert_eq!(ended.unwrap_err().code(), Code::Unavailable);
}
