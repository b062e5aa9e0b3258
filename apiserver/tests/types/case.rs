//! A type as a table: what a create fills, what is refused, what may not change, what is printed; and its runner.

use serde_json::{Value, json};
use strata_model::merge;

use crate::common::rest::Rest;
use crate::common::server::TestServer;

const TABLE: (&str, &str) = ("Accept", "application/json;as=Table;g=meta.k8s.io;v=v1");
const STRICT: &str = "fieldValidation=Strict";

/// One type.
pub struct Case {
    /// The path of its collection.
    pub path: &'static str,
    /// The least that can be created; its name is `a`.
    pub minimal: Value,
    /// What must be in the object that was made of it.
    pub filled: Value,
    /// Changes to the minimal object that make it one that is refused, and a part of the message.
    pub refused: Vec<(Value, &'static str)>,
    /// Changes to the object that is there that are refused, and a part of the message.
    pub fixed: Vec<(Value, &'static str)>,
    /// A status write, where the type has a status.
    pub status: Option<Value>,
    /// The cells of its row, after the status write; `*` stands for anything.
    pub cells: Value,
}

/// Whether all of `part` is in `whole`; lists must have the same length.
fn holds(whole: &Value, part: &Value) -> bool {
    match (whole, part) {
        (Value::Object(whole), Value::Object(part)) => {
            part.iter().all(|(name, value)| holds(whole.get(name).unwrap_or(&Value::Null), value))
        }
        (Value::Array(whole), Value::Array(part)) => {
            whole.len() == part.len() && whole.iter().zip(part).all(|(w, p)| holds(w, p))
        }
        (whole, part) => whole == part,
    }
}

fn message(answer: &crate::common::rest::Answer) -> String {
    answer.json()["message"].as_str().unwrap_or_default().to_owned()
}

/// Runs the cases against one server.
pub async fn run(cases: Vec<Case>) {
    let server = TestServer::start().await;
    let admin = Rest::admin(&server);
    for case in &cases {
        refuse(&admin, case).await;
        live(&admin, case).await;
    }
    server.stop().await;
}

async fn refuse(admin: &Rest, case: &Case) {
    for (change, part) in &case.refused {
        let mut body = case.minimal.clone();
        merge::apply(&mut body, change);
        let answer = admin.post(&format!("{}?{STRICT}", case.path), &body).await;
        let found = message(&answer);
        assert!(
            matches!(answer.code, 400 | 403 | 422) && found.contains(part),
            "{}: {part} in {}",
            case.path,
            answer.text
        );
    }
}

async fn live(admin: &Rest, case: &Case) {
    let made = admin.post(&format!("{}?{STRICT}", case.path), &case.minimal).await;
    assert_eq!(made.code, 201, "{}: {}", case.path, made.text);
    let object = made.json();
    assert!(holds(&object, &case.filled), "{}: {}\nin {object:#}", case.path, case.filled);
    let name = object["metadata"]["name"].as_str().unwrap();
    let path = format!("{}/{name}", case.path);
    let same = admin.put(&path, &object).await;
    assert_eq!(
        (same.code, &same.json()),
        (200, &object),
        "{path}: a write that changes nothing changes nothing"
    );
    for (change, part) in &case.fixed {
        let answer = admin.merge(&path, change).await;
        let found = message(&answer);
        assert!(answer.code == 422 && found.contains(part), "{path}: {part} in {}", answer.text);
    }
    if let Some(status) = &case.status {
        let written = admin.merge(&format!("{path}/status"), &json!({"status": status})).await;
        assert!(written.code == 200 && holds(&written.json()["status"], status), "{path}: {}", written.text);
        let generation = &written.json()["metadata"]["generation"];
        assert_eq!(generation, &object["metadata"]["generation"], "a status is no change of what is wanted");
    }
    let table = admin.send("GET", &path, &[TABLE], "").await.json();
    let cells = table["rows"][0]["cells"].as_array().unwrap();
    let wanted = case.cells.as_array().unwrap();
    let fits = |(cell, wanted): (&Value, &Value)| wanted == "*" || cell == wanted;
    assert!(
        cells.len() == wanted.len() && cells.iter().zip(wanted).all(fits),
        "{path}: {cells:?}\nnot {wanted:?}"
    );
    let config = json!({"apiVersion": object["apiVersion"], "kind": object["kind"], "metadata": {"labels": {"x": "y"}}});
    let header = [("Content-Type", "application/apply-patch+yaml")];
    let apply = format!("{path}?fieldManager=m");
    let applied = admin.send("PATCH", &apply, &header, config.to_string()).await;
    assert_eq!(
        (applied.code, &applied.json()["metadata"]["labels"]["x"]),
        (200, &json!("y")),
        "{}",
        applied.text
    );
    let gone = admin.delete(&path).await;
    assert_eq!(gone.code, 200, "{}", gone.text);
}
