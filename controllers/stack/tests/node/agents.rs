//! Whole agents against a real server over a store in memory: what they bring up, hold, adopt and take down, and
//! what they leave alone. Processes are real.

use std::net::SocketAddr;
use std::path::Path;
use std::time::Duration;

use rcgen::{BasicConstraints, CertificateParams, CertifiedIssuer, DnType, IsCa, KeyPair};
use serde_json::{Value, json};
use strata_apiserver::server::config::{Config, Identity, NodeAccess, Pem};
use strata_apiserver::server::run::Server;
use strata_client::client::Client;
use strata_client::config::{ClientConfig, Token};
use strata_client::options::{DeleteOptions, GetOptions, ListOptions, LogOptions, WriteOptions};
use strata_model::object::ObjectKey;
use strata_model::resource::builtin;
use strata_plan::pod::observed::ContainerKey;
use strata_stack::node::agent::serve::Tls;
use strata_stack::node::agent::{self, RuntimeKind, Stop};
use strata_stack::node::procfs::Identity as Process;
use strata_store::engine::memory::Memory;
use strata_store::store::{EngineChoice, Store};
use tokio::sync::oneshot;
use tokio::task::JoinHandle;

use crate::harness::{LIMIT, Test, looks, processes};

pub const TESTS: &[Test] = &[
    ("agent_runs_pods_and_takes_them_down", || Box::pin(agent_runs_pods_and_takes_them_down())),
    ("a_killed_agent_is_followed_by_one_that_adopts", || {
        Box::pin(a_killed_agent_is_followed_by_one_that_adopts())
    }),
    ("containers_are_held_while_the_server_is_away", || {
        Box::pin(containers_are_held_while_the_server_is_away())
    }),
    ("what_has_no_pod_any_more_is_ended_at_the_start", || {
        Box::pin(what_has_no_pod_any_more_is_ended_at_the_start())
    }),
    ("an_agent_can_take_its_pods_along", || Box::pin(an_agent_can_take_its_pods_along())),
    ("one_agent_can_be_many_nodes", || Box::pin(one_agent_can_be_many_nodes())),
    ("two_agents_do_not_share_a_directory", || Box::pin(two_agents_do_not_share_a_directory())),
];

/// A server, its certificates and its identities.
struct Platform {
    store: Store,
    address: SocketAddr,
    authority: CertifiedIssuer<'static, KeyPair>,
    dir: tempfile::TempDir,
    server: Option<JoinHandle<()>>,
    admin: Client,
}

/// A running agent.
struct Agent {
    stop: oneshot::Sender<Stop>,
    task: JoinHandle<()>,
}

impl Agent {
    async fn stop(self, how: Stop) {
        self.stop.send(how).unwrap();
        self.task.await.unwrap();
    }

    /// As SIGKILL would.
    async fn kill(self) {
        self.task.abort();
        assert!(self.task.await.is_err());
    }
}

impl Platform {
    async fn start() -> Self {
        let dir = tempfile::tempdir().unwrap();
        let tokens = "admin,admin,0,\"system:masters\"\nnode,system:node:n1,1,\"system:nodes\"\n";
        std::fs::write(dir.path().join("tokens"), tokens).unwrap();
        let mut params = CertificateParams::new(Vec::new()).unwrap();
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        let authority = CertifiedIssuer::self_signed(params, KeyPair::generate().unwrap()).unwrap();
        let store = strata_store::config::Config::default();
        let store = Store::open(store, EngineChoice::Memory(Memory::new())).unwrap();
        let any = SocketAddr::from(([127, 0, 0, 1], 0));
        let (server, address) = serve(any, &authority, dir.path(), store.clone()).await;
        let admin = Client::new(&config(address, &authority, "admin")).unwrap();
        Self { store, address, authority, dir, server: Some(server), admin }
    }

    fn root(&self) -> &Path {
        self.dir.path()
    }

    async fn stop_server(&mut self) {
        let server = self.server.take().unwrap();
        server.abort();
        drop(server.await);
    }

    async fn start_server(&mut self) {
        let store = self.store.clone();
        self.server = Some(serve(self.address, &self.authority, self.dir.path(), store).await.0);
    }

    fn config(&self, runtime: RuntimeKind, nodes: u32) -> agent::Config {
        let (certificate, key) = issue(&self.authority, "system:nodes");
        agent::Config {
            name: "n1".into(),
            nodes,
            runtime,
            root: self.root().join("node"),
            simulated_start: Duration::ZERO,
            client: config(self.address, &self.authority, "node"),
            tls: Tls {
                certificate_pem: certificate.into(),
                key_pem: key.into(),
                client_ca_pem: self.authority.pem().into(),
            },
            listen: SocketAddr::from(([127, 0, 0, 1], 0)),
            admin: strata_runtime::admin::listen::Places::default(),
        }
    }

    /// Starts an agent and waits until it is ready.
    async fn agent(&self, runtime: RuntimeKind, nodes: u32) -> Agent {
        let config = self.config(runtime, nodes);
        let (ready, is_ready) = oneshot::channel();
        let (stop, stopped) = oneshot::channel();
        let task = tokio::spawn(async move {
            let ready = move || ready.send(()).unwrap();
            Box::pin(agent::run(config, ready, async { stopped.await.unwrap() })).await.unwrap();
        });
        tokio::time::timeout(LIMIT, is_ready).await.unwrap().unwrap();
        Agent { stop, task }
    }

    /// Creates a pod of one `sh` container, bound to a node.
    async fn pod(&self, name: &str, node: &str, script: &str) {
        let pod = json!({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name}, "spec": {
            "nodeName": node, "terminationGracePeriodSeconds": 5,
            "containers": [{"name": "c", "image": "host", "command": ["sh", "-c", script]}]}});
        self.admin.create(&builtin::POD, "default", pod.to_string(), &WriteOptions::default()).await.unwrap();
    }

    async fn get(&self, name: &str) -> Option<Value> {
        let key = ObjectKey::new("default", name);
        let pod = self.admin.get(&builtin::POD, &key, &GetOptions::default()).await;
        pod.ok().map(|pod| pod.to_value().unwrap())
    }

    async fn delete(&self, name: &str, grace: Option<i64>) {
        let options = DeleteOptions { grace_period_seconds: grace, ..DeleteOptions::default() };
        self.admin.delete(&builtin::POD, &ObjectKey::new("default", name), &options).await.unwrap();
    }

    /// Waits until a pod (or its absence) is as wanted.
    async fn until(&self, name: &str, wanted: impl Fn(Option<&Value>) -> bool) -> Value {
        let mut looks = looks();
        loop {
            let pod = self.get(name).await;
            if wanted(pod.as_ref()) {
                return pod.unwrap_or_default();
            }
            looks.next().await;
        }
    }

    /// Waits until a pod's container runs as this attempt.
    async fn running(&self, name: &str, attempt: u32) -> Value {
        self.until(name, |pod| {
            pod.is_some_and(|pod| {
                let container = &pod["status"]["containerStatuses"][0];
                container["state"]["running"].is_object() && container["restartCount"] == attempt
            })
        })
        .await
    }
}

fn container(pod: &Value, attempt: u32) -> ContainerKey {
    ContainerKey::new(pod["metadata"]["uid"].as_str().unwrap(), "c", attempt).unwrap()
}

/// The processes of an attempt of a pod; one of `sh` that became `sleep` has one.
fn running(pod: &Value, attempt: u32) -> Vec<Process> {
    processes(&container(pod, attempt))
}

fn issue(authority: &CertifiedIssuer<'static, KeyPair>, organisation: &str) -> (String, String) {
    let mut params = CertificateParams::new(vec!["localhost".to_owned(), "127.0.0.1".to_owned()]).unwrap();
    params.distinguished_name.push(DnType::OrganizationName, organisation);
    let key = KeyPair::generate().unwrap();
    (params.signed_by(&key, authority).unwrap().pem(), key.serialize_pem())
}

fn config(address: SocketAddr, authority: &CertifiedIssuer<'static, KeyPair>, token: &str) -> ClientConfig {
    ClientConfig {
        ca_pem: Some(authority.pem().into_bytes()),
        token: Some(Token(token.to_owned())),
        ..ClientConfig::new(format!("https://{address}").parse().unwrap())
    }
}

async fn serve(
    listen: SocketAddr,
    authority: &CertifiedIssuer<'static, KeyPair>,
    dir: &Path,
    store: Store,
) -> (JoinHandle<()>, SocketAddr) {
    let identity = |organisation: &str| {
        let (certificate, key) = issue(authority, organisation);
        Identity { certificate: Pem::Text(certificate), key: Pem::Text(key) }
    };
    let config = Config {
        listen,
        identity: identity("strata"),
        client_authority: None,
        token_file: Some(dir.join("tokens")),
        service_accounts: Default::default(),
        nodes: Some(NodeAccess {
            identity: identity("system:masters"),
            authority: Pem::Text(authority.pem()),
        }),
    };
    let server = Server::start(config, store).await.unwrap();
    let address = server.address();
    (tokio::spawn(async move { server.run(std::future::pending()).await.unwrap() }), address)
}

async fn agent_runs_pods_and_takes_them_down() {
    let platform = Platform::start().await;
    let agent = platform.agent(RuntimeKind::Process, 1).await;
    platform.pod("web", "n1", "echo up; exec sleep 600").await;
    let pod = platform.running("web", 0).await;
    assert_eq!(pod["status"]["phase"], "Running");
    let options = LogOptions { follow: true, ..LogOptions::default() };
    let mut log = platform.admin.logs(&ObjectKey::new("default", "web"), &options).await.unwrap();
    assert_eq!(log.next().await.unwrap().unwrap(), "up\n");
    platform.delete("web", None).await;
    platform.until("web", |pod| pod.is_none()).await;
    assert_eq!(running(&pod, 0), []);
    assert!(log.next().await.unwrap().is_none());
    let node = ObjectKey::new("", "n1");
    let node = platform.admin.get(&builtin::NODE, &node, &GetOptions::default()).await.unwrap();
    assert!(node.to_value().unwrap()["status"]["daemonEndpoints"]["kubeletEndpoint"]["Port"].is_u64());
    agent.stop(Stop::LeavePods).await;
    assert_eq!(std::fs::read_dir(platform.root().join("node/pods")).unwrap().count(), 0);
}

async fn a_killed_agent_is_followed_by_one_that_adopts() {
    let platform = Platform::start().await;
    let agent = platform.agent(RuntimeKind::Process, 1).await;
    platform.pod("web", "n1", "exec sleep 600").await;
    let pod = platform.running("web", 0).await;
    let before = running(&pod, 0);
    agent.kill().await;
    let agent = platform.agent(RuntimeKind::Process, 1).await;
    // A pod that comes later is done after the adopted one was looked at.
    platform.pod("later", "n1", "exec sleep 600").await;
    platform.running("later", 0).await;
    assert_eq!(running(&pod, 0), before);
    assert_eq!(platform.get("web").await.unwrap(), pod, "nothing was written");
    agent.stop(Stop::StopPods).await;
}

async fn containers_are_held_while_the_server_is_away() {
    let mut platform = Platform::start().await;
    let agent = platform.agent(RuntimeKind::Process, 1).await;
    platform.pod("web", "n1", "exec sleep 600").await;
    platform.pod("calm", "n1", "exec sleep 600").await;
    let (pod, calm) = (platform.running("web", 0).await, platform.running("calm", 0).await);
    let healthy = running(&calm, 0);
    platform.stop_server().await;
    running(&pod, 0)[0].signal(rustix::process::Signal::KILL).unwrap();
    crate::harness::until(|| running(&pod, 1).len() == 1).await;
    platform.start_server().await;
    let pod = platform.running("web", 1).await;
    assert_eq!(pod["status"]["containerStatuses"][0]["lastState"]["terminated"]["exitCode"], 137);
    assert_eq!(running(&calm, 0), healthy);
    agent.stop(Stop::StopPods).await;
}

async fn what_has_no_pod_any_more_is_ended_at_the_start() {
    let platform = Platform::start().await;
    let agent = platform.agent(RuntimeKind::Process, 1).await;
    platform.pod("web", "n1", "exec sleep 600").await;
    let pod = platform.running("web", 0).await;
    agent.stop(Stop::LeavePods).await;
    assert_eq!(running(&pod, 0).len(), 1);
    platform.delete("web", Some(0)).await;
    let agent = platform.agent(RuntimeKind::Process, 1).await;
    crate::harness::until(|| running(&pod, 0).is_empty()).await;
    let pods = platform.root().join("node/pods");
    crate::harness::until(|| std::fs::read_dir(&pods).unwrap().count() == 0).await;
    agent.stop(Stop::LeavePods).await;
}

async fn an_agent_can_take_its_pods_along() {
    let platform = Platform::start().await;
    for attempt in 0..3 {
        let agent = platform.agent(RuntimeKind::Process, 1).await;
        if attempt == 0 {
            platform.pod("web", "n1", "exec sleep 600").await;
        }
        // No back-off: a shutdown is no crash.
        let pod = platform.running("web", attempt).await;
        assert_eq!(running(&pod, attempt).len(), 1);
        agent.stop(Stop::StopPods).await;
        assert_eq!(running(&pod, attempt), []);
    }
}

async fn one_agent_can_be_many_nodes() {
    let platform = Platform::start().await;
    let agent = platform.agent(RuntimeKind::Simulated, 3).await;
    let nodes = platform.admin.list(&builtin::NODE, "", &ListOptions::default()).await.unwrap();
    let names: Vec<&str> = nodes.items.iter().map(|node| node.meta().name.as_str()).collect();
    assert_eq!(names, ["n1-0", "n1-1", "n1-2"]);
    for (pod, node) in [("a", "n1-0"), ("b", "n1-2"), ("elsewhere", "other")] {
        platform.pod(pod, node, "none").await;
    }
    let before = [platform.running("a", 0).await, platform.running("b", 0).await];
    assert_eq!(platform.get("elsewhere").await.unwrap()["status"]["phase"], "Pending");
    agent.kill().await;
    let agent = platform.agent(RuntimeKind::Simulated, 3).await;
    platform.pod("c", "n1-1", "none").await;
    platform.running("c", 0).await;
    let after = [platform.get("a").await.unwrap(), platform.get("b").await.unwrap()];
    assert_eq!(after, before, "what the API remembers as running runs on, and nothing was written");
    agent.stop(Stop::LeavePods).await;
}

async fn two_agents_do_not_share_a_directory() {
    let platform = Platform::start().await;
    let agent = platform.agent(RuntimeKind::Process, 1).await;
    let second = agent::run(platform.config(RuntimeKind::Process, 1), || {}, std::future::pending());
    let error = Box::pin(second).await.unwrap_err();
    assert!(error.is_busy(), "{error}");
    let many = agent::run(platform.config(RuntimeKind::Process, 2), || {}, std::future::pending());
    assert!(Box::pin(many).await.unwrap_err().to_string().contains("--runtime simulated"));
    agent.stop(Stop::LeavePods).await;
}
