//! Keeps the leases of nodes fresh: the one write that an idle node makes. It must never write anything else.

use std::time::Duration;

use futures_util::stream::{self, StreamExt};
use jiff::Timestamp;
use serde_json::{Value, json};
use strata_client::client::Client;
use strata_client::error::{Class, ClientError};
use strata_client::options::{Patch, WriteOptions};
use strata_model::object::ObjectKey;
use strata_model::resource::builtin;
use tokio::time::{Instant, MissedTickBehavior, interval_at};
use tracing::{debug, warn};

/// Where the leases of nodes are.
const NAMESPACE: &str = "kube-node-lease";
/// For how long a lease holds without renewal, in seconds.
const DURATION_SECONDS: u32 = 40;
/// How often each lease is renewed.
const PERIOD: Duration = Duration::from_secs(10);
/// How many leases are renewed at once.
const AT_ONCE: usize = 8;
/// After how many failures in a row somebody should know.
const WARN_AFTER: u32 = 3;

/// Renews the leases of all nodes until it is dropped.
pub async fn renew(client: Client, nodes: Vec<String>) {
    let mut ticks = interval_at(Instant::now(), PERIOD);
    ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    let mut failures = 0;
    loop {
        ticks.tick().await;
        let renewals = nodes.clone().into_iter().map(|node| renew_one(client.clone(), node));
        let mut results = stream::iter(renewals).buffer_unordered(AT_ONCE);
        let mut failed = None;
        while let Some(result) = results.next().await {
            failed = result.err().or(failed);
        }
        match failed {
            None => failures = 0,
            Some(error) => {
                failures += 1;
                if failures == WARN_AFTER {
                    warn!(error = &error as &dyn std::error::Error, "cannot renew the node's lease");
                } else {
                    debug!(error = &error as &dyn std::error::Error, "cannot renew the node's lease");
                }
            }
        }
    }
}

/// Renews one lease; makes it where there is none.
async fn renew_one(client: Client, node: String) -> Result<(), ClientError> {
    let key = ObjectKey::new(NAMESPACE, node.as_str());
    let options = WriteOptions { field_manager: "strata-node".to_owned(), ..WriteOptions::default() };
    let patch = Patch::Merge(json!({"spec": spec(&node, Timestamp::now())}));
    match client.patch(&builtin::LEASE, &key, "", &patch, &options).await {
        Err(error) if error.class() == Class::NotFound => {
            let lease = json!({
                "apiVersion": builtin::LEASE.api_version(), "kind": builtin::LEASE.kind,
                "metadata": {"name": node, "namespace": NAMESPACE},
                "spec": spec(&node, Timestamp::now()),
            });
            client.create(&builtin::LEASE, NAMESPACE, lease.to_string(), &options).await.map(drop)
        }
        other => other.map(drop),
    }
}

fn spec(node: &str, now: Timestamp) -> Value {
    let renewed = now.strftime("%Y-%m-%dT%H:%M:%S%.6fZ").to_string();
    json!({"holderIdentity": node, "leaseDurationSeconds": DURATION_SECONDS, "renewTime": renewed})
}
