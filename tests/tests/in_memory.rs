//! The truthful server for tests of any language: `strata up --in-memory --print-kubeconfig` is there after one line,
//! does what a platform does, and leaves nothing behind; not even when the program that started it is killed.

#![allow(clippy::unwrap_used, reason = "a test ends at the first surprise")]

use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use rustix::process::Signal;
use serde_json::Value;
use strata_tests::platform::{is_alive, signal};
use strata_tests::{tools, wait};

const LIMIT: Duration = Duration::from_secs(60);

/// Starts a server whose temporary files lie in `home`; answers it with its kubeconfig, a file.
fn start(home: &Path) -> (Child, String) {
    let mut up = Command::new(tools::strata())
        .args([
            "up",
            "--in-memory",
            "--listen",
            "127.0.0.1:0",
            "--print-kubeconfig",
            "--runtime",
            "simulated",
        ])
        .env("TMPDIR", home)
        .env("STRATA_SUPERVISED", "1")
        .env_remove("STRATA_DATA_DIR")
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut line = String::new();
    BufReader::new(up.stdout.take().unwrap()).read_line(&mut line).unwrap();
    (up, line)
}

fn entries(home: &Path) -> Vec<String> {
    std::fs::read_dir(home).unwrap().map(|e| e.unwrap().file_name().to_string_lossy().into_owned()).collect()
}

fn ended(up: &mut Child, home: &Path) {
    wait::until_true("the server to end", LIMIT, || matches!(up.try_wait(), Ok(Some(_))));
    assert_eq!(entries(home), Vec::<String>::new(), "something is left behind");
}

#[test]
fn one_line_is_a_kubeconfig_and_nothing_stays_behind() {
    let (home, files) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let (mut up, line) = start(home.path());
    let config: Value = serde_json::from_str(&line).unwrap();
    assert!(config["clusters"][0]["cluster"]["server"].as_str().unwrap().starts_with("https://127.0.0.1:"));
    let kubeconfig = files.path().join("kubeconfig");
    std::fs::write(&kubeconfig, line).unwrap();
    let strata = |words: &[&str]| {
        let said = Command::new(tools::strata()).args(words).env("KUBECONFIG", &kubeconfig).output().unwrap();
        assert!(said.status.success(), "{words:?}: {}", String::from_utf8_lossy(&said.stderr));
        String::from_utf8_lossy(&said.stdout).into_owned()
    };
    strata(&["create", "deployment", "web", "--image", "app", "--replicas", "2"]);
    strata(&["rollout", "status", "deployment/web", "--timeout", "60s"]);
    strata(&["delete", "deployment", "web"]);
    // Garbage is collected, as in a platform that lasts.
    strata(&["wait", "--for=delete", "pods", "--all", "--timeout", "60s"]);
    signal(up.id() as i32, Signal::TERM);
    ended(&mut up, home.path());
}

#[test]
fn it_ends_with_the_program_that_holds_its_standard_input() {
    let home = tempfile::tempdir().unwrap();
    let (mut up, line) = start(home.path());
    assert!(line.starts_with('{'), "{line}");
    let pid = up.id() as i32;
    assert!(is_alive(pid));
    drop(up.stdin.take());
    ended(&mut up, home.path());
}
