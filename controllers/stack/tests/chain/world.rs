//! A whole platform in one process: a real server on a port of its own over a store in memory, controllers by name with
//! their own identities, and a node that says its pods run.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use rcgen::{CertificateParams, KeyPair};
use serde_json::{Value, json};
use strata_apiserver::server::config::{Config, Identity, Pem};
use strata_apiserver::server::run::Server;
use strata_client::client::Client;
use strata_client::config::{ClientConfig, Token};
use strata_client::cursor::Start;
use strata_client::error::Class;
use strata_client::event::{Event, WatchOptions};
use strata_client::options::{DeleteOptions, GetOptions, ListOptions, Patch, WriteOptions};
use strata_client::watch::Watches;
use strata_model::object::{Object, ObjectKey};
use strata_model::resource::{Registry, ResourceType, builtin};
use strata_runtime::run::Options;
use strata_stack::process::{self, Name, Settings};
use strata_store::engine::memory::Memory;
use strata_store::store::{EngineChoice, Store};
use tokio::sync::oneshot;
use tokio::task::JoinHandle;

/// Most time anything may take to become true.
const LIMIT: Duration = Duration::from_secs(60);
/// Between looks.
const LOOK: Duration = Duration::from_millis(20);

/// Lets the world go on for a moment between two looks; every wait that uses it has a limit.
async fn look_again() {
    let mut clock = tokio::time::interval_at(tokio::time::Instant::now() + LOOK, LOOK);
    clock.tick().await;
}

/// A running controller.
pub struct Running {
    stop: oneshot::Sender<()>,
    task: JoinHandle<()>,
    ready: Arc<AtomicBool>,
}

impl Running {
    /// As SIGTERM would.
    pub async fn stop(self) {
        self.stop.send(()).expect("controller runs");
        self.task.await.expect("controller");
    }

    /// As SIGKILL would.
    pub async fn kill(self) {
        self.task.abort();
        drop(self.task.await);
    }
}

struct Serving {
    stop: oneshot::Sender<()>,
    task: JoinHandle<()>,
}

/// Everything.
pub struct World {
    store: Store,
    address: SocketAddr,
    certificate: (String, String),
    tokens: tempfile::NamedTempFile,
    serving: Option<Serving>,
    controllers: Mutex<Vec<(Name, Running)>>,
    node: JoinHandle<()>,
    created: Arc<AtomicUsize>,
    pub admin: Client,
}

pub fn key(name: &str) -> ObjectKey {
    ObjectKey::new("default", name)
}

fn template(name: &str) -> Value {
    json!({"metadata": {"labels": {"app": name}}, "spec": {"containers": [{"name": "c", "image": "host"}]}})
}

pub fn deployment(name: &str, replicas: u32) -> Value {
    json!({"metadata": {"name": name}, "spec": {
        "replicas": replicas, "selector": {"matchLabels": {"app": name}}, "template": template(name)}})
}

pub fn replica_set(name: &str, replicas: u32) -> Value {
    deployment(name, replicas)
}

impl World {
    pub async fn start() -> Self {
        let store = Store::open(strata_store::config::Config::default(), EngineChoice::Memory(Memory::new()))
            .expect("store");
        let pair = KeyPair::generate().expect("key");
        let params = CertificateParams::new(vec!["127.0.0.1".to_owned()]).expect("params");
        let certificate = (params.self_signed(&pair).expect("certificate").pem(), pair.serialize_pem());
        let tokens = tempfile::NamedTempFile::new().expect("file");
        let mut lines = "admin,admin,0,\"system:masters\"\n".to_owned();
        for name in Name::ALL {
            lines.push_str(&format!("{name},system:controller:{name},{name},\"system:controllers\"\n"));
        }
        std::fs::write(tokens.path(), lines).expect("tokens");
        let any = SocketAddr::from(([127, 0, 0, 1], 0));
        let (serving, address) = serve(any, &certificate, &tokens, store.clone()).await;
        let admin = client(address, &certificate.0, "admin");
        let created = Arc::new(AtomicUsize::new(0));
        let node = tokio::spawn(play_node(admin.clone(), Arc::clone(&created)));
        let serving = Some(serving);
        let controllers = Mutex::default();
        Self { store, address, certificate, tokens, serving, controllers, node, created, admin }
    }

    pub fn run_as(&self, name: Name, identity: &str) -> Running {
        let client = client(self.address, &self.certificate.0, name.as_str());
        let (stop, stopped) = oneshot::channel();
        let ready = Arc::new(AtomicBool::new(false));
        let told = Arc::clone(&ready);
        let options = Options {
            identity: Some(identity.to_owned()),
            ready: Some(Box::new(move || told.store(true, Ordering::Release))),
            ..Options::default()
        };
        // The nodes of these tests have no agents that could speak.
        let settings = Settings { node_grace: Duration::from_secs(24 * 3600), ..Settings::default() };
        let task = tokio::spawn(async move {
            let shutdown = async move { drop(stopped.await) };
            Box::pin(process::run(name, settings.clone(), client, options, shutdown))
                .await
                .expect("controller runs");
        });
        Running { stop, task, ready }
    }

    pub fn run_all(&self) {
        let mut controllers = self.controllers.lock().expect("lock");
        controllers.extend(Name::ALL.map(|name| (name, self.run_as(name, "test"))));
    }

    pub async fn restart_controllers(&self) {
        let old = std::mem::take(&mut *self.controllers.lock().expect("lock"));
        for (_, controller) in old {
            controller.kill().await;
        }
        self.run_all();
        let ready: Vec<Arc<AtomicBool>> =
            self.controllers.lock().expect("lock").iter().map(|(_, c)| Arc::clone(&c.ready)).collect();
        self.until("all are ready", |_| {
            let all = ready.iter().all(|r| r.load(Ordering::Acquire));
            async move { all.then_some(()) }
        })
        .await;
    }

    pub async fn until_ready(&self, controller: &Running) {
        let ready = Arc::clone(&controller.ready);
        self.until("ready", |_| {
            let ready = ready.load(Ordering::Acquire);
            async move { ready.then_some(()) }
        })
        .await;
    }

    pub async fn restart_server(&mut self) {
        let serving = self.serving.take().expect("serving");
        // As a kill would: connections end in the middle of whatever they do.
        serving.task.abort();
        drop(serving.task.await);
        drop(serving.stop);
        let (serving, _) = serve(self.address, &self.certificate, &self.tokens, self.store.clone()).await;
        self.serving = Some(serving);
    }

    pub async fn stop(mut self) {
        let controllers = std::mem::take(&mut *self.controllers.lock().expect("lock"));
        for (_, controller) in controllers {
            controller.stop().await;
        }
        self.node.abort();
        if let Some(serving) = self.serving.take() {
            drop(serving.stop);
            drop(serving.task.await);
        }
        self.store.close().await;
    }

    /// Looks until something is so.
    pub async fn until<'a, F>(&'a self, what: &str, mut look: impl FnMut(&'a Self) -> F)
    where
        F: Future<Output = Option<()>>,
    {
        let tried = tokio::time::timeout(LIMIT, async {
            while look(self).await.is_none() {
                look_again().await;
            }
        });
        if tried.await.is_err() {
            let pods = self.names(&builtin::POD, "").await;
            let sets = self.names(&builtin::REPLICA_SET, "").await;
            panic!("never: {what}; pods {pods:?}, replica sets {sets:?}");
        }
    }

    pub async fn until_count(&self, resource: &'static ResourceType, namespace: &'static str, count: usize) {
        let what = format!("{count} {}", resource.id);
        self.until(
            &what,
            |w| async move { (w.names(resource, namespace).await.len() == count).then_some(()) },
        )
        .await;
    }

    pub async fn until_some(&self, resource: &'static ResourceType, namespace: &'static str) {
        self.until("some", |w| async move { (!w.names(resource, namespace).await.is_empty()).then_some(()) })
            .await;
    }

    /// Until two looks some time apart see the same.
    pub async fn until_quiet(&self) {
        let last = Mutex::new(BTreeMap::new());
        let same = AtomicUsize::new(0);
        let (last, same) = (&last, &same);
        self.until("quiet", |w| async move {
            let now = w.revisions().await;
            let before = std::mem::replace(&mut *last.lock().expect("lock"), now.clone());
            let run = if before == now { same.fetch_add(1, Ordering::Relaxed) + 1 } else { 0 };
            same.store(run, Ordering::Relaxed);
            (run >= 50).then_some(())
        })
        .await;
    }

    /// The revision of every object but leases.
    pub async fn revisions(&self) -> BTreeMap<String, String> {
        let mut revisions = BTreeMap::new();
        for resource in Registry::builtin().types().iter().filter(|t| t.id != builtin::LEASE.id) {
            let Ok(list) = self.admin.list(resource, "", &ListOptions::default()).await else { continue };
            for object in list.items {
                let name = format!("{}/{}", resource.id, object.key());
                revisions.insert(name, object.meta().resource_version.clone());
            }
        }
        revisions
    }

    pub async fn create(&self, resource: &ResourceType, namespace: &str, mut object: Value) {
        object["apiVersion"] = json!(resource.api_version());
        object["kind"] = json!(resource.kind);
        let body = object.to_string();
        let mut again = false;
        loop {
            match self.admin.create(resource, namespace, body.clone(), &WriteOptions::default()).await {
                Ok(_) => return,
                // The server went before it answered.
                Err(error) if again && error.class() == Class::Conflict => return,
                Err(error) => assert_eq!(error.class(), Class::Transient, "{error}"),
            }
            again = true;
            look_again().await;
        }
    }

    pub async fn delete(&self, resource: &ResourceType, key: &ObjectKey) {
        self.admin.delete(resource, key, &DeleteOptions::default()).await.expect("delete");
    }

    pub async fn get(&self, resource: &ResourceType, key: &ObjectKey) -> Option<Value> {
        match self.admin.get(resource, key, &GetOptions::default()).await {
            Ok(object) => Some(object.to_value().expect("json")),
            Err(error) => {
                assert!(matches!(error.class(), Class::NotFound | Class::Transient), "{error}");
                None
            }
        }
    }

    pub async fn names(&self, resource: &ResourceType, namespace: &str) -> Vec<String> {
        loop {
            match self.admin.list(resource, namespace, &ListOptions::default()).await {
                Ok(list) => return list.items.iter().map(|o| o.meta().name.clone()).collect(),
                Err(error) => assert_eq!(error.class(), Class::Transient, "{error}"),
            }
            look_again().await;
        }
    }

    /// The reasons of all events.
    pub async fn told(&self) -> Vec<String> {
        let list =
            self.admin.list(&builtin::EVENT, "default", &ListOptions::default()).await.expect("events");
        let reason =
            |o: &Object| o.to_value().expect("json")["reason"].as_str().unwrap_or_default().to_owned();
        list.items.iter().map(reason).collect()
    }

    pub async fn holder(&self, name: &str) -> Option<String> {
        let lease = self.get(&builtin::LEASE, &ObjectKey::new("kube-system", name)).await?;
        lease["spec"]["holderIdentity"].as_str().map(str::to_owned)
    }

    /// How many pods were ever created.
    pub fn created_pods(&self) -> usize {
        self.created.load(Ordering::Relaxed)
    }
}

async fn serve(
    listen: SocketAddr,
    (certificate, key): &(String, String),
    tokens: &tempfile::NamedTempFile,
    store: Store,
) -> (Serving, SocketAddr) {
    let identity = Identity { certificate: Pem::Text(certificate.clone()), key: Pem::Text(key.clone()) };
    let config = Config {
        listen,
        identity,
        client_authority: None,
        token_file: Some(tokens.path().to_owned()),
        nodes: None,
        service_accounts: Default::default(),
    };
    let server = Server::start(config, store).await.expect("server");
    let address = server.address();
    let (stop, stopped) = oneshot::channel::<()>();
    let task = tokio::spawn(async move {
        server.run(async move { drop(stopped.await) }).await.expect("server runs");
    });
    (Serving { stop, task }, address)
}

fn client(address: SocketAddr, ca: &str, token: &str) -> Client {
    let uri = format!("https://{address}").parse().expect("uri");
    let config = ClientConfig {
        ca_pem: Some(ca.as_bytes().to_vec()),
        token: Some(Token(token.to_owned())),
        ..ClientConfig::new(uri)
    };
    Client::new(&config).expect("client")
}

/// A node on which everything runs at once.
async fn play_node(client: Client, created: Arc<AtomicUsize>) {
    let node = json!({"apiVersion": "v1", "kind": "Node", "metadata": {"name": "n1"}});
    let options = WriteOptions::default();
    client.create(&builtin::NODE, "", node.to_string(), &options).await.expect("node");
    let status = json!({"status": {
        "conditions": [{"type": "Ready", "status": "True"}],
        "capacity": {"cpu": "64", "memory": "64Gi", "pods": "1000"},
        "allocatable": {"cpu": "64", "memory": "64Gi", "pods": "1000"},
    }});
    let n1 = ObjectKey::new("", "n1");
    client.patch(&builtin::NODE, &n1, "status", &Patch::Merge(status), &options).await.expect("node status");
    let watches = Watches::new(client.clone());
    let mut pods =
        watches.open(&builtin::POD, WatchOptions { start: Start::State, ..WatchOptions::default() });
    let mut seen = std::collections::HashSet::new();
    while let Some(event) = pods.next().await {
        let (Event::Initial(pod) | Event::Applied(pod, _)) = event else { continue };
        if seen.insert(pod.meta().uid.clone()) {
            created.fetch_add(1, Ordering::Relaxed);
        }
        while let Err(error) = hold(&client, &pod).await {
            match error.class() {
                Class::Transient => look_again().await,
                _ => break,
            }
        }
    }
}

async fn hold(client: &Client, pod: &Object) -> Result<(), strata_client::error::ClientError> {
    let value = pod.to_value().expect("json");
    if value["spec"]["nodeName"] != "n1" {
        return Ok(());
    }
    if pod.meta().is_deleting() {
        let options = DeleteOptions {
            grace_period_seconds: Some(0),
            uid: pod.meta().uid.clone(),
            ..DeleteOptions::default()
        };
        return client.delete(&builtin::POD, &pod.key(), &options).await.map(|_| ());
    }
    if value["status"]["phase"] == "Running" {
        return Ok(());
    }
    let now = "2026-11-30T20:00:00Z";
    let status = json!({"metadata": {"uid": pod.meta().uid}, "status": {"phase": "Running", "conditions": [
        {"type": "PodScheduled", "status": "True", "lastTransitionTime": now},
        {"type": "Ready", "status": "True", "lastTransitionTime": now}]}});
    let options = WriteOptions::default();
    client.patch(&builtin::POD, &pod.key(), "status", &Patch::Merge(status), &options).await.map(|_| ())
}
