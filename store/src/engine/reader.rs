//! Reader: the log's transactions in order, over all segments, as far as they are durable. Knows nothing of who writes.

use std::sync::Arc;

use crate::engine::HistoryReader;
use crate::engine::log::Log;
use crate::engine::segment::SegmentReader;
use crate::error::EngineError;
use crate::revision::Revision;
use crate::txn::Transaction;

/// Reads the log's transactions over segment borders, as far as they are durable.
pub struct LogReader {
    log: Arc<Log>,
    current: Option<SegmentReader>,
    after: Revision,
}

impl LogReader {
    /// A reader of the transactions after `after`.
    ///
    /// # Errors
    /// `Compacted` if they are not all there.
    pub fn new(log: Arc<Log>, after: Revision) -> Result<Self, EngineError> {
        let mut reader = LogReader { log, current: None, after };
        reader.enter()?;
        Ok(reader)
    }

    /// Goes to the segment where the next transaction is or will be.
    fn enter(&mut self) -> Result<(), EngineError> {
        let segment = self.log.segment_after(self.after)?;
        self.current = Some(SegmentReader::new(segment)?);
        Ok(())
    }
}

impl HistoryReader for LogReader {
    fn next(&mut self) -> Result<Option<Arc<Transaction>>, EngineError> {
        loop {
            let reader = match &mut self.current {
                Some(reader) => reader,
                None => {
                    self.enter()?;
                    continue;
                }
            };
            match reader.next()? {
                Some(transaction) if transaction.revision <= self.after => {}
                Some(transaction) => {
                    self.after = transaction.revision;
                    return Ok(Some(transaction));
                }
                None => {
                    let next = self.log.segment_after(self.after)?;
                    if next.title.number == reader.segment().title.number {
                        return Ok(None);
                    }
                    self.current = None;
                }
            }
        }
    }
}
