//! One request, before it is known which facade it is for: who asks, its id, its span, its counters.

use std::collections::BTreeMap;
use std::convert::Infallible;
use std::sync::Arc;
use std::time::Instant;

use axum::Router;
use axum::body::Body;
use http::header::{ACCEPT_ENCODING, AUTHORIZATION, CONTENT_TYPE, HeaderValue, USER_AGENT};
use http::{HeaderMap, Request, Response};
use tonic::service::Routes;
use tower::ServiceExt;
use tower_http::CompressionLevel;
use tower_http::compression::{Compression, Predicate};
use tracing::{Instrument, info_span};

use crate::authn::Impersonation;
use crate::fence::Fence;
use crate::gate::{Gate, MAX_BODY_BYTES, Peer, REQUEST_TIMEOUT, unauthorized};
use crate::grpc::discovery::DiscoveryService;
use crate::grpc::history::HistoryService;
use crate::grpc::maintenance::MaintenanceService;
use crate::grpc::resources::ResourcesService;
use crate::pipeline::request::Caller;
use crate::refusal;
use crate::rest::facade::Rest;
use crate::rest::path;
use crate::rest::respond;
use strata_wire::FENCE_HEADER;
use strata_wire::convert::to_rpc;
use strata_wire::v1::discovery_server::DiscoveryServer;
use strata_wire::v1::history_server::HistoryServer;
use strata_wire::v1::maintenance_server::MaintenanceServer;
use strata_wire::v1::resources_server::ResourcesServer;

/// Answers of fewer bytes are never compressed.
const COMPRESS_ABOVE: u64 = 128 * 1024;
/// What a gRPC message may hold beside an object.
const MESSAGE_SLACK: usize = 64 * 1024;
/// Longest request id that is taken from a client.
const MAX_REQUEST_ID: usize = 64;

const AUDIT_ID: &str = "audit-id";

/// gRPC methods that strangers may call.
const OPEN_METHODS: &[&str] = &["/grpc.health.v1.Health/", "/strata.v1.Discovery/Version"];

/// Everything behind the listener.
pub struct Site {
    gate: Arc<Gate>,
    rest: Arc<Rest>,
    grpc: Router,
}

/// Compresses large answers of known length: lists, never watches.
#[derive(Clone, Copy)]
struct Large;

impl Predicate for Large {
    fn should_compress<B: http_body::Body>(&self, response: &Response<B>) -> bool {
        response.body().size_hint().exact().is_some_and(|size| size > COMPRESS_ABOVE)
    }
}

/// The services of the gRPC facade could not be put together.
#[derive(Debug, thiserror::Error)]
#[error("the reflection service cannot be made")]
pub struct SiteError(#[from] tonic_reflection::server::Error);

impl Site {
    /// Both facades over one gate.
    pub async fn new(gate: Arc<Gate>, ending: tokio::sync::watch::Receiver<bool>) -> Result<Self, SiteError> {
        let rest = Rest { gate: Arc::clone(&gate), ending: ending.clone() };
        // What is somewhat too large is read, so that it is refused in the words of the API.
        let limit = 2 * MAX_BODY_BYTES + MESSAGE_SLACK;
        let resources = ResourcesServer::new(ResourcesService { gate: Arc::clone(&gate), ending })
            .max_decoding_message_size(limit)
            .max_encoding_message_size(usize::MAX);
        let discovery = DiscoveryServer::new(DiscoveryService { gate: Arc::clone(&gate) });
        let history = HistoryServer::new(HistoryService { gate: Arc::clone(&gate) })
            .max_encoding_message_size(usize::MAX);
        let maintenance = MaintenanceServer::new(MaintenanceService { gate: Arc::clone(&gate) });
        let (health, health_service) = tonic_health::server::health_reporter();
        health.set_serving::<ResourcesServer<ResourcesService>>().await;
        health.set_serving::<DiscoveryServer<DiscoveryService>>().await;
        health.set_serving::<HistoryServer<HistoryService>>().await;
        health.set_serving::<MaintenanceServer<MaintenanceService>>().await;
        let reflection = tonic_reflection::server::Builder::configure()
            .register_encoded_file_descriptor_set(strata_wire::DESCRIPTORS)
            .register_encoded_file_descriptor_set(tonic_health::pb::FILE_DESCRIPTOR_SET)
            .build_v1()?;
        let routes = Routes::new(resources)
            .add_service(discovery)
            .add_service(history)
            .add_service(maintenance)
            .add_service(health_service)
            .add_service(reflection);
        Ok(Self { gate, rest: Arc::new(rest), grpc: routes.into_axum_router() })
    }

    /// Answers a request of a connection.
    pub async fn answer(&self, peer: &Peer, request: Request<hyper::body::Incoming>) -> Response<Body> {
        let id = request_id(request.headers());
        let span = info_span!("request", id, method = %request.method(), path = request.uri().path(), user = tracing::field::Empty);
        let mut answer = self.identified(peer, request.map(Body::new), &id).instrument(span).await;
        if let Ok(id) = HeaderValue::from_str(&id) {
            answer.headers_mut().insert(AUDIT_ID, id);
        }
        answer
    }

    async fn identified(&self, peer: &Peer, mut request: Request<Body>, id: &str) -> Response<Body> {
        let is_grpc = header(request.headers(), CONTENT_TYPE).starts_with("application/grpc");
        let authorization = request.headers().get(AUTHORIZATION).map(|v| v.to_str().unwrap_or_default());
        let known = self.gate.authenticate(peer, authorization).await;
        let user = match known.and_then(|who| self.gate.acting(who, impersonation(request.headers()))) {
            Ok(user) => user,
            Err(refusal) if is_grpc => return to_rpc(&refusal).into_http(),
            Err(refusal) => return respond::refusal(&refusal),
        };
        tracing::Span::current().record("user", user.name.as_str());
        let agent = Caller::program(header(request.headers(), USER_AGENT));
        let fence =
            match request.headers().get(FENCE_HEADER).map(|v| Fence::parse(v.to_str().unwrap_or_default())) {
                None => None,
                Some(Ok(fence)) => Some(fence),
                Some(Err(refusal)) if is_grpc => return to_rpc(&refusal).into_http(),
                Some(Err(refusal)) => return respond::refusal(&refusal),
            };
        let policy = self.gate.api.access.policy();
        let caller = Caller { user, request: id.to_owned(), agent, policy, fence };
        if is_grpc {
            let open = OPEN_METHODS.iter().any(|method| request.uri().path().starts_with(method));
            if caller.user.is_anonymous() && !open {
                return to_rpc(&unauthorized()).into_http();
            }
            request.extensions_mut().insert(caller);
            return match tokio::time::timeout(REQUEST_TIMEOUT, self.grpc.clone().oneshot(request)).await {
                Ok(Ok(answer)) => answer,
                Ok(Err(never)) => match never {},
                Err(_) => {
                    to_rpc(&refusal::timeout("the request did not complete within 60 seconds; try again"))
                        .into_http()
                }
            };
        }
        self.rest(caller, request).await
    }

    async fn rest(&self, caller: Caller, request: Request<Body>) -> Response<Body> {
        let began = Instant::now();
        let compress = header(request.headers(), ACCEPT_ENCODING).contains("gzip");
        let (telemetry, rest) = (&self.gate.telemetry, Arc::clone(&self.rest));
        let handle = async |request: Request<Body>| {
            let answered = rest.handle(&caller, request).await;
            let code = answered.answer.status().as_u16();
            telemetry.answered("rest", answered.verb, code, began.elapsed());
            tracing::debug!(code, verb = answered.verb, took = ?began.elapsed(), "answered");
            answered.answer
        };
        if !compress {
            return handle(request).await;
        }
        let encodings = request.headers().get(ACCEPT_ENCODING).cloned();
        let answer = handle(request).await;
        if !Large.should_compress(&answer) {
            return answer;
        }
        compressed(answer, encodings).await
    }
}

/// An answer in the encoding that the client accepts.
async fn compressed(answer: Response<Body>, encodings: Option<HeaderValue>) -> Response<Body> {
    let mut asked = Request::new(Body::empty());
    if let Some(encodings) = encodings {
        asked.headers_mut().insert(ACCEPT_ENCODING, encodings);
    }
    let mut answer = Some(answer);
    let once = tower::service_fn(move |_: Request<Body>| {
        let answer = answer.take().unwrap_or_default();
        async move { Ok::<_, Infallible>(answer) }
    });
    let service = Compression::new(once).gzip(true).quality(CompressionLevel::Fastest).compress_when(Large);
    match service.oneshot(asked).await {
        Ok(answer) => answer.map(Body::new),
        Err(never) => match never {},
    }
}

/// Whom the request asks to be taken for.
fn impersonation(headers: &HeaderMap) -> Impersonation {
    let text = |value: &HeaderValue| String::from_utf8_lossy(value.as_bytes()).into_owned();
    let one = |name: &str| headers.get(name).map(text).unwrap_or_default();
    Impersonation {
        name: one("impersonate-user"),
        uid: one("impersonate-uid"),
        groups: headers.get_all("impersonate-group").iter().map(text).collect(),
        extra: extra(headers),
    }
}

/// What `Impersonate-Extra-<key>` headers tell; keys may be written with `%xx`.
fn extra(headers: &HeaderMap) -> BTreeMap<String, Vec<String>> {
    let mut extra: BTreeMap<String, Vec<String>> = BTreeMap::new();
    for (name, value) in headers {
        if let Some(key) = name.as_str().strip_prefix("impersonate-extra-") {
            let key = path::percent(key).unwrap_or_else(|| key.to_owned());
            extra.entry(key).or_default().push(String::from_utf8_lossy(value.as_bytes()).into_owned());
        }
    }
    extra
}

fn header(headers: &HeaderMap, name: http::HeaderName) -> &str {
    headers.get(name).and_then(|v| v.to_str().ok()).unwrap_or_default()
}

/// The client's id for its request, if it is short and plain; else a new one.
fn request_id(headers: &HeaderMap) -> String {
    let given = headers.get(AUDIT_ID).and_then(|v| v.to_str().ok()).unwrap_or_default();
    let plain = |b: u8| b.is_ascii_alphanumeric() || b == b'-';
    if !given.is_empty() && given.len() <= MAX_REQUEST_ID && given.bytes().all(plain) {
        given.to_owned()
    } else {
        uuid::Uuid::new_v4().to_string()
    }
}
