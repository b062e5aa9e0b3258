//! The controller against a real API server, inside the test: the type is defined, a wish is made, the room follows;
//! and what the definition forbids never reaches the controller.

#![allow(clippy::unwrap_used, reason = "a test ends at the first surprise")]

use std::time::Duration;

use serde_json::json;
use strata_client::options::{GetOptions, WriteOptions};
use strata_model::object::ObjectKey;
use strata_model::resource::builtin;
use strata_model::status::Reason;
use strata_runtime::run::{self, Options};
use strata_testing::TestServer;
use thermostat::api::{Thermostat, definition, resource};
use thermostat::plan::{Thermostats, UNHEATED};
use tokio::sync::oneshot;
use tokio::time::{interval, timeout};

const LIMIT: Duration = Duration::from_secs(60);

#[tokio::test(flavor = "multi_thread")]
async fn a_wish_comes_true() {
    let server = TestServer::start().await.unwrap();
    let (client, options) = (server.client(), WriteOptions::default());
    let crd = serde_json::to_string(&definition()).unwrap();
    client.create(&builtin::CUSTOM_RESOURCE_DEFINITION, "", crd, &options).await.unwrap();
    let mut look = interval(Duration::from_millis(20));
    let wish = |degrees: f64| {
        json!({"apiVersion": "examples.strata.dev/v1", "kind": "Thermostat",
        "metadata": {"name": "bath"}, "spec": {"degrees": degrees}})
        .to_string()
    };
    let made = timeout(LIMIT, async {
        // The type is served in a moment.
        loop {
            look.tick().await;
            match client.create(&resource(), "default", wish(UNHEATED + 1.0), &options).await {
                Err(error) if error.is(Reason::NotFound) => {}
                other => return other.unwrap(),
            }
        }
    });
    made.await.unwrap();
    let refused = client.create(&resource(), "default", wish(90.0), &options).await.unwrap_err();
    assert!(refused.is(Reason::Invalid) && refused.to_string().contains("spec.degrees"), "{refused}");

    let (stop, stopped) = oneshot::channel::<()>();
    let stopped = async { stopped.await.unwrap_or_default() };
    let controller = tokio::spawn(run::controller(Thermostats, client.clone(), Options::default(), stopped));
    let key = ObjectKey::new("default", "bath");
    let warm = timeout(LIMIT, async {
        loop {
            look.tick().await;
            let object = client.get(&resource(), &key, &GetOptions::default()).await.unwrap();
            let status = object.decode::<Thermostat>().unwrap().status.unwrap_or_default();
            if status.degrees == UNHEATED + 1.0 && !status.heating {
                return;
            }
        }
    });
    warm.await.unwrap();
    stop.send(()).unwrap();
    controller.await.unwrap().unwrap();
    server.stop().await.unwrap();
}
