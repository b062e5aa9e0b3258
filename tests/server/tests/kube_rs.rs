//! The `kube` crate against the server in a test: typed and dynamic access, apply, watcher, reflector, a derived
//! definition, a controller with a finalizer, and waiting for conditions.

#![allow(clippy::unwrap_used, reason = "a test ends at the first surprise")]

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use futures_util::{StreamExt as _, TryStreamExt as _};
use k8s_openapi::api::core::v1::ConfigMap;
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kube::api::{Api, DeleteParams, DynamicObject, ListParams, ObjectMeta, Patch, PatchParams, PostParams};
use kube::config::{KubeConfigOptions, Kubeconfig};
use kube::core::GroupVersionKind;
use kube::runtime::controller::{Action, Controller};
use kube::runtime::finalizer::{Event, finalizer};
use kube::runtime::wait::{await_condition, conditions};
use kube::runtime::{WatchStreamExt as _, reflector, watcher};
use kube::{Client, Config, CustomResource, CustomResourceExt as _, ResourceExt as _};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::json;
use strata_testing::TestServer;
use tokio::time::timeout;

const LIMIT: Duration = Duration::from_secs(30);

#[derive(CustomResource, Clone, Debug, Deserialize, Serialize, JsonSchema)]
#[kube(group = "example.com", version = "v1", kind = "Garden", namespaced, status = "GardenStatus")]
struct GardenSpec {
    beds: u32,
}

#[derive(Clone, Debug, Default, Deserialize, Serialize, JsonSchema)]
struct GardenStatus {
    planted: u32,
}

async fn client(server: &TestServer) -> Client {
    let kubeconfig = Kubeconfig::from_yaml(server.kubeconfig()).unwrap();
    let config = Config::from_custom_kubeconfig(kubeconfig, &KubeConfigOptions::default()).await.unwrap();
    Client::try_from(config).unwrap()
}

fn map(name: &str, value: &str) -> ConfigMap {
    ConfigMap {
        metadata: ObjectMeta { name: Some(name.to_owned()), ..ObjectMeta::default() },
        data: Some([("k".to_owned(), value.to_owned())].into()),
        ..ConfigMap::default()
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn typed_and_dynamic_objects_are_made_changed_and_taken_away() {
    let server = TestServer::start().await.unwrap();
    let client = client(&server).await;
    let maps: Api<ConfigMap> = Api::namespaced(client.clone(), "default");
    let made = maps.create(&PostParams::default(), &map("a", "1")).await.unwrap();
    let patched =
        maps.patch("a", &PatchParams::default(), &Patch::Merge(json!({"data": {"k": "2"}}))).await.unwrap();
    assert_eq!(patched.data.unwrap()["k"], "2");
    let stale = maps.replace("a", &PostParams::default(), &made).await.unwrap_err();
    assert!(matches!(&stale, kube::Error::Api(status) if status.is_conflict()), "{stale}");

    let apply = |manager: &str| PatchParams::apply(manager);
    let wish =
        json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "b"}, "data": {"k": "1"}});
    let first = maps.patch("b", &apply("one"), &Patch::Apply(&wish)).await.unwrap();
    let again = maps.patch("b", &apply("one"), &Patch::Apply(&wish)).await.unwrap();
    assert_eq!(first.resource_version(), again.resource_version());
    let other =
        json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "b"}, "data": {"k": "9"}});
    assert!(maps.patch("b", &apply("two"), &Patch::Apply(&other)).await.is_err());
    maps.patch("b", &apply("two").force(), &Patch::Apply(&other)).await.unwrap();

    let gvk = GroupVersionKind::gvk("", "v1", "ConfigMap");
    let (resource, _) = kube::discovery::pinned_kind(&client, &gvk).await.unwrap();
    let dynamic: Api<DynamicObject> = Api::namespaced_with(client.clone(), "default", &resource);
    assert_eq!(dynamic.get("b").await.unwrap().data["data"]["k"], "9");
    let listed = dynamic.list(&ListParams::default().limit(1)).await.unwrap();
    assert_eq!((listed.items.len(), listed.metadata.continue_.is_some()), (1, true));
    maps.delete("a", &DeleteParams::default()).await.unwrap();
    assert!(maps.get_opt("a").await.unwrap().is_none());
    server.stop().await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn watchers_and_reflectors_see_what_is_there_and_what_comes() {
    let server = TestServer::start().await.unwrap();
    let maps: Api<ConfigMap> = Api::namespaced(client(&server).await, "default");
    maps.create(&PostParams::default(), &map("before", "1")).await.unwrap();
    for config in [watcher::Config::default(), watcher::Config::default().streaming_lists()] {
        let (reader, writer) = reflector::store();
        let mut events =
            reflector(writer, watcher(maps.clone(), config)).default_backoff().applied_objects().boxed();
        let seen = async {
            let mut names = Vec::new();
            while let Some(object) = events.try_next().await.unwrap() {
                names.push(object.name_any());
                if names.contains(&"after".to_owned()) {
                    return names;
                }
                if object.name_any() == "before" {
                    maps.create(&PostParams::default(), &map("after", "1")).await.unwrap();
                }
            }
            names
        };
        let names = timeout(LIMIT, seen).await.unwrap();
        assert!(names.contains(&"before".to_owned()), "{names:?}");
        assert!(reader.state().iter().any(|object| object.name_any() == "after"));
        maps.delete("after", &DeleteParams::default()).await.unwrap();
    }
    server.stop().await.unwrap();
}

struct Gardener {
    client: Client,
    cleaned: AtomicUsize,
}

async fn reconcile(
    garden: Arc<Garden>,
    gardener: Arc<Gardener>,
) -> Result<Action, kube::runtime::finalizer::Error<kube::Error>> {
    let gardens: Api<Garden> = Api::namespaced(gardener.client.clone(), &garden.namespace().unwrap());
    let gardens = &gardens;
    finalizer(gardens, "example.com/tidy", garden, |event| async move {
        match event {
            Event::Apply(garden) => {
                let status = json!({"status": {"planted": garden.spec.beds}});
                gardens
                    .patch_status(&garden.name_any(), &PatchParams::default(), &Patch::Merge(&status))
                    .await?;
            }
            Event::Cleanup(_) => drop(gardener.cleaned.fetch_add(1, Ordering::Relaxed)),
        }
        Ok(Action::await_change())
    })
    .await
}

#[tokio::test(flavor = "multi_thread")]
async fn a_controller_of_a_derived_type_holds_it_and_cleans_up_behind_it() {
    let server = TestServer::start().await.unwrap();
    let client = client(&server).await;
    let definitions: Api<CustomResourceDefinition> = Api::all(client.clone());
    definitions.create(&PostParams::default(), &Garden::crd()).await.unwrap();
    let established = await_condition(definitions, Garden::crd_name(), conditions::is_crd_established());
    timeout(LIMIT, established).await.unwrap().unwrap();

    let gardens: Api<Garden> = Api::namespaced(client.clone(), "default");
    let gardener = Arc::new(Gardener { client: client.clone(), cleaned: AtomicUsize::new(0) });
    let controller = Controller::new(gardens.clone(), watcher::Config::default())
        .run(reconcile, |_, _, _| Action::requeue(Duration::from_millis(100)), Arc::clone(&gardener))
        .for_each(|_| async {});
    let controller = tokio::spawn(controller);

    gardens.create(&PostParams::default(), &Garden::new("herbs", GardenSpec { beds: 3 })).await.unwrap();
    let planted = |wanted: u32| {
        move |garden: Option<&Garden>| {
            garden.and_then(|g| g.status.as_ref()).is_some_and(|s| s.planted == wanted)
        }
    };
    timeout(LIMIT, await_condition(gardens.clone(), "herbs", planted(3))).await.unwrap().unwrap();
    let more = json!({"spec": {"beds": 5}});
    gardens.patch("herbs", &PatchParams::default(), &Patch::Merge(&more)).await.unwrap();
    timeout(LIMIT, await_condition(gardens.clone(), "herbs", planted(5))).await.unwrap().unwrap();
    let uid = gardens.get("herbs").await.unwrap().uid().unwrap();
    gardens.delete("herbs", &DeleteParams::default()).await.unwrap();
    timeout(LIMIT, await_condition(gardens, "herbs", conditions::is_deleted(&uid))).await.unwrap().unwrap();
    assert_eq!(gardener.cleaned.load(Ordering::Relaxed), 1);
    controller.abort();
    server.stop().await.unwrap();
}
