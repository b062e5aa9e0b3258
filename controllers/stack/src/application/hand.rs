//! Does what a sync or a heal says: applies, replaces, deletes, side by side. Says of each what became of it; decides
//! nothing.

use std::sync::Arc;

use serde_json::json;
use strata_client::client::Client;
use strata_client::error::{Class, ClientError};
use strata_client::options::{DeleteOptions, Deleted, FieldValidation, Patch, WriteOptions, Written};
use strata_model::object::Object;
use strata_model::resource::ResourceType;
use strata_model::status::Reason;
use strata_plan::application::desired::Desired;
use strata_plan::application::sync::{How, Job, Work};
use strata_plan::application::types::MANAGER;
use strata_plan::controller::Propagation;
use strata_runtime::barrier::Barrier;
use strata_runtime::perform::abreast::{self, Begin};
use tokio::time::Instant;

use super::memory::Spot;

/// What became of a job.
#[derive(Debug)]
pub enum Became {
    /// It is done; a sentence for people.
    Done(String),
    /// It could not be changed and was deleted: it is to be made anew.
    Cleared,
    /// The server refused it, for good.
    Refused(String),
    /// It did not work this time.
    Failed(ClientError),
}

/// What a job did.
#[derive(Debug)]
pub struct Did {
    /// What became of it.
    pub became: Became,
    /// The object as it is now, where that is known; the inner `None`: it is gone.
    pub now: Option<(Spot, Option<Arc<Object>>)>,
    /// What the cache must see of it.
    pub barrier: Option<Barrier>,
    /// Whether something was written.
    pub wrote: bool,
    /// It may have happened without an answer: its type.
    pub unsure: Option<ResourceType>,
}

/// Does jobs, for one cause.
pub struct Hand<'a> {
    client: &'a Client,
    cause: String,
}

impl<'a> Hand<'a> {
    /// `cause` is kept with each write.
    pub fn new(client: &'a Client, cause: String) -> Self {
        Self { client, cause }
    }

    /// Does all, each whatever becomes of the others; in the order of the jobs. Those that are not begun by the deadline
    /// are left out at the end.
    pub async fn all(&self, jobs: &[Job], deadline: Instant) -> Vec<(usize, Did)> {
        let mut done = Vec::with_capacity(jobs.len());
        let mut calls = Vec::with_capacity(jobs.len());
        for job in jobs {
            calls.push(async move { Ok::<_, ()>(self.one(job).await) });
        }
        abreast::run(calls, Begin::AtOnce, deadline, |at, did: Result<Did, ()>| {
            done.extend(did.ok().map(|did| (at, did)));
        })
        .await;
        done.sort_by_key(|(at, _)| *at);
        done
    }

    /// Does one.
    pub async fn one(&self, job: &Job) -> Did {
        match &job.work {
            Work::Apply(desired, how) => self.apply(desired, *how, job.live.as_deref()).await,
            Work::Delete(resource) => self.delete(resource, job.live.as_deref()).await,
        }
    }

    async fn apply(&self, desired: &Desired, how: How, live: Option<&Object>) -> Did {
        let Some(resource) = &desired.resource else {
            return nothing(Became::Refused(format!("the type of {} is not served", desired.id)));
        };
        let validation =
            if desired.has("Validate=false") { FieldValidation::Ignore } else { FieldValidation::Warn };
        let options = WriteOptions {
            dry_run: how.dry_run,
            field_manager: MANAGER.to_owned(),
            field_validation: validation,
            cause: self.cause.clone(),
        };
        let key = desired.id.key();
        let mut object = desired.object.clone();
        if let Some(live) = live {
            // Another object of the same name is not the one that was looked at.
            object["metadata"]["uid"] = json!(live.meta().uid);
        }
        let written = match (how.replace, live) {
            (true, Some(live)) => {
                object["metadata"]["resourceVersion"] = json!(live.meta().resource_version);
                self.client.update(resource, &key, "", object.to_string(), &options).await
            }
            _ => {
                let patch = Patch::Apply { object: object.to_string().into(), force: true };
                self.client.patch(resource, &key, "", &patch, &options).await
            }
        };
        match written {
            Ok(written) => applied(resource, desired, written, live.is_some(), how.dry_run),
            Err(error) if how.force && !how.dry_run && error.is(Reason::Invalid) && live.is_some() => {
                let mut did = self.delete(resource, live).await;
                if matches!(did.became, Became::Done(_)) {
                    did.became = Became::Cleared;
                }
                did
            }
            Err(error) => failed(resource, error),
        }
    }

    async fn delete(&self, resource: &ResourceType, live: Option<&Object>) -> Did {
        let Some(live) = live else { return nothing(Became::Done("gone already".to_owned())) };
        let options = DeleteOptions {
            propagation_policy: Propagation::Foreground.as_str().to_owned(),
            uid: live.meta().uid.clone(),
            cause: self.cause.clone(),
            ..DeleteOptions::default()
        };
        let spot = (resource.id.clone(), live.key());
        let left = Barrier::Left {
            resource: resource.id.clone(),
            key: live.key(),
            uid: live.meta().uid.clone(),
            resource_version: Some(live.meta().resource_version.clone()),
        };
        let became = Became::Done("pruned".to_owned());
        match self.client.delete(resource, &live.key(), &options).await {
            Ok(Deleted { removed: false, object, .. }) if object.meta().revision().is_some() => {
                let now = Some((spot, Some(Arc::new(object.without_managers()))));
                Did { became, now, barrier: Some(left), wrote: true, unsure: None }
            }
            Ok(_) => Did { became, now: Some((spot, None)), barrier: Some(left), wrote: true, unsure: None },
            Err(error) if error.class() == Class::NotFound => {
                Did { became, now: Some((spot, None)), barrier: Some(left), wrote: false, unsure: None }
            }
            Err(error) => failed(resource, error),
        }
    }
}

fn nothing(became: Became) -> Did {
    Did { became, now: None, barrier: None, wrote: false, unsure: None }
}

fn applied(resource: &ResourceType, desired: &Desired, written: Written, was: bool, dry: bool) -> Did {
    let word = match (was, written.changed) {
        (false, _) => "created",
        (true, true) => "configured",
        (true, false) => "unchanged",
    };
    let mut message = format!("{}/{} {word}", resource.singular, desired.id.name);
    if dry {
        message.push_str(" (dry run)");
        return nothing(Became::Done(message));
    }
    for warning in &written.warnings {
        message.push_str("; warning: ");
        message.push_str(warning);
    }
    let revision = written.object.meta().revision().filter(|_| written.changed);
    let barrier = revision.map(|at| Barrier::Revision(resource.id.clone(), at));
    let spot = (resource.id.clone(), desired.id.key());
    let now = Some((spot, Some(Arc::new(written.object.without_managers()))));
    Did { became: Became::Done(message), now, barrier, wrote: written.changed, unsure: None }
}

fn failed(resource: &ResourceType, error: ClientError) -> Did {
    let became = match (&error, error.class()) {
        (ClientError::Refused { status }, Class::Invalid | Class::Terminal | Class::NotFound) => {
            Became::Refused(status.message.clone())
        }
        _ => Became::Failed(error),
    };
    let unsure = match &became {
        Became::Failed(ClientError::Refused { .. }) | Became::Refused(_) => None,
        _ => Some(resource.clone()),
    };
    Did { unsure, ..nothing(became) }
}
