//! `strata.v1.Resources`: each verb of the wire, handed to the pipeline.

use std::pin::Pin;
use std::sync::Arc;

use futures_util::stream::{Stream, StreamExt, iter};
use strata_model::resource::Verb;
use strata_wire::v1::resources_server::Resources;
use strata_wire::v1::{self, Projection};
use tonic::{Request, Response, Status, Streaming};

use super::convert::{self, Place, Visit, caller, refused};
use super::watch::{self, WatchStream};
use crate::gate::{Gate, ended};
use crate::paging::Asked;
use crate::pipeline::read::{ListOptions, Page};
use crate::pipeline::request::WriteOptions;
use crate::refusal::{Outcome, bad_request, method_not_allowed};
use crate::storage;
use crate::types::catalogue::Served;

/// Most bytes of objects in one chunk of a list.
const CHUNK_BYTES: usize = 256 * 1024;

/// The service.
pub struct ResourcesService {
    /// What it shares with the other facade.
    pub gate: Arc<Gate>,
    /// Turns true when the server ends.
    pub ending: tokio::sync::watch::Receiver<bool>,
}

type Chunks = Pin<Box<dyn Stream<Item = Result<v1::ListChunk, Status>> + Send>>;
type Logs = Pin<Box<dyn Stream<Item = Result<v1::LogChunk, Status>> + Send>>;

#[tonic::async_trait]
impl Resources for ResourcesService {
    type ListStream = Chunks;
    type DeleteCollectionStream = Chunks;
    type WatchStream = WatchStream;
    type LogsStream = Logs;

    async fn get(&self, request: Request<v1::GetRequest>) -> Result<Response<v1::Object>, Status> {
        let caller = caller(&request)?;
        let visit = Visit::begin(&self.gate, Verb::Get)?;
        let asked = request.into_inner();
        let outcome = async {
            let target = convert::object(
                &self.gate.api.catalogue(),
                place(&asked.resource, &asked.namespace, &asked.name, &asked.subresource),
            )?;
            if target.subresource == "log" {
                return Err(bad_request("a log is no object: it is read with Resources.Logs"));
            }
            let state = Asked {
                resource_version: asked.resource_version,
                version_match: asked.resource_version_match,
                ..Asked::default()
            };
            let bytes = self.gate.api.get(&caller, &target, &state).await?;
            let json = convert::project(&target.served, &bytes, convert::projection(asked.projection))?;
            Ok(v1::Object { json })
        };
        visit.end(outcome.await)
    }

    async fn list(&self, request: Request<v1::ListRequest>) -> Result<Response<Chunks>, Status> {
        let caller = caller(&request)?;
        let visit = Visit::begin(&self.gate, Verb::List)?;
        let asked = request.into_inner();
        let outcome = async {
            let target = convert::target(
                &self.gate.api.catalogue(),
                place(&asked.resource, &asked.namespace, "", ""),
            )?;
            let options = ListOptions {
                labels: asked.label_selector,
                fields: asked.field_selector,
                asked: Asked {
                    resource_version: asked.resource_version,
                    version_match: asked.resource_version_match,
                    limit: asked.limit,
                    token: asked.continue_token,
                },
            };
            let page = self.gate.api.list(&caller, &target, &options).await?;
            Ok(chunks(Arc::clone(&target.served), page, convert::projection(asked.projection)))
        };
        visit.end(outcome.await)
    }

    async fn create(
        &self,
        request: Request<v1::CreateRequest>,
    ) -> Result<Response<v1::WriteResponse>, Status> {
        let caller = caller(&request)?;
        let visit = Visit::begin(&self.gate, Verb::Create)?;
        let asked = request.into_inner();
        let outcome = async {
            let options = convert::write("CreateOptions", asked.options)?;
            let body = convert::body(asked.object)?;
            if let Some(reference) = &asked.resource
                && let Some(review) = self.gate.api.catalogue().review(
                    &reference.group,
                    &reference.version,
                    &reference.resource,
                )
            {
                let review = (review, asked.namespace.as_str());
                let object = self.gate.api.review(&caller, review, &body, &options).await?;
                return Ok(v1::WriteResponse { object, changed: false, warnings: Vec::new() });
            }
            let name = if asked.subresource.is_empty() { "" } else { asked.name.as_str() };
            let target = convert::target(
                &self.gate.api.catalogue(),
                place(&asked.resource, &asked.namespace, name, &asked.subresource),
            )?;
            self.gate.api.create(&caller, &target, &body, &options).await.map(convert::written)
        };
        visit.end(outcome.await)
    }

    async fn update(
        &self,
        request: Request<v1::UpdateRequest>,
    ) -> Result<Response<v1::WriteResponse>, Status> {
        let caller = caller(&request)?;
        let visit = Visit::begin(&self.gate, Verb::Update)?;
        let asked = request.into_inner();
        let outcome = async {
            let options = convert::write("UpdateOptions", asked.options)?;
            let target = convert::object(
                &self.gate.api.catalogue(),
                place(&asked.resource, &asked.namespace, &asked.name, &asked.subresource),
            )?;
            self.gate
                .api
                .update(&caller, &target, &convert::body(asked.object)?, &options)
                .await
                .map(convert::written)
        };
        visit.end(outcome.await)
    }

    async fn patch(&self, request: Request<v1::PatchRequest>) -> Result<Response<v1::WriteResponse>, Status> {
        let caller = caller(&request)?;
        let visit = Visit::begin(&self.gate, Verb::Patch)?;
        let asked = request.into_inner();
        let outcome = async {
            let options =
                WriteOptions { force: asked.force, ..convert::write("PatchOptions", asked.options)? };
            let kind = convert::patch(asked.r#type)?;
            WriteOptions::check_force(asked.force, kind.is_none())?;
            let target = convert::object(
                &self.gate.api.catalogue(),
                place(&asked.resource, &asked.namespace, &asked.name, &asked.subresource),
            )?;
            let (api, body) = (&self.gate.api, convert::body(asked.patch)?);
            let written = match kind {
                Some(kind) => api.patch(&caller, &target, kind, &body, &options).await,
                None => api.apply(&caller, &target, &body, &options).await,
            };
            written.map(convert::written)
        };
        visit.end(outcome.await)
    }

    async fn delete(
        &self,
        request: Request<v1::DeleteRequest>,
    ) -> Result<Response<v1::DeleteResponse>, Status> {
        let caller = caller(&request)?;
        let visit = Visit::begin(&self.gate, Verb::Delete)?;
        let asked = request.into_inner();
        let outcome = async {
            let options = convert::delete(asked.options)?;
            let target = convert::object(
                &self.gate.api.catalogue(),
                place(&asked.resource, &asked.namespace, &asked.name, ""),
            )?;
            let deleted = self.gate.api.delete(&caller, &target, &options).await?;
            Ok(v1::DeleteResponse {
                json: deleted.bytes,
                removed: deleted.removed,
                warnings: deleted.warnings,
            })
        };
        visit.end(outcome.await)
    }

    async fn delete_collection(
        &self,
        request: Request<v1::DeleteCollectionRequest>,
    ) -> Result<Response<Chunks>, Status> {
        let caller = caller(&request)?;
        let visit = Visit::begin(&self.gate, Verb::DeleteCollection)?;
        let asked = request.into_inner();
        let outcome = async {
            let options = convert::delete(asked.options)?;
            let target = convert::target(
                &self.gate.api.catalogue(),
                place(&asked.resource, &asked.namespace, "", ""),
            )?;
            if target.served.resource.is_namespaced() && target.namespace.is_empty() {
                return Err(method_not_allowed());
            }
            let list = ListOptions {
                labels: asked.label_selector,
                fields: asked.field_selector,
                asked: Asked::default(),
            };
            let page = self.gate.api.delete_collection(&caller, &target, &list, &options).await?;
            Ok(chunks(Arc::clone(&target.served), page, Projection::Object))
        };
        visit.end(outcome.await)
    }

    async fn watch(
        &self,
        request: Request<Streaming<v1::WatchRequest>>,
    ) -> Result<Response<WatchStream>, Status> {
        let caller = caller(&request)?;
        let said = request.into_inner();
        Ok(Response::new(watch::serve(Arc::clone(&self.gate), caller, said, self.ending.clone())))
    }

    async fn logs(&self, request: Request<v1::LogsRequest>) -> Result<Response<Logs>, Status> {
        let caller = caller(&request)?;
        let visit = Visit::begin(&self.gate, Verb::Get)?;
        let asked = request.into_inner();
        let outcome = async {
            let pods = v1::ResourceRef {
                group: String::new(),
                version: "v1".to_owned(),
                resource: "pods".to_owned(),
            };
            let target = convert::object(
                &self.gate.api.catalogue(),
                place(&Some(pods), &asked.namespace, &asked.name, "log"),
            )?;
            let permit = self.gate.enter_watch()?;
            let stream = self.gate.api.logs(&caller, &target, asked).await?;
            let mut ending = self.ending.clone();
            let stream = stream.take_until(async move { ended(&mut ending).await });
            let chunks = stream.map(move |chunk| {
                // The place among long requests is held for as long as the log is read.
                let _held = &permit;
                chunk.map(|data| v1::LogChunk { data }).map_err(refused)
            });
            Ok(Box::pin(chunks) as Logs)
        };
        visit.end(outcome.await)
    }
}

fn place<'a>(
    resource: &'a Option<v1::ResourceRef>,
    namespace: &'a str,
    name: &'a str,
    subresource: &'a str,
) -> Place<'a> {
    Place { resource: resource.as_ref(), namespace, name, subresource }
}

/// The chunks of a page, made as the client takes them; there is always one.
fn chunks(served: Arc<Served>, page: Page, form: Projection) -> Chunks {
    let revision = page.revision.to_string();
    let mut pieces: Vec<std::ops::Range<usize>> = Vec::new();
    let (mut start, mut size) = (0, 0);
    for (index, record) in page.records.iter().enumerate() {
        size += record.value.len();
        if size >= CHUNK_BYTES {
            pieces.push(start..index + 1);
            (start, size) = (index + 1, 0);
        }
    }
    if start < page.records.len() || pieces.is_empty() {
        pieces.push(start..page.records.len());
    }
    let last = pieces.len() - 1;
    let make = move |(index, range): (usize, std::ops::Range<usize>)| -> Result<v1::ListChunk, Status> {
        let items = items(&served, &page, range, form, &revision, index == 0).map_err(refused)?;
        let (continue_token, remaining) = if index == last {
            (page.token.clone(), page.remaining.unwrap_or(0))
        } else {
            (String::new(), 0)
        };
        Ok(v1::ListChunk { items, resource_version: revision.clone(), continue_token, remaining })
    };
    Box::pin(iter(pieces.into_iter().enumerate()).map(make))
}

fn items(
    served: &Served,
    page: &Page,
    range: std::ops::Range<usize>,
    form: Projection,
    revision: &str,
    first: bool,
) -> Outcome<Vec<bytes::Bytes>> {
    let records = &page.records[range];
    if form == Projection::Table {
        let objects = records.iter().map(|record| storage::parse(record)).collect::<Outcome<Vec<_>>>()?;
        return Ok(vec![convert::table(served, &objects, revision, first)?]);
    }
    records.iter().map(|record| convert::project(served, &record.value, form)).collect()
}
