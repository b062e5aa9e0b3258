//! Admission on the way of a write: who may change the object before it is checked, and who may refuse it after.

use serde_json::Value;
use strata_model::resource::{ResourceType, builtin};
use strata_model::status::Status;
use strata_store::snapshot::Snapshot;

use super::api::Api;
use super::request::{Caller, Target};
use super::scaled;
use crate::admission::asked::{Asked, labels};
use crate::admission::limits;
use crate::admission::operation::Operation;
use crate::refusal::{Outcome, Refusal, about};
use crate::storage;
use crate::strategy::spoken_name;
use crate::types::namespace::NAMESPACE;
use crate::value::text;

/// A write on its way, as admission needs to know it.
#[derive(Clone, Copy)]
pub struct Step<'a> {
    /// Who writes.
    pub caller: &'a Caller,
    /// What is written, as it is stored.
    pub target: &'a Target,
    /// What is done to it.
    pub operation: Operation,
    /// The subresource that it is written through, or empty.
    pub through: &'a str,
    /// The object as it was.
    pub old: Option<&'a Value>,
    /// Whether nothing is to be stored.
    pub dry_run: bool,
}

impl Api {
    /// Lets those who may change a write do so, before it is checked. Answers whether the object differs now.
    pub async fn mutate(
        &self,
        step: Step<'_>,
        object: &mut Value,
        warnings: &mut Vec<String>,
    ) -> Outcome<bool> {
        let tables = self.admission.tables();
        let limited = || tables.limits(&step.target.namespace);
        let mut changed = step.is_new(&builtin::POD) && limits::fill(limited(), object);
        // What is written through a scale is the workload: who changes scales would change another object.
        if tables.mutating().is_empty() || step.through == "scale" {
            return Ok(changed);
        }
        let snapshot = self.latest().await?;
        let versions = self.versions(step.target);
        let versions: Vec<&str> = versions.iter().map(String::as_str).collect();
        let first = object.clone();
        let asked = step.asked(Some(&first), step.old, &versions, &snapshot);
        if asked.is_exempt() {
            return Ok(changed);
        }
        if self.ask_mutating(tables.mutating(), &asked, object, &snapshot, warnings).await? {
            changed = true;
            if step.is_new(&builtin::POD) {
                limits::fill(limited(), object);
            }
        }
        Ok(changed)
    }

    /// Asks those who may refuse a write. Answers sentences for the user.
    pub async fn judge(&self, step: Step<'_>, object: Option<&Value>) -> Outcome<Vec<String>> {
        let tables = self.admission.tables();
        if let Some(object) = object {
            let limits = tables.limits(&step.target.namespace);
            let fault = if step.is_new(&builtin::POD) {
                limits::faults_of_pod(limits, object)
            } else if step.is_whole(&builtin::PERSISTENT_VOLUME_CLAIM) {
                limits::faults_of_claim(limits, object)
            } else {
                None
            };
            if let Some(why) = fault {
                return Err(step.forbidden(object, &why));
            }
        }
        // Of a deletion there is nothing to change, but something to say.
        let deletes = step.operation == Operation::Delete && !tables.mutating().is_empty();
        if tables.validating().is_empty() && tables.policies().next().is_none() && !deletes {
            return Ok(Vec::new());
        }
        let snapshot = self.latest().await?;
        let versions = self.versions(step.target);
        let versions: Vec<&str> = versions.iter().map(String::as_str).collect();
        let scales = (step.through == "scale").then(|| {
            let of = |object: Option<&Value>| object.map(|object| scaled::of(&step.target.served, object));
            (of(object), of(step.old))
        });
        let (object, old) = match &scales {
            Some((new, old)) => (new.as_ref(), old.as_ref()),
            None => (object, step.old),
        };
        let asked = step.asked(object, old, &versions, &snapshot);
        if asked.is_exempt() {
            return Ok(Vec::new());
        }
        let mut warnings = Vec::new();
        if deletes {
            warnings.extend(self.ask_validating(tables.mutating(), &asked, &snapshot).await?);
        }
        warnings.extend(self.ask_policies(&tables, &asked, &snapshot).await?);
        warnings.extend(self.ask_validating(tables.validating(), &asked, &snapshot).await?);
        Ok(warnings)
    }

    /// The versions in which objects of a type are served.
    fn versions(&self, target: &Target) -> Vec<String> {
        let id = &target.served.resource.id;
        let catalogue = self.catalogue();
        catalogue
            .all()
            .iter()
            .filter(|s| s.resource.id == *id)
            .map(|s| s.resource.version.to_string())
            .collect()
    }
}

impl<'a> Step<'a> {
    /// The write as policies and webhooks see it.
    fn asked<'o>(
        &self,
        object: Option<&'o Value>,
        old: Option<&'o Value>,
        versions: &'o [&'o str],
        snapshot: &Snapshot,
    ) -> Asked<'o>
    where
        'a: 'o,
    {
        let Target { served, namespace, name, .. } = self.target;
        let resource = &served.resource;
        let name = match name.as_str() {
            "" => object.map_or("", |object| text(object, &["metadata", "name"])),
            name => name,
        };
        let itself = resource.id == builtin::NAMESPACE.id;
        let namespace_labels = if itself {
            object.or(old).map(|object| labels(object).into())
        } else if namespace.is_empty() {
            None
        } else {
            let record = snapshot.get(&storage::key(&builtin::NAMESPACE.id, "", namespace));
            let own = record.map(|record| storage::head(&record, &NAMESPACE).labels.clone());
            Some(own.unwrap_or_default().into())
        };
        Asked {
            operation: self.operation,
            resource,
            versions,
            subresource: self.through,
            namespace: if itself { name } else { namespace },
            name,
            user: &self.caller.user,
            object,
            old,
            namespace_labels,
            dry_run: self.dry_run,
        }
    }

    /// Whether an object of a type is made or changed as a whole.
    fn is_whole(&self, resource: &ResourceType) -> bool {
        self.through.is_empty()
            && self.target.served.resource.id == resource.id
            && matches!(self.operation, Operation::Create | Operation::Update)
    }

    fn is_new(&self, resource: &ResourceType) -> bool {
        self.operation == Operation::Create && self.is_whole(resource)
    }

    fn forbidden(&self, object: &Value, why: &str) -> Refusal {
        let name = spoken_name(object);
        Box::new(Status::forbidden(about(&self.target.served.resource, name), why))
    }
}
