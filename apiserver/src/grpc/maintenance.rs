//! `strata.v1.Maintenance`: figures of the store, and compaction; for administrators alone.

use std::sync::Arc;

use strata_store::revision::Revision;
use strata_wire::v1;
use strata_wire::v1::maintenance_server::Maintenance;
use tonic::{Request, Response, Status};

use super::convert::{caller, refused};
use crate::authz;
use crate::gate::Gate;
use crate::refusal;

/// The service.
pub struct MaintenanceService {
    /// What it shares with the other facade.
    pub gate: Arc<Gate>,
}

#[tonic::async_trait]
impl Maintenance for MaintenanceService {
    async fn status(
        &self,
        request: Request<v1::StatusRequest>,
    ) -> Result<Response<v1::StatusResponse>, Status> {
        admit(&request)?;
        let stats = self.gate.api.store.stats();
        Ok(Response::new(v1::StatusResponse {
            revision: stats.current.get(),
            oldest_revision: stats.oldest.get(),
            keys: stats.keys,
            bytes: stats.bytes,
            log_bytes: stats.log_bytes,
            watchers: stats.watchers,
        }))
    }

    async fn compact(
        &self,
        request: Request<v1::CompactRequest>,
    ) -> Result<Response<v1::CompactResponse>, Status> {
        admit(&request)?;
        let below = Revision::new(request.get_ref().revision);
        let oldest =
            self.gate.api.store.compact(below).await.map_err(|error| refused(refusal::of_read(&error)))?;
        Ok(Response::new(v1::CompactResponse { oldest_revision: oldest.get() }))
    }
}

fn admit<T>(request: &Request<T>) -> Result<(), Status> {
    let caller = caller(request)?;
    if caller.user.is_in(authz::MASTERS) {
        return Ok(());
    }
    Err(refused(authz::denied_path(&caller.user, "/strata.v1.Maintenance", "post")))
}
