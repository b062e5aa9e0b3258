//! Verdicts: asks the server, by dry runs, what applying wishes would change. Each is asked for once, for as long as
//! neither the wish nor what it could change in the live object is another one.

use std::time::Duration;

use serde_json::Value;
use strata_client::client::Client;
use strata_client::error::{Class, ClientError};
use strata_client::options::{GetOptions, Patch, WriteOptions};
use strata_plan::application::compare::Item;
use strata_plan::application::desired::Desired;
use strata_plan::application::difference::{self, Verdict};
use strata_plan::application::ignore::Rules;
use strata_plan::application::spec::Spec;
use strata_plan::application::types::MANAGER;
use strata_runtime::perform::abreast::{self, Begin};
use strata_runtime::reconcile::ReconcileError;
use tokio::time::Instant;

use super::jq;
use super::memory::{App, Judged};

/// After this long a refusal is asked for again: what the server refuses may hang on more than the object.
pub const REFUSED_AGAIN: Duration = Duration::from_secs(30);

/// Gives every object its verdict. Fails where the server could not be asked.
pub async fn judge(
    client: &Client,
    spec: &Spec,
    items: &mut [Item],
    own: &mut App,
    deadline: Instant,
) -> Result<(), ReconcileError> {
    let now = Instant::now();
    let mut open = Vec::new();
    for (at, item) in items.iter_mut().enumerate() {
        let Some(desired) = item.desired.clone() else { continue };
        item.verdict = known(item, &desired, own, now);
        let asks = item.live.as_ref().is_some_and(|o| !o.meta().is_deleting()) && item.holder.is_none();
        if item.verdict.is_none() && asks && desired.resource.is_some() && !desired.is_hook() {
            open.push((at, item.clone(), desired));
        }
    }
    let mut calls = Vec::with_capacity(open.len());
    for (at, item, desired) in &open {
        let rules = Rules::of(&spec.ignore_differences, &item.id);
        calls.push(async move { Ok::<_, ()>((*at, dry_run(client, item, desired, &rules).await)) });
    }
    let mut answers = Vec::new();
    abreast::run(calls, Begin::AtOnce, deadline, |_, answer: Result<_, ()>| answers.extend(answer.ok()))
        .await;
    if answers.len() < open.len() {
        let message = "not compared in time; going on from here".to_owned();
        return Err(ReconcileError::Effect { message, class: Class::Transient });
    }
    for (at, answer) in answers {
        let item = &mut items[at];
        let verdict = answer
            .map_err(|source| ReconcileError::Request { doing: format!("compare {}", item.id), source })?;
        let desired = item.desired.as_ref().map_or(0, |d| d.hash);
        remember(own, item, desired, verdict.clone());
        item.verdict = Some(verdict);
    }
    Ok(())
}

/// Keeps a verdict.
pub fn remember(own: &mut App, item: &Item, desired: u64, verdict: Verdict) {
    let live = if item.live.is_some() { item.seen.fingerprint } else { 0 };
    own.judged.insert(item.id.clone(), Judged { desired, live, verdict, at: Instant::now() });
}

fn known(item: &Item, desired: &Desired, own: &App, now: Instant) -> Option<Verdict> {
    let plain = desired.object["metadata"].as_object().is_some_and(|m| m.len() == 1);
    if desired.is_scaffold && plain && item.live.is_some() {
        return Some(Verdict::Same);
    }
    let live = if item.live.is_some() { item.seen.fingerprint } else { 0 };
    let judged = own.judged.get(&item.id).filter(|j| j.desired == desired.hash && j.live == live)?;
    let is_old = matches!(judged.verdict, Verdict::Refused(_)) && now >= judged.at + REFUSED_AGAIN;
    (!is_old).then(|| judged.verdict.clone())
}

async fn dry_run(
    client: &Client,
    item: &Item,
    desired: &Desired,
    rules: &Rules,
) -> Result<Verdict, ClientError> {
    let (Some(resource), Some(live)) = (&desired.resource, &item.live) else {
        return Ok(Verdict::Refused("it is not there".to_owned()));
    };
    let options =
        WriteOptions { dry_run: true, field_manager: MANAGER.to_owned(), ..WriteOptions::default() };
    let patch = Patch::Apply { object: desired.object.to_string().into(), force: true };
    let written = match client.patch(resource, &desired.id.key(), "", &patch, &options).await {
        Ok(written) => written,
        Err(error) => return refused(error),
    };
    if !written.changed {
        return Ok(Verdict::Same);
    }
    // The cache has neither other versions nor the managers of fields.
    let is_as_cached = live.api_version() == resource.api_version() && !rules.asks_managers();
    let live = match is_as_cached {
        true => live.to_value(),
        false => client.get(resource, &desired.id.key(), &GetOptions::default()).await?.to_value(),
    };
    let (Ok(live), Ok(predicted)) = (live, written.object.to_value()) else {
        return Ok(Verdict::Refused("the object cannot be read".to_owned()));
    };
    Ok(difference(live, predicted, rules).await)
}

/// The verdict on a live object and what the wish would make of it.
pub async fn difference(live: Value, predicted: Value, rules: &Rules) -> Verdict {
    let managed = live["metadata"]["managedFields"].clone();
    let mut objects = vec![difference::plain(live), difference::plain(predicted)];
    for object in &mut objects {
        rules.strip(object, &managed);
    }
    if !rules.expressions().is_empty() {
        objects = match jq::delete(rules.expressions(), objects).await {
            Ok(objects) => objects,
            Err(why) => return Verdict::Refused(format!("spec.ignoreDifferences: {why}")),
        };
    }
    difference::verdict(&objects[0], &objects[1])
}

/// What the server refuses for good is a verdict; what may pass is an error.
pub fn refused(error: ClientError) -> Result<Verdict, ClientError> {
    match (&error, error.class()) {
        (ClientError::Refused { status }, Class::Invalid | Class::Terminal) => {
            Ok(Verdict::Refused(status.message.clone()))
        }
        _ => Err(error),
    }
}
