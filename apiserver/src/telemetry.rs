//! Counters of the server, in the text form of Prometheus. Everything is there from the start, at zero.

use std::time::Duration;

use prometheus_client::encoding::text::encode;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::metrics::histogram::Histogram;
use prometheus_client::registry::Registry;
use strata_model::resource::ALL_VERBS;

use crate::refusal::{Outcome, internal};

/// Upper bounds of the buckets of durations, in seconds.
const BUCKETS: [f64; 10] = [0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.1, 0.5, 2.5, 10.0];
/// The facades.
const FACADES: [&str; 2] = ["rest", "grpc"];

type Labels = Vec<(&'static str, String)>;

/// All counters.
pub struct Telemetry {
    registry: Registry,
    requests: Family<Labels, Counter>,
    durations: Family<Labels, Histogram>,
    /// Watches that are open.
    pub watches: Gauge,
    /// Connections that are open.
    pub connections: Gauge,
    store_revision: Gauge,
    store_keys: Gauge,
    store_bytes: Gauge,
    store_watchers: Gauge,
}

impl Default for Telemetry {
    fn default() -> Self {
        let mut registry = Registry::with_prefix("strata_apiserver");
        let requests = Family::<Labels, Counter>::default();
        let durations = Family::<Labels, Histogram>::new_with_constructor(|| Histogram::new(BUCKETS));
        registry.register("requests", "Requests by facade, verb and code", requests.clone());
        registry.register("request_duration_seconds", "Time to the head of the answer", durations.clone());
        let mut gauge = |name: &str, help: &str| {
            let gauge = Gauge::default();
            registry.register(name, help, gauge.clone());
            gauge
        };
        let (watches, connections) =
            (gauge("watches", "Open watches"), gauge("connections", "Open connections"));
        let store_revision = gauge("store_revision", "Newest revision");
        let store_keys = gauge("store_keys", "Objects in the store");
        let store_bytes = gauge("store_bytes", "Bytes of all objects");
        let store_watchers = gauge("store_watchers", "Cursors on the store's history");
        for facade in FACADES {
            for verb in ALL_VERBS {
                let labels = vec![("facade", facade.to_owned()), ("verb", verb.as_str().to_owned())];
                drop(durations.get_or_create(&labels));
                drop(requests.get_or_create(&with_code(labels, 200)));
            }
        }
        Self {
            registry,
            requests,
            durations,
            watches,
            connections,
            store_revision,
            store_keys,
            store_bytes,
            store_watchers,
        }
    }
}

fn with_code(mut labels: Labels, code: u16) -> Labels {
    labels.push(("code", code.to_string()));
    labels
}

impl Telemetry {
    /// Counts a request that was answered.
    pub fn answered(&self, facade: &'static str, verb: &str, code: u16, took: Duration) {
        let labels = vec![("facade", facade.to_owned()), ("verb", verb.to_owned())];
        self.durations.get_or_create(&labels).observe(took.as_secs_f64());
        self.requests.get_or_create(&with_code(labels, code)).inc();
    }

    /// All counters as text; `stats` are the store's at this moment.
    pub fn text(&self, stats: &strata_store::store::Stats) -> Outcome<String> {
        let whole = |n: u64| i64::try_from(n).unwrap_or(i64::MAX);
        self.store_revision.set(whole(stats.current.get()));
        self.store_keys.set(whole(stats.keys));
        self.store_bytes.set(whole(stats.bytes));
        self.store_watchers.set(whole(stats.watchers));
        let mut text = String::new();
        encode(&mut text, &self.registry).map_err(|error| internal(error.to_string()))?;
        Ok(text)
    }
}

/// A gauge that is up by one for as long as this lives.
pub struct Held(Gauge);

impl Held {
    /// Raises the gauge.
    pub fn new(gauge: &Gauge) -> Self {
        gauge.inc();
        Self(gauge.clone())
    }
}

impl Drop for Held {
    fn drop(&mut self) {
        self.0.dec();
    }
}
