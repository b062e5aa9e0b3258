//! `strata.v1.History`: moments, and what happened to objects, within the kept history.

use std::pin::Pin;
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use bytes::Bytes;
use futures_util::stream::{Stream, StreamExt, iter};
use jiff::Timestamp;
use strata_model::resource::Verb;
use strata_store::past::{Moment, Which};
use strata_store::revision::Revision;
use strata_wire::v1;
use strata_wire::v1::history_server::History;
use strata_wire::v1::moment_request::Which as Asked;
use tonic::{Request, Response, Status};

use super::convert::{self, Place, Visit, caller, refused};
use crate::gate::Gate;
use crate::history::changes::Happened;
use crate::pipeline::ownership;
use crate::pipeline::past::{Past, Span};
use crate::refusal::{Outcome, bad_request};
use crate::storage;
use crate::types::catalogue::Served;

/// Most changes in one chunk of an answer.
const CHUNK_CHANGES: usize = 64;

/// The service.
pub struct HistoryService {
    /// What it shares with the other facade.
    pub gate: Arc<Gate>,
}

type Chunks = Pin<Box<dyn Stream<Item = Result<v1::ChangesChunk, Status>> + Send>>;

#[tonic::async_trait]
impl History for HistoryService {
    type ChangesStream = Chunks;

    async fn moment(
        &self,
        request: Request<v1::MomentRequest>,
    ) -> Result<Response<v1::MomentResponse>, Status> {
        let caller = caller(&request)?;
        let visit = Visit::begin(&self.gate, Verb::Get)?;
        let asked = request.into_inner();
        let outcome = async {
            let which = which(asked, SystemTime::now())?;
            let Moment { revision, time } = self.gate.api.moment_of(&caller.user, which).await?;
            let oldest = self.gate.api.store.oldest_revision();
            Ok(v1::MomentResponse {
                revision: revision.get(),
                time: time.map(instant).unwrap_or_default(),
                oldest_revision: oldest.get(),
            })
        };
        visit.end(outcome.await)
    }

    async fn changes(&self, request: Request<v1::ChangesRequest>) -> Result<Response<Chunks>, Status> {
        let caller = caller(&request)?;
        let visit = Visit::begin(&self.gate, Verb::List)?;
        let asked = request.into_inner();
        let outcome = async {
            let place = Place {
                resource: asked.resource.as_ref(),
                namespace: &asked.namespace,
                name: &asked.name,
                subresource: "",
            };
            let catalogue = &self.gate.api.catalogue();
            let target = match asked.name.as_str() {
                "" => convert::target(catalogue, place)?,
                _ => convert::object(catalogue, place)?,
            };
            let some = |revision: u64| (revision > 0).then_some(revision);
            let span = Span {
                after: some(asked.after_revision),
                through: some(asked.through_revision),
                limit: asked.limit,
            };
            let past = self.gate.api.changes(&caller, &target, span).await?;
            Ok(chunks(Arc::clone(&target.served), past, asked.include_objects))
        };
        visit.end(outcome.await)
    }
}

/// The moment that is meant, by the server's clock.
fn which(asked: v1::MomentRequest, now: SystemTime) -> Outcome<Which> {
    match asked.which {
        None => Ok(Which::Now),
        Some(Asked::Revision(revision)) => Ok(Which::At(Revision::new(revision))),
        Some(Asked::MillisecondsAgo(milliseconds)) => {
            let instant = now.checked_sub(Duration::from_millis(milliseconds));
            Ok(Which::Before(instant.unwrap_or(SystemTime::UNIX_EPOCH)))
        }
        Some(Asked::Time(text)) => {
            let instant: Timestamp = text.parse().map_err(|error| {
                bad_request(format!(
                    "time: {text:?} is no RFC 3339 instant, such as 2026-11-30T08:00:00Z: {error}"
                ))
            })?;
            Ok(Which::Before(instant.into()))
        }
    }
}

fn instant(time: SystemTime) -> String {
    Timestamp::try_from(time).map(|time| format!("{time:.6}")).unwrap_or_default()
}

/// The chunks of an answer, made as the client takes them; there is always one.
fn chunks(served: Arc<Served>, past: Past, with_objects: bool) -> Chunks {
    let Past { changes, oldest, through, cut } = past;
    let mut pieces: Vec<Vec<Happened>> = Vec::new();
    for change in changes {
        match pieces.last_mut() {
            Some(last) if last.len() < CHUNK_CHANGES => last.push(change),
            _ => pieces.push(vec![change]),
        }
    }
    if pieces.is_empty() {
        pieces.push(Vec::new());
    }
    let make = move |piece: Vec<Happened>| {
        let changes = piece.iter().map(|change| told(&served, change, with_objects)).collect::<Outcome<_>>();
        let chunk = v1::ChangesChunk {
            changes: changes.map_err(refused)?,
            oldest_revision: oldest,
            through_revision: through,
            truncated: cut,
        };
        Ok(chunk)
    };
    Box::pin(iter(pieces).map(make))
}

fn told(served: &Served, change: &Happened, with_objects: bool) -> Outcome<v1::ObjectChange> {
    let definition = ownership::wanted(served).definition();
    let schema = ownership::schema(definition.as_ref(), served.custom.is_none());
    let (fields, more_fields) = change.fields(schema)?;
    let kind = match (&change.previous, &change.record) {
        (None, _) => v1::EventType::Added,
        (Some(_), Some(_)) => v1::EventType::Modified,
        (Some(_), None) => v1::EventType::Deleted,
    };
    let bytes = |record: &Option<Arc<strata_store::record::Record>>| match record {
        Some(record) if with_objects => record.value.clone(),
        _ => Bytes::new(),
    };
    let (namespace, name) =
        change.last().map_or(("", ""), |r| (storage::namespace_of(r), storage::name_of(r)));
    let cause = change.cause.clone();
    Ok(v1::ObjectChange {
        revision: change.revision,
        time: instant(change.time),
        r#type: kind.into(),
        namespace: namespace.to_owned(),
        name: name.to_owned(),
        user: cause.user,
        verb: cause.verb,
        subresource: cause.subresource,
        manager: cause.manager,
        request: cause.request,
        cause: cause.why,
        fields,
        more_fields,
        object: bytes(&change.record),
        previous: bytes(&change.previous),
    })
}
