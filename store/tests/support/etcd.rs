//! Servers of etcd for tests: started on free ports of the loopback with their data in a directory of
//! their own, and ended with it.

#![allow(dead_code, reason = "each suite uses a part of it")]

use std::fs::File;
use std::net::TcpListener;
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicU64, Ordering};

use strata_store::engine::etcd::EtcdConfig;

/// Largest request that the servers take: what the store allows, and some.
const MAX_REQUEST_BYTES: &str = "16777216";

/// Whether etcd is installed. Where everything must be tested it has to be.
pub fn is_there() -> bool {
    let found = Command::new("etcd").arg("--version").stdout(Stdio::null()).stderr(Stdio::null()).status();
    let is_there = found.is_ok_and(|status| status.success());
    let is_asked = std::env::var("CI").is_ok_and(|ci| ci == "true");
    assert!(is_there || !is_asked, "etcd is not installed (Debian: etcd-server)");
    if !is_there {
        println!("etcd is not installed: nothing was looked at");
    }
    is_there
}

/// A cluster of one or more servers.
pub struct Cluster {
    members: Vec<Member>,
    prefixes: AtomicU64,
    _directory: tempfile::TempDir,
}

struct Member {
    arguments: Vec<String>,
    log: std::path::PathBuf,
    client: String,
    process: Option<Child>,
}

impl Cluster {
    /// Starts a cluster. Its servers come up by themselves; opening a store waits for them.
    pub fn start(size: usize) -> Cluster {
        Cluster::start_with(size, "http", &[])
    }

    /// Starts a cluster that clients speak with by this scheme, with further flags.
    pub fn start_with(size: usize, scheme: &str, further: &[(&str, String)]) -> Cluster {
        let directory = tempfile::tempdir().unwrap();
        // Kept until all are chosen, so that no two are the same.
        let listeners: Vec<_> = (0..size * 2).map(|_| TcpListener::bind("127.0.0.1:0").unwrap()).collect();
        let url = |at: usize| format!("http://{}", listeners[at].local_addr().unwrap());
        let name = |at: usize| format!("m{at}");
        let cluster: Vec<_> = (0..size).map(|at| format!("{}={}", name(at), url(at * 2 + 1))).collect();
        let members = (0..size).map(|at| {
            let (client, peer) = (url(at * 2).replace("http", scheme), url(at * 2 + 1));
            let data = directory.path().join(name(at)).display().to_string();
            let arguments = [
                ("name", name(at)),
                ("data-dir", data),
                ("listen-client-urls", client.clone()),
                ("advertise-client-urls", client.clone()),
                ("listen-peer-urls", peer.clone()),
                ("initial-advertise-peer-urls", peer),
                ("initial-cluster", cluster.join(",")),
                ("max-request-bytes", MAX_REQUEST_BYTES.to_owned()),
                ("heartbeat-interval", "100".to_owned()),
                ("election-timeout", "1000".to_owned()),
                ("logger", "zap".to_owned()),
            ];
            let arguments =
                arguments.iter().chain(further).map(|(name, value)| format!("--{name}={value}")).collect();
            let log = directory.path().join(format!("{}.log", name(at)));
            Member { arguments, log, client, process: None }
        });
        let members = members.collect();
        drop(listeners);
        let mut started = Cluster { members, prefixes: AtomicU64::new(0), _directory: directory };
        (0..size).for_each(|at| started.revive(at));
        started
    }

    /// How to open a store that no other call has named.
    pub fn store(&self) -> EtcdConfig {
        let prefix = format!("/test/{}", self.prefixes.fetch_add(1, Ordering::Relaxed));
        let servers = self.members.iter().map(|member| member.client.clone()).collect();
        EtcdConfig { prefix, ..EtcdConfig::new(servers) }
    }

    /// Ends a server at once, as a power cut would.
    pub fn kill(&mut self, member: usize) {
        if let Some(mut process) = self.members[member].process.take() {
            process.kill().unwrap();
            process.wait().unwrap();
        }
    }

    /// Starts a server again, with what it had written.
    pub fn revive(&mut self, member: usize) {
        let member = &mut self.members[member];
        let log = File::options().create(true).append(true).open(&member.log).unwrap();
        let process = Command::new("etcd")
            .args(&member.arguments)
            .stdout(log.try_clone().unwrap())
            .stderr(log)
            .spawn()
            .unwrap();
        member.process = Some(process);
    }

    /// How many servers there are.
    pub fn size(&self) -> usize {
        self.members.len()
    }
}

impl Drop for Cluster {
    fn drop(&mut self) {
        (0..self.members.len()).for_each(|member| self.kill(member));
    }
}
