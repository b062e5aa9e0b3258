//! Controllers that are killed in the middle of their work, again and again: nothing is lost, and nothing is done twice.
//! On real processes, with SIGKILL. `STRATA_KILL_KEYS` says how many keys the first of them has (10,000 by hand).

#![allow(clippy::unwrap_used, reason = "a test ends at the first surprise")]

use std::collections::BTreeMap;
use std::time::Duration;

use futures_util::StreamExt as _;
use futures_util::stream;
use rustix::process::Signal;
use serde_json::{Value, json};
use strata_client::client::Client;
use strata_client::event::{Event, WatchOptions};
use strata_client::kubeconfig::Kubeconfig;
use strata_client::options::{ListOptions, Patch, WriteOptions};
use strata_client::watch::{Watch, Watches};
use strata_model::object::ObjectKey;
use strata_model::resource::ResourceType;
use strata_model::resource::builtin::{DEPLOYMENT, JOB, POD, REPLICA_SET};
use strata_tests::platform::{Platform, signal};
use strata_tests::wait;
use tokio::time::{interval, timeout};

const LIMIT: Duration = Duration::from_secs(300);
/// Keys, where nobody says how many.
const KEYS: usize = 600;
/// How often the controller dies meanwhile.
const DEATHS: usize = 4;
/// Requests under way at the same time.
const AT_ONCE: usize = 32;

fn client(platform: &Platform) -> Client {
    let kubeconfig = Kubeconfig::load(&[platform.kubeconfig()]).unwrap();
    Client::new(&kubeconfig.client_config(None).unwrap()).unwrap()
}

fn options() -> WriteOptions {
    WriteOptions { field_manager: "test".to_owned(), ..WriteOptions::default() }
}

fn template(annotations: &Value) -> Value {
    json!({"metadata": {"labels": {"app": "work"}, "annotations": annotations},
        "spec": {"containers": [{"name": "c", "image": "i"}], "terminationGracePeriodSeconds": 0}})
}

async fn create(client: &Client, resource: &ResourceType, name: &str, spec: Value) {
    let object = json!({"apiVersion": resource.api_version(), "kind": resource.kind, "metadata": {"name": name}, "spec": spec});
    client.create(resource, "default", object.to_string(), &options()).await.unwrap();
}

/// Kills the process of a controller.
fn kill(platform: &Platform, home: &str) {
    let found = wait::until("a process to kill", LIMIT, || {
        let pids = platform.role_pids(&["controller", home]);
        pids.first().copied().ok_or(pids)
    });
    signal(found, Signal::KILL);
}

/// Every pod that was ever seen, by uid, with the name of its owner, and how many of them are gone.
#[derive(Default)]
struct Seen {
    pods: BTreeMap<String, String>,
    deleted: usize,
}

impl Seen {
    async fn next(&mut self, watch: &mut Watch) {
        match timeout(LIMIT, watch.next()).await.expect("another pod").expect("the watch goes on") {
            Event::Initial(pod) | Event::Applied(pod, _) => {
                let meta = pod.meta();
                let owner = meta.controller().map(|owner| owner.name.clone()).unwrap_or_default();
                self.pods.insert(meta.uid.clone(), owner);
            }
            Event::Deleted(..) => self.deleted += 1,
            Event::Failed(error) => panic!("{error}"),
            _ => {}
        }
    }

    /// Takes what is seen until `holds`, and kills a controller each time that another part of the way is gone.
    async fn follow(
        &mut self,
        watch: &mut Watch,
        (platform, home): (&Platform, &str),
        whole: usize,
        way: impl Fn(&Self) -> usize,
    ) {
        let mut deaths = 0;
        while way(self) < whole {
            self.next(watch).await;
            if deaths < DEATHS && way(self) * (DEATHS + 1) > whole * (deaths + 1) {
                deaths += 1;
                kill(platform, home);
            }
        }
        assert_eq!(deaths, DEATHS, "it was killed in the middle");
    }
}

fn pods(client: &Client) -> Watch {
    Watches::new(client.clone()).open(&POD, WatchOptions::default())
}

/// Waits until all objects of a type say so.
async fn all(client: &Client, resource: &ResourceType, what: &str, holds: impl Fn(&Value) -> bool) {
    let mut look = interval(Duration::from_millis(200));
    let wait = async {
        loop {
            look.tick().await;
            // While a controller comes back its server does not care; a page is enough, one fault is enough.
            let mut options = ListOptions { limit: 500, ..ListOptions::default() };
            let right = loop {
                let list = client.list(resource, "default", &options).await.unwrap();
                if !list.items.iter().all(|object| holds(&object.to_value().unwrap())) {
                    break false;
                }
                if list.continue_token.is_empty() {
                    break true;
                }
                options.continue_token = list.continue_token;
            };
            if right {
                return;
            }
        }
    };
    timeout(LIMIT, wait).await.unwrap_or_else(|_| panic!("never: {what}"));
}

#[tokio::test(flavor = "multi_thread")]
async fn of_many_keys_none_is_lost_and_none_is_done_twice() {
    let keys = std::env::var("STRATA_KILL_KEYS").ok().and_then(|n| n.parse().ok()).unwrap_or(KEYS);
    let platform = Platform::start(&["--runtime", "simulated", "--controllers", "replicaset"]);
    let client = client(&platform);
    let mut watch = pods(&client);
    let (maker, mut seen) = (client.clone(), Seen::default());
    let made = tokio::spawn(async move {
        let each = stream::iter(0..keys).for_each_concurrent(AT_ONCE, |n| {
            let (client, name) = (maker.clone(), format!("key-{n}"));
            async move {
                let labels = json!({"app": "work", "key": name});
                let mut template = template(&json!({}));
                template["metadata"]["labels"] = labels.clone();
                let spec = json!({"replicas": 1, "selector": {"matchLabels": labels}, "template": template});
                create(&client, &REPLICA_SET, &name, spec).await;
            }
        });
        each.await;
    });
    seen.follow(&mut watch, (&platform, "replicaset"), keys, |seen| seen.pods.len()).await;
    made.await.unwrap();
    all(&client, &REPLICA_SET, "every set says that it has its pod", |set| set["status"]["replicas"] == 1)
        .await;
    // One more death when all is done: whoever comes finds nothing to do.
    kill(&platform, "replicaset");
    wait::until("the queue of the new controller to be empty", LIMIT, || {
        let said = platform.strata(&["queue", "replicaset", "-o", "json"]);
        let queue: Value = serde_json::from_str(&said.out).unwrap_or_default();
        let idle = queue["leads"] == true
            && queue["keys"].as_array().is_some_and(Vec::is_empty)
            && queue["adds"].as_u64() >= Some(keys as u64);
        if idle { Ok(()) } else { Err(said.err) }
    });
    let mut by_owner: BTreeMap<&str, usize> = BTreeMap::new();
    seen.pods.values().for_each(|owner| *by_owner.entry(owner).or_default() += 1);
    assert_eq!((by_owner.len(), seen.pods.len(), seen.deleted), (keys, keys, 0), "one pod a set, ever");
    let list =
        client.list(&POD, "default", &ListOptions { limit: 1, ..ListOptions::default() }).await.unwrap();
    let left = usize::try_from(list.remaining).unwrap();
    assert_eq!(left + list.items.len(), keys);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_scale_down_in_the_middle_of_which_its_controllers_die_ends_where_it_should() {
    let platform = Platform::start(&["--runtime", "simulated"]);
    let client = client(&platform);
    let mut watch = pods(&client);
    let spec = json!({"replicas": 120, "selector": {"matchLabels": {"app": "work"}}, "template": template(&json!({}))});
    create(&client, &DEPLOYMENT, "work", spec).await;
    let available = |count: i64| move |set: &Value| set["status"]["availableReplicas"] == count;
    all(&client, &DEPLOYMENT, "all pods are available", available(120)).await;
    let mut seen = Seen::default();
    while seen.pods.len() < 120 {
        seen.next(&mut watch).await;
    }
    let key = ObjectKey::new("default", "work");
    let patch = Patch::Merge(json!({"spec": {"replicas": 5}}));
    client.patch(&DEPLOYMENT, &key, "", &patch, &options()).await.unwrap();
    seen.follow(&mut watch, (&platform, "replicaset"), 115, |seen| seen.deleted).await;
    all(&client, &DEPLOYMENT, "what is left is available", available(5)).await;
    assert_eq!((seen.pods.len(), seen.deleted), (120, 115), "none was made, and none too many deleted");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_job_in_the_middle_of_which_its_controller_dies_counts_each_pod_once() {
    const COMPLETIONS: usize = 60;
    let platform = Platform::start(&["--runtime", "simulated"]);
    let client = client(&platform);
    let mut watch = pods(&client);
    let ends = json!({"strata.dev/simulate-exit": "0"});
    let mut template = template(&ends);
    template["spec"]["restartPolicy"] = json!("Never");
    let spec = json!({"completions": COMPLETIONS, "parallelism": 6, "template": template});
    create(&client, &JOB, "work", spec).await;
    let mut seen = Seen::default();
    seen.follow(&mut watch, (&platform, "controllers"), COMPLETIONS, |seen| seen.pods.len()).await;
    all(&client, &JOB, "the job is complete", |job| {
        let conditions = job["status"]["conditions"].as_array().cloned().unwrap_or_default();
        conditions.iter().any(|c| c["type"] == "Complete" && c["status"] == "True")
    })
    .await;
    all(&client, &JOB, "each is counted once", |job| job["status"]["succeeded"] == COMPLETIONS).await;
    assert_eq!(seen.pods.len(), COMPLETIONS, "no pod was made twice");
}
