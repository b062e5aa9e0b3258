//! What the multiplexed watch promises, against a server whose every word is scripted.

use std::time::Duration;

use bytes::Bytes;
use strata_client::client::Client;
use strata_client::config::ClientConfig;
use strata_client::cursor::Start;
use strata_client::event::{Event, WatchOptions};
use strata_client::stream::Silence;
use strata_client::watch::{Watch, Watches};
use strata_model::resource::builtin;
use strata_model::status::{Reason, Status};
use strata_wire::v1::resources_server::{Resources, ResourcesServer};
use strata_wire::v1::watch_request::Say as Ask;
use strata_wire::v1::watch_response::Say;
use strata_wire::v1::{self, WatchOpen};
use tokio::net::TcpListener;
use tokio::sync::mpsc;
use tokio_stream::wrappers::{ReceiverStream, TcpListenerStream};
use tonic::{Request, Response, Streaming};

const LIMIT: Duration = Duration::from_secs(20);

async fn soon<T>(what: impl Future<Output = T>) -> T {
    tokio::time::timeout(LIMIT, what).await.expect("in time")
}

/// One stream as the server sees it.
struct Stream {
    asked: Streaming<v1::WatchRequest>,
    answers: mpsc::Sender<Result<v1::WatchResponse, tonic::Status>>,
}

impl Stream {
    async fn next(&mut self) -> (u64, Ask) {
        let request = soon(self.asked.message()).await.expect("stream").expect("request");
        (request.watch_id, request.say.expect("said"))
    }

    async fn open(&mut self) -> (u64, WatchOpen) {
        match self.next().await {
            (id, Ask::Open(open)) => (id, open),
            other => panic!("expected an open, got {other:?}"),
        }
    }

    async fn say(&self, watch_id: u64, say: Say) {
        let response = v1::WatchResponse { watch_id, say: Some(say) };
        soon(self.answers.send(Ok(response))).await.expect("client listens");
    }

    async fn events(&self, id: u64, events: &[(v1::EventType, &str, u64)]) {
        let events = events.iter().map(|(type_, name, revision)| v1::WatchEvent {
            r#type: (*type_).into(),
            object: pod(name, *revision),
            revision: *revision,
        });
        self.say(id, Say::Events(v1::WatchEvents { events: events.collect() })).await;
    }

    async fn initial_end(&self, id: u64, revision: u64) {
        self.say(id, Say::InitialEnd(v1::WatchProgress { revision })).await;
    }

    async fn close(&self, id: u64, status: &Status) {
        let status = serde_json::to_vec(status).expect("status").into();
        self.say(id, Say::Closed(v1::WatchClosed { status })).await;
    }
}

fn pod(name: &str, revision: u64) -> Bytes {
    format!(
        r#"{{"apiVersion":"v1","kind":"Pod","metadata":{{"name":"{name}","namespace":"n","resourceVersion":"{revision}"}}}}"#
    )
    .into()
}

struct Script(mpsc::Sender<Stream>);

type Answers<T> = ReceiverStream<Result<T, tonic::Status>>;

#[tonic::async_trait]
impl Resources for Script {
    type WatchStream = Answers<v1::WatchResponse>;
    type ListStream = Answers<v1::ListChunk>;
    type DeleteCollectionStream = Answers<v1::ListChunk>;
    type LogsStream = Answers<v1::LogChunk>;

    async fn watch(
        &self,
        request: Request<Streaming<v1::WatchRequest>>,
    ) -> Result<Response<Self::WatchStream>, tonic::Status> {
        let (answers, stream) = mpsc::channel(64);
        let stream_seen = Stream { asked: request.into_inner(), answers };
        self.0.send(stream_seen).await.map_err(|_| tonic::Status::unavailable("over"))?;
        Ok(Response::new(ReceiverStream::new(stream)))
    }

    async fn get(&self, _: Request<v1::GetRequest>) -> Result<Response<v1::Object>, tonic::Status> {
        Err(tonic::Status::unimplemented("not scripted"))
    }
    async fn list(&self, _: Request<v1::ListRequest>) -> Result<Response<Self::ListStream>, tonic::Status> {
        Err(tonic::Status::unimplemented("not scripted"))
    }
    async fn create(
        &self,
        _: Request<v1::CreateRequest>,
    ) -> Result<Response<v1::WriteResponse>, tonic::Status> {
        Err(tonic::Status::unimplemented("not scripted"))
    }
    async fn update(
        &self,
        _: Request<v1::UpdateRequest>,
    ) -> Result<Response<v1::WriteResponse>, tonic::Status> {
        Err(tonic::Status::unimplemented("not scripted"))
    }
    async fn patch(
        &self,
        _: Request<v1::PatchRequest>,
    ) -> Result<Response<v1::WriteResponse>, tonic::Status> {
        Err(tonic::Status::unimplemented("not scripted"))
    }
    async fn delete(
        &self,
        _: Request<v1::DeleteRequest>,
    ) -> Result<Response<v1::DeleteResponse>, tonic::Status> {
        Err(tonic::Status::unimplemented("not scripted"))
    }
    async fn delete_collection(
        &self,
        _: Request<v1::DeleteCollectionRequest>,
    ) -> Result<Response<Self::DeleteCollectionStream>, tonic::Status> {
        Err(tonic::Status::unimplemented("not scripted"))
    }
    async fn logs(&self, _: Request<v1::LogsRequest>) -> Result<Response<Self::LogsStream>, tonic::Status> {
        Err(tonic::Status::unimplemented("not scripted"))
    }
}

struct World {
    streams: mpsc::Receiver<Stream>,
    watches: Watches,
}

impl World {
    async fn new() -> Self {
        Self::with(Silence::default()).await
    }

    async fn with(silence: Silence) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("port");
        let address = listener.local_addr().expect("address");
        let (to, streams) = mpsc::channel(8);
        let server = tonic::transport::Server::builder().add_service(ResourcesServer::new(Script(to)));
        tokio::spawn(server.serve_with_incoming(TcpListenerStream::new(listener)));
        let config = ClientConfig::new(format!("http://{address}").parse().expect("uri"));
        let client = Client::new(&config).expect("client");
        Self { streams, watches: Watches::with_silence(client, silence) }
    }

    async fn stream(&mut self) -> Stream {
        soon(self.streams.recv()).await.expect("stream")
    }

    fn pods(&self, start: Start, window: u32) -> Watch {
        self.watches.open(&builtin::POD, WatchOptions { start, window, ..WatchOptions::default() })
    }
}

/// The next event that is not about connections, in short.
async fn next(watch: &mut Watch) -> String {
    loop {
        let event = soon(watch.next()).await;
        return match event {
            None => "over".to_owned(),
            Some(Event::Lost(_)) => continue,
            Some(Event::Restarted) => "restarted".to_owned(),
            Some(Event::Initial(o)) => format!("initial {}", o.meta().name),
            Some(Event::InitialEnd(at)) => format!("end@{at}"),
            Some(Event::Applied(o, at)) => format!("applied {}@{at}", o.meta().name),
            Some(Event::Deleted(o, at)) => format!("deleted {}@{at}", o.meta().name),
            Some(Event::Progress(at)) => format!("progress@{at}"),
            Some(Event::Failed(error)) => format!("failed: {error}"),
        };
    }
}

use v1::EventType::{Added, Deleted, Modified};

#[tokio::test]
async fn goes_on_where_it_was_after_a_break() {
    let mut world = World::new().await;
    let mut watch = world.pods(Start::State, 0);
    let mut stream = world.stream().await;
    let (id, open) = stream.open().await;
    assert!(open.initial_state && open.resource_version.is_empty());
    stream.events(id, &[(Added, "a", 3)]).await;
    stream.initial_end(id, 5).await;
    stream.events(id, &[(Modified, "a", 6), (Deleted, "b", 6)]).await;
    for expected in ["restarted", "initial a", "end@5", "applied a@6", "deleted b@6"] {
        assert_eq!(next(&mut watch).await, expected);
    }
    stream.say(id, Say::Progress(v1::WatchProgress { revision: 9 })).await;
    assert_eq!(next(&mut watch).await, "progress@9");
    drop(stream);
    let mut stream = world.stream().await;
    let (id, open) = stream.open().await;
    assert_eq!((open.resource_version.as_str(), open.initial_state), ("9", false));
    stream.events(id, &[(Added, "c", 10)]).await;
    assert_eq!(next(&mut watch).await, "applied c@10");
}

#[tokio::test]
async fn a_state_that_came_in_part_is_asked_for_again_as_a_whole() {
    let mut world = World::new().await;
    let mut watch = world.pods(Start::State, 0);
    let mut stream = world.stream().await;
    let (id, _) = stream.open().await;
    stream.events(id, &[(Added, "a", 3)]).await;
    assert_eq!(next(&mut watch).await, "restarted");
    assert_eq!(next(&mut watch).await, "initial a");
    drop(stream);
    let mut stream = world.stream().await;
    let (id, open) = stream.open().await;
    assert!(open.initial_state);
    stream.initial_end(id, 7).await;
    assert_eq!(next(&mut watch).await, "restarted");
    assert_eq!(next(&mut watch).await, "end@7");
}

#[tokio::test]
async fn history_that_is_gone_leads_to_the_whole_state_and_a_refusal_ends_the_watch() {
    let mut world = World::new().await;
    let mut watch = world.pods(Start::After(4), 0);
    let mut stream = world.stream().await;
    let (id, open) = stream.open().await;
    assert_eq!((open.resource_version.as_str(), open.initial_state), ("4", false));
    stream.close(id, &Status::expired("compacted")).await;
    let (id, open) = stream.open().await;
    assert!(open.initial_state, "on the same stream, at once");
    assert_eq!(next(&mut watch).await, "restarted");
    stream.close(id, &Status::failure(Reason::ServiceUnavailable, "busy")).await;
    let (id, _) = stream.open().await;
    stream.close(id, &Status::failure(Reason::Forbidden, "no rights")).await;
    assert_eq!(next(&mut watch).await, "restarted");
    assert_eq!(next(&mut watch).await, "failed: no rights");
    assert_eq!(next(&mut watch).await, "over");
}

#[tokio::test]
async fn a_watch_that_nobody_reads_gets_no_credit_and_holds_up_no_other() {
    let mut world = World::new().await;
    let mut idle = world.pods(Start::After(1), 4);
    let mut stream = world.stream().await;
    let (slow, open) = stream.open().await;
    assert_eq!(open.window, 4);
    let mut busy = world.pods(Start::After(1), 4);
    let (fast, _) = stream.open().await;
    stream.events(slow, &[(Added, "s", 2), (Added, "s", 3), (Added, "s", 4), (Added, "s", 5)]).await;
    for revision in 2..20 {
        stream.events(fast, &[(Added, "f", revision)]).await;
        assert_eq!(next(&mut busy).await, format!("applied f@{revision}"));
        if revision % 2 == 1 {
            match stream.next().await {
                (id, Ask::Credit(credit)) => assert_eq!((id, credit.events), (fast, 2)),
                other => panic!("expected credit, got {other:?}"),
            }
        }
    }
    for revision in 2..4 {
        assert_eq!(next(&mut idle).await, format!("applied s@{revision}"));
    }
    assert!(matches!(stream.next().await, (id, Ask::Credit(v1::WatchCredit { events: 2 })) if id == slow));
    drop(busy);
    assert!(matches!(stream.next().await, (id, Ask::Cancel(_)) if id == fast));
}

#[tokio::test]
async fn a_silent_server_is_asked_and_then_left() {
    let silence = Silence { ask_after: Duration::from_millis(50), stalled_after: Duration::from_millis(200) };
    let mut world = World::with(silence).await;
    let mut watch = world.pods(Start::After(1), 0);
    let mut stream = world.stream().await;
    stream.open().await;
    assert!(matches!(stream.next().await, (_, Ask::AskProgress(_))));
    let lost = soon(watch.next()).await;
    assert!(matches!(&lost, Some(Event::Lost(error)) if error.to_string().contains("silent")), "{lost:?}");
    let (_, open) = world.stream().await.open().await;
    assert_eq!(open.resource_version, "1");
}

#[tokio::test]
async fn progress_is_asked_for_and_notices_that_wait_are_one() {
    let mut world = World::new().await;
    let mut watch = world.pods(Start::After(1), 0);
    let mut stream = world.stream().await;
    let (id, _) = stream.open().await;
    world.watches.ask_progress();
    assert!(matches!(stream.next().await, (_, Ask::AskProgress(_))));
    for revision in 2..=4 {
        stream.say(id, Say::Progress(v1::WatchProgress { revision })).await;
    }
    stream.events(id, &[(Added, "a", 5)]).await;
    let mut other = world.pods(Start::After(1), 0);
    let (second, _) = stream.open().await;
    stream.say(second, Say::Progress(v1::WatchProgress { revision: 6 })).await;
    assert_eq!(next(&mut other).await, "progress@6");
    // What was sent before on the same stream has arrived by now.
    assert_eq!(next(&mut watch).await, "progress@4");
    assert_eq!(next(&mut watch).await, "applied a@5");
}
