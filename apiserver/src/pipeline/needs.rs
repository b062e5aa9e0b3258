//! What a new object needs beside itself: objects of its namespace that must be there when it comes, and stay until it
//! has. Those that every namespace has are made with it where they are missing, so that nobody waits for a controller.

use serde_json::json;
use strata_store::snapshot::Snapshot;
use strata_store::txn::Condition;

use super::api::Api;
use super::request::Target;
use super::riders::Riders;
use crate::refusal::Outcome;
use crate::storage;
use crate::strategy;
use serde_json::Value;

impl Api {
    /// The conditions, and what is made, for what a new object needs.
    pub fn needed(&self, snapshot: &Snapshot, target: &Target, object: &Value) -> Outcome<Riders> {
        let mut riders = Riders::none();
        let Some(needs) = target.served.rules.needs else { return Ok(riders) };
        for need in needs(object) {
            let key = storage::key(need.id, &target.namespace, &need.name);
            if !need.made || snapshot.get(&key).is_some() {
                riders.when(key, Condition::Present);
                continue;
            }
            let catalogue = self.catalogue();
            let Some(served) = catalogue.by_id(need.id) else { continue };
            let mut made = json!({"metadata": {"name": need.name}});
            strategy::create(served, &mut made, &target.namespace, &self.moment())?;
            riders.put(key, Condition::Absent, storage::stamped(&made)?);
        }
        Ok(riders)
    }
}
