//! What the admin port of a process shows: its controllers, each with its cache, queue and counters. Answers requests;
//! knows no sockets.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use bytes::Bytes;
use http_body_util::Full;
use hyper::{Method, Response, StatusCode, Uri};
use serde_json::{Value, json};
use tokio::sync::watch;

use crate::reconcile::Shared;
use crate::telemetry::{self, Metrics};

/// Most keys shown of one controller.
const KEYS: usize = 10_000;
/// What there is to ask for.
const PATHS: &str = "/livez /readyz /metrics /debug/queue[?controller=NAME] and, on a Unix socket, \
                     POST /debug/retry?controller=NAME&key=KEY and POST /debug/resync?controller=NAME\n";

/// What is shown of one controller.
pub struct Entry {
    /// Cache and queue.
    pub shared: Arc<Shared>,
    /// Counters.
    pub metrics: Arc<Metrics>,
    /// Whether this process leads.
    pub leads: watch::Receiver<bool>,
}

/// The controllers of a process. They enter when they begin; one that begins anew takes its old place.
#[derive(Default)]
pub struct Board {
    entries: Mutex<BTreeMap<&'static str, Arc<Entry>>>,
}

/// Whether whoever asks may have something done.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Rights {
    /// Only look.
    Look,
    /// Act as well.
    Act,
}

impl Board {
    /// Shows a controller from now on.
    pub fn enter(&self, name: &'static str, entry: Entry) {
        self.entries().insert(name, Arc::new(entry));
    }

    fn entries(&self) -> MutexGuard<'_, BTreeMap<&'static str, Arc<Entry>>> {
        self.entries.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn all(&self) -> Vec<(&'static str, Arc<Entry>)> {
        self.entries().iter().map(|(name, entry)| (*name, Arc::clone(entry))).collect()
    }

    /// Answers a request.
    pub fn answer(&self, method: &Method, uri: &Uri, rights: Rights) -> Response<Full<Bytes>> {
        let looks = method == Method::GET || method == Method::HEAD;
        match uri.path() {
            "/debug/retry" if method == Method::POST && rights == Rights::Act => self.retry(uri),
            "/debug/resync" if method == Method::POST && rights == Rights::Act => self.resync(uri),
            "/debug/retry" | "/debug/resync" if method == Method::POST => {
                text(StatusCode::FORBIDDEN, "only over the Unix socket of the process\n")
            }
            _ if !looks => text(StatusCode::METHOD_NOT_ALLOWED, PATHS),
            "/livez" | "/healthz" => text(StatusCode::OK, "ok"),
            "/readyz" => self.ready(),
            "/metrics" => {
                let type_ = "application/openmetrics-text; version=1.0.0; charset=utf-8";
                respond(StatusCode::OK, type_, self.metrics())
            }
            "/debug/queue" => self.queues(uri),
            _ => text(StatusCode::NOT_FOUND, PATHS),
        }
    }

    /// Ready: the caches are complete. A controller that waits for its lease is ready too: it is there to take over.
    fn ready(&self) -> Response<Full<Bytes>> {
        let mut waits: Vec<String> = Vec::new();
        for (_, entry) in self.all() {
            waits.extend(entry.shared.core().cache.unsynced().into_iter().map(ToString::to_string));
        }
        waits.sort();
        waits.dedup();
        match waits.is_empty() {
            true => text(StatusCode::OK, "ok"),
            false => text(StatusCode::SERVICE_UNAVAILABLE, format!("waiting for {}\n", waits.join(", "))),
        }
    }

    fn metrics(&self) -> String {
        let texts = self.all().into_iter().map(|(_, entry)| {
            {
                let core = entry.shared.core();
                let oldest = core.queue.oldest(entry.shared.now()).as_secs_f64();
                entry.metrics.queue(core.queue.counts(), oldest);
                for (resource, count) in core.cache.sizes() {
                    entry.metrics.objects(&resource.to_string(), count);
                }
            }
            entry.metrics.leads(*entry.leads.borrow());
            entry.metrics.text()
        });
        telemetry::together(texts.collect())
    }

    fn queues(&self, uri: &Uri) -> Response<Full<Bytes>> {
        let wanted = parameter(uri, "controller");
        let mut shown = self.all();
        if let Some(wanted) = &wanted {
            shown.retain(|(name, _)| name == wanted);
            if shown.is_empty() {
                return self.unknown(wanted);
            }
        }
        let controllers: Vec<Value> = shown.iter().map(|(name, entry)| entry.queue(name)).collect();
        respond(StatusCode::OK, "application/json", json!({"controllers": controllers}).to_string())
    }

    fn unknown(&self, wanted: &str) -> Response<Full<Bytes>> {
        let known: Vec<&str> = self.all().into_iter().map(|(name, _)| name).collect();
        let message = format!("no controller {wanted:?} runs here; there are: {}\n", known.join(", "));
        text(StatusCode::NOT_FOUND, message)
    }

    /// Has every key of a controller looked at; says how many there are.
    fn resync(&self, uri: &Uri) -> Response<Full<Bytes>> {
        let Some(controller) = parameter(uri, "controller") else {
            return text(StatusCode::BAD_REQUEST, "say which: ?controller=NAME\n");
        };
        match self.all().into_iter().find(|(name, _)| *name == controller) {
            Some((_, entry)) => text(StatusCode::OK, entry.shared.resync().to_string()),
            None => self.unknown(&controller),
        }
    }

    /// Has a key reconciled now.
    fn retry(&self, uri: &Uri) -> Response<Full<Bytes>> {
        let (Some(controller), Some(key)) = (parameter(uri, "controller"), parameter(uri, "key")) else {
            return text(StatusCode::BAD_REQUEST, "say which: ?controller=NAME&key=KEY\n");
        };
        let Some((_, entry)) = self.all().into_iter().find(|(name, _)| *name == controller) else {
            return self.unknown(&controller);
        };
        let found = entry.shared.core().key(&key);
        match found {
            Some(key) => {
                entry.shared.hurry(key);
                text(StatusCode::OK, "ok")
            }
            None => {
                let form = "a key is TYPE/NAMESPACE/NAME, or TYPE/NAME where there are no namespaces";
                let message =
                    format!("{controller} has no key {key:?}; {form}, as /debug/queue shows them\n");
                text(StatusCode::NOT_FOUND, message)
            }
        }
    }
}

impl Entry {
    fn queue(&self, name: &str) -> Value {
        let now = self.shared.now();
        let core = self.shared.core();
        let counts = core.queue.counts();
        let oldest = core.queue.oldest(now).as_secs_f64();
        let keys = core.queue.keys(now, KEYS);
        json!({
            "name": name, "depth": counts.depth, "delayed": counts.delayed, "waitingForCache": counts.parked,
            "running": counts.running, "adds": counts.adds, "dedups": counts.dedups, "retries": counts.retries,
            "terminal": counts.terminal, "oldestSeconds": oldest, "leads": *self.leads.borrow(), "keys": keys,
        })
    }
}

/// The value of a parameter; names and keys need no escapes but those of `/`.
fn parameter(uri: &Uri, name: &str) -> Option<String> {
    let pairs = uri.query()?.split('&');
    let value = pairs.filter_map(|pair| pair.split_once('=')).find(|(key, _)| *key == name)?.1;
    Some(value.replace("%2F", "/").replace("%2f", "/"))
}

fn text(status: StatusCode, body: impl Into<String>) -> Response<Full<Bytes>> {
    respond(status, "text/plain; charset=utf-8", body.into())
}

fn respond(status: StatusCode, type_: &'static str, body: String) -> Response<Full<Bytes>> {
    let mut response = Response::new(Full::new(Bytes::from(body)));
    *response.status_mut() = status;
    response
        .headers_mut()
        .insert(hyper::header::CONTENT_TYPE, hyper::header::HeaderValue::from_static(type_));
    response
}

#[cfg(test)]
mod tests;
