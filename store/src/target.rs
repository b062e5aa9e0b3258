//! Target: a store that is being made from another's records, in any engine that lasts. It is no store before its last
//! step, and what does not come so far is taken away again. Knows nothing of where the records come from.

use std::sync::Arc;

#[cfg(feature = "etcd")]
use crate::engine::etcd::{import, layout::Layout, load, members::Members};
use crate::engine::{directory, sled};
use crate::error::{EngineError, OpenError};
use crate::record::Record;
use crate::revision::Revision;
use crate::store::EngineChoice;

/// Records handed over in one piece.
pub(crate) const PIECE_RECORDS: usize = 4096;
/// Most bytes handed over in one piece, counted before the last record.
pub(crate) const PIECE_BYTES: usize = 4 << 20;

/// Why a store cannot be begun.
pub(crate) enum TargetError {
    /// The place cannot be prepared, or is not empty.
    Prepare(OpenError),
    /// A store in memory would be gone at once.
    Memory,
}

/// A store that is being made.
pub(crate) enum Target {
    /// In a directory.
    Sled(Box<sled::Import>),
    /// In a cluster.
    #[cfg(feature = "etcd")]
    Etcd(import::Import),
}

impl Target {
    /// Begins, where there is nothing yet.
    pub(crate) async fn begin(engine: &EngineChoice) -> Result<Target, TargetError> {
        match engine {
            EngineChoice::Sled { directory } => {
                let import = sled::Import::begin(directory).map_err(TargetError::Prepare)?;
                Ok(Target::Sled(Box::new(import)))
            }
            EngineChoice::Memory(_) => Err(TargetError::Memory),
            #[cfg(feature = "etcd")]
            EngineChoice::Etcd(etcd) => {
                import::Import::begin(etcd).await.map(Target::Etcd).map_err(TargetError::Prepare)
            }
        }
    }

    /// Takes records.
    pub(crate) async fn write(&mut self, records: &[Arc<Record>]) -> Result<(), EngineError> {
        match self {
            Target::Sled(import) => import.write(records),
            #[cfg(feature = "etcd")]
            Target::Etcd(import) => import.write(records).await,
        }
    }

    /// Makes it a store that stands at `revision`, without history before.
    pub(crate) async fn finish(self, revision: Revision) -> Result<(), EngineError> {
        match self {
            Target::Sled(import) => import.finish(revision),
            #[cfg(feature = "etcd")]
            Target::Etcd(import) => import.finish(revision).await,
        }
    }

    /// Takes away what was written. What cannot be taken away is no store, and the next try takes it away.
    pub(crate) async fn abandon(self) {
        let left = match self {
            Target::Sled(import) => import.abandon(),
            #[cfg(feature = "etcd")]
            Target::Etcd(import) => import.abandon().await,
        };
        if let Err(error) = left {
            tracing::warn!(%error, "what was written so far could not be taken away; it is no store");
        }
    }
}

/// Whether there is a store, without making one as opening it would.
///
/// # Errors
/// It cannot be read, is of a newer version, or an import into it did not finish.
pub async fn is_store(engine: &EngineChoice) -> Result<bool, OpenError> {
    match engine {
        EngineChoice::Sled { directory } => directory::is_store(directory),
        EngineChoice::Memory(_) => Ok(true),
        #[cfg(feature = "etcd")]
        EngineChoice::Etcd(etcd) => {
            let members = Members::new(etcd)?;
            Ok(load::find(&members, &Layout::new(&etcd.prefix)).await?.is_some())
        }
    }
}
