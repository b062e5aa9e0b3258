//! The embedded engine of a directory.
//! Knows nothing of stores.

use std::path::Path;

use crate::config::Config;
use crate::engine::Opened;
use crate::error::{EngineError, OpenError};

/// Opens a directory.
pub(crate) fn open(_directory: &Path, _config: &Config) -> Result<Opened, OpenError> {
    Err(EngineError::Stopped { reason: "the engine is not built yet".to_owned() }.into())
}
