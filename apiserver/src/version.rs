//! What this server calls itself. Knows nothing of how it is asked.

/// Major version of the Kubernetes API that is spoken.
pub const MAJOR: &str = "1";
/// Minor version of the Kubernetes API that is spoken.
pub const MINOR: &str = "33";
/// The version clients compare with their own.
pub const GIT_VERSION: &str = "v1.33.0+strata";
/// The version of Strata.
pub const STRATA: &str = env!("CARGO_PKG_VERSION");
