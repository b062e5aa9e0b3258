//! Recovery: from the files of a log to the newest state, and where the log goes on.
//!
//! A small state comes from the newest segment with a base and the groups after it; a large one from
//! the checkpoint and the groups after that. The log ends at the first place without a valid frame,
//! which must be in the last segment and have no valid frame after it: else an acknowledged frame is
//! damaged, and that is reported, never repaired. Knows nothing of what the checkpoint is kept in.

use std::collections::VecDeque;
use std::sync::Arc;

use crate::engine::Recovered;
use crate::engine::checkpoint::{self, Loaded, Mark};
use crate::engine::disk::Disk;
use crate::engine::log::newest_of;
use crate::engine::segment::{Segment, SegmentReader, file_name, io_error, number_of};
use crate::error::EngineError;
use crate::revision::Revision;
use crate::state::State;
use crate::txn::Transaction;

/// Most segments replayed from a base before the checkpoint is preferred.
const MAX_BASE_SEGMENTS: usize = 4;

/// Limits of the recent transactions kept for watchers.
#[derive(Clone, Copy, Debug)]
pub struct RecentLimits {
    /// Most transactions.
    pub transactions: usize,
    /// Most bytes.
    pub bytes: usize,
}

/// Where recovery starts.
enum Start {
    /// At the base of this segment.
    Base(usize),
    /// At the checkpoint, going on in this segment.
    Checkpoint(usize),
}

/// Opens all segments of a disk and checks that they follow each other.
///
/// # Errors
/// `Corrupt` if one is missing or damaged.
pub fn open_segments(disk: &dyn Disk, files: &[String]) -> Result<VecDeque<Arc<Segment>>, EngineError> {
    let mut numbers: Vec<u64> = files.iter().filter_map(|name| number_of(name)).collect();
    numbers.sort_unstable();
    let mut segments: VecDeque<Arc<Segment>> = VecDeque::new();
    for number in numbers {
        let name = file_name(number);
        let file = disk.open(&name).map_err(|error| io_error("open", &name, error))?;
        let segment = Segment::open(number, file)?;
        if let Some(before) = segments.back() {
            if before.title.number + 1 != number {
                return Err(segment.corrupt(0, "the segment before it is missing"));
            }
            before.set_last(Revision::new(segment.title.first.get().saturating_sub(1)));
        }
        segments.push_back(Arc::new(segment));
    }
    let has = |name: &str| files.iter().any(|file| file == name);
    let newest = segments.back().map_or(0, |segment| segment.title.number);
    match newest_of(disk, files)?.filter(|number| *number > newest) {
        Some(number) => Err(EngineError::Corrupt {
            file: file_name(number),
            offset: 0,
            what: "this segment of the log is missing, and what was acknowledged in it".to_owned(),
        }),
        None if segments.is_empty() && has(checkpoint::FOLDER) && !has(checkpoint::MARKER) => {
            let what = "its mark is missing, and so is the log: there was data here".to_owned();
            Err(EngineError::Corrupt { file: checkpoint::FOLDER.to_owned(), offset: 0, what })
        }
        None => Ok(segments),
    }
}

/// Recovers the state. `checkpointed` is the revision that the checkpoint surely has, `floor` the oldest
/// that may be read; `load` reads the checkpoint.
///
/// # Errors
/// `Corrupt` with file and offset, or `Io`.
pub fn recover(
    segments: &VecDeque<Arc<Segment>>,
    Mark { revision: checkpointed, floor }: Mark,
    limits: RecentLimits,
    load: impl FnOnce() -> Result<Loaded, EngineError>,
) -> Result<Recovered, EngineError> {
    if segments.is_empty() && checkpointed == Revision::ZERO {
        return Ok(Recovered { state: State::empty(), recent: Vec::new(), oldest: Revision::ZERO });
    }
    if segments.is_empty() && floor == checkpointed {
        // As an import leaves it: a state without history.
        return Ok(Recovered { state: load()?.state, recent: Vec::new(), oldest: floor });
    }
    let (Loaded { mut state, newest }, from) = match start(segments, checkpointed)? {
        Start::Base(at) => (Loaded { state: base_of(&segments[at])?, newest: checkpointed }, at),
        Start::Checkpoint(at) => (load()?, at),
    };
    let checkpointed = checkpointed.max(newest);
    let mut recent = Recent { limits, transactions: VecDeque::new(), bytes: 0 };
    for (at, segment) in segments.iter().enumerate().skip(from) {
        let is_last = at + 1 == segments.len();
        replay(segment, is_last, &mut state, &mut recent)?;
    }
    if let Some(last) = segments.back() {
        if state.revision < checkpointed || state.revision.next() < last.title.first {
            let what =
                format!("the log ends at revision {}, {checkpointed} is in the checkpoint", state.revision);
            return Err(last.corrupt(last.end(), what));
        }
        // What is found is served from now on, so it must be durable even if its writer died unsynced.
        last.file.sync().map_err(|error| io_error("sync", &last.name, error))?;
    }
    let oldest = segments.front().map_or(0, |segment| segment.title.first.get().saturating_sub(1));
    let floor = segments.back().map_or(0, |segment| segment.title.floor.get());
    let oldest = Revision::new(oldest.max(floor));
    Ok(Recovered { state, recent: recent.transactions.into(), oldest })
}

fn start(segments: &VecDeque<Arc<Segment>>, checkpointed: Revision) -> Result<Start, EngineError> {
    let base = segments.iter().rposition(|segment| segment.title.base.is_some());
    let after = segments.iter().rposition(|segment| segment.title.first <= checkpointed.next());
    match (base, after) {
        (Some(base), None) => Ok(Start::Base(base)),
        (Some(base), Some(after)) if segments.len() - base <= MAX_BASE_SEGMENTS || base >= after => {
            Ok(Start::Base(base))
        }
        (_, Some(after)) => Ok(Start::Checkpoint(after)),
        (None, None) => Err(EngineError::Corrupt {
            file: "the log".to_owned(),
            offset: 0,
            what: format!("it does not reach back to the checkpoint at revision {checkpointed}"),
        }),
    }
}

/// The state that a segment starts from.
fn base_of(segment: &Arc<Segment>) -> Result<State, EngineError> {
    let reader = SegmentReader::new(segment.clone())?;
    let mut state = State::empty();
    reader.known().values().for_each(|record| state.insert(record.clone()));
    state.revision = Revision::new(segment.title.first.get().saturating_sub(1));
    state.time = segment.title.time;
    Ok(state)
}

fn replay(
    segment: &Arc<Segment>,
    is_last: bool,
    state: &mut State,
    recent: &mut Recent,
) -> Result<(), EngineError> {
    let mut reader = SegmentReader::new(segment.clone())?;
    let mut last = Revision::new(segment.title.first.get().saturating_sub(1));
    loop {
        let transaction = if is_last { reader.next_unbounded()? } else { reader.next()? };
        let Some(transaction) = transaction else { break };
        last = transaction.revision;
        if transaction.revision > state.revision {
            state.apply(&transaction);
        }
        state.time = state.time.max(transaction.time);
        recent.push(transaction);
    }
    if is_last {
        check_end(segment, &reader)?;
    }
    segment.set_end(reader.offset(), last);
    Ok(())
}

/// Checks that the log ends here because nothing more was written, or not all of it.
fn check_end(segment: &Segment, reader: &SegmentReader) -> Result<(), EngineError> {
    if let Some(later) = segment.has_frame_after(reader.offset())? {
        return Err(
            reader.damaged(&format!("there is no valid frame here, but there is one at byte {later}"))
        );
    }
    // A write that was torn lacks whole sectors. One bit is decay, of a frame that may have been acknowledged.
    match segment.flipped(reader.offset(), reader.expected())? {
        Some(flipped) => {
            Err(segment.corrupt(reader.offset(), format!("the last frame is not valid: {flipped}")))
        }
        None => Ok(()),
    }
}

/// The newest transactions seen, within limits.
struct Recent {
    limits: RecentLimits,
    transactions: VecDeque<Arc<Transaction>>,
    bytes: usize,
}

impl Recent {
    fn push(&mut self, transaction: Arc<Transaction>) {
        self.bytes += transaction.size();
        self.transactions.push_back(transaction);
        while self.transactions.len() > self.limits.transactions || self.bytes > self.limits.bytes {
            let Some(old) = self.transactions.pop_front() else { break };
            self.bytes -= old.size();
        }
    }
}
