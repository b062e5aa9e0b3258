//! Watches over HTTP: one JSON line an event, bookmarks, a clean end.

use std::sync::Arc;
use std::time::Duration;

use axum::body::Body;
use bytes::{BufMut, Bytes, BytesMut};
use futures_util::stream::unfold;
use jiff::Timestamp;
use rand::RngExt;
use serde_json::{Value, json};
use strata_model::status::Status;
use tokio::sync::{OwnedSemaphorePermit, watch};
use tokio::time::{Instant, sleep_until};

use super::negotiate::{Shape, Wanted};
use super::query::WatchOptions;
use super::respond::{self, Answer};
use crate::gate::ended;
use crate::pipeline::event::{Event, Kind};
use crate::pipeline::watching::{Observer, Step};
use crate::projection::{self, Include, TableForm};
use crate::refusal::Refusal;
use crate::storage;
use crate::telemetry::Held;
use crate::types::catalogue::Served;

/// How many bytes of events are gathered before they are sent.
const PIECE: usize = 64 * 1024;
/// How often the client is told how far it is.
const BOOKMARK_EVERY: Duration = Duration::from_secs(60);
/// How long before the end the last bookmark comes.
const LAST_BOOKMARK: Duration = Duration::from_secs(2);
/// Least and most seconds of a watch whose client names no end.
const DEFAULT_SECONDS: std::ops::Range<u64> = 1800..3600;
/// The annotation of the bookmark that ends the initial state.
const INITIAL_END: &str = "k8s.io/initial-events-end";

/// What a watch holds for as long as it is open.
pub struct Holding {
    /// Its place among the open watches.
    pub permit: OwnedSemaphorePermit,
    /// Its count in the gauge.
    pub held: Held,
    /// Turns true when the server ends.
    pub ending: watch::Receiver<bool>,
}

struct Lines {
    observer: Observer,
    served: Arc<Served>,
    wanted: Wanted,
    include: Include,
    options: WatchOptions,
    columns_sent: bool,
    end: Instant,
    bookmark: Instant,
    ended: bool,
    holding: Holding,
}

/// Answers a watch.
pub fn answer(
    observer: Observer,
    wanted: Wanted,
    include: Include,
    options: WatchOptions,
    holding: Holding,
) -> Answer {
    let now = Instant::now();
    let length =
        options.timeout.unwrap_or_else(|| Duration::from_secs(rand::rng().random_range(DEFAULT_SECONDS)));
    let end = now + length;
    let bookmark = now + BOOKMARK_EVERY.min(length.saturating_sub(LAST_BOOKMARK));
    let served = Arc::clone(&observer.target().served);
    let lines = Lines {
        observer,
        served,
        wanted,
        include,
        options,
        columns_sent: false,
        end,
        bookmark,
        ended: length.is_zero(),
        holding,
    };
    let stream = unfold(lines, |mut lines| async move {
        let piece = lines.next_piece().await?;
        Some((Ok::<_, std::convert::Infallible>(piece), lines))
    });
    respond::stream(Body::from_stream(stream))
}

/// Answers a watch that ends before it begins, in the form in which clients expect to hear of it.
pub fn refused(refusal: &Refusal) -> Answer {
    let mut line = BytesMut::new();
    put_error(&mut line, refusal);
    respond::stream(Body::from(line.freeze()))
}

fn put_error(out: &mut BytesMut, status: &Status) {
    let text = serde_json::to_vec(status).unwrap_or_default();
    put_line(out, "ERROR", &text);
}

fn put_line(out: &mut BytesMut, kind: &str, object: &[u8]) {
    out.put_slice(b"{\"type\":\"");
    out.put_slice(kind.as_bytes());
    out.put_slice(b"\",\"object\":");
    out.put_slice(object);
    out.put_slice(b"}\n");
}

fn word(kind: Kind) -> &'static str {
    match kind {
        Kind::Added => "ADDED",
        Kind::Modified => "MODIFIED",
        Kind::Deleted => "DELETED",
    }
}

enum Wake {
    Step(Result<Step, Refusal>),
    Bookmark,
    End,
}

impl Lines {
    async fn next_piece(&mut self) -> Option<Bytes> {
        let mut out = BytesMut::new();
        while out.is_empty() {
            if self.ended || *self.holding.ending.borrow() {
                return None;
            }
            let wake = tokio::select! {
                biased;
                step = self.observer.next() => Wake::Step(step),
                () = sleep_until(self.bookmark) => Wake::Bookmark,
                () = sleep_until(self.end) => Wake::End,
                () = ended(&mut self.holding.ending) => Wake::End,
            };
            match wake {
                Wake::Step(step) => self.gather(step, &mut out),
                Wake::Bookmark => self.ask_bookmark(),
                Wake::End => return None,
            }
        }
        Some(out.freeze())
    }

    /// Puts a step and everything that is ready behind it.
    fn gather(&mut self, step: Result<Step, Refusal>, out: &mut BytesMut) {
        let mut next = step;
        loop {
            match next {
                Ok(step) => self.put(step, out),
                Err(refusal) => {
                    put_error(out, &refusal);
                    self.ended = true;
                    return;
                }
            }
            if out.len() >= PIECE || Instant::now() >= self.end {
                return;
            }
            match self.observer.try_next().transpose() {
                Some(step) => next = step,
                None => return,
            }
        }
    }

    fn ask_bookmark(&mut self) {
        let now = Instant::now();
        self.observer.ask_current();
        let last = self.end.checked_sub(LAST_BOOKMARK).unwrap_or(self.end);
        // After the last one there is only the end.
        self.bookmark =
            if now >= last { self.end + BOOKMARK_EVERY } else { (now + BOOKMARK_EVERY).min(last) };
    }

    fn put(&mut self, step: Step, out: &mut BytesMut) {
        match step {
            Step::Events(events) => {
                for event in &events {
                    self.put_event(event, out);
                }
            }
            Step::InitialEnd(revision) if self.options.announce_initial && self.options.bookmarks => {
                self.put_bookmark(revision, true, out);
            }
            Step::Progress(revision) if self.options.bookmarks => self.put_bookmark(revision, false, out),
            Step::Gone => self.ended = true,
            Step::InitialEnd(_) | Step::Progress(_) => {}
        }
    }

    fn put_event(&mut self, event: &Event, out: &mut BytesMut) {
        let kind = word(event.kind);
        if self.wanted.shape == Shape::Whole {
            put_line(out, kind, &event.bytes);
            return;
        }
        match storage::parse_bytes(&event.bytes) {
            Ok(object) => {
                let projected = self.project(&object, event.revision);
                put_line(out, kind, projected.to_string().as_bytes());
            }
            Err(refusal) => {
                put_error(out, &refusal);
                self.ended = true;
            }
        }
    }

    fn project(&mut self, object: &Value, revision: u64) -> Value {
        let Shape::Table(version) = self.wanted.shape else { return projection::metadata_only(object) };
        let columns = !std::mem::replace(&mut self.columns_sent, true);
        let form = TableForm { version, include: self.include, columns };
        let meta = json!({"resourceVersion": revision.to_string()});
        projection::table(&self.served, std::slice::from_ref(object), meta, form, Timestamp::now())
    }

    fn put_bookmark(&mut self, revision: u64, initial_end: bool, out: &mut BytesMut) {
        let mut metadata = json!({"resourceVersion": revision.to_string(), "creationTimestamp": null});
        if initial_end {
            metadata["annotations"] = json!({INITIAL_END: "true"});
        }
        let (version, kind) = match self.wanted.shape {
            Shape::Whole | Shape::Discovery(_) => {
                (self.served.resource.api_version(), self.served.resource.kind.to_string())
            }
            Shape::Table(version) => (format!("meta.k8s.io/{version}"), "Table".to_owned()),
            Shape::Metadata | Shape::MetadataList => {
                ("meta.k8s.io/v1".to_owned(), "PartialObjectMetadata".to_owned())
            }
        };
        let mut object = json!({"kind": kind, "apiVersion": version, "metadata": metadata});
        if matches!(self.wanted.shape, Shape::Table(_)) {
            object["columnDefinitions"] = Value::Null;
            object["rows"] = json!([]);
        }
        put_line(out, "BOOKMARK", object.to_string().as_bytes());
    }
}
