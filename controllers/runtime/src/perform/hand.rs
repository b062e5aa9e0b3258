//! Makes the request of one action, and says what it did. Remembers nothing.

use serde_json::{Value, json};
use strata_client::client::Client;
use strata_client::error::{Class, ClientError};
use strata_client::options::{
    DeleteOptions, Deleted, GetOptions, ListOptions, Patch, Projection, WriteOptions, Written,
};
use strata_model::object::Object;
use strata_model::resource::ResourceType;
use strata_model::status::Reason;
use strata_plan::controller::{Action, FOREGROUND, Fact, Propagation, Target};

use super::stages::writes;
use crate::barrier::Barrier;
use crate::reconcile::ReconcileError;

/// What an action did.
#[derive(Debug, Default)]
pub struct Done {
    /// Whether it changed something.
    pub wrote: bool,
    /// What the cache must see of it.
    pub barrier: Option<Barrier>,
    /// Name of the object that it created.
    pub created: Option<String>,
    /// uid and revision of the target after it.
    pub left_at: Option<(String, String)>,
}

/// Why an action was not done.
#[derive(Debug)]
pub struct Failure {
    /// Why.
    pub error: ReconcileError,
    /// It may have happened nevertheless: the type that it writes.
    pub unsure: Option<ResourceType>,
}

/// Acts as one writer, for one cause.
pub struct Hand<'a> {
    client: &'a Client,
    options: WriteOptions,
}

impl<'a> Hand<'a> {
    /// `manager` owns what is written; `cause` says why, and is kept with each transaction.
    pub fn new(client: &'a Client, manager: &str, cause: String) -> Self {
        let options = WriteOptions { field_manager: manager.to_owned(), cause, ..WriteOptions::default() };
        Self { client, options }
    }

    /// Does it; `version` is the revision that its target must be at, if any.
    pub async fn act(&self, action: Action, version: Option<String>) -> Result<Done, Failure> {
        let doing = doing(&action);
        let written = writes(&action).cloned();
        let done = match action {
            Action::Create { resource, object } => self.create(&resource, &object).await,
            Action::Patch { target, patch } => self.patch(target, "", patch, version).await,
            Action::Status { target, status } => {
                self.patch(target, "status", json!({"status": status}), version).await
            }
            Action::Replace { target, subresource, object } => {
                self.replace(target, subresource, object, version).await
            }
            Action::Bind { target, node } => self.bind(target, &node, version).await,
            Action::Delete { target, propagation, grace_seconds } => {
                self.delete(target, propagation, grace_seconds, version).await
            }
            Action::Confirm { target, fact } => match self.holds(&target, fact).await {
                Ok(true) => Ok(Done::default()),
                Ok(false) => return Err(refuted(&doing)),
                Err(error) => Err(error),
            },
            Action::ConfirmEmpty { resource, namespace } => {
                match self.is_empty(&resource, &namespace).await {
                    Ok(true) => Ok(Done::default()),
                    Ok(false) => return Err(refuted(&doing)),
                    Err(error) => Err(error),
                }
            }
            // Told when what stands before it is done, not done itself.
            Action::Event { .. } => Ok(Done::default()),
        };
        done.map_err(|source| {
            let unsure = written.filter(|_| !matches!(source, ClientError::Refused { .. }));
            Failure { error: ReconcileError::Request { doing, source }, unsure }
        })
    }

    async fn create(&self, resource: &ResourceType, object: &Value) -> Result<Done, ClientError> {
        let namespace = object["metadata"]["namespace"].as_str().unwrap_or_default();
        let written = self.client.create(resource, namespace, object.to_string(), &self.options).await?;
        Ok(Done { created: Some(written.object.meta().name.clone()), ..wrote(resource, None, &written) })
    }

    async fn patch(
        &self,
        target: Target,
        subresource: &str,
        patch: Value,
        version: Option<String>,
    ) -> Result<Done, ClientError> {
        let patch = Patch::Merge(with_precondition(&target, version, patch));
        let written =
            self.client.patch(&target.resource, &target.key, subresource, &patch, &self.options).await?;
        Ok(wrote(&target.resource, Some(&target), &written))
    }

    async fn replace(
        &self,
        target: Target,
        subresource: &str,
        object: Value,
        version: Option<String>,
    ) -> Result<Done, ClientError> {
        let object = with_precondition(&target, version, object).to_string();
        let written =
            self.client.update(&target.resource, &target.key, subresource, object, &self.options).await?;
        Ok(wrote(&target.resource, Some(&target), &written))
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

    async fn bind(&self, target: Target, node: &str, version: Option<String>) -> Result<Done, ClientError> {
        let body = json!({
            "apiVersion": "v1", "kind": "Binding",
            "metadata": {"name": target.key.name, "namespace": target.key.namespace},
            "target": {"apiVersion": "v1", "kind": "Node", "name": node},
        });
        let body = with_precondition(&target, version.clone(), body).to_string();
        self.client.create_subresource(&target.resource, &target.key, "binding", body, &self.options).await?;
        Ok(Done { wrote: true, barrier: Some(left(target, version)), ..Done::default() })
    }

    async fn delete(
        &self,
        target: Target,
        propagation: Propagation,
        grace_seconds: Option<i64>,
        version: Option<String>,
    ) -> Result<Done, ClientError> {
        let options = DeleteOptions {
            grace_period_seconds: grace_seconds,
            propagation_policy: propagation.as_str().to_owned(),
            uid: target.uid.clone(),
            resource_version: version.unwrap_or_default(),
            dry_run: false,
            cause: self.options.cause.clone(),
        };
        match self.client.delete(&target.resource, &target.key, &options).await {
            Ok(Deleted { removed: false, object, .. }) if object.meta().revision().is_some() => {
                let revision = object.meta().revision();
                let barrier = revision.map(|at| Barrier::Revision(target.resource.id.clone(), at));
                Ok(Done { wrote: true, barrier, ..Done::default() })
            }
            Ok(_) => Ok(Done { wrote: true, barrier: Some(left(target, None)), ..Done::default() }),
            // It is gone, as was wished; the cache will hear of it.
            Err(error) if error.class() == Class::NotFound => {
                Ok(Done { barrier: Some(left(target, None)), ..Done::default() })
            }
            Err(error) => Err(error),
        }
    }
}

/// The cache must see that the target is no longer as it was.
fn left(target: Target, resource_version: Option<String>) -> Barrier {
    let Target { resource, key, uid, .. } = target;
    Barrier::Left { resource: resource.id, key, uid, resource_version }
}

fn wrote(resource: &ResourceType, target: Option<&Target>, written: &Written) -> Done {
    let meta = written.object.meta();
    let target = target.filter(|t| t.uid == meta.uid);
    let revision = meta.revision().filter(|_| written.changed);
    Done {
        wrote: written.changed,
        barrier: revision.map(|at| Barrier::Revision(resource.id.clone(), at)),
        created: None,
        left_at: target.map(|t| (t.uid.clone(), meta.resource_version.clone())),
    }
}

fn with_precondition(target: &Target, version: Option<String>, mut body: Value) -> Value {
    if !body["metadata"].is_object() {
        body["metadata"] = json!({});
    }
    if !target.uid.is_empty() {
        body["metadata"]["uid"] = json!(target.uid);
    }
    if let Some(version) = version {
        body["metadata"]["resourceVersion"] = json!(version);
    }
    body
}

/// What was to be confirmed is not so: the cache is behind, and knows better soon.
fn refuted(doing: &str) -> Failure {
    let message = format!("cannot {doing}: it is not so");
    Failure { error: ReconcileError::Effect { message, class: Class::Conflict }, unsure: None }
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
