//! Load: finding a store in etcd, or making one; and reading its whole state at one revision.
//! Knows nothing of watchers or writers.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use tokio::time::{Instant, timeout};

use crate::engine::etcd::events::{UNKNOWN_TIME, damaged, record};
use crate::engine::etcd::layout::{self, FORMAT, Layout, Line, Note};
use crate::engine::etcd::members::Members;
use crate::engine::etcd::wire::{
    self, KeyValue, Op, RANGE, RangeRequest, RangeResponse, RequestOp, TXN, TxnRequest, TxnResponse,
    WatchCreateRequest,
};
use crate::error::{EngineError, OpenError};
use crate::revision::Revision;
use crate::state::State;

/// Most time for finding the store: a cluster that is just starting comes up in it.
pub const OPEN_LIMIT: Duration = Duration::from_secs(20);
/// Records read at first in one call, and the bounds of that number.
const FIRST_PAGE: usize = 1_000;
const PAGES: (usize, usize) = (64, 100_000);
/// Bytes wanted in one call. Large, as etcd counts the rest of the range in each.
const PAGE_BYTES: usize = 16 << 20;

/// Whether a store is there, without making one.
///
/// # Errors
/// `NewerFormat`, or `Engine` if it cannot be read or an import into it did not finish.
pub async fn find(members: &Members, layout: &Layout) -> Result<Option<Line>, OpenError> {
    let request = TxnRequest {
        success: vec![wire::get(layout.format()), wire::get(layout.importing())],
        ..TxnRequest::default()
    };
    let deadline = Instant::now() + OPEN_LIMIT;
    let answer: TxnResponse =
        members.call_until(TXN, request, deadline).await.map_err(|error| error.of_read())?;
    line(layout, answer.read(0), answer.read(1))
}

/// Finds the store, or makes an empty one where there is nothing at all below its prefix.
///
/// # Errors
/// As `find`.
pub async fn find_or_make(members: &Members, layout: &Layout) -> Result<Line, OpenError> {
    let (start, range_end) = layout.all();
    let nothing = wire::Compare { range_end, ..wire::absent(start) };
    let request = TxnRequest {
        compare: vec![nothing],
        success: vec![wire::put(layout.format(), layout::put_format(None))],
        failure: vec![wire::get(layout.format()), wire::get(layout.importing())],
    };
    let deadline = Instant::now() + OPEN_LIMIT;
    let answer: TxnResponse =
        members.call_until(TXN, request, deadline).await.map_err(|error| error.of_read())?;
    if answer.succeeded {
        return Ok(Line::new(wire::revision(&answer.header), None));
    }
    line(layout, answer.read(0), answer.read(1))?.ok_or_else(|| {
        let what = "it holds keys, but not those of a store";
        let file = format!("etcd prefix {}", layout.name());
        OpenError::Engine(EngineError::Corrupt { file, offset: 0, what: what.to_owned() })
    })
}

fn line(
    layout: &Layout,
    format: Option<&KeyValue>,
    importing: Option<&KeyValue>,
) -> Result<Option<Line>, OpenError> {
    if importing.is_some() {
        let what = "an import into it did not finish: remove the keys of this prefix and import again";
        let file = format!("etcd prefix {}", layout.name());
        return Err(EngineError::Corrupt { file, offset: 0, what: what.to_owned() }.into());
    }
    let Some(format) = format else { return Ok(None) };
    let (found, base) =
        layout::read_format(&format.value).map_err(|what| damaged(&format.key, format, what))?;
    if found > FORMAT {
        return Err(OpenError::NewerFormat { found, supported: FORMAT });
    }
    Ok(Some(Line::new(format.mod_revision, base)))
}

/// The whole store as it was at one revision of etcd.
pub struct Loaded {
    /// The state. Its revision is that of the newest transaction.
    pub state: State,
    /// The revision of etcd that was read at: what comes after is not in the state.
    pub at: i64,
    /// The revision of etcd at which the fence was last written, 0 for never.
    pub fence: i64,
}

/// Reads the whole store at one revision, not older than the call.
///
/// # Errors
/// `Compacted` if that revision's history was given back meanwhile, `Corrupt`, `Unavailable`, `Refused`.
pub async fn load(members: &Members, layout: &Layout, line: &Line) -> Result<Loaded, EngineError> {
    let (mut key, range_end) = layout.records();
    let page = |key: Bytes, limit: usize, revision: i64| RangeRequest {
        key,
        range_end: range_end.clone(),
        limit: limit as i64,
        revision,
    };
    let first = RequestOp { op: Some(Op::Range(page(key, FIRST_PAGE, 0))) };
    let success = vec![wire::get(layout.last()), wire::get(layout.fence()), first];
    let request = TxnRequest { success, ..TxnRequest::default() };
    let deadline = Instant::now() + OPEN_LIMIT;
    let head: TxnResponse =
        members.call_until(TXN, request, deadline).await.map_err(|error| error.of_read())?;
    let at = wire::revision(&head.header);
    let (mut state, mut newest) = (State::empty(), line.first);
    state.time = UNKNOWN_TIME;
    if let Some(last) = head.read(0) {
        state.time = Note::read(&last.value).map_err(|what| damaged(&last.key, last, what))?.time;
        newest = newest.max(last.mod_revision);
    }
    let mut got = head.responses.get(2).and_then(|page| page.range.clone()).unwrap_or_default();
    loop {
        for kv in &got.kvs {
            let Some(key) = layout.key(&kv.key) else { continue };
            newest = newest.max(kv.mod_revision);
            state.insert(record(line, &key, kv)?);
        }
        let Some(last) = got.kvs.last().filter(|_| got.more) else { break };
        let bytes: usize = got.kvs.iter().map(|kv| kv.value.len() + 100).sum();
        let limit = (got.kvs.len() * PAGE_BYTES / bytes).clamp(PAGES.0, PAGES.1);
        key = [&last.key[..], &[0]].concat().into();
        got = next_page(members, line, page(key, limit, at)).await?;
    }
    state.revision = line.revision(newest);
    let fence = head.read(1).map_or(0, |kv| kv.mod_revision);
    Ok(Loaded { state, at, fence })
}

async fn next_page(
    members: &Members,
    line: &Line,
    request: RangeRequest,
) -> Result<RangeResponse, EngineError> {
    let at = request.revision;
    let deadline = Instant::now() + OPEN_LIMIT;
    let answer = members.call_until(RANGE, request, deadline).await;
    answer.map_err(|error| match error.of_read() {
        EngineError::Refused { what, .. } if what.contains("compacted") => {
            EngineError::Compacted { oldest: line.revision(at).next() }
        }
        other => other,
    })
}

/// The oldest revision of etcd whose history is whole, for this store.
///
/// # Errors
/// `Unavailable` if the cluster does not answer in time.
pub async fn oldest(members: &Arc<Members>, layout: &Layout, line: &Line) -> Result<i64, EngineError> {
    let deadline = Instant::now() + OPEN_LIMIT;
    let key = layout.format();
    // Either the watch is told that it begins too early, or it sees the format being written.
    let create = WatchCreateRequest { key, start_revision: 1, ..WatchCreateRequest::default() };
    let unavailable = || EngineError::Unavailable {
        at: "etcd".to_owned(),
        what: "no watch was answered in time".to_owned(),
    };
    loop {
        let left = deadline.saturating_duration_since(Instant::now());
        if left.is_zero() {
            return Err(unavailable());
        }
        let Ok(mut following) = members.watch(create.clone()).await else {
            tokio::time::sleep(Duration::from_millis(50)).await;
            continue;
        };
        let told = timeout(left, async {
            loop {
                let response = members.next(&mut following).await?;
                if response.compact_revision > 0 || !response.events.is_empty() {
                    return Ok::<_, super::members::CallError>(response.compact_revision);
                }
            }
        });
        match told.await {
            Ok(Ok(compacted)) => return Ok(compacted.max(line.first)),
            Ok(Err(error)) => tracing::debug!(?error, "a watch ended before it was answered"),
            Err(_) => return Err(unavailable()),
        }
    }
}

/// What an opening finds.
pub struct Found {
    /// How revisions map.
    pub line: Line,
    /// The state.
    pub loaded: Loaded,
    /// Oldest revision after which history is whole.
    pub oldest: Revision,
}

/// Opens a store: finds or makes it, and reads it.
///
/// # Errors
/// As `find` and `load`.
pub async fn open(members: &Arc<Members>, layout: &Layout) -> Result<Found, OpenError> {
    let line = find_or_make(members, layout).await?;
    let loaded = load_whole(members, layout, &line).await?;
    let oldest = line.revision(oldest(members, layout, &line).await?);
    let oldest = oldest.min(loaded.state.revision);
    Ok(Found { line, loaded, oldest })
}

/// Reads the whole store, again if its history was given back while it was read.
///
/// # Errors
/// As `load`.
pub async fn load_whole(members: &Members, layout: &Layout, line: &Line) -> Result<Loaded, EngineError> {
    let deadline = Instant::now() + OPEN_LIMIT;
    loop {
        match load(members, layout, line).await {
            Err(EngineError::Compacted { oldest }) if Instant::now() < deadline => {
                tracing::debug!(%oldest, "history was given back while the store was read");
            }
            other => return other,
        }
    }
}
