//! Requests of the wire, as the pipeline reads them; refusals, as the wire has them.

use std::sync::Arc;
use std::time::Instant;

use bytes::Bytes;
use jiff::Timestamp;
use serde_json::json;
use strata_model::resource::Verb;
use strata_wire::convert::to_rpc;
use strata_wire::v1;
use tokio::sync::OwnedSemaphorePermit;

use crate::deletion::{Options, Propagation};
use crate::gate::{Gate, MAX_BODY_BYTES};
use crate::pipeline::body::Body;
use crate::pipeline::create::to_bytes;
use crate::pipeline::patch::PatchKind;
use crate::pipeline::request::{Caller, Target, WriteOptions, Written};
use crate::projection::{self, Include, TableForm};
use crate::refusal::{Outcome, Refusal, bad_request, internal, no_such_place, too_large};
use crate::storage;
use crate::types::catalogue::{Catalogue, Served};

/// A refusal as a gRPC error.
pub fn refused(refusal: Refusal) -> tonic::Status {
    to_rpc(&refusal)
}

/// Who asks; put there by whoever authenticated the request.
pub fn caller<T>(request: &tonic::Request<T>) -> Result<Caller, tonic::Status> {
    request
        .extensions()
        .get::<Caller>()
        .cloned()
        .ok_or_else(|| refused(internal("the request has no caller")))
}

/// Where an object is.
pub struct Place<'a> {
    /// The type.
    pub resource: Option<&'a v1::ResourceRef>,
    /// Namespace, or empty.
    pub namespace: &'a str,
    /// Name, or empty.
    pub name: &'a str,
    /// Subresource, or empty.
    pub subresource: &'a str,
}

/// The target a request names.
pub fn target(catalogue: &Catalogue, place: Place<'_>) -> Outcome<Target> {
    let reference = place.resource.ok_or_else(|| bad_request("the request names no resource"))?;
    let served = catalogue
        .find(&reference.group, &reference.version, &reference.resource)
        .ok_or_else(no_such_place)?;
    if !served.resource.is_namespaced() && !place.namespace.is_empty() {
        return Err(bad_request(format!("{} are in no namespace", served.resource.id)));
    }
    if !place.subresource.is_empty() && served.resource.subresource(place.subresource).is_none() {
        return Err(no_such_place());
    }
    let unsafe_part = |part: &str| part.contains('/');
    if unsafe_part(place.namespace) || unsafe_part(place.name) {
        return Err(bad_request("namespace and name may not contain '/'"));
    }
    Ok(Target {
        served: Arc::clone(served),
        namespace: place.namespace.to_owned(),
        name: place.name.to_owned(),
        subresource: place.subresource.to_owned(),
    })
}

/// The target of one object: with a name, and a namespace where the type has one.
pub fn object(catalogue: &Catalogue, place: Place<'_>) -> Outcome<Target> {
    let target = target(catalogue, place)?;
    if target.name.is_empty() {
        return Err(bad_request("the request names no object"));
    }
    if target.served.resource.is_namespaced() && target.namespace.is_empty() {
        return Err(bad_request("the request names no namespace"));
    }
    Ok(target)
}

/// The body of a write, of at most the size that bodies may have.
pub fn body(bytes: Bytes) -> Outcome<Body> {
    if bytes.len() > MAX_BODY_BYTES { Err(too_large(MAX_BODY_BYTES)) } else { Ok(Body::json(bytes)) }
}

/// The kind of a patch; `None` is an apply.
pub fn patch(number: i32) -> Outcome<Option<PatchKind>> {
    match v1::PatchType::try_from(number) {
        Ok(v1::PatchType::Merge) => Ok(Some(PatchKind::Merge)),
        Ok(v1::PatchType::Json) => Ok(Some(PatchKind::Json)),
        Ok(v1::PatchType::Strategic) => Ok(Some(PatchKind::Strategic)),
        Ok(v1::PatchType::Apply) => Ok(None),
        Err(_) => Err(bad_request(format!("type: {number} is no type of patch"))),
    }
}

/// How a write is wanted.
pub fn write(kind: &str, options: Option<v1::WriteOptions>) -> Outcome<WriteOptions> {
    let o = options.unwrap_or_default();
    WriteOptions::parse(kind, o.dry_run, &o.field_manager, &o.field_validation, &o.cause)
}

/// How a delete is wanted.
pub fn delete(options: Option<v1::DeleteOptions>) -> Outcome<Options> {
    let o = options.unwrap_or_default();
    Ok(Options {
        grace_seconds: o.grace_period_seconds,
        propagation: Propagation::parse(&o.propagation_policy)?,
        uid: o.uid,
        resource_version: o.resource_version,
        dry_run: o.dry_run,
        cause: o.cause,
    })
}

/// The answer to a write.
pub fn written(written: Written) -> v1::WriteResponse {
    v1::WriteResponse { object: written.bytes, changed: written.changed, warnings: written.warnings }
}

/// The form of answers; one that is not known is the whole object.
pub fn projection(number: i32) -> v1::Projection {
    v1::Projection::try_from(number).unwrap_or(v1::Projection::Object)
}

/// An object in the form that is wanted.
pub fn project(served: &Served, bytes: &Bytes, form: v1::Projection) -> Outcome<Bytes> {
    match form {
        v1::Projection::Object => Ok(bytes.clone()),
        v1::Projection::Metadata => to_bytes(&projection::metadata_only(&storage::parse_bytes(bytes)?)),
        v1::Projection::Table => {
            let object = storage::parse_bytes(bytes)?;
            table(served, std::slice::from_ref(&object), "", true)
        }
    }
}

/// A Table of objects.
pub fn table(
    served: &Served,
    objects: &[serde_json::Value],
    revision: &str,
    columns: bool,
) -> Outcome<Bytes> {
    let form = TableForm { version: "v1", include: Include::Metadata, columns };
    to_bytes(&projection::table(
        served,
        objects,
        json!({"resourceVersion": revision}),
        form,
        Timestamp::now(),
    ))
}

/// One request's place among those under way, its clock and its counter.
pub struct Visit<'a> {
    gate: &'a Gate,
    verb: Verb,
    began: Instant,
    _permit: OwnedSemaphorePermit,
}

impl<'a> Visit<'a> {
    /// Lets a request in.
    pub fn begin(gate: &'a Gate, verb: Verb) -> Result<Self, tonic::Status> {
        let permit = gate.enter().map_err(refused)?;
        Ok(Self { gate, verb, began: Instant::now(), _permit: permit })
    }

    /// Counts the request, and turns its outcome into an answer.
    pub fn end<T>(self, outcome: Outcome<T>) -> Result<tonic::Response<T>, tonic::Status> {
        let code = outcome.as_ref().map_or_else(|refusal| refusal.code.unwrap_or(500), |_| 200);
        self.gate.telemetry.answered("grpc", self.verb.as_str(), code, self.began.elapsed());
        outcome.map(tonic::Response::new).map_err(refused)
    }
}
