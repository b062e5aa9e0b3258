//! What hostile and broken clients get, over real connections: a proper refusal, and no more than their share of room.

#![allow(clippy::unwrap_used, reason = "a test ends at the first surprise")]

mod common;

use bytes::Bytes;
use common::grpc;
use common::http2::{Http2, broken_off};
use common::rest::{LIMIT, Rest, until};
use common::server::TestServer;
use serde_json::{Value, json};
use strata_apiserver::gate::MAX_REQUESTS;
use strata_wire::v1::{self, PatchType};
use tonic::Code;

const MAPS: &str = "/api/v1/namespaces/default/configmaps";
const NOT_TEXT: &[u8] = b"{\"metadata\":{\"name\":\"a\"},\"data\":{\"k\":\"\xff\xfe\"}}";

fn map(name: &str) -> Value {
    json!({"metadata": {"name": name}, "data": {"k": "v"}})
}

/// Lists within lists, far deeper than anything may nest.
fn deep() -> String {
    format!("{{\"data\":{}{}}}", "[".repeat(100_000), "]".repeat(100_000))
}

/// A patch that doubles an object with each of its operations.
fn doubling() -> String {
    let copies = (0..64).map(|i| json!({"op": "copy", "from": "/data", "path": format!("/data/x{i}")}));
    Value::Array(copies.collect()).to_string()
}

/// YAML whose aliases stand for a thousand million values.
fn laughing() -> String {
    let mut text = String::from("a0: &a0 [x,x,x,x,x,x,x,x,x,x]\n");
    for level in 1..9 {
        let inner = vec![format!("*a{}", level - 1); 10].join(",");
        text.push_str(&format!("a{level}: &a{level} [{inner}]\n"));
    }
    text
}

/// Method, path, headers, body, and the code it gets.
type Case<'a> = (&'a str, &'a str, &'a [(&'a str, &'a str)], Bytes, u16);

#[tokio::test(flavor = "multi_thread")]
async fn broken_bodies_get_a_proper_status_over_rest() {
    let server = TestServer::start().await;
    let admin = Rest::admin(&server);
    admin.post(MAPS, &map("a")).await;
    let (kind, one) = ("content-type", format!("{MAPS}/a"));
    let long = "a=b,".repeat(12_000);
    let cases: &[Case<'_>] = &[
        ("POST", MAPS, &[(kind, "application/json"), ("content-encoding", "gzip")], "{}".into(), 415),
        ("POST", MAPS, &[(kind, "application/json"), ("content-encoding", "identity, br")], "{}".into(), 415),
        ("POST", MAPS, &[(kind, "application/json")], NOT_TEXT.into(), 400),
        ("POST", MAPS, &[(kind, "application/yaml")], NOT_TEXT.into(), 400),
        ("POST", MAPS, &[(kind, "application/yaml")], deep().into(), 400),
        ("POST", MAPS, &[(kind, "application/yaml")], laughing().into(), 400),
        ("POST", MAPS, &[(kind, "application/vnd.kubernetes.protobuf")], NOT_TEXT.into(), 400),
        ("PATCH", &one, &[(kind, "application/merge-patch+json")], NOT_TEXT.into(), 400),
        ("PATCH", &one, &[(kind, "application/merge-patch+json")], deep().into(), 400),
        ("PATCH", &one, &[(kind, "application/strategic-merge-patch+json")], deep().into(), 400),
        (
            "PATCH",
            &format!("{one}?fieldManager=m"),
            &[(kind, "application/apply-patch+yaml")],
            laughing().into(),
            400,
        ),
        ("PATCH", &one, &[(kind, "application/json-patch+json")], doubling().into(), 422),
        ("DELETE", &one, &[(kind, "application/json")], NOT_TEXT.into(), 400),
        ("GET", &format!("{MAPS}?labelSelector={long}"), &[], Bytes::new(), 400),
        (
            "GET",
            &format!("{MAPS}?fieldSelector={}", "metadata.name%3Da,".repeat(2_000)),
            &[],
            Bytes::new(),
            400,
        ),
        ("GET", &format!("{MAPS}?labelSelector=%ff%fe"), &[], Bytes::new(), 400),
        ("GET", &format!("{MAPS}?limit=99999999999999999999"), &[], Bytes::new(), 400),
        ("GET", &format!("{MAPS}?resourceVersion=-1"), &[], Bytes::new(), 400),
        ("BREW", MAPS, &[], Bytes::new(), 405),
    ];
    for (method, path, headers, body, code) in cases {
        let headers: Vec<(&str, &str)> = [&[("user-agent", "abuse")][..], headers].concat();
        let answer = admin.send(method, path, &headers, body.clone()).await;
        let shown: String = answer.text.chars().take(300).collect();
        let place: String = path.chars().take(80).collect();
        assert_eq!(answer.code, *code, "{method} {place} {headers:?}: {shown}");
        assert_eq!(answer.json()["kind"], "Status", "{method} {place} {headers:?}: {shown}");
    }
    let same = [("content-type", "application/json"), ("content-encoding", "identity")];
    assert_eq!(admin.send("POST", MAPS, &same, map("b").to_string()).await.code, 201);
    assert_eq!(admin.get(&one).await.json()["data"], map("a")["data"], "nothing of it was written");
    server.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn broken_bodies_get_a_proper_status_over_grpc() {
    let server = TestServer::start().await;
    let mut admin = grpc::admin(&server);
    let maps = || (grpc::resource("", "configmaps"), "default".to_owned());
    let creates: [(Bytes, Code); 3] = [
        (NOT_TEXT.into(), Code::InvalidArgument),
        (deep().into(), Code::InvalidArgument),
        (Bytes::new(), Code::InvalidArgument),
    ];
    for (object, code) in creates {
        let (resource, namespace) = maps();
        let request = v1::CreateRequest { resource, namespace, object, ..Default::default() };
        assert_eq!(admin.create(request).await.unwrap_err().code(), code);
    }
    let (resource, namespace) = maps();
    let object = map("a").to_string().into();
    admin.create(v1::CreateRequest { resource, namespace, object, ..Default::default() }).await.unwrap();
    let patches: [(PatchType, Bytes); 4] = [
        (PatchType::Merge, NOT_TEXT.into()),
        (PatchType::Strategic, deep().into()),
        (PatchType::Json, doubling().into()),
        (PatchType::Apply, laughing().into()),
    ];
    for (kind, patch) in patches {
        let (resource, namespace) = maps();
        let name = "a".to_owned();
        let request =
            v1::PatchRequest { resource, namespace, name, r#type: kind.into(), patch, ..Default::default() };
        let refused = admin.patch(request).await.unwrap_err();
        assert_eq!(refused.code(), Code::InvalidArgument, "{kind:?}: {refused}");
    }
    // Over REST the limits of a head come first; here, only those of selectors.
    for (label_selector, field_selector) in [
        ("a=b,".repeat(1 << 20), String::new()),
        (String::new(), "metadata.name=a,".repeat(1 << 17)),
        ("((".repeat(1 << 10), String::new()),
    ] {
        let (resource, namespace) = maps();
        let request =
            v1::ListRequest { resource, namespace, label_selector, field_selector, ..Default::default() };
        let refused = match admin.list(request).await {
            Ok(answer) => answer.into_inner().message().await.unwrap_err(),
            Err(refused) => refused,
        };
        assert_eq!(refused.code(), Code::InvalidArgument, "{refused}");
    }
    let rest = Http2::admin(&server).await;
    let garbage = Bytes::from_static(b"\0\0\0\0\x04\xff\xff\xff\xff");
    for (path, status) in [
        ("/strata.v1.Resources/Brew", "12"),
        ("/strata.v1.Nothing/Get", "12"),
        ("/strata.v1.Resources/Get", "13"),
    ] {
        let head = [("content-type", "application/grpc"), ("te", "trailers")];
        let answer = rest.send("POST", path, &head, garbage.clone()).await;
        assert_eq!(answer.status, status, "{path}");
    }
    server.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn requests_that_are_half_sent_hold_no_more_than_their_places() {
    let server = TestServer::start().await;
    let admin = Rest::admin(&server);
    let mut clients = Vec::new();
    let mut bodies = Vec::new();
    for share in [MAX_REQUESTS / 2, MAX_REQUESTS - MAX_REQUESTS / 2] {
        let client = Http2::admin(&server).await;
        for _ in 0..share {
            bodies.push(client.begin("POST", MAPS).await);
        }
        clients.push(client);
    }
    until("all places to be taken", || async { admin.get(MAPS).await.code == 429 }).await;
    let busy = admin.get(MAPS).await;
    assert_eq!((busy.code, &busy.json()["reason"]), (429, &json!("TooManyRequests")));
    assert_eq!(admin.get("/readyz").await.code, 200, "what asks after its health is answered all the same");
    drop((bodies, clients));
    until("their places to be free", || async { admin.get(MAPS).await.code == 200 }).await;
    assert_eq!(admin.get(MAPS).await.json()["items"], json!([]), "nothing of them was stored");
    server.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_connection_that_breaks_off_in_a_request_is_let_go() {
    let server = TestServer::start().await;
    let admin = Rest::admin(&server);
    let head = format!(
        "POST {MAPS} HTTP/1.1\r\nhost: t\r\ncontent-type: application/json\r\ncontent-length: 99\r\n\r\n"
    );
    for part in ["", "POST", &head[..head.len() - 2], &head, &format!("{head}{{\"metadata\":")] {
        broken_off(&server, part.as_bytes()).await;
    }
    for rubbish in
        ["\0\0\0\0\r\n\r\n", "GET\r\n\r\n", "GET / HTTP/9.9\r\n\r\n", "PRI * HTTP/2.0\r\n\r\nXX\r\n\r\n"]
    {
        broken_off(&server, rubbish.as_bytes()).await;
    }
    assert_eq!(admin.post(MAPS, &map("after")).await.code, 201);
    server.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_watcher_that_does_not_read_holds_up_nobody() {
    let server = TestServer::start().await;
    let (admin, slow) = (Rest::admin(&server), Http2::admin(&server).await);
    let from = admin.get(MAPS).await.json()["metadata"]["resourceVersion"].as_str().unwrap().to_owned();
    let mut lines = slow.watch(&format!("{MAPS}?watch=true&resourceVersion={from}")).await;
    let pad = "x".repeat(64 << 10);
    for i in 0..100 {
        let mut big = map(&format!("big{i:03}"));
        big["data"]["pad"] = json!(pad);
        assert_eq!(admin.post(MAPS, &big).await.code, 201);
    }
    // What it missed is there when it reads, or it is told that it is too late; nothing is left out silently.
    for i in 0..100 {
        let event = lines.next().await.expect("an event or an error");
        if event["type"] == "ERROR" {
            assert_eq!(event["object"]["code"], 410);
            break;
        }
        assert_eq!(event["object"]["metadata"]["name"], format!("big{i:03}"));
    }
    server.stop().await;
}

/// How many watches idle, on how many connections, and how much room each may take with its client, in bytes.
const IDLE: usize = 10_000;
const IDLE_CONNECTIONS: usize = 20;
const IDLE_ROOM: usize = 32 * 1024;

fn resident() -> usize {
    let text = std::fs::read_to_string("/proc/self/status").unwrap();
    let line = text.lines().find(|line| line.starts_with("VmRSS:")).unwrap();
    line.split_whitespace().nth(1).unwrap().parse::<usize>().unwrap() * 1024
}

#[tokio::test(flavor = "multi_thread")]
async fn ten_thousand_idle_watches_take_little_room_and_all_hear() {
    let server = TestServer::start().await;
    let admin = Rest::admin(&server);
    let mut clients = Vec::new();
    for _ in 0..IDLE_CONNECTIONS {
        clients.push(Http2::admin(&server).await);
    }
    let before = resident();
    let mut watches = Vec::new();
    for at in 0..IDLE {
        let path = format!("{MAPS}?watch=true&fieldSelector=metadata.name%3Dfor-{}", at % 10);
        watches.push(clients[at % IDLE_CONNECTIONS].watch(&path).await);
    }
    let each = resident().saturating_sub(before) / IDLE;
    println!("{each} bytes a watch, its client included");
    assert!(each <= IDLE_ROOM, "{each} bytes a watch");
    for at in 0..10 {
        assert_eq!(admin.post(MAPS, &map(&format!("for-{at}"))).await.code, 201);
    }
    for (at, watch) in watches.iter_mut().enumerate() {
        let event = tokio::time::timeout(LIMIT, watch.next()).await.expect("its event").unwrap();
        assert_eq!(event["object"]["metadata"]["name"], format!("for-{}", at % 10));
    }
    drop((watches, clients));
    let open = || async {
        let text = admin.get("/metrics").await.text;
        text.lines().any(|line| line.ends_with("_watches 0"))
    };
    until("all of them to be closed", open).await;
    server.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_too_large_is_refused_before_it_is_whole() {
    let server = TestServer::start().await;
    let client = Http2::admin(&server).await;
    let body = client.begin("POST", MAPS).await;
    let chunk = Bytes::from(vec![b'x'; 1 << 20]);
    let mut sent = 0;
    while body.push(chunk.clone()).await {
        sent += 1;
        assert!(sent < 64, "64 MiB were taken");
    }
    let answer = tokio::time::timeout(LIMIT, body.answer()).await.unwrap();
    assert!(matches!(answer, Some(413) | None), "{answer:?}");
    assert_eq!(Rest::admin(&server).post(MAPS, &map("after")).await.code, 201);
    server.stop().await;
}
