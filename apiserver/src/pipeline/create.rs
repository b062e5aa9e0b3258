//! Create: a new object, in a namespace that is there and stays.

use std::sync::Arc;

use bytes::Bytes;
use serde_json::Value;
use strata_model::resource::Verb;
use strata_model::status::{Reason, Status};
use strata_store::key::Key;
use strata_store::snapshot::Snapshot;
use strata_store::txn::{Condition, Txn};

use super::admit::Step;
use super::api::{Api, MAX_ATTEMPTS};
use super::body::{self, Body, Decoded, Wanted};
use super::ownership::{Ownership, wanted};
use super::request::{Caller, Deed, Target, WriteOptions, Written};
use super::settle::{reserve, settle};
use crate::admission::operation::Operation;
use crate::managed::entries::Managed;
use crate::refusal::{self, Outcome, about, bad_request};
use crate::storage;
use crate::strategy::{self, Part};
use crate::types::review::{Answer, Asker, Review};
use crate::value::text;

/// A new object that may be stored.
struct Composed {
    object: Value,
    /// What must hold of its namespace.
    open: Option<(Key, Condition)>,
    /// Sentences for the user.
    warnings: Vec<String>,
}

impl Api {
    /// Creates an object, or acts through a subresource.
    pub async fn create(
        &self,
        caller: &Caller,
        target: &Target,
        body: &Body,
        options: &WriteOptions,
    ) -> Outcome<Written> {
        target.admit(caller, Verb::Create)?;
        if target.subresource == "binding" {
            return self.bind(caller, target, body, options).await;
        }
        if target.subresource == "eviction" {
            return self.evict(caller, target, body, options).await;
        }
        if target.subresource == "token" {
            return self.create_token(caller, target, body, options).await;
        }
        if target.served.resource.is_namespaced() && target.namespace.is_empty() {
            return Err(refusal::method_not_allowed());
        }
        let Decoded { value, warnings } = body::decode(body, wanted(&target.served), options.validation)?;
        let decoded = Decoded { value: target.store(value)?, warnings };
        self.insert(caller, &target.stored(), decoded, None, options).await?.shown(target)
    }

    /// Creates the object of a decoded body. Its managers are these, else the writer alone.
    pub async fn insert(
        &self,
        caller: &Caller,
        target: &Target,
        decoded: Decoded,
        managers: Option<&Managed>,
        options: &WriteOptions,
    ) -> Outcome<Written> {
        let Decoded { value, warnings: told } = decoded;
        if target.served.custom.as_ref().is_some_and(|custom| custom.definition.deleting) {
            let message = "create not allowed while custom resource definition is terminating";
            return Err(Box::new(Status::failure(Reason::MethodNotAllowed, message)));
        }
        let generated = text(&value, &["metadata", "name"]).is_empty();
        for _ in 0..MAX_ATTEMPTS {
            let snapshot = self.latest().await?;
            let step = Step {
                caller,
                target,
                operation: Operation::Create,
                through: "",
                old: None,
                dry_run: options.dry_run,
            };
            let composed = self.compose(step, (&value, managers), options, &snapshot).await?;
            let Some(Composed { object, open, warnings: also }) = composed else { continue };
            let name = text(&object, &["metadata", "name"]).to_owned();
            let key = storage::key(&target.served.resource.id, &target.namespace, &name);
            let mut warnings = told.clone();
            warnings.extend(also);
            let charged = self.charge(target, &object, None).await?;
            if options.dry_run {
                return Ok(Written { bytes: dry(&object)?, changed: true, created: true, warnings });
            }
            let mut riders = self.needed(&snapshot, target, &object)?;
            riders.join(charged.riders);
            let mut txn = Txn::new().when(key.clone(), Condition::Absent);
            if let Some((namespace, condition)) = open {
                txn = txn.when(namespace, condition);
            }
            let deed = Deed::new("create", "", options);
            let txn =
                txn.put(key.clone(), self.save(&target.served, &object).await?).cause(deed.cause(caller));
            let txn = riders.board(reserve(target, txn, None, Some(&object)));
            match self.commit_for(caller, txn).await? {
                Ok(committed) => {
                    let stored = committed.records.into_iter().flatten().next();
                    let bytes = match stored {
                        Some(record) => self.load_bytes(&target.served, &record).await?,
                        None => Bytes::new(),
                    };
                    self.followed(target, committed.revision).await;
                    return Ok(Written { bytes, changed: true, created: true, warnings });
                }
                Err(lost) if lost.key == key && !generated => {
                    return Err(exists(target, &name));
                }
                // The namespace or a quota changed, or a generated name or what was to be reserved was taken: decide
                // anew.
                Err(_) => {}
            }
        }
        Err(refusal::timeout("the object could not be created while others changed its namespace; try again"))
    }

    /// Makes the object of a body: filled, changed by admission, checked, settled and let through. `None`: the name that
    /// was generated is taken.
    async fn compose(
        &self,
        step: Step<'_>,
        (value, managers): (&Value, Option<&Managed>),
        options: &WriteOptions,
        snapshot: &Snapshot,
    ) -> Outcome<Option<Composed>> {
        let Step { caller, target, .. } = step;
        let (mut object, moment) = (value.clone(), self.moment());
        strategy::draft(&target.served, &mut object, &target.namespace, &moment)?;
        let open = self.namespace_open(snapshot, target, text(&object, &["metadata", "name"]))?;
        let mut warnings = Vec::new();
        if self.mutate(step, &mut object, &mut warnings).await? {
            strategy::draft(&target.served, &mut object, &target.namespace, &moment)?;
        }
        strategy::check_new(&target.served, &object)?;
        match managers {
            Some(managers) => managers.clone().put(&mut object),
            None => Ownership::of(caller, target, "", options, moment.now).create(&mut object),
        }
        let name = text(&object, &["metadata", "name"]);
        target.admit_object(caller, Verb::Create.as_str(), name, &object)?;
        if snapshot.get(&storage::key(&target.served.resource.id, &target.namespace, name)).is_some() {
            let generated = text(value, &["metadata", "name"]).is_empty();
            return if generated { Ok(None) } else { Err(exists(target, name)) };
        }
        settle(caller, target, snapshot, &mut object, None)?;
        self.recount(snapshot, target, &mut object, Part::Main);
        warnings.extend(self.judge(step, Some(&object)).await?);
        warnings.extend((target.served.rules.warnings)(&object));
        warnings.extend(target.served.notice().map(str::to_owned));
        Ok(Some(Composed { object, open, warnings }))
    }

    /// Answers a review; nothing is stored.
    pub async fn review(
        &self,
        caller: &Caller,
        (review, namespace): (&Review, &str),
        body: &Body,
        options: &WriteOptions,
    ) -> Outcome<Bytes> {
        if review.namespaced == namespace.is_empty() {
            return Err(refusal::no_such_place());
        }
        let asked = crate::authz::Attributes {
            verb: Verb::Create.as_str(),
            group: review.group,
            resource: review.resource,
            subresource: "",
            namespace,
            name: "",
        };
        caller.policy.check(&caller.user, &asked)?;
        let wanted = Wanted::new(review.group, review.version, review.kind);
        let Decoded { mut value, .. } = body::decode(body, wanted, options.validation)?;
        if !value.is_object() {
            return Err(bad_request("the body is not a JSON object"));
        }
        let members = crate::value::object(&mut value);
        members.insert("apiVersion".to_owned(), format!("{}/{}", review.group, review.version).into());
        members.insert("kind".to_owned(), review.kind.into());
        let metadata = crate::value::child(&mut value, "metadata");
        metadata.insert("creationTimestamp".to_owned(), Value::Null);
        crate::strategy::check_namespace(&mut value, namespace)?;
        let asker = Asker { user: &caller.user, policy: &caller.policy };
        match review.answer {
            Answer::Of(answer) => answer(&mut value, &asker)?,
            Answer::Token => self.review_token(&mut value).await?,
        }
        to_bytes(&value)
    }
}

/// An object as JSON, without a revision: what a dry run answers.
pub fn dry(object: &Value) -> Outcome<Bytes> {
    let mut object = object.clone();
    crate::value::child(&mut object, "metadata").remove("resourceVersion");
    to_bytes(&object)
}

/// A value as JSON.
pub fn to_bytes(value: &Value) -> Outcome<Bytes> {
    serde_json::to_vec(value).map(Bytes::from).map_err(|error| refusal::internal(error.to_string()))
}

fn exists(target: &Target, name: &str) -> refusal::Refusal {
    Box::new(Status::already_exists(about(&target.served.resource, name)))
}

/// A target of the same type with another name.
pub fn named(target: &Target, name: &str) -> Target {
    Target { served: Arc::clone(&target.served), name: name.to_owned(), ..target.clone() }
}
