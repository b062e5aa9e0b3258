//! Verify: looks at everything that a directory keeps without opening it as a store, and tells what is damaged.
//! Knows nothing of how damage is told.

use std::path::Path;

pub use crate::engine::inspect::{Inspection, MAX_DAMAGES};
use crate::engine::{directory, sled};
use crate::error::OpenError;

/// Why a directory was not verified.
#[derive(Debug, thiserror::Error)]
pub enum VerifyError {
    /// There is no store.
    #[error("there is no store to verify")]
    NoStore,
    /// It cannot be read, is in use, or is of a newer version; it was not touched.
    #[error(transparent)]
    Open(#[from] OpenError),
}

/// Checks every frame of the log and every record of the checkpoint of a store that nobody has open. Blocks while it
/// reads. Damage is in the answer, and no error.
///
/// # Errors
/// See [`VerifyError`].
pub fn verify(path: &Path) -> Result<Inspection, VerifyError> {
    if !directory::is_store(path)? {
        return Err(VerifyError::NoStore);
    }
    Ok(sled::inspect(path)?)
}
