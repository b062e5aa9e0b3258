//! Verbs on objects over HTTP: method and path to verb, body and query to options, outcome to answer.

use std::sync::Arc;

use axum::body::Body as AnyBody;
use bytes::{Bytes, BytesMut};
use futures_util::StreamExt;
use http::header::{ACCEPT, CONTENT_TYPE};
use http::request::Parts;
use http::{Method, StatusCode};
use jiff::Timestamp;
use serde_json::json;
use strata_model::resource::Verb;
use strata_model::status::{Reason, Status};

use super::facade::Rest;
use super::negotiate::{self, Encoding, Offer, Shape, Wanted, accept};
use super::path::ResourcePath;
use super::query::Query;
use super::respond::{self, Answer};
use super::{listing, watch};
use crate::deletion::{Options, Propagation};
use crate::pipeline::body::{self, Body, Media};
use crate::pipeline::request::{Caller, FieldValidation, Target, WriteOptions, Written};
use crate::projection::{self, TableForm};
use crate::refusal::{self, Outcome, bad_request, method_not_allowed, no_such_place};
use crate::storage;
use crate::telemetry::Held;
use crate::types::catalogue::Served;
use crate::value::text;

/// Most bytes of a body that is too large that are read only to be thrown away.
const MAX_DRAINED: usize = 16 * 1024 * 1024;

/// One request, read as far as all verbs need it.
pub struct Asked<'a> {
    /// Who.
    pub caller: &'a Caller,
    /// Head.
    pub parts: &'a Parts,
    /// Parameters.
    pub query: Query,
    /// Body; empty for reads.
    pub body: Bytes,
}

impl Asked<'_> {
    fn header(&self, name: http::HeaderName) -> &str {
        self.parts.headers.get(name).and_then(|v| v.to_str().ok()).unwrap_or_default()
    }

    fn accept(&self, offer: Offer) -> Outcome<Wanted> {
        let mut wanted = accept(self.header(ACCEPT), offer)?;
        wanted.pretty |= self.query.flag("pretty");
        Ok(wanted)
    }

    fn content(&self) -> Outcome<Body> {
        let media = negotiate::content(self.header(CONTENT_TYPE))?;
        Ok(Body { media, bytes: self.body.clone() })
    }
}

/// The verb of a request, for limits and counters.
pub fn verb(method: &Method, path: &ResourcePath, query: &Query) -> Option<Verb> {
    let collection = path.name.is_empty();
    Some(match *method {
        Method::GET | Method::HEAD if path.watch || (collection && query.flag("watch")) => Verb::Watch,
        Method::GET | Method::HEAD if collection => Verb::List,
        Method::GET | Method::HEAD => Verb::Get,
        Method::POST => Verb::Create,
        Method::PUT => Verb::Update,
        Method::PATCH => Verb::Patch,
        Method::DELETE if collection => Verb::DeleteCollection,
        Method::DELETE => Verb::Delete,
        _ => return None,
    })
}

impl Rest {
    /// Answers a request about objects.
    pub async fn objects(&self, path: ResourcePath, verb: Verb, asked: Asked<'_>) -> Outcome<Answer> {
        let catalogue = self.gate.api.catalogue();
        if let Some(review) = catalogue.review(&path.group, &path.version, &path.resource) {
            if verb != Verb::Create || !path.name.is_empty() {
                return Err(method_not_allowed());
            }
            let options = asked.query.write("CreateOptions")?;
            let review = (review, path.namespace.as_str());
            let bytes = self.gate.api.review(asked.caller, review, &asked.content()?, &options).await?;
            return respond::stored(StatusCode::CREATED, bytes, asked.accept(Offer::Whole)?);
        }
        let served = catalogue.find(&path.group, &path.version, &path.resource).ok_or_else(no_such_place)?;
        let target = target(served, path, &asked.query)?;
        let answer = self.act(&target, verb, &asked).await?;
        match target.served.notice() {
            // Writes tell it among their other sentences.
            Some(notice) if !matches!(verb, Verb::Create | Verb::Update | Verb::Patch) => {
                Ok(respond::warn(answer, &[notice.to_owned()]))
            }
            _ => Ok(answer),
        }
    }

    async fn act(&self, target: &Target, verb: Verb, asked: &Asked<'_>) -> Outcome<Answer> {
        match verb {
            Verb::Get => self.get(target, asked).await,
            Verb::List => {
                let wanted = asked.accept(Offer::List)?;
                let page = self.gate.api.list(asked.caller, target, &asked.query.list()?).await?;
                listing::answer(&target.served, page, wanted, asked.query.include()?, Timestamp::now())
            }
            Verb::Watch => self.watch(target, asked).await,
            Verb::Create | Verb::Update | Verb::Patch => self.write(target, verb, asked).await,
            Verb::Delete => self.delete(target, asked).await,
            Verb::DeleteCollection => self.delete_collection(target, asked).await,
        }
    }

    async fn get(&self, target: &Target, asked: &Asked<'_>) -> Outcome<Answer> {
        if target.subresource == "log" {
            let permit = self.gate.enter_watch()?;
            let chunks = self.gate.api.logs(asked.caller, target, asked.query.logs()?).await?;
            let chunks = chunks.take_until(self.ended()).map(move |chunk| {
                // The place among long requests is held for as long as the log is read.
                let _held = &permit;
                chunk.map_err(|refusal| std::io::Error::other(refusal.message.clone()))
            });
            let body = AnyBody::from_stream(chunks);
            let mut answer = respond::plain(StatusCode::OK, "");
            *answer.body_mut() = body;
            return Ok(answer);
        }
        let wanted = asked.accept(Offer::Object)?;
        let bytes = self.gate.api.get(asked.caller, target, &asked.query.state()).await?;
        object(&target.served, StatusCode::OK, bytes, wanted, asked)
    }

    async fn watch(&self, target: &Target, asked: &Asked<'_>) -> Outcome<Answer> {
        let wanted = match asked.accept(Offer::Object) {
            Ok(wanted) if wanted.encoding == Encoding::Json => wanted,
            Ok(_) => {
                let message = "only the following media types are accepted: application/json, application/json;stream=watch";
                return Err(Box::new(Status::failure(Reason::NotAcceptable, message)));
            }
            Err(refusal) => return Err(refusal),
        };
        let options = asked.query.watch()?;
        let include = asked.query.include()?;
        target.admit_selected(asked.caller, Verb::Watch, asked.query.text("fieldSelector"))?;
        let permit = self.gate.enter_watch()?;
        if let Some(revision) = options.not_older
            && let Err(refusal) = self.gate.api.not_older(revision).await
        {
            return Ok(watch::refused(&refusal));
        }
        let selectors = (asked.query.text("labelSelector"), asked.query.text("fieldSelector"));
        let observer = match self.gate.api.watch(asked.caller, target, selectors, options.start).await {
            Ok(observer) => observer,
            Err(refusal) if refusal.reason == Some(Reason::Expired) => {
                return Ok(watch::refused(&refusal));
            }
            Err(refusal) => return Err(refusal),
        };
        let held = Held::new(&self.gate.telemetry.watches);
        let holding = watch::Holding { permit, held, ending: self.ending.clone() };
        Ok(watch::answer(observer, wanted, include, options, holding))
    }

    async fn write(&self, target: &Target, verb: Verb, asked: &Asked<'_>) -> Outcome<Answer> {
        let api = &self.gate.api;
        let everywhere = target.served.resource.is_namespaced() && target.namespace.is_empty();
        if everywhere && verb == Verb::Create {
            return Err(method_not_allowed());
        }
        let written = match verb {
            Verb::Create if target.name.is_empty() || !target.subresource.is_empty() => {
                let options = asked.query.write("CreateOptions")?;
                api.create(asked.caller, target, &asked.content()?, &options).await?
            }
            Verb::Update if !target.name.is_empty() => {
                let options = asked.query.write("UpdateOptions")?;
                api.update(asked.caller, target, &asked.content()?, &options).await?
            }
            Verb::Patch if !target.name.is_empty() => {
                let (kind, media) = negotiate::patch(asked.header(CONTENT_TYPE))?;
                let force = asked.query.flag("force");
                let options = WriteOptions { force, ..asked.query.write("PatchOptions")? };
                WriteOptions::check_force(asked.query.get("force").is_some(), kind.is_none())?;
                let body = Body { media, bytes: asked.body.clone() };
                match kind {
                    Some(kind) => api.patch(asked.caller, target, kind, &body, &options).await?,
                    None => api.apply(asked.caller, target, &body, &options).await?,
                }
            }
            _ => return Err(method_not_allowed()),
        };
        let Written { bytes, created, warnings, .. } = written;
        let code = if created { StatusCode::CREATED } else { StatusCode::OK };
        let wanted = asked.accept(Offer::Object)?;
        Ok(respond::warn(object(&target.served, code, bytes, wanted, asked)?, &warnings))
    }

    async fn delete(&self, target: &Target, asked: &Asked<'_>) -> Outcome<Answer> {
        if !target.subresource.is_empty() {
            return Err(method_not_allowed());
        }
        let options = delete_options(asked)?;
        let deleted = self.gate.api.delete(asked.caller, target, &options).await?;
        let answer = respond::stored(StatusCode::OK, deleted.bytes, asked.accept(Offer::Whole)?)?;
        Ok(respond::warn(answer, &deleted.warnings))
    }

    async fn delete_collection(&self, target: &Target, asked: &Asked<'_>) -> Outcome<Answer> {
        if target.served.resource.is_namespaced() && target.namespace.is_empty() {
            return Err(method_not_allowed());
        }
        let (list, options) = (asked.query.list()?, delete_options(asked)?);
        let page = self.gate.api.delete_collection(asked.caller, target, &list, &options).await?;
        listing::answer(
            &target.served,
            page,
            asked.accept(Offer::List)?,
            asked.query.include()?,
            Timestamp::now(),
        )
    }
}

fn target(served: &Arc<Served>, path: ResourcePath, query: &Query) -> Outcome<Target> {
    let namespaced = served.resource.is_namespaced();
    if !namespaced && !path.namespace.is_empty() {
        return Err(no_such_place());
    }
    if namespaced && path.namespace.is_empty() && !path.name.is_empty() {
        return Err(no_such_place());
    }
    if !path.subresource.is_empty() && served.resource.subresource(&path.subresource).is_none() {
        return Err(no_such_place());
    }
    // The old prefix watches one object by its name.
    if path.watch && !path.name.is_empty() && query.text("fieldSelector").is_empty() {
        return Err(bad_request(format!(
            "watch the collection with fieldSelector=metadata.name={}",
            path.name
        )));
    }
    Ok(Target {
        served: Arc::clone(served),
        namespace: path.namespace,
        name: path.name,
        subresource: path.subresource,
    })
}

/// An object in the shape that is wanted.
fn object(
    served: &Served,
    code: StatusCode,
    bytes: Bytes,
    wanted: Wanted,
    asked: &Asked<'_>,
) -> Outcome<Answer> {
    if wanted.shape == Shape::Whole {
        return respond::stored(code, bytes, wanted);
    }
    let value = storage::parse_bytes(&bytes)?;
    // What is no object of the type (a Scale, a Status) is answered as it is.
    if text(&value, &["kind"]) != served.resource.kind {
        return respond::stored(code, bytes, wanted);
    }
    let projected = match wanted.shape {
        Shape::Table(version) => {
            let form = TableForm { version, include: asked.query.include()?, columns: true };
            let meta = json!({"resourceVersion": text(&value, &["metadata", "resourceVersion"])});
            projection::table(served, std::slice::from_ref(&value), meta, form, Timestamp::now())
        }
        _ => projection::metadata_only(&value),
    };
    respond::value(code, &projected, wanted)
}

/// How a delete is wanted: by its body, else by its parameters.
fn delete_options(asked: &Asked<'_>) -> Outcome<Options> {
    let mut options = if asked.body.is_empty() { from_query(&asked.query)? } else { from_body(asked)? };
    options.dry_run |= asked.query.dry_run("DeleteOptions")?;
    Ok(options)
}

fn from_query(query: &Query) -> Outcome<Options> {
    let propagation = Propagation::parse(query.text("propagationPolicy"))?;
    let orphan = query.get("orphanDependents").map(|_| query.flag("orphanDependents"));
    Ok(Options {
        grace_seconds: query.number("gracePeriodSeconds")?,
        propagation: Propagation::either(propagation, orphan)?,
        ..Options::default()
    })
}

fn from_body(asked: &Asked<'_>) -> Outcome<Options> {
    let media = match asked.header(CONTENT_TYPE) {
        "" => Media::Json,
        header => negotiate::content(header)?,
    };
    let body = Body { media, bytes: asked.body.clone() };
    let wanted = body::Wanted::new("", "v1", "DeleteOptions");
    let value = body::decode(&body, wanted, FieldValidation::Ignore)?.value;
    if !value.is_object() {
        return Err(bad_request("the body is not a JSON object"));
    }
    Options::of(&value)
}

/// Reads a body up to the limit. What is too large is read to its end all the same, within a bound, so that the client
/// hears the refusal instead of a broken stream.
pub async fn read(body: AnyBody, limit: usize) -> Outcome<Bytes> {
    let mut chunks = body.into_data_stream();
    let (mut all, mut size) = (BytesMut::new(), 0);
    while let Some(chunk) = chunks.next().await {
        let chunk = chunk.map_err(|error| {
            tracing::debug!(%error, "a body broke off");
            bad_request("the body of the request broke off")
        })?;
        size += chunk.len();
        if size <= limit {
            all.extend_from_slice(&chunk);
        } else if size > limit + MAX_DRAINED {
            break;
        }
    }
    if size <= limit {
        return Ok(all.freeze());
    }
    Err(refusal::too_large(limit))
}
