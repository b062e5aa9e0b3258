//! Holds a Lease of coordination.k8s.io as `election` decides: takes it, renews it, gives it back. The only writes of
//! an idle platform.

use std::sync::Arc;

use jiff::Timestamp;
use serde_json::{Value, json};
use strata_client::client::Client;
use strata_client::error::{Class, ClientError};
use strata_client::fence::{Fence, Term};
use strata_client::options::{GetOptions, Patch, WriteOptions};
use strata_model::object::{Object, ObjectKey};
use strata_model::resource::builtin;
use tokio::sync::watch;

use crate::election::{Election, LEASE_DURATION, RENEW_PERIOD, RETRY_PERIOD, Record, Step};
use crate::queue::Moment;
use crate::reconcile::Shared;

/// Where leases of controllers live.
pub const NAMESPACE: &str = "kube-system";
/// Between attempts while there is no connection: a server that comes up is not kept waiting.
const RECONNECT: std::time::Duration = std::time::Duration::from_millis(100);

/// The lease went to another, or could not be renewed in time.
#[derive(Debug, thiserror::Error)]
#[error("the lease {NAMESPACE}/{name} is lost: {why}")]
pub struct LeaseLost {
    /// Name of the lease.
    pub name: String,
    /// How.
    pub why: String,
}

/// One candidate for one lease.
pub struct Lease {
    client: Client,
    shared: Arc<Shared>,
    key: ObjectKey,
    identity: String,
    election: Election,
    fence: Fence,
    seen: Option<Seen>,
}

/// The lease as last seen.
struct Seen {
    uid: String,
    resource_version: String,
    transitions: u64,
    acquired: String,
}

impl Lease {
    /// A candidate of this identity; see [`Election::new`] for what an identity is. While it leads, writes of the
    /// clients of this fence are made in its term.
    pub fn new(client: Client, shared: Arc<Shared>, name: &str, identity: &str, fence: Fence) -> Self {
        Self {
            fence,
            client,
            shared,
            key: ObjectKey::new(NAMESPACE, name),
            identity: identity.to_owned(),
            election: Election::new(identity),
            seen: None,
        }
    }

    /// Takes the lease, says so, and holds it until `stop` turns true (gives it back then) or it is lost.
    pub async fn run(
        mut self,
        leads: watch::Sender<bool>,
        mut stop: watch::Receiver<bool>,
    ) -> Result<(), LeaseLost> {
        tokio::select! {
            () = self.acquire() => {}
            _ = stop.wait_for(|stop| *stop) => return Ok(()),
        }
        if let Err(error) = self.fence.set(&self.term()) {
            return Err(self.lost(error.to_string()));
        }
        tracing::info!(lease = %self.key, identity = self.identity, "leading");
        leads.send_replace(true);
        let lost = tokio::select! {
            lost = self.hold() => lost,
            _ = stop.wait_for(|stop| *stop) => return Ok(()),
        };
        leads.send_replace(false);
        Err(lost)
    }

    /// Gives the lease back, so that the next need not wait. Best effort.
    pub async fn release(client: &Client, name: &str, identity: &str) {
        let key = ObjectKey::new(NAMESPACE, name);
        let Ok(object) = client.get(&builtin::LEASE, &key, &GetOptions::default()).await else { return };
        if record(&object).holder != identity {
            return;
        }
        let meta = object.meta();
        let patch = json!({
            "metadata": {"uid": meta.uid, "resourceVersion": meta.resource_version},
            "spec": {"holderIdentity": "", "leaseDurationSeconds": 1},
        });
        let options = WriteOptions { field_manager: name.to_owned(), ..WriteOptions::default() };
        if let Err(error) = client.patch(&builtin::LEASE, &key, "", &Patch::Merge(patch), &options).await {
            tracing::debug!(error = &error as &dyn std::error::Error, lease = %key, "lease not given back");
        }
    }

    async fn acquire(&mut self) {
        loop {
            let pause = match self.attempt().await {
                Ok(Step::Wait(until)) => {
                    tokio::time::sleep_until(self.shared.instant(until)).await;
                    continue;
                }
                Ok(Step::Create | Step::Take(_)) => return,
                Err(error) => {
                    tracing::debug!(error = &error as &dyn std::error::Error, lease = %self.key, "lease not taken");
                    match error {
                        ClientError::Connect { .. } => RECONNECT,
                        _ if error.class() == Class::Conflict => RECONNECT,
                        _ => RETRY_PERIOD,
                    }
                }
            };
            tokio::time::sleep(pause).await;
        }
    }

    async fn hold(&mut self) -> LeaseLost {
        let mut pause = RENEW_PERIOD;
        let mut why = String::from("it was not renewed in time");
        loop {
            tokio::time::sleep(pause).await;
            let ends = self.election.ends().unwrap_or_default();
            let attempt = tokio::time::timeout_at(self.shared.instant(ends), self.attempt()).await;
            pause = match attempt {
                Ok(Ok(Step::Wait(_))) => return self.lost("another holds it".to_owned()),
                Ok(Ok(_)) => RENEW_PERIOD,
                Ok(Err(error)) => {
                    why = format!("it could not be renewed ({error})");
                    tracing::warn!(error = &error as &dyn std::error::Error, lease = %self.key, "lease not renewed");
                    match error.class() {
                        Class::Conflict => RECONNECT,
                        _ => RETRY_PERIOD,
                    }
                }
                Err(_) => return self.lost(why),
            };
            if !self.election.leads(self.shared.now()) {
                return self.lost(why);
            }
        }
    }

    /// The term that began when the lease was taken last.
    fn term(&self) -> Term {
        Term {
            namespace: self.key.namespace.clone(),
            name: self.key.name.clone(),
            acquired: self.seen.as_ref().map(|seen| seen.acquired.clone()).unwrap_or_default(),
            holder: self.identity.clone(),
        }
    }

    fn lost(&self, why: String) -> LeaseLost {
        LeaseLost { name: self.key.name.clone(), why }
    }

    /// One look and, where it is ours to take, one write.
    async fn attempt(&mut self) -> Result<Step, ClientError> {
        let asked = self.shared.now();
        let leads = self.election.leads(asked);
        // A renewal needs no look: the revision of our own last write is the precondition.
        let step = match (&self.seen, leads) {
            (Some(_), true) => Step::Take(false),
            _ => self.look(asked).await?,
        };
        let written = match step {
            Step::Wait(_) => return Ok(step),
            Step::Create => self.create().await,
            Step::Take(change) => self.take(change, leads).await,
        };
        match written {
            Ok(object) => {
                self.remember(&object);
                self.election.renewed(asked);
                Ok(step)
            }
            Err(error) if matches!(error.class(), Class::Conflict | Class::NotFound) => {
                self.seen = None;
                match self.look(asked).await? {
                    wait @ Step::Wait(_) => Ok(wait),
                    _ => Err(error),
                }
            }
            Err(error) => Err(error),
        }
    }

    async fn look(&mut self, now: Moment) -> Result<Step, ClientError> {
        match self.client.get(&builtin::LEASE, &self.key, &GetOptions::default()).await {
            Ok(object) => {
                self.remember(&object);
                Ok(self.election.decide(Some(record(&object)), now))
            }
            Err(error) if error.class() == Class::NotFound => {
                self.seen = None;
                Ok(self.election.decide(None, now))
            }
            Err(error) => Err(error),
        }
    }

    fn remember(&mut self, object: &Object) {
        let meta = object.meta();
        let value = object.to_value().unwrap_or(Value::Null);
        let spec = &value["spec"];
        self.seen = Some(Seen {
            uid: meta.uid.clone(),
            resource_version: meta.resource_version.clone(),
            transitions: spec["leaseTransitions"].as_u64().unwrap_or(0),
            acquired: spec["acquireTime"].as_str().unwrap_or_default().to_owned(),
        });
    }

    async fn create(&self) -> Result<Object, ClientError> {
        let now = micro_time(Timestamp::now());
        let lease = json!({
            "apiVersion": builtin::LEASE.api_version(), "kind": builtin::LEASE.kind,
            "metadata": {"name": self.key.name, "namespace": self.key.namespace},
            "spec": {
                "holderIdentity": self.identity, "leaseDurationSeconds": LEASE_DURATION.as_secs(),
                "acquireTime": now, "renewTime": now, "leaseTransitions": 0,
            },
        });
        let written =
            self.client.create(&builtin::LEASE, NAMESPACE, lease.to_string(), &self.options()).await?;
        Ok(written.object)
    }

    /// Writes ourselves into the lease. `change`: another held it; `leads`: the term goes on. A process that takes the
    /// lease of its own identity back begins a new term, so that nothing of the process before it is still let in.
    async fn take(&self, change: bool, leads: bool) -> Result<Object, ClientError> {
        let now = micro_time(Timestamp::now());
        let mut spec = json!({
            "holderIdentity": self.identity, "leaseDurationSeconds": LEASE_DURATION.as_secs(), "renewTime": now,
        });
        let mut metadata = json!({});
        if let Some(seen) = &self.seen {
            metadata = json!({"uid": seen.uid, "resourceVersion": seen.resource_version});
            if change {
                spec["leaseTransitions"] = json!(seen.transitions + 1);
            }
        }
        if !leads {
            spec["acquireTime"] = json!(now);
        }
        let patch = Patch::Merge(json!({"metadata": metadata, "spec": spec}));
        let written = self.client.patch(&builtin::LEASE, &self.key, "", &patch, &self.options()).await?;
        Ok(written.object)
    }

    fn options(&self) -> WriteOptions {
        WriteOptions { field_manager: self.key.name.clone(), ..WriteOptions::default() }
    }
}

/// What a Lease says.
fn record(lease: &Object) -> Record {
    let value = lease.to_value().unwrap_or(Value::Null);
    let spec = &value["spec"];
    Record {
        holder: spec["holderIdentity"].as_str().unwrap_or_default().to_owned(),
        renewed: spec["renewTime"].as_str().unwrap_or_default().to_owned(),
        seconds: spec["leaseDurationSeconds"].as_u64().unwrap_or(0),
    }
}

/// RFC 3339 with microseconds, as the API prints MicroTime.
fn micro_time(at: Timestamp) -> String {
    at.strftime("%Y-%m-%dT%H:%M:%S%.6fZ").to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn renewal_times_have_microseconds() {
        assert_eq!(micro_time(Timestamp::UNIX_EPOCH), "1970-01-01T00:00:00.000000Z");
    }
}
