//! `strata.v1.Discovery`: the version, the types and their schemas.

use std::sync::Arc;

use strata_wire::convert::describe;
use strata_wire::v1;
use strata_wire::v1::discovery_server::Discovery;
use tonic::{Request, Response, Status};

use super::convert::{caller, refused};
use crate::authz;
use crate::gate::Gate;
use crate::refusal::no_such_place;
use crate::rest::documents;
use crate::version;

/// The service.
pub struct DiscoveryService {
    /// What it shares with the other facade.
    pub gate: Arc<Gate>,
}

#[tonic::async_trait]
impl Discovery for DiscoveryService {
    async fn version(&self, _: Request<v1::VersionRequest>) -> Result<Response<v1::VersionResponse>, Status> {
        Ok(Response::new(v1::VersionResponse {
            git_version: version::GIT_VERSION.to_owned(),
            major: version::MAJOR.to_owned(),
            minor: version::MINOR.to_owned(),
            strata: version::STRATA.to_owned(),
        }))
    }

    async fn types(&self, request: Request<v1::TypesRequest>) -> Result<Response<v1::TypesResponse>, Status> {
        admit(&request, "/apis")?;
        let types = self.gate.api.catalogue().all().iter().map(|served| describe(&served.resource)).collect();
        Ok(Response::new(v1::TypesResponse { types }))
    }

    async fn schema(
        &self,
        request: Request<v1::SchemaRequest>,
    ) -> Result<Response<v1::SchemaResponse>, Status> {
        admit(&request, "/openapi")?;
        let asked = request.get_ref();
        let path = match asked.group.as_str() {
            "" => format!("api/{}", asked.version),
            group => format!("apis/{group}/{}", asked.version),
        };
        let documents = documents::of(&self.gate.api.catalogue());
        let document = documents.document(&path).ok_or_else(|| refused(no_such_place()))?;
        Ok(Response::new(v1::SchemaResponse { openapi: document.bytes.clone() }))
    }
}

fn admit<T>(request: &Request<T>, path: &str) -> Result<(), Status> {
    let caller = caller(request)?;
    if caller.policy.allows_path(&caller.user, "get", path) {
        return Ok(());
    }
    Err(refused(authz::denied_path(&caller.user, path, "get")))
}
