//! Wire to model and back: errors, types, projections. Generated types stop here.

use prost::Message as _;
use prost::bytes::Bytes;
use strata_model::resource::{GroupResource, ResourceType};
use strata_model::status::{Reason, Status};

use crate::{rpc, v1};

/// Type url of the error detail.
const STATUS_DETAIL_URL: &str = "type.googleapis.com/strata.v1.StatusDetail";

/// The canonical gRPC code of a refusal.
pub fn code_of(status: &Status) -> tonic::Code {
    match status.reason {
        Some(Reason::BadRequest | Reason::Invalid | Reason::NotAcceptable | Reason::UnsupportedMediaType) => {
            tonic::Code::InvalidArgument
        }
        Some(Reason::Unauthorized) => tonic::Code::Unauthenticated,
        Some(Reason::Forbidden) => tonic::Code::PermissionDenied,
        Some(Reason::NotFound) => tonic::Code::NotFound,
        Some(Reason::MethodNotAllowed) => tonic::Code::Unimplemented,
        Some(Reason::AlreadyExists) => tonic::Code::AlreadyExists,
        Some(Reason::Conflict) => tonic::Code::Aborted,
        Some(Reason::Expired | Reason::Gone) => tonic::Code::OutOfRange,
        Some(Reason::RequestEntityTooLarge | Reason::TooManyRequests | Reason::InsufficientStorage) => {
            tonic::Code::ResourceExhausted
        }
        Some(Reason::ServerTimeout | Reason::ServiceUnavailable) => tonic::Code::Unavailable,
        Some(Reason::Timeout) => tonic::Code::DeadlineExceeded,
        Some(Reason::InternalError | Reason::Unknown) | None => tonic::Code::Internal,
    }
}

/// The gRPC error of a refusal, with the whole `Status` in its details.
pub fn to_rpc(status: &Status) -> tonic::Status {
    let code = code_of(status);
    let detail = v1::StatusDetail { json: serde_json::to_vec(status).unwrap_or_default().into() };
    let envelope = rpc::Status {
        code: code as i32,
        message: status.message.clone(),
        details: vec![prost_types_any(STATUS_DETAIL_URL, detail.encode_to_vec())],
    };
    tonic::Status::with_details(code, status.message.clone(), Bytes::from(envelope.encode_to_vec()))
}

/// The refusal a gRPC error carries; `None` where the error is not one of the API (transport, proxies).
pub fn from_rpc(error: &tonic::Status) -> Option<Status> {
    let envelope = rpc::Status::decode(error.details()).ok()?;
    let any = envelope.details.into_iter().find(|d| d.type_url == STATUS_DETAIL_URL)?;
    let detail = v1::StatusDetail::decode(any.value.as_slice()).ok()?;
    serde_json::from_slice(&detail.json).ok()
}

fn prost_types_any(url: &str, value: Vec<u8>) -> prost_types::Any {
    prost_types::Any { type_url: url.to_owned(), value }
}

/// The wire form of a type's place.
pub fn resource_ref(resource: &ResourceType) -> v1::ResourceRef {
    v1::ResourceRef {
        group: resource.id.group.to_string(),
        version: resource.version.to_string(),
        resource: resource.id.resource.to_string(),
    }
}

/// The identity a wire reference names.
pub fn group_resource(reference: &v1::ResourceRef) -> GroupResource {
    GroupResource { group: reference.group.clone().into(), resource: reference.resource.clone().into() }
}

/// What discovery says of a type.
pub fn describe(resource: &ResourceType) -> v1::TypeDescription {
    let words =
        |verbs: &[strata_model::resource::Verb]| verbs.iter().map(|v| v.as_str().to_owned()).collect();
    let subresources = resource.subresources.iter().map(|s| {
        let (group, version, kind) = match &s.body {
            Some((group, version, kind)) => (group.to_string(), version.to_string(), kind.to_string()),
            None => (String::new(), String::new(), resource.kind.to_string()),
        };
        v1::SubresourceDescription { name: s.name.to_string(), kind, group, version, verbs: words(s.verbs) }
    });
    v1::TypeDescription {
        resource: Some(resource_ref(resource)),
        kind: resource.kind.to_string(),
        singular: resource.singular.to_string(),
        short_names: resource.short_names.iter().map(ToString::to_string).collect(),
        categories: resource.categories.iter().map(ToString::to_string).collect(),
        namespaced: resource.is_namespaced(),
        verbs: words(resource.verbs),
        subresources: subresources.collect(),
    }
}

/// A type as discovery described it, for clients that meet it only there.
pub fn described(description: v1::TypeDescription) -> ResourceType {
    use strata_model::resource::{Scope, Subresource, Verb};
    let place = description.resource.unwrap_or_default();
    let subresources: Vec<Subresource> = description
        .subresources
        .into_iter()
        .map(|s| {
            let body = (!s.version.is_empty()).then(|| (s.group.into(), s.version.into(), s.kind.into()));
            let verbs = Verb::set(s.verbs.iter().map(String::as_str));
            Subresource { name: s.name.into(), body, verbs }
        })
        .collect();
    ResourceType {
        id: GroupResource { group: place.group.into(), resource: place.resource.into() },
        version: place.version.into(),
        kind: description.kind.into(),
        singular: description.singular.into(),
        short_names: description.short_names.into_iter().map(Into::into).collect::<Vec<_>>().into(),
        categories: description.categories.into_iter().map(Into::into).collect::<Vec<_>>().into(),
        scope: if description.namespaced { Scope::Namespaced } else { Scope::Cluster },
        verbs: Verb::set(description.verbs.iter().map(String::as_str)),
        subresources: subresources.into(),
        counts_generation: false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use strata_model::resource::builtin;
    use strata_model::status::About;

    #[test]
    fn a_refusal_survives_grpc() {
        let about = About { group: "apps", resource: "deployments", kind: "Deployment", name: "web" };
        let status = Status::stale(about);
        let error = to_rpc(&status);
        assert_eq!(error.code(), tonic::Code::Aborted);
        assert_eq!(from_rpc(&error), Some(status));
        assert_eq!(from_rpc(&tonic::Status::unavailable("gone")), None);
    }

    #[test]
    fn a_described_type_keeps_its_names() {
        let known = described(describe(&builtin::DEPLOYMENT));
        assert_eq!((&known.id, &known.kind), (&builtin::DEPLOYMENT.id, &builtin::DEPLOYMENT.kind));
        assert_eq!(known.short_names, builtin::DEPLOYMENT.short_names);
        assert!(known.has_status() && known.is_namespaced());
        assert_eq!(known.verbs, builtin::DEPLOYMENT.verbs);
        assert_eq!(known.subresources, builtin::DEPLOYMENT.subresources);
    }
}
