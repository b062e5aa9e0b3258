//! Webhooks as they come in over HTTP.

use std::net::SocketAddr;
use std::sync::{Arc, Mutex};

use strata_stack::application::source::webhook::listen::{Listener, Told};
use strata_stack::application::source::webhook::{Keys, Push};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;

#[derive(Default)]
struct Notes(Mutex<Vec<Push>>);

impl Told for Notes {
    async fn keys(&self) -> Keys {
        Keys { gitlab: "token".into(), ..Keys::default() }
    }

    async fn pushed(&self, push: Push) {
        self.0.lock().unwrap().push(push);
    }
}

async fn ask(address: SocketAddr, head: &str, body: &str) -> String {
    let mut stream = TcpStream::connect(address).await.unwrap();
    let request = format!("{head} HTTP/1.1\r\nHost: x\r\nContent-Length: {}\r\n", body.len());
    let headers = "X-Gitlab-Event: Push Hook\r\nX-Gitlab-Token: ";
    let token = if body.contains("unsigned") { "" } else { "token" };
    stream.write_all(format!("{request}{headers}{token}\r\n\r\n{body}").as_bytes()).await.unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).await.unwrap();
    answer.lines().next().unwrap().split(' ').nth(1).unwrap().to_owned()
}

#[tokio::test(flavor = "multi_thread")]
async fn pushes_are_told_and_others_refused() {
    let listener = Listener::bind("127.0.0.1:0".parse().unwrap()).await.unwrap();
    let (address, notes) = (listener.address().unwrap(), Arc::new(Notes::default()));
    let serving = tokio::spawn(listener.serve(Arc::clone(&notes)));
    let body = r#"{"object_kind":"push","ref":"refs/heads/main","project":{"web_url":"https://h/a/b"}}"#;
    assert_eq!(ask(address, "POST /api/webhook", body).await, "200");
    assert_eq!(ask(address, "POST /api/webhook", r#"{"object_kind":"tag"}"#).await, "200");
    assert_eq!(ask(address, "POST /api/webhook", r#"{"unsigned":1}"#).await, "401");
    assert_eq!(ask(address, "POST /api/webhook", "{").await, "400");
    assert_eq!(ask(address, "GET /api/webhook", "").await, "405");
    assert_eq!(ask(address, "POST /", body).await, "404");
    serving.abort();
    let told = notes.0.lock().unwrap();
    assert!(told.len() == 1 && told[0].is_of("https://h/a/b.git"), "{told:?}");
}
