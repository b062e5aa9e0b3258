//! Carries out the actions of a plan, in order, each with its precondition; stops at the first that fails. What a plan
//! wrote itself does not count as a change under its feet.

use std::collections::HashMap;

use serde_json::{Value, json};
use strata_client::client::Client;
use strata_client::error::{Class, ClientError};
use strata_client::options::{
    DeleteOptions, GetOptions, ListOptions, Patch, Projection, WriteOptions, Written,
};
use strata_model::object::Object;
use strata_model::resource::ResourceType;
use strata_model::status::Reason;
use strata_plan::controller::{Action, CREATED_NAME, FOREGROUND, Fact, Target};
use tokio::time::Instant;

use crate::events::{Recorder, Told};
use crate::queue::Barrier;
use crate::reconcile::ReconcileError;

/// What came of the actions of a plan.
#[derive(Debug, Default)]
pub struct Performed {
    /// One for each write: what the cache must see.
    pub barriers: Vec<Barrier>,
    /// How many writes changed something.
    pub writes: usize,
    /// Types of writes that may or may not have happened.
    pub unsure: Vec<ResourceType>,
    /// Why it stopped, if it did.
    pub error: Option<ReconcileError>,
}

/// Performs actions as one writer, for one cause.
pub struct Performer<'a> {
    client: &'a Client,
    recorder: &'a Recorder,
    options: WriteOptions,
    /// Revisions of objects after our own writes, by uid.
    ours: HashMap<String, String>,
    /// Name of the object created last.
    created: String,
    performed: Performed,
}

impl<'a> Performer<'a> {
    /// `manager` owns what is written; `cause` says why, and is kept with each transaction.
    pub fn new(client: &'a Client, recorder: &'a Recorder, manager: &str, cause: String) -> Self {
        let options = WriteOptions { field_manager: manager.to_owned(), cause, ..WriteOptions::default() };
        Self {
            client,
            recorder,
            options,
            ours: HashMap::new(),
            created: String::new(),
            performed: Performed::default(),
        }
    }

    /// Performs all, or as many as succeed by the deadline.
    pub async fn all(mut self, actions: Vec<Action>, deadline: Instant) -> Performed {
        for action in actions {
            if Instant::now() >= deadline {
                let message = "not done in time; going on from here".to_owned();
                self.performed.error = Some(ReconcileError::Effect { message, class: Class::Transient });
                break;
            }
            if let Err(error) = self.one(action).await {
                self.performed.error = Some(error);
                break;
            }
        }
        self.performed
    }

    async fn one(&mut self, action: Action) -> Result<(), ReconcileError> {
        let doing = doing(&action);
        let writes = writes(&action);
        let done = match action {
            Action::Create { resource, object } => self.create(&resource, &object).await,
            Action::Patch { target, patch } => self.patch(&target, "", patch).await,
            Action::Status { target, status } => {
                self.patch(&target, "status", json!({"status": status})).await
            }
            Action::Replace { target, subresource, object } => {
                self.replace(&target, subresource, object).await
            }
            Action::Bind { target, node } => self.bind(&target, &node).await,
            Action::Delete { target, propagation, grace_seconds } => {
                let options = DeleteOptions {
                    grace_period_seconds: grace_seconds,
                    propagation_policy: propagation.as_str().to_owned(),
                    uid: target.uid.clone(),
                    resource_version: self.version(&target).unwrap_or_default(),
                    dry_run: false,
                    cause: self.options.cause.clone(),
                };
                self.delete(&target, &options).await
            }
            Action::Confirm { target, fact } => match self.holds(&target, fact).await {
                Ok(true) => Ok(()),
                Ok(false) => return Err(refuted(&doing)),
                Err(error) => Err(error),
            },
            Action::ConfirmEmpty { resource, namespace } => {
                match self.is_empty(&resource, &namespace).await {
                    Ok(true) => Ok(()),
                    Ok(false) => return Err(refuted(&doing)),
                    Err(error) => Err(error),
                }
            }
            Action::Event { about, type_, reason, message } => {
                let message = message.replace(CREATED_NAME, &self.created);
                self.recorder.tell(Told { about, type_, reason, message });
                Ok(())
            }
        };
        done.map_err(|source| {
            if !matches!(source, ClientError::Refused { .. }) {
                self.performed.unsure.extend(writes);
            }
            ReconcileError::Request { doing, source }
        })
    }

    async fn create(&mut self, resource: &ResourceType, object: &Value) -> Result<(), ClientError> {
        let namespace = object["metadata"]["namespace"].as_str().unwrap_or_default();
        let written = self.client.create(resource, namespace, object.to_string(), &self.options).await?;
        self.created.clone_from(&written.object.meta().name);
        self.wrote(resource, None, &written);
        Ok(())
    }

    async fn patch(&mut self, target: &Target, subresource: &str, patch: Value) -> Result<(), ClientError> {
        let patch = Patch::Merge(self.with_precondition(target, patch));
        let written =
            self.client.patch(&target.resource, &target.key, subresource, &patch, &self.options).await?;
        self.wrote(&target.resource, Some(target), &written);
        Ok(())
    }

    async fn replace(
        &mut self,
        target: &Target,
        subresource: &str,
        object: Value,
    ) -> Result<(), ClientError> {
        let object = self.with_precondition(target, object).to_string();
        let written =
            self.client.update(&target.resource, &target.key, subresource, object, &self.options).await?;
        self.wrote(&target.resource, Some(target), &written);
        Ok(())
    }

    /// A live read: what the server holds now, past every cache.
    async fn holds(&self, target: &Target, fact: Fact) -> Result<bool, ClientError> {
        let found = match self.client.get(&target.resource, &target.key, &GetOptions::default()).await {
            Ok(object) => Some(object),
            Err(error) if error.is(Reason::NotFound) => None,
            Err(error) => return Err(error),
        };
        let same = found.as_ref().map(Object::meta).filter(|meta| meta.uid == target.uid);
        Ok(match fact {
            Fact::Absent => same.is_none(),
            Fact::Alive => same.is_some_and(|meta| !meta.is_deleting()),
            Fact::Foreground => {
                same.is_some_and(|meta| meta.is_deleting() && meta.finalizers.iter().any(|f| f == FOREGROUND))
            }
        })
    }

    async fn is_empty(&self, resource: &ResourceType, namespace: &str) -> Result<bool, ClientError> {
        let options = ListOptions { limit: 1, projection: Projection::Metadata, ..ListOptions::default() };
        match self.client.list(resource, namespace, &options).await {
            Ok(list) => Ok(list.items.is_empty()),
            Err(error) if error.is(Reason::NotFound) => Ok(true),
            Err(error) => Err(error),
        }
    }

    async fn bind(&mut self, target: &Target, node: &str) -> Result<(), ClientError> {
        let body = json!({
            "apiVersion": "v1", "kind": "Binding",
            "metadata": {"name": target.key.name, "namespace": target.key.namespace},
            "target": {"apiVersion": "v1", "kind": "Node", "name": node},
        });
        let body = self.with_precondition(target, body).to_string();
        self.client.create_subresource(&target.resource, &target.key, "binding", body, &self.options).await?;
        self.left(target, self.version(target));
        Ok(())
    }

    async fn delete(&mut self, target: &Target, options: &DeleteOptions) -> Result<(), ClientError> {
        match self.client.delete(&target.resource, &target.key, options).await {
            Ok(deleted) => match (deleted.removed, deleted.object.meta().revision()) {
                (false, Some(revision)) => {
                    self.performed.writes += 1;
                    self.performed.barriers.push(Barrier::Revision(target.resource.id.clone(), revision));
                }
                _ => self.left(target, None),
            },
            // It is gone, as was wished; the cache will hear of it.
            Err(error) if error.class() == Class::NotFound => {
                self.bar_until_left(target, None);
            }
            Err(error) => return Err(error),
        }
        Ok(())
    }

    fn left(&mut self, target: &Target, resource_version: Option<String>) {
        self.performed.writes += 1;
        self.bar_until_left(target, resource_version);
    }

    fn bar_until_left(&mut self, target: &Target, resource_version: Option<String>) {
        self.performed.barriers.push(Barrier::Left {
            resource: target.resource.id.clone(),
            key: target.key.clone(),
            uid: target.uid.clone(),
            resource_version,
        });
    }

    fn wrote(&mut self, resource: &ResourceType, target: Option<&Target>, written: &Written) {
        let meta = written.object.meta();
        if let Some(target) = target.filter(|t| t.uid == meta.uid) {
            self.ours.insert(target.uid.clone(), meta.resource_version.clone());
        }
        if !written.changed {
            return;
        }
        self.performed.writes += 1;
        if let Some(revision) = meta.revision() {
            self.performed.barriers.push(Barrier::Revision(resource.id.clone(), revision));
        }
    }

    /// The revision a target must be at: as planned, or as this plan left it.
    fn version(&self, target: &Target) -> Option<String> {
        let planned = target.resource_version.as_ref()?;
        Some(self.ours.get(&target.uid).unwrap_or(planned).clone())
    }

    fn with_precondition(&self, target: &Target, mut body: Value) -> Value {
        if !body["metadata"].is_object() {
            body["metadata"] = json!({});
        }
        if !target.uid.is_empty() {
            body["metadata"]["uid"] = json!(target.uid);
        }
        if let Some(version) = self.version(target) {
            body["metadata"]["resourceVersion"] = json!(version);
        }
        body
    }
}

/// The type that an action writes.
fn writes(action: &Action) -> Option<ResourceType> {
    match action {
        Action::Create { resource, .. } => Some(resource.clone()),
        Action::Patch { target, .. }
        | Action::Status { target, .. }
        | Action::Bind { target, .. }
        | Action::Replace { target, .. }
        | Action::Delete { target, .. } => Some(target.resource.clone()),
        Action::Confirm { .. } | Action::ConfirmEmpty { .. } | Action::Event { .. } => None,
    }
}

/// What was to be confirmed is not so: the cache is behind, and knows better soon.
fn refuted(doing: &str) -> ReconcileError {
    ReconcileError::Effect { message: format!("cannot {doing}: it is not so"), class: Class::Conflict }
}

fn doing(action: &Action) -> String {
    match action {
        Action::Create { resource, object } => {
            let meta = &object["metadata"];
            let name = meta["name"].as_str().or(meta["generateName"].as_str()).unwrap_or_default();
            format!("create {} {name}", resource.id)
        }
        Action::Patch { target, .. } => format!("patch {} {}", target.resource.id, target.key),
        Action::Status { target, .. } => format!("write the status of {} {}", target.resource.id, target.key),
        Action::Bind { target, node } => format!("bind {} to {node}", target.key),
        Action::Replace { target, subresource, .. } => {
            format!("{subresource} {} {}", target.resource.id, target.key)
        }
        Action::Delete { target, .. } => format!("delete {} {}", target.resource.id, target.key),
        Action::Confirm { target, fact: Fact::Absent } => {
            format!("confirm that {} {} is gone", target.resource.id, target.key)
        }
        Action::Confirm { target, fact: Fact::Foreground } => {
            format!("confirm that {} {} waits for its dependents", target.resource.id, target.key)
        }
        Action::ConfirmEmpty { resource, namespace } => {
            format!("confirm that {namespace} has no {}", resource.id)
        }
        Action::Confirm { target, fact: Fact::Alive } => {
            format!("confirm that {} {} is alive", target.resource.id, target.key)
        }
        Action::Event { about, .. } => format!("tell about {}", about.key),
    }
}
