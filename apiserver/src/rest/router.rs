//! From a path to whoever answers it, within the limits of time and room.

use axum::body::Body;
use http::header::{ACCEPT, CACHE_CONTROL, CONTENT_ENCODING, CONTENT_TYPE, HOST, HeaderName, HeaderValue};
use http::{HeaderMap, Method, Request, StatusCode};
use strata_model::resource::Verb;

use super::discovery;
use super::facade::Rest;
use super::negotiate::content_encoding;
use super::path::{Health, Place, ResourcePath, parse};
use super::query::Query;
use super::resources::{self, Asked};
use super::respond::{self, Answer};
use super::{documents, health};
use crate::authz;
use crate::gate::{MAX_BODY_BYTES, REQUEST_TIMEOUT};
use crate::pipeline::request::Caller;
use crate::refusal::{self, Outcome, method_not_allowed};

/// An answer, and the verb it was to.
pub struct Answered {
    /// The answer.
    pub answer: Answer,
    /// The verb, for counters; empty for what is no resource.
    pub verb: &'static str,
}

impl Rest {
    /// Answers a request.
    pub async fn handle(&self, caller: &Caller, request: Request<Body>) -> Answered {
        let place = parse(request.uri().path());
        let head = request.method() == Method::HEAD;
        let (answer, verb) = match place {
            Place::Resource(path) => self.resource(caller, path, request).await,
            place => (self.other(caller, place, &request), ""),
        };
        let mut answer = answer.unwrap_or_else(|refusal| respond::refusal(&refusal));
        if head {
            *answer.body_mut() = Body::empty();
        }
        Answered { answer, verb }
    }

    async fn resource(
        &self,
        caller: &Caller,
        path: ResourcePath,
        request: Request<Body>,
    ) -> (Outcome<Answer>, &'static str) {
        let query = match Query::of(request.uri()) {
            Ok(query) => query,
            Err(refusal) => return (Err(refusal), ""),
        };
        let Some(verb) = resources::verb(request.method(), &path, &query) else {
            return (Err(method_not_allowed()), "");
        };
        (self.timed(caller, path, verb, query, request).await, verb.as_str())
    }

    async fn timed(
        &self,
        caller: &Caller,
        path: ResourcePath,
        verb: Verb,
        query: Query,
        request: Request<Body>,
    ) -> Outcome<Answer> {
        if !self.gate.api.catalogue().has_group(&path.group) {
            return Ok(respond::plain(StatusCode::NOT_FOUND, "404 page not found\n"));
        }
        let work = async {
            let _permit = self.gate.enter()?;
            let (parts, body) = request.into_parts();
            let body = if matches!(verb, Verb::Get | Verb::List | Verb::Watch) {
                bytes::Bytes::new()
            } else {
                content_encoding(text(&parts.headers, &CONTENT_ENCODING))?;
                resources::read(body, MAX_BODY_BYTES).await?
            };
            self.objects(path, verb, Asked { caller, parts: &parts, query, body }).await
        };
        match tokio::time::timeout(REQUEST_TIMEOUT, work).await {
            Ok(answer) => answer,
            Err(_) => Err(refusal::timeout("the request did not complete within 60 seconds; try again")),
        }
    }

    fn other(&self, caller: &Caller, place: Place, request: &Request<Body>) -> Outcome<Answer> {
        let path = request.uri().path();
        if !caller.policy.allows_path(&caller.user, "get", path) {
            return Err(authz::denied_path(&caller.user, path, "get"));
        }
        if !matches!(*request.method(), Method::GET | Method::HEAD) {
            return Err(method_not_allowed());
        }
        let query = Query::of(request.uri())?;
        let headers = request.headers();
        let catalogue = &self.gate.api.catalogue();
        let openapi = || documents::of(catalogue);
        match place {
            Place::Root => discovery::answer(&health::paths(catalogue.groups()), accepted(headers)),
            Place::Version => self.version(headers),
            Place::Metrics => self.metrics(),
            Place::TokenIssuer => {
                let host = headers.get(HOST).and_then(|v| v.to_str().ok());
                let host = request.uri().authority().map(|a| a.as_str()).or(host).unwrap_or_default();
                let keys_at = format!("https://{host}/openid/v1/jwks");
                Ok(published("application/json", &self.gate.api.issuer.described(&keys_at)))
            }
            Place::TokenKeys => Ok(published("application/jwk-set+json", &self.gate.api.issuer.published())),
            Place::Health(which, check) => Ok(self.health(which, &check, &query)),
            Place::OpenApi2 => documents::version2(&openapi(), headers),
            Place::OpenApi3 => Ok(documents::index(&openapi(), headers)),
            Place::OpenApi3Document(path) => Ok(documents::document(&openapi(), &path, &query, headers)),
            Place::CoreVersions => discovery::root(catalogue, true, headers),
            Place::Groups => discovery::root(catalogue, false, headers),
            Place::Group(group) => match discovery::one_group(catalogue, &group) {
                Some(found) => discovery::answer(&found, accepted(headers)),
                None => Ok(respond::plain(StatusCode::NOT_FOUND, "404 page not found\n")),
            },
            Place::GroupVersion(group, version) => {
                if !catalogue.has_group(&group) {
                    return Ok(respond::plain(StatusCode::NOT_FOUND, "404 page not found\n"));
                }
                discovery::answer(&discovery::resources(catalogue, &group, &version)?, accepted(headers))
            }
            Place::Resource(_) | Place::Unknown => {
                Ok(respond::plain(StatusCode::NOT_FOUND, "404 page not found\n"))
            }
        }
    }

    fn version(&self, headers: &HeaderMap) -> Outcome<Answer> {
        let mut wanted = super::negotiate::accept(accepted(headers), super::negotiate::Offer::Whole)?;
        wanted.pretty = true;
        respond::value(StatusCode::OK, &health::version(), wanted)
    }

    fn metrics(&self) -> Outcome<Answer> {
        let text = self.gate.telemetry.text(&self.gate.api.store.stats())?;
        let mut answer = respond::plain(StatusCode::OK, text);
        let media = HeaderValue::from_static("application/openmetrics-text; version=1.0.0; charset=utf-8");
        answer.headers_mut().insert(CONTENT_TYPE, media);
        Ok(answer)
    }

    fn health(&self, which: Health, check: &str, query: &Query) -> Answer {
        let checks = health::Checks { serving: !*self.ending.borrow() };
        health::answer(which, check, &checks, query)
    }
}

/// What others may keep for a while to check tokens by.
fn published(media: &'static str, value: &serde_json::Value) -> Answer {
    let media = HeaderValue::from_static(media);
    let mut answer = respond::bytes(StatusCode::OK, media, value.to_string());
    answer.headers_mut().insert(CACHE_CONTROL, HeaderValue::from_static("public, max-age=3600"));
    answer
}

fn accepted(headers: &HeaderMap) -> &str {
    text(headers, &ACCEPT)
}

fn text<'a>(headers: &'a HeaderMap, name: &HeaderName) -> &'a str {
    headers.get(name).and_then(|v| v.to_str().ok()).unwrap_or_default()
}
