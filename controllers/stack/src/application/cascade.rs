//! The end of an Application whose objects go with it: deletes them, last things first, and lets it go once they are gone.

use std::sync::Arc;

use serde_json::{Value, json};
use strata_client::error::ClientError;
use strata_client::options::{Patch, WriteOptions};
use strata_model::object::{Object, ObjectKey};
use strata_model::status::Reason;
use strata_plan::application::compare::Item;
use strata_plan::application::identity::{ObjectId, owner};
use strata_plan::application::order::pruned;
use strata_plan::application::sync::{Job, Work};
use strata_plan::application::types::{
    APPLICATION, FINALIZER, FINALIZER_BACKGROUND, FINALIZER_FOREGROUND, MANAGER,
};
use strata_runtime::queue;
use strata_runtime::reconcile::{Context, Outcome, ReconcileError};

use super::gather::Types;
use super::hand::{Became, Hand};
use super::memory::Memory;

/// The finalizers that ask for it.
const ASKING: [&str; 3] = [FINALIZER, FINALIZER_BACKGROUND, FINALIZER_FOREGROUND];

/// Whether an Application's objects go with it.
pub fn is_asked(app: &Object) -> bool {
    app.meta().finalizers.iter().any(|f| ASKING.contains(&f.as_str()))
}

/// One step of it.
pub async fn step(
    context: &Context,
    job: &queue::Job,
    app: &Object,
    memory: &Memory,
    types: &Types,
) -> Outcome {
    let mut outcome = Outcome::default();
    let items = remaining(context, &job.key.object, memory, types);
    if items.is_empty() {
        release(context, job, app, &mut outcome).await;
        return outcome;
    }
    let Some(first) = items.iter().map(|i| pruned(&i.id, i.wave())).min() else { return outcome };
    let is_due = |i: &&Item| pruned(&i.id, i.wave()) == first && !is_going(i);
    let jobs: Vec<Job> = items.iter().filter(is_due).filter_map(delete).collect();
    let hand = Hand::new(&context.client, format!("{}: deleted with its objects", job.key));
    for (_, did) in hand.all(&jobs, context.deadline()).await {
        outcome.writes += usize::from(did.wrote);
        outcome.barriers.extend(did.barrier);
        outcome.unsure.extend(did.unsure);
        let error = match did.became {
            Became::Done(_) | Became::Cleared => None,
            Became::Failed(source) => Some(source),
            Became::Refused(why) => {
                Some(ClientError::refused(strata_model::status::Status::failure(Reason::Forbidden, why)))
            }
        };
        if let Some(source) = error {
            let doing = "delete what belongs to the Application".to_owned();
            outcome.error.get_or_insert(ReconcileError::Request { doing, source });
        }
    }
    outcome
}

fn is_going(item: &Item) -> bool {
    item.live.as_ref().is_some_and(|o| o.meta().is_deleting())
}

fn delete(item: &Item) -> Option<Job> {
    let work = Work::Delete(item.resource.clone()?);
    Some(Job { work, live: item.live.clone(), result: None })
}

fn remaining(context: &Context, app: &ObjectKey, memory: &Memory, types: &Types) -> Vec<Item> {
    let spots = memory.index().held(app);
    context.view(|view| {
        let item = |spot: &super::memory::Spot| {
            let live: Arc<Object> = view.get(&spot.0, &spot.1).filter(|o| owner(o).as_ref() == Some(app))?;
            let resource = types.watched.iter().find(|t| t.id == spot.0).cloned();
            Some(Item { id: ObjectId::of(&live), resource, live: Some(live), ..Item::default() })
        };
        spots.iter().filter_map(item).filter(|i| !i.has("Delete=false")).collect()
    })
}

/// Lets the Application go.
async fn release(context: &Context, job: &queue::Job, app: &Object, outcome: &mut Outcome) {
    let rest: Vec<&String> = app.meta().finalizers.iter().filter(|f| !ASKING.contains(&f.as_str())).collect();
    let rest = if rest.is_empty() { Value::Null } else { json!(rest) };
    let meta =
        json!({"uid": app.meta().uid, "resourceVersion": app.meta().resource_version, "finalizers": rest});
    let options = WriteOptions {
        field_manager: MANAGER.to_owned(),
        cause: format!("{}: its objects are gone", job.key),
        ..WriteOptions::default()
    };
    let patch = Patch::Merge(json!({"metadata": meta}));
    match context.client.patch(&APPLICATION, &job.key.object, "", &patch, &options).await {
        Ok(_) => outcome.writes += 1,
        Err(error) if error.is(Reason::NotFound) => {}
        Err(source) => {
            let doing = format!("let {} go", job.key.object);
            outcome.error = Some(ReconcileError::Request { doing, source });
        }
    }
}
