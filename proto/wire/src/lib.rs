//! Placeholder; replaced by the crate's first module.
