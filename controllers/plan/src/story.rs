//! All controllers in one world, over whatever happens to it: deeds of people and failures at random, plans made from
//! old pictures and cut anywhere. Afterwards the world comes to rest as it was last asked to be. Test only.

use proptest::prelude::*;
use serde_json::{Value, json};
use strata_model::condition::rfc3339;
use strata_model::object::{Object, ObjectKey};
use strata_model::resource::builtin::{self, DEPLOYMENT, NAMESPACE, NODE, POD, REPLICA_SET};
use strata_model::resource::{Registry, ResourceType};

use crate::controller::{Controller, View};
use crate::deployment::Deployments;
use crate::garbage::Garbage;
use crate::namespace::Namespaces;
use crate::pods::{self, PodRef};
use crate::replicaset::ReplicaSets;
use crate::scheduler::Scheduler;
use crate::testing::{all, at, key, template};
use crate::world::World;

/// What happens between turns.
#[derive(Clone, Copy, Debug)]
enum Deed {
    Scale(i32),
    Image(u8),
    Pause(bool),
    Recreate(bool),
    KillPod(usize),
    FailPod(usize),
    RelabelPod(usize),
    DisownPod(usize),
    DropSet(usize),
    CutNode(bool),
    DropDeployment,
}

fn deeds() -> impl Strategy<Value = Deed> {
    prop_oneof![
        4 => (0i32..7).prop_map(Deed::Scale),
        4 => (0u8..4).prop_map(Deed::Image),
        1 => any::<bool>().prop_map(Deed::Pause),
        1 => any::<bool>().prop_map(Deed::Recreate),
        2 => (0usize..9).prop_map(Deed::KillPod),
        2 => (0usize..9).prop_map(Deed::FailPod),
        2 => (0usize..9).prop_map(Deed::RelabelPod),
        1 => (0usize..9).prop_map(Deed::DisownPod),
        1 => (0usize..4).prop_map(Deed::DropSet),
        1 => any::<bool>().prop_map(Deed::CutNode),
        1 => Just(Deed::DropDeployment),
    ]
}

struct Story {
    world: World,
    clock: i64,
    namespaces: Namespaces,
    garbage: Garbage,
}

impl Story {
    fn new() -> Self {
        let types = Registry::builtin();
        let mut world = World::new();
        let namespace = json!({"metadata": {"name": "n"}, "spec": {"finalizers": ["kubernetes"]}});
        world.create(&NAMESPACE, namespace, at(0)).unwrap();
        for name in ["a", "b"] {
            let node = json!({"metadata": {"name": name}, "status": {"allocatable": {"cpu": "4", "memory": "8Gi"},
                "conditions": [{"type": "Ready", "status": "True"}]}});
            world.create(&NODE, node, at(0)).unwrap();
        }
        let mut story = Self {
            world,
            clock: 0,
            namespaces: Namespaces::new(types.types().iter().cloned()),
            garbage: Garbage::new(types.types().iter().cloned()),
        };
        story.declare();
        story
    }

    fn declare(&mut self) {
        let deployment = json!({"metadata": {"name": "web", "namespace": "n"},
            "spec": {"replicas": 3, "selector": {"matchLabels": {"app": "web"}},
                "template": template("web", "i:0"), "revisionHistoryLimit": 2, "progressDeadlineSeconds": 600}});
        self.world.create(&DEPLOYMENT, deployment, at(self.clock)).unwrap();
    }

    fn nth(&self, resource: &ResourceType, n: usize) -> Option<ObjectKey> {
        let all = all(&self.world, resource);
        all.get(n % all.len().max(1)).map(|o| o.key())
    }

    fn change(&mut self, resource: &ResourceType, key: Option<ObjectKey>, patch: Value) {
        if let Some(key) = key {
            self.world.patch(resource, &key, &patch).unwrap();
        }
    }

    fn happen(&mut self, deed: Deed) {
        let web = View::get(&self.world, &DEPLOYMENT.id, &key("web")).map(|o| o.key());
        match deed {
            Deed::Scale(n) => self.change(&DEPLOYMENT, web, json!({"spec": {"replicas": n}})),
            Deed::Image(n) => {
                let patch = json!({"spec": {"template": template("web", &format!("i:{n}"))}});
                self.change(&DEPLOYMENT, web, patch);
            }
            Deed::Pause(yes) => self.change(&DEPLOYMENT, web, json!({"spec": {"paused": yes}})),
            Deed::Recreate(yes) => {
                let type_ = if yes { "Recreate" } else { "RollingUpdate" };
                self.change(&DEPLOYMENT, web, json!({"spec": {"strategy": {"type": type_}}}));
            }
            Deed::KillPod(n) => {
                self.nth(&POD, n).and_then(|k| self.world.vanish(&POD, &k));
            }
            Deed::FailPod(n) => self.change(&POD, self.nth(&POD, n), json!({"status": {"phase": "Failed"}})),
            Deed::RelabelPod(n) => {
                self.change(&POD, self.nth(&POD, n), json!({"metadata": {"labels": {"app": "debug"}}}));
            }
            Deed::DisownPod(n) => {
                self.change(&POD, self.nth(&POD, n), json!({"metadata": {"ownerReferences": null}}));
            }
            Deed::DropSet(n) => {
                self.nth(&REPLICA_SET, n).and_then(|k| self.world.vanish(&REPLICA_SET, &k));
            }
            Deed::CutNode(yes) => {
                let cut = json!({"spec": {"unschedulable": yes}});
                self.change(&NODE, Some(ObjectKey::new("", "a")), cut);
            }
            Deed::DropDeployment => {
                // And at once another one takes its name.
                self.world.vanish(&DEPLOYMENT, &key("web"));
                self.declare();
            }
        }
    }

    /// What nodes do: pods that are bound become ready, pods that are to go do.
    fn nodes(&mut self) -> usize {
        let mut moved = 0;
        for object in all(&self.world, &POD) {
            let pod = PodRef::new(object).unwrap();
            let place = pod.object().key();
            if pod.object().meta().is_deleting() {
                self.world.vanish(&POD, &place);
            } else if !pods::node_name(&pod).is_empty()
                && !pods::is_finished(&pod)
                && pods::ready_since(&pod).is_none()
            {
                let ready = json!([{"type": "Ready", "status": "True", "lastTransitionTime": rfc3339(at(self.clock))}]);
                let status = json!({"status": {"phase": "Running", "conditions": ready}});
                self.world.patch(&POD, &place, &status).unwrap();
            } else {
                continue;
            }
            moved += 1;
        }
        moved
    }

    /// A turn of one controller over a picture that may be old; each plan is cut after `limit` writes. The server is
    /// as it is now, and refuses what does not hold any more.
    fn turn_of<C: Controller>(world: &mut World, picture: &World, controller: &C, clock: i64, limit: usize) {
        for key in picture.keys(controller) {
            let mut written = 0;
            for action in picture.plan(controller, &key, at(clock)).actions {
                if written == limit || world.apply(&action, at(clock)).is_err() {
                    break;
                }
                written += usize::from(action.is_write());
            }
        }
    }

    fn turn(&mut self, picture: &World, limit: usize) -> usize {
        self.clock += 1;
        let before = self.world.writes;
        let (world, clock) = (&mut self.world, self.clock);
        Self::turn_of(world, picture, &Deployments, clock, limit);
        Self::turn_of(world, picture, &ReplicaSets, clock, limit);
        Self::turn_of(world, picture, &Scheduler, clock, limit);
        Self::turn_of(world, picture, &self.garbage, clock, limit);
        Self::turn_of(world, picture, &self.namespaces, clock, limit);
        self.world.writes - before + self.nodes()
    }

    fn rest(&mut self) {
        for _ in 0..300 {
            let now = self.world.clone();
            if self.turn(&now, usize::MAX) == 0 {
                return;
            }
        }
        panic!("never at rest: {:#?}", all(&self.world, &POD));
    }

    fn spec(&self) -> Value {
        let web = View::get(&self.world, &DEPLOYMENT.id, &key("web")).unwrap();
        web.to_value().unwrap()["spec"].take()
    }

    /// Pods that count as replicas of the Deployment. One that somebody disowned, and whose set went, is nobody's.
    fn replicas(&self) -> Vec<PodRef> {
        let all = all(&self.world, &POD).into_iter().map(|o| PodRef::new(o).unwrap());
        all.filter(|p| pods::is_active(p.object(), p) && p.object().meta().controller().is_some()).collect()
    }

    fn check(&self) {
        let spec = self.spec();
        let pods = self.replicas();
        assert_eq!(json!(pods.len()), spec["replicas"], "{pods:#?}");
        let image = &spec["template"]["spec"]["containers"][0]["image"];
        for pod in &pods {
            let is = pod.object().to_value().unwrap();
            assert_eq!(&is["spec"]["containers"][0]["image"], image);
            assert!(pods::ready_since(pod).is_some());
        }
        for object in [all(&self.world, &POD), all(&self.world, &REPLICA_SET)].concat() {
            let owner = object.meta().controller();
            assert!(
                owner.is_none_or(|o| self.lives(&object, &o.kind, &o.uid)),
                "{object:?} outlived its owner"
            );
        }
    }

    fn lives(&self, object: &Object, kind: &str, uid: &str) -> bool {
        let of_kind = [&builtin::REPLICA_SET, &builtin::DEPLOYMENT].into_iter().filter(|t| t.kind == kind);
        of_kind
            .flat_map(|t| View::list(&self.world, &t.id, &object.meta().namespace))
            .any(|o| o.meta().uid == uid)
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 24, ..ProptestConfig::default() })]
    #[test]
    fn whatever_happens_the_world_comes_to_rest_as_asked(
        script in prop::collection::vec((deeds(), 1usize..4, 0usize..3, 1usize..4), 1..10),
    ) {
        let mut story = Story::new();
        let mut pictures = vec![story.world.clone()];
        for (deed, turns, age, limit) in script {
            story.happen(deed);
            for _ in 0..turns {
                pictures.push(story.world.clone());
                let picture = pictures[pictures.len().saturating_sub(1 + age)].clone();
                story.turn(&picture, limit);
            }
        }
        story.happen(Deed::Pause(false));
        story.rest();
        story.check();
        // And all of it goes with its namespace.
        story.world.delete(&NAMESPACE, &ObjectKey::new("", "n"), None, at(story.clock)).unwrap();
        story.rest();
        prop_assert!(all(&story.world, &NAMESPACE).is_empty() && all(&story.world, &POD).is_empty());
        prop_assert!(all(&story.world, &DEPLOYMENT).is_empty() && all(&story.world, &REPLICA_SET).is_empty());
    }
}
