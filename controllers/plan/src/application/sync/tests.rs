//! Syncs from beginning to end against a cluster in memory: in which order things happen, what stops them, and that every
//! one of them comes to rest, also where the process dies after each step.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::{Value, json};
use strata_model::resource::Registry;

use super::*;
use crate::application::compare::Seen;
use crate::application::desired::{Wish, wish};
use crate::application::difference::Verdict;
use crate::application::identity::ObjectId;
use crate::application::operation::Operation;
use crate::application::rendered::{Manifest, Rendered};
use crate::testing::at;

/// Most steps until a sync must be over.
const MOST_STEPS: usize = 100;

/// A cluster: objects as they are, what it refuses, and what was done to it.
#[derive(Clone, Default)]
struct Cluster {
    live: BTreeMap<ObjectId, Value>,
    refuses: BTreeSet<String>,
    /// Objects of which no controller says that they are well.
    ill: BTreeSet<String>,
    log: Vec<String>,
    count: u64,
}

impl Cluster {
    fn put(&mut self, mut object: Value) {
        self.count += 1;
        object["metadata"]["uid"] = json!(format!("uid-{}", self.count));
        object["metadata"]["resourceVersion"] = json!(self.count.to_string());
        let name = object["metadata"]["name"].as_str().unwrap_or_default().to_owned();
        let done = if self.ill.contains(&name) { "Failed" } else { "Complete" };
        if object["kind"] == "Job" {
            object["status"] = json!({"conditions": [{"type": done, "status": "True"}]});
        }
        self.live.insert(ObjectId::of_value(&object), object);
    }

    fn get(&self, id: &ObjectId) -> Option<Arc<Object>> {
        self.live.get(id).map(|object| Arc::new(Object::from_value(object).unwrap()))
    }

    fn items(&self, wish: &Wish) -> Vec<Item> {
        let mut items = Vec::new();
        for desired in &wish.objects {
            let live = self.get(&desired.id);
            let same = |o: &Arc<Object>| o.to_value().unwrap()["data"] == desired.object["data"];
            let verdict = live.as_ref().map(|o| match same(o) {
                true => Verdict::Same,
                false => Verdict::Differs(vec![".data".to_owned()]),
            });
            let seen = live.as_ref().map(|o| Seen::of(o.to_value().unwrap())).unwrap_or_default();
            let (id, resource) = (desired.id.clone(), desired.resource.clone());
            items.push(Item {
                id,
                desired: Some(Arc::clone(desired)),
                resource,
                live,
                seen,
                verdict,
                holder: None,
            });
        }
        for id in self.live.keys().filter(|id| wish.objects.iter().all(|d| d.id != **id)) {
            let live = self.get(id);
            let value = live.as_ref().map(|o| o.to_value().unwrap()).unwrap_or_default();
            let types = Registry::builtin();
            let api = value["apiVersion"].as_str().unwrap_or_default();
            let resource = types.by_api_version(api, &id.kind).cloned();
            items.push(Item { id: id.clone(), resource, live, seen: Seen::of(value), ..Item::default() });
        }
        items
    }

    fn perform(&mut self, job: &Job) -> Result<String, String> {
        match &job.work {
            Work::Apply(desired, _) => {
                let name = desired.id.name.clone();
                self.log.push(format!("apply {name}"));
                if self.refuses.contains(&name) {
                    return Err(format!("{name} is refused"));
                }
                self.put(desired.object.clone());
                Ok("applied".to_owned())
            }
            Work::Delete(_) => {
                let live = job.live.clone().expect("what is deleted is there");
                self.log.push(format!("delete {}", live.meta().name));
                self.live.remove(&ObjectId::of(&live));
                Ok("pruned".to_owned())
            }
        }
    }
}

fn map(name: &str, annotations: Value) -> Value {
    json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name, "annotations": annotations},
        "data": {"a": "1"}})
}

fn hook(name: &str, phase: &str, policy: &str) -> Value {
    let annotations =
        json!({"argocd.argoproj.io/hook": phase, "argocd.argoproj.io/hook-delete-policy": policy});
    json!({"apiVersion": "batch/v1", "kind": "Job", "metadata": {"name": name, "annotations": annotations}})
}

fn wave(name: &str, wave: &str) -> Value {
    map(name, json!({"argocd.argoproj.io/sync-wave": wave}))
}

struct Scenario {
    wish: Wish,
    spec: Spec,
    sync: Value,
}

impl Scenario {
    fn of(objects: Vec<Value>) -> Self {
        let one = |object| Manifest { object, file: "a.yaml".into(), line: 1 };
        let manifests = Arc::new(objects.into_iter().map(one).collect());
        let render = Rendered { revision: "abcdef0123".to_owned(), manifests, ..Rendered::default() };
        let app = ObjectKey::new("argocd", "app");
        let wish = wish(&app, "n", &[Arc::new(render)], &Registry::builtin());
        Self { wish, spec: Spec::default(), sync: json!({"prune": true}) }
    }

    fn begin(&self) -> OperationState {
        let operation = Operation {
            sync: Some(serde_json::from_value(self.sync.clone()).unwrap()),
            retry: serde_json::from_value(self.sync["retry"].clone()).unwrap(),
            ..Operation::default()
        };
        let sync_result = Some(crate::application::status::SyncResult {
            revision: "abcdef0123".to_owned(),
            ..Default::default()
        });
        let phase = OperationPhase::Running;
        OperationState {
            operation,
            phase,
            sync_result,
            started_at: rfc3339(at(0)),
            ..OperationState::default()
        }
    }

    /// Runs to the end. With `forgetful`, the state is written down and read anew after every single job.
    fn run(&self, cluster: &mut Cluster, forgetful: bool) -> OperationState {
        let mut state = self.begin();
        let mut now = at(0);
        for _ in 0..MOST_STEPS {
            if forgetful {
                state = serde_json::from_value(serde_json::to_value(&state).unwrap()).unwrap();
            }
            let items = cluster.items(&self.wish);
            let seen = cluster.clone();
            let live = |resource: &ResourceType, key: &ObjectKey| {
                let found = seen.live.keys().find(|id| id.kind == resource.kind && id.key() == *key);
                found.and_then(|id| seen.get(id))
            };
            let app = ObjectKey::new("argocd", "app");
            let (spec, faults) = (&self.spec, self.wish.faults.as_slice());
            let input = Input { app: &app, spec, max_prune: None, items: &items, faults, live: &live, now };
            match step(&mut state, &input) {
                Step::Over => return state,
                Step::Wait(Some(later)) => now = later,
                Step::Wait(None) => panic!("waits for ever: {}; {:?}", state.message, cluster.log),
                Step::Run(jobs) => {
                    let most = if forgetful { 1 } else { jobs.len() };
                    for job in jobs.iter().take(most) {
                        let outcome = cluster.perform(job);
                        record(&mut state, job, outcome);
                    }
                }
            }
        }
        panic!("no end: {:?}", cluster.log);
    }
}

/// One row: what is wished, what is there, what is refused or ill; then the order of deeds, the phase, words of the message.
struct Row {
    what: &'static str,
    wish: Vec<Value>,
    there: Vec<Value>,
    refuses: &'static [&'static str],
    ill: &'static [&'static str],
    log: &'static [&'static str],
    phase: OperationPhase,
    says: &'static str,
}

/// A sync that is through, where nothing else is said.
fn usual() -> Row {
    Row {
        what: "",
        wish: Vec::new(),
        there: Vec::new(),
        refuses: &[],
        ill: &[],
        log: &[],
        phase: OperationPhase::Succeeded,
        says: "successfully synced",
    }
}

fn none() -> Value {
    json!({})
}

fn that_succeed() -> Vec<Row> {
    vec![
        Row {
            what: "waves in order, and pruning last",
            wish: vec![wave("c", "2"), wave("a", "-1"), wave("b", "0")],
            there: vec![map("old", none())],
            log: &["apply a", "apply b", "apply c", "delete old"],
            ..usual()
        },
        Row {
            what: "nothing is done where nothing differs",
            wish: vec![map("a", none())],
            there: vec![map("a", none())],
            ..usual()
        },
        Row {
            what: "hooks before and after, cleared away as they say",
            wish: vec![
                map("a", none()),
                hook("pre", "PreSync", ""),
                hook("post", "PostSync", "HookSucceeded"),
            ],
            log: &["apply pre", "apply a", "apply post", "delete post"],
            ..usual()
        },
        Row {
            what: "a hook of an earlier sync goes before it is made anew",
            wish: vec![map("a", none()), hook("pre", "PreSync", "BeforeHookCreation")],
            there: vec![hook("pre", "PreSync", "BeforeHookCreation")],
            log: &["delete pre", "apply pre", "apply a"],
            ..usual()
        },
        Row {
            what: "what says so stays",
            wish: vec![map("a", none())],
            there: vec![map("old", json!({"argocd.argoproj.io/sync-options": "Prune=false"}))],
            log: &["apply a"],
            ..usual()
        },
    ]
}

fn that_fail() -> Vec<Row> {
    use OperationPhase::Failed;
    vec![
        Row {
            what: "a hook that fails stops it, and what is for failures runs",
            wish: vec![map("a", none()), hook("pre", "PreSync", ""), hook("fail", "SyncFail", "")],
            ill: &["pre"],
            log: &["apply pre", "apply fail"],
            phase: Failed,
            says: "pre is Degraded",
            ..usual()
        },
        Row {
            what: "what is refused does not keep its neighbours, but what comes later",
            wish: vec![map("a", none()), map("b", none()), wave("later", "1")],
            refuses: &["a"],
            log: &["apply a", "apply b"],
            phase: Failed,
            says: "a is refused",
            ..usual()
        },
        Row {
            what: "a fault in one manifest stops it before it begins",
            wish: vec![map("a", none()), map("b", json!({"argocd.argoproj.io/sync-wave": "soon"}))],
            phase: Failed,
            says: "a.yaml:1",
            ..usual()
        },
        Row {
            what: "a source without objects prunes nothing",
            there: vec![map("a", none())],
            phase: Failed,
            says: "no object any more",
            ..usual()
        },
    ]
}

#[test]
fn syncs_happen_in_order_and_come_to_rest() {
    for forgetful in [false, true] {
        for row in that_succeed().into_iter().chain(that_fail()) {
            let mut cluster = Cluster {
                refuses: row.refuses.iter().map(|n| (*n).to_owned()).collect(),
                ill: row.ill.iter().map(|n| (*n).to_owned()).collect(),
                ..Cluster::default()
            };
            for mut object in row.there {
                object["metadata"]["namespace"] = json!("n");
                cluster.put(object);
            }
            let state = Scenario::of(row.wish).run(&mut cluster, forgetful);
            assert_eq!(cluster.log, row.log, "{}", row.what);
            assert_eq!(state.phase, row.phase, "{}: {}", row.what, state.message);
            assert!(state.message.contains(row.says), "{}: {}", row.what, state.message);
        }
    }
}

#[test]
fn a_sync_that_failed_is_tried_again_as_often_as_it_may_be() {
    let mut scenario = Scenario::of(vec![map("a", json!({}))]);
    scenario.sync["retry"] = json!({"limit": 2});
    let mut cluster = Cluster { refuses: BTreeSet::from(["a".to_owned()]), ..Cluster::default() };
    let state = scenario.run(&mut cluster, false);
    assert_eq!((state.phase, state.retry_count), (OperationPhase::Failed, 2));
    assert_eq!(cluster.log, ["apply a"; 3]);
}

#[test]
fn only_what_is_named_is_synced_and_hooks_are_left() {
    let mut scenario =
        Scenario::of(vec![map("a", json!({})), map("b", json!({})), hook("pre", "PreSync", "")]);
    scenario.sync["resources"] = json!([{"kind": "ConfigMap", "name": "b"}]);
    let mut cluster = Cluster::default();
    let state = scenario.run(&mut cluster, true);
    assert_eq!((state.phase, cluster.log), (OperationPhase::Succeeded, vec!["apply b".to_owned()]));
}
