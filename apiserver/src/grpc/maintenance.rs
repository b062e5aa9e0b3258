//! `strata.v1.Maintenance`: figures of the store, compaction and backup; for administrators alone.

use std::pin::Pin;
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use futures_util::stream::Stream;
use jiff::Timestamp;
use strata_store::backup;
use strata_store::error::ReadError;
use strata_store::past::Which;
use strata_store::revision::Revision;
use strata_store::snapshot::ReadAt;
use strata_wire::v1;
use strata_wire::v1::maintenance_server::Maintenance;
use tokio::sync::mpsc;
use tokio_stream::wrappers::ReceiverStream;
use tonic::{Request, Response, Status};

use super::convert::{caller, refused};
use crate::authz;
use crate::gate::Gate;
use crate::refusal::{self, Outcome, bad_request};

/// Chunks of a backup that are made before the client has taken the ones before.
const CHUNKS_AHEAD: usize = 4;

/// The service.
pub struct MaintenanceService {
    /// What it shares with the other facade.
    pub gate: Arc<Gate>,
}

type Chunks = Pin<Box<dyn Stream<Item = Result<v1::BackupChunk, Status>> + Send>>;

#[tonic::async_trait]
impl Maintenance for MaintenanceService {
    type BackupStream = Chunks;

    async fn status(
        &self,
        request: Request<v1::StatusRequest>,
    ) -> Result<Response<v1::StatusResponse>, Status> {
        admit(&request)?;
        let store = &self.gate.api.store;
        let stats = store.stats();
        let oldest = store.moment(Which::At(stats.oldest)).await.ok().and_then(|moment| moment.time);
        let oldest = oldest.and_then(|time| Timestamp::try_from(time).ok());
        Ok(Response::new(v1::StatusResponse {
            revision: stats.current.get(),
            oldest_revision: stats.oldest.get(),
            keys: stats.keys,
            bytes: stats.bytes,
            log_bytes: stats.log_bytes,
            watchers: stats.watchers,
            watchers_behind: stats.watchers_behind,
            watch_lag: stats.watch_lag,
            disk_bytes: stats.disk_bytes.unwrap_or_default(),
            disk_available_bytes: stats.disk_available.unwrap_or_default(),
            oldest_time: oldest.map(|time| format!("{time:.6}")).unwrap_or_default(),
        }))
    }

    async fn compact(
        &self,
        request: Request<v1::CompactRequest>,
    ) -> Result<Response<v1::CompactResponse>, Status> {
        admit(&request)?;
        let oldest = self.compacted(request.into_inner()).await.map_err(refused)?;
        Ok(Response::new(v1::CompactResponse { oldest_revision: oldest.get() }))
    }

    async fn backup(&self, request: Request<v1::BackupRequest>) -> Result<Response<Chunks>, Status> {
        admit(&request)?;
        let snapshot = self.gate.api.store.snapshot(ReadAt::Latest).await;
        let snapshot = snapshot.map_err(|error| refused(refusal::of_read(&error)))?;
        tracing::info!(revision = %snapshot.revision(), "a backup is taken");
        let (give, take) = mpsc::channel(CHUNKS_AHEAD);
        tokio::task::spawn_blocking(move || {
            for chunk in backup::chunks(&snapshot, SystemTime::now()) {
                if give.blocking_send(Ok(v1::BackupChunk { data: chunk.into() })).is_err() {
                    tracing::warn!(revision = %snapshot.revision(), "a backup was left before its end");
                    return;
                }
            }
        });
        Ok(Response::new(Box::pin(ReceiverStream::new(take))))
    }
}

impl MaintenanceService {
    async fn compacted(&self, asked: v1::CompactRequest) -> Outcome<Revision> {
        let store = &self.gate.api.store;
        let below = match (asked.revision, asked.older_than_seconds) {
            (0, 0) => return Err(bad_request("revision or olderThanSeconds: one of them is needed")),
            (revision, 0) if revision > store.current_revision().get() => {
                let current = store.current_revision();
                return Err(bad_request(format!(
                    "revision: {revision} has not happened yet; the newest is {current}"
                )));
            }
            (revision, 0) => Revision::new(revision),
            (0, seconds) => {
                let then = SystemTime::now().checked_sub(Duration::from_secs(seconds));
                match store.moment(Which::Before(then.unwrap_or(SystemTime::UNIX_EPOCH))).await {
                    Ok(moment) => moment.revision,
                    // Nothing that old is kept.
                    Err(ReadError::Compacted { oldest }) => return Ok(oldest),
                    Err(error) => return Err(refusal::of_read(&error)),
                }
            }
            _ => return Err(bad_request("revision and olderThanSeconds: only one of them can be meant")),
        };
        store.compact(below).await.map_err(|error| refusal::of_read(&error))
    }
}

fn admit<T>(request: &Request<T>) -> Result<(), Status> {
    let caller = caller(request)?;
    if caller.user.is_in(authz::MASTERS) {
        return Ok(());
    }
    Err(refused(authz::denied_path(&caller.user, "/strata.v1.Maintenance", "post")))
}
