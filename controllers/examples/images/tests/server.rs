//! The whole pipeline against a real API server, with real images on disk: what upstream has is built, published and
//! delivered; what is deleted comes back; what is revoked goes; and nobody waits for a slow build.

#![allow(clippy::unwrap_used, reason = "a test ends at the first surprise")]

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Condvar, Mutex};
use std::time::Duration;

use images::layout::Layout;
use images::place::{Build, Site};
use images::{api, pack, run};
use serde_json::{Value, json};
use strata_client::options::{DeleteOptions, GetOptions, WriteOptions};
use strata_model::object::ObjectKey;
use strata_model::readiness::is_ready;
use strata_model::resource::ResourceType;
use strata_runtime::run::RunError;
use strata_testing::TestServer;
use tokio::sync::watch;
use tokio::task::JoinHandle;
use tokio::time::{interval, timeout};

const LIMIT: Duration = Duration::from_secs(60);

/// A pipeline at work in a folder.
struct Pipeline {
    server: TestServer,
    folder: tempfile::TempDir,
    stop: watch::Sender<bool>,
    layers: JoinHandle<Result<(), RunError>>,
}

impl Pipeline {
    async fn start(build: Build) -> Self {
        let server = TestServer::start().await.unwrap();
        let folder = tempfile::tempdir().unwrap();
        run::define(server.client()).await.unwrap();
        let (stop, stopped) = watch::channel(false);
        let site = Site::new(folder.path().join("site"));
        let layers = tokio::spawn(run::layers(server.client().clone(), site, build, None, stopped));
        Self { server, folder, stop, layers }
    }

    fn upstream(&self, track: &str) -> PathBuf {
        self.folder.path().join("upstream").join(track)
    }

    /// Where a customer has the image of a track.
    fn customer(&self, customer: &str, track: &str) -> PathBuf {
        self.folder.path().join("site/customers").join(customer).join(track)
    }

    fn release(&self, track: &str, version: &str, text: &str) {
        let folder = self.upstream(track).join(version);
        fs::create_dir_all(&folder).unwrap();
        fs::write(folder.join("main"), text).unwrap();
    }

    async fn create(&self, resource: &ResourceType, name: &str, spec: Value) {
        let object = json!({"apiVersion": resource.api_version(), "kind": resource.kind, "metadata": {"name": name}, "spec": spec});
        let options = WriteOptions::default();
        self.server.client().create(resource, "default", object.to_string(), &options).await.unwrap();
    }

    async fn track(&self, name: &str) {
        let spec = json!({"upstream": self.upstream(name), "image": name});
        self.create(&api::tracks(), name, spec).await;
    }

    async fn get(&self, resource: &ResourceType, name: &str) -> Value {
        let key = ObjectKey::new("default", name);
        let found = self.server.client().get(resource, &key, &GetOptions::default()).await;
        found.map(|object| object.to_value().unwrap()).unwrap_or_default()
    }

    /// Waits until an object is ready with this many of a count.
    async fn ready(&self, resource: &ResourceType, name: &str, field: &str, count: i64) {
        until(&format!("{name} has {count} {field}"), async || {
            let value = self.get(resource, name).await;
            is_ready(&value) && value["status"][field] == count
        })
        .await;
    }

    async fn stop(self) {
        self.stop.send_replace(true);
        self.layers.await.unwrap().unwrap();
        self.server.stop().await.unwrap();
    }
}

async fn until(what: &str, holds: impl AsyncFn() -> bool) {
    let mut look = interval(Duration::from_millis(20));
    let wait = async {
        while !holds().await {
            look.tick().await;
        }
    };
    timeout(LIMIT, wait).await.unwrap_or_else(|_| panic!("never: {what}"));
}

fn has(layout: &Path, version: &str) -> bool {
    Layout::new(layout.to_owned()).find(version).is_ok_and(|digest| digest.is_some())
}

/// All files under a folder.
fn files(folder: &Path) -> Vec<PathBuf> {
    let Ok(entries) = fs::read_dir(folder) else { return Vec::new() };
    let paths = entries.map(|entry| entry.unwrap().path());
    paths.flat_map(|path| if path.is_dir() { files(&path) } else { vec![path] }).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn what_upstream_has_is_held_at_every_customer() {
    let pipeline = Pipeline::start(Arc::new(pack::pack)).await;
    pipeline.release("hello", "1.0", "one");
    pipeline.release("hello", "1.1", "two");
    pipeline.track("hello").await;
    for customer in ["acme", "globex"] {
        pipeline
            .create(&api::entitlements(), customer, json!({"customer": customer, "track": "hello"}))
            .await;
    }
    pipeline.ready(&api::tracks(), "hello", "published", 2).await;
    for customer in ["acme", "globex"] {
        pipeline.ready(&api::entitlements(), customer, "delivered", 2).await;
        assert!(has(&pipeline.customer(customer, "hello"), "1.1"));
    }
    let acme = pipeline.customer("acme", "hello");
    let marker = fs::read_to_string(acme.join("oci-layout")).unwrap();
    assert!(marker.contains("1.0.0"), "{marker}");

    // What is deleted comes back, whichever part it is.
    for file in files(&acme) {
        fs::remove_file(&file).unwrap();
        until("a deleted file comes back", async || has(&acme, "1.0") && has(&acme, "1.1")).await;
    }
    // Whoever brings files back may do so in between.
    until("the folder is deleted", async || fs::remove_dir_all(&acme).is_ok()).await;
    until("a deleted folder comes back", async || has(&acme, "1.0") && has(&acme, "1.1")).await;

    // Other sources are another image, everywhere; a new version too.
    let old = Layout::new(acme.clone()).find("1.0").unwrap();
    pipeline.release("hello", "1.0", "one, mended");
    pipeline.release("hello", "2.0", "three");
    until("the mended image is delivered", async || {
        has(&acme, "2.0")
            && Layout::new(acme.clone()).find("1.0").is_ok_and(|now| now.is_some() && now != old)
    })
    .await;
    pipeline.ready(&api::tracks(), "hello", "published", 3).await;

    // What is revoked goes; the other customer keeps all.
    let key = ObjectKey::new("default", "acme");
    let client = pipeline.server.client();
    client.delete(&api::entitlements(), &key, &DeleteOptions::default()).await.unwrap();
    until("revoked images are taken away", async || {
        !["1.0", "1.1", "2.0"].iter().any(|version| has(&acme, version))
    })
    .await;
    until("nothing of them is left", async || {
        pipeline.get(&api::deliveries(), "acme-1.0").await.is_null() && files(&acme).len() == 2
    })
    .await;
    assert!(has(&pipeline.customer("globex", "hello"), "2.0"));
    pipeline.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn nobody_waits_for_a_slow_build() {
    let gate = Arc::new((Mutex::new((false, 0_usize)), Condvar::new()));
    let slow = Arc::clone(&gate);
    // Builds of `slow` wait until the test lets them; the most that do so at once is counted by the gate.
    let build: Build = Arc::new(move |folder, into, version| {
        if folder.parent().is_some_and(|track| track.ends_with("slow")) {
            let (lock, opened) = &*slow;
            let mut state = lock.lock().unwrap();
            state.1 += 1;
            drop(opened.wait_while(state, |(open, _)| !*open).unwrap());
        }
        pack::pack(folder, into, version)
    });
    let pipeline = Pipeline::start(build).await;
    pipeline.release("quick", "1.0", "one");
    pipeline.track("quick").await;
    pipeline.ready(&api::tracks(), "quick", "published", 1).await;
    for version in 0..6 {
        pipeline.release("slow", &format!("1.{version}"), "heavy");
    }
    pipeline.track("slow").await;
    until("all places for builds are taken", async || gate.0.lock().unwrap().1 == run::BUILDS).await;
    // Meanwhile a customer is entitled, loses an image, and has it again.
    pipeline.create(&api::entitlements(), "acme", json!({"customer": "acme", "track": "quick"})).await;
    pipeline.ready(&api::entitlements(), "acme", "delivered", 1).await;
    let quick = pipeline.customer("acme", "quick");
    until("the folder is deleted", async || fs::remove_dir_all(&quick).is_ok()).await;
    until("it comes back", async || has(&pipeline.customer("acme", "quick"), "1.0")).await;
    assert_eq!(gate.0.lock().unwrap().1, run::BUILDS, "no more builds at once than places");
    gate.0.lock().unwrap().0 = true;
    gate.1.notify_all();
    pipeline.ready(&api::tracks(), "slow", "published", 6).await;
    pipeline.stop().await;
}
