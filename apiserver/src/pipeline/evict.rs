//! Eviction: a deletion that the disruption budgets of a pod agree to, and pay for in the same transaction.

use std::sync::Arc;

use serde_json::Value;
use strata_model::resource::builtin;
use strata_store::record::Record;
use strata_store::snapshot::Snapshot;
use strata_store::txn::Condition;

use super::admit::Step;
use super::api::{Api, MAX_ATTEMPTS, record_of};
use super::bind::done;
use super::body::{self, Body, Wanted};
use super::request::{Caller, Deed, Target, WriteOptions, Written};
use super::riders::Riders;
use super::update::stale;
use crate::admission::eviction::{self, Verdict};
use crate::admission::operation::Operation;
use crate::deletion::Options;
use crate::refusal::{Outcome, bad_request};
use crate::storage;
use crate::types::pod::POD;
use crate::value::{at, text};

const EVICTION: Wanted<'static> = Wanted::new("policy", "v1", "Eviction");

impl Api {
    /// Evicts a pod.
    pub async fn evict(
        &self,
        caller: &Caller,
        target: &Target,
        body: &Body,
        options: &WriteOptions,
    ) -> Outcome<Written> {
        let body::Decoded { value, mut warnings } = body::decode(body, EVICTION, options.validation)?;
        let deletion = asked(target, &value, options)?;
        let evicts = Step {
            caller,
            target,
            operation: Operation::Create,
            through: &target.subresource,
            old: None,
            dry_run: deletion.dry_run,
        };
        warnings.extend(self.judge(evicts, Some(&value)).await?);
        let record = record_of(&self.latest().await?, target)?;
        let pod = storage::parse(&record)?;
        let deletes = Step { operation: Operation::Delete, through: "", old: Some(&pod), ..evicts };
        warnings.extend(self.judge(deletes, None).await?);
        // Evictions of a namespace go one after the other: most of them change the same budget.
        let _turn = self.turns.take(&target.namespace).await;
        for _ in 0..MAX_ATTEMPTS {
            let snapshot = self.latest().await?;
            let record = record_of(&snapshot, target)?;
            let pod = storage::parse(&record)?;
            let budgets = budgets(&snapshot, target, &record);
            let values: Vec<Value> = budgets.iter().map(|(_, value)| value.clone()).collect();
            let now = self.moment().now;
            let mut riders = Riders::none();
            if let Verdict::Charged(index, after) = eviction::decide(&pod, &values, now)? {
                let budget = &budgets[index].0;
                riders.put(budget.key.clone(), Condition::At(budget.modified), storage::stamped(&after)?);
            }
            let told = eviction::marked(&pod, now);
            let going = at(&pod, &["metadata", "deletionTimestamp"]).is_some();
            let old = if going { &pod } else { &told };
            let deed = Deed::new("create", "eviction", options);
            if self.strike(caller, target, (&record, old), &deletion, deed, riders).await?.is_some() {
                return done(target, warnings);
            }
        }
        Err(stale(target))
    }
}

/// How the pod is to be deleted.
fn asked(target: &Target, eviction: &Value, options: &WriteOptions) -> Outcome<Options> {
    let name = text(eviction, &["metadata", "name"]);
    if !name.is_empty() && name != target.name {
        return Err(bad_request("name in URL does not match name in Eviction object"));
    }
    let namespace = text(eviction, &["metadata", "namespace"]);
    if !namespace.is_empty() && namespace != target.namespace {
        return Err(bad_request(
            "the namespace of the provided object does not match the namespace sent on the request",
        ));
    }
    let mut deletion = match at(eviction, &["deleteOptions"]) {
        Some(given) if given.is_object() => Options::of(given)?,
        _ => Options::default(),
    };
    deletion.dry_run |= options.dry_run;
    deletion.cause.clone_from(&options.cause);
    Ok(deletion)
}

/// The budgets that select a pod.
fn budgets(snapshot: &Snapshot, target: &Target, pod: &Record) -> Vec<(Arc<Record>, Value)> {
    let range = storage::range(&builtin::POD_DISRUPTION_BUDGET.id, &target.namespace);
    let labels = &storage::head(pod, &POD).labels;
    let parsed = |record: &Arc<Record>| Some((Arc::clone(record), storage::parse(record).ok()?));
    snapshot
        .range(&range, None)
        .filter_map(parsed)
        .filter(|(_, budget)| eviction::selects(budget, labels))
        .collect()
}
