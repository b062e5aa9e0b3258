//! Repositories elsewhere: over HTTP, TLS and ssh, with all that can be wrong with a host.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use base64::Engine as _;
use strata_plan::application::rendered::{Fault, RenderError};
use strata_stack::application::source::access::{Access, Credential};
use strata_stack::application::source::cache::Newness;
use strata_stack::application::source::render::Task;

use crate::repository::{Reader, Repository, config_map, git, has, names, source};
use crate::servers::{Manners, SSHD, Server, http, sshd};

/// A bare repository `r.git` in a folder, with its working tree.
fn bare() -> (Repository, tempfile::TempDir) {
    let (repository, root) = (Repository::new(), tempfile::tempdir().unwrap());
    for n in 0..3 {
        repository.write("a/a.yaml", config_map(&format!("a{n}")));
        repository.commit();
    }
    repository.git(&["tag", "--annotate", "--message", "one", "v1.0.0"]);
    git(root.path(), &["clone", "--quiet", "--bare", &repository.url(), "r.git"]);
    repository.git(&["remote", "add", "origin", &root.path().join("r.git").display().to_string()]);
    (repository, root)
}

fn push(repository: &Repository) {
    repository.git(&["push", "--quiet", "--force", "--all", "origin"]);
}

fn url(server: &Server) -> String {
    format!("http://localhost:{}/r.git", server.port)
}

fn credential(url: &str) -> Credential {
    Credential { url: url.to_owned(), ..Credential::default() }
}

fn with(credential: Credential) -> Reader {
    let mut reader = Reader::new();
    reader.access.credentials.push(credential);
    reader
}

#[tokio::test(flavor = "multi_thread")]
async fn a_repository_is_fetched_once_a_commit_and_without_its_history() {
    let (repository, root) = bare();
    let server = http(root.path(), false, Manners::default()).await;
    let reader = Reader::new();
    let first = reader.one(source(url(&server), "a")).await.unwrap();
    assert_eq!(names(&first), ["a2"]);
    let asked = server.asked.load(Ordering::Relaxed);
    let second = reader.one(source(url(&server), "a")).await.unwrap();
    assert!(Arc::ptr_eq(&first.manifests, &second.manifests));
    // Only its branches and tags were asked for: two exchanges, no pack.
    assert!(server.asked.load(Ordering::Relaxed) - asked <= 2, "fetched again");
    let mut copies = std::fs::read_dir(&reader.cache).unwrap();
    let copy = copies.next().unwrap().unwrap().path();
    assert_eq!(git(&copy, &["rev-list", "--count", &first.revision]), "1", "its history came too");
    repository.write("a/a.yaml", config_map("new"));
    let commit = repository.commit();
    push(&repository);
    let third = reader.one(source(url(&server), "a")).await.unwrap();
    assert_eq!((names(&third), third.revision.clone()), (vec!["new"], commit));
    // Without asking anybody, what was known is rendered.
    let task = Task { sources: vec![source(url(&server), "a")], ..Task::default() };
    let asked = server.asked.load(Ordering::Relaxed);
    reader.sources.render(&task, &Access::default(), Newness::default()).await.unwrap();
    assert_eq!(server.asked.load(Ordering::Relaxed), asked);
}

#[tokio::test(flavor = "multi_thread")]
async fn revisions_elsewhere_are_found_also_after_history_was_rewritten() {
    let (repository, root) = bare();
    let server = http(root.path(), false, Manners::default()).await;
    let reader = Reader::new();
    let old = repository.git(&["rev-parse", "HEAD~2"]);
    let at = |target: &str| {
        let mut one = source(url(&server), "a");
        one.target_revision = target.to_owned();
        one
    };
    assert_eq!(names(&reader.one(at("v1.0.0")).await.unwrap()), ["a2"]);
    assert_eq!(names(&reader.one(at("1.x")).await.unwrap()), ["a2"]);
    assert_eq!(names(&reader.one(at(&old)).await.unwrap()), ["a0"]);
    assert_eq!(names(&reader.one(at(&old[..10])).await.unwrap()), ["a0"]);
    repository.write("a/a.yaml", config_map("rewritten"));
    repository.git(&["add", "--all"]);
    repository.git(&["commit", "--quiet", "--amend", "--message", "rewritten"]);
    repository.git(&["branch", "side"]);
    push(&repository);
    assert_eq!(names(&reader.one(at("main")).await.unwrap()), ["rewritten"]);
    assert_eq!(names(&reader.one(at("side")).await.unwrap()), ["rewritten"]);
    repository.git(&["push", "--quiet", "origin", ":side"]);
    let error = reader.fault(at("side")).await;
    assert!(error.fault == Fault::Missing && error.message.contains("\"side\""), "{error}");
    let error = reader.fault(at(&"1".repeat(40))).await;
    assert!(error.fault == Fault::Missing && error.message.contains("rewritten"), "{error}");
}

#[tokio::test(flavor = "multi_thread")]
async fn credentials_are_asked_for_and_checked() {
    let (_repository, root) = bare();
    let basic = base64::engine::general_purpose::STANDARD.encode("me:secret");
    let manners = Manners { authorization: Some(format!("Basic {basic}")), ..Manners::default() };
    let server = http(root.path(), false, manners).await;
    let url = url(&server);
    let error = Reader::new().fault(source(&url, "a")).await;
    assert!(error.fault == Fault::Refused && error.message.contains("Secret"), "{error}");
    let mut known = credential(&url);
    (known.username, known.password) = ("me".into(), "wrong".into());
    let error = with(known.clone()).fault(source(&url, "a")).await;
    assert!(error.fault == Fault::Refused && error.message.contains("me"), "{error}");
    assert!(!error.message.contains("wrong"), "{error}");
    known.password = "secret".into();
    assert_eq!(names(&with(known).one(source(&url, "a")).await.unwrap()), ["a2"]);
    let manners = Manners { authorization: Some("Bearer t".into()), ..Manners::default() };
    let server = http(root.path(), false, manners).await;
    let url = self::url(&server);
    let known = Credential { bearer_token: "t".into(), ..credential(&url) };
    assert_eq!(names(&with(known).one(source(&url, "a")).await.unwrap()), ["a2"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn certificates_are_checked_unless_it_is_said() {
    let (_repository, root) = bare();
    let server = http(root.path(), true, Manners::default()).await;
    let url = format!("https://localhost:{}/r.git", server.port);
    let error = Reader::new().fault(source(&url, "a")).await;
    assert!(error.fault == Fault::Refused && error.message.contains("not trusted"), "{error}");
    let insecure = Credential { insecure: true, ..credential(&url) };
    assert_eq!(names(&with(insecure).one(source(&url, "a")).await.unwrap()), ["a2"]);
    let mut reader = Reader::new();
    reader.access.certificates.insert("localhost".into(), server.certificate.clone());
    assert_eq!(names(&reader.one(source(&url, "a")).await.unwrap()), ["a2"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn faults_of_hosts_are_told_apart() {
    let (_repository, root) = bare();
    let reader = Reader::new();
    let says = |error: &RenderError, fault, text: &str| {
        assert!(error.fault == fault && error.message.contains(text), "{error:?}");
    };
    for (status, fault, text) in [
        ("404 Not Found", Fault::Missing, "no such repository"),
        ("403 Forbidden", Fault::Refused, "403"),
        ("503 Busy", Fault::Unreachable, "503"),
        ("200 OK", Fault::Missing, "not as a git repository"),
    ] {
        let server = http(root.path(), false, Manners { status: Some(status), ..Manners::default() }).await;
        says(&reader.fault(source(url(&server), "a")).await, fault, text);
    }
    let server = http(root.path(), false, Manners::default()).await;
    let none = format!("http://localhost:{}/none.git", server.port);
    says(&reader.fault(source(none, "a")).await, Fault::Missing, "no such repository");
    let manners = Manners { moved: Some(format!("http://localhost:{}", server.port)), ..Manners::default() };
    let moved = http(root.path(), false, manners).await;
    assert_eq!(names(&reader.one(source(url(&moved), "a")).await.unwrap()), ["a2"]);
    let broken = http(root.path(), false, Manners { breaks_off: true, ..Manners::default() }).await;
    says(&reader.fault(source(url(&broken), "a")).await, Fault::Unreachable, "");
    let down = { http(root.path(), false, Manners::default()).await.port };
    let down = format!("http://localhost:{down}/r.git");
    says(&reader.fault(source(&down, "a")).await, Fault::Unreachable, "cannot be reached");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_host_that_hangs_holds_up_nobody_else() {
    let (_repository, root) = bare();
    let hangs = http(root.path(), false, Manners { hangs: true, ..Manners::default() }).await;
    let server = http(root.path(), false, Manners::default()).await;
    let reader = Arc::new(Reader::new());
    let waiting: Vec<_> = (0..20)
        .map(|n| {
            let (reader, url) = (Arc::clone(&reader), format!("http://localhost:{}/{n}.git", hangs.port));
            tokio::spawn(async move { reader.fault(source(url, "a")).await })
        })
        .collect();
    let rendered = reader.one(source(url(&server), "a")).await.unwrap();
    assert_eq!(names(&rendered), ["a2"]);
    assert!(waiting.iter().all(|one| !one.is_finished()));
    for one in waiting {
        one.abort();
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn ssh_takes_the_right_key_of_both_sides_only() {
    if !has("ssh") || !has("ssh-keygen") || !sshd_is_there() {
        return;
    }
    let (repository, root) = bare();
    let server = sshd().await;
    let url = server.url(&root.path().join("r.git"));
    let reader = |key: &str, hosts: &str| {
        let mut reader = with(Credential { ssh_private_key: key.into(), ..credential(&url) });
        reader.access.known_hosts = hosts.into();
        reader
    };
    let good = reader(server.key.trim_end(), &server.known_hosts);
    assert_eq!(names(&good.one(source(&url, "a")).await.unwrap()), ["a2"]);
    repository.write("a/a.yaml", config_map("new"));
    repository.commit();
    push(&repository);
    assert_eq!(names(&good.one(source(&url, "a")).await.unwrap()), ["new"]);
    let absent = server.url(&root.path().join("none.git"));
    let error = good.fault(source(&absent, "a")).await;
    assert!(error.fault == Fault::Refused || error.fault == Fault::Missing, "{error}");
    let error = reader(&server.wrong_key, &server.known_hosts).fault(source(&url, "a")).await;
    assert!(error.fault == Fault::Refused && error.message.contains("refuses our key"), "{error}");
    let stranger = server.known_hosts.replace(&server.port.to_string(), "1");
    let error = reader(&server.key, &stranger).fault(source(&url, "a")).await;
    assert!(error.fault == Fault::Refused && error.message.contains("known-hosts"), "{error}");
}

fn sshd_is_there() -> bool {
    let found = std::path::Path::new(SSHD).is_file();
    assert!(found || std::env::var_os("CI").is_none(), "{SSHD} is missing");
    found
}
