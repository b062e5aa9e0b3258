//! The admin port of a process: `/livez`, `/readyz`, `/metrics`, `/debug/queue`. Loopback by default, HTTP/1, read
//! only.

use std::convert::Infallible;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use http_body_util::Full;
use hyper::body::Incoming;
use hyper::service::service_fn;
use hyper::{Method, Request, Response, StatusCode};
use hyper_util::rt::{TokioIo, TokioTimer};
use serde_json::json;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{Semaphore, watch};

use crate::reconcile::Shared;
use crate::telemetry::Metrics;

/// Connections at the same time.
const CONNECTIONS: usize = 16;
/// Most time for a request's head.
const HEAD_TIMEOUT: Duration = Duration::from_secs(10);
/// Largest head, bytes.
const HEAD: usize = 16 * 1024;
/// Most keys shown.
const KEYS: usize = 10_000;

/// What the port shows.
pub struct Admin {
    /// Cache and queue.
    pub shared: Arc<Shared>,
    /// Counters.
    pub metrics: Arc<Metrics>,
    /// Whether this process leads.
    pub leads: watch::Receiver<bool>,
}

/// Serves for as long as the process lives.
pub async fn run(listener: TcpListener, admin: Arc<Admin>) {
    let slots = Arc::new(Semaphore::new(CONNECTIONS));
    loop {
        let Ok(slot) = Arc::clone(&slots).acquire_owned().await else { return };
        match listener.accept().await {
            Ok((stream, from)) => {
                let admin = Arc::clone(&admin);
                tokio::spawn(async move {
                    serve(stream, from, admin).await;
                    drop(slot);
                });
            }
            Err(error) => {
                tracing::debug!(%error, "admin port: cannot accept");
                tokio::time::sleep(Duration::from_millis(100)).await;
            }
        }
    }
}

async fn serve(stream: TcpStream, from: SocketAddr, admin: Arc<Admin>) {
    let service = service_fn(move |request: Request<Incoming>| {
        let answer = answer(&admin, request.method(), request.uri().path());
        async move { Ok::<_, Infallible>(answer) }
    });
    let mut builder = hyper::server::conn::http1::Builder::new();
    builder.timer(TokioTimer::new()).header_read_timeout(HEAD_TIMEOUT).max_buf_size(HEAD).keep_alive(false);
    if let Err(error) = builder.serve_connection(TokioIo::new(stream), service).await {
        tracing::debug!(%error, %from, "admin port: connection failed");
    }
}

fn answer(admin: &Admin, method: &Method, path: &str) -> Response<Full<Bytes>> {
    if method != Method::GET && method != Method::HEAD {
        return text(StatusCode::METHOD_NOT_ALLOWED, "only GET\n");
    }
    match path {
        "/livez" | "/healthz" => text(StatusCode::OK, "ok"),
        "/readyz" => ready(admin),
        "/metrics" => {
            let type_ = "application/openmetrics-text; version=1.0.0; charset=utf-8";
            respond(StatusCode::OK, type_, metrics(admin))
        }
        "/debug/queue" => respond(StatusCode::OK, "application/json", queue(admin)),
        _ => text(StatusCode::NOT_FOUND, "/livez /readyz /metrics /debug/queue\n"),
    }
}

/// Ready: the cache is complete. One that waits for the lease is ready too: it is there to take over.
fn ready(admin: &Admin) -> Response<Full<Bytes>> {
    let core = admin.shared.core();
    let waits: Vec<String> = core.cache.unsynced().into_iter().map(ToString::to_string).collect();
    match waits.is_empty() {
        true => text(StatusCode::OK, "ok"),
        false => text(StatusCode::SERVICE_UNAVAILABLE, format!("waiting for {}\n", waits.join(", "))),
    }
}

fn metrics(admin: &Admin) -> String {
    {
        let core = admin.shared.core();
        admin.metrics.queue(core.queue.counts(), core.queue.oldest(admin.shared.now()).as_secs_f64());
        for (resource, count) in core.cache.sizes() {
            admin.metrics.objects(&resource.to_string(), count);
        }
    }
    admin.metrics.leads(*admin.leads.borrow());
    admin.metrics.text()
}

fn queue(admin: &Admin) -> String {
    let now = admin.shared.now();
    let core = admin.shared.core();
    let counts = core.queue.counts();
    let keys = core.queue.keys(now, KEYS);
    json!({
        "depth": counts.depth, "delayed": counts.delayed, "waitingForCache": counts.parked,
        "running": counts.running, "adds": counts.adds, "dedups": counts.dedups, "retries": counts.retries,
        "terminal": counts.terminal, "leads": *admin.leads.borrow(), "keys": keys,
    })
    .to_string()
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
mod tests {
    use super::*;
    use http_body_util::BodyExt as _;
    use strata_client::event::Event;
    use strata_model::object::ObjectKey;
    use strata_model::resource::builtin;
    use strata_plan::controller::{Key, MapTo, Watched};

    use crate::core::Core;
    use crate::queue::Priority;
    use crate::reason::{Reason, Why};

    async fn get(admin: &Admin, path: &str) -> (u16, String) {
        let response = answer(admin, &Method::GET, path);
        let status = response.status().as_u16();
        let body = response.into_body().collect().await.unwrap().to_bytes();
        (status, String::from_utf8(body.to_vec()).unwrap())
    }

    #[tokio::test]
    async fn shows_what_it_waits_for_and_what_it_has_to_do() {
        let core = Core::new(vec![Watched::all(&builtin::POD, MapTo::Itself)]);
        let shared = Arc::new(Shared::new(core));
        let (_leading, leads) = watch::channel(true);
        let admin = Admin { shared: Arc::clone(&shared), metrics: Arc::new(Metrics::new("test")), leads };
        assert_eq!(get(&admin, "/livez").await, (200, "ok".to_owned()));
        assert_eq!(get(&admin, "/readyz").await, (503, "waiting for pods\n".to_owned()));
        {
            let now = shared.now();
            let mut core = shared.core();
            core.apply(&builtin::POD.id, Event::Restarted, now);
            core.apply(&builtin::POD.id, Event::InitialEnd(1), now);
            let key = Key::new(&builtin::POD, ObjectKey::new("n", "p"));
            core.queue.add(key, Priority::Live, Reason::plain(Why::Other("person")), now);
        }
        assert_eq!(get(&admin, "/readyz").await.0, 200);
        let queue: serde_json::Value = serde_json::from_str(&get(&admin, "/debug/queue").await.1).unwrap();
        assert_eq!((&queue["depth"], &queue["leads"]), (&json!(1), &json!(true)));
        assert_eq!(queue["keys"][0]["key"], "pods/n/p");
        assert_eq!(queue["keys"][0]["reasons"], "person");
        let metrics = get(&admin, "/metrics").await.1;
        assert!(metrics.contains("workqueue_depth{name=\"test\"} 1"), "{metrics}");
        assert!(metrics.contains("strata_cache_objects{resource=\"pods\"} 0"));
        assert_eq!(answer(&admin, &Method::POST, "/livez").status(), StatusCode::METHOD_NOT_ALLOWED);
        assert_eq!(get(&admin, "/").await.0, 404);
    }
}
