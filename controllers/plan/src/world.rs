//! A small world in memory, for scenarios and simulation: it applies actions as the API server would (names, uids,
//! revisions, generation, finalizers, graceful deletion) and is a [`View`]. Holds no rule of any controller.

use std::collections::BTreeMap;
use std::sync::Arc;

use jiff::{Timestamp, ToSpan};
use serde_json::{Value, json};
use strata_model::condition::rfc3339;
use strata_model::merge;
use strata_model::names;
use strata_model::object::{Object, ObjectKey};
use strata_model::resource::{GroupResource, ResourceType, builtin};

use crate::controller::{
    Action, CREATED_NAME, Controller, FOREGROUND, Fact, Key, Next, ORPHAN, Plan, Propagation, Target, View,
    keys_of,
};

/// Why the world refused an action, as the API server would.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Refused {
    /// The name is taken.
    #[error("{0} exists")]
    Exists(String),
    /// There is no such object, or not with that uid.
    #[error("{0} not found")]
    NotFound(String),
    /// It changed since it was observed.
    #[error("{0} changed")]
    Conflict(String),
    /// The result is no object.
    #[error("{0} is no object")]
    Malformed(String),
}

/// An event somebody was told.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Told {
    /// About which object.
    pub about: ObjectKey,
    /// Word.
    pub reason: &'static str,
    /// Sentence.
    pub message: String,
}

/// All objects, and what was told.
#[derive(Clone, Debug, Default)]
pub struct World {
    objects: BTreeMap<(GroupResource, ObjectKey), Arc<Object>>,
    revision: u64,
    /// Events, oldest first.
    pub told: Vec<Told>,
    /// Name of the object that was created last.
    created: String,
    /// How many actions other than events were applied.
    pub writes: usize,
}

/// Most turns a scenario may take to settle.
const MAX_TURNS: usize = 200;

impl World {
    /// An empty world.
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds an object as a client would, and answers it as stored.
    pub fn create(
        &mut self,
        resource: &ResourceType,
        object: Value,
        now: Timestamp,
    ) -> Result<Arc<Object>, Refused> {
        let mut object = object;
        self.revision += 1;
        let meta = &mut object["metadata"];
        if meta["name"].as_str().is_none_or(str::is_empty) {
            let mut n = self.revision as u32;
            let name = names::generate(meta["generateName"].as_str().unwrap_or_default(), || {
                n = n.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
                n >> 8
            });
            meta["name"] = json!(name);
        }
        meta["uid"] = json!(format!("uid-{}", self.revision));
        meta["creationTimestamp"] = json!(rfc3339(now));
        if resource.counts_generation {
            meta["generation"] = json!(1);
        }
        object["apiVersion"] = json!(resource.api_version());
        object["kind"] = json!(resource.kind);
        let object = self.parse(object)?;
        let place = (resource.id.clone(), object.key());
        if self.objects.contains_key(&place) {
            return Err(Refused::Exists(object.key().to_string()));
        }
        self.objects.insert(place, Arc::clone(&object));
        self.created.clone_from(&object.meta().name);
        Ok(object)
    }

    /// Changes an object as a client would, by merge patch, the status included.
    pub fn patch(
        &mut self,
        resource: &ResourceType,
        key: &ObjectKey,
        patch: &Value,
    ) -> Result<Arc<Object>, Refused> {
        let old = self.get(&resource.id, key).ok_or_else(|| Refused::NotFound(key.to_string()))?;
        let before = value_of(&old)?;
        let mut after = before.clone();
        merge::apply(&mut after, patch);
        if after == before {
            return Ok(old);
        }
        if resource.counts_generation && after["spec"] != before["spec"] {
            after["metadata"]["generation"] = json!(old.meta().generation + 1);
        }
        self.store(resource, key, after)
    }

    /// Removes an object at once, whatever its finalizers say: what a power failure of a node would do.
    pub fn vanish(&mut self, resource: &ResourceType, key: &ObjectKey) -> Option<Arc<Object>> {
        self.revision += 1;
        self.objects.remove(&(resource.id.clone(), key.clone()))
    }

    /// Deletes an object as a client would.
    pub fn delete(
        &mut self,
        resource: &ResourceType,
        key: &ObjectKey,
        grace: Option<i64>,
        now: Timestamp,
    ) -> Result<(), Refused> {
        let old = self.get(&resource.id, key).ok_or_else(|| Refused::NotFound(key.to_string()))?;
        let mut value = value_of(&old)?;
        let spec_grace = value["spec"]["terminationGracePeriodSeconds"].as_i64().unwrap_or(30);
        let runs = resource.id == builtin::POD.id && value["spec"]["nodeName"].is_string();
        let grace = if runs { grace.unwrap_or(spec_grace) } else { 0 };
        let holds = !old.meta().finalizers.is_empty()
            || value["spec"]["finalizers"].as_array().is_some_and(|f| !f.is_empty());
        if grace == 0 && !holds {
            self.vanish(resource, key);
            return Ok(());
        }
        let end = now.checked_add(grace.seconds()).unwrap_or(now);
        value["metadata"]["deletionTimestamp"] = json!(rfc3339(end));
        value["metadata"]["deletionGracePeriodSeconds"] = json!(grace);
        if resource.id == builtin::NAMESPACE.id {
            value["status"]["phase"] = json!("Terminating");
        }
        self.store(resource, key, value).map(|_| ())
    }

    /// Applies one action, with its preconditions.
    pub fn apply(&mut self, action: &Action, now: Timestamp) -> Result<(), Refused> {
        self.writes += usize::from(action.is_write());
        match action {
            Action::Create { resource, object } => self.create(resource, object.clone(), now).map(|_| ()),
            Action::Patch { target, patch } => {
                self.check(target)?;
                self.patch(&target.resource, &target.key, patch).map(|_| ())
            }
            Action::Status { target, status } => {
                self.check(target)?;
                self.patch(&target.resource, &target.key, &json!({"status": status})).map(|_| ())
            }
            Action::Bind { target, node } => {
                self.check(target)?;
                let scheduled = json!([{"type": "PodScheduled", "status": "True"}]);
                let patch = json!({"spec": {"nodeName": node}, "status": {"conditions": scheduled}});
                self.patch(&target.resource, &target.key, &patch).map(|_| ())
            }
            Action::Replace { target, object, .. } => {
                self.check(target)?;
                self.store(&target.resource, &target.key, object.clone()).map(|_| ())
            }
            Action::Delete { target, propagation, grace_seconds } => {
                self.check(target)?;
                self.wait_for_dependents(target, *propagation)?;
                self.delete(&target.resource, &target.key, *grace_seconds, now)
            }
            Action::Confirm { target, fact } => self.confirm(target, *fact),
            Action::ConfirmEmpty { resource, namespace } => {
                match self.list(&resource.id, namespace).first() {
                    Some(object) => Err(Refused::Exists(object.key().to_string())),
                    None => Ok(()),
                }
            }
            Action::Event { about, reason, message, .. } => {
                let message = message.replace(CREATED_NAME, &self.created);
                self.told.push(Told { about: about.key.clone(), reason, message });
                Ok(())
            }
        }
    }

    /// Observes and plans one key, without applying anything.
    pub fn plan<C: Controller>(&self, controller: &C, key: &Key, now: Timestamp) -> Plan {
        match controller.observe(self, key) {
            Ok(Some(observed)) => controller.plan(&observed, now),
            Ok(None) => Plan::settled(),
            Err(error) => panic!("a scenario holds an object that does not parse: {error}"),
        }
    }

    /// All keys to which the present objects lead.
    pub fn keys<C: Controller>(&self, controller: &C) -> Vec<Key> {
        let mut keys = Vec::new();
        for watched in controller.watches() {
            for ((id, _), object) in &self.objects {
                if *id == watched.resource.id {
                    keys.extend(keys_of(&watched, self, object));
                }
            }
        }
        keys.sort();
        keys.dedup();
        keys
    }

    /// One turn over all keys: plans each and applies each plan up to its write number `limit`. Answers how many writes
    /// were made, and when the plans want to be looked at again.
    pub fn turn<C: Controller>(&mut self, controller: &C, now: Timestamp, limit: usize) -> (usize, Next) {
        let (before, mut next) = (self.writes, Next::OnChange);
        for key in self.keys(controller) {
            let plan = self.plan(controller, &key, now);
            if let Next::At(at) = plan.next {
                next = next.or_at(at);
            }
            let mut written = 0;
            for action in &plan.actions {
                // A refusal ends the key's turn, as in the runtime; the next turn plans anew.
                if written == limit || self.apply(action, now).is_err() {
                    break;
                }
                written += usize::from(action.is_write());
            }
        }
        (self.writes - before, next)
    }

    /// Runs the controller until it has nothing to do, and panics with the last plans if it never comes to rest: the
    /// check with which every scenario ends.
    pub fn settle<C: Controller>(&mut self, controller: &C, now: Timestamp) {
        self.settle_by(controller, now, usize::MAX);
    }

    /// The same with only the first write of each plan applied a turn, as if the process died after each write.
    pub fn settle_in_part<C: Controller>(&mut self, controller: &C, now: Timestamp) {
        self.settle_by(controller, now, 1);
    }

    fn settle_by<C: Controller>(&mut self, controller: &C, now: Timestamp, limit: usize) {
        for _ in 0..MAX_TURNS {
            let told = self.told.len();
            let (writes, _) = self.turn(controller, now, limit);
            if writes == 0 && self.told.len() == told {
                return;
            }
        }
        let keys = self.keys(controller);
        let plans: Vec<Plan> = keys.iter().map(|k| self.plan(controller, k, now)).collect();
        panic!("{} does not settle in {MAX_TURNS} turns; last plans: {plans:#?}", controller.name());
    }

    /// What a deletion that is not in the background does first: a finalizer that the garbage collector answers.
    fn wait_for_dependents(&mut self, target: &Target, propagation: Propagation) -> Result<(), Refused> {
        let finalizer = match propagation {
            Propagation::Background => return Ok(()),
            Propagation::Foreground => FOREGROUND,
            Propagation::Orphan => ORPHAN,
        };
        let object = self.get(&target.resource.id, &target.key);
        let mut finalizers = object.map(|o| o.meta().finalizers.clone()).unwrap_or_default();
        finalizers.retain(|f| f != FOREGROUND && f != ORPHAN);
        finalizers.push(finalizer.to_owned());
        let patch = json!({"metadata": {"finalizers": finalizers}});
        self.patch(&target.resource, &target.key, &patch).map(|_| ())
    }

    fn confirm(&self, target: &Target, fact: Fact) -> Result<(), Refused> {
        let there = self.get(&target.resource.id, &target.key).filter(|o| o.meta().uid == target.uid);
        let holds = match fact {
            Fact::Absent => there.is_none(),
            Fact::Alive => there.is_some_and(|o| !o.meta().is_deleting()),
            Fact::Foreground => there.is_some_and(|o| {
                o.meta().is_deleting() && o.meta().finalizers.iter().any(|f| f == FOREGROUND)
            }),
        };
        if holds { Ok(()) } else { Err(Refused::Conflict(target.key.to_string())) }
    }

    fn check(&self, target: &Target) -> Result<(), Refused> {
        let object = self.get(&target.resource.id, &target.key);
        let object = object.filter(|o| o.meta().uid == target.uid);
        let object = object.ok_or_else(|| Refused::NotFound(target.key.to_string()))?;
        match &target.resource_version {
            Some(at) if *at != object.meta().resource_version => {
                Err(Refused::Conflict(target.key.to_string()))
            }
            _ => Ok(()),
        }
    }

    fn store(
        &mut self,
        resource: &ResourceType,
        key: &ObjectKey,
        value: Value,
    ) -> Result<Arc<Object>, Refused> {
        self.revision += 1;
        let object = self.parse(value)?;
        let place = (resource.id.clone(), key.clone());
        let spec_finalizers =
            value_of(&object)?["spec"]["finalizers"].as_array().is_some_and(|f| !f.is_empty());
        let grace = object.meta().deletion_grace_period_seconds.unwrap_or(0);
        if object.meta().is_deleting()
            && object.meta().finalizers.is_empty()
            && !spec_finalizers
            && grace == 0
        {
            self.objects.remove(&place);
        } else {
            self.objects.insert(place, Arc::clone(&object));
        }
        Ok(object)
    }

    fn parse(&self, mut value: Value) -> Result<Arc<Object>, Refused> {
        value["metadata"]["resourceVersion"] = json!(self.revision.to_string());
        Object::from_value(&value).map(Arc::new).map_err(|e| Refused::Malformed(e.to_string()))
    }
}

fn value_of(object: &Object) -> Result<Value, Refused> {
    object.to_value().map_err(|e| Refused::Malformed(e.to_string()))
}

impl View for World {
    fn get(&self, resource: &GroupResource, key: &ObjectKey) -> Option<Arc<Object>> {
        self.objects.get(&(resource.clone(), key.clone())).cloned()
    }

    fn list(&self, resource: &GroupResource, namespace: &str) -> Vec<Arc<Object>> {
        let of_type = self.objects.iter().filter(|((id, _), _)| id == resource);
        of_type
            .filter(|((_, k), _)| namespace.is_empty() || k.namespace == namespace)
            .map(|(_, o)| Arc::clone(o))
            .collect()
    }

    fn owned_by(&self, resource: &GroupResource, owner_uid: &str) -> Vec<Arc<Object>> {
        let owned = |o: &Object| o.meta().owner_references.iter().any(|r| r.uid == owner_uid);
        self.list(resource, "").into_iter().filter(|o| owned(o)).collect()
    }
}
