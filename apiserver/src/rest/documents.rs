//! OpenAPI over HTTP: the index, documents by hash, and version 2 for those who still ask for it.

use std::sync::Arc;

use http::header::{ACCEPT, CACHE_CONTROL, ETAG, EXPIRES, HeaderValue, IF_NONE_MATCH, VARY};
use http::{HeaderMap, StatusCode};
use strata_model::status::{Details, Reason, Status};

use super::query::Query;
use super::respond::{self, Answer};
use crate::openapi::documents::{Document, Documents};
use crate::openapi::published::{CustomSchema, PublishedResource, PublishedSubresource};
use crate::refusal::Outcome;
use crate::types::catalogue::{Catalogue, Served};
use crate::types::review::REVIEWS;
use crate::version;

const JSON: HeaderValue = HeaderValue::from_static("application/json");
/// What clients ask version 2 for when they want protobuf.
const GNOSTIC_ASKED: &str = "application/com.github.proto-openapi.spec.v2@v1.0+protobuf";
/// What they get then.
const GNOSTIC: HeaderValue =
    HeaderValue::from_static("application/com.github.proto-openapi.spec.v2.v1.0+protobuf");

/// The documents of everything that is served.
pub fn of(catalogue: &Catalogue) -> Arc<Documents> {
    Arc::clone(catalogue.kept.documents.get_or_init(|| Arc::new(make(catalogue))))
}

fn make(catalogue: &Catalogue) -> Documents {
    let own = catalogue.all().iter().map(|served| published(served));
    let reviews = REVIEWS.iter().map(|review| PublishedResource {
        group: review.group.to_owned(),
        version: review.version.to_owned(),
        plural: review.resource.to_owned(),
        kind: review.kind.to_owned(),
        namespaced: review.namespaced,
        verbs: vec!["create".to_owned()],
        subresources: Vec::new(),
        custom: None,
    });
    Documents::after(catalogue.kept.before(), version::GIT_VERSION, own.chain(reviews))
}

fn published(served: &Served) -> PublishedResource {
    let resource = &served.resource;
    let words =
        |verbs: &[strata_model::resource::Verb]| verbs.iter().map(|v| v.as_str().to_owned()).collect();
    let parts = resource.subresources.iter().map(|part| {
        let (group, version, kind) = match &part.body {
            Some((group, version, kind)) => (group.to_string(), version.to_string(), kind.to_string()),
            None => (resource.id.group.to_string(), resource.version.to_string(), resource.kind.to_string()),
        };
        PublishedSubresource { name: part.name.to_string(), group, version, kind, verbs: words(part.verbs) }
    });
    PublishedResource {
        group: resource.id.group.to_string(),
        version: resource.version.to_string(),
        plural: resource.id.resource.to_string(),
        kind: resource.kind.to_string(),
        namespaced: resource.is_namespaced(),
        verbs: words(resource.verbs),
        subresources: parts.collect(),
        custom: served.custom.as_ref().map(|custom| {
            let definition = &custom.definition;
            let made = custom.clone();
            CustomSchema {
                key: format!("{}/{}", definition.uid, definition.generation),
                list_kind: served.list_kind(),
                make: Arc::new(move || made.written()),
            }
        }),
    }
}

/// Answers `/openapi/v3`.
pub fn index(documents: &Documents, headers: &HeaderMap) -> Answer {
    tagged(documents.index(), JSON, headers, false)
}

/// Answers a document below it; one asked for by its hash never changes.
pub fn document(documents: &Documents, path: &str, query: &Query, headers: &HeaderMap) -> Answer {
    match documents.document(path) {
        Some(found) => {
            let forever = query.text("hash").eq_ignore_ascii_case(&found.hash);
            tagged(found, JSON, headers, forever)
        }
        None => respond::plain(StatusCode::NOT_FOUND, "404 page not found\n"),
    }
}

/// Answers `/openapi/v2`.
pub fn version2(documents: &Documents, headers: &HeaderMap) -> Outcome<Answer> {
    let accepted = headers.get(ACCEPT).and_then(|v| v.to_str().ok()).unwrap_or("*/*");
    for clause in accepted.split(',') {
        let media = clause.split(';').next().unwrap_or_default().trim();
        if media == GNOSTIC_ASKED {
            return Ok(tagged(documents.version2_protobuf(), GNOSTIC, headers, false));
        }
        if matches!(media, "application/json" | "*/*" | "application/*" | "") {
            return Ok(tagged(documents.version2_json(), JSON, headers, false));
        }
    }
    let message = format!("only the following media types are accepted: application/json, {GNOSTIC_ASKED}");
    Err(Box::new(Status::failure(Reason::NotAcceptable, message).with_details(Details::default())))
}

fn tagged(document: &Document, media: HeaderValue, headers: &HeaderMap, forever: bool) -> Answer {
    let tag = format!("\"{}\"", document.hash);
    let unchanged = headers.get(IF_NONE_MATCH).and_then(|v| v.to_str().ok()).is_some_and(|v| v == tag);
    let mut answer = if unchanged {
        respond::bytes(StatusCode::NOT_MODIFIED, media, "")
    } else {
        respond::bytes(StatusCode::OK, media, document.bytes.clone())
    };
    let headers = answer.headers_mut();
    headers.insert(VARY, HeaderValue::from_static("Accept"));
    if let Ok(tag) = HeaderValue::from_str(&tag) {
        headers.insert(ETAG, tag);
    }
    if forever {
        headers.insert(CACHE_CONTROL, HeaderValue::from_static("public, immutable"));
        headers.insert(EXPIRES, HeaderValue::from_static("Fri, 31 Dec 2100 00:00:00 GMT"));
    }
    answer
}
