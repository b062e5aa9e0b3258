//! A platform whose data is in etcd: two API servers show and hold the same, and the data moves to a directory and back
//! without a client noticing. Where etcd is not installed, this looks at nothing.

#![allow(clippy::unwrap_used, reason = "a test ends at the first surprise")]

use std::net::TcpListener;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use rustix::process::Signal;
use serde_json::Value;
use strata_tests::platform::{Platform, signal};
use strata_tests::{tools, wait};

// Started in one way only, wherever etcd is tested with.
#[path = "../../store/tests/support/etcd.rs"]
mod etcd;

const LIMIT: Duration = Duration::from_secs(60);

/// A second API server over the same cluster, with the certificates of a platform.
struct Second {
    process: Child,
    url: String,
}

impl Second {
    fn start(platform: &Platform, servers: &str, prefix: &str) -> Second {
        let address = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
        let pki = platform.data_dir().join("pki");
        let process = Command::new(tools::strata())
            .args(["apiserver", "--listen", &address.to_string()])
            .args(["--etcd-servers", servers, "--etcd-prefix", prefix])
            .arg("--tls-cert-file")
            .arg(pki.join("apiserver.crt"))
            .arg("--tls-private-key-file")
            .arg(pki.join("apiserver.key"))
            .arg("--client-ca-file")
            .arg(pki.join("ca.crt"))
            .stdin(Stdio::null())
            .spawn()
            .unwrap();
        Second { process, url: format!("https://{address}") }
    }
}

impl Drop for Second {
    fn drop(&mut self) {
        let pid = self.process.id() as i32;
        signal(pid, Signal::TERM);
        let deadline = std::time::Instant::now() + LIMIT;
        while self.process.try_wait().is_ok_and(|ended| ended.is_none()) {
            if std::time::Instant::now() > deadline {
                signal(pid, Signal::KILL);
            }
            std::thread::park_timeout(Duration::from_millis(20));
        }
    }
}

fn names(platform: &Platform, arguments: &[&str]) -> Result<Vec<String>, String> {
    let said = platform.strata(&[&["get", "pods", "-o", "json"], arguments].concat());
    if said.code != Some(0) {
        return Err(said.err);
    }
    let list: Value = serde_json::from_str(&said.out).map_err(|error| error.to_string())?;
    let items = list["items"].as_array().ok_or("no items")?;
    Ok(items.iter().map(|item| item["metadata"]["name"].as_str().unwrap_or_default().to_owned()).collect())
}

fn deployment(platform: &Platform) -> Value {
    serde_json::from_str(&platform.strata(&["get", "deployment", "web", "-o", "json"]).ok()).unwrap()
}

#[test]
fn two_servers_over_one_cluster_and_a_move_to_a_directory_and_back() {
    if !etcd::is_there() {
        return;
    }
    let mut cluster = etcd::Cluster::start(1);
    let place = cluster.store();
    let servers = place.servers.join(",");
    let flags = ["--runtime", "simulated", "--etcd-servers", &servers, "--etcd-prefix", &place.prefix];
    let platform = Platform::start(&flags);
    assert!(!platform.data_dir().join("store").join("format").exists(), "nothing is kept beside etcd");
    platform
        .strata(&["create", "deployment", "web", "--image=host", "--replicas=2", "--", "sleep", "9"])
        .ok();
    wait::until("two pods", LIMIT, || match names(&platform, &[])? {
        pods if pods.len() == 2 => Ok(()),
        pods => Err(format!("{pods:?}")),
    });
    let second = Second::start(&platform, &servers, &place.prefix);
    let there = ["--server", &second.url];
    // What one server was told of is at once there at the other.
    wait::until("the second server", LIMIT, || names(&platform, &there).map(|_| ()));
    for round in 0..5 {
        let name = format!("config-{round}");
        platform.strata(&["create", "configmap", &name, "--from-literal=a=b"]).ok();
        platform.strata(&["get", "configmap", &name, there[0], there[1]]).ok();
        platform.strata(&["delete", "configmap", &name, there[0], there[1]]).ok();
        assert_ne!(platform.strata(&["get", "configmap", &name]).code, Some(0));
    }
    assert_eq!(names(&platform, &[]), names(&platform, &there));
    // etcd may go away and come back: both servers go on, and nobody has to restart them.
    let servers_before = platform.role_pids(&["apiserver"]);
    for member in 0..cluster.size() {
        cluster.kill(member);
        cluster.revive(member);
    }
    wait::until("etcd to be back", LIMIT, || names(&platform, &there).map(|_| ()));
    platform.strata(&["create", "configmap", "after", "--from-literal=a=b"]).ok();
    platform.strata(&["get", "configmap", "after", there[0], there[1]]).ok();
    assert_eq!(platform.role_pids(&["apiserver"]), servers_before);
    drop(second);
    let was = deployment(&platform);
    let dir = platform.stop();
    let etcd_place = format!("etcd:{servers}{}", place.prefix);
    let sled_place = format!("sled:{}", dir.path().join("store").display());
    let told = strata(&["store", "migrate", "--from", &etcd_place, "--to", &sled_place]);
    assert!(told.starts_with("copied ") && told.contains("at resource version"), "{told}");
    let platform = Platform::start_in(dir, &["--runtime", "simulated"]);
    let now = deployment(&platform);
    for field in ["uid", "creationTimestamp", "generation"] {
        assert_eq!(now["metadata"][field], was["metadata"][field], "{field}");
    }
    let number =
        |object: &Value| -> u64 { object["metadata"]["resourceVersion"].as_str().unwrap().parse().unwrap() };
    assert!(number(&now) >= number(&was));
    platform.strata(&["scale", "deployment", "web", "--replicas=3"]).ok();
    assert!(number(&deployment(&platform)) > number(&now));
    let dir = platform.stop();
    let back = format!("etcd:{servers}/back");
    strata(&["store", "migrate", "--from", &sled_place, "--to", &back]);
    let flags = ["--runtime", "simulated", "--etcd-servers", &servers, "--etcd-prefix", "/back"];
    let platform = Platform::start_in(dir, &flags);
    wait::until("three pods", LIMIT, || match names(&platform, &[])? {
        pods if pods.len() == 3 => Ok(()),
        pods => Err(format!("{pods:?}")),
    });
    assert!(number(&deployment(&platform)) > number(&now));
}

fn strata(arguments: &[&str]) -> String {
    let output = Command::new(tools::strata()).args(arguments).output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).unwrap()
}
