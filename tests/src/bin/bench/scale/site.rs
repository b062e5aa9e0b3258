//! The platform under load, and what is asked of it.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use k8s_openapi::api::apps::v1::Deployment;
use serde_json::{Value, json};
use strata_client::client::Client;
use strata_client::kubeconfig::Kubeconfig;
use strata_client::options::{ListOptions, Patch, WriteOptions};
use strata_model::object::{Object, ObjectKey};
use strata_model::resource::{ResourceType, builtin};
use strata_tests::platform::Platform;

use crate::context::Outcome;
use crate::process;

/// Where everything is.
const NAMESPACE: &str = "default";
/// Between two looks.
const LOOK_EVERY: Duration = Duration::from_millis(50);
/// How long a state may take to come.
const LIMIT: Duration = Duration::from_secs(600);

/// A platform, and a client of it.
pub struct Site {
    /// The platform.
    pub platform: Platform,
    /// The client.
    pub client: Client,
}

impl Site {
    /// Starts a platform with so many simulated nodes.
    pub fn start(nodes: usize) -> Outcome<Self> {
        let platform = Platform::start(&["--runtime", "simulated", "--nodes", &nodes.to_string()]);
        let kubeconfig = Kubeconfig::load(&[platform.kubeconfig()])?;
        let client = Client::new(&kubeconfig.client_config(None)?)?;
        Ok(Self { platform, client })
    }

    /// Everything of a type that has these labels.
    pub async fn list(&self, resource: &ResourceType, labels: &str) -> Outcome<Vec<Object>> {
        let options = ListOptions { label_selector: labels.to_owned(), ..ListOptions::default() };
        Ok(self.client.list(resource, "", &options).await?.items)
    }

    /// Creates a deployment.
    pub async fn deploy(client: &Client, name: &str, replicas: usize) -> Outcome<()> {
        let labels = json!({"app": name});
        let deployment = json!({"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": name},
            "spec": {"replicas": replicas, "selector": {"matchLabels": labels},
            "template": {"metadata": {"labels": labels},
            "spec": {"containers": [{"name": "main", "image": "registry.example/bench:1"}]}}}});
        let options = WriteOptions::default();
        client.create(&builtin::DEPLOYMENT, NAMESPACE, deployment.to_string(), &options).await?;
        Ok(())
    }

    /// Patches a deployment.
    pub async fn patch(&self, name: &str, patch: Value) -> Outcome<()> {
        let key = ObjectKey::new(NAMESPACE, name);
        let options = WriteOptions::default();
        self.client.patch(&builtin::DEPLOYMENT, &key, "", &Patch::Merge(patch), &options).await?;
        Ok(())
    }

    /// Waits until every deployment with these labels (or all) is wholly updated and available; gives how long.
    pub async fn settled(&self, names: &[String], start: Instant) -> Outcome<Duration> {
        let mut looks = tokio::time::interval(LOOK_EVERY);
        loop {
            looks.tick().await;
            let mut done = 0;
            for object in self.list(&builtin::DEPLOYMENT, "").await? {
                if names.contains(&object.meta().name) && is_settled(&object)? {
                    done += 1;
                }
            }
            if done == names.len() {
                return Ok(start.elapsed());
            }
            if start.elapsed() > LIMIT {
                return Err(format!("{done} of {} deployments settled in {LIMIT:?}", names.len()).into());
            }
        }
    }

    /// The process ids of all controllers.
    pub fn controllers(&self) -> Vec<i32> {
        self.platform.role_pids(&["controller"])
    }

    /// CPU time that these processes have taken.
    pub fn cpu(pids: &[i32]) -> Outcome<u64> {
        pids.iter().map(|pid| process::cpu_micros(*pid)).sum()
    }

    /// Has every controller look at all of its keys; gives how many there are.
    pub fn resync(&self) -> Outcome<usize> {
        let shown: Value = serde_json::from_str(&self.platform.strata(&["queue", "-o", "json"]).ok())?;
        let mut keys = 0;
        for controller in shown["controllers"].as_array().into_iter().flatten() {
            let name = controller["name"].as_str().ok_or("a controller without a name")?;
            let said = self.platform.strata(&["queue", name, "--resync"]).ok();
            let count = said.trim().rsplit(' ').next().unwrap_or_default();
            keys += count.parse::<usize>().map_err(|error| format!("{said}: {error}"))?;
        }
        Ok(keys)
    }

    /// The revision of every object that controllers write, but leases and nodes.
    pub async fn revisions(&self) -> Outcome<BTreeMap<String, String>> {
        let mut all = BTreeMap::new();
        for resource in [&builtin::DEPLOYMENT, &builtin::REPLICA_SET, &builtin::POD, &builtin::EVENT] {
            for object in self.list(resource, "").await? {
                all.insert(
                    format!("{} {}", resource.id, object.key()),
                    object.meta().resource_version.clone(),
                );
            }
        }
        Ok(all)
    }
}

fn is_settled(object: &Object) -> Outcome<bool> {
    let deployment: Deployment = object.decode()?;
    let wanted = deployment.spec.as_ref().and_then(|spec| spec.replicas);
    Ok(deployment.status.is_some_and(|status| {
        status.observed_generation == Some(object.meta().generation)
            && [status.replicas, status.updated_replicas, status.available_replicas]
                .iter()
                .all(|n| *n == wanted)
    }))
}
