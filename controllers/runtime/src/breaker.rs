//! The hot-loop breaker around a plan: counts what it writes, looks live at who undid it, and where two writers fight
//! tells people (an Event, and the condition `Contended` of the root) and has the key pause. Decides by `guard`.

use std::sync::Arc;

use jiff::Timestamp;
use serde_json::{Value, json};
use strata_client::options::{GetOptions, Patch, WriteOptions};
use strata_model::condition::rfc3339;
use strata_model::object::Object;
use strata_model::resource::ResourceType;
use strata_plan::controller::{Action, EventType, Key, Next, Target};

use crate::barrier::Barrier;
use crate::events::Told;
use crate::guard::contest::{Contest, contest};
use crate::guard::{self, Guard, Print, SUSPECT, Truce};
use crate::reconcile::{Context, Damped, Outcome};

/// The condition of a root whose controller fights with another writer.
pub const CONTENDED: &str = "Contended";
/// Its reason, and that of the Event.
const FIGHTING: &str = "FightingWriters";
/// The reason once it is over.
const SETTLED: &str = "Settled";
/// Most looks at the server for one plan: one fight is enough to pause.
const MOST_LOOKS: usize = 4;

/// A write of a plan.
pub struct Suspect {
    print: Print,
    target: Target,
    contest: Option<Contest>,
}

/// The breaker of one reconcile.
pub struct Breaker<'a> {
    context: &'a Context,
    me: &'static str,
    key: &'a Key,
}

impl<'a> Breaker<'a> {
    /// `me` is the field manager of what is written.
    pub fn new(context: &'a Context, me: &'static str, key: &'a Key) -> Self {
        Self { context, me, key }
    }

    fn guard<T>(&self, act: impl FnOnce(&mut Guard) -> T) -> T {
        act(&mut self.context.shared.guard())
    }

    /// The writes of a plan that could be undone by others; those that were made again and again lately with who had
    /// set their fields before, as the server knows it now.
    pub async fn suspects(&self, actions: &[Action]) -> Vec<Suspect> {
        let mut looks = 0;
        let mut suspects = Vec::new();
        for action in actions {
            let Some((print, target)) = guard::print(action) else { continue };
            let mut suspect = Suspect { print, target: target.clone(), contest: None };
            if looks < MOST_LOOKS && self.guard(|g| g.times(print)) + 1 >= SUSPECT {
                looks += 1;
                suspect.contest = self.rivals(target, action).await;
            }
            suspects.push(suspect);
        }
        suspects
    }

    async fn rivals(&self, target: &Target, action: &Action) -> Option<Contest> {
        let patch = match action {
            Action::Patch { patch, .. } => patch.clone(),
            Action::Status { status, .. } => json!({"status": status}),
            Action::Replace { object, .. } => object.clone(),
            _ => return None,
        };
        let before = self.read(&target.resource, target).await?;
        contest(&before.to_value().ok()?, self.me, &patch)
    }

    async fn read(&self, resource: &ResourceType, target: &Target) -> Option<Object> {
        match self.context.client.get(resource, &target.key, &GetOptions::default()).await {
            Ok(object) => Some(object),
            Err(error) => {
                tracing::debug!(error = &error as &dyn std::error::Error, key = %target.key,
                    "cannot see who else writes");
                None
            }
        }
    }

    /// The plan is carried out: counts its writes. Where it undid another's again, the outcome says to pause.
    pub async fn made(&self, suspects: Vec<Suspect>, mut outcome: Outcome) -> Outcome {
        let now = self.context.shared.now();
        let mut worst: Option<(Truce, String)> = None;
        for Suspect { print, target, contest } in suspects {
            let times = self.guard(|g| g.wrote(print, now));
            let Some(contest) = contest else { continue };
            let Some(truce) = self.guard(|g| g.contested(self.key, times, now)) else { continue };
            let why = guard::sentence(self.me, &target, &contest);
            let (about, reason) = (target, FIGHTING);
            let told = Told { about, type_: EventType::Warning, reason, message: why.clone() };
            self.context.recorder.tell(told);
            worst = Some((truce, why));
        }
        let Some((truce, why)) = worst else { return outcome };
        if truce.first {
            tracing::warn!(key = %self.key, why, "two writers fight");
        }
        outcome.barriers.extend(self.condition("True", FIGHTING, &why).await);
        outcome.damped = Some(Damped { pause: truce.pause, why });
        outcome
    }

    /// Nothing was to be done. Where there was a fight, it is over after a while of peace, and that is said.
    pub async fn settled(&self, next: Next) -> Outcome {
        let shared = &self.context.shared;
        let at = self.guard(|g| g.settled(self.key, shared.now()));
        match at {
            None => Outcome::settled(next),
            Some(Some(at)) => Outcome::settled(next.or_at(shared.timestamp(at))),
            Some(None) => {
                let why = "nobody undoes what this controller writes any more";
                let barriers: Vec<Barrier> =
                    self.condition("False", SETTLED, why).await.into_iter().collect();
                Outcome { writes: barriers.len(), barriers, ..Outcome::settled(next) }
            }
        }
    }

    /// Sets the condition of the root, where its type has a status. Best effort: the pause does not hang on it.
    async fn condition(&self, status: &str, reason: &str, why: &str) -> Option<Barrier> {
        let resource: Arc<ResourceType> = self.context.shared.core().watched_type(&self.key.resource)?;
        if !resource.has_status() {
            return None;
        }
        let root = Target {
            resource: (*resource).clone(),
            key: self.key.object.clone(),
            uid: String::new(),
            resource_version: None,
        };
        let object = self.read(&resource, &root).await?;
        let mut value = object.to_value().ok()?;
        let list = value["status"]["conditions"].take();
        let conditions = with(list, status, reason, why, Timestamp::now())?;
        let patch = Patch::Merge(json!({
            "metadata": {"uid": object.meta().uid, "resourceVersion": object.meta().resource_version},
            "status": {"conditions": conditions},
        }));
        let options = WriteOptions { field_manager: self.me.to_owned(), ..WriteOptions::default() };
        match self.context.client.patch(&resource, &root.key, "status", &patch, &options).await {
            Ok(written) => {
                let revision = written.object.meta().revision().filter(|_| written.changed);
                revision.map(|at| Barrier::Revision(resource.id.clone(), at))
            }
            Err(error) => {
                tracing::debug!(error = &error as &dyn std::error::Error, key = %self.key, "condition not set");
                None
            }
        }
    }
}

/// A list of conditions with ours in it; those of others as they are. `None`: it says so already.
fn with(list: Value, status: &str, reason: &str, message: &str, now: Timestamp) -> Option<Value> {
    let mut list = if let Value::Array(list) = list { list } else { Vec::new() };
    let mut new = json!({
        "type": CONTENDED, "status": status, "reason": reason, "message": message, "lastTransitionTime": rfc3339(now),
    });
    match list.iter_mut().find(|c| c["type"] == CONTENDED) {
        Some(old) => {
            if old["status"] == new["status"] {
                new["lastTransitionTime"] = old["lastTransitionTime"].take();
                if old["message"] == new["message"] && old["reason"] == new["reason"] {
                    return None;
                }
            }
            *old = new;
        }
        None if status == "False" => return None,
        None => list.push(new),
    }
    Some(Value::Array(list))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_condition_is_set_beside_those_of_others_and_only_where_it_says_something_new() {
        let (then, now) = (Timestamp::UNIX_EPOCH, Timestamp::from_second(60).expect("a time"));
        let others = json!([{"type": "Available", "status": "True", "novel": 1}]);
        let set = with(others, "True", FIGHTING, "a and b", then).expect("a change");
        assert_eq!(set[0]["novel"], 1);
        assert_eq!(set[1]["type"], CONTENDED);
        assert_eq!(with(set.clone(), "True", FIGHTING, "a and b", now), None);
        let other = with(set.clone(), "True", FIGHTING, "a and c", now).expect("another message");
        assert_eq!(other[1]["lastTransitionTime"], "1970-01-01T00:00:00Z");
        let over = with(other, "False", SETTLED, "over", now).expect("a change");
        assert_eq!(over[1]["lastTransitionTime"], "1970-01-01T00:01:00Z");
        assert_eq!(with(Value::Null, "False", SETTLED, "over", now), None);
    }
}
