//! The walk-through that a new user takes, word for word: with every kubectl at hand and with the bundled command line,
//! over simulated pods. One body of steps; the two clients must not differ in what they achieve.

#![allow(clippy::unwrap_used, reason = "a test ends at the first surprise")]

use std::io::{BufRead, BufReader};
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use rustix::process::Signal;
use serde_json::Value;
use strata_tests::platform::{Platform, Said, signal};
use strata_tests::{tools, wait};

const LIMIT: Duration = Duration::from_secs(40);

/// A client of the platform: its program, and what goes before each command.
struct Client<'a> {
    platform: &'a Platform,
    program: PathBuf,
    leading: Vec<String>,
}

impl Client<'_> {
    fn command(&self, args: &[&str]) -> Command {
        let mut command = Command::new(&self.program);
        command.args(&self.leading).args(args);
        command
    }

    fn run(&self, args: &[&str]) -> Said {
        self.platform.run(&mut self.command(args))
    }

    #[track_caller]
    fn ok(&self, line: &str) -> String {
        self.run(&line.split(' ').collect::<Vec<_>>()).ok()
    }

    fn json(&self, line: &str) -> Value {
        serde_json::from_str(&self.ok(line)).unwrap()
    }

    /// The names that a command with `-o name` prints.
    fn names(&self, line: &str) -> Vec<String> {
        self.ok(&format!("{line} -o name")).lines().map(str::to_owned).collect()
    }

    fn wait_for_running(&self, selector: &str, count: usize) -> Vec<String> {
        let line = format!("get pods -l {selector} --field-selector status.phase=Running -o json");
        wait::until(&format!("{count} running pods of {selector}"), LIMIT, || {
            let list = self.json(&line);
            let live = list["items"].as_array().unwrap().iter();
            let live = live.filter(|p| p["metadata"]["deletionTimestamp"].is_null());
            let names: Vec<String> =
                live.map(|p| p["metadata"]["name"].as_str().unwrap().to_owned()).collect();
            if names.len() == count { Ok(names) } else { Err(names) }
        })
    }
}

/// A `get -w` that runs beside the steps.
struct Watching {
    child: Child,
    lines: Arc<Mutex<Vec<String>>>,
}

impl Watching {
    fn start(client: &Client<'_>, args: &[&str]) -> Self {
        let mut command = client.command(args);
        command.env("KUBECONFIG", client.platform.kubeconfig()).env("HOME", client.platform.data_dir());
        let mut child = command.stdin(Stdio::null()).stdout(Stdio::piped()).spawn().unwrap();
        let lines = Arc::new(Mutex::new(Vec::new()));
        let (stdout, into) = (child.stdout.take().unwrap(), Arc::clone(&lines));
        std::thread::spawn(move || {
            for line in BufReader::new(stdout).lines().map_while(Result::ok) {
                into.lock().unwrap().push(line);
            }
        });
        Self { child, lines }
    }

    fn wait_for(&self, what: &str, enough: impl Fn(&[String]) -> bool) {
        wait::until(what, LIMIT, || {
            let lines = self.lines.lock().unwrap();
            if enough(&lines) { Ok(()) } else { Err(lines.clone()) }
        });
    }
}

impl Drop for Watching {
    fn drop(&mut self) {
        signal(self.child.id() as i32, Signal::TERM);
        self.child.wait().unwrap();
    }
}

fn shows(lines: &[String], status: &str, count: usize) -> bool {
    let mut pods: Vec<&str> =
        lines.iter().filter(|l| l.contains(status)).filter_map(|l| l.split_whitespace().next()).collect();
    pods.sort_unstable();
    pods.dedup();
    pods.len() >= count
}

#[test]
fn the_walk_through_works_with_kubectl_and_with_the_bundled_command_line() {
    let platform = Platform::start(&["--runtime", "simulated"]);
    for program in tools::kubectls() {
        let cache = platform.data_dir().join("kubectl-cache").display().to_string();
        let client = Client { platform: &platform, program, leading: vec!["--cache-dir".to_owned(), cache] };
        walk(&client);
    }
    walk(&Client { platform: &platform, program: tools::strata(), leading: Vec::new() });
}

fn walk(client: &Client<'_>) {
    eprintln!("walking with {}", client.program.display());
    create_watch_and_heal(client);
    scale_and_roll(client);
    change_in_small(client);
    apply_twice(client);
    look(client);
    delete_collects(client);
}

fn create_watch_and_heal(client: &Client<'_>) {
    let watching = Watching::start(client, &["get", "pods", "-l", "app=recon-demo", "-w"]);
    let created = client.ok("create deployment recon-demo --image=nginx --replicas=3");
    assert_eq!(created.trim(), "deployment.apps/recon-demo created");
    let first = client.wait_for_running("app=recon-demo", 3);
    for status in ["Pending", "ContainerCreating", "Running"] {
        watching.wait_for(&format!("three pods shown as {status}"), |lines| shows(lines, status, 3));
    }
    let deleted = client.ok("delete pod -l app=recon-demo --field-selector status.phase=Running");
    for pod in &first {
        assert!(deleted.contains(&format!("pod \"{pod}\" deleted")), "{deleted}");
    }
    watching.wait_for("three pods shown as Terminating", |lines| shows(lines, "Terminating", 3));
    let second = client.wait_for_running("app=recon-demo", 3);
    assert!(second.iter().all(|pod| !first.contains(pod)), "{first:?} {second:?}");
}

fn scale_and_roll(client: &Client<'_>) {
    client.ok("scale deployment recon-demo --replicas=4");
    client.wait_for_running("app=recon-demo", 4);
    let said = client.ok("scale deployment/recon-demo --replicas=2");
    assert_eq!(said.trim(), "deployment.apps/recon-demo scaled");
    client.wait_for_running("app=recon-demo", 2);

    let said = client.ok("set image deployment/recon-demo nginx=nginx:1.27");
    assert_eq!(said.trim(), "deployment.apps/recon-demo image updated");
    let status = client.ok("rollout status deployment/recon-demo --timeout=40s");
    assert!(status.contains("deployment \"recon-demo\" successfully rolled out"), "{status}");
    let sets = client.json("get replicasets -l app=recon-demo -o json");
    let sizes: Vec<i64> =
        sets["items"].as_array().unwrap().iter().map(|s| s["spec"]["replicas"].as_i64().unwrap()).collect();
    assert_eq!((sizes.len(), sizes.iter().sum::<i64>()), (2, 2), "{sizes:?}");

    let history = client.ok("rollout history deployment/recon-demo");
    let revisions: Vec<&str> = history.lines().filter_map(|l| l.split_whitespace().next()).collect();
    assert!(revisions.ends_with(&["1", "2"]), "{history}");
    client.ok("rollout undo deployment/recon-demo");
    client.ok("rollout status deployment/recon-demo --timeout=40s");
    let image = client.ok("get deployment recon-demo -o jsonpath={.spec.template.spec.containers[0].image}");
    assert_eq!(image, "nginx");
    client.wait_for_running("app=recon-demo", 2);
}

fn change_in_small(client: &Client<'_>) {
    assert_eq!(
        client.ok("label deployment recon-demo tier=web").trim(),
        "deployment.apps/recon-demo labeled"
    );
    let again = client.run(&["label", "deployment", "recon-demo", "tier=db"]);
    assert_ne!(again.code, Some(0), "a label is not overwritten unasked: {again:?}");
    client.ok("label deployment recon-demo tier=db --overwrite");
    assert_eq!(
        client.ok("annotate deployment recon-demo note=a").trim(),
        "deployment.apps/recon-demo annotated"
    );
    client.ok("annotate deployment recon-demo note-");
    let deployment = client.json("get deployment recon-demo -o json");
    assert_eq!(deployment["metadata"]["labels"]["tier"], "db");
    assert!(deployment["metadata"]["annotations"].get("note").is_none(), "{deployment}");

    for (kind, patch, replicas) in [
        ("strategic", r#"{"spec":{"replicas":3}}"#, 3),
        ("merge", r#"{"spec":{"replicas":1}}"#, 1),
        ("json", r#"[{"op":"replace","path":"/spec/replicas","value":2}]"#, 2),
    ] {
        client.run(&["patch", "deployment", "recon-demo", "--type", kind, "-p", patch]).ok();
        assert_eq!(client.json("get deployment recon-demo -o json")["spec"]["replicas"], replicas, "{kind}");
    }
    client.wait_for_running("app=recon-demo", 2);

    let mut edit = client.command(&["edit", "deployment", "recon-demo"]);
    let edit = client.platform.run(
        edit.env("EDITOR", "sed -i s/tier:.db/tier:\\ edited/")
            .env("KUBE_EDITOR", "sed -i 's/tier: db/tier: edited/'"),
    );
    assert!(edit.ok().contains("deployment.apps/recon-demo edited"));
    assert_eq!(client.json("get deployment recon-demo -o json")["metadata"]["labels"]["tier"], "edited");
}

fn apply_twice(client: &Client<'_>) {
    let manifest = client.platform.data_dir().join("settings.yaml");
    let text = |value: &str| {
        format!(
            "apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: settings\n  labels: {{team: a}}\ndata:\n  mode: {value}\n"
        )
    };
    std::fs::write(&manifest, text("calm")).unwrap();
    let apply = format!("apply -f {}", manifest.display());
    assert_eq!(client.ok(&apply).trim(), "configmap/settings created");
    let revision = || client.json("get configmap settings -o json")["metadata"]["resourceVersion"].clone();
    let first = revision();
    assert_eq!(client.ok(&apply).trim(), "configmap/settings unchanged");
    assert_eq!(revision(), first, "the second apply wrote something");
    std::fs::write(&manifest, text("loud")).unwrap();
    assert_eq!(client.ok(&apply).trim(), "configmap/settings configured");
    assert_eq!(client.ok("get configmap settings -o jsonpath={.data.mode}"), "loud");
    client.ok(&format!("delete -f {}", manifest.display()));
}

fn look(client: &Client<'_>) {
    let pods = client.wait_for_running("app=recon-demo", 2);
    let pod = &pods[0];
    assert!(client.ok("get pods -l app=recon-demo -o wide").contains("NODE"));
    assert!(client.ok(&format!("get pod {pod} -o yaml")).contains("kind: Pod"));
    assert_eq!(client.ok(&format!("get pod/{pod} -o name")).trim(), format!("pod/{pod}"));
    assert_eq!(client.names("get pods -l app=recon-demo").len(), 2);
    let described = client.ok("describe deployment recon-demo");
    for part in ["Name:", "recon-demo", "StrategyType:", "RollingUpdate", "ScalingReplicaSet"] {
        assert!(described.contains(part), "{part} is missing:\n{described}");
    }
    assert!(client.ok(&format!("describe pod {pod}")).contains("Scheduled"));
    client.ok(&format!("logs {pod}"));
    let explained = client.ok("explain deployment.spec.strategy");
    assert!(explained.contains("rollingUpdate") && explained.contains("DESCRIPTION"), "{explained}");
    let types = client.ok("api-resources");
    assert!(types.lines().any(|l| l.starts_with("deployments ") && l.contains("apps/v1")), "{types}");
    let waited = client.ok("wait deployment/recon-demo --for=condition=Available --timeout=40s");
    assert!(waited.contains("condition met"), "{waited}");
    assert!(
        client.ok("get deployments -w --request-timeout=2s").contains("recon-demo"),
        "a watch with an end"
    );
    let missing = client.run(&["get", "pod", "no-such-pod"]);
    assert_eq!(missing.code, Some(1));
    assert_eq!(
        missing.err.lines().next(),
        Some("Error from server (NotFound): pods \"no-such-pod\" not found")
    );
}

fn delete_collects(client: &Client<'_>) {
    let said = client.ok("delete deployment recon-demo");
    assert!(said.contains("deployment.apps \"recon-demo\" deleted"), "{said}");
    wait::until("the replica sets and pods to be collected", LIMIT, || {
        let left = client.names("get replicasets,pods -l app=recon-demo");
        if left.is_empty() { Ok(()) } else { Err(left) }
    });
}
