//! Health, version and the list of paths.

use http::StatusCode;
use serde_json::{Value, json};

use super::path::Health;
use super::query::Query;
use super::respond::{self, Answer};
use crate::version;

/// The checks, by name, and whether each holds.
pub struct Checks {
    /// Whether the server takes requests (it has started and does not end).
    pub serving: bool,
}

fn path_of(which: Health) -> &'static str {
    match which {
        Health::Health => "healthz",
        Health::Live => "livez",
        Health::Ready => "readyz",
    }
}

/// Answers a health request.
pub fn answer(which: Health, check: &str, checks: &Checks, query: &Query) -> Answer {
    let all: Vec<(&str, bool)> = match which {
        Health::Live => vec![("ping", true)],
        Health::Health | Health::Ready => vec![("ping", true), ("serving", checks.serving)],
    };
    let chosen: Vec<(&str, bool)> =
        all.into_iter().filter(|(name, _)| check.is_empty() || *name == check).collect();
    if chosen.is_empty() {
        return respond::plain(StatusCode::NOT_FOUND, "404 page not found\n");
    }
    let fine = chosen.iter().all(|(_, holds)| *holds);
    let verbose = query.get("verbose").is_some() || !fine;
    let mut text = String::new();
    if verbose {
        for (name, holds) in &chosen {
            text.push_str(&if *holds { format!("[+]{name} ok\n") } else { format!("[-]{name} failed\n") });
        }
        let word = if fine { "passed" } else { "failed" };
        text.push_str(&format!("{} check {word}\n", path_of(which)));
    } else {
        text.push_str("ok");
    }
    respond::plain(if fine { StatusCode::OK } else { StatusCode::INTERNAL_SERVER_ERROR }, text)
}

/// `/version`.
pub fn version() -> Value {
    json!({
        "major": version::MAJOR,
        "minor": version::MINOR,
        "gitVersion": version::GIT_VERSION,
        "gitCommit": "",
        "gitTreeState": "clean",
        "buildDate": "1970-01-01T00:00:00Z",
        "goVersion": "",
        "compiler": "rustc",
        "platform": format!("{}/{}", std::env::consts::OS, std::env::consts::ARCH),
    })
}

/// `/`.
pub fn paths(groups: &[(String, Vec<String>)]) -> Value {
    let mut paths: Vec<String> = [
        "/api",
        "/api/v1",
        "/apis",
        "/healthz",
        "/livez",
        "/metrics",
        "/openapi/v2",
        "/openapi/v3",
        "/readyz",
        "/version",
    ]
    .into_iter()
    .map(str::to_owned)
    .collect();
    for (group, versions) in groups.iter().filter(|(g, _)| !g.is_empty()) {
        paths.push(format!("/apis/{group}"));
        paths.extend(versions.iter().map(|v| format!("/apis/{group}/{v}")));
    }
    paths.sort();
    json!({"paths": paths})
}
