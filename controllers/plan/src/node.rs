//! A node's own object: that it exists and says what its machine is. It must never know how the machine was
//! asked, nor anything about pods.

use std::collections::BTreeMap;

use jiff::Timestamp;
use serde_json::{Value, json};
use strata_model::condition::{self, Condition};
use strata_model::merge;
use strata_model::object::{Object, ObjectError};
use strata_model::resource::builtin;

use crate::controller::{Action, Plan, Target};

/// What a node is to say of itself.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NodeDescription {
    /// Its name.
    pub name: String,
    /// Labels that it gives itself; those that others gave stay.
    pub labels: BTreeMap<String, String>,
    /// Where it is reached: (`InternalIP` or `Hostname`, address).
    pub addresses: Vec<(&'static str, String)>,
    /// The port on which its agent answers.
    pub port: u16,
    /// What there is and may be used, by resource name.
    pub capacity: BTreeMap<String, String>,
    /// The machine, by the names of `status.nodeInfo`.
    pub info: BTreeMap<&'static str, String>,
    /// `None`: it takes pods; else why it does not.
    pub not_ready: Option<String>,
}

/// The plan for a node's object: it is created where it is missing, and changed where it says something else.
pub fn plan(current: Option<&Object>, wanted: &NodeDescription, now: Timestamp) -> Result<Plan, ObjectError> {
    let mut plan = Plan::default();
    let Some(object) = current else {
        let object = json!({
            "metadata": {"name": wanted.name, "labels": wanted.labels},
            "status": status(&Value::Null, wanted, now),
        });
        plan.actions.push(Action::Create { resource: builtin::NODE.clone(), object });
        return Ok(plan);
    };
    let old = object.to_value()?;
    let labels: BTreeMap<&String, &String> = wanted
        .labels
        .iter()
        .filter(|(name, value)| object.meta().label(name) != Some(value.as_str()))
        .collect();
    if !labels.is_empty() {
        let target = Target::of(&builtin::NODE, object);
        plan.actions.push(Action::Patch { target, patch: json!({"metadata": {"labels": labels}}) });
        plan.note("Labels", "the status follows when the labels are seen");
        return Ok(plan);
    }
    if let Some(status) = merge::diff(&old["status"], &status(&old["status"], wanted, now)) {
        plan.actions.push(Action::Status { target: Target::of(&builtin::NODE, object), status });
    }
    Ok(plan)
}

/// The new status: ours replaced, all else as it was.
fn status(old: &Value, wanted: &NodeDescription, now: Timestamp) -> Value {
    let mut status = old.as_object().cloned().unwrap_or_default();
    let addresses: Vec<Value> =
        wanted.addresses.iter().map(|(type_, address)| json!({"type": type_, "address": address})).collect();
    status.insert("addresses".into(), json!(addresses));
    status.insert("capacity".into(), json!(wanted.capacity));
    status.insert("allocatable".into(), json!(wanted.capacity));
    status.insert("daemonEndpoints".into(), json!({"kubeletEndpoint": {"Port": wanted.port}}));
    status.insert("nodeInfo".into(), json!(wanted.info));
    status.insert("conditions".into(), conditions(&old["conditions"], wanted, now));
    Value::Object(status)
}

fn conditions(old: &Value, wanted: &NodeDescription, now: Timestamp) -> Value {
    let mut list = old.as_array().cloned().unwrap_or_default();
    let fine = |type_: &str, reason: &str, message: &str| Condition {
        type_: type_.into(),
        status: "False".into(),
        reason: reason.into(),
        message: message.into(),
        ..Condition::default()
    };
    let ready = match &wanted.not_ready {
        None => Condition {
            status: "True".into(),
            ..fine("Ready", "KubeletReady", "the node agent runs and takes pods")
        },
        Some(why) => fine("Ready", "KubeletNotReady", why),
    };
    let memory = fine(
        "MemoryPressure",
        "KubeletHasSufficientMemory",
        "the node agent has sufficient memory available",
    );
    let disk = fine("DiskPressure", "KubeletHasNoDiskPressure", "the node agent has no disk pressure");
    let pids = fine("PIDPressure", "KubeletHasSufficientPID", "the node agent has sufficient PID available");
    for new in [memory, disk, pids, ready] {
        let place = list.iter().position(|value| value["type"] == new.type_.as_str());
        let known = place.and_then(|place| serde_json::from_value::<Condition>(list[place].clone()).ok());
        let mut one: Vec<Condition> = known.into_iter().collect();
        if condition::set(&mut one, new, now) {
            match place {
                Some(place) => list[place] = json!(one[0]),
                None => list.push(json!(one[0])),
            }
        }
    }
    Value::Array(list)
}

#[cfg(test)]
mod tests {
    use super::{NodeDescription, plan};
    use crate::controller::View;
    use crate::world::World;
    use jiff::{SignedDuration, Timestamp};
    use serde_json::json;
    use std::collections::BTreeMap;
    use strata_model::object::ObjectKey;
    use strata_model::resource::builtin;

    fn wanted() -> NodeDescription {
        NodeDescription {
            name: "n1".into(),
            labels: BTreeMap::from([("kubernetes.io/hostname".into(), "n1".into())]),
            addresses: vec![("InternalIP", "127.0.0.1".into()), ("Hostname", "n1".into())],
            port: 10250,
            capacity: BTreeMap::from([("cpu".into(), "2".into()), ("pods".into(), "110".into())]),
            info: BTreeMap::from([("kernelVersion", "6.1".into())]),
            not_ready: None,
        }
    }

    struct Scene {
        world: World,
        now: Timestamp,
    }

    impl Scene {
        fn settle(&mut self, wanted: &NodeDescription) -> usize {
            let key = ObjectKey::new("", "n1");
            for turn in 0..10 {
                let object = self.world.get(&builtin::NODE.id, &key);
                let plan = plan(object.as_deref(), wanted, self.now).unwrap();
                if plan.is_settled() {
                    return turn;
                }
                for action in &plan.actions {
                    self.world.apply(action, self.now).unwrap();
                }
            }
            panic!("does not settle");
        }

        fn node(&self) -> serde_json::Value {
            self.world.get(&builtin::NODE.id, &ObjectKey::new("", "n1")).unwrap().to_value().unwrap()
        }
    }

    #[test]
    fn a_node_is_made_once_and_left_alone_while_nothing_changes() {
        let mut scene = Scene { world: World::new(), now: "2026-11-30T20:00:00Z".parse().unwrap() };
        assert_eq!(scene.settle(&wanted()), 1);
        let node = scene.node();
        assert_eq!(node["status"]["daemonEndpoints"]["kubeletEndpoint"]["Port"], 10250);
        assert_eq!(node["status"]["conditions"][3]["type"], "Ready");
        scene.now += SignedDuration::from_hours(1);
        assert_eq!(scene.settle(&wanted()), 0, "time alone changes nothing");
        scene.world.vanish(&builtin::NODE, &ObjectKey::new("", "n1"));
        assert_eq!(scene.settle(&wanted()), 1);
    }

    #[test]
    fn what_changed_is_told_and_what_others_wrote_stays() {
        let mut scene = Scene { world: World::new(), now: "2026-11-30T20:00:00Z".parse().unwrap() };
        scene.settle(&wanted());
        let mine = json!({"metadata": {"labels": {"zone": "a", "kubernetes.io/hostname": "wrong"}},
            "spec": {"unschedulable": true}, "status": {"volumesInUse": ["x"],
            "conditions": [{"type": "Novel", "status": "True", "more": 1}]}});
        scene.world.patch(&builtin::NODE, &ObjectKey::new("", "n1"), &mine).unwrap();
        scene.settle(&NodeDescription { port: 1, not_ready: Some("stopping".into()), ..wanted() });
        let node = scene.node();
        assert_eq!(node["metadata"]["labels"], json!({"zone": "a", "kubernetes.io/hostname": "n1"}));
        assert_eq!(node["spec"]["unschedulable"], true);
        assert_eq!(node["status"]["volumesInUse"], json!(["x"]));
        let conditions = node["status"]["conditions"].as_array().unwrap();
        assert_eq!(conditions[0], json!({"type": "Novel", "status": "True", "more": 1}));
        assert_eq!(
            (&conditions[4]["status"], &conditions[4]["message"]),
            (&json!("False"), &json!("stopping"))
        );
        assert_eq!(node["status"]["daemonEndpoints"]["kubeletEndpoint"]["Port"], 1);
    }
}
