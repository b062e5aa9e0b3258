//! What the server does by itself: makes the namespaces that are always there, and lets go of what expires.

use std::time::Duration;

use serde_json::{Value, json};
use strata_model::status::Reason;
use strata_store::record::Record;
use strata_store::txn::{Condition, Txn};

use super::api::Api;
use super::body::Body;
use super::request::{Caller, Deed, Target, WriteOptions};
use crate::refusal::Outcome;
use crate::storage;
use crate::types::{namespace, policy};
use crate::value::text;
use strata_model::resource::{GroupResource, builtin};

/// How often expired objects are looked for.
pub const SWEEP_EVERY: Duration = Duration::from_secs(60);
/// Most objects that go in one transaction.
const SWEEP_BATCH: usize = 256;

impl Api {
    /// Makes the namespaces that are always there, their default service accounts, and the platform's priority
    /// classes. Writes nothing where they are.
    pub async fn prepare(&self) -> Outcome<()> {
        let caller = Caller::server("start");
        for name in namespace::AT_START {
            self.ensure(&caller, &builtin::NAMESPACE.id, "", json!({"metadata": {"name": name}})).await?;
        }
        for name in namespace::AT_START {
            self.ensure(
                &caller,
                &builtin::SERVICE_ACCOUNT.id,
                name,
                json!({"metadata": {"name": "default"}}),
            )
            .await?;
        }
        self.ensure_roles().await?;
        for (name, value) in policy::SYSTEM_CLASSES {
            let class = json!({"metadata": {"name": name}, "value": value,
                "description": "For pods without which the platform does not work."});
            self.ensure(&caller, &builtin::PRIORITY_CLASS.id, "", class).await?;
        }
        Ok(())
    }

    async fn ensure(
        &self,
        caller: &Caller,
        id: &GroupResource,
        namespace: &str,
        object: Value,
    ) -> Outcome<()> {
        let name = text(&object, &["metadata", "name"]);
        let catalogue = self.catalogue();
        let Some(served) = catalogue.by_id(id) else { return Ok(()) };
        if self.latest().await?.get(&storage::key(id, namespace, name)).is_some() {
            return Ok(());
        }
        let target = Target {
            served: served.clone(),
            namespace: namespace.to_owned(),
            name: String::new(),
            subresource: String::new(),
        };
        let body = Body::json(object.to_string());
        match self.create(caller, &target, &body, &WriteOptions::default()).await {
            Err(refusal) if refusal.reason == Some(Reason::AlreadyExists) => Ok(()),
            other => other.map(drop),
        }
    }

    /// Removes what has expired; tells how many objects went. Writes nothing if none did.
    pub async fn sweep(&self) -> Outcome<usize> {
        let now = self.moment().now.as_second();
        let snapshot = self.latest().await?;
        let mut gone = 0;
        for served in self.catalogue().all() {
            let Some(seconds) = served.rules.expires_after_seconds else { continue };
            let expired: Vec<&std::sync::Arc<Record>> = snapshot
                .range(&storage::range(&served.resource.id, ""), None)
                .filter(|record| last_seen(record).is_some_and(|seen| seen + seconds < now))
                .collect();
            for batch in expired.chunks(SWEEP_BATCH) {
                let start = Txn::new().cause(Deed::delete("expired").cause(&Caller::server("expiry")));
                let txn = batch.iter().fold(start, |txn, record| {
                    txn.when(record.key.clone(), Condition::At(record.modified)).delete(record.key.clone())
                });
                // One that changed meanwhile is not expired; the next sweep looks again.
                if self.commit(txn).await?.is_ok() {
                    gone += batch.len();
                }
            }
        }
        Ok(gone)
    }
}

/// When an object was last written about, in seconds; its creation where nothing newer is told.
fn last_seen(record: &Record) -> Option<i64> {
    let object = storage::parse(record).ok()?;
    let instants =
        ["/series/lastObservedTime", "/lastTimestamp", "/eventTime", "/metadata/creationTimestamp"];
    let seen = instants.iter().filter_map(|p| object.pointer(p)?.as_str()?.parse::<jiff::Timestamp>().ok());
    seen.map(jiff::Timestamp::as_second).max()
}
