//! Lists: stored objects one after the other, gathered in pieces as the client takes them, never parsed.

use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use axum::body::Body as AnyBody;
use bytes::{Bytes, BytesMut};
use http::StatusCode;
use http_body::{Body, Frame, SizeHint};
use jiff::Timestamp;
use serde_json::{Map, Value, json};
use strata_store::record::Record;

use super::negotiate::{Encoding, Shape, Wanted};
use super::respond::{self, Answer};
use crate::pipeline::read::Page;
use crate::projection::{self, Include, TableForm};
use crate::refusal::Outcome;
use crate::storage;
use crate::types::catalogue::Served;

/// How many bytes of a list are gathered at a time.
const PIECE: usize = 128 * 1024;

/// Metadata of a list.
pub fn meta(page: &Page) -> Value {
    let mut meta = Map::new();
    meta.insert("resourceVersion".to_owned(), json!(page.revision.to_string()));
    if !page.token.is_empty() {
        meta.insert("continue".to_owned(), json!(page.token));
    }
    if let Some(remaining) = page.remaining.filter(|n| *n > 0) {
        meta.insert("remainingItemCount".to_owned(), json!(remaining));
    }
    Value::Object(meta)
}

/// Answers a page in the shape that is wanted.
pub fn answer(
    served: &Served,
    page: Page,
    wanted: Wanted,
    include: Include,
    now: Timestamp,
) -> Outcome<Answer> {
    let meta = meta(&page);
    if wanted.shape == Shape::Whole && wanted.encoding == Encoding::Json && !wanted.pretty {
        let body = AnyBody::new(Pieces::new(served, page.records, &meta));
        return Ok(respond::stream(body));
    }
    let objects =
        page.records.iter().map(|record| storage::parse(record)).collect::<Outcome<Vec<Value>>>()?;
    let list = match wanted.shape {
        Shape::Table(version) => {
            let form = TableForm { version, include, columns: true };
            projection::table(served, &objects, meta, form, now)
        }
        Shape::MetadataList | Shape::Metadata => projection::metadata_list(&objects, meta),
        Shape::Whole | Shape::Discovery(_) => json!({
            "apiVersion": served.resource.api_version(),
            "kind": served.list_kind(),
            "metadata": meta,
            "items": objects,
        }),
    };
    respond::value(StatusCode::OK, &list, wanted)
}

/// The body of a list: a head, the objects with commas between, a tail. Its length is known before it begins.
struct Pieces {
    head: Option<String>,
    records: std::vec::IntoIter<Arc<Record>>,
    first: bool,
    tail: Option<String>,
    left: u64,
}

impl Pieces {
    fn new(served: &Served, records: Vec<Arc<Record>>, meta: &Value) -> Self {
        let version = served.resource.api_version();
        let head = format!(
            "{{\"kind\":\"{}\",\"apiVersion\":\"{version}\",\"metadata\":{meta},\"items\":[",
            served.list_kind()
        );
        let tail = "]}\n".to_owned();
        let objects: usize = records.iter().map(|record| record.value.len()).sum();
        let commas = records.len().saturating_sub(1);
        let left = (head.len() + objects + commas + tail.len()) as u64;
        Self { head: Some(head), records: records.into_iter(), first: true, tail: Some(tail), left }
    }

    fn next_piece(&mut self) -> Option<Bytes> {
        self.tail.as_ref()?;
        let mut piece = BytesMut::with_capacity(PIECE.min(usize::try_from(self.left).unwrap_or(PIECE)));
        if let Some(head) = self.head.take() {
            piece.extend_from_slice(head.as_bytes());
        }
        while piece.len() < PIECE {
            match self.records.next() {
                Some(record) => {
                    if !std::mem::take(&mut self.first) {
                        piece.extend_from_slice(b",");
                    }
                    piece.extend_from_slice(&record.value);
                }
                None => {
                    piece.extend_from_slice(self.tail.take()?.as_bytes());
                    break;
                }
            }
        }
        self.left = self.left.saturating_sub(piece.len() as u64);
        Some(piece.freeze())
    }
}

impl Body for Pieces {
    type Data = Bytes;
    type Error = std::convert::Infallible;

    fn poll_frame(
        self: Pin<&mut Self>,
        _: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Self::Error>>> {
        Poll::Ready(self.get_mut().next_piece().map(|piece| Ok(Frame::data(piece))))
    }

    fn is_end_stream(&self) -> bool {
        self.tail.is_none()
    }

    fn size_hint(&self) -> SizeHint {
        SizeHint::with_exact(self.left)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use strata_model::resource::{Registry, builtin};
    use strata_store::revision::Revision;

    use crate::types::catalogue::Catalogue;

    #[test]
    fn pieces_make_the_whole_and_its_length_is_known() {
        let catalogue = Catalogue::new(&Registry::builtin());
        let served = catalogue.by_id(&builtin::POD.id).unwrap();
        for count in [0usize, 1, 500] {
            let record = |i: usize| {
                let text = format!("{{\"n\":{i},\"pad\":\"{}\"}}", "x".repeat(1000));
                let key = storage::key(&builtin::POD.id, "n", &i.to_string());
                Arc::new(Record::new(key, text.into(), Revision::new(1), Revision::new(1)))
            };
            let mut pieces =
                Pieces::new(served, (0..count).map(record).collect(), &json!({"resourceVersion": "9"}));
            let told = pieces.size_hint().exact().unwrap();
            let mut all = Vec::new();
            while let Some(piece) = pieces.next_piece() {
                all.extend_from_slice(&piece);
            }
            assert_eq!(all.len() as u64, told);
            let list: Value = serde_json::from_slice(&all).unwrap();
            assert_eq!(list["items"].as_array().unwrap().len(), count);
            assert_eq!(list["kind"], "PodList");
        }
    }
}
