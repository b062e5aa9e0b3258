//! What watches promise while many write: everything once, in order, and in the end the state that a list shows.

#![allow(clippy::unwrap_used, reason = "a test ends at the first surprise")]

mod common;

use std::collections::BTreeMap;

use common::grpc::{admin, open_watch};
use common::rest::{LIMIT, Lines, Rest};
use common::server::TestServer;
use serde_json::{Value, json};
use strata_wire::v1::watch_request::Say;
use strata_wire::v1::watch_response::Say as Said;
use strata_wire::v1::{self, EventType};
use tokio::sync::mpsc;
use tokio_stream::wrappers::ReceiverStream;

const MAPS: &str = "/api/v1/namespaces/default/configmaps";
const WRITERS: u64 = 6;
const WRITES: u64 = 30;
const NAMES: u64 = 5;
const LAST: &str = "last";

/// Creates, changes and deletes a few objects, by turns that depend on the writer's number alone.
async fn write(admin: Rest, writer: u64) {
    for turn in 0..WRITES {
        let pick = (writer * 7 + turn * 13) % NAMES;
        let (name, label) = (format!("m{pick}"), if (writer + turn).is_multiple_of(2) { "x" } else { "y" });
        let path = format!("{MAPS}/{name}");
        let answer = match (writer + turn * 3) % 4 {
            0 => admin.delete(&path).await,
            1 => admin.post(MAPS, &json!({"metadata": {"name": name, "labels": {"l": label}}})).await,
            _ => {
                let change =
                    json!({"metadata": {"labels": {"l": label}}, "data": {"w": format!("{writer}-{turn}")}});
                admin.merge(&path, &change).await
            }
        };
        assert!(matches!(answer.code, 200 | 201 | 404 | 409), "{}", answer.text);
    }
}

/// The state that a watcher has put together, with the revision of the last event.
#[derive(Default)]
struct Seen {
    objects: BTreeMap<String, Value>,
    revision: u64,
    /// Whether the initial state is still coming, which is in the order of names.
    initial: bool,
}

impl Seen {
    /// Takes an event; tells whether it was the last.
    fn take(&mut self, kind: &str, object: Value, revision: u64) -> bool {
        let name = object["metadata"]["name"].as_str().unwrap().to_owned();
        let own: u64 = object["metadata"]["resourceVersion"].as_str().unwrap().parse().unwrap();
        assert_eq!(own, revision, "an event carries the revision of its object");
        if !self.initial {
            assert!(revision > self.revision, "{kind} {name} at {revision} after {}", self.revision);
            self.revision = revision;
        }
        let last = name == LAST;
        let before = match kind {
            "DELETED" => self.objects.remove(&name),
            _ => self.objects.insert(name.clone(), object),
        };
        assert_eq!(before.is_some(), kind != "ADDED", "{kind} {name} at {revision}");
        last
    }
}

async fn follow_rest(mut lines: Lines, mut seen: Seen) -> Seen {
    loop {
        let event = lines.next().await.expect("an event");
        let object = event["object"].clone();
        let revision = object["metadata"]["resourceVersion"].as_str().unwrap().parse().unwrap();
        if seen.take(event["type"].as_str().unwrap(), object, revision) {
            return seen;
        }
    }
}

async fn follow_grpc(server: &TestServer, open: v1::WatchOpen, window: u32) -> Seen {
    let (say, said) = mpsc::channel(64);
    let mut stream = admin(server).watch(ReceiverStream::new(said)).await.unwrap().into_inner();
    let initial = open.initial_state;
    say.send(open_watch(1, v1::WatchOpen { window, ..open })).await.unwrap();
    let mut seen = Seen { initial, ..Seen::default() };
    loop {
        let answer = tokio::time::timeout(LIMIT, stream.message()).await.unwrap().unwrap().unwrap();
        let events = match answer.say.unwrap() {
            Said::Events(events) => events,
            Said::InitialEnd(end) => {
                (seen.initial, seen.revision) = (false, end.revision);
                continue;
            }
            Said::Progress(_) => continue,
            Said::Closed(closed) => panic!("{closed:?}"),
        };
        let taken = u32::try_from(events.events.len()).unwrap();
        for event in events.events {
            let kind = match event.r#type() {
                EventType::Added => "ADDED",
                EventType::Modified => "MODIFIED",
                EventType::Deleted => "DELETED",
                EventType::Unspecified => panic!("an event of no type"),
            };
            if seen.take(kind, serde_json::from_slice(&event.object).unwrap(), event.revision) {
                return seen;
            }
        }
        let credit = Say::Credit(v1::WatchCredit { events: taken });
        say.send(v1::WatchRequest { watch_id: 1, say: Some(credit) }).await.unwrap();
    }
}

fn listed(list: &Value) -> BTreeMap<String, Value> {
    let items = list["items"].as_array().unwrap();
    items.iter().map(|item| (item["metadata"]["name"].as_str().unwrap().to_owned(), item.clone())).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn watchers_see_every_write_once_and_in_order() {
    let server = TestServer::start().await;
    let admin = Rest::admin(&server);
    let start = server.store.current_revision().to_string();
    let all = admin.watch(&format!("{MAPS}?watch=true&resourceVersion={start}")).await;
    let some = admin.watch(&format!("{MAPS}?watch=true&resourceVersion={start}&labelSelector=l%3Dx")).await;
    let (all, some) =
        (tokio::spawn(follow_rest(all, Seen::default())), tokio::spawn(follow_rest(some, Seen::default())));
    let writers: Vec<_> = (0..WRITERS).map(|w| tokio::spawn(write(admin.clone(), w))).collect();
    let work = async {
        for writer in writers {
            writer.await.unwrap();
        }
        let last = json!({"metadata": {"name": LAST, "labels": {"l": "x"}}});
        assert_eq!(admin.post(MAPS, &last).await.code, 201);
    };
    let from_start = v1::WatchOpen { resource_version: start.clone(), ..Default::default() };
    let selecting = v1::WatchOpen { label_selector: "l=x".to_owned(), ..from_start.clone() };
    let initial = v1::WatchOpen { initial_state: true, ..Default::default() };
    let ((), narrow, labelled, whole) = tokio::join!(
        work,
        follow_grpc(&server, from_start, 1),
        follow_grpc(&server, selecting, 0),
        follow_grpc(&server, initial, 0),
    );
    let (all, some) = (all.await.unwrap(), some.await.unwrap());
    let live = listed(&admin.get(MAPS).await.json());
    let chosen = listed(&admin.get(&format!("{MAPS}?labelSelector=l%3Dx")).await.json());
    assert_eq!(all.objects, live);
    assert_eq!(narrow.objects, live);
    assert_eq!(whole.objects, live);
    assert_eq!(some.objects, chosen);
    assert_eq!(labelled.objects, chosen);
    server.stop().await;
}
