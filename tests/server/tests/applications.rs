//! The outer loop against a real API server, with a repository that is a value of the test: what is wished for comes
//! into being, is put back, is pruned within bounds, and every fault is a condition in words.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use serde_json::{Value, json};
use strata_client::client::Client;
use strata_client::error::Class;
use strata_client::options::{DeleteOptions, GetOptions, Patch, WriteOptions};
use strata_model::merge;
use strata_model::object::ObjectKey;
use strata_model::resource::{ResourceType, builtin};
use strata_plan::application::rendered::{Fault, Manifest, RenderError, Rendered};
use strata_plan::application::types::{APPLICATION, APPLICATION_SET, IN_CLUSTER, NAMESPACE, REFRESH};
use strata_runtime::run::Options;
use strata_stack::application::process;
use strata_stack::application::repositories::{Ask, Fresh, Listed, Repositories};
use strata_testing::TestServer;

/// Most time anything may take to become true.
const LIMIT: Duration = Duration::from_secs(60);
/// Between looks.
const LOOK: Duration = Duration::from_millis(20);

/// The number of a commit, and what it renders to or why it does not.
type Commit = (u32, Result<Vec<Value>, String>);

/// What a repository says, by path.
#[derive(Default)]
struct Repository(Mutex<BTreeMap<String, Commit>>);

impl Repository {
    fn commit(&self, path: &str, objects: Result<Vec<Value>, &str>) {
        let mut paths = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let (count, said) = paths.entry(path.to_owned()).or_insert((0, Ok(Vec::new())));
        *count += 1;
        *said = objects.map_err(str::to_owned);
    }
}

impl Repositories for Repository {
    async fn render(&self, ask: &Ask, _fresh: Fresh) -> Result<Vec<Rendered>, RenderError> {
        let path = &ask.sources[0].path;
        let paths = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let missing = || RenderError::new(Fault::Missing, format!("there is no {path}"));
        let (count, said) = paths.get(path).ok_or_else(missing)?;
        let objects = said.clone().map_err(|why| RenderError::new(Fault::Broken, why))?;
        let one = |object| Manifest { object, file: "all.yaml".into(), line: 1 };
        let manifests = Arc::new(objects.into_iter().map(one).collect());
        let (revision, key) = (format!("{count:040x}"), format!("{path}@{count}"));
        Ok(vec![Rendered { revision, key, manifests, ..Rendered::default() }])
    }

    async fn list(
        &self,
        _url: &str,
        _revision: &str,
        _fresh: Fresh,
        _chosen: impl Fn(&str) -> bool + Send + 'static,
    ) -> Result<Listed, RenderError> {
        let paths = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        Ok((paths.keys().cloned().collect(), Vec::new()))
    }
}

struct World {
    server: TestServer,
    repository: Arc<Repository>,
    _stop: tokio::sync::oneshot::Sender<()>,
}

impl World {
    async fn start() -> Self {
        let server = TestServer::start().await.expect("a server");
        let repository = Arc::new(Repository::default());
        let (stop, stopped) = tokio::sync::oneshot::channel::<()>();
        let ended = async move { drop(stopped.await) };
        let running = Box::pin(process::with(
            Arc::clone(&repository),
            None,
            server.client().clone(),
            Options::default(),
            ended,
        ));
        tokio::spawn(async move { running.await.expect("the controller runs") });
        let world = Self { server, repository, _stop: stop };
        world.until("the types are there", async |w| w.get(&builtin::NAMESPACE, "", NAMESPACE).await).await;
        world
    }

    fn client(&self) -> &Client {
        self.server.client()
    }

    async fn get(&self, resource: &ResourceType, namespace: &str, name: &str) -> Option<Value> {
        let key = ObjectKey::new(namespace, name);
        match self.client().get(resource, &key, &GetOptions::default()).await {
            Ok(object) => Some(object.to_value().expect("an object")),
            Err(error) if error.class() == Class::NotFound => None,
            Err(error) => panic!("{error}"),
        }
    }

    async fn until<T>(&self, what: &str, mut look: impl AsyncFnMut(&Self) -> Option<T>) -> T {
        let end = Instant::now() + LIMIT;
        let mut clock = tokio::time::interval(LOOK);
        loop {
            if let Some(found) = look(self).await {
                return found;
            }
            if Instant::now() >= end {
                let app = self.get(&APPLICATION, NAMESPACE, "site").await.unwrap_or_default();
                panic!("waited for: {what}; the Application is {app:#}");
            }
            clock.tick().await;
        }
    }

    async fn app(&self, more: Value) {
        let mut app = json!({
            "metadata": {"name": "site", "namespace": NAMESPACE},
            "spec": {
                "project": "default",
                "source": {"repoURL": "https://example.org/site.git", "path": "site"},
                "destination": {"server": IN_CLUSTER, "namespace": "site"},
                "syncPolicy": {"automated": {"prune": true, "selfHeal": true}, "syncOptions": ["CreateNamespace=true"]},
            },
        });
        merge::apply(&mut app, &more);
        let options = WriteOptions::default();
        let made = self.client().create(&APPLICATION, NAMESPACE, app.to_string(), &options).await;
        made.expect("an Application");
    }

    async fn patch(&self, resource: &ResourceType, namespace: &str, name: &str, patch: Value) {
        let key = ObjectKey::new(namespace, name);
        let options = WriteOptions { field_manager: "somebody".to_owned(), ..WriteOptions::default() };
        self.client().patch(resource, &key, "", &Patch::Merge(patch), &options).await.expect("a patch");
    }

    async fn delete(&self, resource: &ResourceType, namespace: &str, name: &str) {
        let key = ObjectKey::new(namespace, name);
        self.client().delete(resource, &key, &DeleteOptions::default()).await.expect("a deletion");
    }

    async fn refresh(&self) {
        let patch = json!({"metadata": {"annotations": {REFRESH: "normal"}}});
        self.patch(&APPLICATION, NAMESPACE, "site", patch).await;
    }

    /// Waits until the Application says these words.
    async fn until_words(&self, sync: &str, phase: &str) -> Value {
        self.until(&format!("{sync} and {phase}"), async |w| {
            let app = w.get(&APPLICATION, NAMESPACE, "site").await?;
            let status = &app["status"];
            let asked = app["metadata"]["annotations"][REFRESH].is_string();
            let said = status["sync"]["status"] == sync && status["operationState"]["phase"] == phase;
            (said && !asked).then_some(app)
        })
        .await
    }

    async fn until_condition(&self, type_: &str, words: &str) -> Value {
        self.until(&format!("{type_}: {words}"), async |w| {
            let app = w.get(&APPLICATION, NAMESPACE, "site").await?;
            let said = |c: &Value| c["type"] == type_ && c["message"].as_str().unwrap_or("").contains(words);
            app["status"]["conditions"].as_array()?.iter().any(said).then_some(app)
        })
        .await
    }
}

fn map(name: &str, value: &str) -> Value {
    json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name}, "data": {"value": value}})
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_the_source_says_comes_into_being_and_is_put_back() {
    let w = World::start().await;
    w.repository.commit("site", Ok(vec![map("a", "1"), map("b", "1")]));
    w.app(json!({})).await;
    let app = w.until_words("Synced", "Succeeded").await;
    assert_eq!(app["status"]["health"]["status"], "Healthy", "{app:#}");
    assert_eq!(app["status"]["history"].as_array().map(Vec::len), Some(1), "{app:#}");
    assert_eq!(w.get(&builtin::CONFIG_MAP, "site", "a").await.unwrap_or_default()["data"]["value"], "1");
    w.delete(&builtin::CONFIG_MAP, "site", "a").await;
    w.patch(&builtin::CONFIG_MAP, "site", "b", json!({"data": {"value": "other"}})).await;
    for name in ["a", "b"] {
        w.until("both are back", async |w| {
            let found = w.get(&builtin::CONFIG_MAP, "site", name).await?;
            (found["data"]["value"] == "1").then_some(())
        })
        .await;
    }
    // A commit changes one and drops one.
    w.repository.commit("site", Ok(vec![map("a", "2")]));
    w.refresh().await;
    w.until("the commit is synced", async |w| {
        let a = w.get(&builtin::CONFIG_MAP, "site", "a").await?;
        let gone = w.get(&builtin::CONFIG_MAP, "site", "b").await.is_none();
        (a["data"]["value"] == "2" && gone).then_some(())
    })
    .await;
    w.until("the deployment is remembered", async |w| {
        let app = w.get(&APPLICATION, NAMESPACE, "site").await?;
        (app["status"]["history"].as_array().map(Vec::len) == Some(2)).then_some(())
    })
    .await;
    w.until_words("Synced", "Succeeded").await;
    w.server.stop().await.expect("an orderly end");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_broken_commit_is_a_condition_and_the_last_good_one_is_held() {
    let w = World::start().await;
    w.repository.commit("site", Ok(vec![map("a", "1")]));
    w.app(json!({})).await;
    w.until_words("Synced", "Succeeded").await;
    w.repository.commit("site", Err("all.yaml:3: mapping values are not allowed here"));
    w.refresh().await;
    let app = w.until_condition("ComparisonError", "all.yaml:3").await;
    assert_eq!(app["status"]["sync"]["status"], "Unknown");
    w.delete(&builtin::CONFIG_MAP, "site", "a").await;
    w.until("it is back from the last good render", async |w| w.get(&builtin::CONFIG_MAP, "site", "a").await)
        .await;
    // Nothing is pruned by a source that is empty.
    w.repository.commit("site", Ok(Vec::new()));
    w.refresh().await;
    w.until_condition("SyncError", "no object any more").await;
    assert!(w.get(&builtin::CONFIG_MAP, "site", "a").await.is_some());
    w.server.stop().await.expect("an orderly end");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_commit_that_drops_too_much_stops_with_the_list() {
    let w = World::start().await;
    let all = || (0..9).map(|n| map(&format!("m{n}"), "1"));
    w.repository.commit("site", Ok(all().collect()));
    w.app(json!({})).await;
    w.until_words("Synced", "Succeeded").await;
    w.repository.commit("site", Ok(all().take(3).collect()));
    w.refresh().await;
    let app = w.until_condition("SyncError", "6 of 9 objects would be pruned").await;
    assert_eq!(app["status"]["operationState"]["phase"], "Failed");
    assert!(w.get(&builtin::CONFIG_MAP, "site", "m8").await.is_some());
    let allow = json!({"metadata": {"annotations": {"strata.dev/max-prune": "100%"}},
        "operation": {"sync": {"prune": true}}});
    w.patch(&APPLICATION, NAMESPACE, "site", allow).await;
    w.until("they are pruned", async |w| {
        w.get(&builtin::CONFIG_MAP, "site", "m8").await.is_none().then_some(())
    })
    .await;
    w.until_words("Synced", "Succeeded").await;
    w.server.stop().await.expect("an orderly end");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn waves_hooks_and_types_come_in_order_and_all_goes_with_the_application() {
    let w = World::start().await;
    let annotated = |mut object: Value, annotations: Value| {
        object["metadata"]["annotations"] = annotations;
        object
    };
    let definition = json!({"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
        "metadata": {"name": "things.example.com"}, "spec": {"group": "example.com", "scope": "Namespaced",
        "names": {"plural": "things", "kind": "Thing"}, "versions": [{"name": "v1", "served": true,
        "storage": true, "schema": {"openAPIV3Schema": {"type": "object",
        "x-kubernetes-preserve-unknown-fields": true}}}]}});
    let thing =
        json!({"apiVersion": "example.com/v1", "kind": "Thing", "metadata": {"name": "t"}, "spec": {}});
    w.repository.commit(
        "site",
        Ok(vec![
            annotated(map("last", "1"), json!({"argocd.argoproj.io/sync-wave": "2"})),
            annotated(thing, json!({"argocd.argoproj.io/sync-wave": "1"})),
            definition,
            annotated(map("before", "1"), json!({"argocd.argoproj.io/hook": "PreSync"})),
            annotated(
                map("after", "1"),
                json!({"argocd.argoproj.io/hook": "PostSync",
                "argocd.argoproj.io/hook-delete-policy": "HookSucceeded"}),
            ),
        ]),
    );
    w.app(json!({"metadata": {"finalizers": ["resources-finalizer.argocd.argoproj.io"]}})).await;
    let app = w.until_words("Synced", "Succeeded").await;
    let results = app["status"]["operationState"]["syncResult"]["resources"].as_array().cloned();
    let names: Vec<String> = results
        .unwrap_or_default()
        .iter()
        .map(|r| format!("{}/{}", r["kind"].as_str().unwrap_or(""), r["name"].as_str().unwrap_or("")))
        .collect();
    let expected = [
        "Namespace/site",
        "ConfigMap/before",
        "CustomResourceDefinition/things.example.com",
        "Thing/t",
        "ConfigMap/last",
        "ConfigMap/after",
    ];
    assert_eq!(names, expected, "{app:#}");
    let thing = ResourceType::custom("example.com", "v1", "things", "Thing");
    assert!(w.get(&thing, "site", "t").await.is_some());
    w.until("the hook is cleared away", async |w| {
        w.get(&builtin::CONFIG_MAP, "site", "after").await.is_none().then_some(())
    })
    .await;
    w.delete(&APPLICATION, NAMESPACE, "site").await;
    w.until("all is gone", async |w| {
        let app = w.get(&APPLICATION, NAMESPACE, "site").await;
        let last = w.get(&builtin::CONFIG_MAP, "site", "last").await;
        (app.is_none() && last.is_none()).then_some(())
    })
    .await;
    w.server.stop().await.expect("an orderly end");
}

/// Numbers that look random and are the same every time.
struct Dice(u64);

impl Dice {
    fn roll(&mut self, sides: usize) -> usize {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        usize::try_from(self.0 >> 33).unwrap_or_default() % sides
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn whatever_is_edited_and_deleted_the_platform_is_as_the_source_says_afterwards() {
    let w = World::start().await;
    let count = 12;
    let names: Vec<String> = (0..count).map(|n| format!("m{n}")).collect();
    w.repository.commit("site", Ok(names.iter().map(|name| map(name, "1")).collect()));
    w.app(json!({})).await;
    w.until_words("Synced", "Succeeded").await;
    let mut dice = Dice(7);
    let options = WriteOptions { field_manager: "vandal".to_owned(), ..WriteOptions::default() };
    for round in 0..300 {
        let key = ObjectKey::new("site", names[dice.roll(names.len())].clone());
        let patch = match dice.roll(4) {
            0 => None,
            1 => Some(json!({"data": {"value": format!("v{round}")}})),
            2 => Some(json!({"data": null})),
            _ => Some(json!({"metadata": {"annotations": {"argocd.argoproj.io/tracking-id": null}}})),
        };
        // What is gone at the moment cannot be edited.
        let done = match patch {
            None => {
                w.client().delete(&builtin::CONFIG_MAP, &key, &DeleteOptions::default()).await.map(|_| ())
            }
            Some(patch) => {
                let patch = Patch::Merge(patch);
                w.client().patch(&builtin::CONFIG_MAP, &key, "", &patch, &options).await.map(|_| ())
            }
        };
        if let Err(error) = done {
            assert!(matches!(error.class(), Class::NotFound | Class::Conflict), "{error}");
        }
    }
    w.until("all is as the source says", async |w| {
        for name in &names {
            let found = w.get(&builtin::CONFIG_MAP, "site", name).await?;
            let id = &found["metadata"]["annotations"]["argocd.argoproj.io/tracking-id"];
            if found["data"]["value"] != "1" || *id != format!("site:/ConfigMap:site/{name}") {
                return None;
            }
        }
        Some(())
    })
    .await;
    w.until_words("Synced", "Succeeded").await;
    w.server.stop().await.expect("an orderly end");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_set_makes_an_application_of_each_folder_and_takes_it_back() {
    let w = World::start().await;
    w.repository.commit("apps/one", Ok(vec![map("one", "1")]));
    w.repository.commit("apps/two", Ok(vec![map("two", "1")]));
    let set = json!({
        "metadata": {"name": "all", "namespace": NAMESPACE},
        "spec": {
            "generators": [{"git": {"repoURL": "https://example.org/site.git", "revision": "HEAD",
                "directories": [{"path": "apps/*"}]}}],
            "template": {
                "metadata": {"name": "{{path.basename}}"},
                "spec": {
                    "project": "default",
                    "source": {"repoURL": "https://example.org/site.git", "path": "{{path}}"},
                    "destination": {"server": IN_CLUSTER, "namespace": "{{path.basename}}"},
                    "syncPolicy": {"automated": {}, "syncOptions": ["CreateNamespace=true"]},
                },
            },
        },
    });
    let options = WriteOptions::default();
    w.client().create(&APPLICATION_SET, NAMESPACE, set.to_string(), &options).await.expect("a set");
    for name in ["one", "two"] {
        w.until("each folder is synced", async |w| w.get(&builtin::CONFIG_MAP, name, name).await).await;
    }
    w.delete(&APPLICATION_SET, NAMESPACE, "all").await;
    w.until("its Applications and their objects go with it", async |w| {
        let app = w.get(&APPLICATION, NAMESPACE, "one").await;
        let held = w.get(&builtin::CONFIG_MAP, "one", "one").await;
        (app.is_none() && held.is_none()).then_some(())
    })
    .await;
    w.server.stop().await.expect("an orderly end");
}
