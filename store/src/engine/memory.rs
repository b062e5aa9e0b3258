//! The memory engine: for tests and simulation.
//! Knows nothing of files.

use std::sync::{Arc, Mutex, PoisonError};

use crate::config::Config;
use crate::engine::{Archive, Engine, Group, HistoryReader, Opened, Recovered};
use crate::error::{EngineError, OpenError};
use crate::revision::Revision;
use crate::state::State;
use crate::txn::Transaction;

/// A data set in memory; it outlives the stores that open it.
#[derive(Clone, Debug, Default)]
pub struct Memory {
    log: Arc<Mutex<Vec<Arc<Transaction>>>>,
}

impl Memory {
    /// An empty data set.
    #[must_use]
    pub fn new() -> Self {
        Memory::default()
    }

    /// Opens it.
    pub(crate) fn open(self, _config: &Config) -> Result<Opened, OpenError> {
        let mut state = State::empty();
        let recent = self.log.lock().unwrap_or_else(PoisonError::into_inner).clone();
        recent.iter().for_each(|transaction| state.apply(transaction));
        let recovered = Recovered { state, recent, oldest: Revision::ZERO };
        Ok(Opened { engine: Box::new(self.clone()), archive: Arc::new(self), recovered })
    }
}

impl Engine for Memory {
    fn append(&mut self, group: &Group<'_>) -> Result<(), EngineError> {
        self.log.lock().unwrap_or_else(PoisonError::into_inner).extend_from_slice(group.transactions);
        Ok(())
    }
}

impl Archive for Memory {
    fn read_after(&self, after: Revision) -> Result<Box<dyn HistoryReader>, EngineError> {
        Ok(Box::new(Reader { memory: self.clone(), next: after.get() as usize }))
    }
    fn upkeep_due(&self, _floor: Revision) -> bool {
        false
    }
    fn upkeep(&self, _state: &State, _floor: Revision) -> Result<bool, EngineError> {
        Ok(false)
    }
    fn log_bytes(&self) -> u64 {
        0
    }
    fn oldest(&self) -> Revision {
        Revision::ZERO
    }
    fn close(&self, _state: &State, _floor: Revision) {}
}

struct Reader {
    memory: Memory,
    next: usize,
}

impl HistoryReader for Reader {
    fn next(&mut self) -> Result<Option<Arc<Transaction>>, EngineError> {
        let found = self.memory.log.lock().unwrap_or_else(PoisonError::into_inner).get(self.next).cloned();
        self.next += usize::from(found.is_some());
        Ok(found)
    }
}
