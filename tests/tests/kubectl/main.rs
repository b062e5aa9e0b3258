//! The commands of kubectl, each with its exit code and what it says, from the oldest binary at hand to the newest, over
//! simulated pods. What a command must come to is in [`steps`]; this file knows how it is run.

#![allow(clippy::unwrap_used, reason = "a test ends at the first surprise")]

mod steps;

use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use serde_json::Value;
use steps::Step;
use strata_tests::platform::{Platform, Said};
use strata_tests::{tools, wait};

const LIMIT: Duration = Duration::from_secs(40);

/// One kubectl in a namespace of its own.
struct Client<'a> {
    platform: &'a Platform,
    program: PathBuf,
    minor: u32,
    namespace: String,
    node: String,
    /// Where the manifests of its steps are.
    folder: tempfile::TempDir,
}

impl<'a> Client<'a> {
    fn new(platform: &'a Platform, program: PathBuf) -> Self {
        let said = platform.kubectl(&program, &["version", "--client", "-o", "json"]).ok();
        let version: Value = serde_json::from_str(&said).unwrap();
        let minor = version["clientVersion"]["minor"].as_str().unwrap();
        let minor = minor.trim_end_matches('+').parse().unwrap();
        let nodes = platform.kubectl(&program, &["get", "nodes", "-o", "jsonpath={.items[0].metadata.name}"]);
        let folder = tempfile::tempdir().unwrap();
        for (name, text) in steps::MANIFESTS {
            std::fs::write(folder.path().join(name), text).unwrap();
        }
        Self { platform, program, minor, namespace: format!("with-{minor}"), node: nodes.ok(), folder }
    }

    fn run(&self, line: &str) -> Said {
        let line = line.replace("{node}", &self.node).replace("{ns}", &self.namespace);
        let cache = self.platform.data_dir().join(format!("cache-{}", self.minor));
        let mut command = Command::new(&self.program);
        command.current_dir(self.folder.path()).env("KUBE_EDITOR", "sed -i s/calm/edited/");
        command.args(["--namespace", &self.namespace]).arg("--cache-dir").arg(cache);
        self.platform.run(command.args(words(&line)))
    }

    fn take(&self, step: &Step) {
        if step.since > self.minor {
            return;
        }
        let said = self.run(step.line);
        let told = format!("kubectl 1.{} {}: {said:?}", self.minor, step.line);
        assert_eq!(said.code, Some(step.code), "{told}");
        let all = format!("{}{}", said.out, said.err);
        for part in step.says {
            let part = part.replace("{node}", &self.node).replace("{ns}", &self.namespace);
            assert!(all.contains(&part), "{part:?} is not said by {told}");
        }
    }

    fn take_all(&self, steps: &[Step]) {
        steps.iter().for_each(|step| self.take(step));
    }

    fn write(&self, name: &str, change: impl Fn(String) -> String) {
        let path: &Path = &self.folder.path().join(name);
        std::fs::write(path, change(std::fs::read_to_string(path).unwrap())).unwrap();
    }
}

/// The words of a line; what stands between single quotes is one.
fn words(line: &str) -> Vec<String> {
    let (mut words, mut quoted) = (vec![String::new()], false);
    for c in line.chars() {
        match c {
            '\'' => quoted = !quoted,
            ' ' if !quoted => words.push(String::new()),
            c => words.last_mut().unwrap().push(c),
        }
    }
    words
}

fn each(test: impl Fn(&Client<'_>)) {
    let programs = tools::kubectls();
    if programs.is_empty() {
        return;
    }
    let platform = Platform::start(&["--runtime", "simulated"]);
    for program in programs {
        let client = Client::new(&platform, program);
        client.run("create namespace {ns}").ok();
        test(&client);
        let said = client.run("delete namespace {ns} --timeout=40s").ok();
        assert!(said.contains(&format!("namespace \"{}\" deleted", client.namespace)), "{said}");
    }
}

#[test]
fn what_creates_and_reads_does_what_it_says() {
    each(|client| {
        client.take_all(steps::CREATE);
        client.take_all(steps::ACCESS);
        wait::until("the pods to run", LIMIT, || {
            let said = client.run("get pods -o jsonpath={.items[*].status.phase}");
            let running = said.out.split(' ').filter(|phase| *phase == "Running").count();
            if running >= 4 { Ok(()) } else { Err(said) }
        });
        client.take_all(steps::READ);
        client.take_all(steps::DESCRIBE);
        client.take_all(steps::SCHEMAS);
    });
}

#[test]
fn what_changes_and_deletes_does_what_it_says() {
    each(|client| {
        client.take_all(steps::APPLY);
        client.write("settings.yaml", |text| text.replace("calm", "loud"));
        client.take_all(steps::APPLY_CHANGED);
        client.write("settings.yaml", |text| text.replace("loud", "calm"));
        client.take_all(steps::APPLY_BY_SERVER);
        client.take_all(steps::ROLLOUT);
        client.take_all(steps::SCALE);
        client.take_all(steps::CHANGE);
        client.take_all(steps::RUN_AND_WAIT);
        client.take_all(steps::DELETE);
        client.take_all(steps::NODES);
    });
}
