//! The steps: everything is synced for the first time, looked at without a change, one folder changes, objects are deleted.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use serde_json::{Value, json};
use strata_client::client::Client;
use strata_client::kubeconfig::Kubeconfig;
use strata_client::options::{DeleteOptions, ListOptions, Patch, WriteOptions};
use strata_model::object::ObjectKey;
use strata_model::resource::{ResourceType, builtin};
use strata_tests::platform::Platform;

use crate::context::{Context, Outcome};
use crate::gitops::repository::Repository;
use crate::load::{each, scatter, summary};
use crate::report::{ms, number};

/// Requests at a time.
const AT_ONCE: usize = 16;
/// Between two looks at everything, and at one object.
const LOOK_EVERY: Duration = Duration::from_millis(50);
const LOOK_CLOSELY: Duration = Duration::from_millis(2);
/// How long a state may take to come.
const LIMIT: Duration = Duration::from_secs(600);
/// Where Applications are, and where their objects go.
const HOME: &str = "argocd";
const SITES: &str = "sites";
/// What asks for a look at the repository.
const REFRESH: &str = "argocd.argoproj.io/refresh";

struct Site {
    client: Client,
    apps: ResourceType,
    _platform: Platform,
}

/// All of them, on one platform.
pub async fn all(context: &mut Context) -> Outcome<()> {
    let count = context.size(1_000, 20);
    let repository = Repository::new(context.path("repository"), count)?;
    let platform = Platform::start(&["--runtime", "simulated", "--nodes", "1"]);
    let kubeconfig = Kubeconfig::load(&[platform.kubeconfig()])?;
    let client = Client::new(&kubeconfig.client_config(None)?)?;
    let mut apps = ResourceType::custom("argoproj.io", "v1alpha1", "applications", "Application");
    apps.subresources = Vec::new().into();
    let site = Site { client, apps, _platform: platform };
    first(context, &site, &repository, count).await?;
    noop(context, &site, count).await?;
    commit(context, &site, &repository, count).await?;
    heal(context, &site, count).await
}

impl Site {
    /// All Applications, by name.
    async fn apps(&self) -> Outcome<BTreeMap<String, Value>> {
        let found = self.client.list(&self.apps, HOME, &ListOptions::default()).await?;
        let mut apps = BTreeMap::new();
        for object in &found.items {
            apps.insert(object.meta().name.clone(), object.to_value()?);
        }
        Ok(apps)
    }

    /// Waits until so many Applications are as asked for; gives how long.
    async fn until(&self, count: usize, start: Instant, is_so: impl Fn(&Value) -> bool) -> Outcome<Duration> {
        let mut looks = tokio::time::interval(LOOK_EVERY);
        loop {
            looks.tick().await;
            let done = self.apps().await?.values().filter(|app| is_so(app)).count();
            if done >= count {
                return Ok(start.elapsed());
            }
            if start.elapsed() > LIMIT {
                return Err(format!("{done} of {count} Applications in {LIMIT:?}").into());
            }
        }
    }

    async fn refresh(&self, name: String) -> Outcome<()> {
        let patch = Patch::Merge(json!({"metadata": {"annotations": {REFRESH: "normal"}}}));
        let key = ObjectKey::new(HOME, name);
        self.client.patch(&self.apps, &key, "", &patch, &WriteOptions::default()).await?;
        Ok(())
    }
}

fn name(app: usize) -> String {
    format!("app-{app:04}")
}

fn is_well(app: &Value) -> bool {
    let status = &app["status"];
    status["sync"]["status"] == "Synced" && status["health"]["status"] == "Healthy"
}

fn is_looked_at(app: &Value) -> bool {
    app["metadata"]["annotations"][REFRESH].is_null()
}

async fn first(context: &mut Context, site: &Site, repository: &Repository, count: usize) -> Outcome<()> {
    let namespace = json!({"metadata": {"name": SITES}}).to_string();
    site.client.create(&builtin::NAMESPACE, "", namespace, &WriteOptions::default()).await?;
    let url = repository.url();
    let start = Instant::now();
    let (client, apps) = (site.client.clone(), site.apps.clone());
    each(AT_ONCE, count, move |app| {
        let (client, apps, url) = (client.clone(), apps.clone(), url.clone());
        async move {
            let object = json!({
                "metadata": {"name": name(app), "namespace": HOME},
                "spec": {
                    "project": "default",
                    "source": {"repoURL": url, "path": Repository::path(app), "targetRevision": "main"},
                    "destination": {"server": "https://kubernetes.default.svc", "namespace": SITES},
                    "syncPolicy": {"automated": {"prune": true, "selfHeal": true}},
                },
            });
            client.create(&apps, HOME, object.to_string(), &WriteOptions::default()).await?;
            Ok(())
        }
    })
    .await?;
    let took = site.until(count, start, is_well).await?;
    let detail =
        format!("{count} Applications of 5 objects, from the first create to all Synced and Healthy");
    context.report.figure("first_sync_s", took.as_secs_f64(), "s", detail);
    Ok(())
}

/// Revisions of everything that Applications hold.
async fn revisions(site: &Site) -> Outcome<BTreeMap<String, String>> {
    let types = [
        &builtin::CONFIG_MAP,
        &builtin::SECRET,
        &builtin::SERVICE_ACCOUNT,
        &builtin::SERVICE,
        &builtin::DEPLOYMENT,
    ];
    let mut all = BTreeMap::new();
    for resource in types {
        for object in site.client.list(resource, SITES, &ListOptions::default()).await?.items {
            all.insert(format!("{} {}", resource.id, object.key()), object.meta().resource_version.clone());
        }
    }
    Ok(all)
}

async fn noop(context: &mut Context, site: &Site, count: usize) -> Outcome<()> {
    let before = revisions(site).await?;
    let status: BTreeMap<String, Value> = statuses(site).await?;
    let start = Instant::now();
    let (client, apps) = (site.client.clone(), site.apps.clone());
    each(AT_ONCE, count, move |app| {
        let patch = Patch::Merge(json!({"metadata": {"annotations": {REFRESH: "normal"}}}));
        let (client, apps) = (client.clone(), apps.clone());
        async move {
            let key = ObjectKey::new(HOME, name(app));
            client.patch(&apps, &key, "", &patch, &WriteOptions::default()).await?;
            Ok(())
        }
    })
    .await?;
    let took = site.until(count, start, is_looked_at).await?;
    let detail = format!("{count} Applications, asked one by one by annotation, until each was answered");
    context.report.figure("noop_pass_s", took.as_secs_f64(), "s", detail);
    let after = revisions(site).await?;
    let objects = after.iter().filter(|(key, revision)| before.get(*key) != Some(revision)).count();
    let now = statuses(site).await?;
    let changed = now.iter().filter(|(name, of)| status.get(*name) != Some(of)).count();
    let detail = "objects and statuses that are other ones after it".to_owned();
    context.report.figure("noop_pass_writes", (objects + changed) as f64, "", detail);
    Ok(())
}

async fn statuses(site: &Site) -> Outcome<BTreeMap<String, Value>> {
    Ok(site.apps().await?.into_iter().map(|(name, app)| (name, app["status"].clone())).collect())
}

async fn commit(context: &mut Context, site: &Site, repository: &Repository, count: usize) -> Outcome<()> {
    let samples = context.size(10, 2);
    let mut times = Vec::new();
    for sample in 0..samples {
        let app = (scatter(sample as u64) % count as u64) as usize;
        let value = format!("c{sample}");
        repository.write(app, &value)?;
        let revision = repository.commit("a change")?;
        let start = Instant::now();
        site.refresh(name(app)).await?;
        let key = ObjectKey::new(HOME, name(app));
        let mut looks = tokio::time::interval(LOOK_CLOSELY);
        loop {
            looks.tick().await;
            let found = site.client.get(&site.apps, &key, &Default::default()).await?.to_value()?;
            if is_well(&found) && found["status"]["sync"]["revision"] == *revision {
                break;
            }
            if start.elapsed() > LIMIT {
                return Err(format!("{found:#}").into());
            }
        }
        let key = ObjectKey::new(SITES, name(app));
        let map = site.client.get(&builtin::CONFIG_MAP, &key, &Default::default()).await?;
        if map.to_value()?["data"]["value"] != *value {
            return Err("the commit is said to be synced, and is not".into());
        }
        times.push(start.elapsed());
    }
    let load = summary(times, Duration::from_secs(1));
    let detail =
        format!("{samples} commits, worst; p50 {} ms; others are not rendered", number(ms(load.p50)));
    context.report.figure("one_commit_ms", ms(load.p99), "ms", detail);
    Ok(())
}

async fn heal(context: &mut Context, site: &Site, count: usize) -> Outcome<()> {
    let samples = context.size(200, 10);
    let mut times = Vec::new();
    for sample in 0..samples {
        let app = (scatter(sample as u64 + 1_000) % count as u64) as usize;
        let types = [&builtin::CONFIG_MAP, &builtin::SECRET, &builtin::SERVICE, &builtin::DEPLOYMENT];
        let resource = types[sample % types.len()];
        let key = ObjectKey::new(SITES, name(app));
        let old = site.client.get(resource, &key, &Default::default()).await?.meta().uid.clone();
        let start = Instant::now();
        site.client.delete(resource, &key, &DeleteOptions::default()).await?;
        let mut looks = tokio::time::interval(LOOK_CLOSELY);
        loop {
            looks.tick().await;
            match site.client.get(resource, &key, &Default::default()).await {
                Ok(found) if found.meta().uid != old => break,
                _ if start.elapsed() > LIMIT => return Err(format!("{key} does not come back").into()),
                _ => {}
            }
        }
        times.push(start.elapsed());
    }
    let load = summary(times, Duration::from_secs(1));
    let detail = format!("{samples} objects deleted, p50 {} ms", number(ms(load.p50)));
    context.report.figure("heal_p99_ms", ms(load.p99), "ms", detail);
    Ok(())
}
