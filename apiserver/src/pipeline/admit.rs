//! Admission on the way of a write: who may change the object before it is checked, and who may refuse it after.

use serde_json::Value;
use strata_model::resource::builtin;
use strata_model::status::Status;

use super::api::Api;
use super::request::{Caller, Target};
use crate::admission::limits;
use crate::admission::operation::Operation;
use crate::refusal::{Outcome, about};
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
    pub async fn mutate(&self, step: Step<'_>, object: &mut Value) -> Outcome<bool> {
        let tables = self.admission.tables();
        let mut changed = false;
        if step.is_new(&builtin::POD) {
            changed |= limits::fill(tables.limits(&step.target.namespace), object);
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
        Ok(Vec::new())
    }
}

impl Step<'_> {
    /// Whether an object of a type is made or changed as a whole.
    fn is_whole(&self, resource: &strata_model::resource::ResourceType) -> bool {
        self.through.is_empty()
            && self.target.served.resource.id == resource.id
            && matches!(self.operation, Operation::Create | Operation::Update)
    }

    fn is_new(&self, resource: &strata_model::resource::ResourceType) -> bool {
        self.operation == Operation::Create && self.is_whole(resource)
    }

    fn forbidden(&self, object: &Value, why: &str) -> crate::refusal::Refusal {
        let name = text(object, &["metadata", "name"]);
        Box::new(Status::forbidden(about(&self.target.served.resource, name), why))
    }
}
