//! The object model of Strata: what every other crate means by "object", "type", "name" and "error".
//!
//! Modules are listed in reading order; each imports only from those above it. Nothing here knows of
//! transport, storage, time of day or randomness.

pub mod addresses;
pub mod age;
pub mod condition;
pub mod readiness;
pub mod field;
pub mod jsonpath;
pub mod meta;
pub mod merge;
pub mod names;
pub mod object;
pub mod quantity;
pub mod amounts;
pub mod resource;
pub mod quota;
pub mod selector;
pub mod status;
