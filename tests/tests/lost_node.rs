//! A node whose agent is killed is told lost, its pods come up elsewhere, and when it is back it is as before. On real
//! processes, with SIGKILL.

#![allow(clippy::unwrap_used, reason = "a test ends at the first surprise")]

use std::process::{Child, Command, Stdio};
use std::time::Duration;

use serde_json::Value;
use strata_tests::platform::Platform;
use strata_tests::{tools, wait};

/// Longer than the grace, several renewals of a lease, and whatever a busy machine adds.
const LIMIT: Duration = Duration::from_secs(120);

/// Six pods that do not wait for a node that is lost.
const MANIFEST: &str = r#"
apiVersion: apps/v1
kind: Deployment
metadata: {name: roam}
spec:
  replicas: 6
  selector: {matchLabels: {app: roam}}
  template:
    metadata: {labels: {app: roam}}
    spec:
      tolerations:
        - {key: node.kubernetes.io/unreachable, operator: Exists, effect: NoExecute, tolerationSeconds: 0}
      containers: [{name: c, image: any}]
"#;

/// A process that is killed, at the latest, with the test.
struct Killed(Child);

impl Killed {
    fn now(&mut self) {
        self.0.kill().unwrap();
        self.0.wait().unwrap();
    }
}

impl Drop for Killed {
    fn drop(&mut self) {
        // It may be dead already, which is as good.
        if self.0.kill().is_ok() {
            self.0.wait().ok();
        }
    }
}

fn role(words: &[&str]) -> Killed {
    let child = Command::new(tools::strata()).args(words).stdin(Stdio::null()).spawn();
    Killed(child.unwrap())
}

/// An agent of one more simulated node.
fn agent(platform: &Platform, root: &std::path::Path) -> Killed {
    let pki = platform.data_dir().join("pki");
    let file = |name: &str| pki.join(name).to_string_lossy().into_owned();
    let kubeconfig = platform.kubeconfig().to_string_lossy().into_owned();
    let (certificate, key, authority) = (file("node.crt"), file("node.key"), file("ca.crt"));
    role(&[
        "node",
        "--name",
        "far",
        "--runtime",
        "simulated",
        "--root",
        &root.to_string_lossy(),
        "--kubeconfig",
        &kubeconfig,
        "--tls-cert-file",
        &certificate,
        "--tls-private-key-file",
        &key,
        "--client-ca-file",
        &authority,
    ])
}

fn json(platform: &Platform, args: &[&str]) -> Value {
    serde_json::from_str(&platform.strata(args).ok()).unwrap()
}

/// Whether the node says that it is ready, and how many taints it has.
fn node(platform: &Platform) -> (String, usize) {
    let said = platform.strata(&["get", "node", "far", "-o", "json"]);
    let node: Value = serde_json::from_str(&said.out).unwrap_or_default();
    let conditions = node["status"]["conditions"].as_array();
    let ready = conditions.into_iter().flatten().find(|c| c["type"] == "Ready");
    let status = ready.and_then(|c| c["status"].as_str()).unwrap_or("none").to_owned();
    (status, node["spec"]["taints"].as_array().map_or(0, Vec::len))
}

/// Pods that are ready and stay: on the node `far`, and elsewhere; and all pods there are.
fn pods(platform: &Platform) -> (usize, usize, usize) {
    let list = json(platform, &["get", "pods", "-l", "app=roam", "-o", "json"]);
    let pods = list["items"].as_array().unwrap();
    let works = |pod: &&Value| {
        let conditions = pod["status"]["conditions"].as_array();
        let ready = conditions.into_iter().flatten().any(|c| c["type"] == "Ready" && c["status"] == "True");
        ready && pod["metadata"]["deletionTimestamp"].is_null()
    };
    let (far, near): (Vec<&Value>, Vec<&Value>) =
        pods.iter().filter(works).partition(|pod| pod["spec"]["nodeName"] == "far");
    (far.len(), near.len(), pods.len())
}

#[test]
fn pods_of_a_lost_node_come_up_elsewhere_and_it_heals() {
    let platform =
        Platform::start(&["--runtime", "simulated", "--nodes", "2", "--controllers", "*,-nodelifecycle"]);
    let kubeconfig = platform.kubeconfig().to_string_lossy().into_owned();
    let _lifecycle =
        role(&["controller", "nodelifecycle", "--kubeconfig", &kubeconfig, "--node-grace-seconds", "15"]);
    let root = tempfile::tempdir().unwrap();
    let mut far = agent(&platform, root.path());
    wait::until_true("the node to be there", LIMIT, || node(&platform) == ("True".to_owned(), 0));

    let file = root.path().join("roam.yaml");
    std::fs::write(&file, MANIFEST).unwrap();
    platform.strata(&["apply", "-f", &file.to_string_lossy()]).ok();
    wait::until_true("six pods, some of them there", LIMIT, || {
        let (far, near, _) = pods(&platform);
        far > 0 && far + near == 6
    });

    far.now();
    wait::until_true("the node to be lost, and tainted twice", LIMIT, || {
        node(&platform) == ("Unknown".to_owned(), 2)
    });
    wait::until_true("six pods elsewhere", LIMIT, || {
        let (far, near, _) = pods(&platform);
        (far, near) == (0, 6)
    });
    // Nobody removes by force what may still run.
    assert!(pods(&platform).2 > 6);

    let _far = agent(&platform, root.path());
    wait::until_true("the node to be as before", LIMIT, || node(&platform) == ("True".to_owned(), 0));
    wait::until_true("the pods that were driven off to be gone", LIMIT, || pods(&platform).2 == 6);
}
