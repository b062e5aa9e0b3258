//! Manifests in files, directories or on stdin. How their text reads is `strata_client::manifest`. Knows no server.

mod read;

use std::path::PathBuf;

use strata_client::manifest::ParseError;

pub use read::load;

/// Largest file that is read, in bytes.
pub const MAX_FILE: u64 = 64 * 1024 * 1024;

/// A manifest that cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum ManifestError {
    /// The file cannot be read.
    #[error("cannot read {}: {}", path.display(), read::advice(.error))]
    Read {
        /// Which.
        path: PathBuf,
        /// Why; told with the path, so it is no source.
        error: std::io::Error,
    },
    /// The text is no manifest.
    #[error(transparent)]
    Parse(#[from] ParseError),
    /// There is nothing in it.
    #[error("no objects in {0}: a manifest holds objects with apiVersion, kind and metadata.name")]
    Nothing(String),
    /// A way of naming manifests that is not supported.
    #[error("{0}")]
    Unsupported(String),
}

#[cfg(test)]
mod tests;
