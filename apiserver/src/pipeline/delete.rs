//! Delete, of one object or of all that are selected.

use std::sync::Arc;

use bytes::Bytes;
use futures_util::stream::{StreamExt, TryStreamExt, iter};
use serde_json::Value;
use strata_model::resource::Verb;
use strata_model::status::{Reason, Status};
use strata_store::record::Record;
use strata_store::txn::{Condition, Txn};

use super::admit::Step;
use super::api::{Api, MAX_ATTEMPTS, record_of};
use super::create::to_bytes;
use super::read::{ListOptions, Page};
use super::request::{Caller, Deed, Target};
use super::riders::Riders;
use super::settle::reserve;
use super::update::stale;
use crate::admission::operation::Operation;
use crate::deletion::{self, Options, Verdict};
use crate::refusal::{Outcome, about};
use crate::storage;
use crate::value::text;

/// How many deletes of a collection are under way at a time.
const COLLECTION_WIDTH: usize = 16;

/// What a delete came to.
#[derive(Clone, Debug)]
pub struct Deleted {
    /// The object as it remains, or a Status where it is gone.
    pub bytes: Bytes,
    /// Whether it is gone.
    pub removed: bool,
    /// Sentences the user should see.
    pub warnings: Vec<String>,
}

impl Api {
    /// Deletes one object.
    pub async fn delete(&self, caller: &Caller, target: &Target, options: &Options) -> Outcome<Deleted> {
        target.admit(caller, Verb::Delete)?;
        let deleted = self.remove(caller, &target.stored(), options).await?;
        if deleted.removed {
            return Ok(deleted);
        }
        Ok(Deleted { bytes: target.show(deleted.bytes)?, ..deleted })
    }

    async fn remove(&self, caller: &Caller, target: &Target, options: &Options) -> Outcome<Deleted> {
        if target.served.rules.protected.contains(&target.name.as_str()) {
            let about = about(&target.served.resource, &target.name);
            let why = format!("this {} may not be deleted", target.served.resource.singular);
            return Err(Box::new(Status::forbidden(about, &why)));
        }
        for _ in 0..MAX_ATTEMPTS {
            let record = record_of(&self.latest().await?, target)?;
            let old = self.load(&target.served, &record).await?;
            target.admit_object(caller, Verb::Delete.as_str(), &target.name, &old)?;
            let step = Step {
                caller,
                target,
                operation: Operation::Delete,
                through: "",
                old: Some(&old),
                dry_run: options.dry_run,
            };
            let warnings = self.judge(step, None).await?;
            let deed = Deed::delete(&options.cause);
            if let Some(deleted) =
                self.strike(caller, target, (&record, &old), options, deed, Riders::none()).await?
            {
                return Ok(Deleted { warnings, ..deleted });
            }
        }
        Err(stale(target))
    }

    /// Deletes an object that was read, with what rides along. `None`: it was changed by another write, or what rides
    /// with it was.
    pub async fn strike(
        &self,
        caller: &Caller,
        target: &Target,
        (record, old): (&Record, &Value),
        options: &Options,
        deed: Deed<'_>,
        riders: Riders,
    ) -> Outcome<Option<Deleted>> {
        match deletion::decide(&target.served, old, options, self.moment().now)? {
            Verdict::Unchanged => {
                let bytes = self.load_bytes(&target.served, record).await?;
                Ok(Some(Deleted { bytes, removed: false, warnings: Vec::new() }))
            }
            Verdict::Mark(new) if options.dry_run => {
                Ok(Some(Deleted { bytes: to_bytes(&new)?, removed: false, warnings: Vec::new() }))
            }
            Verdict::Mark(new) => {
                let marked = self.store_change(caller, target, record, &new, deed, riders).await?;
                Ok(marked.map(|bytes| Deleted { bytes, removed: false, warnings: Vec::new() }))
            }
            Verdict::Remove => {
                let about = about(&target.served.resource, &target.name);
                let status = Status::success(about, text(old, &["metadata", "uid"]));
                let bytes = to_bytes(&serde_json::to_value(&status).unwrap_or_default())?;
                let key = record.key.clone();
                let txn = Txn::new().when(key.clone(), Condition::At(record.modified)).delete(key);
                let txn = riders.board(reserve(target, txn, Some(old), None)).cause(deed.cause(caller));
                if !options.dry_run {
                    let Ok(committed) = self.commit_for(caller, txn).await? else { return Ok(None) };
                    self.followed(target, committed.revision).await;
                }
                Ok(Some(Deleted { bytes, removed: true, warnings: Vec::new() }))
            }
        }
    }

    /// Deletes all objects that are selected; answers them as they were.
    pub async fn delete_collection(
        &self,
        caller: &Caller,
        target: &Target,
        list: &ListOptions,
        options: &Options,
    ) -> Outcome<Page> {
        target.admit_selected(caller, Verb::DeleteCollection, &list.fields)?;
        let page = self.select(target, list).await?;
        let each = |record: &Arc<Record>| {
            let target = Target {
                served: Arc::clone(target.served.stored()),
                namespace: storage::namespace_of(record).to_owned(),
                name: storage::name_of(record).to_owned(),
                subresource: String::new(),
            };
            async move {
                match self.remove(caller, &target, options).await {
                    // Somebody else was faster.
                    Err(refusal) if refusal.reason == Some(Reason::NotFound) => Ok(()),
                    other => other.map(drop),
                }
            }
        };
        let deletes: Vec<_> = page.records.iter().map(each).collect();
        iter(deletes).buffer_unordered(COLLECTION_WIDTH).try_collect::<()>().await?;
        Ok(page)
    }
}
