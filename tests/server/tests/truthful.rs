//! The server in a test does what a cluster does with what is deleted: dependents go, and namespaces are emptied.

#![allow(clippy::unwrap_used, reason = "a test ends at the first surprise")]

use std::time::Duration;

use serde_json::{Value, json};
use strata_client::error::Class;
use strata_client::options::{DeleteOptions, GetOptions, WriteOptions};
use strata_model::object::ObjectKey;
use strata_model::resource::{ResourceType, builtin};
use strata_testing::TestServer;
use tokio::time::{MissedTickBehavior, interval, timeout};

const LIMIT: Duration = Duration::from_secs(30);

async fn create(server: &TestServer, resource: &ResourceType, namespace: &str, object: Value) -> Value {
    let options = WriteOptions::default();
    let made = server.client().create(resource, namespace, object.to_string(), &options).await.unwrap();
    made.object.to_value().unwrap()
}

/// Waits until an object is there.
async fn there(server: &TestServer, resource: &ResourceType, key: &ObjectKey) {
    look_until(server, resource, key, true).await;
}

/// Waits until an object is gone.
async fn gone(server: &TestServer, resource: &ResourceType, key: &ObjectKey) {
    look_until(server, resource, key, false).await;
}

async fn look_until(server: &TestServer, resource: &ResourceType, key: &ObjectKey, there: bool) {
    let mut look = interval(Duration::from_millis(20));
    look.set_missed_tick_behavior(MissedTickBehavior::Delay);
    let looking = async {
        loop {
            look.tick().await;
            let found = match server.client().get(resource, key, &GetOptions::default()).await {
                Err(error) if error.class() == Class::NotFound => false,
                answer => !answer.unwrap().meta().name.is_empty(),
            };
            if found == there {
                return;
            }
        }
    };
    timeout(LIMIT, looking).await.unwrap_or_else(|_| panic!("{key} is not as expected (there: {there})"));
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_owned_goes_with_its_owner_and_a_namespace_with_what_it_holds() {
    let server = TestServer::start().await.unwrap();
    let owner =
        create(&server, &builtin::CONFIG_MAP, "default", json!({"metadata": {"name": "owner"}})).await;
    let reference =
        json!({"apiVersion": "v1", "kind": "ConfigMap", "name": "owner", "uid": owner["metadata"]["uid"]});
    let owned = json!({"metadata": {"name": "owned", "ownerReferences": [reference]}});
    create(&server, &builtin::CONFIG_MAP, "default", owned).await;
    let key = ObjectKey::new("default", "owner");
    server.client().delete(&builtin::CONFIG_MAP, &key, &DeleteOptions::default()).await.unwrap();
    gone(&server, &builtin::CONFIG_MAP, &ObjectKey::new("default", "owned")).await;

    create(&server, &builtin::NAMESPACE, "", json!({"metadata": {"name": "team"}})).await;
    there(&server, &builtin::SERVICE_ACCOUNT, &ObjectKey::new("team", "default")).await;
    there(&server, &builtin::CONFIG_MAP, &ObjectKey::new("team", "kube-root-ca.crt")).await;
    create(&server, &builtin::CONFIG_MAP, "team", json!({"metadata": {"name": "a"}})).await;
    let team = ObjectKey::new("", "team");
    server.client().delete(&builtin::NAMESPACE, &team, &DeleteOptions::default()).await.unwrap();
    gone(&server, &builtin::NAMESPACE, &team).await;
    server.stop().await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn many_servers_live_beside_each_other_and_end_when_dropped() {
    let (one, other) = (TestServer::start().await.unwrap(), TestServer::start().await.unwrap());
    assert_ne!(one.url(), other.url());
    create(&one, &builtin::CONFIG_MAP, "default", json!({"metadata": {"name": "here"}})).await;
    let key = ObjectKey::new("default", "here");
    let missing = other.client().get(&builtin::CONFIG_MAP, &key, &GetOptions::default()).await;
    assert_eq!(missing.unwrap_err().class(), Class::NotFound);
    let client = one.client().clone();
    drop(one);
    let mut look = interval(Duration::from_millis(20));
    let ends = async {
        while client.version().await.is_ok() {
            look.tick().await;
        }
    };
    timeout(LIMIT, ends).await.expect("a dropped server ends");
    other.stop().await.unwrap();
}
